"""The present of M in memory: what operators need of many fields, and indexes over it."""

from __future__ import annotations

import copy
import heapq
from bisect import insort
from collections.abc import Iterable
from typing import Any, get_args

import msgspec

from steeltrap.reference_system.state import (
    EXTENSION,
    HIDDEN,
    Alias,
    Delta,
    Edge,
    Evidence,
    Field,
    PolicyText,
    Record,
    Topic,
    key,
    number,
)

__all__ = ["Mirror"]


class Mirror:
    """The present of M in memory: all but the histories. Rebuilt from the store when it is opened."""

    def __init__(self) -> None:
        self.topics: dict[str, Topic] = {}
        self.fields: dict[str, Field] = {}
        self.edges: dict[str, Edge] = {}
        self.evidence: dict[str, Evidence] = {}
        self.aliases: dict[str, Alias] = {}
        self.orders: dict[str, int] = {}
        """The highest `order`, by tenant."""
        self.numbers: dict[str, int] = {}
        """The highest number given to a topic, field or edge, by tenant."""
        self.clocks: dict[str, str] = {}
        """The latest instant seen, by tenant."""
        self.footprint: dict[str, int] = {}
        """Tokens of the active fields, by tenant."""
        self.live: dict[str, int] = {}
        """Active fields, by tenant."""
        self.by_title: dict[tuple[str, str], str] = {}
        """Tenant and key of a title -> the oldest topic that has it."""
        self.by_name: dict[tuple[str, str], str] = {}
        """Topic and key of a name -> the oldest field that has it."""
        self._titles_shared: dict[tuple[str, str], dict[str, None]] = {}
        self._names_shared: dict[tuple[str, str], dict[str, None]] = {}
        self.of_tenant: dict[str, dict[str, None]] = {}
        """Tenant -> ids of its topics."""
        self.of_topic: dict[str, dict[str, None]] = {}
        """Topic -> ids of its fields."""
        self.leaving: dict[str, dict[str, None]] = {}
        """Source -> ids of its edges."""
        self.arriving: dict[str, dict[str, None]] = {}
        """Target -> ids of its edges."""
        self.absorbed: dict[str, dict[str, None]] = {}
        """Field -> ids of the fields that were merged into it."""
        self._changed: dict[str, dict[str, None]] = {}
        """Field -> evidence that it has changed and its dependents were not yet looked at."""
        self.fading: dict[str, list[tuple[float, str]]] = {}
        """Tenant -> heap of (salience, field) of fields that are not hidden. An item is void when
        its field has moved on."""
        self.hidden: dict[str, list[tuple[float, str]]] = {}
        """Tenant -> the same of hidden fields."""
        self._counted: dict[str, int] = {}
        self.due: dict[str, list[tuple[str, int, str]]] = {}
        """Tenant -> (instant, order, evidence) of values that hold from a later time on, in order."""
        self._expiring: dict[str, list[tuple[str, str]]] = {}

    def fork(self) -> Mirror:
        """A copy: the records, which never change, are shared."""
        twin = copy.copy(self)
        for name, held in vars(self).items():
            twin.__dict__[name] = {k: v.copy() if isinstance(v, dict | list) else v for k, v in held.items()}  # fmt: skip
        return twin

    # ------------------------------------------------------------ taking in

    def load(self, records: Iterable[Record]) -> list[PolicyText]:
        """Take in all that a store holds; gives back the policies."""
        kept: dict[type, list[Any]] = {kind: [] for kind in get_args(Record)}
        for record in records:
            kept[type(record)].append(record)
        for topic in sorted(kept[Topic], key=lambda topic: number(topic.id)):
            self.put_topic(topic)
        for field in sorted(kept[Field], key=lambda field: number(field.id)):
            self.put_field(field)
        for edge in sorted(kept[Edge], key=lambda edge: edge.order):
            self.put_edge(edge)
        for evidence in kept[Evidence]:
            self.put_evidence(evidence.id, evidence)
        for alias in kept[Alias]:
            self.aliases[alias.id] = alias
        policies: list[PolicyText] = kept[PolicyText]
        return sorted(policies, key=lambda policy: policy.place)

    def fold(self, delta: Delta) -> None:
        """Make a proposed change the present; called once it is in the store."""
        self.advance(delta.tenant, delta.at)
        for topic in delta.topics.values():
            self.put_topic(topic)
        for field in delta.fields.values():
            self.put_field(field)
        for name, salience in delta.touched.items():
            if name not in delta.fields:
                field = msgspec.structs.replace(self.fields[name], salience=salience)
                self.fields[name] = field
                self.watch(field)
        for edge in delta.edges.values():
            self.put_edge(edge)
        for alias in delta.aliases.values():
            self.aliases[alias.id] = alias
        for name, evidence in delta.evidence.items():
            self.put_evidence(name, evidence)

    def latest(self) -> dict[str, str]:
        """Tenants with values whose time will be up -> the field whose history was written last."""
        found: dict[str, Field] = {}
        for field in self.fields.values():
            if field.tenant in self._expiring and field.entries:
                found[field.tenant] = max(
                    found.get(field.tenant, field), field, key=lambda f: f.order
                )
        return {tenant: field.id for tenant, field in found.items()}

    def put_topic(self, topic: Topic) -> None:
        """Add or replace a topic."""
        old = self.topics.get(topic.id)
        self.topics[topic.id] = topic
        self._number(topic.tenant, topic.id, topic.order)
        self.of_tenant.setdefault(topic.tenant, {})[topic.id] = None
        self.of_topic.setdefault(topic.id, {})
        self._name(self.by_title, topic.tenant, old.title if old else None, topic.title, topic.id, bool(topic.into))  # fmt: skip
        if old is not None and old.archived != topic.archived:
            for name in self.of_topic[topic.id]:
                self._count(self.fields[name])
                self.watch(self.fields[name])

    def put_field(self, field: Field) -> None:
        """Add or replace a field."""
        old = self.fields.get(field.id)
        self.fields[field.id] = field
        if old is None or old.order != field.order or old.topic != field.topic:
            self._number(field.tenant, field.id, field.order)
            if old is not None and old.topic != field.topic:
                del self.of_topic[old.topic][field.id]
                self._forget_name(self.by_name, (old.topic, key(old.name)), field.id)
                names = (*self.of_topic[field.topic], field.id)
                self.of_topic[field.topic] = dict.fromkeys(sorted(names, key=number))
                old = None
            self.of_topic.setdefault(field.topic, {})[field.id] = None
            self._name(self.by_name, field.topic, old.name if old else None, field.name, field.id, bool(field.into))  # fmt: skip
            if field.into:
                self.absorbed.setdefault(field.into, {})[field.id] = None
            if field.until is not None:
                heapq.heappush(self._expiring.setdefault(field.tenant, []), (field.until, field.id))
        self._count(field)
        self.watch(field)

    def watch(self, field: Field) -> None:
        """See to it that forgetting looks at a field when it has faded."""
        if field.into or not field.seq:
            return
        heaps = self.hidden if field.level == HIDDEN else self.fading
        heap = heaps.setdefault(field.tenant, [])
        heapq.heappush(heap, (field.salience, field.id))
        if len(heap) > 64 + 8 * self.live.get(field.tenant, 0) and heaps is self.fading:
            kept = {item for item in heap if self._watched(item)}
            heaps[field.tenant] = sorted(kept)

    def _watched(self, item: tuple[float, str]) -> bool:
        field = self.fields.get(item[1])
        return field is not None and field.salience == item[0] and self.active(field)

    def put_edge(self, edge: Edge) -> None:
        """Add an edge, or replace one; that which was written last comes last."""
        if edge.id in self.edges:
            self._drop_edge(edge.id)
        self.edges[edge.id] = edge
        self._number(edge.tenant, edge.id, edge.order)
        self.leaving.setdefault(edge.source, {})[edge.id] = None
        self.arriving.setdefault(edge.target, {})[edge.id] = None

    def put_evidence(self, name: str, evidence: Evidence | None) -> None:
        """Add a finding, or with None remove it."""
        old = self.evidence.pop(name, None)
        if old is not None and old.kind == "due":
            self.due[old.tenant].remove((old.at, old.order, name))
        if old is not None and old.kind == "dependency":
            del self._changed[old.subject][name]
            if not self._changed[old.subject]:
                del self._changed[old.subject]
        if evidence is None:
            return
        self.evidence[name] = evidence
        self._number(evidence.tenant, evidence.id, evidence.order)
        if evidence.kind == "due":
            insort(self.due.setdefault(evidence.tenant, []), (evidence.at, evidence.order, name))
        if evidence.kind == "dependency":
            self._changed.setdefault(evidence.subject, {})[name] = None

    def waits(self, name: str) -> bool:
        """Whether a field follows from one that has changed, and was not yet looked at."""
        if not self._changed:
            return False
        own = self.lineage(name)
        edges = (self.edges[edge] for part in own for edge in self.arriving.get(part, ()))
        return any(
            e.kind == EXTENSION and e.source in self._changed and e.source not in own for e in edges
        )

    def lineage(self, name: str) -> list[str]:
        """A field and those that were merged into it, by id."""
        return [name] + [n for old in self.absorbed.get(name, ()) for n in self.lineage(old)]

    def advance(self, tenant: str, at: str) -> None:
        """Let time pass: values whose time is up are active no longer."""
        if at <= self.clocks.get(tenant, ""):
            return
        self.clocks[tenant] = at
        heap = self._expiring.get(tenant, [])
        while heap and heap[0][0] <= at:
            field = self.fields.get(heapq.heappop(heap)[1])
            if field is not None:
                self._count(field)

    def expired(self, tenant: str, at: str) -> list[str]:
        """Fields whose time will be up at an instant that has not been seen yet."""
        heap = self._expiring.get(tenant)
        if not heap or heap[0][0] > at:
            return []
        return [name for until, name in heap if until <= at and name in self.fields]

    def drop(self, tenant: str, topics: Iterable[str], fields: Iterable[str]) -> None:
        """Remove topics, fields, and all that speaks of them, for good."""
        gone = {*topics, *fields}
        for name in [e.id for e in self.edges.values() if e.source in gone or e.target in gone]:
            self._drop_edge(name)
        for name in [e.id for e in self.evidence.values() if e.subject in gone or e.other in gone]:
            self.put_evidence(name, None)
        for name in [a.id for a in self.aliases.values() if a.scope in gone or a.target in gone]:
            del self.aliases[name]
        for name in fields:
            self._drop_field(name)
        for name in topics:
            topic = self.topics.pop(name)
            del self.of_tenant[tenant][name]
            self.of_topic.pop(name, None)
            self._forget_name(self.by_title, (tenant, key(topic.title)), name)
        if not self.of_tenant.get(tenant):
            for held in (self.of_tenant, self.orders, self.numbers, self.clocks, self.footprint, self.live, self.fading, self.hidden, self.due, self._expiring):  # fmt: skip
                held.pop(tenant, None)

    # ------------------------------------------------------------ bookkeeping

    def active(self, field: Field, at: str | None = None) -> bool:
        """Whether a field competes for a place in an answer, now or at an instant."""
        topic = self.topics.get(field.topic)
        return (
            field.level < HIDDEN
            and not field.into
            and topic is not None
            and not topic.archived
            and field.holds(self.clocks.get(field.tenant, "") if at is None else at)
        )

    def _count(self, field: Field) -> None:
        """Keep the footprint true after a field has changed."""
        tenant = field.tenant
        before = self._counted.pop(field.id, None)
        if before is not None:
            self.footprint[tenant] -= before
            self.live[tenant] -= 1
        if self.active(field):
            self._counted[field.id] = field.tokens
            self.footprint[tenant] = self.footprint.get(tenant, 0) + field.tokens
            self.live[tenant] = self.live.get(tenant, 0) + 1

    def _number(self, tenant: str, name: str, order: int) -> None:
        """Keep the counters above everything that is stored."""
        self.numbers[tenant] = max(self.numbers.get(tenant, 0), number(name))
        self.orders[tenant] = max(self.orders.get(tenant, 0), order)

    def _name(self, names: dict[tuple[str, str], str], scope: str, old: str | None, new: str, name: str, gone: bool) -> None:  # fmt: skip
        if old is not None and (gone or old != new):
            self._forget_name(names, (scope, key(old)), name)
        if gone:
            return
        place = scope, key(new)
        first = names.setdefault(place, name)
        if first != name:
            names[place], later = sorted((first, name), key=number)
            self._shared(names).setdefault(place, {})[later] = None

    def _forget_name(self, names: dict[tuple[str, str], str], place: tuple[str, str], name: str) -> None:  # fmt: skip
        others = self._shared(names).get(place, {})
        others.pop(name, None)
        if names.get(place) == name:
            del names[place]
            if others:
                names[place] = min(others, key=number)
                del others[names[place]]

    def _shared(self, names: dict[tuple[str, str], str]) -> dict[tuple[str, str], dict[str, None]]:
        """Who else has a name, beside the oldest."""
        return self._titles_shared if names is self.by_title else self._names_shared

    def _drop_edge(self, name: str) -> None:
        edge = self.edges.pop(name)
        del self.leaving[edge.source][name]
        del self.arriving[edge.target][name]

    def _drop_field(self, name: str) -> None:
        field = self.fields.pop(name)
        before = self._counted.pop(name, None)
        if before is not None:
            self.footprint[field.tenant] -= before
            self.live[field.tenant] -= 1
        self.of_topic.get(field.topic, {}).pop(name, None)
        self.absorbed.pop(name, None)
        for absorbed in self.absorbed.values():
            absorbed.pop(name, None)
        self._forget_name(self.by_name, (field.topic, key(field.name)), name)
