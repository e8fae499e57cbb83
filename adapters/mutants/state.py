"""Defects of transition: the state itself holds what it must not."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from steeltrap.adapters.mutants.base import Mutant, superseded
from steeltrap.harness.memory import Item, Utterance
from steeltrap.harness.script import Change, Op
from steeltrap.workloads.world import Entry, Unit, World


class NeverSupersedes(Mutant):
    """Keeps every value with equal right: an append-only store."""

    name = "never-supersedes"
    raises = ("ambiguous-read", "superseded-active")
    families = ("revision-chain",)
    turns = 60

    def present(self, name: str) -> list[Item]:
        unit = self.unit(name)
        old = superseded(unit) if unit else []
        if unit is None or not old:
            return super().present(name)
        items = [*super().present(name), *(self.item(unit, entry) for entry in old)]
        return [msgspec.structs.replace(item, valid_from=None) for item in items]


class KeepsFirst(Mutant):
    """Takes the first value of a unit for good."""

    name = "keeps-first"
    raises = ("stale-read", "superseded-active")
    families = ("revision-chain",)

    def present(self, name: str) -> list[Item]:
        unit = self.unit(name)
        old = superseded(unit) if unit else []
        if unit is None or unit.now is None or unit.now.hop or not old:
            return super().present(name)
        return [self.item(unit, old[0])]


class HearsFirstFactOnly(Mutant):
    """Takes in only the first of several new values in one turn."""

    name = "hears-first-fact-only"
    raises = ("stale-read", "superseded-active")
    families = ("revision-chain",)

    def take_in(self, turn: Utterance, ops: Sequence[Op]) -> None:
        super().take_in(turn, ops[:1] if all(op.op == "revise" for op in ops) else ops)


class Resurrects(Mutant):
    """Supersedes well; units that are `revived` fall back to the value before."""

    raises = ("resurrection", "superseded-active")

    def begin(self) -> None:
        self.revived: dict[str, None] = {}

    def take_in(self, turn: Utterance, ops: Sequence[Op]) -> None:
        super().take_in(turn, ops)
        for op in ops:
            if op.unit and op.op not in ("echo", "rumour", "instruct", "restate"):
                self.revived.pop(op.unit, None)

    def present(self, name: str) -> list[Item]:
        unit = self.unit(name)
        old = superseded(unit) if unit and name in self.revived else []
        if unit is None or unit.now is None or unit.now.hop or not old:
            return super().present(name)
        return [self.item(unit, old[-1])]


class ResurrectsAtMaintenance(Resurrects):
    """Maintenance brings the value before back."""

    name = "resurrects-at-maintenance"
    families = ("revision-chain",)

    def maintain(self, at: str) -> None:
        super().maintain(at)
        self.revived = dict.fromkeys(self.world.units)


class ResurrectsOnEcho(Resurrects):
    """An old value that is merely mentioned becomes current again."""

    name = "resurrects-on-echo"
    families = ("stale-echo",)

    def take_in(self, turn: Utterance, ops: Sequence[Op]) -> None:
        super().take_in(turn, ops)
        self.revived |= {op.unit: None for op in ops if op.op == "echo" and op.unit}


class ResurrectsOnRestate(Resurrects):
    """Saying the present value again brings the one before back."""

    name = "resurrects-on-restate"
    families = ("restatement-flood",)

    def take_in(self, turn: Utterance, ops: Sequence[Op]) -> None:
        super().take_in(turn, ops)
        self.revived |= {op.unit: None for op in ops if op.op == "restate" and op.unit}


class ListsSuperseded(Mutant):
    """Answers rightly, and keeps the value before among the active content."""

    name = "lists-superseded"
    raises = ("superseded-active",)
    families = ("revision-chain",)

    def listed(self, name: str) -> list[Item]:
        unit = self.unit(name)
        old = superseded(unit)[-1:] if unit else []
        return [*self.present(name), *(self.item(unit, entry) for entry in old if unit)]


class ListsWithdrawn(Mutant):
    """Answers rightly, and keeps a withdrawn value among the active content."""

    name = "lists-withdrawn"
    raises = ("superseded-active",)
    families = ("retraction",)

    def listed(self, name: str) -> list[Item]:
        unit = self.world.units[name]
        if unit.state == "unset" and unit.entries[-1].value is None:
            return [self.item(unit, unit.entries[-2])]
        return self.present(name)


class _DeafToRetraction(World):
    def retract(self, turn: str, at: str, op: Op) -> list[Change]:
        return []


class IgnoresRetraction(Mutant):
    """Nothing is ever withdrawn."""

    name = "ignores-retraction"
    raises = ("wrong-read", "superseded-active")
    families = ("retraction",)
    world_class = _DeafToRetraction


class _DeafToCorrection(World):
    def correct(self, turn: str, at: str, op: Op) -> list[Change]:
        return []


class IgnoresCorrection(Mutant):
    """What was wrong from the start stays on record."""

    name = "ignores-correction"
    raises = ("wrong-read", "superseded-active")
    families = ("retraction",)
    world_class = _DeafToCorrection


class _Timeless(World):
    def lapse(self, unit: Unit) -> Change:
        assert unit.now is not None
        unit.now.until = None
        return Change(unit.name, unit.now.value, "told")


class IgnoresExpiry(Mutant):
    """What held until a stated time is held for ever."""

    name = "ignores-expiry"
    raises = ("stale-read", "superseded-active")
    families = ("expiry",)
    world_class = _Timeless


class _ByArrival(World):
    def late(self, unit: Unit, entry: Entry) -> list[Change]:
        return self.supersede(unit, entry, "told")


class LateNewsWins(Mutant):
    """Whatever arrives last is current, even news about the past."""

    name = "late-news-wins"
    raises = ("stale-read", "superseded-active")
    families = ("out-of-order",)
    world_class = _ByArrival


class _Credulous(World):
    def rumour(self, turn: str, at: str, op: Op) -> list[Change]:
        unit = self.units[op.unit or ""]
        return self.supersede(unit, self._entry(turn, at, op), "told")


class BelievesRumours(Mutant):
    """Anybody's word replaces anybody's."""

    name = "believes-rumours"
    raises = ("wrong-read", "policy-breach")
    families = ("authority",)
    world_class = _Credulous

    def history_of(self, name: str) -> list[Item]:
        """The rumours themselves are not what is wrong with the history."""
        chain = self._chain(name)
        return [item for item, entry in chain if entry.said_by == "owner"]


class ListsRumours(Mutant):
    """Answers rightly, and keeps rumours among the active content as if they were true."""

    name = "lists-rumours"
    raises = ("policy-breach",)
    families = ("authority",)

    def begin(self) -> None:
        self.rumours: dict[str, str | None] = {}

    def take_in(self, turn: Utterance, ops: Sequence[Op]) -> None:
        super().take_in(turn, ops)
        self.rumours |= {op.unit: op.value for op in ops if op.op == "rumour" and op.unit}

    def listed(self, name: str) -> list[Item]:
        unit, rumour = self.unit(name), self.rumours.get(name)
        if unit is None or unit.now is None or rumour is None:
            return self.present(name)
        entry = Entry(rumour, unit.now.at, unit.now.arrival, unit.now.turn, "hearsay")
        return [*self.present(name), self.item(unit, entry)]


class TearsTurns(Mutant):
    """Breaks down in the middle of a turn with several new values, half of it done."""

    name = "tears-turns"
    raises = ("half-applied",)
    families = ("revision-chain",)

    def take_in(self, turn: Utterance, ops: Sequence[Op]) -> None:
        if len(ops) > 1 and all(op.op == "revise" for op in ops):
            super().take_in(turn, ops[:1])
            raise RuntimeError("broke down after the first value of the turn")
        super().take_in(turn, ops)


class TearsFirstFact(Mutant):
    """As `tears-turns`, with the later values done and the first one lost; says it did nothing."""

    name = "tears-first-fact"
    raises = ("half-applied",)
    families = ("revision-chain",)

    def take_in(self, turn: Utterance, ops: Sequence[Op]) -> None:
        if len(ops) > 1 and all(op.op == "revise" for op in ops):
            super().take_in(turn, ops[1:])
            raise TimeoutError("no answer in time")
        super().take_in(turn, ops)


class RemovesThenBreaksDown(Mutant):
    """Every third time that it replaces a value, it removes the old one and breaks down."""

    name = "removes-then-breaks-down"
    raises = ("half-applied",)
    families = ("revision-chain",)

    def begin(self) -> None:
        self.replaced = 0

    def take_in(self, turn: Utterance, ops: Sequence[Op]) -> None:
        if [op.op for op in ops] == ["revise"]:
            self.replaced += 1
            if self.replaced % 3 == 0:
                super().take_in(turn, [Op("retract", ops[0].unit)])
                raise ConnectionError("the connection was lost after the old value was removed")
        super().take_in(turn, ops)
