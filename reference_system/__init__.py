"""Place of the reference system: an engine with the governed evolving memory of the paper.

Nothing is here yet. What comes will import nothing else of steeltrap, will be useful without
it, and will be measured through an adapter like every other system.
"""
