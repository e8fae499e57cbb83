"""Retrieval: a question is routed and answered, and what was read is reinforced (C6).

Three modes (the paper's section 4.2). Topic: the present values of the fields asked for, or of
the topics nearest in meaning. Temporal: what held before, or at an instant. Structural: what
follows from what. What a policy reinforces is written in the same transition that reads it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import msgspec

from steeltrap.reference_system.operators.ingest import awake
from steeltrap.reference_system.scenes import Considered
from steeltrap.reference_system.state import ASSOCIATION, FULL, Edge, Field, accessed, moment
from steeltrap.reference_system.statements import Place, Question
from steeltrap.reference_system.transition import Draft
from steeltrap.reference_system.view import View

__all__ = ["Found", "reinforce", "select", "wake"]


@dataclass(frozen=True)
class Found:
    """A field that answers a question."""

    field: Field
    as_of: str | None = None
    """temporal: serve what held at this instant; None: what held before, and then the present."""
    recorded_by: str | None = None
    """Leave out what was learned after this instant."""
    because: str = ""
    """structural: how it hangs together with what was asked about."""


Route = Callable[[str, str, int], Sequence[str]]
"""Tenant, text, limit -> ids of the fields nearest in meaning, best first."""


def select(draft: Draft, question: Question, limit: int, route: Route) -> list[Found]:
    """The fields that answer a question, best first.

    Args:
        draft: the transition under way.
        question: what is asked.
        limit: at most so many fields.
        route: finds fields by meaning where the question names no place.
    """
    fields = _asked(draft, question, limit, route)
    match question.mode:
        case "topic":
            named = _named(draft, question)
            found = [
                Found(f)
                for f in fields
                if draft.view.active(f) or (f.id in named and f.holds(draft.at))
            ]
        case "temporal":
            of = moment(question.as_of) if question.as_of else None
            by = moment(question.recorded_by) if question.recorded_by else None
            found = [Found(f, as_of=of, recorded_by=by) for f in fields]
        case "structural":
            found = _related(draft, fields)
    return found[:limit]


def _asked(draft: Draft, question: Question, limit: int, route: Route) -> list[Field]:
    """Named fields, the most salient first; or else the nearest in meaning."""
    named = [field for place in question.places for field in _at(draft, place)]
    if named or question.places:
        unique = {field.id: field for field in named}
        return sorted(unique.values(), key=lambda f: -f.salience)
    return [draft.view.field(name) for name in route(draft.tenant, question.text, limit)]


def _at(draft: Draft, place: Place) -> Iterable[Field]:
    topic = draft.view.find_topic(place.topic)
    if topic is None:
        return ()
    if place.field:
        field = draft.view.find_field(topic, place.field)
        return (field,) if field else ()
    return draft.view.fields_of(topic.id)


def _named(draft: Draft, question: Question) -> set[str]:
    """Fields that are asked for explicitly, which finds them also where they are not active."""
    named: set[str] = set()
    for place in question.places:
        topic = draft.view.find_topic(place.topic)
        if topic is not None and (place.field or topic.archived):
            named |= {field.id for field in _at(draft, place)}
    return named


def wake(draft: Draft, fields: Iterable[Field]) -> None:
    """What was asked for explicitly is active again: it was accessed, so it matters."""
    view = draft.view
    for field in fields:
        if not view.active(field):
            awake(draft, view.topic(field.topic))
            view.put_field(
                msgspec.structs.replace(view.field(field.id), level=FULL, order=view.next_order())
            )
            draft.note(f"{draft.title(field)} brought back")


def _related(draft: Draft, fields: Sequence[Field]) -> list[Found]:
    """What the fields follow from and what follows from them; then what is associated."""
    view = draft.view
    found: dict[str, Found] = {}
    for field in fields:
        for edge in view.leaving(field.id):
            target = view.survivor(edge.target)
            if target.id != field.id:
                found.setdefault(target.id, Found(target, because=f"follows from {draft.title(field)}"))  # fmt: skip
        for edge in _arriving(view, field):
            source = view.survivor(edge.source)
            if source.id != field.id:
                found.setdefault(source.id, Found(source, because=f"{draft.title(field)} follows from it"))  # fmt: skip
    for field in fields:
        for edge in (*view.leaving(field.topic), *view.arriving(field.topic)):
            if edge.kind == ASSOCIATION:
                other = view.host(edge.target if edge.source == field.topic else edge.source)
                for neighbour in view.fields_of(other.id) if other.id != field.topic else ():
                    found.setdefault(neighbour.id, Found(neighbour, because="its topic is related"))
    return [f for f in found.values() if view.active(f.field)]


def _arriving(view: View, field: Field) -> list[Edge]:
    """The edges to a field and to those that were merged into it; those from them were copied."""
    edges = view.arriving(field.id)
    return edges + [edge for old in view.absorbed(field.id) for edge in _arriving(view, old)]


def reinforce(draft: Draft, fields: Iterable[Field]) -> None:
    """Propose that fields were accessed, as policies weigh it."""
    for field in fields:
        before = field.salience
        draft.served.append((field.id, before))
        firing = draft.first("unit_read", Considered(draft, field), draft.title(field))
        if firing is None:
            continue
        weight = float(firing.options.get("weight", 1.0))  # type: ignore[arg-type]
        raised = accessed(before, draft.at, draft.half_life_days, weight)
        draft.view.touch(field.id, raised)
        if draft.tools.shared_salience:
            for name in draft.peers(field):
                other = draft.view.field(name)
                draft.view.touch(name, accessed(other.salience, draft.at, draft.half_life_days, weight))  # fmt: skip
