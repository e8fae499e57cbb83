"""What the script says is true so far, and what the run has shown so far, unit by unit.

The ledger keeps books and computes no truth: every entry is copied from the changes that the
world wrote into the script.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from steeltrap.harness.script import Change, Header, Op, Turn

__all__ = ["Account", "Ledger"]

STATING = ("tell", "revise", "revert", "correct", "retract", "expire", "depend")
"""Ops that change what holds, or what will follow."""


@dataclass(slots=True)
class Account:
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
    superseded: dict[str, None] = field(default_factory=dict)
    never_true: dict[str, None] = field(default_factory=dict)
    withdrawn: dict[str, None] = field(default_factory=dict)
    rumoured: dict[str, None] = field(default_factory=dict)
    injected: dict[str, None] = field(default_factory=dict)
    gone: dict[str, None] = field(default_factory=dict)
    """Values that were erased for good."""
    late: dict[str, None] = field(default_factory=dict)
    """Values of which news came late: they have never been answered as current."""
    erased: bool = False
    right: bool = False
    """Answered right since the last change."""
    shown: dict[str, None] = field(default_factory=dict)
    """Turns whose value the memory answered right while it was current: it had taken them in."""
    shown_values: dict[str, None] = field(default_factory=dict)
    """The same values themselves."""
    unsure: bool = False
    """The last change was in a step that failed, or followed from one: who knows what is stored?"""
    clouded: bool = False
    """Some turn about the unit failed: its history is in doubt for good."""
    ruleless: bool = False
    """The turn that stated a rule for it failed: what should follow is in doubt for good."""
    on_cycle: bool = False
    last_verdict: str = ""

    @property
    def outdated(self) -> bool:
        """Whether there is any value that must no longer be held for true."""
        return bool(self.superseded or self.never_true or self.withdrawn)

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


class Ledger:
    """The accounts of all units.

    Args:
        header: of the script.
    """

    def __init__(self, header: Header) -> None:
        self.header = header
        self.accounts: dict[str, Account] = {}
        self.turns = 0
        self.tenants: dict[str, None] = {}
        """Those of whom something may be stored, in the order in which they are listed."""
        self.doubts: list[Doubt] = []
        self.erased: dict[str, None] = {}
        self.edges: dict[str, list[str]] = {}
        self.rules: dict[tuple[str, str], str] = {}
        """(source, dependent) -> the kind of rule between them."""
        self._associated: dict[str, list[str]] = {}
        self._moved: dict[str, int] = {}

    def account(self, unit: str) -> Account:
        """The books of a unit, opened where there are none."""
        found = self.accounts.get(unit)
        if found is None:
            found = self.accounts[unit] = Account(unit)
        return found

    def before(self, turn: Turn) -> dict[str, str | None]:
        """The values on record of the units that a turn speaks of."""
        return {op.unit: self.account(op.unit).value for op in turn.ops if op.unit and op.op != "associate"}  # fmt: skip

    def hear(self, turn: Turn, *, done: bool) -> None:
        """Enter a turn: rumours, injections, rules; and the doubt that a failed one leaves."""
        self.turns += 1
        for op in turn.ops:
            self._enter(op)
            if op.unit and op.op != "associate":
                self.account(op.unit).family = self.account(op.unit).family or turn.family
            if not done:
                self._doubt(op)
        if not done and turn.changes:
            told = [c for c in turn.changes if c.cause in ("told", "corrected", "retracted")]
            before = {c.unit: self.account(c.unit).value for c in told}
            held = frozenset(u for u in before if self.account(u).last_verdict == "correct")
            self.doubts.append(Doubt(turn.id, before, {c.unit: c.value for c in told}, held))

    def _doubt(self, op: Op) -> None:
        """The turn failed, so what it said of a unit may be stored or not."""
        if op.unit is None or op.op not in STATING:
            return
        if op.op == "depend" and op.target is not None:
            self.account(op.target).ruleless = True
            return
        account = self.account(op.unit)
        account.clouded = True
        account.unsure = account.unsure or not op.valid_at

    def _enter(self, op: Op) -> None:
        if op.unit is None or op.op == "noise":
            return
        if op.op == "associate":
            assert op.target is not None
            self._associated.setdefault(op.unit, []).append(op.target)
            self._associated.setdefault(op.target, []).append(op.unit)
            return
        account = self.account(op.unit)
        match op.op:
            case "tell" | "expire" if op.importance != "normal":
                account.importance = op.importance
            case "rumour" if op.value:
                account.rumoured[op.value] = None
            case "instruct" if op.value:
                account.injected[op.value] = None
            case "depend" if op.target:
                self.edges.setdefault(op.unit, []).append(op.target)
                self.rules[op.unit, op.target] = op.rule.kind if op.rule else ""
                self._mark_cycle(op.unit)
            case "tell" | "revise" if op.valid_at and op.value:
                account.superseded[op.value] = None
                account.late[op.value] = None
            case _:
                pass

    def _mark_cycle(self, start: str) -> None:
        """If rules lead from `start` back to it, all units on the way are on a cycle."""
        way: dict[str, str] = {}
        queue = deque([start])
        while queue:
            source = queue.popleft()
            for target in self.edges.get(source, ()):
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
        self._moved[change.unit.rsplit("/", 1)[0]] = self.turns

    def nudged(self, unit: str) -> bool:
        """Whether a topic associated with the unit's has changed since the unit itself did."""
        account = self.account(unit)
        topic = unit.rsplit("/", 1)[0]
        related = [*self._associated.get(topic, ()), topic]
        return any(self._moved.get(other, -1) > account.since_turn for other in related)

    def related(self, unit: str, other: str) -> bool:
        """Whether two units belong to topics that are associated."""
        return other.rsplit("/", 1)[0] in self._associated.get(unit.rsplit("/", 1)[0], ())

    def decoy(self, unit: str) -> bool:
        """Whether the unit's topic is associated with another."""
        return unit.rsplit("/", 1)[0] in self._associated
