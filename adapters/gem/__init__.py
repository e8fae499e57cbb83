"""The reference system as a memory under test."""

from __future__ import annotations

from steeltrap.adapters.gem.memory import Gem
from steeltrap.adapters.gem.model import ModelGem
from steeltrap.adapters.gem.told import ToldGem

__all__ = ["Gem", "ModelGem", "ToldGem"]
