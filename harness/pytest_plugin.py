"""`pytest --steeltrap mypackage:MyMemory`: a memory judged as test items."""
