"""Turns in a vector store, by meaning, by words, or by both."""

from __future__ import annotations

from steeltrap.adapters.vector.memory import Fusion, Vector
from steeltrap.adapters.vector.recipe import Recipe

__all__ = ["Fusion", "Recipe", "Vector"]
