"""The contract of an adapter as checks that any memory can be put to."""
