"""The state M = (D, S, P) of "Is Agent Memory a Database?" (section 3.1), and proposed changes to it.

D is topics with fields and their histories, S is edges, P is the policies (in `policy`). All
records are immutable: a transition makes new ones and leaves the old ones alone until it is
committed. The present of every field is held in memory; its history is in the store.

Entries of a history are only ever added. What is later learned of an entry (that it was said
again, ends, or was never true) is an entry of its own that points at it.

Salience is kept by forward decay (Cormode, Shkapenyuk, Srivastava, Xu: "Forward decay", ICDE
2009): every access at day t adds 2^(t / half-life), and the day is stored at which a single access
would have come to the same sum. All fields fade at the same pace, so nothing has to be written
while time passes, the order of two fields changes only when one of them is accessed, and an access
always raises the stored number. A day means the same whatever the half-life, so another one can
be set at any time.
"""

from __future__ import annotations

import copy
import heapq
import math
import unicodedata
from bisect import insort
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Final, Literal, get_args

import msgspec

from steeltrap.reference_system.rules import Rule

__all__ = [
    "ASSOCIATION",
    "COMPRESSED",
    "EXTENSION",
    "FULL",
    "HIDDEN",
    "NEVER",
    "Alias",
    "Delta",
    "Edge",
    "Entry",
    "Evidence",
    "Field",
    "Mirror",
    "PolicyText",
    "Record",
    "Topic",
    "View",
    "accessed",
    "day",
    "key",
    "moment",
    "number",
    "strength",
    "titles",
]

FULL, COMPRESSED, HIDDEN = 0, 1, 2
"""The rungs of the ladder at field grain; the last one, archive, is a topic's."""
EXTENSION: Final = "extension"
ASSOCIATION: Final = "association"
NEVER: Final = -math.inf
"""The salience of what was never accessed."""

Written = Literal["told", "corrected", "withdrawn", "derived", "contested", "restated", "ends", "void", "doubted", "merged", "planned"]  # fmt: skip


class _Record(msgspec.Struct, frozen=True, gc=False):
    pass


class Entry(_Record, frozen=True, gc=False):
    """One line of a field's history, never changed: ⟨value, time, provenance⟩.

    `told`, `corrected`, `withdrawn` and `derived` entries were current when they were written,
    unless they are news about an earlier time. `contested` ones were kept beside the current
    value. `restated`, `ends` and `void` say something of the entry `about`, and `doubted` that the
    present value waits for review. `planned` holds a value that begins to hold later. `merged` says which entry (`about` of the field `via`) holds
    since two fields were merged.
    """

    field: str
    """Id of the field."""
    seq: int
    """1, 2, 3, … within the field."""
    op: Written
    value: str | None
    """None: withdrawn."""
    valid_from: str
    """Valid time: from when it held in the world."""
    until: str | None
    """Valid time: it holds until then."""
    recorded: str
    """Transaction time: when the memory took it in."""
    order: int
    """Its number among everything that was ever written for the tenant."""
    turn: str
    """Provenance: the turn it was said in; of a derived value, the turn that changed its source."""
    said_by: str
    """Provenance: whose words."""
    sources: tuple[str, ...]
    """Provenance: further turns, such as that of the rule by which a value was derived."""
    about: int
    """`restated`, `ends`, `void`, `merged`: the `seq` that this is about; 0 elsewhere."""
    via: str
    """`derived`, `doubted`: the field from which this came; `merged`: that of the entry `about`."""
    policy: str
    """The policy that let it in."""


class Field(_Record, frozen=True, gc=False):
    """The present of a field. What holds now follows from its entries (`check` verifies it)."""

    id: str
    tenant: str
    topic: str
    """Id of the topic."""
    name: str
    about: str
    tags: tuple[str, ...]
    state: Literal["unset", "set", "review"]
    """review: the value held last, and somebody has to look."""
    value: str | None
    seq: int
    """`seq` of the entry that holds or held last; 0: none yet."""
    valid_from: str
    until: str | None
    turn: str
    said_by: str
    sources: tuple[str, ...]
    via: str
    """The field that the value was derived from."""
    cause: int
    """`order` of the entry that the value goes back to: its own, or of a derived one its source's."""
    entries: int
    """Length of the history."""
    mentions: int
    """How often a value was told or restated."""
    order: int
    """`order` of what was written to it last."""
    salience: float
    """Days since 1970: a single access then would count as much as all there were; see the module."""
    level: int
    """FULL, COMPRESSED or HIDDEN."""
    tokens: int
    """Of its sentence while it is active."""
    into: str = ""
    """Id of the field of the same name that it was merged into."""

    def holds(self, at: str) -> bool:
        """Whether there is a value (also one that waits for review) at an instant from now on."""
        return self.state != "unset" and (self.until is None or self.until > at)


class Topic(_Record, frozen=True, gc=False):
    """A self-contained unit: what the fields of one concept have in common."""

    id: str
    tenant: str
    title: str
    summary: str
    vector: bytes
    """Its embedding, float32, of unit length; empty where no embedder is used."""
    tags: tuple[str, ...]
    order: int
    """`order` of what was written to it last."""
    archived: bool = False
    into: str = ""
    """Id of the topic that it was merged into."""


class Edge(_Record, frozen=True, gc=False):
    """A typed edge of S: between fields if it is an extension, between topics if an association."""

    id: str
    tenant: str
    kind: Literal["extension", "association"]
    source: str
    target: str
    rule: Rule | None
    turn: str
    order: int


class Evidence(_Record, frozen=True, gc=False):
    """A finding that revision has yet to deal with."""

    id: str
    tenant: str
    kind: Literal["dependency", "duplicate", "drift", "group", "due"]
    subject: str
    """dependency, drift, due: a field; duplicate, group: a topic."""
    other: str
    """duplicate: a topic; drift: a field; group: the name of the group; due: whose words."""
    seq: int
    """dependency: the entry that changed; due: the one that is planned."""
    order: int
    at: str
    """due: from when the planned value holds; elsewhere when it was found."""
    policy: str
    """The policy that flagged it."""


class Alias(_Record, frozen=True, gc=False):
    """Another name for a topic (within a tenant) or for a field (within a topic)."""

    id: str
    """`scope` and name key, separated by a line feed."""
    tenant: str
    scope: str
    """That of the tenant's titles, or the id of the topic."""
    name: str
    target: str


class PolicyText(_Record, frozen=True, gc=False):
    """One statement of P, kept in the state."""

    id: str
    """Its name, or `SET name`, or `RANK`."""
    place: int
    text: str


Record = Topic | Field | Entry | Edge | Evidence | Alias | PolicyText


# ---------------------------------------------------------------- names, times, salience


def key(name: str) -> str:
    """A title or field name as it is looked up: case and runs of blanks do not matter, nor whether
    an accent is a sign of its own.
    """
    return unicodedata.normalize("NFC", " ".join(name.split()).casefold())


def titles(tenant: str) -> str:
    """The scope of a tenant's other names for topics; no id of a topic is like it."""
    return f"{tenant}:"


def number(name: str) -> int:
    """The number in an id: what was made earlier has a lower one."""
    return int(name.rpartition(":")[2][1:])


@lru_cache(maxsize=8192)
def moment(text: str) -> str:
    """An instant in the form in which it is kept and compared: UTC, to the second.

    Args:
        text: ISO 8601, taken for UTC where it names no zone.

    Raises:
        ValueError: it is no instant.
    """
    try:
        at = datetime.fromisoformat(text)
        if at.tzinfo is not None:
            at = at.astimezone(UTC).replace(tzinfo=None)
    except (ValueError, TypeError, OverflowError):
        raise ValueError(f"{text!r} is not an instant; write it as 2026-04-20T14:00") from None
    return at.isoformat(timespec="seconds")


@lru_cache(maxsize=8192)
def day(at: str) -> float:
    """Days between the beginning of 1970 and an instant."""
    return (datetime.fromisoformat(at) - datetime(1970, 1, 1)).total_seconds() / 86_400


def accessed(salience: float, at: str, half_life_days: float, weight: float = 1.0) -> float:
    """The salience after an access; always more than before."""
    gain = day(at) + half_life_days * math.log2(weight)
    high, low = max(salience, gain), min(salience, gain)
    more = math.log2(1.0 + 2.0 ** ((low - high) / half_life_days)) if low > NEVER else 0.0
    raised = high + half_life_days * more
    return raised if raised > salience else math.nextafter(salience, math.inf)


def strength(salience: float, at: str, half_life_days: float) -> float:
    """The decayed number of accesses, as of an instant: one access is 1, after a half-life 0.5."""
    return float(2.0 ** min((salience - day(at)) / half_life_days, 1000.0))


# ---------------------------------------------------------------- a proposed change


class Delta:
    """What one transition would change: M_{t+1} as a difference to M_t. Made for one tenant."""

    def __init__(self, tenant: str, at: str, order: int, number: int) -> None:
        self.tenant = tenant
        self.at = at
        self.order = order
        """The highest `order` so far."""
        self.number = number
        """The highest number given to an id so far."""
        self.topics: dict[str, Topic] = {}
        self.fields: dict[str, Field] = {}
        """New, or changed in more than their salience."""
        self.touched: dict[str, float] = {}
        """Salience alone: the new value of fields that were accessed."""
        self.entries: list[Entry] = []
        self.edges: dict[str, Edge] = {}
        self.evidence: dict[str, Evidence | None] = {}
        """None: dealt with."""
        self.aliases: dict[str, Alias] = {}

    def __bool__(self) -> bool:
        return bool(
            self.topics or self.fields or self.touched or self.entries
            or self.edges or self.evidence or self.aliases
        )  # fmt: skip


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
