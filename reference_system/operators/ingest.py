"""Ingestion: what was said becomes part of the state (the paper's section 4.2).

Each fact finds its host topic and its field there; the prior value stays in the history, the
topic's embedding is refreshed, and what follows from a changed field is flagged for revision.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from steeltrap.reference_system.operators.propagate import propagate
from steeltrap.reference_system.policy import Firing
from steeltrap.reference_system.rules import same_value
from steeltrap.reference_system.scenes import Incoming, Updated
from steeltrap.reference_system.state import (
    ASSOCIATION,
    EXTENSION,
    FULL,
    HIDDEN,
    Edge,
    Entry,
    Evidence,
    Field,
    Topic,
    accessed,
    key,
    moment,
    titles,
)
from steeltrap.reference_system.statements import (
    Association,
    Dependency,
    Fact,
    Place,
    Same,
    Statement,
    Withdrawal,
)
from steeltrap.reference_system.transition import Draft

__all__ = ["announce", "awake", "ingest"]


def ingest(draft: Draft, turn: str, statements: Sequence[Statement]) -> None:
    """Take in what one turn says.

    Args:
        draft: the transition under way.
        turn: id of the turn, the provenance of all of it.
        statements: what an interpreter found in it.

    Raises:
        ValueError: an instant is malformed, or a name is empty.
    """
    for said in statements:
        match said:
            case Fact():
                _fact(draft, turn, said)
            case Withdrawal():
                _withdraw(draft, turn, said)
            case Dependency():
                _depend(draft, turn, said)
            case Association():
                _associate(draft, turn, said)
            case Same():
                _same(draft, said)


# ---------------------------------------------------------------- placing


def host(draft: Draft, title: str, *, new: bool = False) -> Topic:
    """The topic of a title, made where there is none, and brought back where it was archived."""
    _named(title)
    topic = None if new else draft.view.find_topic(title)
    return draft.new_topic(" ".join(title.split())) if topic is None else awake(draft, topic)


def awake(draft: Draft, topic: Topic) -> Topic:
    """A topic, brought back if it was archived."""
    if topic.archived:
        topic = msgspec.structs.replace(topic, archived=False, order=draft.view.next_order())
        draft.view.put_topic(topic)
    return topic


def _named(title: str) -> None:
    if not key(title):
        raise ValueError("a statement names no topic; give every fact a title")


def _place(draft: Draft, place: Place) -> Field:
    topic = host(draft, place.topic)
    return _field(draft, topic, place.field)


def _field(draft: Draft, topic: Topic, name: str, about: str = "", tags: tuple[str, ...] = ()) -> Field:  # fmt: skip
    if not key(name):
        raise ValueError(f"a statement about {topic.title} names no field")
    found = draft.view.find_field(topic, name)
    return found or draft.new_field(topic, " ".join(name.split()), about, tags)


# ---------------------------------------------------------------- facts


def _fact(draft: Draft, turn: str, fact: Fact) -> None:
    valid_from = moment(fact.valid_from) if fact.valid_from else draft.at
    until = moment(fact.until) if fact.until else None
    view, changes = draft.view, len(draft.transition.changes)
    known = view.find_topic(fact.topic) if not fact.new_topic else None
    before = view.delta.topics.get(known.id) if known else None
    new = known is None or view.find_field(known, fact.field) is None
    topic = known or host(draft, fact.topic, new=fact.new_topic)
    field = _field(draft, topic, fact.field, fact.about, fact.tags)
    name = draft.title(field)
    firing = draft.first(
        "fact_received", Incoming(draft, topic, field, fact, fact.said_by, valid_from), name
    )
    if firing is None or firing.action == "reject":
        if new:
            del draft.transition.changes[changes:]
            view.take_back(field, before)
        draft.note(f"{name}: '{fact.value}' from {fact.said_by} not taken")
        return
    if valid_from > draft.at and firing.action == "supersede":
        _plan(draft, turn, field, fact, valid_from, until, firing)
        return
    awake(draft, view.topic(field.topic))
    _take_in(draft, turn, field, fact, valid_from, until, firing)


def _plan(
    draft: Draft, turn: str, field: Field, fact: Fact, valid_from: str, until: str | None, firing: Firing
) -> None:  # fmt: skip
    """A value that begins to hold later: the present one stands until then."""
    _orderly(draft, field, valid_from, until)
    view = draft.view
    entry = draft.write(
        field, "planned", turn=turn, said_by=fact.said_by, policy=firing.policy, value=fact.value,
        valid_from=valid_from, until=until,
    )  # fmt: skip
    view.put_field(msgspec.structs.replace(
        draft.tagged(field, fact.tags), entries=entry.seq, order=entry.order
    ))  # fmt: skip
    view.put_evidence(Evidence(
        view.new_id("e"), draft.tenant, "due", field.id, fact.said_by, entry.seq, entry.order,
        valid_from, firing.policy,
    ))  # fmt: skip
    draft.note(f"{draft.title(field)} = {fact.value} from {valid_from} on")


def arrive(draft: Draft, field: Field, planned: Entry) -> None:
    """The time of a planned value has come: it is taken in as if it were said now."""
    topic = draft.view.topic(field.topic)
    fact = Fact(
        topic.title, field.name, planned.value or "", planned.said_by, planned.valid_from, planned.until
    )  # fmt: skip
    scene = Incoming(draft, topic, field, fact, planned.said_by, planned.valid_from)
    firing = draft.first("fact_received", scene, draft.title(field))
    if firing is None or firing.action == "reject":
        draft.note(f"{draft.title(field)}: '{planned.value}' from {planned.said_by} not taken")
        return
    awake(draft, topic)
    _take_in(draft, planned.turn, field, fact, planned.valid_from, planned.until, firing)


def _orderly(draft: Draft, field: Field, valid_from: str, until: str | None) -> None:
    """Refuse an end before the beginning."""
    if until is not None and until <= valid_from:
        raise ValueError(
            f"{draft.title(field)} would end ({until}) before it begins ({valid_from}); "
            "say also from when it held, in valid_from"
        )


def _take_in(
    draft: Draft, turn: str, field: Field, fact: Fact, valid_from: str, until: str | None, firing: Firing
) -> None:  # fmt: skip
    """What a value is to its field: another one beside it, the same again, news, or late news."""
    rank = draft.tools.policies.authority
    same = field.state == "set" and field.holds(draft.at) and same_value(field.value or "", fact.value)  # fmt: skip
    higher = rank(fact.said_by) > rank(field.said_by)
    if not same:
        _orderly(draft, field, valid_from, until)
    if firing.action == "keep_both":
        _beside(draft, turn, field, fact, valid_from, until, firing)
    elif same and not higher:
        _again(draft, turn, field, fact, until, firing)
    elif same:
        fact = msgspec.structs.replace(fact, corrects=False)
        since = max(valid_from, field.valid_from)
        _supersede(draft, turn, field, fact, since, until or field.until, firing)
    elif field.seq and valid_from < field.valid_from and not (fact.corrects and field.holds(draft.at)):  # fmt: skip
        _late(draft, turn, field, fact, valid_from, until, firing)
    else:
        _supersede(draft, turn, field, fact, valid_from, until, firing)


def _supersede(
    draft: Draft, turn: str, field: Field, fact: Fact, valid_from: str, until: str | None, firing: Firing
) -> None:  # fmt: skip
    """A value becomes current; the one before stays in the history."""
    corrects = fact.corrects and field.seq > 0 and field.holds(draft.at)
    if corrects:
        field = void(draft, turn, field, fact.said_by, firing.policy)
        valid_from = field.valid_from
    entry = draft.write(
        field, "corrected" if corrects else "told", turn=turn, said_by=fact.said_by,
        policy=firing.policy, value=fact.value, valid_from=valid_from, until=until,
    )  # fmt: skip
    _present(draft, field, entry, fact.tags)


def void(draft: Draft, turn: str, field: Field, said_by: str, policy: str) -> Field:
    """The present value was never true; it stays in the history, marked so."""
    entry = draft.write(field, "void", turn=turn, said_by=said_by, policy=policy, about=field.seq)
    field = msgspec.structs.replace(field, entries=entry.seq, order=entry.order)
    draft.view.put_field(field)
    return field


def _present(draft: Draft, field: Field, entry: Entry, tags: tuple[str, ...] = ()) -> None:
    """An entry is the present of its field, which is thereby accessed and active again."""
    withdrawn = entry.value is None
    salience = accessed(field.salience, draft.at, draft.half_life_days)
    field = draft.tagged(field, tags)
    field = msgspec.structs.replace(
        field, state="unset" if withdrawn else "set", value=entry.value, seq=entry.seq,
        valid_from=entry.valid_from, until=entry.until, turn=entry.turn, said_by=entry.said_by,
        sources=entry.sources, via=entry.via, cause=entry.order, entries=entry.seq,
        mentions=field.mentions + 1, order=entry.order, salience=salience, level=FULL,
        tokens=draft.tokens(field, entry.value),
    )  # fmt: skip
    draft.view.put_field(field)
    draft.note(f"{draft.title(field)} = {entry.value if not withdrawn else 'nothing'}")
    _pool(draft, field)
    announce(draft, field, entry)


def _pool(draft: Draft, field: Field) -> None:
    """With one salience for all tenants, fields of the same name rise together."""
    if draft.tools.shared_salience:
        for name in draft.peers(field):
            other = draft.view.field(name)
            draft.view.touch(name, accessed(other.salience, draft.at, draft.half_life_days))


def announce(draft: Draft, field: Field, entry: Entry) -> None:
    """What follows from a changed field is flagged for revision, or revised at once."""
    scene = Updated(draft, field)
    for firing in draft.all("field_updated", scene, draft.title(field)):
        if firing.action == "propagate":
            propagate(draft, field, entry)
        elif firing.action == "flag_for_revision":
            view = draft.view
            view.put_evidence(Evidence(
                view.new_id("e"), draft.tenant, "dependency", field.id, "", entry.seq,
                entry.order, draft.at, firing.policy,
            ))  # fmt: skip


def _again(draft: Draft, turn: str, field: Field, fact: Fact, until: str | None, firing: Firing) -> None:  # fmt: skip
    """The present value once more: a source, and perhaps an end.

    Repetition is no access and makes nothing more salient; but what was just said is not hidden.
    """
    entry = draft.write(
        field, "ends" if until else "restated", turn=turn, said_by=fact.said_by,
        policy=firing.policy, until=until, about=field.seq,
    )  # fmt: skip
    draft.view.put_field(msgspec.structs.replace(
        draft.tagged(field, fact.tags), entries=entry.seq, mentions=field.mentions + 1,
        order=entry.order, until=until or field.until,
        level=FULL if field.level == HIDDEN else field.level,
    ))  # fmt: skip
    draft.note(f"{draft.title(field)} said again")


def _late(
    draft: Draft, turn: str, field: Field, fact: Fact, valid_from: str, until: str | None, firing: Firing
) -> None:  # fmt: skip
    """News about a time before the present value: history, and the present stands."""
    entry = draft.write(
        field, "told", turn=turn, said_by=fact.said_by, policy=firing.policy, value=fact.value,
        valid_from=valid_from, until=until,
    )  # fmt: skip
    draft.view.put_field(msgspec.structs.replace(field, entries=entry.seq, order=entry.order))
    draft.note(f"{draft.title(field)} was {fact.value} from {valid_from}")


def _beside(
    draft: Draft, turn: str, field: Field, fact: Fact, valid_from: str, until: str | None, firing: Firing
) -> None:  # fmt: skip
    """A value that is kept beside the present one and is not current."""
    entry = draft.write(
        field, "contested", turn=turn, said_by=fact.said_by, policy=firing.policy,
        value=fact.value, valid_from=valid_from, until=until,
    )  # fmt: skip
    draft.view.put_field(msgspec.structs.replace(field, entries=entry.seq, order=entry.order))
    draft.note(f"{draft.title(field)}: '{fact.value}' from {fact.said_by} kept beside")


def _withdraw(draft: Draft, turn: str, said: Withdrawal) -> None:
    topic = draft.view.find_topic(said.topic)
    field = draft.view.find_field(topic, said.field) if topic else None
    plans = draft.view.plans(field.id) if field else []
    if topic is None or field is None or not (field.holds(draft.at) or plans):
        draft.note(f"{said.topic} / {said.field} has no value to withdraw")
        return
    scene = Incoming(draft, topic, field, None, said.said_by, draft.at)
    firing = draft.first("fact_received", scene, draft.title(field))
    if firing is None or firing.action != "supersede":
        draft.note(f"{draft.title(field)}: withdrawal by {said.said_by} not taken")
        return
    field = _cancel(draft, turn, field, plans, said.said_by, firing.policy)
    if not field.holds(draft.at):
        return
    entry = draft.write(
        field, "withdrawn", turn=turn, said_by=said.said_by, policy=firing.policy,
        valid_from=max(draft.at, field.valid_from),
    )  # fmt: skip
    _present(draft, field, entry)


def _cancel(
    draft: Draft, turn: str, field: Field, plans: list[Evidence], said_by: str, policy: str
) -> Field:
    """Values that would hold from a later time on will not, unless a higher source said so."""
    rank = draft.tools.policies.authority
    for plan in plans:
        if rank(said_by) >= rank(plan.other):
            entry = draft.write(field, "void", turn=turn, said_by=said_by, policy=policy, about=plan.seq)  # fmt: skip
            field = msgspec.structs.replace(field, entries=entry.seq, order=entry.order)
            draft.view.put_field(field)
            draft.view.resolve(plan.id)
            draft.note(f"{draft.title(field)}: what was to hold from {plan.at} on is withdrawn")
    return field


# ---------------------------------------------------------------- structure


def _depend(draft: Draft, turn: str, said: Dependency) -> None:
    source, target = _place(draft, said.source), _place(draft, said.target)
    if source.id == target.id:
        raise ValueError(f"{draft.title(source)} cannot follow from itself")
    view = draft.view
    known = [e for e in view.leaving(source.id) if view.survivor(e.target).id == target.id]
    if not known:
        view.put_edge(Edge(
            view.new_id("x"), draft.tenant, EXTENSION, source.id, target.id, said.rule, turn,
            view.next_order(),
        ))  # fmt: skip
    for edge in known:
        if edge.rule != said.rule:
            view.put_edge(msgspec.structs.replace(edge, rule=said.rule, turn=turn, order=view.next_order()))  # fmt: skip
    draft.note(f"{draft.title(target)} follows from {draft.title(source)}")


def _associate(draft: Draft, turn: str, said: Association) -> None:
    one, other = host(draft, said.topic), host(draft, said.other)
    view = draft.view
    edges = (*view.leaving(one.id), *view.arriving(one.id))
    if one.id == other.id or any(other.id in (edge.source, edge.target) for edge in edges):
        return
    view.put_edge(Edge(
        view.new_id("x"), draft.tenant, ASSOCIATION, one.id, other.id, None, turn,
        view.next_order(),
    ))  # fmt: skip
    draft.note(f"{one.title} and {other.title} are related")


def _same(draft: Draft, said: Same) -> None:
    """Evidence that two titles are one; where only one is known, the other is a name for it."""
    _named(said.topic)
    _named(said.other)
    one, other = draft.view.find_topic(said.topic), draft.view.find_topic(said.other)
    view = draft.view
    if one is not None and other is not None and one.id != other.id:
        view.put_evidence(Evidence(
            view.new_id("e"), draft.tenant, "duplicate", one.id, other.id, 0,
            view.next_order(), draft.at, "stated",
        ))  # fmt: skip
    elif one is None or other is None:
        known, name = (one, said.other) if one is not None else (other, said.topic)
        known = known or host(draft, said.topic)
        view.put_alias(titles(draft.tenant), name if key(name) != key(known.title) else said.other, known.id)  # fmt: skip
