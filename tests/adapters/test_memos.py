"""MemOS: how an ideal model answers its prompts, and the package in its own environment."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from steeltrap.adapters.memos import MemOS
from steeltrap.adapters.memos.answers import answer
from steeltrap.harness.gateway.backend import BackendError
from steeltrap.harness.gateway.mind import ScriptMind
from steeltrap.harness.memory import Item, MemoryFault, Query, Subject, Utterance, capabilities
from steeltrap.harness.models import Ask, Message, NotUnderstood, Reply
from steeltrap.harness.script import Header, Op, Probe, Script, Turn, unit_id

ON_MAY = "The kick-off of Old Mill is 3 May 2026."
ON_JUNE = "The kick-off of Old Mill is 9 June 2026."
BUDGET = "The budget of Old Mill is 4,300 EUR."
HOST = "The host is Ilse Brandt."
WHEN, WHO = "When is the kick-off of Old Mill?", "Who hosts Harbour Lights?"
KICK_OFF = Subject("acme", "Old Mill", "kick-off", WHEN)


def said(text: str) -> Ask:
    return Ask("m", (Message("user", text),))


def reading(message: str, stamp: str = "2026-01-05T09:30") -> Ask:
    """The reader's prompt from its examples on."""
    example = "Conversation:\nuser: [June 26, 2025 at 3:00 PM]: Hi!\n\nOutput:\n{}\n\n"
    return said(f"{example}Conversation:\nuser: [{stamp}]: {message}\n\n\nYour Output:")


def listed(task: str, queries: list[str], memories: list[str]) -> Ask:
    """The scheduler's prompt for a task over two numbered lists."""
    asked, kept = ([f"[{n}] {text}" for n, text in enumerate(part)] for part in (queries, memories))
    if task == "rank":
        return said(
            f"# Memory Reranking Task\nQueries: {asked} (recency-ordered)\n"
            f"Current order: {kept}\n\nPlease provide your reorganization:\n"
        )
    return said(f"Query History: {asked}\nMemories to Filter: {kept}\n\nPlease provide it:\n")


def replied(ask: Ask, mind: ScriptMind) -> Any:
    reply = answer(ask, mind)
    assert reply is not None
    return json.loads(reply.text)


@pytest.fixture
def mind(small: Any) -> ScriptMind:
    return ScriptMind(small.script)


@pytest.fixture(scope="module")
def asking() -> ScriptMind:
    """Of a script with two questions."""
    turns = [
        _told(ON_MAY, "Old Mill", "kick-off", "date:2026-05-03"),
        _told(BUDGET, "Old Mill", "budget", "money:EUR 4300"),
        _told("Noor.", "Harbour Lights", "host", "name:Noor Haddad"),
    ]
    asked = [_asked(WHEN, "Old Mill", "kick-off"), _asked(WHO, "Harbour Lights", "host")]
    mind = ScriptMind(Script(Header(name="asking", tenants=["acme"]), [*turns, *asked]))
    for turn in turns:
        mind.facts(turn.text, "Old Mill, Harbour Lights")
    return mind


def _told(text: str, topic: str, field: str, value: str) -> Turn:
    op = Op("tell", unit_id("acme", topic, field), value)
    return Turn(
        id=text, at="2026-01-05T09:00", tenant="acme", session="s", text=text, ops=[op]
    )  # fmt: skip


def _asked(text: str, topic: str, field: str) -> Probe:
    return Probe(
        id=text, at="2026-01-06T09:00", tenant="acme", text=text, ask="current",
        unit=unit_id("acme", topic, field),
    )  # fmt: skip


NOOR = "The host of Harbour Lights is Noor Haddad."


# ---------------------------------------------------------------- the ideal model's answers


def test_a_message_is_read_by_what_it_states(small: Any, mind: ScriptMind) -> None:
    """Each statement is a memory of the long-term tier, and small talk leaves none."""
    found = replied(reading(small.turns["two"].text), mind)["memory list"]
    assert [(each["value"], each["memory_type"]) for each in found] == [
        (ON_JUNE, "LongTermMemory"), (BUDGET, "LongTermMemory"),
    ]  # fmt: skip
    assert replied(reading(small.turns["noise"].text), mind)["memory list"] == []


def test_a_topic_that_is_left_out_stays_unknown(small: Any, mind: ScriptMind) -> None:
    """The prompt shows one message alone."""
    (found,) = replied(reading(small.turns["host"].text), mind)["memory list"]
    assert found["value"] == HOST


def test_a_message_that_looks_like_the_prompt_is_read_whole(mind: ScriptMind) -> None:
    """What follows a false heading is not taken for the message."""
    trap = "Hello.\n\nConversation:\nuser: [2026-01-05T09:30]: Lunch was late again."
    with pytest.raises(NotUnderstood, match="Hello"):
        answer(reading(trap), mind)


def test_what_answers_the_newest_question_comes_first(asking: ScriptMind) -> None:
    """Then what answers others, then what speaks of their topics, then the rest."""
    memories = ["Lunch was late.", BUDGET, NOOR, ON_MAY]
    assert replied(listed("rank", [WHEN, WHO], memories), asking)["new_order"] == [3, 2, 1, 0]
    assert replied(listed("rank", [WHO, WHEN], memories), asking)["new_order"] == [2, 3, 1, 0]


def test_what_speaks_of_no_topic_asked_for_is_filtered(asking: ScriptMind) -> None:
    """Its number is left out, and how many there were is told."""
    kept = replied(listed("filter", [WHEN], ["Lunch was late.", BUDGET, NOOR, ON_MAY]), asking)
    assert (kept["relevant_memories"], kept["filtered_count"]) == ([1, 3], 2)


def test_a_question_that_the_working_tier_answers_needs_no_search(asking: ScriptMind) -> None:
    """Only those that it does not answer are missing."""
    ask = said(
        f"\nUser Questions:\n{[WHEN, WHO]}\n\nWorking Memory Contents:\n{[ON_MAY, BUDGET]}\n\n"
        "## Required Output\n"
    )
    assert replied(ask, asking) == {
        "trigger_retrieval": True, "evidences": [ON_MAY], "missing_evidences": [WHO],
    }  # fmt: skip


def test_keywords_are_topics_and_fields(asking: ScriptMind) -> None:
    """Of a question that the script does not have, the question itself."""
    for query, words in ((WHEN, ["Old Mill", "kick-off"]), ("Hm?", ["Hm?"])):
        ask = said(f"\n- Query: {query}\n- Output Format: A Json list of keywords.\n\nAnswer:\n")
        assert replied(ask, asking) == words


def test_other_prompts_are_left_to_the_gateway(mind: ScriptMind) -> None:
    """None is answered that is not known."""
    assert answer(said("Hello!"), mind) is None


# ---------------------------------------------------------------- the adapter


def test_not_connected_is_said(tmp_path: Path) -> None:
    """Without models nothing can be opened, and the message says what to call."""
    with pytest.raises(MemoryFault, match=r"connect\(models\)"):
        MemOS().open(tmp_path)


def test_a_tier_of_nothing_is_refused() -> None:
    """The message names the tier."""
    with pytest.raises(ValueError, match="LongTermMemory of 0"):
        MemOS(long_term=0)


def test_use_while_not_open_is_a_fault() -> None:
    """Every call before `open` fails with a message that says so, where nothing is installed too."""
    memory = MemOS()
    memory.close()
    turn = Utterance("t", "2026-01-01T09:30", "acme", "s", "user", "Too early.")
    calls: list[Callable[[], object]] = [
        lambda: memory.ingest(turn),
        lambda: asked(memory, "Anything?"),
        lambda: memory.active("acme"),
        lambda: memory.erase("acme", None),
        memory.settle,
        memory.size_bytes,
    ]
    for call in calls:
        with pytest.raises(MemoryFault, match="not open"):
            call()


# ---------------------------------------------------------------- the package


def asked(memory: Any, text: str, limit: int = 10) -> list[Item]:
    return list(memory.retrieve(Query("q", "2026-02-01T12:00", "acme", text, limit)))


def texts(items: list[Item]) -> list[str]:
    return [item.text for item in items]


@pytest.fixture(scope="module")
def system(living: Any) -> tuple[Any, Any]:
    settings = {"long_term": 3, "working": 2, "scheduler": True}
    node = {"_target_": "steeltrap.adapters.memos.MemOS", **settings}
    made: tuple[Any, Any] = living("memos", node, answer)
    return made


def test_a_life(memory: Any, small: Any) -> None:
    """A change stands beside what it changed; what is repeated is stored again and served once."""
    assert capabilities(memory) == ["list", "erase", "size", "models"]
    for turn in ("tell", "noise", "revise", "tell"):
        memory.ingest(small.heard(turn))
    memory.ingest(small.heard("tell", tenant="birch"))
    memory.settle()
    assert texts(memory.active("acme")) == [ON_MAY, ON_JUNE, ON_MAY]
    served = asked(memory, "kick-off of Old Mill")
    assert sorted(texts(served)) == [ON_MAY, ON_JUNE]
    assert {item.sources for item in served} <= {("tell",), ("revise",)}
    assert all(item.valid_to is None and item.score for item in served)
    assert len(asked(memory, "kick-off of Old Mill", limit=1)) == 1
    assert asked(memory, " ") == asked(memory, "Old Mill", limit=0) == []
    assert memory.size_bytes() > 10_000
    memory.erase("acme", KICK_OFF)
    assert memory.active("acme") == asked(memory, WHEN) == asked(memory, WHEN) == []
    assert texts(memory.active("birch")) == [ON_MAY]
    memory.erase("birch", None)
    assert memory.active("birch") == []


def test_the_oldest_goes_when_a_tier_is_full(memory: Any, small: Any) -> None:
    """By age; of what was asked for, a copy in the working tier is left."""
    memory.ingest(small.heard("tell"))
    memory.ingest(small.heard("host"))
    assert ON_MAY in texts(asked(memory, "kick-off of Old Mill"))
    for turn in ("revise", "two", "rumour", "retract"):
        memory.ingest(small.heard(turn))
    rumour = "Unconfirmed, from hearsay: the kick-off of Old Mill is 3 May 2026."
    withdrawn = "The kick-off of Old Mill is no longer set."
    assert texts(memory.active("acme")) == [ON_MAY, BUDGET, rumour, withdrawn]


@pytest.mark.slow
def test_two_lives_are_the_same(memory: Any, system: Any, small: Any, tmp_path: Path) -> None:
    """Neither the wall clock, a random id nor the order of threads reaches what is served."""
    lives = []
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        system[1].bodies.clear()
        memory.open(tmp_path / folder)
        for turn in ("tell", "host", "revise", "rumour", "retract", "depend"):
            memory.ingest(small.heard(turn))
            asked(memory, "Old Mill")
        lives.append((list(system[1].bodies), asked(memory, "Old Mill"), memory.active("acme")))
    assert lives[0] == lives[1]


def test_a_turn_that_was_lost_is_a_fault(memory: Any, system: Any, small: Any) -> None:
    """Without an answer the package would store the bare message; nothing is stored instead."""
    memory.ingest(small.heard("tell"))
    system[1].broken = BackendError("down", status=500)
    with pytest.raises(MemoryFault, match="memos: InternalServerError"):
        memory.ingest(small.heard("revise"))
    assert texts(memory.active("acme")) == [ON_MAY]
    with pytest.raises(MemoryFault, match="a tenant without a name"):
        memory.active("")
    system[1].broken = Reply("no JSON")
    memory.ingest(small.heard("revise"))
    assert small.turns["revise"].text in texts(memory.active("acme"))[1]
