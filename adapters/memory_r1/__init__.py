"""A flat store whose manager and whose reader are policies: Memory-R1 without its learning."""

from __future__ import annotations

from steeltrap.adapters.memory_r1.memory import MemoryR1

__all__ = ["MemoryR1"]
