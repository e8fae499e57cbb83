"""steeltrap: can an agent's memory be trusted over a long life?"""

__version__ = "0.1.0"
