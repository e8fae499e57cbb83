"""Counting: how often a condition was put to the test, and what came of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from steeltrap.harness.checks.judge import Finding
from steeltrap.harness.checks.ledger import Account, Ledger, Mark
from steeltrap.harness.history import Event
from steeltrap.harness.memory import Item
from steeltrap.harness.readers import Catalogue, Claim
from steeltrap.harness.script import Step, tenant_of
from steeltrap.harness.shelf import Attic, Shelf
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


class Listing:
    """What the last full gauge of each tenant listed.

    Args:
        attic: where what is not needed often lies.
    """

    def __init__(self, attic: Attic) -> None:
        self.turns: dict[str, int] = {}
        """tenant -> turns taken in when it was last listed."""
        self.latest: frozenset[str] = frozenset()
        """The tenants that the latest gauge listed."""
        self._held: Shelf[str, list[Claim]] = Shelf(attic, list[Claim])
        """Open claims by unit."""
        self._of: set[str] = set()
        """Tenants of whom anything is held."""
        self.trivial: dict[str, str] = {}
        """tenant -> one trivial unit of it that is listed and set, without the tenant's name."""
        self._trivial: dict[str, dict[str, None]] = {}
        """tenant -> all of them."""

    def begin(self, tenants: tuple[str, ...], turns: int) -> None:
        """Forget what was listed of some tenants: they are listed anew."""
        self.latest = frozenset(tenants)
        self.turns |= dict.fromkeys(tenants, turns)
        if self._of <= self.latest:
            self._held.clear()
        else:
            for unit in [unit for unit in self._held if tenant_of(unit) in self.latest]:
                del self._held[unit]
        self._of.difference_update(tenants)
        for tenant in tenants:
            self._trivial.pop(tenant, None)

    def add(self, claim: Claim, *, trivial: bool) -> None:
        """Enter an open claim of what is listed now, and whether its unit is a trivial one."""
        held = self._held.get(claim.unit)
        if held is not None:
            held.append(claim)
            return
        self._held[claim.unit] = [claim]
        tenant, name = claim.unit.split("/", 1)
        self._of.add(tenant)
        if trivial:
            self._trivial.setdefault(tenant, {})[name] = None

    def claims(self, unit: str) -> list[Claim]:
        """The open claims of a unit."""
        found: list[Claim] = self._held.get(unit, [])
        return found

    def end(self, ledger: Ledger) -> None:
        """All that is listed now was added."""
        self.trivial = {
            tenant: name
            for tenant, names in self._trivial.items()
            for name in names
            if ledger.account(f"{tenant}/{name}").state == "set"
        }

    def shown(self) -> Iterator[tuple[str, list[Claim]]]:
        """What the latest gauge listed of the tenants that it was about."""
        return ((unit, held) for unit, held in self._held.items() if tenant_of(unit) in self.latest)


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

    def shown(self, mark: Mark) -> Iterator[tuple[Account, list[Claim]]]:
        """The units with a mark that the latest gauge listed, with what it held of them."""
        assert self.listing is not None
        for unit, held in self.listing.shown():
            account: Account | None = self.ledger.accounts.get(unit)
            if account is not None and mark in account.counted[1]:
                yield account, held

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
        self._count(self.family, tuple(names), 1, turns, found, bool(found))

    def tests(self, name: str, turns: int, family: str, points: int, found: Sequence[Violation]) -> None:  # fmt: skip
        """Several points at once, at each of which one violation could have shown.

        Args:
            name: of the violation.
            turns: turns taken in so far.
            family: to which the points belong.
            points: how many there were.
            found: the violations, each at a point of its own.
        """
        self._count(family, (name,), points, turns, found, len(found))

    def _count(
        self, family: str, names: Sequence[str], points: int, turns: int,
        found: Sequence[Violation], violated: int,
    ) -> None:  # fmt: skip
        rows = self.by_family.setdefault(family, {})
        row = rows.setdefault(self.condition, [0, 0])
        row[0] += violated
        row[1] += points
        for name in names:
            shown = sum(violation.name == name for violation in found)
            row = rows.setdefault(name, [0, 0])
            row[0] += shown if points > 1 else bool(shown)
            row[1] += points
            self._names[name].opportunities += points
        self._points += points
        self._violated += violated
        if found and self._first_turn is None:
            self._first_turn = turns
        for violation in found:
            self._names[violation.name].violations += 1
        self.violations += found

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
