"""What a long life has beside what happens in it: an end of most things, and rare looks.

In 500 turns everything can be asked for after every change. In a million that would cost more than
the life itself, and what is true would grow without end. So in a long life

- **episodes end**: some while after the last turn of one its units are withdrawn, and the true
  footprint levels off, but for a small share that stays for good: a life does gather a few things;
- **fewer and fewer episodes are watched**: of those that begin at turn t a share of `watched_until` / t,
  so that all questions together grow with the logarithm of the turns. An episode is watched whole or
  not at all, since what it tests lies in the order of its questions;
- **checkpoints** look at a sample: the latest units, and others drawn from the whole life so far, each
  of them as likely (reservoir sampling, Vitter's algorithm R);
- **what can never be asked for again is forgotten** by whoever keeps the truth.

Time goes by turn, so a life of n turns is the beginning of any longer one of its seed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Final

import msgspec

from steeltrap.workloads.dice import Dice

__all__ = ["Life", "Sample", "checkpoints"]

_ROUND: Final = (1.0, 10**0.5, 5.0)
"""Checkpoints in each power of ten: 100, 316, 500, 1 000, 3 162, 5 000, ..."""


class Life(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """The settings of a long life."""

    watched_until: int = 300
    """Up to this turn every episode is watched; later ever fewer are."""
    gap_share: float = 0.025
    """Share of turns before which hours or days pass."""
    withdrawn_after: int = 2000
    """Turns after which the units of an episode that has ended are withdrawn, on average."""
    kept: float = 0.05
    """Share of episodes whose units stay for good."""
    sample: int = 48
    """Units that a checkpoint asks for: half of them the latest, half from all of life."""
    years: int = 10
    """So many years end with a checkpoint."""

    def watches(self, turns: int, dice: Dice) -> bool:
        """Whether an episode that begins after so many turns is watched."""
        return dice.chance(min(1.0, self.watched_until / max(turns, 1)))

    def end(self, turns: int, dice: Dice) -> int | None:
        """The turn from which what an episode told is withdrawn; None: it stays."""
        if dice.chance(self.kept):
            return None
        return turns + dice.between(self.withdrawn_after // 2, self.withdrawn_after * 3 // 2)


def checkpoints(years: int, start: datetime) -> tuple[Iterator[int], Iterator[str]]:
    """When a life is looked at: at round turns without end, and at the ends of its first years.

    Returns:
        Turns in rising order, and instants (ISO 8601 to the minute).
    """

    def turns() -> Iterator[int]:
        power = 100
        while True:
            yield from (round(power * part) for part in _ROUND)
            power *= 10

    ends = (start.replace(year=start.year + n).isoformat(timespec="minutes") for n in range(1, years + 1))  # fmt: skip
    return turns(), ends


class Sample:
    """Units that stand for a life: its latest, and some of all that it ever told.

    Args:
        size: units at most.
        dice: chooses.
    """

    def __init__(self, size: int, dice: Dice) -> None:
        self._latest: deque[str] = deque(maxlen=(size + 1) // 2)
        self._kept: list[str] = []
        self._room = size // 2
        self._seen = 0
        self._dice = dice

    def add(self, unit: str) -> None:
        """A unit was told for the first time."""
        self._latest.append(unit)
        self._seen += 1
        if len(self._kept) < self._room:
            self._kept.append(unit)
            return
        place = self._dice.between(0, self._seen - 1)
        if place < self._room:
            self._kept[place] = unit

    def units(self) -> list[str]:
        """The sample, the oldest first."""
        return list(dict.fromkeys([*self._kept, *self._latest]))

    def without(self, units: Iterable[str]) -> list[str]:
        """Those of some units that are not in it."""
        here = {*self._kept, *self._latest}
        return [unit for unit in units if unit not in here]
