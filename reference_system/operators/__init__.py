"""The four operators of "Is Agent Memory a Database?" (section 3.2), each on a `Draft`."""
