"""A store in memory: plain dicts. Also the branch of a memory that is copied to be asked."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from steeltrap.reference_system.mirror import Mirror
from steeltrap.reference_system.state import (
    Alias,
    Delta,
    Edge,
    Entry,
    Evidence,
    Field,
    PolicyText,
    Record,
    Topic,
)
from steeltrap.reference_system.stores.base import Store, StoreError

__all__ = ["PlainStore"]


class PlainStore:
    """Keeps M in dicts; nothing is written to disk.

    Args:
        base: a store that is only read: what is not here is there. It must not change while
            this branch of it is used.
        present: the present of the base.
    """

    def __init__(self, base: Store | None = None, present: Mirror | None = None) -> None:
        self._base = base
        known = present or Mirror()
        self._fields: dict[str, Field] = dict(known.fields)
        self._topics: dict[str, Topic] = dict(known.topics)
        self._edges: dict[str, Edge] = dict(known.edges)
        self._evidence: dict[str, Evidence] = dict(known.evidence)
        self._aliases: dict[str, Alias] = dict(known.aliases)
        self._entries: dict[str, list[Entry]] = {}
        self._gone: set[str] = set()
        self._policies: list[PolicyText] = []

    def load(self) -> Iterator[Record]:
        """The present of the base with everything that was written here."""
        kept = (self._topics, self._fields, self._edges, self._evidence, self._aliases)
        for records in kept:
            yield from records.values()
        yield from self._policies

    def commit(self, delta: Delta) -> None:
        """Write a proposed change."""
        self._topics |= delta.topics
        self._fields |= delta.fields
        self._edges |= delta.edges
        self._aliases |= delta.aliases
        self._touch(delta.touched)
        for entry in delta.entries:
            self._entries.setdefault(entry.field, []).append(entry)
        for name, evidence in delta.evidence.items():
            if evidence is None:
                self._evidence.pop(name, None)
            else:
                self._evidence[name] = evidence

    def read(self, touched: dict[str, float]) -> list[Field]:
        """Write saliences and give the fields."""
        self._touch(touched)
        return [self._fields[name] for name in touched]

    def _touch(self, touched: dict[str, float]) -> None:
        for name, salience in touched.items():
            self._fields[name] = msgspec.structs.replace(self._fields[name], salience=salience)

    def entries(self, fields: Sequence[str]) -> list[Entry]:
        """Histories, those of the base first."""
        below = [name for name in fields if name not in self._gone]
        found = self._base.entries(below) if self._base and below else []
        for name in fields:
            found += self._entries.get(name, [])
        place = {name: number for number, name in enumerate(fields)}
        return sorted(found, key=lambda e: (place[e.field], e.seq))

    def entry(self, field: str, seq: int) -> Entry:
        """One line of a history."""
        for entry in self.entries([field]):
            if entry.seq == seq:
                return entry
        raise StoreError(f"the history of {field} has no line {seq}")

    def set_policies(self, policies: Sequence[PolicyText]) -> None:
        """Replace P."""
        self._policies = list(policies)

    def erase(self, topics: Iterable[str], fields: Iterable[str]) -> None:
        """Remove topics and fields with all that speaks of them."""
        gone = {*topics, *fields}
        self._gone |= gone
        for name in gone:
            self._topics.pop(name, None)
            self._fields.pop(name, None)
            self._entries.pop(name, None)
        self._edges = {k: e for k, e in self._edges.items() if not {e.source, e.target} & gone}
        self._evidence = {k: e for k, e in self._evidence.items() if not {e.subject, e.other} & gone}  # fmt: skip
        self._aliases = {k: a for k, a in self._aliases.items() if not {a.scope, a.target} & gone}

    def checkpoint(self) -> None:
        """Nothing to do."""

    def size_bytes(self) -> int:
        """Nothing is on disk."""
        return 0

    def close(self) -> None:
        """Nothing is held open."""
