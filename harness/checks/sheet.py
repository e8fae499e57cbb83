"""Counting: how often a condition was put to the test, and what came of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final

from steeltrap.harness.checks.judge import Finding
from steeltrap.harness.checks.ledger import Ledger
from steeltrap.harness.history import Event
from steeltrap.harness.memory import Item
from steeltrap.harness.readers import Catalogue, Claim
from steeltrap.harness.script import Step, tenant_of
from steeltrap.harness.verdict import NAMES, ConditionVerdict, Tally, Violation, judge

__all__ = ["Listing", "Sheet", "View"]

CENTRAL: Final[dict[str, tuple[str, ...]]] = {
    "C1": ("stale-read",),
    "C2": ("superseded-active", "resurrection"),
    "C3": ("missed-propagation",),
    "C4": ("lost-history",),
    "C5": ("over-bound",),
    "C6": (),
    "beyond": (),
}
"""What must have been put to the test before a condition can be said to have held."""


@dataclass(slots=True)
class Listing:
    """What the last full gauge of each tenant listed: open claims by unit."""

    turns: dict[str, int]
    """tenant -> turns taken in when it was last listed."""
    latest: tuple[str, ...]
    """The tenants that the latest gauge listed."""
    held: dict[str, list[Claim]]
    trivial: dict[str, str]
    """tenant -> one trivial unit of it that is listed, without the tenant's name."""

    def shows(self, unit: str) -> bool:
        """Whether the latest gauge would have listed this unit."""
        return tenant_of(unit) in self.latest


@dataclass(slots=True)
class View:
    """Everything that a check may look at, at one step."""

    i: int
    step: Step
    event: Event
    ledger: Ledger
    catalogue: Catalogue
    about: list[tuple[int, Claim]] = field(default_factory=list)
    """What was served on the unit asked for: (place of the item, from 1; claim), in order."""
    foreign: Claim | None = None
    """The first thing served that belongs to another tenant."""
    turn: str = ""
    """The latest turn."""
    claims_of: Callable[[str], list[Claim]] = lambda _: []
    """What was served on any other unit."""
    place_of: Callable[[str], int | None] = lambda _: None
    """Place of the first item served on a unit, from 1; None where there is none."""
    finding: Finding | None = None
    exposed: list[str] = field(default_factory=list)
    """Values of the unit that no longer hold and were served unmarked."""
    listing: Listing | None = None
    """The latest full listing."""
    ghost: Claim | None = None
    """The first thing served that was erased."""
    trivial: dict[str, str] = field(default_factory=dict)
    """tenant -> a trivial unit of it that was answered right at the same point."""
    versions: list[tuple[Item, tuple[Claim, ...]]] = field(default_factory=list)
    """audit: the history given, each entry with what it claims."""
    recovered: list[tuple[Claim, ...]] = field(default_factory=list)

    def violation(
        self, name: str, condition: str, unit: str, expected: str, observed: str,
        witness: Iterable[str] = (),
    ) -> Violation:  # fmt: skip
        """A violation that this step shows."""
        account = self.ledger.account(unit) if unit else None
        began = account.began if account else ""
        turns = dict.fromkeys(turn for turn in (*witness, began) if turn)
        if name == "resurrection":
            began = self.turn
        return Violation(
            name, condition, self.i, began, unit, expected, observed, tuple(turns),
            self.step.family, getattr(self.step, "hop", 0), getattr(self.step, "lag", None),
        )  # fmt: skip


class Sheet:
    """The tallies of one condition.

    Args:
        condition: C1 to C6, or `beyond`.
    """

    def __init__(self, condition: str) -> None:
        self.condition = condition
        self.violations: list[Violation] = []
        self._names = {name: Tally() for name in NAMES[condition]}
        self._points = 0
        self._violated = 0
        self._first_turn: int | None = None
        self.family = ""
        """The family of the step, or of the unit, that is being looked at."""
        self.by_family: dict[str, dict[str, list[int]]] = {}
        """By family, then by the condition and by each name: [violations, opportunities]."""

    def test(self, names: Iterable[str], turns: int, *found: Violation) -> None:
        """One point at which the condition was put to the test.

        Args:
            names: what could have shown here.
            turns: turns taken in so far.
            found: what did show.
        """
        names = tuple(names)
        self._count(names, found)
        self._points += 1
        for name in names:
            self._names[name].opportunities += 1
        if found:
            self._violated += 1
            if self._first_turn is None:
                self._first_turn = turns
        for violation in found:
            self._names[violation.name].violations += 1
            self.violations.append(violation)

    def _count(self, names: Iterable[str], found: Iterable[Violation]) -> None:
        """Enter the same under the family."""
        rows = self.by_family.setdefault(self.family, {})
        shown = [violation.name for violation in found]
        for key in (self.condition, *names):
            row = rows.setdefault(key, [0, 0])
            row[0] += bool(shown) if key == self.condition else key in shown
            row[1] += 1

    def block(self, name: str, why: str) -> None:
        """Say that a violation could not be observed."""
        self._names[name].blocked = why

    def verdict(self) -> ConditionVerdict:
        """The verdict that the tallies give."""
        blocked = dict.fromkeys(t.blocked for t in self._names.values() if t.blocked)
        untried = [
            name
            for name in CENTRAL[self.condition]
            if not self._names[name].opportunities and not self._names[name].blocked
        ]
        notes = [*blocked, *(f"{name} was never put to the test" for name in untried)]
        validity = judge(self._points, self._violated, self._names)
        if validity == "held" and untried:
            validity = "unknown"
        return ConditionVerdict(
            self.condition,
            validity,
            self._points,
            self._violated,
            self._names,
            self._first_turn,
            "; ".join(notes) if self._points else "no opportunity",
        )
