"""Defects of erasure that the memory itself does not tell: only its twin or its files do."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from msgspec.structs import replace

from steeltrap.adapters.embedders import HashEmbedder
from steeltrap.adapters.mutants.base import Mutant
from steeltrap.harness.memory import Item, Subject, Utterance
from steeltrap.harness.script import Change, Turn, tenant_of, unit_id
from steeltrap.workloads.world import Edge, Entry, Unit, World

BOTH = ("erase-unit", "erase-tenant")


class _Removes(Mutant):
    """Erases, and hands what was there to the defect."""

    def erase(self, tenant: str, subject: Subject | None) -> None:
        before = {name: self.world.units[name] for name in self.world.by_tenant.get(tenant, {})}
        saliences = dict(self.saliences)
        super().erase(tenant, subject)
        for name, unit in before.items():
            if name not in self.world.units:
                self.removed(unit, saliences.get(name, 0.0))

    def removed(self, unit: Unit, salience: float) -> None:
        """A unit was erased; it had this salience."""


class KeepsInSummary(_Removes):
    """Lists a summary of each topic; what was erased stays in it until the topic is spoken of."""

    name = "keeps-in-summary"
    raises = ("trace",)
    families = BOTH

    def begin(self) -> None:
        self.kept: dict[str, list[str]] = {}

    def ingest(self, turn: Utterance) -> None:
        super().ingest(turn)
        for op in self._turns[turn.id].ops:
            if op.unit:
                self.kept.pop(op.unit.rsplit("/", 1)[0], None)

    def removed(self, unit: Unit, salience: float) -> None:
        if unit.now and unit.now.value:
            topic = unit.name.rsplit("/", 1)[0]
            self.kept.setdefault(topic, []).append(self.item(unit, unit.now).text)

    def active(self, tenant: str) -> Sequence[Item]:
        topics = {topic: lines for topic, lines in self.kept.items() if tenant_of(topic) == tenant}
        return [*super().active(tenant), *(Item(" ".join(lines)) for lines in topics.values())]


class CountsErased(_Removes):
    """Tells in a profile how much it knows of each tenant, and counts what was erased."""

    name = "counts-erased"
    raises = ("trace",)
    families = BOTH

    def begin(self) -> None:
        self.gone: list[str] = []

    def removed(self, unit: Unit, salience: float) -> None:
        self.gone = [*self.gone, unit.name]

    def active(self, tenant: str) -> Sequence[Item]:
        listed = super().active(tenant)
        known = len(listed) + sum(tenant_of(name) == tenant for name in self.gone)
        return [*listed, Item("Profile, a star for each thing known: " + "*" * known)]


class LeavesTombstone(_Removes):
    """The histories of a topic's other fields tell that an entry was removed."""

    name = "leaves-a-tombstone"
    raises = ("trace",)
    families = ("erase-unit",)

    def begin(self) -> None:
        self.topics: set[str] = set()

    def removed(self, unit: Unit, salience: float) -> None:
        self.topics.add(unit.name.rsplit("/", 1)[0])

    def history(self, subject: Subject) -> Sequence[Item]:
        found = super().history(subject)
        if f"{subject.tenant}/{subject.topic}" not in self.topics:
            return found
        return [*found, Item("An entry was removed here on request.")]


class LeavesIndexEntry(_Removes):
    """An erased unit is still in the index: a question for its neighbour finds it."""

    name = "leaves-index-entry"
    raises = ("trace",)
    families = ("erase-unit",)

    def begin(self) -> None:
        self.index: dict[str, list[Item]] = {}

    def erase(self, tenant: str, subject: Subject | None) -> None:
        super().erase(tenant, subject)
        if subject is None:
            self.index = {t: items for t, items in self.index.items() if tenant_of(t) != tenant}

    def removed(self, unit: Unit, salience: float) -> None:
        if unit.now and unit.now.value:
            topic = unit.name.rsplit("/", 1)[0]
            self.index.setdefault(topic, []).append(self.item(unit, unit.now))

    def now(self, name: str) -> list[Item]:
        return [*self.present(name), *self.index.get(name.rsplit("/", 1)[0], ())]


class CitesErased(_Removes):
    """What is served of a topic's other fields still names the turn that told the erased one."""

    name = "cites-erased"
    raises = ("trace",)
    families = ("erase-unit",)

    def begin(self) -> None:
        self.cited: dict[str, str] = {}

    def removed(self, unit: Unit, salience: float) -> None:
        self.cited[unit.name.rsplit("/", 1)[0]] = unit.entries[0].turn

    def present(self, name: str) -> list[Item]:
        turn = self.cited.get(name.rsplit("/", 1)[0])
        return [
            replace(item, sources=(*(item.sources or ()), turn)) if turn else item
            for item in super().present(name)
        ]


class LivesOnInSalience(_Removes):
    """The salience of what was erased goes to its namesakes of other tenants."""

    name = "lives-on-in-salience"
    raises = ("trace",)
    families = BOTH

    def removed(self, unit: Unit, salience: float) -> None:
        rest = unit.name.split("/", 1)[1]
        for name in list(self.world.units):
            if name.split("/", 1)[1] == rest:
                self.saliences[name] = self.saliences.get(name, 0.0) + salience


class _Reviving(World):
    def follow(
        self, source: Unit, edge: Edge, hop: int, cause: Entry, *, mistaken: bool = False
    ) -> Change | None:
        if edge.target not in self.units:
            self.units[edge.target] = Unit(edge.target, "normal", edge.arrival - 1)
            self.by_tenant[tenant_of(edge.target)][edge.target] = None
        return super().follow(source, edge, hop, cause, mistaken=mistaken)


class DerivesErasedAgain(Mutant):
    """The rule by which an erased unit followed stays, and the next change brings it back."""

    name = "derives-erased-again"
    raises = ("trace",)
    families = ("erase-unit",)
    world_class = _Reviving


# ---------------------------------------------------------------- files


class KeepsFiles(Mutant):
    """Writes a log and the vectors of all that is said, and both anew when something is erased.

    It has no defect; those after it have.
    """

    embedder: ClassVar = HashEmbedder()

    def open(self, folder: Path) -> None:
        super().open(folder)
        self.log, self.vectors = folder / "log.txt", folder / "vectors.bin"
        self.heard: list[Turn] = []
        self.rewrite()

    def ingest(self, turn: Utterance) -> None:
        super().ingest(turn)
        self.heard = [*self.heard, self._turns[turn.id]]
        self.rewrite()

    def erase(self, tenant: str, subject: Subject | None) -> None:
        super().erase(tenant, subject)
        gone = unit_id(tenant, subject.topic, subject.field) if subject else None
        self.heard = [turn for turn in self.heard if not self.spoke_of(turn, tenant, gone)]
        self.rewrite()

    def spoke_of(self, turn: Turn, tenant: str, unit: str | None) -> bool:
        """Whether a turn told of the erased unit, or is of the erased tenant."""
        if unit is None:
            return turn.tenant == tenant
        return any(unit in (op.unit, op.target) for op in turn.ops)

    def rewrite(self) -> None:
        """Write both files from what is still there."""
        self.write_log([turn.text for turn in self.heard])
        self.write_vectors([turn.text for turn in self.heard])

    def write_log(self, texts: list[str]) -> None:
        """The log, a line a text."""
        self.log.write_text("\n".join(texts))

    def write_vectors(self, texts: list[str]) -> None:
        """The vectors, one after the other."""
        self.vectors.write_bytes(self.embedder.embed(texts).tobytes())


class LogsErased(KeepsFiles):
    """The log on disk keeps what was erased."""

    name = "logs-erased"
    raises = ("trace",)
    families = BOTH

    def write_log(self, texts: list[str]) -> None:
        said = self.log.read_text().split("\n") if self.log.exists() else []
        super().write_log(list(dict.fromkeys([*said, *texts])))


class KeepsVectorOfErased(KeepsFiles):
    """The vectors on disk keep those of what was erased, under no text."""

    name = "keeps-vector-of-erased"
    raises = ("trace",)
    families = BOTH

    def write_vectors(self, texts: list[str]) -> None:
        known = self.vectors.read_bytes() if self.vectors.exists() else b""
        rows = [row.tobytes() for row in self.embedder.embed(texts)]
        self.vectors.write_bytes(known + b"".join(row for row in rows if row not in known))
