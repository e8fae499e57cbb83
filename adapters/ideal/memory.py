"""A memory that is told what every sentence means and does everything right.

It shows that a perfect score is possible, and it is what the mutants are made from: each
decision has a method of its own, so that a mutant can get exactly one of them wrong.
"""

from __future__ import annotations

import copy
from collections import ChainMap
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from steeltrap.harness.memory import Item, Query, Subject, Utterance
from steeltrap.harness.script import Audit, Op, Probe, Script, Turn, canonical, tenant_of, unit_id
from steeltrap.workloads.world import Entry, Unit, World

__all__ = ["Ideal"]

DECAY = 0.98
"""What is left of a unit's salience after one round of maintenance without being read."""


class Ideal:
    """The world behind an adapter, with every optional capability but the size on disk."""

    world_class: ClassVar[type[World]] = World

    def told(self, script: Script) -> None:
        """Take the meaning of every sentence and question from the script."""
        self._header = script.header
        self._turns = {step.id: step for step in script.steps if isinstance(step, Turn)}
        self._questions = {s.id: s for s in script.steps if isinstance(s, Probe | Audit)}

    def open(self, folder: Path) -> None:
        """Begin empty; nothing is written to disk."""
        self.world = self.world_class(self._header)
        self.saliences: ChainMap[str, float] = ChainMap({})

    def close(self) -> None:
        """Nothing is held open."""

    def settle(self) -> None:
        """Everything is done at once."""

    # ------------------------------------------------------------ ingestion

    def ingest(self, turn: Utterance) -> None:
        """Do what the turn's ops say."""
        self.world.advance(turn.at)
        self.take_in(turn, self._turns[turn.id].ops)

    def take_in(self, turn: Utterance, ops: Sequence[Op]) -> None:
        """All ops of one turn."""
        self.world.apply(turn.id, turn.at, ops)

    # ------------------------------------------------------------ retrieval

    def retrieve(self, query: Query) -> Sequence[Item]:
        """What answers the question, and nothing else; what is read gains salience."""
        question = self._questions[query.id]
        self.world.advance(query.at)
        if isinstance(question, Audit):
            return self.history_of(question.unit)
        if question.ask == "rank":
            return self.ranked(question.units)
        if question.ask == "evidence":  # of a request; public data has no truth
            return [item for unit in question.units for item in self.present(unit)]
        assert question.unit is not None
        items = self.answer(question, question.unit)
        if items:
            self.touch(question.unit)
        return items

    def answer(self, probe: Probe, name: str) -> list[Item]:
        """The items that answer a probe of one unit."""
        match probe.ask:
            case "previous":
                return self.past(name)
            case "as-of":
                return self.as_of(name, probe.of or probe.at)
            case _:
                return self.present(name)

    def present(self, name: str) -> list[Item]:
        """What holds now."""
        unit = self.world.units.get(name)
        if unit is None or not unit.live or unit.now is None:
            return []
        return [self.item(unit, unit.now)]

    def past(self, name: str) -> list[Item]:
        """All that ever held, the last before the present one first, and the present one last."""
        chain = [pair for pair in self._chain(name) if not pair[1].never_true]
        unit = self.world.units.get(name)
        now = [item for item, entry in chain if unit and unit.live and entry is unit.now]
        return [*(item for item, _ in reversed(chain) if item not in now), *now]

    def as_of(self, name: str, at: str) -> list[Item]:
        """What held at an instant."""
        held = [
            item
            for item, entry in self._chain(name)
            if not entry.never_true
            and entry.at <= at
            and (item.valid_to is None or item.valid_to > at)
        ]
        return held[-1:]

    def ranked(self, names: Sequence[str]) -> list[Item]:
        """Several units beside each other, the most salient first."""
        items = [item for name in names for item in self.present(name)]
        return sorted(items, key=lambda item: -(item.score or 0.0))

    def item(self, unit: Unit, entry: Entry, valid_to: str | None = None) -> Item:
        """One entry as it is served."""
        assert entry.value is not None
        return Item(
            text=canonical(unit.name, entry.value),
            id=f"{unit.name}#{entry.arrival}",
            sources=self.sources(entry),
            valid_from=entry.at,
            valid_to=min(filter(None, (valid_to, entry.until)), default=None),
            review=unit.state == "review" and entry is unit.now,
            score=self.saliences.get(unit.name, 0.0),
        )

    def sources(self, entry: Entry) -> tuple[str, ...]:
        """The turns that an entry came from."""
        return (entry.turn, *entry.also)

    def _chain(self, name: str) -> list[tuple[Item, Entry]]:
        """Every entry with a value, oldest first, each closed by the one after it."""
        unit = self.world.units.get(name)
        if unit is None:
            return []
        entries = unit.entries
        ends = [entry.at for entry in entries[1:]] + [""]
        return [
            (self.item(unit, entry, end if entry is not unit.now or not unit.live else None), entry)
            for entry, end in zip(entries, ends, strict=True)
            if entry.value is not None
        ]

    def touch(self, name: str) -> None:
        """A unit was read."""
        self.saliences[name] = self.saliences.get(name, 0.0) + 1.0

    # ------------------------------------------------------------ capabilities

    def active(self, tenant: str) -> Sequence[Item]:
        """The live units of a tenant, one sentence each."""
        names = self.world.by_tenant.get(tenant, {})
        return [item for name in names for item in self.listed(name)]

    def listed(self, name: str) -> list[Item]:
        """What is active of one unit."""
        return self.present(name)

    def history(self, subject: Subject) -> Sequence[Item]:
        """Every entry of a unit, oldest first."""
        return self.history_of(_name(subject))

    def history_of(self, name: str) -> list[Item]:
        """Every entry of a unit, those that were never true included."""
        return [item for item, _ in self._chain(name)]

    def salience(self, subject: Subject) -> float | None:
        """How safe a unit is from attenuation."""
        name = _name(subject)
        return self.saliences.get(name, 0.0) if name in self.world.units else None

    def maintain(self, at: str) -> None:
        """Salience decays on disuse."""
        self.world.advance(at)
        for name in self.saliences:
            self.saliences[name] *= DECAY

    def recover(self, subject: Subject) -> Sequence[Item]:
        """What is known of a unit, whether it is active or not."""
        return self.history_of(_name(subject))[-1:]

    def erase(self, tenant: str, subject: Subject | None) -> None:
        """Remove a unit or a tenant, and the salience that was derived from it."""
        name = _name(subject) if subject else None
        self.world.erase(tenant, name)
        for known in list(self.saliences):
            if known == name or (name is None and tenant_of(known) == tenant):
                del self.saliences[known]

    def fork(self) -> Ideal:
        """A copy that may be read without effect: reading writes salience, and nothing else."""
        twin = copy.copy(self)
        twin.saliences = self.saliences.new_child()
        return twin


def _name(subject: Subject) -> str:
    return unit_id(subject.tenant, subject.topic, subject.field)
