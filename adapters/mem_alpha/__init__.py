"""A text, facts and events, changed by a policy's tool calls: Mem-alpha without its learning."""

from __future__ import annotations

from steeltrap.adapters.mem_alpha.memory import MemAlpha

__all__ = ["MemAlpha"]
