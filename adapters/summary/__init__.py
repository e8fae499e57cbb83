"""A transcript whose older part is summarised by a model, as agents do when their room runs out."""

from __future__ import annotations

from steeltrap.adapters.summary.memory import Summary

__all__ = ["Summary"]
