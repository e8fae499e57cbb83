"""The ideal memory: the world behind an adapter. It must score zero violations everywhere."""

from __future__ import annotations

from steeltrap.adapters.ideal.memory import Ideal

__all__ = ["Ideal"]
