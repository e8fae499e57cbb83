"""From HTTP bodies to calls and back, one module for each dialect."""
