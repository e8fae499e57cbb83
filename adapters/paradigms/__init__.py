"""Database paradigms as memories: what each data model gives an agent's memory, and what not.

All of them are told and asked through the reference system's own interpreter, so that they differ
from it in the store alone. What they share is in `base`; each store has a module of its own.
"""

from __future__ import annotations

from steeltrap.adapters.paradigms.base import Held, Paradigm, Schema, Write

__all__ = ["Held", "Paradigm", "Schema", "Write"]
