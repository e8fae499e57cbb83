"""The reference system as a memory under test."""

from __future__ import annotations

from steeltrap.adapters.gem.memory import Gem
from steeltrap.adapters.gem.told import ToldGem

__all__ = ["Gem", "ToldGem"]
