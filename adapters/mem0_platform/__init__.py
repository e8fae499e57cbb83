"""The hosted Mem0 through its own client."""

from __future__ import annotations

from steeltrap.adapters.mem0_platform.memory import Mem0Platform

__all__ = ["Mem0Platform"]
