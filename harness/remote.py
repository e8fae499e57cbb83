"""A memory in a process of its own."""
