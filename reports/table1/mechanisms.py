"""By what a memory puts away, and over what it propagates: the mechanism behind a mark.

The paper's Table 1 names mechanisms from reading (foreign key, single edge, importance ranking);
here they are named after what was seen. What decides is tried by the family `retention`, whose
units differ in when they were told, in importance and in use; what is followed, by the kinds of
rules of the cascades.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from steeltrap.harness.record import Kept, Record
from steeltrap.harness.stats import mean_interval
from steeltrap.reports.words import percent

__all__ = ["Choice", "Followed", "Sway", "choice", "choice_words", "followed", "followed_words"]

FACTORS: Final = {
    "late": ("the oldest go", "the newest go"),
    "vital": ("what matters stays", "what matters goes"),
    "read": ("what is read stays", "what is read goes"),
}
"""What decides, and what it means where it raises survival, and where it lowers it."""
_SOME: Final = 0.02
"""A smaller share that is gone is not worth a word."""


class Sway(NamedTuple):
    """By how much one factor raises the share that survives; mean over runs, 95% interval."""

    factor: str
    mean: float
    low: float
    high: float

    @property
    def sure(self) -> bool:
        """Whether the interval is on one side of nought."""
        return self.low > 0 or self.high < 0

    @property
    def words(self) -> str:
        """What it means."""
        return FACTORS[self.factor][self.mean < 0]


class Choice(NamedTuple):
    """What became of units that differ in what could decide."""

    n: int
    told: int
    """Gone after the pressure, no time having passed."""
    waited: int
    """Gone after silence as well."""
    sways: tuple[Sway, ...]
    """Of the factors, where some were gone and others were not; otherwise none."""

    @property
    def when(self) -> str:
        """Whether room or time decides."""
        by_room, by_time = self.told / self.n > _SOME, (self.waited - self.told) / self.n > _SOME
        named = [word for word, so in (("capacity", by_room), ("time", by_time)) if so]
        return " and ".join(named)


def choice(records: Sequence[Record]) -> Choice | None:
    """What decides what is put away; None where no run tries it."""
    tried = [record.outcome.retention for record in records if record.outcome.retention]
    rows = [row for kept in tried for row in kept]
    n = sum(row.n for row in rows if row.when == "told")
    if not n:
        return None
    gone = {
        when: sum(row.n - row.left for row in rows if row.when == when)
        for when in ("told", "waited")
    }
    when = "told" if 0 < gone["told"] < n else "waited"
    sways = [_sway(factor, tried, when) for factor in FACTORS] if 0 < gone[when] < n else []
    return Choice(n, gone["told"], gone["waited"], tuple(filter(None, sways)))


def _sway(factor: str, tried: Sequence[Sequence[Kept]], when: str) -> Sway | None:
    gains = []
    for kept in tried:
        seen = [row for row in kept if row.when == when]
        shares = [
            [row.left / row.n for row in seen if getattr(row, factor) is level and row.n]
            for level in (True, False)
        ]
        if all(shares):
            high, low = (sum(share) / len(share) for share in shares)
            gains.append(high - low)
    interval = mean_interval(gains)
    if interval is None:
        return None
    return Sway(factor, sum(gains) / len(gains), interval.low, interval.high)


def choice_words(found: Choice) -> str:
    """The mechanism in words."""
    if not found.waited:
        return "puts nothing away"
    named = [sway.words for sway in found.sways if sway.sure]
    blind = "whatever it is" if found.sways or found.waited == found.n else ""
    return ": ".join(filter(None, (found.when or "seldom", ", ".join(named) or blind)))


class Followed(NamedTuple):
    """What became of dependents after an update of their source."""

    by_rule: dict[str, tuple[int, int, int, int]]
    """Kind of rule, one edge away -> missed, wrong, marked for review, asked for."""
    far: tuple[int, int]
    """Two edges away and more: missed, asked for."""

    def reached(self, kind: str) -> int:
        """Dependents of a kind that got their new value, or, where somebody has to look, a mark."""
        missed, wrong, marked, asked = self.by_rule.get(kind, (0, 0, 0, 0))
        return asked - missed - wrong - (marked if kind != "review" else 0)

    @property
    def marked(self) -> int:
        """Dependents that were marked although a rule gives their value."""
        return sum(row[2] for kind, row in self.by_rule.items() if kind != "review")


def followed(records: Sequence[Record]) -> Followed | None:
    """What is followed; None where no dependent was asked for."""
    by_rule: dict[str, tuple[int, int, int, int]] = {}
    missed = asked = 0
    for record in records:
        for kind, row in record.outcome.by_rule.items():
            before = by_rule.get(kind, (0, 0, 0, 0))
            by_rule[kind] = tuple(a + b for a, b in zip(before, row, strict=True))  # type: ignore[assignment]
        for hop, (lost, of) in record.outcome.missed_by_hop.items():
            if int(hop) > 1:
                missed, asked = missed + lost, asked + of
    return Followed(by_rule, (missed, asked)) if by_rule else None


def followed_words(found: Followed) -> str:
    """The mechanism in words."""
    values = [kind for kind in found.by_rule if kind != "review"]
    reached = [kind for kind in values if found.reached(kind)]
    if not reached:
        if found.marked:
            return "marks for review, works nothing out"
        return "follows no rule"
    if reached == ["same"] and len(values) > 1:
        return "follows equal values alone (a foreign key)"
    kinds = "every kind of rule" if len(reached) == len(values) else f"rules: {', '.join(reached)}"
    missed, asked = found.far
    return kinds + (f", {percent(missed / asked)} of the farther ones missed" if missed else "")
