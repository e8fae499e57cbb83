"""MemState, the paper's prototype, in a user's own checkout."""

from __future__ import annotations

from steeltrap.adapters.memstate.memory import MemState

__all__ = ["MemState"]
