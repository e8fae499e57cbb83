"""What mutants have in common."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from steeltrap.adapters.ideal import Ideal
from steeltrap.harness.memory import Item, Utterance
from steeltrap.harness.script import Probe
from steeltrap.workloads.world import Entry, Unit

__all__ = ["Mutant", "superseded"]


class Mutant(Ideal):
    """The ideal memory with one defect; subclasses say which."""

    name: ClassVar[str] = ""
    raises: ClassVar[tuple[str, ...]] = ()
    """The violations that the defect must raise: all of them, and none else."""
    families: ClassVar[tuple[str, ...]] = ()
    """The families on which it shows."""
    turns: ClassVar[int] = 150
    """How long a script of such a family has to be for the defect to show, and no more than it."""

    def open(self, folder: Path) -> None:
        """Begin empty."""
        super().open(folder)
        self.turn_id = ""
        self.turn_number = 0
        self.begin()

    def begin(self) -> None:
        """Set up what the defect needs to remember."""

    def ingest(self, turn: Utterance) -> None:
        """Count turns, then do as the ideal does."""
        self.turn_id = turn.id
        self.turn_number += 1
        super().ingest(turn)

    def unit(self, name: str) -> Unit | None:
        """The unit, if it has a current value."""
        unit = self.world.units.get(name)
        return unit if unit is not None and unit.state == "set" and unit.now else None

    def answer(self, probe: Probe, name: str) -> list[Item]:
        """Questions about the present go through `now`, so that a mutant can leave the rest be."""
        return self.now(name) if probe.ask == "current" else super().answer(probe, name)

    def now(self, name: str) -> list[Item]:
        """What is served to a question about the present."""
        return self.present(name)


def superseded(unit: Unit) -> list[Entry]:
    """Earlier values that were true once and were neither withdrawn nor are true again."""
    assert unit.now is not None
    followed = zip(unit.entries, unit.entries[1:], strict=False)
    return [
        entry
        for entry, after in followed
        if entry.value not in (None, unit.now.value)
        and not entry.never_true
        and after.value is not None
        and entry is not unit.now
    ]
