"""Six kinds of memory, each with a manager of its own: MIRIX, and a client of its maker's server."""

from __future__ import annotations

from steeltrap.adapters.mirix.memory import Mirix

__all__ = ["Mirix"]
