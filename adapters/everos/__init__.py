"""EverOS, the open-source runtime of EverMemOS."""

from __future__ import annotations

from steeltrap.adapters.everos.memory import EverOS

__all__ = ["EverOS"]
