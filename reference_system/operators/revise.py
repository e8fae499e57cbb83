"""Revision: evidence within the state is repaired (the paper's section 4.2).

Four kinds of evidence: a dependent whose source changed, two topics that are one, two fields
of one topic that are one, and a group of fields that deserves a topic of its own. Every piece
of evidence is one transition. Nothing is lost by a repair: fields that are merged keep their
histories and lead to the one that goes on.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from steeltrap.reference_system.operators.ingest import announce, arrive, awake
from steeltrap.reference_system.operators.propagate import doubt, propagate
from steeltrap.reference_system.scenes import Conflict, Drift, Duplicate, Group, Grown
from steeltrap.reference_system.state import (
    ASSOCIATION,
    EXTENSION,
    Edge,
    Entry,
    Evidence,
    Field,
    Topic,
    key,
    number,
    titles,
)
from steeltrap.reference_system.transition import Draft
from steeltrap.reference_system.view import View

__all__ = ["detect", "mark", "repair"]

Near = Callable[[Topic], list[tuple[str, float]]]
Embed = Callable[[Sequence[str]], NDArray[np.float32]]

State = Literal["unset", "set", "review"]


def repair(draft: Draft, evidence: Evidence, entry: Callable[[str, int], Entry]) -> None:
    """Deal with one piece of evidence, as policies say.

    Args:
        draft: the transition under way.
        evidence: what was found.
        entry: looks up a line of a history, by field and `seq`.
    """
    if evidence.id:
        draft.view.resolve(evidence.id)
    match evidence.kind:
        case "dependency":
            origin = draft.view.survivor(evidence.subject)
            seq = evidence.seq if origin.id == evidence.subject else origin.seq
            propagate(draft, origin, entry(origin.id, seq))
        case "duplicate":
            _duplicate(draft, evidence)
        case "drift":
            _drift(draft, evidence)
        case "group":
            _promote(draft, evidence)
        case "due":
            field = draft.view.survivor(evidence.subject)
            arrive(draft, field, entry(evidence.subject, evidence.seq))


def mark(draft: Draft, evidence: Evidence, entry: Callable[[str, int], Entry]) -> None:
    """Where a repair was refused: what directly follows from the change waits for review."""
    if not evidence.id:
        return
    draft.view.resolve(evidence.id)
    if evidence.kind == "dependency":
        origin, cause = draft.view.field(evidence.subject), entry(evidence.subject, evidence.seq)
        for edge in draft.view.leaving(origin.id):
            if edge.kind == EXTENSION and edge.order <= cause.order:
                doubt(draft, origin, draft.view.survivor(edge.target), cause, "refused")


# ---------------------------------------------------------------- finding evidence


SIMILAR: Final = 0.8
"""Cosine from which two field names of a topic are put before the policies."""


def spelled(title: str) -> str:
    """A title without case and separators; signs that make another name, as in C++, count.

    One of separators alone stays as it is.
    """
    return " ".join(re.split(r"[\s\-_/.,:;'’\"()]+", key(title))).strip() or key(title)


def loose(name: str) -> str:
    """A field name without case, separators and plural."""
    return re.sub(r"(\w{3,}[^\Ws])s\b", r"\1", spelled(name))


def detect(view: View, topics: dict[str, None], near: Near, embed: Embed | None) -> list[Evidence]:
    """Evidence in topics that have changed: duplicates, drift and groups. Proposes nothing.

    Args:
        view: the state.
        topics: ids of the topics to look at.
        near: the topics nearest to one in meaning, with the cosine.
        embed: unit vectors of texts, for field names that mean about the same.
    """
    titles: dict[str, list[str]] = {}
    for topic in view.topics():
        titles.setdefault(spelled(topic.title), []).append(topic.id)
    found: dict[tuple[str, str, str], None] = {}
    for name in sorted(topics, key=number):
        topic = view.topic(name)
        if topic.into:
            continue
        others = titles.get(spelled(topic.title), [])
        for other in (*others, *(other for other, _ in near(topic))):
            if other != name:
                first, second = sorted((name, other), key=number)
                found["duplicate", first, second] = None
        _detect_within(view, topic, embed, found)
    return [
        Evidence("", view.tenant, kind, subject, other, 0, 0, view.at, "found")  # type: ignore[arg-type]
        for kind, subject, other in found
    ]


def _detect_within(view: View, topic: Topic, embed: Embed | None, found: dict[tuple[str, str, str], None]) -> None:  # fmt: skip
    fields = [field for field in view.fields_of(topic.id) if "note" not in field.tags]
    named: dict[str, list[Field]] = {}
    for field in fields:
        alike = named.setdefault(loose(field.name), [])
        for earlier in alike:
            found["drift", earlier.id, field.id] = None
        alike.append(field)
    if embed is not None and len(fields) > 1:
        vectors = embed([field.name for field in fields])
        for one, other in np.argwhere(np.triu(vectors @ vectors.T, 1) >= SIMILAR).tolist():
            found["drift", fields[one].id, fields[other].id] = None
    for field in fields:
        if field.about and key(field.about) != key(topic.title):
            found["group", topic.id, field.about] = None


# ---------------------------------------------------------------- two topics that are one


def _duplicate(draft: Draft, evidence: Evidence) -> None:
    view = draft.view
    topic, other = view.host(evidence.subject), view.host(evidence.other)
    if topic.id == other.id:
        return
    scene = Duplicate(
        draft, topic, other, same_title=spelled(topic.title) == spelled(other.title),
        stated=evidence.policy == "stated", similarity=_cosine(topic, other),
    )  # fmt: skip
    firing = draft.first("duplicate_topics", scene, f"{topic.title} and {other.title}")
    if firing is not None and firing.action == "merge":
        _merge(draft, topic, other)


def _cosine(topic: Topic, other: Topic) -> float:
    if not topic.vector or not other.vector:
        return 0.0
    one, two = (np.frombuffer(t.vector, dtype=np.float32) for t in (topic, other))
    return float(one @ two)


def _merge(draft: Draft, topic: Topic, other: Topic) -> None:
    """Move all that `other` has into `topic`; fields of one name are reconciled."""
    view = draft.view
    topic = topic if other.archived else awake(draft, topic)
    for field in list(view.fields_of(other.id)):
        _bring(draft, field, topic, field.name)
    for alias in view.names_of(other.id):
        if view.find_field(topic, alias.name) is None:
            view.put_alias(topic.id, alias.name, alias.target)
    for edge in (*view.leaving(other.id), *view.arriving(other.id)):
        source, target = (
            topic.id if end == other.id else end for end in (edge.source, edge.target)
        )
        if source != target:
            view.put_edge(msgspec.structs.replace(
                edge, id=view.new_id("x"), source=source, target=target, order=view.next_order()
            ))  # fmt: skip
    view.put_alias(titles(draft.tenant), other.title, topic.id)
    view.put_topic(msgspec.structs.replace(
        other, into=topic.id, summary="", vector=b"", order=view.next_order(), archived=False
    ))  # fmt: skip
    draft.refresh(topic.id)
    draft.note(f"{other.title} merged into {topic.title}")


def _bring(draft: Draft, field: Field, topic: Topic, name: str) -> None:
    """A field of another topic is this one's from now on, or one with what is called so here."""
    field = draft.view.field(field.id)  # one that was brought before may have led to it
    here = draft.view.find_field(topic, name)
    if field.into:
        return
    if here is None or here.id == field.id:
        _move(draft, field, topic, name)
    else:
        _absorb(draft, here, field)


def _move(draft: Draft, field: Field, topic: Topic, name: str) -> None:
    """Give a field to another topic; its former place leads to it."""
    view = draft.view
    view.put_alias(field.topic, field.name, field.id)
    moved = msgspec.structs.replace(field, topic=topic.id, name=name, order=view.next_order())
    view.put_field(msgspec.structs.replace(moved, tokens=draft.tokens(moved, moved.value)))
    _follow(draft, field, topic.id)


def _follow(draft: Draft, field: Field, topic: str) -> None:
    """What was merged into a field goes where it goes, so that all of it can be erased with it."""
    view = draft.view
    for old in view.absorbed(field.id):
        view.put_field(msgspec.structs.replace(old, topic=topic, order=view.next_order()))
        _follow(draft, old, topic)


def _absorb(draft: Draft, field: Field, other: Field) -> None:
    """Two fields become one: both histories stay, and a policy says which value holds."""
    view = draft.view
    before = field
    winner, policy, state, both = _settle(draft, field, other)
    view.put_alias(other.topic, other.name, field.id)
    for edge in view.leaving(other.id):
        view.put_edge(msgspec.structs.replace(
            edge, id=view.new_id("x"), source=field.id
        ))  # fmt: skip
    view.put_field(msgspec.structs.replace(
        other, topic=field.topic, into=field.id, order=view.next_order()
    ))  # fmt: skip
    _follow(draft, other, field.topic)
    field = msgspec.structs.replace(
        field, mentions=field.mentions + other.mentions, order=view.next_order(),
        salience=max(field.salience, other.salience), level=min(field.level, other.level),
        tags=tuple(dict.fromkeys((*field.tags, *other.tags))),
    )  # fmt: skip
    if both:
        field = _contested(draft, field, before if winner is other else other, policy)
    view.put_field(msgspec.structs.replace(field, tokens=draft.tokens(field, field.value)))
    if winner.seq:
        _take_over(draft, field, winner, policy, state)


def _settle(draft: Draft, field: Field, other: Field) -> tuple[Field, str, State, bool]:
    """Which of two values holds, the policy that says so, the state that it has, and whether the
    other one is recorded beside it.
    """
    if not (field.seq and other.seq):
        won = field if field.seq else other
        return won, "merged", won.state, False
    firing = draft.first("conflicting_values", Conflict(draft, field, other), draft.title(field))
    won = max((field, other), key=lambda f: (f.valid_from, f.cause))
    if firing is None:
        return won, "newest", won.state, False
    if firing.action == "keep_ranking":
        rank = draft.tools.policies.authority
        won = max((field, other), key=lambda f: (rank(f.said_by), f.valid_from, f.cause))
    asked = firing.action == "flag" and won.state != "unset"
    state: State = "review" if asked else won.state
    return won, firing.policy, state, firing.action == "keep_both"


def _contested(draft: Draft, field: Field, loser: Field, policy: str) -> Field:
    """The value that does not hold is recorded beside the one that does."""
    entry = draft.write(
        field, "contested", turn=loser.turn, said_by=loser.said_by, policy=policy,
        value=loser.value, valid_from=loser.valid_from, until=loser.until, sources=loser.sources,
    )  # fmt: skip
    return msgspec.structs.replace(field, entries=entry.seq)


def _take_over(draft: Draft, field: Field, winner: Field, policy: str, state: State) -> None:
    """Make the winner's value the present one of `field`, with an entry that says so.

    Where that is another value to those who depend on either field, they are told (C3).
    """
    entry = draft.write(
        field, "merged", turn=winner.turn, said_by=winner.said_by, policy=policy,
        value=winner.value, valid_from=winner.valid_from, until=winner.until,
        sources=winner.sources, about=winner.seq, via=winner.id,
    )  # fmt: skip
    new = msgspec.structs.replace(
        field, state=state, value=winner.value, seq=entry.seq, valid_from=winner.valid_from,
        until=winner.until, turn=winner.turn, said_by=winner.said_by, sources=winner.sources,
        via=winner.via, cause=winner.cause, entries=entry.seq, order=entry.order,
        tokens=draft.tokens(field, winner.value),
    )  # fmt: skip
    draft.view.put_field(new)
    draft.note(f"{draft.title(new)} = {new.value}, of two histories")
    announce(draft, new, entry)


# ---------------------------------------------------------------- fields within a topic


def _drift(draft: Draft, evidence: Evidence) -> None:
    view = draft.view
    field, other = view.survivor(evidence.subject), view.survivor(evidence.other)
    if field.id == other.id or field.topic != other.topic:
        return
    same = loose(field.name) == loose(other.name)
    similarity = float(same)
    if draft.tools.embed is not None:
        one, two = draft.tools.embed([field.name, other.name])
        similarity = float(one @ two)
    scene = Drift(draft, field, other, same_name=same, similarity=similarity)
    firing = draft.first("schema_drift", scene, f"{draft.title(field)} and {other.name}")
    if firing is not None and firing.action == "merge":
        _absorb(draft, field, other)
        draft.refresh(field.topic)


def _promote(draft: Draft, evidence: Evidence) -> None:
    """A group of fields becomes a topic of its own (as *Alice* in the paper's figure 3)."""
    view = draft.view
    topic, name = view.host(evidence.subject), evidence.other
    fields = [f for f in view.fields_of(topic.id) if key(f.about) == key(name)]
    group = Group(name, len(fields), sum(field.mentions for field in fields))
    if not fields or view.find_topic(name) == topic:
        return
    firing = draft.first("group_grown", Grown(draft, topic, group), f"{name} in {topic.title}")
    if firing is None or firing.action != "promote":
        return
    own = view.find_topic(name) or draft.new_topic(name)
    own = own if topic.archived else awake(draft, own)
    for field in fields:
        _bring(draft, field, own, _shortened(field.name, name))
    view.put_edge(Edge(
        view.new_id("x"), draft.tenant, ASSOCIATION, topic.id, own.id, None, fields[0].turn,
        view.next_order(),
    ))  # fmt: skip
    draft.refresh(topic.id)
    draft.refresh(own.id)
    draft.note(f"{name} promoted out of {topic.title}")


def _shortened(field: str, group: str) -> str:
    """A field's name without that of its group: 'Alice role' and "Alice's role" -> 'role'."""
    short = re.sub(rf"^{re.escape(group)}('s)?\s+", "", field, flags=re.IGNORECASE).strip()
    return short or field
