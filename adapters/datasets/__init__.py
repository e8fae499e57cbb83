"""Public data sets as scripts for the same driver; the data itself is not part of the package."""
