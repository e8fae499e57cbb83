"""Handles of graphs."""

from __future__ import annotations

from types import SimpleNamespace

kuzu = SimpleNamespace()
cleared: list[bool] = []


def clear_kuzu_graph_cache() -> None:
    """Let go of all graphs."""
    cleared.append(True)
