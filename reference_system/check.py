"""Invariants of a store: what must be true of M on disk, whatever has happened to it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping

from steeltrap.reference_system.mirror import Mirror
from steeltrap.reference_system.state import HIDDEN, Entry, Field, PolicyText, Topic
from steeltrap.reference_system.stores.base import Store
from steeltrap.reference_system.timeline import present
from steeltrap.reference_system.transition import sentence

__all__ = ["problems"]


def problems(
    store: Store, mirror: Mirror, policies: list[PolicyText], count: Callable[[str], int]
) -> list[str]:
    """Everything that is wrong, in words; empty if all is well.

    Args:
        store: read whole.
        mirror: the present that operators work on; it must agree with the store.
        policies: those that operators follow.
        count: tokens of a text.
    """
    found: list[str] = []
    stored = Mirror()
    try:
        kept = stored.load(store.load())
        found += _differences(stored, mirror)
        if kept and [policy.text for policy in kept] != [policy.text for policy in policies]:
            found.append("the stored policies are not those that operators follow")
        found += _structure(stored)
        for field in stored.fields.values():
            found += _history(field, store.entries([field.id]))
            found += _field(stored, field, count)
        found += _footprints(stored, mirror)
    except (ValueError, TypeError, KeyError) as error:
        found.append(f"a record cannot be read: {error}")
    return found


def _footprints(stored: Mirror, mirror: Mirror) -> Iterator[str]:
    """The tokens that were counted on the way are those of what is active."""
    for tenant, topics in stored.of_tenant.items():
        fields = [stored.fields[name] for topic in topics for name in stored.of_topic[topic]]
        stored.clocks[tenant] = mirror.clocks.get(tenant, "")
        tokens = sum(field.tokens for field in fields if stored.active(field))
        counted = mirror.footprint.get(tenant, 0)
        if tokens != counted:
            yield f"{tenant}: the footprint is said to be {counted} and is {tokens}"


def _differences(stored: Mirror, mirror: Mirror) -> Iterator[str]:
    """Where memory and store disagree."""
    for kind in ("topics", "fields", "edges", "evidence", "aliases"):
        here, there = getattr(mirror, kind), getattr(stored, kind)
        for name in dict.fromkeys((*here, *there)):
            if here.get(name) != there.get(name):
                yield f"{kind} {name}: in memory {here.get(name)}, stored {there.get(name)}"


def _structure(mirror: Mirror) -> Iterator[str]:
    """Edges, aliases and evidence lead to what exists, within one tenant."""
    known = mirror.topics.keys() | mirror.fields.keys()
    for edge in mirror.edges.values():
        if not {edge.source, edge.target} <= known:
            yield f"edge {edge.id} leads from {edge.source} to {edge.target}, and one is not there"
        elif {_tenant(mirror, edge.source), _tenant(mirror, edge.target)} != {edge.tenant}:
            yield f"edge {edge.id} of {edge.tenant} leads to another tenant"
    for alias in mirror.aliases.values():
        if alias.target not in known:
            yield f"the name {alias.name} leads to {alias.target}, which is not there"
    for evidence in mirror.evidence.values():
        if evidence.subject not in known:
            yield f"evidence {evidence.id} speaks of {evidence.subject}, which is not there"
    for topic in mirror.topics.values():
        if topic.into and topic.into not in mirror.topics:
            yield f"topic {topic.id} was merged into {topic.into}, which is not there"
    for held in (mirror.topics, mirror.fields):
        for name in held:
            if _circles(held, name):
                yield f"{name} was merged into itself"


def _tenant(mirror: Mirror, name: str) -> str:
    return (mirror.topics.get(name) or mirror.fields[name]).tenant


def _circles(held: Mapping[str, Topic | Field], name: str) -> bool:
    """Whether what something was merged into leads nowhere."""
    seen = {name}
    while name in held and held[name].into:
        name = held[name].into
        if name in seen:
            return True
        seen.add(name)
    return False


def _field(mirror: Mirror, field: Field, count: Callable[[str], int]) -> Iterator[str]:
    topic = mirror.topics.get(field.topic)
    if topic is None:
        yield f"field {field.id} belongs to {field.topic}, which is not there"
        return
    if topic.tenant != field.tenant:
        yield f"field {field.id} of {field.tenant} belongs to a topic of {topic.tenant}"
    if field.into and field.into not in mirror.fields:
        yield f"field {field.id} was merged into {field.into}, which is not there"
    if not 0 <= field.level <= HIDDEN:
        yield f"field {field.id} is on rung {field.level} of a ladder of {HIDDEN}"
    if math.isnan(field.salience) or field.salience == math.inf:
        yield f"field {field.id} has salience {field.salience}"
    if field.value is not None and not field.into:
        text = sentence(topic.title, field.name, field.value, note="note" in field.tags)
        if field.tokens != count(text):
            yield f"field {field.id} is said to have {field.tokens} tokens and has {count(text)}"


def _history(field: Field, entries: list[Entry]) -> Iterator[str]:
    """The present of a field is what its history says."""
    if [entry.seq for entry in entries] != list(range(1, field.entries + 1)):
        yield f"field {field.id} has {field.entries} entries and lines {[e.seq for e in entries]}"
        return
    orders = [entry.order for entry in entries]
    if orders != sorted(set(orders)):
        yield f"field {field.id}: its entries were not written in their order"
    now = present(entries)
    held = (
        (now.seq, now.value, now.valid_from, now.turn, now.said_by)
        if now
        else (0, None, "", "", "")
    )
    if held != (field.seq, field.value, field.valid_from, field.turn, field.said_by):
        yield f"field {field.id} holds {field.value} (line {field.seq}); its history says {held[1]} (line {held[0]})"  # fmt: skip
    if (field.state == "unset") != (field.value is None):
        yield f"field {field.id} is {field.state} and has {field.value}"
    ends = [e.until for e in entries if e.op == "ends" and e.about == field.seq]
    until = ends[-1] if ends else now.until if now else None
    if field.until != until:
        yield f"field {field.id} is said to hold until {field.until}; its history says {until}"
