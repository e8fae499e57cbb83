"""Fills the truth into a script, step by step, as the world says."""

from __future__ import annotations

from steeltrap.harness.script import (
    Audit,
    Change,
    Erasure,
    Expect,
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
            case Erasure():
                changes += world.erase(step.tenant, step.unit)
            case Probe():
                self._expect(step)
            case Audit():
                step.history = world.history(step.unit)
                unit = world.units.get(step.unit)
                step.live = unit is not None and unit.live
        step.changes = changes
        step.footprint = (world.live_units, world.live_tokens)
        return changes

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
