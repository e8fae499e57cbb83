"""What policies see: the things that conditions speak of, by the names of the policy language."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from steeltrap.reference_system.rules import same_value
from steeltrap.reference_system.state import (
    EXTENSION,
    NEVER,
    Edge,
    Entry,
    Field,
    Topic,
    day,
    strength,
)
from steeltrap.reference_system.statements import Fact
from steeltrap.reference_system.transition import Draft

__all__ = [
    "Conflict",
    "Considered",
    "Drift",
    "Duplicate",
    "FieldSeen",
    "Group",
    "Grown",
    "Incoming",
    "Proposed",
    "TopicConsidered",
    "TopicSeen",
    "Updated",
    "Walk",
]


class FieldSeen:
    """A field, as conditions see it."""

    def __init__(self, draft: Draft, field: Field) -> None:
        self._draft = draft
        self._field = field

    def __bool__(self) -> bool:
        return True

    @property
    def name(self) -> str:
        """Its name."""
        return self._field.name

    @property
    def topic(self) -> str:
        """Title of its topic."""
        return self._draft.view.topic(self._field.topic).title

    @property
    def value(self) -> str | None:
        """The present value."""
        return self._field.value

    @property
    def source(self) -> str:
        """Whose words the present value is."""
        return self._field.said_by

    @property
    def state(self) -> str:
        """`unset`, `set` or `review`."""
        field = self._field
        return field.state if field.holds(self._draft.at) else "unset"

    @property
    def salience(self) -> float:
        """Decayed number of accesses."""
        return strength(self._field.salience, self._draft.at, self._draft.half_life_days)

    @property
    def age(self) -> float:
        """Days since the present value began to hold."""
        return day(self._draft.at) - day(self._field.valid_from) if self._field.seq else 0.0

    @property
    def entries(self) -> int:
        """Length of the history."""
        return self._field.entries

    @property
    def mentions(self) -> int:
        """How often a value was told or restated."""
        return self._field.mentions

    @property
    def tags(self) -> tuple[str, ...]:
        """Such as `vital`."""
        return self._field.tags

    @property
    def level(self) -> int:
        """0 full, 1 compressed, 2 hidden."""
        return self._field.level

    @property
    def tokens(self) -> int:
        """Of its sentence."""
        return self._field.tokens


class TopicSeen:
    """A topic, as conditions see it."""

    def __init__(self, draft: Draft, topic: Topic) -> None:
        self._draft = draft
        self._topic = topic

    @property
    def _live(self) -> list[Field]:
        at = self._draft.at
        return [f for f in self._draft.view.fields_of(self._topic.id) if f.holds(at)]

    @property
    def title(self) -> str:
        """Its title."""
        return self._topic.title

    @property
    def fields(self) -> int:
        """Fields with a value."""
        return len(self._live)

    @property
    def salience(self) -> float:
        """Of its most salient field."""
        saliences = [f.salience for f in self._draft.view.fields_of(self._topic.id)]
        return strength(max(saliences, default=NEVER), self._draft.at, self._draft.half_life_days)

    @property
    def mentions(self) -> int:
        """Of all its fields."""
        return sum(field.mentions for field in self._live)

    @property
    def tags(self) -> tuple[str, ...]:
        """Of the topic and its fields."""
        tags = [tag for field in self._live for tag in field.tags]
        return tuple(dict.fromkeys((*self._topic.tags, *tags)))

    @property
    def tokens(self) -> int:
        """Of its active fields."""
        view = self._draft.view
        return sum(field.tokens for field in self._live if view.active(field))


class _Scene:
    def __init__(self, draft: Draft) -> None:
        self._draft = draft

    @property
    def tenant(self) -> str:
        return self._draft.tenant

    @property
    def operator(self) -> str:
        return self._draft.operator

    @property
    def footprint(self) -> int:
        return self._draft.view.footprint()

    @property
    def live(self) -> int:
        return self._draft.view.mirror.live.get(self._draft.tenant, 0)

    @property
    def interactions(self) -> int:
        return self._draft.view.mirror.orders.get(self._draft.tenant, 0)


class _Said:
    """A fact or withdrawal, as conditions see it."""

    def __init__(self, value: str | None, source: str, valid_from: str, at: str) -> None:
        self.value = value
        self.source = source
        self.tags: tuple[str, ...] = ()
        self.age = day(at) - day(valid_from)
        self.late = False
        self.corrects = False
        self.withdraws = value is None


class Incoming(_Scene):
    """`fact_received`: before a fact is placed."""

    def __init__(
        self, draft: Draft, topic: Topic, field: Field, fact: Fact | None, said_by: str, valid_from: str
    ) -> None:  # fmt: skip
        super().__init__(draft)
        self._topic = topic
        self.field = FieldSeen(draft, field)
        self.current = field.seq > 0
        self.fact = _Said(fact.value if fact else None, said_by, valid_from, draft.at)
        self.fact.late = field.seq > 0 and valid_from < field.valid_from
        if fact is not None:
            self.fact.tags = fact.tags
            self.fact.corrects = fact.corrects

    @property
    def topic(self) -> TopicSeen:
        """The host topic."""
        return TopicSeen(self._draft, self._topic)


class Updated(_Scene):
    """`field_updated`: a field has another present value."""

    def __init__(self, draft: Draft, field: Field) -> None:
        super().__init__(draft)
        self._field = field
        self.field = FieldSeen(draft, field)
        edges = [e for e in draft.view.leaving(field.id) if e.kind == EXTENSION]
        self.dependents = len({edge.target for edge in edges})
        self.dependent = self.dependent_topic = self.dependents > 0

    @property
    def topic(self) -> TopicSeen:
        """Its topic."""
        return TopicSeen(self._draft, self._draft.view.topic(self._field.topic))


class Considered(Updated):
    """`forgetting` and `unit_read`: one field is looked at."""

    def __init__(self, draft: Draft, field: Field) -> None:
        _Scene.__init__(self, draft)
        self._field = field
        self.field = FieldSeen(draft, field)


class TopicConsidered(_Scene):
    """`topic_forgetting`: a topic is looked at."""

    def __init__(self, draft: Draft, topic: Topic) -> None:
        super().__init__(draft)
        self.topic = TopicSeen(draft, topic)


class _State:
    def __init__(self, seen: FieldSeen, state: str) -> None:
        self._seen = seen
        self.state = state

    def __getattr__(self, name: str) -> object:
        return getattr(self._seen, name)


@dataclass
class _EdgeSeen:
    rule: str
    kind: str


class Walk(_Scene):
    """`dependency_changed`: one step of a propagation."""

    def __init__(self, draft: Draft, source: Field, value: str | None, target: Field, edge: Edge, hop: int) -> None:  # fmt: skip
        super().__init__(draft)
        self.source = _State(FieldSeen(draft, source), "unset" if value is None else "set")
        self.dependent = FieldSeen(draft, target)
        self.edge = _EdgeSeen(edge.rule.kind if edge.rule else "review", edge.kind)
        self.hop = hop


class Duplicate(_Scene):
    """`duplicate_topics`: two topics may be one."""

    def __init__(self, draft: Draft, topic: Topic, other: Topic, *, same_title: bool, stated: bool, similarity: float) -> None:  # fmt: skip
        super().__init__(draft)
        self.topic = TopicSeen(draft, topic)
        self.other = TopicSeen(draft, other)
        self.same_title = same_title
        self.stated = stated
        self.similarity = similarity


class Conflict(_Scene):
    """`conflicting_values`: two fields that are merged disagree."""

    def __init__(self, draft: Draft, field: Field, other: Field) -> None:
        super().__init__(draft)
        self.field = FieldSeen(draft, field)
        self.other = FieldSeen(draft, other)


class Drift(Conflict):
    """`schema_drift`: two fields of one topic may be one."""

    def __init__(self, draft: Draft, field: Field, other: Field, *, same_name: bool, similarity: float) -> None:  # fmt: skip
        super().__init__(draft, field, other)
        self.same_name = same_name
        self.similarity = similarity


@dataclass
class Group:
    """Fields of one topic about one thing."""

    name: str
    fields: int
    mentions: int


class Grown(_Scene):
    """`group_grown`: a group of fields may deserve a topic of its own."""

    def __init__(self, draft: Draft, topic: Topic, group: Group) -> None:
        super().__init__(draft)
        self.topic = TopicSeen(draft, topic)
        self.group = group


@dataclass
class _Counts:
    entries: int = 0
    superseded_current: int = 0
    outranked: int = 0
    foreign: int = 0
    unrecorded: int = 0
    dangling: int = 0
    faded_read: int = 0


class Proposed(_Scene):
    """`transition_proposed`: the whole of M_{t+1}, by what it changes."""

    def __init__(self, draft: Draft) -> None:
        super().__init__(draft)
        self.delta = counts(draft)


def counts(draft: Draft) -> _Counts:
    """What a proposed change holds that a policy may refuse."""
    view, delta = draft.view, draft.view.delta
    written: dict[str, list[Entry]] = {}
    for entry in delta.entries:
        written.setdefault(entry.field, []).append(entry)
    found = _Counts(entries=len(delta.entries), foreign=_foreign(draft))
    for field in delta.fields.values():
        old = view.mirror.fields.get(field.id)
        entries = written.get(field.id, ())
        changed = field.seq != (old.seq if old else 0) or field.value != (
            old.value if old else None
        )
        if changed and not any(e.seq == field.seq or e.op == "merged" for e in entries):
            found.unrecorded += 1
        if _superseded(field, old, entries):
            found.superseded_current += 1
        if changed and old is not None and _outranks(draft, old, field):
            found.outranked += 1
    for edge in delta.edges.values():
        ends = (edge.source, edge.target)
        if any(not (_there(draft, end)) for end in ends):
            found.dangling += 1
    for name, before in draft.served:
        new = delta.fields.get(name)
        after = new.salience if new else delta.touched.get(name, before)
        if not after > before:
            found.faded_read += 1
    return found


def _there(draft: Draft, name: str) -> bool:
    mirror, delta = draft.view.mirror, draft.view.delta
    return any(name in held for held in (mirror.fields, mirror.topics, delta.fields, delta.topics))


def _foreign(draft: Draft) -> int:
    """Writes outside the tenant; a pooled salience is foreign by intent and not counted."""
    delta, tenant = draft.view.delta, draft.tenant
    held = (delta.topics, delta.fields, delta.edges, delta.aliases, delta.evidence)
    records = [r for records in held for r in records.values() if r is not None]
    strangers = sum(record.tenant != tenant for record in records)
    fields = draft.view.mirror.fields
    if not draft.tools.shared_salience:
        strangers += sum(fields[n].tenant != tenant for n in delta.touched if n in fields)
    return strangers


def _superseded(field: Field, old: Field | None, entries: Sequence[Entry]) -> bool:
    """Whether the present value is another than that of the latest entry that holds."""
    latest = old
    best = (old.valid_from, 0) if old is not None and old.seq else ("", 0)
    value = latest.value if latest is not None else None
    for entry in entries:
        if entry.op in ("told", "corrected", "withdrawn", "derived"):
            if (entry.valid_from, entry.order) >= best:
                best, value = (entry.valid_from, entry.order), entry.value
        elif entry.op == "merged":
            return False
    if field.state == "unset" or value is None:
        return field.state != "unset" and value is None
    return field.value is None or not same_value(field.value, value)


def _outranks(draft: Draft, old: Field, new: Field) -> bool:
    """Whether a lower source has replaced the value of a higher one that still held."""
    rank = draft.tools.policies.authority
    return (
        old.seq > 0
        and old.holds(draft.at)
        and new.via == ""
        and rank(new.said_by) < rank(old.said_by)
    )
