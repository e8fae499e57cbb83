"""Reflexion: the last reflections on failures, and the recent trajectory."""

from __future__ import annotations

from steeltrap.adapters.reflexion.memory import Reflexion

__all__ = ["Reflexion"]
