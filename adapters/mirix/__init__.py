"""Six kinds of memory, each with a manager of its own: MIRIX."""

from __future__ import annotations

from steeltrap.adapters.mirix.memory import Mirix

__all__ = ["Mirix"]
