"""Mem0, open source, 1.x: the flow of the Mem0 paper, with and without its graph."""

from __future__ import annotations

from steeltrap.adapters.mem0_classic.memory import Mem0Classic

__all__ = ["Mem0Classic"]
