"""Memory systems behind the protocols of `steeltrap.harness.memory`, a folder per system."""
