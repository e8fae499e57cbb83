"""The executable specification: replays ops and knows what is true after each.

Three levels of truth, as the paper asks: the current value and full history of each unit, the
units that an update obliges to be re-evaluated with their new values, and the active footprint.
Nothing else in the project computes truth.

How an update spreads (contract, section 2; the paper's C3): breadth first along extension
edges, each unit once per update, so that cycles end; the unit that was updated itself keeps
what was said. A dependent that comes out as it was is left alone, and nothing beyond it moves.
A 'review' edge, or a source without a value, leaves the dependent waiting for review, and
nothing beyond it moves until it has a value again.
"""

from __future__ import annotations

import heapq
from bisect import insort
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Literal

from steeltrap.harness import tokens, values
from steeltrap.harness.script import (
    Change,
    Expect,
    Header,
    Op,
    Past,
    Rule,
    canonical,
    tenant_of,
)

__all__ = ["Edge", "Entry", "Unit", "World", "WorldError", "derive"]


class WorldError(ValueError):
    """An op makes no sense where it stands; the message says why and what would."""


@dataclass(slots=True)
class Entry:
    """One value that a unit held, and where it came from."""

    value: str | None
    at: str
    """From when it held; entries are ordered by this, then by arrival."""
    arrival: int
    turn: str
    said_by: str
    also: tuple[str, ...] = ()
    never_true: bool = False
    hop: int = 0
    via: str | None = None
    until: str | None = None

    def __lt__(self, other: Entry) -> bool:
        return (self.at, self.arrival) < (other.at, other.arrival)


@dataclass(slots=True)
class Edge:
    """An extension edge: how `target` follows its source."""

    target: str
    rule: Rule
    turn: str
    arrival: int


@dataclass(slots=True)
class Unit:
    """A unit with its value history."""

    name: str
    importance: str
    born: int
    """Arrival of its first op: edges from before (to a namesake that was erased) are void."""
    entries: list[Entry] = field(default_factory=list)
    state: Literal["set", "unset", "review"] = "unset"
    now: Entry | None = None
    """The entry that holds (set) or held last (review)."""
    review_hop: int = 0
    review_via: str | None = None
    tokens: int = 0
    """Tokens of the canonical sentence while the unit is live."""

    @property
    def live(self) -> bool:
        """Whether the unit belongs to the active footprint."""
        return self.state != "unset"


def derive(rule: Rule, value: str) -> str:
    """The value that a rule gives a dependent.

    Raises:
        values.ValueLiteralError: the rule does not fit the kind of the value.
    """
    match rule.kind:
        case "offset":
            return values.shifted(value, rule.days)
        case "same":
            return value
        case "scaled":
            return values.scaled(value, rule.times, rule.over)
        case "review":
            raise WorldError("a review rule gives no value")


class World:
    """Replays ops. The ideal memory is this world behind an adapter, and a mutant overrides one
    method of it, so each decision has a method of its own.

    Args:
        header: the policies: who ranks above whom.
    """

    def __init__(self, header: Header) -> None:
        self.units: dict[str, Unit] = {}
        self.by_tenant: dict[str, dict[str, None]] = {}
        self.edges: dict[str, list[Edge]] = {}
        self._incoming: dict[str, list[Edge]] = {}
        self.associations: dict[str, list[str]] = {}
        self.live_units = 0
        self.live_tokens = 0
        self._rank = {source: -place for place, source in enumerate(header.authority)}
        self._expiries: list[tuple[str, str]] = []
        self._arrivals = 0

    # ------------------------------------------------------------ questions about the state

    def expect(self, name: str) -> Expect:
        """What a question about the present should be answered."""
        unit = self.units.get(name)
        if unit is None or unit.now is None or unit.state == "unset":
            return Expect("unset")
        return Expect(unit.state, unit.now.value)

    def expect_as_of(self, name: str, at: str) -> Expect:
        """What held at an earlier instant, as is known today."""
        held = [e for e in self._true_entries(name) if e.at <= at]
        if not held or held[-1].value is None or (held[-1].until or "~") <= at:
            return Expect("unset")
        return Expect("set", held[-1].value)

    def expect_previous(self, name: str) -> Expect:
        """The value that held before the present one (or before there was none)."""
        told = [e.value for e in self._true_entries(name) if e.value is not None]
        held = [value for value, _ in groupby(told)]
        if self.units[name].state == "set":
            held = held[:-1]
        return Expect("set", held[-1]) if held else Expect("unset")

    def history(self, name: str) -> list[Past]:
        """Every entry of a unit, oldest first."""
        unit = self.units.get(name)
        entries = unit.entries if unit else []
        return [Past(e.value, e.at, e.turn, e.also, e.never_true) for e in entries]

    def origin(self, name: str) -> tuple[int, str | None]:
        """Over how many edges the present state came, and from which unit; (0, None): it was said."""
        unit = self.units.get(name)
        if unit is None or unit.now is None:
            return 0, None
        if unit.state == "review":
            return unit.review_hop, unit.review_via
        return (unit.now.hop, unit.now.via) if unit.live else (0, None)

    def footprint(self, tenant: str) -> tuple[int, int]:
        """Live units of one tenant, and tokens of their canonical sentences."""
        live = [u for name in self.by_tenant.get(tenant, ()) if (u := self.units[name]).live]
        return len(live), sum(unit.tokens for unit in live)

    def _true_entries(self, name: str) -> list[Entry]:
        unit = self.units.get(name)
        return [e for e in unit.entries if not e.never_true] if unit else []

    # ------------------------------------------------------------ transitions

    def advance(self, at: str) -> list[Change]:
        """Let time pass: values whose time is up hold no longer."""
        changes = []
        while self._expiries and self._expiries[0][0] <= at:
            until, name = heapq.heappop(self._expiries)
            unit = self.units.get(name)
            if unit and unit.state == "set" and unit.now and unit.now.until == until:
                changes.append(self.lapse(unit))
        return changes

    def lapse(self, unit: Unit) -> Change:
        """One value has reached the end of its time."""
        self._settle_state(unit, "unset")
        return Change(unit.name, None, "expired")

    def apply(self, turn: str, at: str, ops: Sequence[Op]) -> list[Change]:
        """Take in what one turn says.

        Raises:
            WorldError: an op makes no sense here.
        """
        changes: list[Change] = []
        for op in ops:
            changes += self.apply_one(turn, at, op)
        return changes

    def apply_one(self, turn: str, at: str, op: Op) -> list[Change]:
        """Take in one op."""
        match op.op:
            case "tell" | "revise" | "revert":
                return self.write(turn, at, op)
            case "correct":
                return self.correct(turn, at, op)
            case "retract":
                return self.retract(turn, at, op)
            case "expire":
                return self.expire(turn, at, op)
            case "restate":
                self.restate(turn, op)
            case "depend":
                self.depend(turn, op)
            case "associate":
                self.associate(op)
            case "rumour":
                return self.rumour(turn, at, op)
            case "echo" | "noise" | "instruct":
                return self.overhear(turn, at, op)
        return []

    def write(self, turn: str, at: str, op: Op) -> list[Change]:
        """A new value; with `valid_at`, one that began to hold earlier than it was told."""
        unit = self._unit(op)
        entry = self._entry(turn, op.valid_at or at, op)
        self._respect_authority(unit, op)
        if unit.now and entry.at < unit.now.at:
            return self.late(unit, entry)
        return self.supersede(unit, entry, "told")

    def late(self, unit: Unit, entry: Entry) -> list[Change]:
        """News about a time before the present value: it goes into the history."""
        insort(unit.entries, entry)
        return [Change(unit.name, unit.now.value if unit.now and unit.live else None, "late")]

    def supersede(
        self, unit: Unit, entry: Entry, cause: Literal["told", "corrected"]
    ) -> list[Change]:
        """A value becomes current, and what depends on it follows."""
        insort(unit.entries, entry)
        unit.now = entry
        self._settle_state(unit, "set")
        if entry.until:
            heapq.heappush(self._expiries, (entry.until, unit.name))
        change = Change(unit.name, entry.value, cause)
        return [change, *self.propagate(unit, entry, mistaken=cause == "corrected")]

    def correct(self, turn: str, at: str, op: Op) -> list[Change]:
        """The value on record was never true; the new one held in its place from the start."""
        unit = self._unit(op)
        self._respect_authority(unit, op)
        if not unit.live or unit.now is None:
            raise WorldError(f"{op.unit} has no value to correct; use tell")
        unit.now.never_true = True
        return self.supersede(unit, self._entry(turn, unit.now.at, op), "corrected")

    def retract(self, turn: str, at: str, op: Op) -> list[Change]:
        """The value is withdrawn: nothing is set, and what followed from it waits for review."""
        unit = self._unit(op)
        if not unit.live:
            raise WorldError(f"{op.unit} has no value to retract")
        entry = self._entry(turn, at, op)
        entry.value = None
        insort(unit.entries, entry)
        unit.now = entry
        self._settle_state(unit, "unset")
        return [Change(unit.name, None, "retracted"), *self.propagate(unit, entry)]

    def expire(self, turn: str, at: str, op: Op) -> list[Change]:
        """A value that holds until a stated time."""
        unit = self._unit(op)
        if op.until is None or op.until <= at:
            raise WorldError(f"expire of {op.unit} needs an `until` later than the turn")
        if unit.state == "set" and unit.now and unit.now.value == op.value:
            unit.now.until = op.until
            unit.now.also += (turn,)
            heapq.heappush(self._expiries, (op.until, unit.name))
            return []
        self._respect_authority(unit, op)
        entry = self._entry(turn, at, op)
        entry.until = op.until
        return self.supersede(unit, entry, "told")

    def restate(self, turn: str, op: Op) -> None:
        """The current value again: one more source, nothing else."""
        unit = self._unit(op)
        if unit.state != "set" or unit.now is None or unit.now.value != op.value:
            raise WorldError(f"restate of {op.unit} must repeat its current value")
        unit.now.also += (turn,)

    def depend(self, turn: str, op: Op) -> None:
        """An extension edge from `unit` to `target`."""
        if op.unit is None or op.target is None or op.rule is None:
            raise WorldError("depend needs `unit`, `target` and `rule`")
        if op.unit == op.target:
            raise WorldError(f"{op.unit} cannot depend on itself")
        for name in (op.unit, op.target):
            if name not in self.units:
                raise WorldError(f"depend names {name}, which was never told")
        born = self.units[op.target].born
        others = [e for e in self._incoming.get(op.target, ()) if e.arrival > born]
        if any((e.rule.kind == "review") != (op.rule.kind == "review") for e in others):
            raise WorldError(
                f"{op.target} would follow one rule that gives a value and one that asks for review:"
                " its truth would hang on their order"
            )
        edge = Edge(op.target, op.rule, turn, self._next_arrival())
        self.edges.setdefault(op.unit, []).append(edge)
        self._incoming.setdefault(op.target, []).append(edge)

    def associate(self, op: Op) -> None:
        """An association edge between two topics, both ways."""
        if op.unit is None or op.target is None:
            raise WorldError("associate needs `unit` and `target`, each a topic")
        self.associations.setdefault(op.unit, []).append(op.target)
        self.associations.setdefault(op.target, []).append(op.unit)

    def rumour(self, turn: str, at: str, op: Op) -> list[Change]:
        """A lower source than the one on record says something else: nothing becomes current."""
        unit = self._unit(op)
        if unit.now is None or self._rank_of(op.source) >= self._rank_of(unit.now.said_by):
            raise WorldError(f"the rumour about {op.unit} needs a value on record from a higher source")  # fmt: skip
        return []

    def overhear(self, turn: str, at: str, op: Op) -> list[Change]:
        """Echoes, noise and injected instructions change nothing."""
        return []

    def erase(self, tenant: str, name: str | None) -> list[Change]:
        """Remove a unit, or with None everything of a tenant."""
        gone = [name] if name else list(self.by_tenant.get(tenant, ()))
        if not all(unit in self.units for unit in gone) or not gone:
            raise WorldError(f"nothing is stored that could be erased: {name or tenant}")
        for unit in gone:
            self._settle_state(self.units.pop(unit), "unset")
            del self.by_tenant[tenant][unit]
            self.edges.pop(unit, None)
        return [Change(unit, None, "erased") for unit in gone]

    def forget(self, name: str) -> None:
        """Keep nothing more of a unit that has no value and that nobody will speak of or ask for.

        Raises:
            WorldError: it still has a value.
        """
        unit = self.units.get(name)
        if unit and unit.live:
            raise WorldError(f"{name} still holds, and cannot be forgotten")
        if unit:
            del self.units[name]
            del self.by_tenant[tenant_of(name)][name]
        self._incoming.pop(name, None)
        self.edges.pop(name, None)

    # ------------------------------------------------------------ propagation

    def propagate(self, origin: Unit, cause: Entry, *, mistaken: bool = False) -> list[Change]:
        """Re-evaluate whatever follows from `origin`.

        Args:
            origin: the unit that was spoken of.
            cause: its new entry.
            mistaken: whether the value before had never been true; then neither had what
                followed from it.
        """
        changes = []
        reached = {origin.name}
        frontier = [(origin, 0)]
        for source, hop in frontier:
            for edge in self.obliged(source, hop):
                if edge.target in reached:
                    self._agree(origin, source, edge)
                    continue
                reached.add(edge.target)
                change = self.follow(source, edge, hop + 1, cause, mistaken=mistaken)
                if change is None:
                    continue
                changes.append(change)
                if change.cause == "derived":
                    frontier.append((self.units[edge.target], hop + 1))
        return changes

    def obliged(self, source: Unit, hop: int) -> Iterator[Edge]:
        """The edges along which a change of `source` travels."""
        yield from self.edges.get(source.name, ())

    def follow(
        self, source: Unit, edge: Edge, hop: int, cause: Entry, *, mistaken: bool = False
    ) -> Change | None:
        """Re-evaluate one dependent; None when it comes out as it was."""
        unit = self.units.get(edge.target)
        if unit is None or unit.born > edge.arrival:
            return None
        if edge.rule.kind == "review" or source.state != "set":
            return self.flag(unit, source, hop)
        assert source.now is not None and source.now.value is not None
        value = self.derive(edge.rule, source.now.value, unit)
        if unit.state == "set" and unit.now and unit.now.value == value:
            return None
        if mistaken and unit.now and unit.now.via == source.name:
            unit.now.never_true = True
        also = (*(source.now.also if hop > 1 else ()), edge.turn)
        entry = Entry(
            value, max(cause.at, unit.now.at if unit.now else ""), self._next_arrival(),
            cause.turn, cause.said_by, also, hop=hop, via=source.name,
        )  # fmt: skip
        insort(unit.entries, entry)
        unit.now = entry
        self._settle_state(unit, "set")
        return Change(unit.name, value, "derived", hop, source.name)

    def derive(self, rule: Rule, value: str, unit: Unit) -> str:
        """The value that a rule gives `unit`."""
        return derive(rule, value)

    def flag(self, unit: Unit, source: Unit, hop: int) -> Change | None:
        """A dependent whose value is not known until somebody looks."""
        if not unit.live or unit.now is None:
            return None
        unit.review_hop, unit.review_via = hop, source.name
        self._settle_state(unit, "review")
        return Change(unit.name, unit.now.value, "review", hop, source.name)

    def _agree(self, origin: Unit, source: Unit, edge: Edge) -> None:
        unit = self.units.get(edge.target)
        if edge.target == origin.name or unit is None or unit.state != "set" or unit.now is None:
            return
        if unit.now.via is None or edge.rule.kind == "review" or source.now is None:
            return
        assert source.now.value is not None
        if derive(edge.rule, source.now.value) != unit.now.value and not self._loops(unit, source):
            raise WorldError(
                f"{edge.target} follows from {origin.name} on two ways that disagree: "
                f"its truth would be undefined; make the rules agree"
            )

    def _loops(self, unit: Unit, source: Unit) -> bool:
        """Whether `source` itself follows from `unit` (a cycle, which the first arrival settles)."""
        while source.now is not None and source.now.via is not None:
            if source.now.via == unit.name:
                return True
            source = self.units[source.now.via]
        return False

    # ------------------------------------------------------------ bookkeeping

    def _unit(self, op: Op) -> Unit:
        if op.unit is None:
            raise WorldError(f"{op.op} needs a `unit`")
        unit = self.units.get(op.unit)
        if unit is None:
            if op.op not in ("tell", "expire"):
                raise WorldError(f"{op.op} of {op.unit}, which was never told")
            unit = Unit(op.unit, op.importance, self._next_arrival())
            self.units[op.unit] = unit
            self.by_tenant.setdefault(tenant_of(op.unit), {})[op.unit] = None
        return unit

    def _entry(self, turn: str, at: str, op: Op) -> Entry:
        return Entry(op.value, at, self._next_arrival(), turn, op.source)

    def _next_arrival(self) -> int:
        self._arrivals += 1
        return self._arrivals

    def _rank_of(self, source: str) -> int:
        try:
            return self._rank[source]
        except KeyError:
            raise WorldError(f"unknown source '{source}'; known: {', '.join(self._rank)}") from None

    def _respect_authority(self, unit: Unit, op: Op) -> None:
        if unit.live and unit.now and self._rank_of(op.source) < self._rank_of(unit.now.said_by):
            raise WorldError(
                f"{op.source} ranks below {unit.now.said_by}, who set {op.unit}: use rumour"
            )

    def _settle_state(self, unit: Unit, state: Literal["set", "unset", "review"]) -> None:
        """Set the state of a unit and keep the footprint true."""
        if unit.live:
            self.live_units -= 1
            self.live_tokens -= unit.tokens
        unit.state = state
        if unit.live and unit.now and unit.now.value is not None:
            unit.tokens = tokens.count(canonical(unit.name, unit.now.value))
            self.live_units += 1
            self.live_tokens += unit.tokens
