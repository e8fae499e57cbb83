"""LangMem's memory manager over LangGraph's store."""

from __future__ import annotations

from steeltrap.adapters.langmem.memory import LangMem

__all__ = ["LangMem"]
