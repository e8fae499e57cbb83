"""One loopback server for all model calls of a run."""
