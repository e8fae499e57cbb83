"""The proposed state M_{t+1}: the present with a proposed change before it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from steeltrap.reference_system.mirror import Mirror
from steeltrap.reference_system.state import (
    HIDDEN,
    Alias,
    Delta,
    Edge,
    Entry,
    Evidence,
    Field,
    Topic,
    key,
    number,
    titles,
)

__all__ = ["View"]


class View:
    """The proposed state: the mirror with a delta before it. Operators read and write through it."""

    def __init__(self, mirror: Mirror, delta: Delta) -> None:
        self.mirror = mirror
        self.delta = delta
        self.tenant = delta.tenant
        self.at = delta.at
        self._footprint: int | None = None
        self._within: dict[str, dict[str, None]] = {}
        """Topic -> ids of the fields that were proposed in it."""

    # ------------------------------------------------------------ reading

    def topic(self, name: str) -> Topic:
        """A topic by id."""
        return self.delta.topics.get(name) or self.mirror.topics[name]

    def field(self, name: str) -> Field:
        """A field by id, with the salience that it would have."""
        field = self.delta.fields.get(name) or self.mirror.fields[name]
        salience = self.delta.touched.get(name)
        return field if salience is None else msgspec.structs.replace(field, salience=salience)

    def find_topic(self, title: str) -> Topic | None:
        """The topic of a title or of another name for it; one that was merged leads to its host."""
        wanted = key(title)
        found = self.mirror.by_title.get((self.tenant, wanted))
        for topic in self.delta.topics.values():
            if key(topic.title) == wanted and (found is None or topic.into):
                found = topic.id
        if found is None:
            found = self._alias(titles(self.tenant), wanted)
        return self.host(found) if found is not None else None

    def host(self, name: str) -> Topic:
        """A topic by id, or the one that it was merged into."""
        topic = self.topic(name)
        return self.host(topic.into) if topic.into else topic

    def find_field(self, topic: Topic, name: str) -> Field | None:
        """The field of a name, or of another name for it, in a topic."""
        wanted = key(name)
        found = self.mirror.by_name.get((topic.id, wanted))
        if found is not None and self.field(found).topic != topic.id:
            found = None
        for name in self._within.get(topic.id, ()):
            field = self.field(name)
            if field.topic == topic.id and not field.into and key(field.name) == wanted:
                found = name
        if found is None:
            found = self._alias(topic.id, wanted)
        return self.survivor(found) if found is not None else None

    def survivor(self, name: str) -> Field:
        """A field by id, or the one that it was merged into."""
        field = self.field(name)
        return self.survivor(field.into) if field.into else field

    def is_one(self, name: str, field: Field) -> bool:
        """Whether an id, perhaps of what is no longer there, is that of a field or merged into it."""
        known = name in self.delta.fields or name in self.mirror.fields
        return known and self.survivor(name).id == field.id

    def _alias(self, scope: str, wanted: str) -> str | None:
        name = f"{scope}\n{wanted}"
        alias = self.delta.aliases.get(name) or self.mirror.aliases.get(name)
        return alias.target if alias else None

    def absorbed(self, name: str) -> list[Field]:
        """The fields that were merged into one, each alone."""
        known = [self.field(old) for old in self.mirror.absorbed.get(name, ())]
        return known + [f for f in self.delta.fields.values() if f.into == name and f not in known]

    def names_of(self, scope: str) -> list[Alias]:
        """The other names that are known in a scope."""
        aliases = {**self.mirror.aliases, **self.delta.aliases}
        return [alias for alias in aliases.values() if alias.scope == scope]

    def topics(self) -> Iterator[Topic]:
        """The topics of the tenant that were not merged away."""
        known = self.mirror.of_tenant.get(self.tenant, {})
        for name in dict.fromkeys((*known, *self.delta.topics)):
            topic = self.topic(name)
            if not topic.into:
                yield topic

    def fields_of(self, topic: str) -> Iterator[Field]:
        """The fields of a topic that were not merged away."""
        known, proposed = self.mirror.of_topic.get(topic, {}), self._within.get(topic, {})
        names: Iterable[str] = dict.fromkeys((*known, *proposed))
        if any(name in self.mirror.fields and name not in known for name in proposed):
            names = sorted(names, key=number)
        for name in names:
            field = self.field(name)
            if field.topic == topic and not field.into:
                yield field

    def leaving(self, source: str) -> list[Edge]:
        """The edges of a field or topic, oldest first."""
        known = self.mirror.leaving.get(source, {})
        new = [edge for edge in self.delta.edges.values() if edge.source == source]
        return [self.mirror.edges[name] for name in known if name not in self.delta.edges] + new

    def plans(self, name: str) -> list[Evidence]:
        """Values of a field that begin to hold later, in the order of their times."""
        known = (self.mirror.evidence[e] for _, _, e in self.mirror.due.get(self.tenant, ()))
        found = {e.id: e for e in known if e.subject == name and e.id not in self.delta.evidence}
        new = (e for e in self.delta.evidence.values() if e is not None and e.kind == "due")
        found |= {e.id: e for e in new if e.subject == name}
        return list(found.values())

    def arriving(self, target: str) -> list[Edge]:
        """The edges to a field or topic, oldest first."""
        known = self.mirror.arriving.get(target, {})
        new = [edge for edge in self.delta.edges.values() if edge.target == target]
        return [self.mirror.edges[name] for name in known if name not in self.delta.edges] + new

    def active(self, field: Field) -> bool:
        """Whether a field would compete for a place in an answer."""
        return (
            field.level < HIDDEN
            and not field.into
            and field.holds(self.at)
            and not self.topic(field.topic).archived
        )

    def footprint(self) -> int:
        """Tokens of the tenant's active fields; counted once, and from then on kept."""
        if self._footprint is None:
            names = dict.fromkeys(self.delta.fields)
            for topic in self.delta.topics.values():
                if self._turned(topic.id):
                    names |= self.mirror.of_topic.get(topic.id, {})
            names |= dict.fromkeys(self.mirror.expired(self.tenant, self.at))
            known = (self.mirror.fields.get(name) for name in names)
            self._footprint = (
                self.mirror.footprint.get(self.tenant, 0)
                + sum(self._shown(self.field(name)) for name in names)
                - sum(old.tokens for old in known if old is not None and self.mirror.active(old))
            )
        return self._footprint

    def _turned(self, topic: str) -> bool:
        """Whether a topic would be archived, or brought back."""
        old, new = self.mirror.topics.get(topic), self.delta.topics.get(topic)
        return old is not None and new is not None and old.archived != new.archived

    def _shown(self, field: Field) -> int:
        """What a field adds to the footprint."""
        return field.tokens if self.active(field) else 0

    def _counted(self, name: str) -> int:
        """What a field has added to it so far."""
        old = self.delta.fields.get(name)
        if old is None and name in self.mirror.fields:
            old = self.mirror.fields[name]
            if not self._turned(old.topic):
                return old.tokens if self.mirror.active(old) else 0
        return 0 if old is None else self._shown(old)

    # ------------------------------------------------------------ proposing

    def new_id(self, letter: str) -> str:
        """An id that the tenant has not used; it tells nothing of other tenants."""
        self.delta.number += 1
        return f"{self.tenant}:{letter}{self.delta.number}"

    def next_order(self) -> int:
        """The number of what is written next."""
        self.delta.order += 1
        return self.delta.order

    def put_topic(self, topic: Topic) -> None:
        """Propose a topic, new or changed."""
        old = self.delta.topics.get(topic.id) or self.mirror.topics.get(topic.id)
        if old is not None and old.archived != topic.archived:
            self._footprint = None
        self.delta.topics[topic.id] = topic

    def put_field(self, field: Field) -> None:
        """Propose a field, new or changed in more than its salience."""
        if self._footprint is not None:
            self._footprint += self._shown(field) - self._counted(field.id)
        self._within.setdefault(field.topic, {})[field.id] = None
        self.delta.fields[field.id] = field
        self.delta.touched.pop(field.id, None)

    def touch(self, field: str, salience: float) -> None:
        """Propose that a field was accessed."""
        if field in self.delta.fields:
            self.put_field(msgspec.structs.replace(self.delta.fields[field], salience=salience))
        else:
            self.delta.touched[field] = salience

    def take_back(self, field: Field, topic: Topic | None) -> None:
        """Propose a new field no longer, and its topic as it was proposed before."""
        self._footprint = None
        del self.delta.fields[field.id], self._within[field.topic][field.id]
        if topic is None:
            self.delta.topics.pop(field.topic, None)
        else:
            self.delta.topics[field.topic] = topic

    def append(self, entry: Entry) -> None:
        """Propose one more line of a history."""
        self.delta.entries.append(entry)

    def put_edge(self, edge: Edge) -> None:
        """Propose an edge."""
        self.delta.edges[edge.id] = edge

    def put_alias(self, scope: str, name: str, target: str) -> None:
        """Propose another name for a topic or field."""
        wanted = key(name)
        alias = Alias(f"{scope}\n{wanted}", self.tenant, scope, wanted, target)
        self.delta.aliases[alias.id] = alias

    def put_evidence(self, evidence: Evidence) -> None:
        """Propose a finding for revision."""
        self.delta.evidence[evidence.id] = evidence

    def resolve(self, evidence: str) -> None:
        """Propose that a finding is dealt with."""
        self.delta.evidence[evidence] = None
