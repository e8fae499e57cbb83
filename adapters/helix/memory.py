"""The adapter: the recipe's write and read path over one embedded database."""

from __future__ import annotations

import copy
import shutil
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Final

import msgspec

from steeltrap.adapters.helix import forget, profile
from steeltrap.adapters.helix.asks import Minds, Relation
from steeltrap.adapters.helix.graph import Row, Store, dsl, entity_key, every, keyed, named, visible
from steeltrap.adapters.helix.recall import Reader, current, item, within_budget
from steeltrap.adapters.helix.settings import settled
from steeltrap.adapters.helix.write import Fact, recall_batch, turn_batch
from steeltrap.harness.memory import Item, MemoryFault, Query, Subject, Utterance
from steeltrap.harness.models import Models

__all__ = ["HelixRecipe"]

_EPOCH: Final = "1970-01-01T00:00"


class _Tenant(msgspec.Struct):
    """What the application keeps of a tenant beside the store."""

    recent: deque[Utterance]
    written: int = 0
    """Memories so far; the next one has the next number."""
    unread: int = 0
    """Memories that the summarizer has not seen yet."""


class HelixRecipe:
    """Versioned, user-scoped facts in HelixDB; see README.md beside this file.

    A tenant of the script is a tenant of the store with one user, so both keys are its name.

    Args:
        settings: as in `Settings`.

    Raises:
        ValueError: there is no such setting, or its value makes no sense.
    """

    name: ClassVar = "helix-recipe"

    def __init__(self, **settings: Any) -> None:
        self._settings = settled(settings)
        self._minds = Minds()
        self._store: Store | None = None
        self._folder = Path()
        self._tenants: dict[str, _Tenant] = {}
        self._recalls: dict[str, tuple[float, str]] = {}
        self._now = _EPOCH
        self._copied_at: int | None = None

    def connect(self, models: Models) -> None:
        """Ask these models."""
        self._minds.connect(models)

    def open(self, folder: Path) -> None:
        """Begin an empty memory in `folder`/helix.

        Raises:
            MemoryFault: it was not connected.
        """
        self.close()
        dimension = self._minds.open()
        self._folder = folder / "helix"
        shutil.rmtree(self._folder, ignore_errors=True)
        self._folder.mkdir(parents=True)
        where = self._folder if self._settings.store == "disk" else None
        self._store = Store(where, dimension)
        self._tenants, self._recalls, self._now = {}, {}, _EPOCH

    def close(self) -> None:
        """Release the database; its files stay."""
        if self._copied_at is None:
            self._minds.close()
            if self._store is not None:
                self._store.close()
        self._store = None

    # ------------------------------------------------------------ writing

    def ingest(self, turn: Utterance) -> None:
        """Extract, find candidates, adjudicate, and write all that follows in one batch.

        Where a model gives no answer nothing was written.
        """
        store = self._changing()
        tenant = self._tenants.get(turn.tenant) or self._nobody()
        at = max(self._now, turn.at)
        pieces = _pieces(turn.text, self._settings.chunk_chars)
        vectors = self._minds.embedded(pieces)
        facts = self._facts(turn, tenant, vectors[0] if vectors else None, at)
        if facts:
            chunks = list(zip(pieces, vectors, strict=True))
            turn_batch(turn, facts, chunks, self._settings).commit(store)
            tenant.written += len(facts)
            tenant.unread += sum(fact.relation != "duplicate" for fact in facts)
        self._now = at
        tenant.recent.append(turn)
        self._tenants[turn.tenant] = tenant

    def _facts(
        self, turn: Utterance, tenant: _Tenant, vector: Sequence[float] | None, at: str
    ) -> list[Fact]:
        """What is worth remembering of a turn, and how it relates to what is there."""
        settings, reader = self._settings, Reader(self._opened(), self._settings)
        related = reader.found(turn.tenant, turn.text, vector, at, limit=settings.related)
        said = self._minds.extracted(turn, tenant.recent, related)
        if not said:
            return []
        vectors = self._minds.embedded([one.content for one in said])
        near = {row.key: row for row in related}
        for one, own in zip(said, vectors, strict=True):
            found = reader.found(turn.tenant, one.content, own, at, limit=settings.candidates)
            near |= {row.key: row for row in found}
        decided = self._minds.adjudicated(said, list(near.values()))
        decided = _apart(decided)
        known = {turn.id, *(each.id for each in tenant.recent)}
        return [
            Fact(
                said=one, relation=relation, memories=rows, number=tenant.written + place,
                vector=own, source=one.source if one.source in known else turn.id,
            )
            for place, (one, own, (relation, rows)) in enumerate(
                zip(said, vectors, decided, strict=True), 1
            )
        ]  # fmt: skip

    def _nobody(self) -> _Tenant:
        return _Tenant(deque(maxlen=self._settings.recent_turns))

    def settle(self) -> None:
        """Write the profiles anew that are out of date."""
        store = self._opened()
        if self._copied_at is not None:
            return
        for name, tenant in self._tenants.items():
            if (
                tenant.unread >= self._settings.profile_every
                or profile.load(store, name, self._now).stale
            ):
                self._summarise(name, tenant)

    def _summarise(self, name: str, tenant: _Tenant) -> None:
        store, settings = self._opened(), self._settings
        rows = store.rows(rows=current(name, self._now))["rows"]
        rows.sort(key=lambda row: (-row.salience, -row.number))
        shown = rows[: settings.profile_shown]
        lines = self._minds.profiled(shown, settings.profile_lines) if shown else []
        profile.keep(store, name, lines, shown, self._now)
        tenant.unread = 0

    # ------------------------------------------------------------ reading

    def retrieve(self, query: Query) -> Sequence[Item]:
        """The profile, the best memories with their sources, and raw text where there is room.

        Each memory that is served counts as recalled.
        """
        store, settings = self._opened(), self._settings
        if query.limit < 1 or query.tenant not in self._tenants:
            return []
        at = max(self._now, query.at)
        self._now = at
        reader = Reader(store, settings)
        (vector,) = self._minds.embedded([query.text]) if query.text.strip() else (None,)
        ranked = reader.recalled(query.tenant, query.text, vector, at)[: query.limit]
        keys = [row.key for row, _ in ranked]
        kept = profile.load(store, query.tenant, at)
        cited = _cited(kept, query.tenant)
        sources = reader.sources([*keys, *cited])
        found = [_profile(kept, cited, sources)] if kept.lines else []
        found += [item(row, sources.get(row.key, ()), score=score) for row, score in ranked]
        room = min(settings.chunks, query.limit - len(found))
        if keys and room > 0:
            found += reader.supporting(query.tenant, keys, query.text, vector, room)
        served = within_budget(found, query.limit, settings.budget_tokens)
        ids = {one.id for one in served}
        for row, _ in ranked:
            if f"memory-{row.number}" in ids:
                self._recalls[row.key] = self._recalls.get(row.key, (0.0, at))[0] + 1, at
        return served

    def active(self, tenant: str) -> Sequence[Item]:
        """The profile, every current memory, and the raw text that can be reached from one."""
        store = self._opened()
        if tenant not in self._tenants:
            return []
        reader = Reader(store, self._settings)
        kept = profile.load(store, tenant, self._now)
        cited = _cited(kept, tenant)
        found = [_profile(kept, cited, reader.sources(cited))] if kept.lines else []
        found += self._items(store.rows(rows=current(tenant, self._now))["rows"])
        return found + (reader.reachable(tenant, self._now) if self._settings.chunks else [])

    def history(self, subject: Subject) -> Sequence[Item]:
        """Every version of what is known of a subject, oldest first."""
        return self._items(self._versions(subject))

    def recover(self, subject: Subject) -> Sequence[Item]:
        """The same: superseded, removed, expired and faded memories can all be looked up."""
        return self._items(self._versions(subject))

    def salience(self, subject: Subject) -> float | None:
        """What a sweep looks at: salience, and how often it was recalled or repeated."""
        found = self._about(subject)
        shown = [row for row in found if row.is_latest and not row.deleted_at] or found
        signals = [
            row.salience + row.access_count + self._recalls.get(row.key, (0.0, ""))[0]
            for row in shown
        ]
        return max(signals, default=None)

    def size_bytes(self) -> int:
        """Bytes of the database's files."""
        self._opened()
        return sum(path.stat().st_size for path in self._folder.rglob("*") if path.is_file())

    # ------------------------------------------------------------ forgetting

    def maintain(self, at: str) -> None:
        """The sweeper: hide what has expired or faded."""
        store = self._changing()
        self._now = max(self._now, at)
        forget.sweep(store, self._now, self._settings)

    def remove(self, subject: Subject) -> None:
        """Soft deletion of what is current of a subject: recall leaves it out."""
        store = self._changing()
        forget.remove(store, [row for row in self._about(subject) if row.is_latest], self._now)

    def restore(self, subject: Subject) -> None:
        """Undo soft deletion and decay of a subject."""
        store = self._changing()
        forget.restore(store, self._about(subject))

    def erase(self, tenant: str, subject: Subject | None) -> None:
        """Hard deletion: memories, versions, raw text and the profile that was built from them."""
        store = self._changing()
        if subject is None:
            forget.everything_gone(store, tenant)
            self._tenants.pop(tenant, None)
            return
        if not (rows := self._about(subject)):
            return
        gone = forget.hard_delete(store, [row.key for row in rows])
        self._forget_turns(tenant, gone, subject.topic)

    def erase_source(self, tenant: str, turn: str) -> None:
        """Hard deletion of one turn: its raw text and every memory derived from it."""
        store = self._changing()
        gone = forget.source_gone(store, named("source", tenant, turn))
        self._forget_turns(tenant, gone._replace(turns={turn, *gone.turns}))

    def _forget_turns(self, tenant: str, gone: forget.Gone, topic: str | None = None) -> None:
        """Take turns out of what the extractor is shown next; have a profile that went written again."""
        kept = self._tenants[tenant]
        words = None if topic is None else topic.casefold()
        stay = [
            turn
            for turn in kept.recent
            if turn.id not in gone.turns and (words is None or words not in turn.text.casefold())
        ]
        kept.recent = deque(stay, maxlen=self._settings.recent_turns)
        if gone.profile:
            kept.unread = max(kept.unread, self._settings.profile_every)

    # ------------------------------------------------------------ copies

    def fork(self) -> HelixRecipe:
        """A copy for questions, with recall counts of its own, on the same database.

        It answers as the original does until that one writes; then it is out of date and says so.
        """
        store = self._opened()
        twin = copy.copy(self)
        twin._copied_at = store.commits
        twin._recalls = dict(self._recalls)
        twin._tenants = copy.deepcopy(self._tenants)
        return twin

    # ------------------------------------------------------------ helpers

    def _items(self, rows: Iterable[Row]) -> list[Item]:
        rows = list(rows)
        sources = Reader(self._opened(), self._settings).sources(row.key for row in rows)
        return [item(row, sources.get(row.key, ())) for row in rows]

    def _versions(self, subject: Subject) -> list[Row]:
        store = self._opened()
        found = self._about(subject)
        keys = forget.versions(store, [row.key for row in found])
        rows = store.rows(rows=every("Memory", dsl().Predicate.is_in("key", keys)))["rows"]
        return sorted(rows, key=lambda row: (row.event_at or row.valid_from, row.number))

    def _about(self, subject: Subject) -> list[Row]:
        """Memories of any state that are about a topic's field; where none is, those about the topic.

        About a topic are those that mention the entity of its name; where there is no such entity,
        those whose text names it. The field is found in the text.
        """
        store, topic, field = self._opened(), subject.topic.casefold(), subject.field.casefold()
        if subject.tenant not in self._tenants:
            return []
        mine = visible(subject.tenant, subject.tenant)
        entity = keyed("Entity", [entity_key(subject.tenant, subject.topic)])
        mentions = entity.in_("MENTIONS").where(dsl().Predicate.and_(mine)).dedup()
        about = store.rows(rows=mentions)["rows"]
        if not about:
            all_of_them = store.rows(rows=every("Memory", *mine))["rows"]
            about = [row for row in all_of_them if topic in row.text.casefold()]
        return [row for row in about if field in row.text.casefold()] or about

    def _opened(self) -> Store:
        if self._store is None:
            raise MemoryFault(
                "helix-recipe: not open; call open(folder) first, and nothing after close()"
            )
        if self._copied_at not in (None, self._store.commits):
            raise MemoryFault(
                "helix-recipe: a copy is out of date once the original was written; fork again"
            )
        return self._store

    def _changing(self) -> Store:
        """The store, with all recalls written that were counted since the last write."""
        store = self._opened()
        if self._copied_at is not None:
            raise MemoryFault("helix-recipe: a copy is for questions alone; write to the original")
        if self._recalls:
            recall_batch(self._recalls).commit(store)
            self._recalls = {}
        return store


def _cited(kept: profile.Profile, tenant: str) -> list[str]:
    """The keys of the memories that a profile names."""
    numbers = {number for line in kept.lines for number in line.memories}
    return [f"{named('memory', tenant)}.{number}" for number in sorted(numbers)]


def _profile(kept: profile.Profile, cited: Iterable[str], sources: Mapping[str, list[str]]) -> Item:
    """The profile as it is served: one item, from all the turns that its lines came from."""
    turns = dict.fromkeys(turn for key in cited for turn in sources.get(key, ()))
    return Item(kept.text, id="profile", sources=tuple(turns), valid_from=kept.at)


def _apart(decided: Iterable[tuple[Relation, list[Row]]]) -> list[tuple[Relation, list[Row]]]:
    """Decisions of one turn that can stand side by side: what a fact ends is not there for the next."""
    ended: set[str] = set()
    kept: list[tuple[Relation, list[Row]]] = []
    for relation, rows in decided:
        left = [row for row in rows if row.key not in ended]
        kept.append((relation, left) if left else ("new", []))
        if relation == "update":
            ended |= {row.key for row in left}
    return kept


def _pieces(text: str, size: int) -> list[str]:
    """A turn in chunks, cut between words where that is possible."""
    pieces = []
    while len(text) > size:
        cut = text.rfind(" ", 1, size) + 1 or size
        pieces.append(text[:cut])
        text = text[cut:]
    return [piece for piece in (*pieces, text) if piece.strip()]
