"""The recipe "How do you build long-term memory for AI agents?" on HelixDB, embedded."""

from __future__ import annotations

from steeltrap.adapters.helix.memory import HelixRecipe

__all__ = ["HelixRecipe"]
