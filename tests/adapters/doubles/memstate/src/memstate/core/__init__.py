"""A stand-in for a package of MemState."""
