"""What policies may ask for is there to be asked: the scenes keep the promise of the vocabulary."""

from __future__ import annotations

from operator import attrgetter

import pytest

from steeltrap.reference_system import scenes
from steeltrap.reference_system.mirror import Mirror
from steeltrap.reference_system.policy import EVENTS, default_policies
from steeltrap.reference_system.state import EXTENSION, Edge
from steeltrap.reference_system.statements import Fact
from steeltrap.reference_system.transition import Draft, Tools

AT = "2026-01-05T09:00:00"


def draft() -> Draft:
    tools = Tools(default_policies(), len, None)
    return Draft(Mirror(), tools, "ingest", "acme", AT)


def made() -> dict[str, object]:
    """A scene of every event."""
    d = draft()
    topic, other = d.new_topic("Website Redesign"), d.new_topic("Website redesign")
    field, second = d.new_field(topic, "deadline"), d.new_field(topic, "Deadlines")
    topic = d.view.topic(topic.id)
    edge = Edge("acme:x9", "acme", EXTENSION, field.id, second.id, None, "t1", 9)
    return {
        "fact_received": scenes.Incoming(d, topic, field, Fact("a", "b", "c"), "owner", AT),
        "field_updated": scenes.Updated(d, field),
        "dependency_changed": scenes.Walk(d, field, "1", second, edge, 1),
        "duplicate_topics": scenes.Duplicate(
            d, topic, other, same_title=True, stated=False, similarity=0.5
        ),
        "conflicting_values": scenes.Conflict(d, field, second),
        "schema_drift": scenes.Drift(d, field, second, same_name=True, similarity=0.5),
        "group_grown": scenes.Grown(d, topic, scenes.Group("Alice", 3, 5)),
        "forgetting": scenes.Considered(d, field),
        "topic_forgetting": scenes.TopicConsidered(d, topic),
        "unit_read": scenes.Considered(d, field),
        "transition_proposed": scenes.Proposed(d),
    }


def test_every_event_has_a_scene() -> None:
    """The events of the language are those that operators make scenes for."""
    assert set(EVENTS) == set(made())


@pytest.mark.parametrize("event", EVENTS)
def test_a_scene_has_every_name_of_its_event(event: str) -> None:
    """Whatever a condition on an event may name can be read from its scene."""
    scene = made()[event]
    for name in EVENTS[event].names:
        attrgetter(name)(scene)
