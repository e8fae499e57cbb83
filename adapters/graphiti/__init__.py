"""Graphiti, the open-source engine of Zep: a temporal graph of facts (graphiti-core 0.31.2)."""

from steeltrap.adapters.graphiti.memory import Graphiti

__all__ = ["Graphiti"]
