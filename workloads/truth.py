"""Fills the truth into a script, step by step, as the world says."""

from __future__ import annotations

from collections.abc import Collection

from steeltrap.harness import values
from steeltrap.harness.script import (
    Audit,
    Change,
    Erasure,
    Expect,
    Gauge,
    Header,
    Probe,
    Script,
    Step,
    Swap,
    Turn,
)
from steeltrap.workloads.world import World, WorldError

__all__ = ["Annotator", "annotate"]


class Annotator:
    """Replays steps in order and writes into each what is true after it."""

    def __init__(self, header: Header) -> None:
        self.world = World(header)
        self._turns: list[Turn] = []

    def add(self, step: Step) -> list[Change]:
        """Fill in one step; returns what changed.

        Raises:
            WorldError: the step makes no sense where it stands.
        """
        world = self.world
        changes = world.advance(step.at)
        match step:
            case Turn():
                changes += world.apply(step.id, step.at, step.ops)
                if step.unless:  # of what an erasure takes from a twin, each turn is left out there
                    self._turns.append(step)
            case Erasure():
                if step.unless:
                    step.gone = self._gone(step)
                changes += world.erase(step.tenant, step.unit)
            case Probe():
                self._expect(step)
            case Audit():
                step.history = world.history(step.unit)
                unit = world.units.get(step.unit)
                step.live = unit is not None and unit.live
        step.changes = changes
        whole = world.live_units, world.live_tokens
        alone = isinstance(step, Gauge) and step.tenant
        step.footprint = world.footprint(step.tenant) if alone else whole
        return changes

    def _gone(self, erasure: Erasure) -> tuple[str, ...]:
        """The texts that speak of nothing but what is erased, and every spelling of its values.

        Values that followed by a rule were never said; whoever worked them out wrote them.
        """
        world, name = self.world, erasure.unit
        units = (name,) if name else tuple(world.by_tenant.get(erasure.tenant, ()))
        turns = [t for t in self._turns if _speaks_only_of(t, units, "" if name else erasure.tenant)]  # fmt: skip
        held = {past.value for unit in units for past in world.history(unit)}
        held |= {op.value for turn in turns for op in turn.ops}
        known = [value for value in held if value]
        spelled = [values.display(value) for value in sorted(known)]
        for turn in turns:
            found = [m for m in values.find(turn.text) if any(values.matches(m.literal, v) for v in known)]  # fmt: skip
            spelled += [turn.text[m.start : m.end] for m in found]
        return tuple(dict.fromkeys([turn.text for turn in turns] + spelled))

    def _expect(self, probe: Probe) -> None:
        world = self.world
        if probe.unit is None:
            return
        match probe.ask:
            case "current":
                probe.expect = world.expect(probe.unit)
                probe.hop, probe.via = world.origin(probe.unit)
            case "previous":
                probe.expect = world.expect_previous(probe.unit)
            case "as-of":
                if probe.of is None:
                    raise WorldError(f"probe {probe.id} asks as-of and needs `of`, an instant")
                probe.expect = world.expect_as_of(probe.unit, probe.of)
        if probe.swap is not None:
            probe.swap = self._swapped(probe.swap)

    def _swapped(self, swap: Swap) -> Swap:
        _, via = self.world.origin(swap.unit)
        expect: Expect = self.world.expect(swap.unit)
        return Swap(swap.twin, swap.unit, swap.text, expect, via)


def _speaks_only_of(turn: Turn, units: Collection[str], tenant: str) -> bool:
    """Whether all that a turn says is of some units; of a tenant it is whatever the tenant says.

    A rule is of both its ends: it tells that either was.
    """
    if tenant:
        return turn.tenant == tenant
    return bool(turn.ops) and all(op.unit in units or op.target in units for op in turn.ops)


def annotate(script: Script) -> Script:
    """A script whose steps hold no truth yet gets it.

    Raises:
        WorldError: a step makes no sense; the message names it.
    """
    annotator = Annotator(script.header)
    for step in script.steps:
        try:
            annotator.add(step)
        except WorldError as error:
            raise WorldError(f"step {step.id}: {error}") from None
    return script
