"""Letta: an agent that keeps its own memory, in Markdown files under git."""

from __future__ import annotations

from steeltrap.adapters.letta.memory import Letta

__all__ = ["Letta"]
