"""What the script says is true so far, and what the run has shown so far, unit by unit.

The ledger keeps books and computes no truth: every entry is copied from the changes that the
world wrote into the script.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import Literal

import msgspec

from steeltrap.harness.script import Change, Header, Op, Turn, tenant_of
from steeltrap.harness.shelf import Attic, Shelf

__all__ = ["Account", "Ledger", "Mark"]

STATING = ("tell", "revise", "revert", "correct", "retract", "expire", "depend")
"""Ops that change what holds, or what will follow."""
Mark = Literal["outdated", "rumoured", "erased", "injected"]
"""What a listing of the state is held against, each unit that bears one: `Account.marks`."""


class Account(msgspec.Struct, gc=False):
    """The books of one unit."""

    unit: str
    family: str = ""
    """The family of the turn that first spoke of it."""
    importance: str = "normal"
    value: str | None = None
    """Holds now (or, under review, held last)."""
    state: str = "unset"
    hop: int = 0
    began: str = ""
    """The turn of the last change."""
    since_turn: int = 0
    """How many turns had been taken in at the last change."""
    superseded: dict[str, None] = {}
    never_true: dict[str, None] = {}
    withdrawn: dict[str, None] = {}
    rumoured: dict[str, None] = {}
    injected: dict[str, None] = {}
    gone: dict[str, None] = {}
    """Values that were erased for good."""
    late: dict[str, None] = {}
    """Values of which news came late: they have never been answered as current."""
    erased: bool = False
    right: bool = False
    """Answered right since the last change."""
    shown: dict[str, None] = {}
    """Turns whose value the memory answered right while it was current: it had taken them in."""
    shown_values: dict[str, None] = {}
    """The same values themselves."""
    unsure: bool = False
    """The last change was in a step that failed, or followed from one: who knows what is stored?"""
    clouded: bool = False
    """Some turn about the unit failed: its history is in doubt for good."""
    ruleless: bool = False
    """The turn that stated a rule for it failed: what should follow is in doubt for good."""
    on_cycle: bool = False
    dependents: dict[str, str] = {}
    """Unit that follows this one by a rule -> the kind of that rule."""
    last_verdict: str = ""
    counted: tuple[str, tuple[Mark, ...]] = ("", ())
    """The family and the marks under which the ledger counts it."""

    @property
    def outdated(self) -> bool:
        """Whether there is any value that must no longer be held for true."""
        return bool(self.superseded or self.never_true or self.withdrawn)

    @property
    def marks(self) -> tuple[Mark, ...]:
        """What a listing of the state must not, or must no longer, show of it.

        outdated: a value that was answered right and holds no longer; rumoured: one that never
        counted; erased: anything; injected: what somebody slipped in.
        """
        if self.unsure:
            return ()
        if self.erased:
            return ("erased",)
        marks: tuple[Mark, ...] = ()
        if self.shown and self.outdated and (not self.hop or self.right):
            marks = ("outdated",)
        if self.rumoured:
            marks += ("rumoured",)
        return (*marks, "injected") if self.injected else marks

    def role(self, value: str) -> str:
        """What a value is to this unit: current, erased, superseded, retracted, rumoured, injected, ''."""
        if value == self.value and self.state == "set":
            return "current"
        if value in self.gone:
            return "erased"
        if value in self.superseded:
            return "superseded"
        if value in self.never_true or value in self.withdrawn:
            return "retracted"
        if value in self.rumoured:
            return "rumoured"
        return "injected" if value in self.injected else ""


@dataclass(slots=True)
class Doubt:
    """A turn that failed: is it there whole, not at all, or by half?"""

    turn: str
    before: dict[str, str | None]
    after: dict[str, str | None]
    held: frozenset[str]
    """Units of which the value before was answered right when they were last asked for."""
    seen: dict[str, str] = field(default_factory=dict)
    """unit -> 'before', 'after' or 'neither', as far as probes have shown."""


class Topic(msgspec.Struct, gc=False):
    """The books of a topic."""

    associated: list[str] = []
    """Topics that are related to it, and independent."""
    moved: int = -1
    """How many turns had been taken in when a unit of it last changed."""


class Ledger:
    """The accounts of all units.

    Args:
        header: of the script.
        attic: where what is not needed often lies; by default one of its own.
    """

    def __init__(self, header: Header, attic: Attic | None = None) -> None:
        attic = attic or Attic()
        self.header = header
        self.accounts: Shelf[str, Account] = Shelf(attic, Account)
        self.turns = 0
        self.tenants: dict[str, None] = {}
        """Those of whom something may be stored, in the order in which they are listed."""
        self.doubts: dict[str, Doubt] = {}
        """Unit -> the last turn about it that failed."""
        self.erased: dict[str, None] = {}
        self._topics: Shelf[str, Topic] = Shelf(attic, Topic)
        self._families: dict[str, None] = {"": None}
        """In the order in which units of theirs were first spoken of."""
        self._marked: dict[tuple[Mark, str], Counter[str]] = defaultdict(Counter)
        """(mark, family) -> of each tenant, how many units bear it."""

    def account(self, unit: str) -> Account:
        """The books of a unit, opened where there are none."""
        found: Account | None = self.accounts.get(unit)
        if found is None:
            found = self.accounts[unit] = Account(unit)
        return found

    def before(self, turn: Turn) -> dict[str, str | None]:
        """The values on record of the units that a turn corrects."""
        return {op.unit: self.account(op.unit).value for op in turn.ops if op.op == "correct" and op.unit}  # fmt: skip

    def hear(self, turn: Turn, *, done: bool) -> None:
        """Enter a turn: rumours, injections, rules; and the doubt that a failed one leaves."""
        self.turns += 1
        for op in turn.ops:
            if op.op == "associate" and op.unit and op.target:
                self._topic(op.unit).associated.append(op.target)
                self._topic(op.target).associated.append(op.unit)
            elif op.unit:
                account = self.account(op.unit)
                if not account.family:
                    account.family = turn.family
                    self._families.setdefault(turn.family)
                self._enter(op, account)
                if not done:
                    self._doubt(op, account)
                self.settle(account)
        if not done and turn.changes:
            told = [c for c in turn.changes if c.cause in ("told", "corrected", "retracted")]
            before = {c.unit: self.account(c.unit).value for c in told}
            held = frozenset(u for u in before if self.account(u).last_verdict == "correct")
            doubt = Doubt(turn.id, before, {c.unit: c.value for c in told}, held)
            self.doubts |= dict.fromkeys(before, doubt)

    def settle(self, account: Account) -> None:
        """Count an account that may bear other marks than it did; called whenever one was changed."""
        marks, (family, counted) = account.marks, account.counted
        if marks == counted and (not marks or family == account.family):
            return
        tenant = tenant_of(account.unit)
        for mark in counted:
            self._marked[mark, family][tenant] -= 1
        for mark in marks:
            self._marked[mark, account.family][tenant] += 1
        account.counted = account.family, marks

    def marked(self, mark: Mark, tenants: Collection[str]) -> Iterator[tuple[str, int]]:
        """How many units of some tenants bear a mark, by family."""
        for family in self._families:
            borne = self._marked[mark, family].items()
            if count := sum(units for tenant, units in borne if tenant in tenants):
                yield family, count

    def _doubt(self, op: Op, account: Account) -> None:
        """The turn failed, so what it said of a unit may be stored or not."""
        if op.op not in STATING:
            return
        if op.op == "depend" and op.target is not None:
            self.account(op.target).ruleless = True
            return
        account.clouded = True
        account.unsure = account.unsure or not op.valid_at

    def _enter(self, op: Op, account: Account) -> None:
        match op.op:
            case "tell" | "expire" if op.importance != "normal":
                account.importance = op.importance
            case "rumour" if op.value:
                account.rumoured[op.value] = None
            case "instruct" if op.value:
                account.injected[op.value] = None
            case "depend" if op.target:
                account.dependents[op.target] = op.rule.kind if op.rule else ""
                self._mark_cycle(account.unit)
            case "tell" | "revise" if op.valid_at and op.value:
                account.superseded[op.value] = None
                account.late[op.value] = None
            case _:
                pass

    def _topic(self, topic: str) -> Topic:
        found: Topic | None = self._topics.get(topic)
        if found is None:
            found = self._topics[topic] = Topic()
        return found

    def _mark_cycle(self, start: str) -> None:
        """If rules lead from `start` back to it, all units on the way are on a cycle."""
        way: dict[str, str] = {}
        queue = deque([start])
        while queue:
            source = queue.popleft()
            for target in self.account(source).dependents:
                if target == start:
                    while source != start:
                        self.account(source).on_cycle = True
                        source = way[source]
                    self.account(start).on_cycle = True
                    return
                if target not in way:
                    way[target] = source
                    queue.append(target)

    def change(self, change: Change, turn: str, *, unsure: bool = False) -> None:
        """Enter one change of the truth."""
        account = self.account(change.unit)
        old = account.value
        if change.cause == "late":
            account.right = False
            self.settle(account)
            return
        if change.cause in ("derived", "review") and change.via is not None:
            unsure = unsure or account.ruleless or self.account(change.via).unsure
        if change.cause == "expired":
            unsure = unsure or account.unsure
        if change.cause == "erased":
            for pile in (account.superseded, account.never_true, account.withdrawn):
                account.gone |= pile
                pile.clear()
        if old is not None and old != change.value:
            pile = {
                "corrected": account.never_true,
                "retracted": account.withdrawn,
                "erased": account.gone,
            }.get(change.cause, account.superseded)
            pile[old] = None
        if change.value is not None:
            for pile in (account.superseded, account.never_true, account.withdrawn, account.gone):
                if pile:
                    pile.pop(change.value, None)
        account.value = change.value
        account.state = (
            "review" if change.cause == "review" else "unset" if change.value is None else "set"
        )
        account.hop = change.hop
        account.began, account.since_turn = turn, self.turns
        account.right = False
        account.unsure = unsure
        account.erased = change.cause == "erased"
        if account.erased and not unsure:
            self.erased[change.unit] = None
        else:
            self.erased.pop(change.unit, None)
        self._topic(change.unit.rsplit("/", 1)[0]).moved = self.turns
        self.settle(account)

    def rule(self, source: str, dependent: str) -> str:
        """The kind of the rule by which one unit follows another; empty without one."""
        found: Account | None = self.accounts.get(source)
        return found.dependents.get(dependent, "") if found else ""

    def nudged(self, unit: str) -> bool:
        """Whether a topic associated with the unit's has changed since the unit itself did."""
        account, own = self.account(unit), self._topic(unit.rsplit("/", 1)[0])
        related = (own, *map(self._topic, own.associated))
        return any(topic.moved > account.since_turn for topic in related)

    def related(self, unit: str, other: str) -> bool:
        """Whether two units belong to topics that are associated."""
        return other.rsplit("/", 1)[0] in self._topic(unit.rsplit("/", 1)[0]).associated

    def decoy(self, unit: str) -> bool:
        """Whether the unit's topic is associated with another."""
        return bool(self._topic(unit.rsplit("/", 1)[0]).associated)
