"""A-Mem: notes with attributes of a model's, linked to each other, which later notes bring up to date."""

from __future__ import annotations

from steeltrap.adapters.a_mem.memory import AMem

__all__ = ["AMem"]
