"""What decides what is put away: room, time, age, importance or use. Not judged, but told.

The units of a group were told early or late, are vital or trivial, and were read or not, in every
combination. What is active is listed after pressure (`told`), when nothing but room can have
decided, and after silence (`waited`), when time can have. What the survivors have in common names
the mechanism: "Relevance-Driven Retention" of "Is Agent Memory a Database?" (section 2.1) holds
capacity and age against use and importance.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final, Literal

from steeltrap.harness.checks.sheet import View
from steeltrap.harness.record import Kept
from steeltrap.harness.script import Audit, Probe, Turn

__all__ = ["FAMILY", "Retention"]

FAMILY: Final = "retention"
"""The family whose looks these are."""
Group = dict[str, None]


class Retention:
    """Watches the units of the family, and which of them are listed."""

    def __init__(self) -> None:
        self._told: dict[str, int] = {}
        """Unit -> the number of the turn that told it."""
        self._reads: Counter[str] = Counter()
        self._looks: dict[int, list[frozenset[str]]] = {}
        """By how many turns had been told: what was listed, look by look."""
        self._groups: dict[str, tuple[Group, int]] = {}
        """By the group of their audits: the units, and how many turns had been told by then."""
        self._vital: set[str] = set()
        self._recovered: dict[str, bool] = {}
        """Whether a unit was had back by explicit recovery, at the last look."""
        self._answered: dict[str, bool] = {}
        """Whether it was answered right when it was asked for after that."""
        self._taken: set[str] = set()
        """Units that were ever listed: what was never taken in cannot be put away."""

    def hear(self, turn: Turn, number: int) -> None:
        """A unit is told for the first time."""
        for op in turn.ops if turn.family == FAMILY else ():
            if op.op == "tell" and op.unit:
                self._told.setdefault(op.unit, number)
                if op.importance == "vital":
                    self._vital.add(op.unit)

    def probe(self, view: View) -> None:
        """A unit is read."""
        probe = view.step
        assert isinstance(probe, Probe)
        if probe.family != FAMILY or probe.ask != "current":
            return
        if probe.observe == "in-script":
            self._reads[probe.unit or ""] += 1
        elif view.finding is not None:
            self._answered[probe.unit or ""] = view.finding.verdict == "correct"

    def listing(self, view: View) -> None:
        """What is active now."""
        assert view.listing is not None
        if view.step.family == FAMILY:
            look = frozenset(u for u in self._told if view.listing.claims(u))
            self._looks.setdefault(view.ledger.turns, []).append(look)
            self._taken |= look

    def audit(self, view: View) -> None:
        """Tells which units the two looks were for that stand between the same two turns."""
        audit = view.step
        assert isinstance(audit, Audit)
        if audit.family == FAMILY:
            group, _ = self._groups.setdefault(audit.group, ({}, view.ledger.turns))
            group[audit.unit] = None
            if view.event.recovered is not None:
                claims = (claim for item in view.recovered for claim in item)
                self._recovered[audit.unit] = any(claim.unit == audit.unit for claim in claims)

    def kept(self) -> list[Kept]:
        """How many of each kind were told, and how many were listed at each of the two looks."""
        total: Counter[tuple[Literal["told", "waited"], bool, bool, bool]] = Counter()
        left, back = total.copy(), total.copy()
        given = self._recovered or self._answered
        for group, turns in self._groups.values():
            told_late = sorted(self._told[unit] for unit in group)[len(group) // 2]
            when: Literal["told", "waited"]
            for when, look in self._two(turns):
                for unit in self._taken & group.keys():
                    kind = (
                        when, self._told[unit] >= told_late, unit in self._vital,
                        bool(self._reads[unit]),
                    )  # fmt: skip
                    total[kind] += 1
                    left[kind] += unit in look
                    back[kind] += unit not in look and given.get(unit, False)
        return [
            Kept(
                when=kind[0], late=kind[1], vital=kind[2], read=kind[3], n=n, left=left[kind],
                back=back[kind] if given and kind[0] == "waited" else None,
            )
            for kind, n in sorted(total.items())
        ]  # fmt: skip

    def _two(self, turns: int) -> Iterator[tuple[Literal["told", "waited"], frozenset[str]]]:
        looks = self._looks.get(turns, ())
        if len(looks) == 2:  # where one failed nobody knows which of them it was
            yield "told", looks[0]
            yield "waited", looks[1]
