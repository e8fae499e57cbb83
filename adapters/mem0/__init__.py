"""Mem0, open source, 2.x."""

from __future__ import annotations

from steeltrap.adapters.mem0.memory import Mem0

__all__ = ["Mem0"]
