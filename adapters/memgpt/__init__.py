"""MemGPT: main context, recall and archival storage, managed by the model's own function calls."""

from __future__ import annotations

from steeltrap.adapters.memgpt.memory import MemGPT

__all__ = ["MemGPT"]
