"""MIRIX in house: routing, the managers' tools, core memory, active retrieval, and the ideal model."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from steeltrap.adapters.embedders import HashEmbedder
from steeltrap.adapters.mirix import Mirix
from steeltrap.adapters.mirix.answers import answer
from steeltrap.adapters.mirix.components import COMPONENTS, CORE
from steeltrap.harness.gateway.ideal import Ideal
from steeltrap.harness.gateway.mind import ScriptMind
from steeltrap.harness.gateway.server import Gateway
from steeltrap.harness.memory import MemoryFault, Query, Subject, Utterance, capabilities
from steeltrap.harness.models import Ask, Mind, Reply, ToolCall
from steeltrap.harness.script import Header, Op, Probe, Script, Turn

HARBOUR, MILL = "a/Harbour Lights/host", "a/Old Mill/host"
WHO = "Who is the host of Harbour Lights?"


def script(*ops: Op) -> Script:
    """A conversation in which each turn does one thing, under a text of its own, and a question."""
    turns = [
        Turn(at=f"2026-01-{n + 1:02}T10:00", id=f"t{n}", session="s", tenant="a",
             text=f"Turn {n} of Harbour Lights and Old Mill.", ops=[op])
        for n, op in enumerate(ops)
    ]  # fmt: skip
    who = Probe(id="q", at="2026-02-01T10:00", tenant="a", ask="current", text=WHO, unit=HARBOUR)
    return Script(Header(name="small", tenants=["a"]), [*turns, who])


Answer = Callable[[Ask, Mind], Reply | None]


@contextlib.contextmanager
def opened(answerer: Answer, said: Script | None = None, **settings: Any) -> Iterator[Mirix]:
    embedder = HashEmbedder()
    ideal = Ideal(answerer, ScriptMind(said or script()), embedder, system="mirix")
    with Gateway(ideal, embedder, retries=0) as gateway:
        memory = Mirix(embedder, **settings)
        memory.connect(gateway.models)
        memory.open(Path())
        yield memory
        memory.close()


def turn(number: int, text: str = "", tenant: str = "a") -> Utterance:
    text = text or f"Turn {number} of Harbour Lights and Old Mill."
    return Utterance(f"t{number}", f"2026-01-{number + 1:02}T10:00", tenant, "s", "user", text)


def asked(memory: Mirix, text: str, limit: int = 10) -> list[str]:
    query = Query("q", "2026-02-01T10:00", "a", text, limit)
    return [item.text for item in memory.retrieve(query)]


Calls = Mapping[str, Sequence[ToolCall]]


class Told:
    """Routes to the components it is told calls of, a turn each, and keeps what it was asked."""

    def __init__(self, *turns: Calls, topic: str = "", block: str = "") -> None:
        self.turns = list(turns)
        self.now: Calls = {}
        self.topic, self.block = topic, block
        self.asked: list[Ask] = []

    def __call__(self, ask: Ask, mind: Mind) -> Reply | None:  # noqa: ARG002
        self.asked.append(ask)
        if ask.schema_name == "components":
            self.now = self.turns.pop(0)
            route = {"components": [*self.now, "moods"]}
            return Reply(text=msgspec.json.encode(route).decode())
        if ask.tools:
            component = ask.tools[0].name.rpartition("_")[0]
            calls = tuple(self.now[component])
            return Reply(calls=calls, finish="tools") if calls else Reply(text="Done.")
        return Reply(text=self.block if "Block to shorten" in ask.text else self.topic)


def semantic(summary: str, **more: str) -> ToolCall:
    given = {"name": "", "summary": summary, "details": "", "source": "user", **more}
    return ToolCall("semantic_insert", given)


def core(deed: str, text: str, block: str = "human") -> ToolCall:
    return ToolCall(f"core_{deed}", {"block": block, "text": text})


TEA = semantic("Tea is at four.")
EVENT = {"event_type": "message", "actor": "user", "summary": "Tea was late.", "details": ""}


def listed(*turns: Calls, **settings: Any) -> list[tuple[str | None, str, str | None]]:
    with opened(Told(*turns), **settings) as memory:
        for number in range(len(turns)):
            memory.ingest(turn(number))
        return [(item.id, item.text, item.valid_from) for item in memory.active("a")]


# ---------------------------------------------------------------- telling


def test_only_the_managers_are_asked_that_the_turn_concerns() -> None:
    """The meta memory manager chooses, and each manager has the tools of its own component."""
    told = Told({}, {"semantic": [TEA], "episodic": []})
    with opened(told) as memory:
        memory.ingest(turn(0))
        memory.ingest(turn(1))
    offered = [sorted(tool.name for tool in ask.tools) for ask in told.asked]
    assert [
        [], [], ["episodic_delete", "episodic_insert", "episodic_merge"],
        ["semantic_delete", "semantic_insert", "semantic_update"],
    ] == offered  # fmt: skip


def test_entries_are_inserted_updated_and_deleted() -> None:
    """A changed entry keeps its id and the fields that are not given; its time is that of the turn."""
    moved = ToolCall("semantic_update", {"id": "semantic-0", "summary": "Tea is at five."})
    gone = ToolCall("semantic_delete", {"id": "semantic-0"})
    full = semantic("Tea is at four.", name="Tea", details="In the kitchen.")
    first = ("semantic-0", "Tea is at four.\nIn the kitchen.", "2026-01-01T10:00")
    assert [first] == listed({"semantic": [full]})
    second = ("semantic-0", "Tea is at five.\nIn the kitchen.", "2026-01-02T10:00")
    assert [second] == listed({"semantic": [full]}, {"semantic": [moved]})
    assert [] == listed({"semantic": [full]}, {"semantic": [gone]})


def test_an_event_has_its_own_time_and_is_added_to() -> None:
    """What happened keeps its time; a merge adds details and never takes any away."""
    when = ToolCall("episodic_insert", {**EVENT, "occurred_at": "2025-12-24 18:00"})
    vague = ToolCall("episodic_insert", {**EVENT, "occurred_at": "at night"})
    more = ToolCall("episodic_merge", {"id": "episodic-0", "details": "By an hour."})
    still = ToolCall("episodic_merge", {"id": "episodic-0", "details": "Nobody minded."})
    assert [
        ("episodic-0", "Tea was late.\nBy an hour.\nNobody minded.", "2025-12-24T18:00"),
        ("episodic-1", "Tea was late.", "2026-01-01T10:00"),
    ] == listed({"episodic": [when, vague]}, {"episodic": [more, still]})


@pytest.mark.parametrize("component", list(COMPONENTS))
def test_every_component_keeps_its_fields(component: str) -> None:
    """Each has fields of its own; what is no field of it is not kept."""
    fields = {name: f"{name} of it" for name in COMPONENTS[component].fields}
    insert = ToolCall(f"{component}_insert", {**fields, "mood": "good"})
    told = Told({component: [insert]}, {})
    with opened(told) as memory:
        memory.ingest(turn(0))
        memory.ingest(turn(1))
        (item,) = memory.active("a")
    assert f"{component}-0" == item.id
    assert [fields[field] for field in COMPONENTS[component].read] == item.text.split("\n")
    shown = msgspec.json.encode({"id": item.id, **fields}).decode()
    assert f"<{component}_memory>\n{shown}\n" in told.asked[-1].said("user")


@pytest.mark.parametrize(
    "wrong",
    [
        ToolCall("semantic_update", {"id": "semantic-7", "summary": "x"}),
        ToolCall("semantic_delete", {}),
        ToolCall("semantic_insert", {"source": "user"}),
        ToolCall("semantic_insert", {"summary": 3}),
        ToolCall("episodic_insert", EVENT),
    ],
)
def test_a_call_that_cannot_be_carried_out_changes_nothing(wrong: ToolCall) -> None:
    """And those beside it are carried out."""
    assert ["Tea is at four."] == [text for _, text, _ in listed({"semantic": [wrong, TEA]})]


def test_managers_are_shown_the_nearest_memories_by_component() -> None:
    """Of each component the nearest, and the core memory whole; other tenants' never."""
    first = {"semantic": [TEA, semantic("Choir is on Tuesday.")], CORE: [core("append", "Kim.")]}
    told = Told(first, {}, {})
    with opened(told, top_k=1) as memory:
        memory.ingest(turn(0))
        memory.ingest(turn(1, "choir Tuesday </semantic_memory>"))
        memory.ingest(turn(2, "choir Tuesday", tenant="b"))
    shown, others = (ask.said("user") for ask in told.asked[-2:])
    assert "<semantic_memory>\n" + '{"id":"semantic-1",' in shown and "four" not in shown
    assert '{"block":"human","limit":5000,"text":"Kim."}\n</core_memory>' in shown
    assert "<semantic_memory>\n</semantic_memory>" in others and "Kim" not in others


def test_core_blocks_are_appended_to_and_rewritten() -> None:
    """Lines are added to a block, or it is written anew; another block does not exist."""
    calls = [core("append", "Kim."), core("append", "Tea.\n"), core("append", "x", block="pets")]
    assert [("core-human", "Kim.\nTea.", None)] == listed({CORE: calls})
    anew = [core("rewrite", "Tea."), core("rewrite", "I am kind.", block="persona")]
    assert [("core-human", "Tea.", None), ("core-persona", "I am kind.", None)] == listed(
        {CORE: calls}, {CORE: anew}
    )


def test_a_block_beyond_nine_tenths_is_shortened() -> None:
    """Up to 90 % it stays; beyond, it is written anew, and never longer than it may be."""
    for length, block, expected in ((90, "x", "a" * 90), (91, "Short.", "Short."), (91, "b" * 200, "b" * 100)):  # fmt: skip
        told = Told({CORE: [core("append", "a" * length)]}, block=block)
        with opened(told, block_chars=100) as memory:
            memory.ingest(turn(0))
            assert [expected] == [item.text for item in memory.active("a")]
        assert (length > 90) == ("Block to shorten" in told.asked[-1].text)


def test_where_a_manager_fails_nothing_is_taken_in() -> None:
    """What another manager did for the same turn is not there either."""
    told = Told({"episodic": [ToolCall("episodic_insert", EVENT)], "semantic": [TEA]})

    def fails(ask: Ask, mind: Mind) -> Reply | None:
        if any(tool.name == "semantic_insert" for tool in ask.tools):
            return None
        return told(ask, mind)

    with opened(fails) as memory:
        with pytest.raises(MemoryFault, match="mirix: the model"):
            memory.ingest(turn(0))
        assert [] == list(memory.active("a"))


# ---------------------------------------------------------------- asking


@pytest.mark.parametrize("match", ["embedding", "bm25"])
def test_the_topic_is_searched_for_and_core_stands_first(match: str) -> None:
    """The nearest of all components for the topic, not for the words of the question."""
    facts = [TEA, semantic("Choir is on Tuesday."), semantic("Rain is near.")]
    told = Told({"semantic": facts, CORE: [core("append", "Kim.")]}, topic="choir Tuesday")
    with opened(told, match=match) as memory:
        memory.ingest(turn(0))
        served = memory.retrieve(Query("q", "2026-02-01T10:00", "a", "tea four?", 2))
        assert ["Kim.", "Choir is on Tuesday."] == [item.text for item in served]
        assert ["core-human", "semantic-1"] == [item.id for item in served]
        assert [] == asked(memory, "tea", limit=0)


def test_each_component_gives_its_nearest() -> None:
    """At most `top_k` of a component are fetched, however many it has that are near."""
    events = [
        ToolCall("episodic_insert", {**EVENT, "summary": f"Tea at four {n}."}) for n in range(3)
    ]
    told = Told({"episodic": events, "semantic": [semantic("Rain.")]}, topic="tea at four")
    with opened(told, top_k=2) as memory:
        memory.ingest(turn(0))
        assert ["Tea at four 0.", "Tea at four 1.", "Rain."] == asked(memory, "tea")


def test_secrets_of_high_sensitivity_are_not_served() -> None:
    """They are kept and listed, and no question brings them up."""
    vault = {"entry_type": "code", "source": "user", "caption": "Door", "secret_value": "1234"}
    calls = [
        ToolCall("knowledge_vault_insert", {**vault, "sensitivity": level}) for level in ("high", "low")
    ]  # fmt: skip
    with opened(Told({"knowledge_vault": calls}, topic="door")) as memory:
        memory.ingest(turn(0))
        assert 2 == len(memory.active("a"))
        served = memory.retrieve(Query("q", "2026-02-01T10:00", "a", "door?", 10))
        assert ["knowledge_vault-1"] == [item.id for item in served]


def test_nothing_is_asked_of_a_model_where_nothing_is_known() -> None:
    """And an empty question has no topic."""
    told = Told({"semantic": [TEA]})
    with opened(told) as memory:
        assert [] == asked(memory, "tea")
        assert [] == told.asked
        memory.ingest(turn(0))
        before = len(told.asked)
        assert ["Tea is at four."] == asked(memory, " ")
        assert before == len(told.asked)


# ---------------------------------------------------------------- life


@pytest.mark.parametrize("settings", [{"match": "string"}, {"top_k": 0}, {"block_chars": 0}])
def test_refuses_settings_that_make_no_sense(settings: dict[str, Any]) -> None:
    """Numbers are positive, and a way to search has to be known."""
    with pytest.raises(ValueError, match="mirix: "):
        Mirix(HashEmbedder(), **settings)


def test_a_fork_is_an_exact_copy_that_lives_on_its_own() -> None:
    """Neither feels what is done to the other."""
    gone = ToolCall("semantic_delete", {"id": "semantic-0"})
    told = Told({"semantic": [TEA], CORE: [core("append", "Kim.")]}, {"semantic": [gone], CORE: [core("rewrite", "")]}, {})  # fmt: skip
    with opened(told) as memory:
        memory.ingest(turn(0))
        twin = memory.fork()
        assert list(memory.active("a")) == list(twin.active("a"))
        twin.ingest(turn(1))
        assert [] == list(twin.active("a"))
        twin.close()
        memory.ingest(turn(2))
        assert ["Kim.", "Tea is at four."] == [item.text for item in memory.active("a")]


def test_erases_by_name_and_claims_no_more() -> None:
    """Core lines and entries go that name the subject in any of their fields; a tenant goes whole."""
    facts = [
        semantic("The host is Kim.", name="the host of Old Mill"),
        semantic("Old Mill is old."),
    ]
    lines = core("append", "The host of Old Mill is Kim.\nTea.")
    with opened(Told({"semantic": facts, CORE: [lines]})) as memory:
        memory.ingest(turn(0))
        memory.erase("a", Subject("a", "Old Mill", "host", "?"))
        assert ["Tea.", "Old Mill is old."] == [item.text for item in memory.active("a")]
        memory.erase("a", None)
        assert [] == list(memory.active("a"))
        assert ["list", "erase", "fork", "models"] == capabilities(memory)


# ---------------------------------------------------------------- the ideal model


def ideal(*ops: Op, **settings: Any) -> list[str]:
    with opened(answer, script(*ops), **settings) as memory:
        for number in range(len(ops)):
            memory.ingest(turn(number))
        return [item.text for item in memory.active("a")]


TOLD = Op("tell", HARBOUR, "name:Ilse Brandt")
NOW = Op("revise", HARBOUR, "name:Noor Haddad")
WAS = "The host of Harbour Lights was Ilse Brandt as of 2026-01-01 10:00."


def test_ideal_managers_keep_facts_that_hold_and_events_of_all() -> None:
    """Episodic memory tells what was so from when on, semantic memory what is so; nothing twice."""
    assert [
        WAS, "The host of Harbour Lights was Noor Haddad as of 2026-01-03 10:00.",
        "The host of Harbour Lights is Noor Haddad.",
    ] == ideal(TOLD, Op("noise"), NOW, NOW)  # fmt: skip
    before = Op("revise", HARBOUR, "name:Uma Okafor", valid_at="2025-12-01T12:00")
    was = "The host of Harbour Lights was Uma Okafor as of 2025-12-01 12:00."
    assert [was] == ideal(before, before)


def test_ideal_managers_take_back_and_doubt() -> None:
    """A withdrawal deletes the fact and leaves the event; a rumour is a fact of its own kind."""
    rumour = Op("rumour", HARBOUR, "name:Uma Okafor", source="hearsay")
    unsure = "Unconfirmed, from hearsay: the host of Harbour Lights is Uma Okafor."
    assert [WAS, unsure] == ideal(TOLD, rumour, Op("retract", HARBOUR))


def test_ideal_managers_put_into_core_what_is_vital_and_fits() -> None:
    """It stands in one place: in core as long as there is room, in semantic memory otherwise."""
    vital = [
        Op("tell", unit, f"name:{name}", importance="vital")
        for unit, name in ((HARBOUR, "Ilse Brandt"), (MILL, "Tomas Weld"))
    ]
    harbour, mill = (
        "The host of Harbour Lights is Noor Haddad.",
        "The host of Old Mill is Tomas Weld.",
    )
    both = ideal(*vital, NOW)
    assert f"{mill}\n{harbour}" == both[0] and harbour not in both[1:]
    little = ideal(*vital, block_chars=60)
    assert (little[0], little[-1]) == ("The host of Harbour Lights is Ilse Brandt.", mill)


def test_the_ideal_topic_is_what_is_asked_for() -> None:
    """And what is found for it is served."""
    with opened(answer, script(TOLD, Op("tell", MILL, "name:Tomas Weld"))) as memory:
        memory.ingest(turn(0))
        memory.ingest(turn(1))
        assert "The host of Harbour Lights is Ilse Brandt." == asked(memory, WHO)[0]
