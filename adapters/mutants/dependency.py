"""Defects of propagation: an update does not reach what follows, or reaches what does not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace as changed
from itertools import islice

import msgspec

from steeltrap.adapters.mutants.base import Mutant, superseded
from steeltrap.harness import values
from steeltrap.harness.memory import Item, Utterance
from steeltrap.harness.script import Change, Header, Op, Rule
from steeltrap.workloads.world import Edge, Entry, Unit, World, derive

FAMILY = ("dependency-cascade",)
FAR_DAYS = 20_000
"""So far ahead that no other unit holds such a date."""


class _Careless(World):
    """Rules need not agree: a mutant may get them wrong."""

    def _agree(self, origin: Unit, source: Unit, edge: Edge) -> None:
        return


class _NoReach(_Careless):
    def obliged(self, source: Unit, hop: int) -> Iterator[Edge]:
        yield from ()


class NeverPropagates(Mutant):
    """Rules are stored and never looked at."""

    name = "never-propagates"
    raises = ("missed-propagation",)
    families = FAMILY
    world_class = _NoReach


class _OneHop(_Careless):
    def obliged(self, source: Unit, hop: int) -> Iterator[Edge]:
        if hop < 1:
            yield from super().obliged(source, hop)


class PropagatesOneHop(Mutant):
    """What follows directly is re-evaluated; what follows from that is not."""

    name = "propagates-one-hop"
    raises = ("missed-propagation",)
    families = FAMILY
    world_class = _OneHop


class _ThreeHops(_Careless):
    def obliged(self, source: Unit, hop: int) -> Iterator[Edge]:
        if hop < 3:
            yield from super().obliged(source, hop)


class PropagatesThreeHops(Mutant):
    """Gives up after three edges."""

    name = "propagates-three-hops"
    raises = ("missed-propagation",)
    families = FAMILY
    world_class = _ThreeHops


class _FirstEdge(_Careless):
    def obliged(self, source: Unit, hop: int) -> Iterator[Edge]:
        yield from islice(super().obliged(source, hop), 1)


class FollowsFirstEdgeOnly(Mutant):
    """A source with several dependents re-evaluates only one of them."""

    name = "follows-first-edge-only"
    raises = ("missed-propagation",)
    families = FAMILY
    world_class = _FirstEdge


class _Once(_Careless):
    def obliged(self, source: Unit, hop: int) -> Iterator[Edge]:
        for edge in super().obliged(source, hop):
            unit = self.units.get(edge.target)
            if unit is None or not any(entry.hop for entry in unit.entries):
                yield edge


class PropagatesOnce(Mutant):
    """A dependent follows the first update of its source and no later one."""

    name = "propagates-once"
    raises = ("missed-propagation",)
    families = FAMILY
    world_class = _Once


class _NoReview(_Careless):
    def flag(self, unit: Unit, source: Unit, hop: int) -> Change | None:
        return None


class IgnoresReviewRules(Mutant):
    """A dependent that somebody would have to look at keeps its value, unmarked."""

    name = "ignores-review-rules"
    raises = ("missed-propagation",)
    families = FAMILY
    world_class = _NoReview


class _Lazy(_Careless):
    """Remembers what changed and follows it up when maintenance runs."""

    asleep = True

    def obliged(self, source: Unit, hop: int) -> Iterator[Edge]:
        if not self.asleep:
            yield from super().obliged(source, hop)

    def follow(
        self, source: Unit, edge: Edge, hop: int, cause: Entry, *, mistaken: bool = False
    ) -> Change | None:
        unit = self.units.get(edge.target)
        if unit and unit.now and unit.now.arrival > cause.arrival:
            return None
        return super().follow(source, edge, hop, cause, mistaken=mistaken)


class PropagatesAtMaintenance(Mutant):
    """Dependents are re-evaluated when maintenance runs, and are wrong until then."""

    name = "propagates-at-maintenance"
    raises = ("missed-propagation",)
    families = FAMILY
    world_class = _Lazy

    def maintain(self, at: str) -> None:
        super().maintain(at)
        world = self.world
        assert isinstance(world, _Lazy)
        world.asleep = False
        for name in list(world.edges):
            unit = world.units.get(name)
            if unit and unit.now and len(unit.entries) > 1 and not unit.now.hop:
                world.propagate(unit, unit.now)
        world.asleep = True


class _YearOff(_Careless):
    def derive(self, rule: Rule, value: str, unit: Unit) -> str:
        return derive(changed_days(rule, 365), value)


def changed_days(rule: Rule, more: int) -> Rule:
    """The same rule with some days more; rules without days as they are."""
    return Rule("offset", days=rule.days + more) if rule.kind == "offset" else rule


class OffByOneYear(Mutant):
    """Offsets come out a year late."""

    name = "off-by-one-year"
    raises = ("wrong-propagation",)
    families = FAMILY
    world_class = _YearOff


class _Truncated(_Careless):
    def derive(self, rule: Rule, value: str, unit: Unit) -> str:
        if rule.kind == "scaled":
            return derive(Rule("scaled", times=rule.times * 11, over=rule.over * 10), value)
        return super().derive(rule, value, unit)


class ScalesWrongly(Mutant):
    """Amounts that follow from others come out a tenth too high."""

    name = "scales-wrongly"
    raises = ("wrong-propagation",)
    families = FAMILY
    world_class = _Truncated


class _Adding(_Careless):
    """Adds the offset to the dependent's own value instead of the source's."""

    def derive(self, rule: Rule, value: str, unit: Unit) -> str:
        if rule.kind == "offset" and unit.now and unit.now.value:
            return values.shifted(unit.now.value, FAR_DAYS)
        return super().derive(rule, value, unit)


class ShiftsItself(Mutant):
    """A dependent is moved from where it stood, not from where its source stands."""

    name = "shifts-itself"
    raises = ("wrong-propagation",)
    families = FAMILY
    world_class = _Adding


class _Associative(World):
    """Notes which units of related topics an update would move, if relations were rules."""

    def __init__(self, header: Header) -> None:
        super().__init__(header)
        self.disturbed: dict[str, None] = {}

    def propagate(self, origin: Unit, cause: Entry, *, mistaken: bool = False) -> list[Change]:
        self.disturbed.pop(origin.name, None)
        related = self.associations.get(origin.name.rsplit("/", 1)[0], ())
        for name in self.units:
            if name.rsplit("/", 1)[0] in related:
                self.disturbed[name] = None
        return super().propagate(origin, cause, mistaken=mistaken)

    def astray(self, name: str) -> bool:
        """Whether a unit is disturbed, and neither follows from others nor is followed."""
        tied = {edge.target for edges in self.edges.values() for edge in edges}
        return name in self.disturbed and name not in tied and name not in self.edges


class FlagsAssociations(Mutant):
    """What is merely related is marked as waiting for review."""

    name = "flags-associations"
    raises = ("spurious-propagation",)
    families = FAMILY
    world_class = _Associative

    def present(self, name: str) -> list[Item]:
        items = super().present(name)
        assert isinstance(self.world, _Associative)
        return [self.disturb(name, item) for item in items] if self.world.astray(name) else items

    def disturb(self, name: str, item: Item) -> Item:
        """What an update does to a topic that is merely related."""
        return msgspec.structs.replace(item, review=True)


class PropagatesOverAssociations(FlagsAssociations):
    """What is merely related is moved along: dates by days, the rest into review."""

    name = "propagates-over-associations"

    def disturb(self, name: str, item: Item) -> Item:
        unit = self.unit(name)
        if unit is None or unit.now is None or not (unit.now.value or "").startswith("date:"):
            return super().disturb(name, item)
        moved = values.shifted(unit.now.value or "", FAR_DAYS)
        return self.item(unit, changed(unit.now, value=moved))


class CycleNeverSettles(Mutant):
    """Units on a cycle move on with every turn that passes."""

    name = "cycle-never-settles"
    raises = ("runaway",)
    families = FAMILY

    def present(self, name: str) -> list[Item]:
        unit = self.unit(name)
        if unit is None or unit.now is None or not self.on_cycle(name):
            return super().present(name)
        moved = values.shifted(unit.now.value or "", FAR_DAYS + self.turn_number)
        return [self.item(unit, changed(unit.now, value=moved))]

    def on_cycle(self, name: str) -> bool:
        """Whether rules lead from the unit back to it."""
        reached = [edge.target for edge in self.world.edges.get(name, ())]
        for target in reached:
            reached += [
                edge.target
                for edge in self.world.edges.get(target, ())
                if edge.target not in reached
            ]
        return name in reached


class CycleComesRound(CycleNeverSettles):
    """An update travels round the cycle and moves the very unit that was updated."""

    name = "cycle-comes-round"

    def present(self, name: str) -> list[Item]:
        unit = self.unit(name)
        if unit is None or unit.now is None or unit.now.hop or not superseded(unit):
            return Mutant.present(self, name)
        if not self.on_cycle(name):
            return Mutant.present(self, name)
        moved = values.shifted(unit.now.value or "", FAR_DAYS)
        return [self.item(unit, changed(unit.now, value=moved))]


class OverridesDirectRevision(Mutant):
    """A dependent that was revised directly is soon put back to what its rule says."""

    name = "overrides-direct-revision"
    raises = ("resurrection",)
    families = FAMILY

    def now(self, name: str) -> list[Item]:
        unit = self.unit(name)
        if unit is None or unit.now is None or unit.now.hop or unit.now.turn == self.turn_id:
            return self.present(name)
        derived = [entry for entry in unit.entries if entry.hop]
        return [self.item(unit, derived[-1])] if derived else self.present(name)


class IgnoresLaterRules(Mutant):
    """A rule that arrives when another is known already is not taken in."""

    name = "ignores-later-rules"
    raises = ("missed-propagation",)
    families = FAMILY

    def take_in(self, turn: Utterance, ops: Sequence[Op]) -> None:
        super().take_in(turn, [op for op in ops if not self._second(op)])

    def _second(self, op: Op) -> bool:
        return op.op == "depend" and any(
            edge.target == op.unit for edges in self.world.edges.values() for edge in edges
        )
