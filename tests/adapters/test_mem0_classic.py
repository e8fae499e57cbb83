"""Mem0 1.x: how an ideal model answers its prompts, and the package in its own environment."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from steeltrap.adapters.mem0_classic.answers import answer
from steeltrap.harness.gateway.backend import BackendError
from steeltrap.harness.gateway.mind import ScriptMind
from steeltrap.harness.memory import Item, MemoryFault, Query, Subject, capabilities
from steeltrap.harness.models import Ask, Message, NotUnderstood, Reply, Tool
from steeltrap.harness.remote import WorkerFault

ON_MAY = "The kick-off of Old Mill is 3 May 2026."
ON_JUNE = "The kick-off of Old Mill is 9 June 2026."
HOST = "The host of Old Mill is Ilse Brandt."
BUDGET = "The budget of Old Mill is 4,300 EUR."
NOT_SET = "The kick-off of Old Mill is no longer set."
RUMOUR = "Unconfirmed, from hearsay: the kick-off of Old Mill is 3 May 2026."
KICK_OFF = Subject("acme", "Old Mill", "kick-off", "When is the kick-off of Old Mill?")
REMARK = "Someone said Old Mill starts on 3 May."

Answered = Callable[[Ask], Reply]


@pytest.fixture
def answered(small: Any) -> Answered:
    def reply(ask: Ask) -> Reply:
        given = answer(ask, ScriptMind(small.script))
        assert given is not None
        return given

    return reply


def extraction(message: str) -> Ask:
    system = "You are a Personal Information Organizer, and so on."
    return Ask("m", (Message("system", system), Message("user", f"Input:\n{message}\n")), "json")


def update(memories: list[str], facts: list[str]) -> Ask:
    """A prompt with the lists as the package's own has them, and an example before them."""
    shown = [{"id": str(n), "text": text} for n, text in enumerate(memories)]
    current = "Current memory is empty."
    if memories:
        current = f"Update it in the following format only:\n\n    ```\n    {shown}\n    ```"
    text = (
        'You are a smart memory manager.\n- Retrieved facts: ["Name is John"]\n\n'
        f"    {current}\n\n    The new retrieved facts are mentioned in the triple backticks. You"
        f" have to analyze them.\n\n    ```\n    {facts}\n    ```\n\n    You must return JSON."
    )
    return Ask("m", (Message("user", text),), "json")


def tool(name: str, user: str, system: str = "You know what to do.") -> Ask:
    return Ask("m", (Message("system", system), Message("user", user)), tools=(Tool(name),))


# ---------------------------------------------------------------- vector memory, ideal model


def test_facts_are_taken_from_users_alone(answered: Answered, small: Any) -> None:
    """A user's statements are facts; the prompt forbids to take any from an assistant."""
    said = small.turns["two"].text
    assert json.loads(answered(extraction(f"user: {said}")).text) == {"facts": [ON_JUNE, BUDGET]}
    assert json.loads(answered(extraction(f"assistant: {said}")).text) == {"facts": []}
    assert json.loads(answered(extraction("user: Lunch was late again.")).text) == {"facts": []}


@pytest.mark.parametrize(
    ("memories", "facts", "events"),
    [
        ([], [ON_MAY], [("0", ON_MAY, "ADD")]),
        ([HOST], [ON_MAY], [("0", HOST, "NONE"), ("1", ON_MAY, "ADD")]),
        ([HOST, ON_MAY], [ON_JUNE], [("0", HOST, "NONE"), ("1", ON_JUNE, "UPDATE")]),
        ([ON_MAY], [ON_MAY], [("0", ON_MAY, "NONE")]),
        ([ON_MAY], [NOT_SET], [("0", ON_MAY, "DELETE")]),
        ([], [NOT_SET], [("0", NOT_SET, "ADD")]),
        ([NOT_SET], [ON_MAY], [("0", ON_MAY, "UPDATE")]),
        ([ON_JUNE], [RUMOUR], [("0", ON_JUNE, "NONE"), ("1", RUMOUR, "ADD")]),
        ([ON_MAY, ON_JUNE], [ON_JUNE], [("0", ON_MAY, "DELETE"), ("1", ON_JUNE, "NONE")]),
        ([ON_MAY, "Hm."], [ON_JUNE, BUDGET],
         [("0", ON_JUNE, "UPDATE"), ("1", "Hm.", "NONE"), ("2", BUDGET, "ADD")]),
    ],
    ids=["first", "other", "change", "repetition", "withdrawal", "nothing to withdraw", "set again",
         "rumour", "left over", "several"],
)  # fmt: skip
def test_what_becomes_of_old_memories(
    answered: Answered, memories: list[str], facts: list[str], events: list[tuple[str, str, str]]
) -> None:
    """A new value takes the old one's place, a withdrawal takes it away, what is known stays."""
    rows = json.loads(answered(update(memories, facts)).text)["memory"]
    assert [(row["id"], row["text"], row["event"]) for row in rows] == events
    for row in rows:
        assert ("old_memory" in row) == (row["event"] == "UPDATE")


def test_other_prompts_and_facts_are_refused(small: Any) -> None:
    """An unknown prompt is left to the gateway; a fact or a sentence never said is an error."""
    mind = ScriptMind(small.script)
    assert answer(Ask("m", (Message("user", "Hello!"),)), mind) is None
    assert answer(Ask("m", (Message("user", "You are a smart memory manager"),)), mind) is None
    assert answer(tool("noop", "Hello"), mind) is None
    for ask in (
        update([], ["Never said."]),
        extraction("user: Never said."),
        tool("extract_entities", "Never said."),
    ):
        with pytest.raises(NotUnderstood, match=r"Never said"):
            answer(ask, mind)


# ---------------------------------------------------------------- graph, ideal model


@pytest.mark.parametrize(
    ("text", "entities"),
    [
        ("tell", {"Old Mill": "topic", "3 May 2026": "value"}),
        ("depend", {"Harbour Lights": "topic", "Old Mill": "topic"}),
        ("retract", {"Old Mill": "topic"}),
        ("noise", {}),
        (ON_JUNE, {"Old Mill": "topic", "9 June 2026": "value"}),
    ],
)
def test_entities_are_topics_and_values(
    answered: Answered, small: Any, text: str, entities: dict[str, str]
) -> None:
    """Of a turn, and of a memory that is being deleted, the topics and values are entities."""
    said = small.turns[text].text if text in small.turns else text
    (call,) = answered(tool("extract_entities", said)).calls
    assert {each["entity"]: each["entity_type"] for each in call.arguments["entities"]} == entities


@pytest.mark.parametrize(
    ("turn", "edges"),
    [
        ("tell", [("Old Mill", "kick-off", "3 May 2026")]),
        ("rumour", [("Old Mill", "unconfirmed kick-off", "3 May 2026")]),
        ("depend", [("Harbour Lights", "The review is always 1 day after the kick-off of", "Old Mill")]),
        ("late", [("Old Mill", "previously kick-off from 2025-12-01", "9 June 2026")]),
        ("retract", []),
        ("host", []),
    ],
)  # fmt: skip
def test_relations_lead_from_a_topic_to_a_value(
    answered: Answered, small: Any, turn: str, edges: list[tuple[str, str, str]]
) -> None:
    """The relation is the field; a topic that cannot be known has no relation."""
    user = f"List of entities: ['old_mill']. \n\nText: {small.turns[turn].text}"
    (call,) = answered(tool("establish_relationships", user)).calls
    assert [tuple(each.values()) for each in call.arguments["entities"]] == edges


@pytest.mark.parametrize(
    ("turn", "gone"),
    [("revise", ["3_may_2026"]), ("tell", []), ("retract", ["3_may_2026"]), ("rumour", [])],
)
def test_a_relation_that_is_contradicted_is_deleted(
    answered: Answered, small: Any, turn: str, gone: list[str]
) -> None:
    """Only the same field of the same topic with another value is, named as the prompt has it."""
    memories = "old_mill -- kick-off -- 3_may_2026\nold_mill -- host -- ilse_brandt\nnew_mill -- kick-off -- 3_may_2026"  # fmt: skip
    user = f"Here are the existing memories: {memories} \n\n New Information: {small.turns[turn].text}"  # fmt: skip
    calls = answered(tool("delete_graph_memory", user)).calls
    assert [call.arguments for call in calls] == [
        {"source": "old_mill", "relationship": "kick-off", "destination": value} for value in gone
    ]


# ---------------------------------------------------------------- the package


@pytest.fixture(scope="module", params=[False, True], ids=["vectors", "graph"])
def system(request: pytest.FixtureRequest, living: Any) -> tuple[Any, Any, bool]:
    node = {"_target_": "steeltrap.adapters.mem0_classic.Mem0Classic", "graph": request.param}
    return *living("mem0_classic", node, answer), request.param


@pytest.fixture
def graph(system: tuple[Any, Any, bool]) -> bool:
    return system[2]


def asked(memory: Any, text: str) -> list[Item]:
    return list(memory.retrieve(Query("q", "2026-02-01T12:00", "acme", text, 6)))


def texts(items: list[Item]) -> list[str]:
    return [item.text for item in items]


def test_a_life(memory: Any, model: Any, small: Any, graph: bool) -> None:
    """A change takes the old value's place, with the new turn and its time; history keeps both.

    The graph follows: its relations are listed and served after the memories.
    """
    assert capabilities(memory) == ["list", "history", "erase", "size", "models"]
    for turn in ("tell", "noise", "revise"):
        memory.ingest(small.heard(turn))
    memory.ingest(small.heard("tell", tenant="birch"))
    relations = ["old mill -- kick-off -- 9 june 2026"] if graph else []
    (changed, *others) = memory.active("acme")
    at = small.turns["revise"].at
    assert (changed.text, changed.sources, changed.valid_from) == (ON_JUNE, ("revise",), at)
    assert texts(others) == relations
    assert texts(asked(memory, REMARK)) == [ON_JUNE, *relations]
    first, second = memory.history(Subject("acme", "Old Mill", "kick-off", REMARK))
    assert (first.text, first.valid_from, first.valid_to) == (ON_MAY, small.turns["tell"].at, at)
    assert (second.text, second.valid_from, second.valid_to) == (ON_JUNE, at, None)
    assert (first.sources, second.sources) == (None, ("revise",))
    memory.ingest(small.heard("retract"))
    assert memory.active("acme") == []
    assert len(memory.history(Subject("acme", "Old Mill", "kick-off", ""))) == 2
    assert texts(memory.active("birch"))[0] == ON_MAY
    memory.erase("birch", KICK_OFF)
    assert memory.active("birch") == []
    systems = [b["messages"][0]["content"] for b in model.bodies if "messages" in b]
    dates = {text.split("Today's date is ")[1][:10] for text in systems if "Today's date" in text}
    assert dates == {small.turns[t].at[:10] for t in ("tell", "noise", "revise", "retract")}


def test_a_turn_that_was_lost_is_a_fault(memory: Any, model: Any, small: Any, graph: bool) -> None:
    """What the package passes over is raised; with a graph nobody knows how far it came."""
    memory.ingest(small.heard("tell"))
    for broken in (BackendError("down", status=500), Reply("no JSON")):
        model.broken = broken
        with pytest.raises(WorkerFault if graph else MemoryFault):
            memory.ingest(small.heard("revise"))
    assert texts(memory.active("acme"))[0] == ON_MAY


@pytest.mark.slow
def test_two_lives_are_the_same(memory: Any, model: Any, small: Any, tmp_path: Path) -> None:
    """Neither the wall clock, a random id nor a race of threads reaches what is asked or served."""
    lives = []
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        model.bodies.clear()
        memory.open(tmp_path / folder)
        for turn in ("tell", "host", "revise", "rumour", "two", "retract", "depend"):
            memory.ingest(small.heard(turn))
        served = [*asked(memory, REMARK), *memory.active("acme")]
        lives.append((list(model.bodies), served))
    assert lives[0] == lives[1]
