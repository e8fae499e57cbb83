"""Environments of systems that cannot share this one."""
