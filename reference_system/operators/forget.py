"""Forgetting: attenuation by salience, rung by rung, and never by age or size alone.

Fields are looked at in the order of their salience, the least first, and policies say what
becomes of each: its history compressed, the field hidden, its topic archived. Nothing is
deleted: what was attenuated is had back by explicit lookup.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator

import msgspec

from steeltrap.reference_system.scenes import Considered, TopicConsidered
from steeltrap.reference_system.state import COMPRESSED, HIDDEN, Field, strength
from steeltrap.reference_system.transition import Draft

__all__ = ["forget"]


def forget(draft: Draft) -> None:
    """Attenuate what policies find faded, until the rest is salient and within the bound.

    What is looked at is active, so its number is limited by the bound and not by the store.
    """
    seen: dict[tuple[float, str], None] = {}
    topics: dict[str, None] = {}
    hidden = []
    for field in _fading(draft, seen):
        if _consider(draft, field):
            hidden.append(field)
        topics[field.topic] = None
    _spare(draft, hidden)
    for field in _hidden(draft, seen):
        topics[field.topic] = None
    for name in topics:
        _consider_topic(draft, name)


def _fading(draft: Draft, seen: dict[tuple[float, str], None]) -> Iterator[Field]:
    """Active fields that may be attenuated, the least salient first."""
    mirror = draft.view.mirror
    heap = mirror.fading.get(draft.tenant, [])
    while heap and _due(draft, heap[0][0]):
        salience, name = item = heapq.heappop(heap)
        field = mirror.fields.get(name)
        if field is None or field.salience != salience or item in seen:
            continue
        if draft.view.active(field):
            seen[item] = None
            draft.looked_at.append(name)
            yield field


def _due(draft: Draft, salience: float) -> bool:
    """Whether a field of this salience may be attenuated: it has faded, or room is short."""
    settings = draft.tools.policies.settings
    faded = max(float(settings.get(name, 0.0)) for name in ("summary_at", "remove_at"))
    if strength(salience, draft.at, draft.half_life_days) < faded:
        return True
    return draft.view.footprint() > float(settings.get("bound", "inf"))


def _hidden(draft: Draft, seen: dict[tuple[float, str], None]) -> Iterator[Field]:
    """Hidden fields that have faded so far that their topics may be archived."""
    mirror = draft.view.mirror
    heap = mirror.hidden.get(draft.tenant, [])
    archive_at = float(draft.tools.policies.settings.get("archive_at", 0.0))
    while heap and strength(heap[0][0], draft.at, draft.half_life_days) < archive_at:
        salience, name = item = heapq.heappop(heap)
        field = mirror.fields.get(name)
        if field is None or field.salience != salience or field.level < HIDDEN or item in seen:
            continue
        if not mirror.topics[field.topic].archived:
            seen[item] = None
            draft.looked_at.append(name)
            yield field


def _spare(draft: Draft, hidden: list[Field]) -> None:
    """Show again what was hidden for something that could not stay in any case.

    A value that alone is beyond the bound is often the most salient, since it was just said, and
    is looked at last; what went before it made no room for it.
    """
    bound = float(draft.tools.policies.settings.get("bound", "inf"))
    if all(field.tokens <= bound for field in hidden):
        return
    for field in reversed(hidden):
        draft.view.put_field(field)
        if not _consider(draft, field):
            draft.note(f"{draft.title(field)} stays: what it made room for is gone too")


def _consider(draft: Draft, field: Field) -> bool:
    """What policies say of a field; whether it is hidden."""
    scene = Considered(draft, field)
    firing = draft.tools.policies.first("forgetting", scene)
    if firing is not None and firing.action != "protect":
        # What stays as it is would fill the record of a memory in which all is vital.
        draft.transition.firings.append((firing, draft.title(field)))
    level = {"compress": COMPRESSED, "hide": HIDDEN}.get(firing.action if firing else "", 0)
    if level > field.level:
        order = draft.view.next_order()
        draft.view.put_field(msgspec.structs.replace(field, level=level, order=order))
        draft.note(f"{draft.title(field)} {'compressed' if level == COMPRESSED else 'hidden'}")
    return level == HIDDEN


def _consider_topic(draft: Draft, name: str) -> None:
    """Archive a topic that shows nothing any more, if a policy says so."""
    topic = draft.view.topic(name)
    if topic.archived or any(draft.view.active(field) for field in draft.view.fields_of(name)):
        return
    firing = draft.first("topic_forgetting", TopicConsidered(draft, topic), topic.title)
    if firing is not None and firing.action == "archive":
        order = draft.view.next_order()
        draft.view.put_topic(msgspec.structs.replace(topic, archived=True, order=order))
        draft.note(f"{topic.title} archived")
