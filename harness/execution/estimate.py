"""How long the cells of a sweep that are left may take."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Sequence
from statistics import fmean
from typing import NamedTuple

__all__ = ["Estimate", "Work", "about"]


class Work(NamedTuple):
    """What is known of a cell before it runs."""

    kind: Hashable
    """Equal for cells that should take equally long: the same system on the same script."""
    cores: int = 1
    """That it keeps busy."""


class Estimate:
    """Says from the cells that were run how long the others may take.

    A cell takes as long as those of its kind did in the mean, and where there is none, as long as
    all did. One that runs counts whole until it is done.

    Args:
        work: the cells.
        slots: cores that they may keep busy together.
    """

    def __init__(self, work: Sequence[Work], slots: int) -> None:
        self._left = dict(enumerate(work))
        self._slots = slots
        self._took_s: dict[Hashable, list[float]] = defaultdict(list)

    def done(self, number: int, seconds: float | None) -> None:
        """Take in that a cell is done.

        Args:
            number: its place among the cells, from 0.
            seconds: that it took; None where it says nothing of others: it was found finished, or
                it failed.
        """
        work = self._left.pop(number)
        if seconds is not None:
            self._took_s[work.kind].append(seconds)

    @property
    def left_s(self) -> float | None:
        """Seconds until the last cell is done; None as long as nothing is known."""
        if not self._left:
            return 0.0
        if not self._took_s:
            return None
        usual = fmean(seconds for took in self._took_s.values() for seconds in took)
        means = {kind: fmean(took) for kind, took in self._took_s.items()}
        expected = [(means.get(work.kind, usual), work) for work in self._left.values()]
        busy = sum(seconds * min(work.cores, self._slots) for seconds, work in expected)
        return max(busy / self._slots, max(seconds for seconds, _ in expected))


def about(seconds: float | None) -> str:
    """A time that is left, as it is said: `about 4 min left`; empty where it is not known."""
    if seconds is None:
        return ""
    if seconds < 60:
        return f"about {max(1, round(seconds))} s left"
    if seconds < 3600:
        return f"about {round(seconds / 60)} min left"
    return f"about {seconds / 3600:.1f} h left"
