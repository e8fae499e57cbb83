"""Dose and response (C6): what is read more stands better, and lasts longer.

A group is any three units or more that a neutral question touches alike, asked at least three
times: before the reads, after them, and after pressure. How often each unit was read is counted
from the script. Three things can answer a dose:

- salience, where it is visible. Each read is judged as it happens (`adaptation`), so that here
  salience is reported and not judged again, and a group in which a read was found wrong counts
  no further: one cause, one name.
- standing: the order, or where they are given the scores, of the neutral question after the reads
  against the one before. It is judged where salience is not visible. A memory that never forgets
  anything is judged by it alone.
- survival: which units are still listed after the pressure, or still served where nothing can be
  listed. It is judged where some units of a group are left and others are not, also where
  salience is visible: a signal that rises and decides nothing is none.

Which unit is read how often is drawn by dice, so that chance is known exactly: in a memory that
does not mind reading the doses might as well have been exchanged within each group. The groups of
a script are judged together and each counts as an opportunity.

| found | name |
|---|---|
| more reads, worse standing or shorter life | wrong-direction |
| the same, although what was read rose | unread-favoured |
| some are forgotten, and reads have no part in which | inert-retrieval |
| nothing moves, or not with the dose | inert-retrieval |
| the first read moves something, and no later one | inert-retrieval |
| scores are given, and of two doses the higher never gives more | inert-retrieval |

What is read at all is also held against what is not, however often: a memory that goes by the
latest read alone (LRU) passes, since its order among units that were last read at one instant
moves, if not with the count. The reinforcement family asks with twins whether reading
matters at all; its pairs are no groups here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations, pairwise, permutations
from statistics import fmean
from typing import Final

from steeltrap.harness.checks.sheet import Sheet, View
from steeltrap.harness.record import Dose, DoseResponse
from steeltrap.harness.script import Audit, Probe
from steeltrap.harness.verdict import NAMES, Violation

__all__ = ["Doses"]

UNITS_MIN, UNITS_MAX = 3, 6
"""A pair is no group; of more than six units the exchanges are too many to be counted."""
LEVEL: Final = 0.001
"""So rarely may chance alone show what is taken for an effect."""
CHANCES: Final = 10
"""Pairs that could have moved before stillness is taken for more than chance."""
EVEN: Final = 1e-9
"""Scores that differ by no more are equal."""

Moves = dict[tuple[str, str], int]
"""Pair of units -> 1 if the second gained on the first, -1 if it lost, 0 if neither."""


@dataclass(slots=True)
class Group:
    """What was seen of units that are alike."""

    units: tuple[str, ...]
    ranks: list[dict[str, tuple[int | None, float | None]]] = field(default_factory=list)
    """The neutral questions: unit -> (place among the items served, score)."""
    reads: Counter[str] = field(default_factory=Counter)
    salience: dict[str, tuple[float, float]] = field(default_factory=dict)
    """Unit -> (before the first read, after the last one that it was seen at)."""
    amiss: bool = False
    """A read did not raise the salience of what it read, or raised another's more."""
    listed: dict[str, bool] = field(default_factory=dict)
    served: dict[str, bool] = field(default_factory=dict)
    recovered: dict[str, bool] = field(default_factory=dict)
    i: int = 0
    """Step of the last neutral question."""
    family: str = ""

    @property
    def whole(self) -> bool:
        """Whether the group was told, read and put under pressure."""
        return len(self.ranks) >= 3 and len({self.reads[unit] for unit in self.units}) > 1

    @property
    def left(self) -> dict[str, bool]:
        """Which units survived; empty where it was not seen of all."""
        for seen in (self.listed, self.served):
            if len(seen) == len(self.units):
                return seen
        return {}

    def place(self, unit: str) -> float:
        """Place in the group after the reads, from 1; those that were not served share the last."""
        return 1 + sum(
            (1 - _ahead(self.ranks[1][unit][0], self.ranks[1][other][0])) / 2
            for other in self.units
            if other != unit
        )


# ---------------------------------------------------------------- what moved


def _ahead(place: int | None, other: int | None) -> int:
    """1 if the first stands before the second, -1 if behind it, 0 if neither was served."""
    one, two = (1 << 20 if p is None else p for p in (place, other))
    return (one < two) - (one > two)


def _standing(group: Group) -> tuple[Moves, set[tuple[str, str]]]:
    """What moved between the first two neutral questions, and pairs in which it would show.

    By scores a gain always shows; by places it shows in a pair whose other unit was ahead.
    """
    before, after = group.ranks[:2]
    moves: Moves = {}
    shows: set[tuple[str, str]] = set()
    for one, two in permutations(group.units, 2):
        scores = [rank[unit][1] for rank in (after, before) for unit in (two, one)]
        was = _ahead(before[two][0], before[one][0])
        known = [score for score in scores if score is not None]
        if len(known) == len(scores):
            gain = (known[0] - known[2]) - (known[1] - known[3])
            moves[one, two] = (gain > EVEN) - (gain < -EVEN)
            shows.add((one, two))
        else:
            now = _ahead(after[two][0], after[one][0])
            moves[one, two] = (now > was) - (now < was)
            if was < 0:
                shows.add((one, two))
    return moves, shows


def _survival(group: Group) -> tuple[Moves, set[tuple[str, str]]]:
    """Whose life was the longer; that nothing was lost shows nothing."""
    return _by({unit: float(left) for unit, left in group.left.items()}), set()


def _by(values: dict[str, float]) -> Moves:
    return {(a, b): (values[b] > values[a]) - (values[b] < values[a]) for a, b in permutations(values, 2)}  # fmt: skip


# ---------------------------------------------------------------- what chance would do


@dataclass(frozen=True)
class Trend:
    """How far what moved goes with the dose, over the groups of a script."""

    moved: list[tuple[Moves, dict[str, int]]]
    """Of each group: what moved, and how often each of its units was read."""
    chances: int
    """Pairs in which an effect would have shown."""

    @cached_property
    def total(self) -> int:
        """Pairs that moved with the dose, less those that moved against it."""
        return sum(_with(moves, reads) for moves, reads in self.moved)

    @cached_property
    def _by_chance(self) -> dict[int, float]:
        """Total -> share of the ways of exchanging doses within groups in which it comes out."""
        import numpy as np

        shares, lowest = np.ones(1), 0
        for moves, reads in self.moved:
            ways = Counter(
                _with(moves, dict(zip(order, reads.values(), strict=True)))
                for order in permutations(reads)
            )
            low, high = min(ways), max(ways)
            found = np.array([ways[total] for total in range(low, high + 1)], float)
            shares, lowest = np.convolve(shares, found / found.sum()), lowest + low
        return {lowest + place: float(share) for place, share in enumerate(shares) if share}

    def _share(self, fits: Callable[[int], bool]) -> float:
        return sum(share for total, share in self._by_chance.items() if fits(total))

    @property
    def up(self) -> bool:
        """Whether more reads go with better."""
        return self._share(lambda total: total >= self.total) <= LEVEL

    @property
    def down(self) -> bool:
        """Whether more reads go with worse."""
        return self._share(lambda total: total <= self.total) <= LEVEL

    @property
    def tried(self) -> bool:
        """Whether so much moved that an effect of the dose could be told from chance."""
        return self._share(lambda total: total == max(self._by_chance)) <= LEVEL

    @property
    def still(self) -> bool:
        """Whether nothing moved, although much could."""
        moved = (moves[pair] for moves, reads in self.moved for pair in combinations(reads, 2))
        return self.chances >= CHANCES and not any(moved)


def _with(moves: Moves, reads: dict[str, int]) -> int:
    """Pairs of units that moved with the dose, less those that moved against it."""
    return sum(
        moves[one, two] * ((reads[two] > reads[one]) - (reads[two] < reads[one]))
        for one, two in combinations(reads, 2)
    )


# ---------------------------------------------------------------- the check


class Doses:
    """Watches groups of like units, and judges them together at the end."""

    def __init__(self) -> None:
        self._groups: dict[tuple[str, ...], Group] = {}
        self._of: dict[str, Group] = {}

    def probe(self, view: View) -> None:
        """A neutral question, a read, or a look at what is left."""
        probe = view.step
        assert isinstance(probe, Probe)
        if probe.ask == "rank" and UNITS_MIN <= len(probe.units) <= UNITS_MAX:
            self._rank(probe, view)
        elif probe.ask == "current" and (group := self._of.get(probe.unit or "")):
            if probe.observe == "in-script" and len(group.ranks) == 1:
                self._read(group, probe, view)
            elif len(group.ranks) >= 3 and probe.lag is None:
                group.served.setdefault(probe.unit or "", bool(view.about))

    def listing(self, view: View) -> None:
        """What is active; the last listing before the last question counts."""
        assert view.listing is not None
        for group in self._groups.values():
            if len(group.ranks) == 2:
                group.listed = {unit: bool(view.listing.claims(unit)) for unit in group.units}

    def audit(self, view: View) -> None:
        """What can be had back; the last look before the last question counts."""
        audit = view.step
        assert isinstance(audit, Audit)
        group = self._of.get(audit.unit)
        if group and len(group.ranks) == 2 and view.event.recovered is not None:
            group.recovered[audit.unit] = any(c.unit == audit.unit for cs in view.recovered for c in cs)  # fmt: skip

    def _rank(self, probe: Probe, view: View) -> None:
        group = self._groups.setdefault(probe.units, Group(probe.units))
        self._of |= dict.fromkeys(probe.units, group)
        scores = view.event.scores
        places = {unit: view.place_of(unit) for unit in probe.units}
        group.ranks.append({
            unit: (place, scores[place - 1] if place and scores else None)
            for unit, place in places.items()
        })  # fmt: skip
        group.i, group.family = view.i, probe.family

    def _read(self, group: Group, probe: Probe, view: View) -> None:
        group.reads[probe.unit or ""] += 1
        if not view.about:
            return
        gains = []
        for seen in view.event.salience:
            before, after = seen.before or 0.0, seen.after or 0.0
            gains.append(after - before)
            if seen.unit in group.units:
                first, _ = group.salience.get(seen.unit, (before, after))
                group.salience[seen.unit] = first, after
        if gains and (gains[0] <= 0 or max(gains) > gains[0]):
            group.amiss = True

    # ------------------------------------------------------------ the end

    def finish(self, sheet: Sheet, turns: int) -> None:
        """Judge all groups together.

        Args:
            sheet: of C6.
            turns: turns of the whole script.
        """
        groups = [group for group in self._whole() if not group.amiss]
        name, judged = _name(groups)
        for group in groups if judged else ():
            sheet.family = group.family
            found = [Violation(
                name, "C6", group.i, "", max(group.units, key=lambda u: group.reads[u]),
                "the more often read, the better it stands and the longer it lasts", _told(group),
                family=group.family,
            )] if name else []  # fmt: skip
            sheet.test(NAMES["C6"], turns, *found)

    def response(self) -> DoseResponse | None:
        """What answered the doses, judged or not; None where the script gives none."""
        groups = list(self._whole())
        if not groups:
            return None
        by_dose: dict[int, list[tuple[Group, str]]] = {}
        for group in groups:
            for unit in group.units:
                by_dose.setdefault(group.reads[unit], []).append((group, unit))
        doses = [_dose(reads, seen) for reads, seen in sorted(by_dose.items())]
        return DoseResponse(groups=len(groups), doses=doses, trends=_trends(groups))

    def _whole(self) -> Iterable[Group]:
        return (group for group in self._groups.values() if group.whole)


def _trend(
    groups: Sequence[Group],
    moves: Callable[[Group], tuple[Moves, set[tuple[str, str]]]],
    dose: Callable[[int], int | None] = lambda reads: reads,
) -> Trend:
    """The trend over the units of some doses.

    Args:
        groups: to be taken together.
        moves: what moved in a group, and pairs in which it would show.
        dose: what a number of reads is taken for; None leaves the unit out.
    """
    moved, chances = [], 0
    for group in groups:
        taken = {unit: dose(group.reads[unit]) for unit in group.units}
        reads = {unit: n for unit, n in taken.items() if n is not None}
        found, shows = moves(group)
        moved.append((found, reads))
        chances += sum(reads[b] > reads[a] for a, b in shows if a in reads and b in reads)
    return Trend(moved, chances)


def _name(groups: Sequence[Group]) -> tuple[str, bool]:
    """The violation that groups show together, and whether they could show any."""
    left = [group for group in groups if group.left]
    blind = [group for group in groups if not group.salience]
    doses = sorted({group.reads[unit] for group in groups for unit in group.units})
    lasting = [_trend(left, _survival), _trend(left, _survival, _whether)]
    standing = [_trend(blind, _standing), _trend(blind, _standing, _whether)]
    finer = [_trend(blind, _standing, lambda n: n or None)]
    finer += [_trend(blind, _standing, _one_of(*step)) for step in pairwise(doses)]
    if any(trend.down for trend in (*lasting, *standing, *finer)):
        return ("unread-favoured" if _unread_rose(groups) else "wrong-direction"), True
    lasts, stands = (any(trend.up for trend in trends) for trends in (lasting, standing))
    fates, moved = (any(trend.tried for trend in trends) for trends in (lasting, standing))
    still = any(trend.still for trend in (*standing, *finer))
    inert = not lasts and (fates or still or (moved and not stands))
    return ("inert-retrieval" if inert else ""), inert or fates or moved


def _whether(reads: int) -> int:
    return min(reads, 1)


def _one_of(low: int, high: int) -> Callable[[int], int | None]:
    return lambda reads: reads if reads in (low, high) else None


def _unread_rose(groups: Sequence[Group]) -> bool:
    """Whether the scores of units that were not read rose between the first two questions."""
    gains = [
        after - before
        for group in groups
        for unit in group.units
        if not group.reads[unit]
        and (before := group.ranks[0][unit][1]) is not None
        and (after := group.ranks[1][unit][1]) is not None
    ]
    return bool(gains) and fmean(gains) > EVEN


def _told(group: Group) -> str:
    """What became of the units of a group, in words."""
    units = sorted(group.units, key=lambda unit: group.reads[unit])
    words = [
        f"{group.reads[unit]} reads: place {group.place(unit):g}"
        + ("" if not group.left else ", left" if group.left[unit] else ", gone")
        for unit in units
    ]
    return "; ".join(words)


def _dose(reads: int, seen: Sequence[tuple[Group, str]]) -> Dose:
    left = [group.left[unit] for group, unit in seen if group.left]
    back = [group.recovered[unit] for group, unit in seen if unit in group.recovered]
    saliences = [group.salience[unit] for group, unit in seen if unit in group.salience]
    return Dose(
        reads=reads,
        n=len(seen),
        left=sum(left) if left else None,
        recovered=sum(back) if back else None,
        place=fmean(group.place(unit) for group, unit in seen),
        salience=fmean(after for _, after in saliences) if saliences else None,
        rise=fmean(after - before for before, after in saliences) if saliences else None,
    )


def _trends(groups: Sequence[Group]) -> dict[str, list[float]]:
    """Of each group: pairs that moved with the dose less those against it, over all pairs."""
    found: dict[str, list[float]] = {"salience": [], "standing": [], "survival": []}
    for group in groups:
        moved = {"standing": _standing(group)[0]}
        if len(group.salience) == len(group.units):
            moved["salience"] = _by({u: b - a for u, (a, b) in group.salience.items()})
        if group.left:
            moved["survival"] = _survival(group)[0]
        for what, moves in moved.items():
            reads = {unit: group.reads[unit] for unit in group.units}
            pairs = sum(reads[a] != reads[b] for a, b in combinations(group.units, 2))
            found[what].append(_with(moves, reads) / pairs)
    return {what: values for what, values in found.items() if values}
