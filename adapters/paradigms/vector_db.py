"""A vector database: each statement is an entry with a vector and a payload; the engine is Qdrant.

An entry's id is no key: nothing is overwritten because it speaks of the same field. A store that
did so would be a key-value store with vectors beside the values, and is measured as one. What such a
store goes by is nearness: before an entry is written its nearest one is looked up, and from a cosine
of `near_duplicate` on the two count as one, as guides to agent memory on vector stores advise. So
whether a new value takes the place of the old one is decided by how alike the two sentences are.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

import msgspec

from steeltrap.adapters.crowd import alone
from steeltrap.adapters.paradigms.base import Held, Paradigm, Schema, Write, item
from steeltrap.adapters.vector.dense import Dense
from steeltrap.adapters.vector.memory import FUSION_DEPTH
from steeltrap.adapters.vector.ranking import fused
from steeltrap.adapters.vector.words import Words
from steeltrap.harness.memory import Item, Query
from steeltrap.reference_system.rules import Rule
from steeltrap.reference_system.statements import Place

if TYPE_CHECKING:
    from qdrant_client.local.qdrant_local import QdrantLocal

__all__ = ["VectorDb"]

OnNearDuplicate = Literal["replace", "skip"]
_CANDIDATES: Final = 8
"""Nearest entries among which one of the same kind is looked for."""


class Entry(msgspec.Struct, frozen=True):
    """What is stored with a vector: the payload."""

    id: str
    text: str
    kind: Literal["fact", "withdrawal", "rule", "relation", "name"]
    places: tuple[Place, ...]
    """What it speaks of: of a rule the target and then the source."""
    turns: tuple[str, ...]
    """That said so in these very words, without another entry taking its place between."""
    at: str
    """When it was said last, ISO 8601."""
    valid_from: str
    until: str | None = None
    value: str = ""
    said_by: str = ""

    @property
    def held(self) -> Held:
        """The entry as it is served."""
        place = self.places[0]
        return Held(
            place.topic, place.field, self.value, self.said_by, self.turns, self.valid_from,
            self.until, text=self.text, entry=self.id,
        )  # fmt: skip


@dataclass
class Collection:
    """One tenant's entries by number, oldest first, and the indexes over them."""

    dense: Dense
    words: Words = field(default_factory=Words)
    entries: dict[int, Entry] = field(default_factory=dict)
    next: int = 0

    def add(self, entry: Entry, vector: Any) -> None:
        """Store an entry."""
        self.dense.add(self.next, vector, msgspec.to_builtins(entry))
        self.words.add(self.next, entry.text)
        self.entries[self.next] = entry
        self.next += 1

    def remove(self, number: int) -> None:
        """Take an entry out."""
        self.dense.remove(number)
        self.words.remove(number)
        del self.entries[number]


class VectorDb(Paradigm):
    """Statements by their vectors and their words; see the module.

    A question is searched for as it is put, by meaning and by words (BM25), fused by reciprocal
    ranks; no model reads it. The payload can be filtered, and that is how the store knows the topics
    that it shows to the interpreter, whose word counts, and what to erase. Entries keep the time from
    which they hold, and none is marked as superseded. Rules are sentences: nothing follows from them.

    Args:
        near_duplicate: cosine from which an entry is taken for its nearest one, if they are of the
            same kind and that one does not hold from later on; None: nothing is looked up.
        on_near_duplicate: `replace`: the newer entry takes the place of the older. `skip`: the newer
            one is not written.
        capacity: entries that a tenant may have; the oldest are pruned on write.
        ttl_days: entries older than this are pruned, on write and by maintenance ("vector databases
            prune embeddings by capacity or age", section 2.1 of the paper).
        settings: as for `Paradigm`.

    Raises:
        ValueError: a setting makes no sense.
    """

    name = "vector-db"

    def __init__(
        self,
        *,
        near_duplicate: float | None = 0.95,
        on_near_duplicate: OnNearDuplicate = "replace",
        capacity: int | None = None,
        ttl_days: float | None = None,
        **settings: Any,
    ) -> None:
        super().__init__(**settings)
        if near_duplicate is not None and not 0 < near_duplicate <= 1:
            raise ValueError(
                f"vector-db: near_duplicate={near_duplicate}: a cosine above 0, up to 1"
            )
        if on_near_duplicate not in get_args(OnNearDuplicate):
            known = " or ".join(get_args(OnNearDuplicate))
            raise ValueError(f"vector-db: on_near_duplicate={on_near_duplicate}: it is {known}")
        if (capacity is not None and capacity < 1) or (ttl_days is not None and ttl_days <= 0):
            raise ValueError("vector-db: capacity and ttl_days have to be above 0, or null")
        self._near, self._on_near = near_duplicate, on_near_duplicate
        self._capacity = capacity
        self._ttl = None if ttl_days is None else timedelta(days=ttl_days)
        self._folder = Path()
        self._client: QdrantLocal | None = None
        self._collections: dict[str, Collection] = {}
        self._made = 0
        self._batch: list[tuple[str, Entry]] = []
        """Of the turn that is being taken in: tenant and entry."""

    # ------------------------------------------------------------ life

    def create(self, folder: Path) -> None:
        """Begin an empty store in `folder`/qdrant."""
        from qdrant_client.local.qdrant_local import QdrantLocal

        self._folder = folder / "qdrant"
        shutil.rmtree(self._folder, ignore_errors=True)
        self._client = QdrantLocal(str(self._folder))
        self._collections, self._batch, self._made = {}, [], 0

    def release(self) -> None:
        """Close the store; its files stay."""
        if self._client is not None:
            self._client.close()
        self._client = None

    def size_bytes(self) -> int:
        """Bytes of the store's files; an index of words is kept in memory only."""
        self._opened()
        return sum(path.stat().st_size for path in self._folder.rglob("*") if path.is_file())

    def maintain(self, at: str) -> None:
        """Prune what has outlived `ttl_days`."""
        self.passed(at)
        for collection in self._collections.values():
            self._prune(collection)

    # ------------------------------------------------------------ writing

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """The engine has none; the entries of a turn are written when all of them are known."""
        self._batch = []
        try:
            yield
            for tenant, entry in self._batch:
                self._store(self._collection(tenant), entry)
        finally:
            self._batch = []

    def put(self, write: Write) -> None:
        """An entry that states a value."""
        place = Place(write.topic, write.field)
        text = f"The {write.field} of {write.topic} is {write.value}."
        self._add(
            write.tenant, text, "fact", (place,), write.turn, write.at,
            valid_from=write.valid_from, until=write.until, value=write.value, said_by=write.said_by,
        )  # fmt: skip

    def withdraw(self, tenant: str, place: Place, turn: str, at: str) -> None:
        """An entry that says so; those before it stay."""
        text = f"The {place.field} of {place.topic} is no longer set."
        self._add(tenant, text, "withdrawal", (place,), turn, at)

    def depend(
        self, tenant: str, source: Place, target: Place, rule: Rule | None, turn: str, at: str
    ) -> None:
        """The rule as a sentence."""
        self._add(tenant, _ruled(source, target, rule), "rule", (target, source), turn, at)

    def relate(self, tenant: str, topic: str, other: str, turn: str) -> None:
        """The relation as a sentence."""
        text = f"{topic} and {other} are related, and independent of each other."
        self._add(tenant, text, "relation", (Place(topic, ""), Place(other, "")), turn, self.now)

    def alias(self, tenant: str, topic: str, name: str) -> None:
        """The other name as a sentence; nobody says which turn gave it."""
        text = f"{topic} is also called {name}."
        self._add(tenant, text, "name", (Place(topic, ""),), None, self.now, value=name)

    def drop(self, tenant: str, place: Place | None) -> None:
        """Remove the entries of a place, or of a tenant.

        The engine leaves the bytes of what is deleted in its file, so what remains is written to a
        new one.
        """
        old = self._collections.pop(tenant, None)
        if old is None:
            return
        old.dense.drop()
        kept = [
            one for one in old.entries.values() if place is not None and place not in one.places
        ]
        if kept:
            vectors = self.embedder.embed([entry.text for entry in kept])
            for entry, vector in zip(kept, vectors, strict=True):
                self._collection(tenant).add(entry, vector)

    def _add(
        self, tenant: str, text: str, kind: Any, places: tuple[Place, ...], turn: str | None, at: str,
        *, valid_from: str = "", **more: Any,
    ) -> None:  # fmt: skip
        name = f"{turn or 'name'}#{len(self._batch)}"
        turns = (turn,) if turn else ()
        entry = Entry(name, text, kind, places, turns, at, valid_from or at, **more)
        self._batch.append((tenant, entry))

    def _store(self, collection: Collection, entry: Entry) -> None:
        vector = self.embedder.embed([entry.text])[0]
        near = self._nearest_of_kind(collection, entry, vector)
        if near is not None and self._on_near == "skip":
            return
        if near is not None:
            old = collection.entries[near]
            if old.text == entry.text:
                entry = msgspec.structs.replace(entry, turns=(*old.turns, *entry.turns))
            collection.remove(near)
        collection.add(entry, vector)
        self._prune(collection)

    def _nearest_of_kind(self, collection: Collection, entry: Entry, vector: Any) -> int | None:
        if self._near is None:
            return None
        for number, cosine in collection.dense.search(vector, _CANDIDATES):
            old = collection.entries[number]
            if (
                cosine >= self._near
                and old.kind == entry.kind
                and old.valid_from <= entry.valid_from
            ):
                return number
        return None

    def _prune(self, collection: Collection) -> None:
        numbers = list(collection.entries)
        spare = len(numbers) - self._capacity if self._capacity is not None else 0
        oldest = self._oldest()
        for place, number in enumerate(numbers):
            if place < spare or collection.entries[number].at < oldest:
                collection.remove(number)

    def _oldest(self) -> str:
        """When an entry has to have been said to be kept."""
        if self._ttl is None:
            return ""
        return (datetime.fromisoformat(self.now) - self._ttl).isoformat(timespec="minutes")

    # ------------------------------------------------------------ reading

    @alone
    def retrieve(self, query: Query) -> Sequence[Item]:
        """The entries nearest to the question, by meaning and by words. Reading changes nothing."""
        self._opened()
        self._refuse_nobody(query.tenant)
        found = self.search(query.tenant, query.text, query.limit, query.at)
        return [item(held) for held in found]

    def search(self, tenant: str, text: str, limit: int, at: str) -> Sequence[Held]:  # noqa: ARG002
        """Both rankings, fused by reciprocal ranks."""
        collection = self._collections.get(tenant)
        if collection is None or limit < 1:
            return []
        depth = max(limit, FUSION_DEPTH)
        vector = self.embedder.embed([text])[0]
        rankings = collection.dense.search(vector, depth), collection.words.search(text, depth)
        return [
            msgspec.structs.replace(collection.entries[number].held, score=score)
            for number, score in fused(rankings, limit)
        ]

    def schema(self, tenant: str) -> Sequence[Schema]:
        """The topics and fields of the payloads, in the order in which they came."""
        fields: dict[str, dict[str, None]] = {}
        names: dict[str, dict[str, None]] = {}
        for entry in self._entries(tenant):
            for place in entry.places:
                there = fields.setdefault(place.topic, {})
                if place.field:
                    there.setdefault(place.field)
            if entry.kind == "name":
                names.setdefault(entry.places[0].topic, {}).setdefault(entry.value)
        return [Schema(topic, tuple(there), tuple(names.get(topic, ()))) for topic, there in fields.items()]  # fmt: skip

    def current(self, tenant: str, place: Place, at: str) -> Held | None:
        """The latest entry of a place; a filter on the payload, sorted by time."""
        last = None
        for entry in self._entries(tenant):
            if entry.kind in ("fact", "withdrawal") and entry.places[0] == place:
                last = entry if last is None or entry.valid_from >= last.valid_from else last
        if last is None or last.kind == "withdrawal" or (last.until and last.until <= at):
            return None
        return last.held

    def listing(self, tenant: str, at: str) -> Sequence[Held]:  # noqa: ARG002
        """Every entry, oldest first: all of them compete for a place in an answer."""
        return [entry.held for entry in self._entries(tenant)]

    def _entries(self, tenant: str) -> Iterator[Entry]:
        if tenant in self._collections:
            yield from self._collections[tenant].entries.values()
        yield from (entry for of, entry in self._batch if of == tenant)

    def _collection(self, tenant: str) -> Collection:
        if tenant not in self._collections:
            assert self._client is not None
            dense = Dense(self._client, f"entries-{self._made}", self.embedder.dimension)
            self._collections[tenant] = Collection(dense)
            self._made += 1
        return self._collections[tenant]


def _ruled(source: Place, target: Place, rule: Rule | None) -> str:
    """A rule as a sentence."""
    this, that = f"the {target.field} of {target.topic}", f"the {source.field} of {source.topic}"
    match rule:
        case Rule(kind="offset", days=days) if days:
            much = f"{abs(days)} day{'s' if abs(days) != 1 else ''}"
            said = f"is always {much} {'after' if days > 0 else 'before'} {that}"
        case Rule(kind="scaled", times=times, over=over):
            said = f"is always {times}/{over} of {that}, rounded to a whole number"
        case Rule(kind="offset") | Rule(kind="same"):
            said = f"is always the same as {that}"
        case _:
            said = f"has to be looked at whenever {that} changes"
    return f"T{this[1:]} {said}."
