"""Document store: one JSON document a topic, overwritten in place, in a store of keys and values.

As in the stores that the paper names (Dynamo, Bigtable) a write replaces what was there, the later
one by its time; there are no joins, no constraints and no search but by key, and no write touches
another document. What a rule says is a part of the document, for whoever reads it.
"""

from __future__ import annotations

import shutil
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from hashlib import blake2b
from importlib import import_module
from pathlib import Path
from typing import Any, Final, Self

import msgspec

from steeltrap.adapters.paradigms.base import Held, Paradigm, Schema, Write
from steeltrap.harness.memory import MemoryFault, Subject
from steeltrap.reference_system.rules import Rule
from steeltrap.reference_system.statements import Place

__all__ = ["Document"]

_MAP_BYTES: Final = 1 << 30
"""The file may grow to this; it takes only as much as is written."""


class _Value(msgspec.Struct, omit_defaults=True):
    value: str | None
    """None: withdrawn."""
    said_by: str
    turns: tuple[str, ...]
    valid_from: str
    until: str | None = None
    importance: str = "normal"


class _Topic(msgspec.Struct, omit_defaults=True):
    """A document."""

    topic: str
    number: int
    """Documents of the tenant come in this order."""
    written_at: str = ""
    names: list[str] = []
    fields: dict[str, _Value | None] = {}
    """None: a field that was spoken of and never had a value."""
    follows: list[dict[str, Any]] = []
    related: list[str] = []


class Document(Paradigm):
    """Documents by key.

    Args:
        ttl_days: a document that was not written for so long is deleted by `maintain`; None: never.
        settings: as for `Paradigm`.

    Raises:
        ValueError: `ttl_days` is not positive.
    """

    name = "document"

    def __init__(self, *, ttl_days: float | None = None, **settings: Any) -> None:
        super().__init__(**settings)
        if ttl_days is not None and ttl_days <= 0:
            raise ValueError(f"document: a time to live of {ttl_days} days keeps nothing")
        self._ttl_days = ttl_days

    # ------------------------------------------------------------ life

    def create(self, folder: Path) -> None:
        """Begin an empty file."""
        self._folder = folder / "lmdb"
        self._begin({})

    def _begin(self, documents: dict[bytes, bytes]) -> None:
        """Make the file anew. A run that is cut short begins anew, so no write waits for the disk."""
        shutil.rmtree(self._folder, ignore_errors=True)
        lmdb = import_module("lmdb")
        self._env = lmdb.open(str(self._folder), map_size=_MAP_BYTES, sync=False)
        self._txn: Any = None
        with self._env.begin(write=True) as txn:
            for name, document in documents.items():
                txn.put(name, document)

    def release(self) -> None:
        """Close the file; a fork lets go of its snapshot."""
        if self._is_twin:
            self._txn.abort()
        else:
            self._env.close()

    def fork(self) -> Self:
        """A snapshot: a reading transaction, which later writes leave alone. It takes in nothing."""
        twin = self.twin()
        twin._txn = self._env.begin()
        weakref.finalize(twin, twin._txn.abort)
        return twin

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """What is written within it is stored whole or not at all."""
        if self._is_twin:
            raise MemoryFault("document: a fork is a snapshot, and can only be read")
        with self._env.begin(write=True) as self._txn:
            try:
                yield
            finally:
                self._txn = None

    @contextmanager
    def _reading(self) -> Iterator[Any]:
        """The transaction under way, or else one of its own."""
        if self._txn is not None:
            yield self._txn
        else:
            with self._env.begin() as txn:
                yield txn

    def size_bytes(self) -> int:
        """Bytes of the file."""
        self._opened()
        return (self._folder / "data.mdb").stat().st_size

    # ------------------------------------------------------------ documents

    def _all(self, tenant: str) -> list[_Topic]:
        """A tenant's documents: one range of keys."""
        begin, found = _digest(tenant), []
        with self._reading() as txn, txn.cursor() as cursor:
            there = cursor.set_range(begin)
            while there and cursor.key().startswith(begin):
                found.append(msgspec.json.decode(cursor.value(), type=_Topic))
                there = cursor.next()
        return sorted(found, key=lambda document: document.number)

    def _load(self, tenant: str, topic: str) -> _Topic:
        """A document, or a new one."""
        with self._reading() as txn:
            stored = txn.get(_digest(tenant, topic))
        if stored is not None:
            return msgspec.json.decode(stored, type=_Topic)
        return _Topic(topic, max((one.number for one in self._all(tenant)), default=0) + 1)

    def _save(self, tenant: str, document: _Topic, at: str = "") -> None:
        document.written_at = max(document.written_at, at)
        self._txn.put(_digest(tenant, document.topic), msgspec.json.encode(document))

    def schema(self, tenant: str) -> Sequence[Schema]:
        """The keys of each document."""
        return [Schema(one.topic, tuple(one.fields), tuple(one.names)) for one in self._all(tenant)]

    # ------------------------------------------------------------ writing

    def put(self, write: Write) -> None:
        """Overwrite the field in its document, unless what is there is of a later time."""
        document = self._load(write.tenant, write.topic)
        old = document.fields.get(write.field)
        if old and old.valid_from > write.valid_from and not write.corrects:
            return
        importance = next((tag for tag in write.tags if tag in ("vital", "trivial")), "normal")
        if old and importance == "normal":
            importance = old.importance
        turns: tuple[str, ...] = (write.turn,)
        since, until = write.valid_from, write.until
        if old and write.repeats:
            turns = tuple(dict.fromkeys((*old.turns, write.turn)))
            since, until = old.valid_from, until or old.until
        elif old and write.corrects:
            since = old.valid_from
        document.fields[write.field] = _Value(write.value, write.said_by, turns, since, until, importance)  # fmt: skip
        self._save(write.tenant, document, write.at)

    def withdraw(self, tenant: str, place: Place, turn: str, at: str) -> None:
        """Overwrite the field by a mark that it has no value since then."""
        document = self._load(tenant, place.topic)
        document.fields[place.field] = _Value(None, "", (turn,), at)
        self._save(tenant, document, at)

    def depend(self, tenant: str, source: Place, target: Place, rule: Rule | None, turn: str, at: str) -> None:  # fmt: skip
        """The rule is written into the target's document."""
        origin = self._load(tenant, source.topic)
        origin.fields.setdefault(source.field, None)
        self._save(tenant, origin, at)
        document = self._load(tenant, target.topic)
        document.fields.setdefault(target.field, None)
        between = {"field": target.field, "topic": source.topic, "source": source.field}
        document.follows = [one for one in document.follows if not between.items() <= one.items()]
        said = msgspec.to_builtins(rule or Rule("review"))
        document.follows.append({**between, "rule": said, "turn": turn})
        self._save(tenant, document, at)

    def relate(self, tenant: str, topic: str, other: str, turn: str) -> None:  # noqa: ARG002
        """Each document names the other."""
        for one, another in ((topic, other), (other, topic)):
            document = self._load(tenant, one)
            if another not in document.related:
                document.related.append(another)
            self._save(tenant, document)

    def alias(self, tenant: str, topic: str, name: str) -> None:
        """The document has another name."""
        document = self._load(tenant, topic)
        document.names.append(name)
        self._save(tenant, document)

    def erase(self, tenant: str, subject: Subject | None) -> None:
        """Remove a field or a tenant, and write what is left into a new file: the store itself
        leaves what was deleted in pages that it will use again.
        """
        super().erase(tenant, subject)
        with self._reading() as txn, txn.cursor() as cursor:
            left = dict(cursor)
        self._env.close()
        self._begin(left)

    def drop(self, tenant: str, place: Place | None) -> None:
        """Delete documents; or a field and the rules that name it, and with the last field its
        document.
        """
        for document in self._all(tenant):
            if place is not None and document.topic == place.topic:
                document.fields.pop(place.field, None)
            if place is None or not document.fields:
                self._txn.delete(_digest(tenant, document.topic))
                continue
            document.follows = [one for one in document.follows if not _names(one, document, place)]
            self._save(tenant, document)

    def maintain(self, at: str) -> None:
        """Delete documents that were not written for the time to live."""
        self.passed(at)
        if self._ttl_days is None:
            return
        ago = datetime.fromisoformat(self.now) - timedelta(days=self._ttl_days)
        old = ago.isoformat(timespec="minutes")
        with self.transaction():
            for name, stored in list(self._txn.cursor()):
                if msgspec.json.decode(stored, type=_Topic).written_at < old:
                    self._txn.delete(name)

    # ------------------------------------------------------------ reading

    def current(self, tenant: str, place: Place, at: str) -> Held | None:
        """The field of its document, unless its time is up."""
        document = self._load(tenant, place.topic)
        return _held(document, place.field, at)

    def listing(self, tenant: str, at: str) -> Sequence[Held]:
        """Every field of every document."""
        found = (_held(one, field, at) for one in self._all(tenant) for field in one.fields)
        return [held for held in found if held is not None]


def _held(document: _Topic, field: str, at: str) -> Held | None:
    found = document.fields.get(field)
    if found is None or found.value is None or (found.until and found.until <= at):
        return None
    return Held(
        document.topic, field, found.value, found.said_by, found.turns, found.valid_from,
        found.until,
    )  # fmt: skip


def _names(rule: dict[str, Any], document: _Topic, place: Place) -> bool:
    """Whether a rule of a document is about a place."""
    target, source = (document.topic, rule["field"]), (rule["topic"], rule["source"])
    return (place.topic, place.field) in (target, source)


def _digest(*names: str) -> bytes:
    """The key of a document: its tenant and its topic, each in 16 bytes, whatever they are called."""
    return b"".join(blake2b(name.encode(), digest_size=16).digest() for name in names)
