"""Defects of forgetting: too much is kept, or the wrong things go."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from steeltrap.adapters.mutants.base import Mutant
from steeltrap.harness.memory import Item, Subject, Utterance
from steeltrap.harness.script import Op, tenant_of, unit_id


class KeepsNoise(Mutant):
    """Small talk is kept as active content, word by word."""

    name = "keeps-noise"
    raises = ("over-bound",)
    families = ("distraction",)

    def begin(self) -> None:
        self.noise: list[tuple[str, Item]] = []

    def take_in(self, turn: Utterance, ops: Sequence[Op]) -> None:
        super().take_in(turn, ops)
        if all(op.op == "noise" for op in ops):
            self.noise.append((turn.tenant, Item(turn.text, f"noise/{turn.id}", (turn.id,))))

    def active(self, tenant: str) -> list[Item]:
        return [*super().active(tenant), *(item for owner, item in self.noise if owner == tenant)]


class KeepsRestatements(Mutant):
    """Every repetition becomes an item of its own."""

    name = "keeps-restatements"
    raises = ("over-bound",)
    families = ("restatement-flood",)

    def begin(self) -> None:
        self.repeats: list[str] = []

    def take_in(self, turn: Utterance, ops: Sequence[Op]) -> None:
        super().take_in(turn, ops)
        for op in ops:
            if op.op == "restate" and op.unit:
                self.repeats.append(op.unit)

    def active(self, tenant: str) -> list[Item]:
        own = [name for name in self.repeats if tenant_of(name) == tenant]
        return [*super().active(tenant), *(item for name in own for item in self.present(name))]


class AppendsTurns(Mutant):
    """Every turn is kept as active content beside what was made of it."""

    name = "appends-turns"
    raises = ("over-bound", "superseded-active")
    families = ("restatement-flood",)

    def begin(self) -> None:
        self.texts: list[tuple[str, Item]] = []

    def ingest(self, turn: Utterance) -> None:
        super().ingest(turn)
        self.texts.append((turn.tenant, Item(turn.text, turn.id, (turn.id,), turn.at)))

    def active(self, tenant: str) -> list[Item]:
        return [*super().active(tenant), *(item for owner, item in self.texts if owner == tenant)]

    def erase(self, tenant: str, subject: Subject | None) -> None:
        super().erase(tenant, subject)
        self.texts = [(owner, item) for owner, item in self.texts if not self._about_gone(item)]

    def _about_gone(self, item: Item) -> bool:
        ops = self._turns[item.id or ""].ops
        return any(
            op.unit and op.op != "associate" and op.unit not in self.world.units for op in ops
        )


class Forgets(Mutant):
    """Units that are `gone` are neither listed nor served."""

    recoverable = True

    def gone(self, name: str) -> bool:
        """Whether a unit has been forgotten."""
        return False

    def begin(self) -> None:
        self.spoken_of: dict[str, int] = {}

    def take_in(self, turn: Utterance, ops: Sequence[Op]) -> None:
        super().take_in(turn, ops)
        for op in ops:
            if op.unit:
                self.spoken_of.pop(op.unit, None)
                self.spoken_of[op.unit] = self.turn_number

    def present(self, name: str) -> list[Item]:
        return [] if self.gone(name) else super().present(name)

    def recover(self, subject: Subject) -> Sequence[Item]:
        name = unit_id(subject.tenant, subject.topic, subject.field)
        return super().recover(subject) if self.recoverable or not self.gone(name) else []

    def touch(self, name: str) -> None:
        super().touch(name)
        self.spoken_of[name] = self.turn_number

    def fork(self) -> Forgets:
        twin = super().fork()
        assert isinstance(twin, Forgets)
        twin.spoken_of = dict(self.spoken_of)
        return twin

    def importance(self, name: str) -> str:
        """How much a unit matters."""
        unit = self.world.units.get(name)
        return unit.importance if unit else "normal"

    def silent_for(self, name: str) -> int:
        """Turns since anybody spoke of a unit or asked for it."""
        return self.turn_number - self.spoken_of.get(name, self.turn_number)


class ForgetsByAge(Forgets):
    """What nobody has spoken of or asked for in eight turns goes to the archive, whatever it is."""

    name = "forgets-by-age"
    raises: ClassVar[tuple[str, ...]] = ("inverted-retention",)
    families = ("importance-inversion",)

    def gone(self, name: str) -> bool:
        return self.silent_for(name) > 8


class DeletesByAge(ForgetsByAge):
    """As `forgets-by-age`, and what is gone cannot be had back."""

    name = "deletes-by-age"
    raises = ("inverted-retention", "unrecoverable")
    recoverable = False


class ForgetsVitalFirst(Forgets):
    """What matters most is archived first."""

    name = "forgets-vital-first"
    raises = ("inverted-retention",)
    families = ("importance-inversion",)

    def gone(self, name: str) -> bool:
        return self.importance(name) == "vital" and self.silent_for(name) > 3


class NeverKeepsVital(Forgets):
    """What matters most never becomes active at all."""

    name = "never-keeps-vital"
    raises = ("inverted-retention",)
    families = ("importance-inversion",)

    def gone(self, name: str) -> bool:
        return self.importance(name) == "vital"


class DeletesTrivial(Forgets):
    """What seems trivial is deleted for good after a while."""

    name = "deletes-trivial"
    raises = ("unrecoverable",)
    families = ("importance-inversion",)
    recoverable = False

    def gone(self, name: str) -> bool:
        return self.importance(name) == "trivial" and self.silent_for(name) > 12


class ArchivesOldVersion(Forgets):
    """What is archived comes back as it was at first."""

    name = "archives-old-version"
    raises = ("unrecoverable",)
    families = ("revision-chain",)

    def gone(self, name: str) -> bool:
        return self.importance(name) == "normal" and self.silent_for(name) > 12

    def recover(self, subject: Subject) -> Sequence[Item]:
        return self.history(subject)[:1]
