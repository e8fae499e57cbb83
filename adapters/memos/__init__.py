"""MemOS: memories in tiers, kept in order by a scheduler."""

from __future__ import annotations

from steeltrap.adapters.memos.memory import MemOS

__all__ = ["MemOS"]
