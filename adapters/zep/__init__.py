"""Zep, the hosted memory, through its own client."""

from __future__ import annotations

from steeltrap.adapters.zep.memory import Zep

__all__ = ["Zep"]
