"""Mem-alpha in house: operations on three parts, what is served, policies, and the ideal model."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from steeltrap.adapters.chat import Chat
from steeltrap.adapters.embedders import HashEmbedder
from steeltrap.adapters.mem_alpha import MemAlpha
from steeltrap.adapters.mem_alpha.answers import answer
from steeltrap.adapters.mem_alpha.policy import Shown
from steeltrap.harness.gateway.ideal import Ideal
from steeltrap.harness.gateway.mind import ScriptMind
from steeltrap.harness.gateway.server import Gateway
from steeltrap.harness.memory import MemoryFault, Query, Subject, Utterance, capabilities
from steeltrap.harness.models import Ask, Mind, Reply, ToolCall
from steeltrap.harness.script import Header, Op, Script, Turn
from steeltrap.harness.tokens import count

HARBOUR, MILL = "a/Harbour Lights/host", "a/Old Mill/host"


def script(*ops: Op) -> Script:
    """A conversation in which each turn does one thing, under a text of its own."""
    turns = [
        Turn(at=f"2026-01-{n + 1:02}T10:00", id=f"t{n}", session="s", tenant="a",
             text=f"Turn {n} of Harbour Lights and Old Mill.", ops=[op])
        for n, op in enumerate(ops)
    ]  # fmt: skip
    return Script(Header(name="small", tenants=["a"]), list(turns))


Answer = Callable[[Ask, Mind], Reply | None]


@contextlib.contextmanager
def opened(answerer: Answer, said: Script | None = None, **settings: Any) -> Iterator[MemAlpha]:
    embedder = HashEmbedder()
    ideal = Ideal(answerer, ScriptMind(said or script()), embedder, system="mem-alpha")
    with Gateway(ideal, embedder, retries=0) as gateway:
        memory = MemAlpha(**settings)
        memory.connect(gateway.models)
        memory.open(Path())
        yield memory
        memory.close()


def turn(number: int, text: str = "", tenant: str = "a") -> Utterance:
    at = f"2026-01-{number + 1:02}T10:00"
    return Utterance(
        f"t{number}",
        at,
        tenant,
        "s",
        "user",
        text or f"Turn {number} of Harbour Lights and Old Mill.",
    )


def asked(memory: MemAlpha, text: str, limit: int = 10) -> list[str]:
    query = Query("q", "2026-02-01T10:00", "a", text, limit)
    return [item.text for item in memory.retrieve(query)]


def call(name: str, kind: str, **given: str) -> ToolCall:
    return ToolCall(f"memory_{name}", {"memory_type": kind, **given})


class Told:
    """Calls as told, one list a turn, and keeps what it was asked."""

    def __init__(self, *turns: Sequence[ToolCall]) -> None:
        self.turns = [tuple(calls) for calls in turns]
        self.asked: list[Ask] = []

    def __call__(self, ask: Ask, mind: Mind) -> Reply | None:  # noqa: ARG002
        self.asked.append(ask)
        calls = self.turns.pop(0)
        return Reply(calls=calls, finish="tools") if calls else Reply(text="Done.")


def listed(*turns: Sequence[ToolCall], **settings: Any) -> list[tuple[str | None, str]]:
    with opened(Told(*turns), **settings) as memory:
        for number in range(len(turns)):
            memory.ingest(turn(number))
        return [(item.id, item.text) for item in memory.active("a")]


TEA = call("insert", "semantic", content="Tea is at four.")


# ---------------------------------------------------------------- operations


def test_facts_and_events_are_inserted_updated_and_deleted() -> None:
    """Each entry has an id of its own, under which it is changed or removed."""
    assert [] == listed([])
    event = call("insert", "episodic", content="[2026-01-01T10:00] Tea was at four.")
    both = [("semantic-0", "Tea is at four."), ("episodic-1", "Tea was at four.")]
    assert both == listed([TEA, event])
    moved = call("update", "semantic", memory_id="semantic-0", new_content="Tea is at five.")
    assert [("semantic-0", "Tea is at five."), both[1]] == listed([TEA, event], [moved])
    gone = call("delete", "semantic", memory_id="semantic-0")
    assert [both[1]] == listed([TEA, event], [gone])
    assert [("semantic-1", "Tea is at four.")] == listed([TEA], [gone, TEA])


def test_core_can_only_be_rewritten_and_keeps_to_its_size() -> None:
    """It is one text; what does not fit is cut at a word; it is neither inserted nor deleted."""
    write = call("update", "core", new_content="Kim likes tea.")
    assert [("core", "Kim likes tea.")] == listed([write])
    refused = [call("insert", "core", content="x"), call("delete", "core", memory_id="core")]
    assert [("core", "Kim likes tea.")] == listed([write], refused)
    assert [] == listed([write], [call("update", "core", new_content="")])
    (kept,) = listed([call("update", "core", new_content="tea " * 600)])
    assert 512 == count(kept[1]) and kept[1].startswith("tea tea")
    assert [("core", "Kim likes")] == listed([write], core_tokens=count("Kim likes"))


@pytest.mark.parametrize(
    "wrong",
    [
        call("update", "semantic", memory_id="semantic-7", new_content="x"),
        call("update", "semantic", memory_id="semantic-0", new_content=" "),
        call("delete", "episodic", memory_id="semantic-0"),
        call("delete", "semantic"),
        call("insert", "semantic", content=""),
        call("insert", "semantic", content="Tea is at four."),
        call("insert", "moods", content="x"),
        ToolCall("memory_insert", {"memory_type": "semantic", "content": 3}),
        ToolCall("memory_burn", {"memory_type": "semantic"}),
    ],
)
def test_a_call_that_cannot_be_carried_out_changes_nothing(wrong: ToolCall) -> None:
    """And those beside it are carried out; what is there already is not stored twice."""
    more = call("insert", "semantic", content="Choir is on Tuesday.")
    assert ["Tea is at four.", "Choir is on Tuesday."] == [
        t for _, t in listed([TEA], [wrong, more])
    ]


def test_the_policy_sees_the_memory_and_the_turn() -> None:
    """All of its own tenant's memory, or the latest entries of each kind; and it is asked once."""
    told = Told([TEA], [call("insert", "semantic", content="Choir is on Tuesday.")], [], [])
    with opened(told, shown_entries=1) as memory:
        for number in (0, 1):
            memory.ingest(turn(number))
        memory.ingest(turn(2, "Hello\nthere."))
        memory.ingest(turn(3, tenant="b"))
    shown = told.asked[2].said("user")
    assert '{"id":"semantic-1","text":"Choir is on Tuesday."}' in shown and "Tea" not in shown
    assert shown.endswith('{"at":"2026-01-03T10:00","role":"user","text":"Hello\\nthere."}')
    assert "(none)" in told.asked[3].said("user") and "Choir" not in told.asked[3].said("user")
    assert 4 == len(told.asked)


def test_where_the_model_fails_nothing_is_taken_in() -> None:
    """An error of the model is a fault, and the memory stays as it was."""

    def fails(ask: Ask, mind: Mind) -> Reply | None:
        return None

    with opened(fails) as memory:
        with pytest.raises(MemoryFault, match="mem-alpha: the model"):
            memory.ingest(turn(0))
        assert [] == list(memory.active("a"))


# ---------------------------------------------------------------- what is served


def test_core_then_facts_and_events_by_their_words() -> None:
    """The core text is always there; then the best of both lists, at most `top_k` of each."""
    calls = [
        call("update", "core", new_content="Kim likes tea."),
        *(call("insert", "semantic", content=f"Fact {word}.") for word in ("one", "two", "three")),
        *(call("insert", "episodic", content=f"[2026-01-01T10:00] It was {word}.") for word in ("one", "two", "three")),
    ]  # fmt: skip
    with opened(Told(calls), top_k=2) as memory:
        memory.ingest(turn(0))
        served = memory.retrieve(Query("q", "2026-02-01T10:00", "a", "TWO?", 10))
        assert ["Kim likes tea.", "Fact two.", "It was two.", "Fact one.", "It was one."] == [
            item.text for item in served
        ]
        assert [None, None, "2026-01-01T10:00", None] == [i.valid_from for i in served][:4]
        assert ["Kim likes tea.", "Fact two."] == asked(memory, "two", limit=2)
        assert [] == asked(memory, "two", limit=0)


def test_an_event_without_its_time_is_served_as_it_is() -> None:
    """Only a time in brackets at its head is taken for its time."""
    texts = ["Tea was at four [2026-01-01T10:00].", "[2026-01-01 10:00:30] Tea was late."]
    calls = [call("insert", "episodic", content=text) for text in texts]
    with opened(Told(calls)) as memory:
        memory.ingest(turn(0))
        assert [(texts[0], None), ("Tea was late.", "2026-01-01T10:00")] == [
            (item.text, item.valid_from) for item in memory.active("a")
        ]


# ---------------------------------------------------------------- policies and life


class Scribe:
    """Inserts every turn as a fact, and says how much it saw."""

    def __init__(self, chat: Chat) -> None:
        self.chat = chat

    def act(self, chunk: Utterance, memory: Shown) -> Sequence[ToolCall]:
        return [call("insert", "semantic", content=f"{len(memory.semantic)}: {chunk.text}")]


def test_another_policy_acts() -> None:
    """A class named by its path decides, and asks no model if it does not want to."""
    told = Told()
    with opened(told, policy=f"{__name__}.Scribe") as memory:
        memory.ingest(turn(0, "Tea."))
        memory.ingest(turn(1, "Choir."))
        assert ["0: Tea.", "1: Choir."] == [item.text for item in memory.active("a")]
    assert [] == told.asked


@pytest.mark.parametrize(
    "settings",
    [{"core_tokens": 0}, {"top_k": 0}, {"shown_entries": 0}, {"policy": "no.such.Policy"}],
)
def test_refuses_settings_that_make_no_sense(settings: dict[str, Any]) -> None:
    """Numbers are positive, and a policy has to be there."""
    with pytest.raises(ValueError, match=r"mem-alpha: |policy="):
        MemAlpha(**settings)


def test_a_fork_is_an_exact_copy_that_lives_on_its_own() -> None:
    """Neither feels what is done to the other."""
    choir = call("insert", "semantic", content="Choir is on Tuesday.")
    with opened(Told([TEA], [choir], [])) as memory:
        memory.ingest(turn(0))
        twin = memory.fork()
        assert list(memory.active("a")) == list(twin.active("a"))
        twin.ingest(turn(1))
        twin.close()
        memory.ingest(turn(2))
        assert ["Tea is at four."] == [item.text for item in memory.active("a")]


def test_erases_by_name_and_claims_no_more() -> None:
    """Lines of core, facts and events that name the subject go; a tenant goes whole."""
    calls = [
        call("update", "core", new_content="The host of Old Mill is Kim.\nKim likes tea."),
        call("insert", "semantic", content="Old Mill is old."),
        call("insert", "episodic", content="[2026-01-01T10:00] The host of old mill was Lee."),
    ]
    with opened(Told(calls)) as memory:
        memory.ingest(turn(0))
        memory.erase("a", Subject("a", "Old Mill", "host", "?"))
        assert ["Kim likes tea.", "Old Mill is old."] == [i.text for i in memory.active("a")]
        memory.erase("a", None)
        assert [] == list(memory.active("a"))
        assert ["list", "erase", "fork", "models"] == capabilities(memory)


# ---------------------------------------------------------------- the ideal model


def ideal(said: Script, **settings: Any) -> list[str]:
    with opened(answer, said, **settings) as memory:
        for number in range(len(said.steps)):
            memory.ingest(turn(number))
        return [item.text for item in memory.active("a")]


NAMED = [
    Op("tell", HARBOUR, "name:Ilse Brandt"), Op("noise"), Op("revise", HARBOUR, "name:Noor Haddad"),
    Op("restate", HARBOUR, "name:Noor Haddad"),
]  # fmt: skip


def test_the_ideal_policy_keeps_facts_that_hold_and_events_of_all() -> None:
    """A changed value takes the old one's place; what was so from when on is noted once each."""
    assert [
        "The host of Harbour Lights is Noor Haddad.",
        "The host of Harbour Lights was Ilse Brandt as of 2026-01-01 10:00.",
        "The host of Harbour Lights was Noor Haddad as of 2026-01-03 10:00.",
    ] == ideal(script(*NAMED))


def test_the_ideal_policy_takes_back_and_doubts() -> None:
    """A withdrawal deletes the fact and leaves the event; a rumour is a fact of its own kind."""
    said = script(
        NAMED[0], Op("rumour", HARBOUR, "name:Uma Okafor", source="hearsay"), Op("retract", HARBOUR)
    )
    assert [
        "Unconfirmed, from hearsay: the host of Harbour Lights is Uma Okafor.",
        "The host of Harbour Lights was Ilse Brandt as of 2026-01-01 10:00.",
    ] == ideal(said)


def test_the_ideal_policy_puts_into_core_what_is_vital_and_fits() -> None:
    """What is vital stands in core as long as there is room, and is rewritten there."""
    vital = Op("tell", HARBOUR, "name:Ilse Brandt", importance="vital")
    also = Op("tell", MILL, "name:Tomas Weld", importance="vital")
    said = script(vital, also, NAMED[2])
    new, mill = "The host of Harbour Lights is Noor Haddad.", "The host of Old Mill is Tomas Weld."
    assert f"{mill}\n{new}" == ideal(said)[0]
    assert [new, mill] == ideal(said, core_tokens=count(new) + 1)[:2]
    assert [mill] == ideal(script(vital, also, Op("retract", HARBOUR)))[:1]
