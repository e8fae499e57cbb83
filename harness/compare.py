"""Is a new run worse than an old one?"""
