"""Seeded choice that gives the same results on every Python version and platform.

`random.Random.random()` is the one method whose sequence the standard library promises to keep,
so everything here is made from it alone.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Sequence
from typing import TypeVar

__all__ = ["Dice"]

T = TypeVar("T")


class Dice:
    """A stream of choices named by its seed; `child` gives independent streams.

    Args:
        name: anything that has a stable `str`, joined into the seed.
    """

    def __init__(self, *name: object) -> None:
        self._name = "/".join(str(part) for part in name)
        seed = hashlib.sha256(self._name.encode()).digest()[:8]
        self._random = random.Random(int.from_bytes(seed, "big")).random

    def __repr__(self) -> str:
        return f"<Dice {self._name}>"

    def child(self, *name: object) -> Dice:
        """A stream that depends on this one's name and not on how far this one has run."""
        return Dice(self._name, *name)

    def chance(self, share: float) -> bool:
        """True in a given share of cases."""
        return self._random() < share

    def between(self, low: int, high: int) -> int:
        """A whole number from `low` to `high`, both included."""
        return low + int(self._random() * (high - low + 1))

    def pick(self, options: Sequence[T]) -> T:
        """One of the options."""
        return options[int(self._random() * len(options))]

    def weighted(self, options: Sequence[T], weights: Sequence[float]) -> T:
        """One of the options, as often as its weight says."""
        point = self._random() * sum(weights)
        for option, weight in zip(options, weights, strict=True):
            point -= weight
            if point < 0:
                return option
        return options[-1]

    def shuffled(self, options: Sequence[T]) -> list[T]:
        """The options in random order (Fisher and Yates)."""
        deck = list(options)
        for i in range(len(deck) - 1, 0, -1):
            j = int(self._random() * (i + 1))
            deck[i], deck[j] = deck[j], deck[i]
        return deck

    def sample(self, options: Sequence[T], n: int) -> list[T]:
        """`n` different ones of the options, or all if there are fewer."""
        return self.shuffled(options)[:n]
