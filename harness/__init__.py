"""The instrument: what a script, a history and a verdict are, and the work done on them."""
