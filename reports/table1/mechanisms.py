"""By what a memory puts away, and over what it propagates: the mechanism behind a mark.

The paper's Table 1 names mechanisms from reading (foreign key, single edge, importance ranking);
here they are named after what was seen. What decides is tried by the family `retention`, whose
units differ in when they were told, in importance and in use; what is followed, by the kinds of
rules of the cascades.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import fmean, stdev
from typing import Final, NamedTuple

from steeltrap.harness.record import Kept, Record
from steeltrap.reports.table import Numbers, Say, Table, listed
from steeltrap.reports.words import percent

__all__ = [
    "Choice", "Followed", "Sway", "choice", "choice_words", "followed", "followed_words",
    "propagation_table", "retention_table",
]  # fmt: skip

FACTORS: Final = {
    "late": ("the oldest go", "the newest go"),
    "vital": ("what matters stays", "what matters goes"),
    "read": ("what is read stays", "what is read goes"),
}
"""What decides, and what it means where it raises survival, and where it lowers it."""
KINDS: Final = ("same", "offset", "scaled", "review")
"""Kinds of rules, the plainest first."""
_SOME: Final = 0.02
"""A smaller share that is gone is not worth a word."""


class Sway(NamedTuple):
    """By how much one factor raises the share that survives: mean over runs, Student's 99% interval.

    Three factors are looked at for each of forty rows: at 95% several would be named by chance.
    """

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
    if len(gains) < 2:
        return None
    # five coarse values: a bootstrap of them is sure too soon
    from scipy.stats import t

    mean, n = fmean(gains), len(gains)
    half = float(t.ppf(0.995, n - 1)) * stdev(gains) / math.sqrt(n)
    return Sway(factor, mean, mean - half, mean + half)


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
    tried = [kind for kind in KINDS if kind in found.by_rule]
    reached = [kind for kind in tried if found.reached(kind)]
    if set(reached) <= {"review"} and len(tried) > 1:
        marks = found.marked or reached
        return "marks for review, works nothing out" if marks else "follows no rule"
    if not reached:
        return "follows no rule"
    if reached == ["same"] and len(tried) > 1:
        return "follows equal values alone (a foreign key)"
    kinds = "every kind of rule" if reached == tried else f"rules: {', '.join(reached)}"
    missed, asked = found.far
    return kinds + (f", {percent(missed / asked)} of the farther ones missed" if missed else "")


# ---------------------------------------------------------------- as tables


def retention_table(
    systems: Mapping[str, Sequence[Record]], *, brief: bool = False
) -> Table | None:
    """What was put away, when, and what the survivors share; None where nothing tries it.

    Args:
        systems: the runs by system.
        brief: what they share in words alone, to fit a console.
    """
    numbers: list[Numbers] = []
    for system, records in systems.items():
        if found := choice(records):
            sways = {sway.factor: sway for sway in found.sways}
            numbers.append({
                "system": system, "units": found.n, "told": found.told / found.n,
                "waited": found.waited / found.n, "words": choice_words(found),
                **{f"{factor}_{part}": getattr(sways.get(factor), part, None)
                   for factor in FACTORS for part in ("mean", "low", "high")},
            })  # fmt: skip
    if not numbers:
        return None
    notes = [
        "gone: of units that were told early or late, are vital or trivial, were read or not, in "
        "every combination: those not listed any more after pressure, and after silence too.",
        "late, vital, read: by how much each raises the share that is left, with its 99% interval "
        "over runs; nothing where all went or all stayed. Named is what is on one side of nought.",
    ]
    columns: list[tuple[str, str | Say]] = [
        ("system", "system"),
        ("gone by pressure", lambda row: percent(row["told"])),
        ("and silence", lambda row: percent(row["waited"])),
        *((factor, _swayed(factor)) for factor in (() if brief else FACTORS)),
        ("so", "words"),
    ]
    return listed("retention", "By what is put away", numbers, columns, about=("system",), notes=notes[:1] if brief else notes)  # fmt: skip


def _swayed(factor: str) -> Say:
    def said(row: Numbers) -> str:
        if row[f"{factor}_mean"] is None:
            return ""
        return f"{row[f'{factor}_mean']:+.2f}\n{row[f'{factor}_low']:+.2f} to {row[f'{factor}_high']:+.2f}"

    return said


def propagation_table(
    systems: Mapping[str, Sequence[Record]], *, brief: bool = False
) -> Table | None:
    """What was missed, by kind of rule and by distance; None where no dependent was asked for.

    Args:
        systems: the runs by system.
        brief: what was followed in words, and the farther ones, to fit a console.
    """
    numbers: list[Numbers] = []
    for system, records in systems.items():
        if found := followed(records):
            rows = {kind: found.by_rule.get(kind, (0, 0, 0, 0)) for kind in KINDS}
            numbers.append({
                "system": system, "words": followed_words(found),
                **{f"{kind}_{part}": row[place] for kind, row in rows.items()
                   for place, part in enumerate(("missed", "wrong", "marked", "asked"))},
                "far_missed": found.far[0], "far_asked": found.far[1],
            })  # fmt: skip
    if not numbers:
        return None
    notes = [
        "far: missed/asked for, two edges and more from the change."
        if brief
        else "missed/asked for, one edge from the change, by kind of rule (far: two edges and more); "
        "wrong: with another value than the rule gives; marked: as waiting for review, which is what "
        "a rule of the kind review asks for.",
    ]
    columns: list[tuple[str, str | Say]] = [
        ("system", "system"),
        *((kind, _missed(kind)) for kind in (() if brief else KINDS)),
        ("far", lambda row: f"{row['far_missed']}/{row['far_asked']}" if row["far_asked"] else "-"),
        ("so", "words"),
    ]
    return listed("propagation", "Over what it propagates", numbers, columns, about=("system",), notes=notes)  # fmt: skip


def _missed(kind: str) -> Say:
    def said(row: Numbers) -> str:
        if not row[f"{kind}_asked"]:
            return "-"
        words = [f"{row[f'{kind}_missed']}/{row[f'{kind}_asked']}"]
        return "\n".join(
            words + [f"{row[f'{kind}_{part}']} {part}" for part in ("wrong", "marked") if row[f"{kind}_{part}"]]
        )  # fmt: skip

    return said
