"""Memory-R1 in house: operations on a flat store, distillation, policies, and the ideal model."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from steeltrap.adapters.chat import Chat
from steeltrap.adapters.embedders import HashEmbedder
from steeltrap.adapters.memory_r1 import MemoryR1
from steeltrap.adapters.memory_r1.answers import answer
from steeltrap.adapters.memory_r1.policy import Entry, Operation
from steeltrap.harness.gateway.ideal import Ideal
from steeltrap.harness.gateway.mind import ScriptMind
from steeltrap.harness.gateway.server import Gateway
from steeltrap.harness.memory import MemoryFault, Query, Subject, Utterance, capabilities
from steeltrap.harness.models import Ask, Mind, Reply
from steeltrap.harness.script import Header, Op, Probe, Rule, Script, Turn

HARBOUR, MILL = "a/Harbour Lights/host", "a/Old Mill/host"


def script(*ops: Op, asks: Sequence[Probe] = ()) -> Script:
    """A conversation in which each turn does one thing, under a text of its own."""
    turns = [
        Turn(at=f"2026-01-{n + 1:02}T10:00", id=f"t{n}", session="s", tenant="a",
             text=f"Turn {n} of Harbour Lights and Old Mill.", ops=[op])
        for n, op in enumerate(ops)
    ]  # fmt: skip
    return Script(Header(name="small", tenants=["a"]), [*turns, *asks])


def probe(unit: str, text: str) -> Probe:
    return Probe(id="q", at="2026-02-01T10:00", tenant="a", ask="current", text=text, unit=unit)


Answer = Callable[[Ask, Mind], Reply | None]


@contextlib.contextmanager
def opened(answerer: Answer, said: Script | None = None, **settings: Any) -> Iterator[MemoryR1]:
    embedder = HashEmbedder()
    ideal = Ideal(answerer, ScriptMind(said or script()), embedder, system="memory-r1")
    with Gateway(ideal, embedder, retries=0) as gateway:
        memory = MemoryR1(embedder, **settings)
        memory.connect(gateway.models)
        memory.open(Path())
        yield memory
        memory.close()


def turn(number: int, text: str = "", tenant: str = "a") -> Utterance:
    text = text or f"Turn {number} of Harbour Lights and Old Mill."
    return Utterance(f"t{number}", f"2026-01-{number + 1:02}T10:00", tenant, "s", "user", text)


def asked(memory: MemoryR1, text: str, limit: int = 10, tenant: str = "a") -> list[str]:
    query = Query("q", "2026-02-01T10:00", tenant, text, limit)
    return [item.text for item in memory.retrieve(query)]


class Told:
    """Extracts the message itself, and answers the rest as told."""

    def __init__(self, *operations: Operation, useful: Sequence[str] = ()) -> None:
        self.operations = list(operations)
        self.useful = useful
        self.asked: list[Ask] = []

    def __call__(self, ask: Ask, mind: Mind) -> Reply | None:  # noqa: ARG002
        self.asked.append(ask)
        match ask.schema_name:
            case "facts":
                said = msgspec.json.decode(ask.said("user").rpartition("\n")[2])
                content: Any = {"facts": [said["text"]]}
            case "operation":
                content = self.operations.pop(0)
            case _:
                content = {"useful": list(self.useful)}
        return Reply(text=msgspec.json.encode(content).decode())


ADD = Operation("ADD", "", "Tea at four.")
MOVED = Operation("UPDATE", "m0", "Tea at five.")


# ---------------------------------------------------------------- operations


def test_each_operation_does_what_it_says() -> None:
    """A memory is added, updated under its id and with its time, left alone, and deleted."""
    steps = [ADD, MOVED, Operation("NOOP", "", ""), Operation("DELETE", "m0", "")]
    with opened(Told(*steps)) as memory:
        states = []
        for number in range(4):
            memory.ingest(turn(number))
            states.append([(i.id, i.text, i.valid_from) for i in memory.active("a")])
    five = [("m0", "Tea at five.", "2026-01-02T10:00")]
    assert [[("m0", "Tea at four.", "2026-01-01T10:00")], five, five, []] == states


def test_an_operation_that_cannot_be_carried_out_changes_nothing() -> None:
    """An id that is not there, and an empty text, are no operations; ids are given once."""
    steps = [
        Operation("DELETE", "m7", ""), Operation("UPDATE", "m7", "x"), Operation("ADD", "", " "),
        ADD, Operation("UPDATE", "m0", ""), Operation("DELETE", "m0", ""), ADD,
    ]  # fmt: skip
    with opened(Told(*steps)) as memory:
        for number in range(7):
            memory.ingest(turn(number))
        assert [("m1", "Tea at four.")] == [(i.id, i.text) for i in memory.active("a")]


def test_the_manager_is_shown_the_nearest_memories_alone() -> None:
    """`related` of them, with ids, times and texts, the nearest first; other tenants' never."""
    adds = [Operation("ADD", "", text) for text in ("Tea at four.", "Choir on Tuesday.", "x", "y")]
    told = Told(*adds)
    with opened(told, related=1) as memory:
        memory.ingest(turn(0, "tea"))
        memory.ingest(turn(1, "choir"))
        memory.ingest(turn(2, "Tuesday choir", tenant="b"))
        memory.ingest(turn(3, "Tuesday choir"))
    shown = [ask.said("user") for ask in told.asked if ask.schema_name == "operation"]
    assert "(none)" in shown[0] and "(none)" in shown[2]
    row = '{"id":"m1","at":"2026-01-02T10:00","text":"Choir on Tuesday."}'
    assert row in shown[3] and "Tea" not in shown[3]


def test_where_the_model_fails_nothing_is_taken_in() -> None:
    """A turn of two facts whose second cannot be managed leaves no first one behind."""

    def fails(ask: Ask, mind: Mind) -> Reply | None:
        if ask.schema_name == "facts":
            return Reply(text='{"facts": ["One.", "Two."]}')
        return Reply(text=msgspec.json.encode(ADD).decode()) if "One." in ask.text else None

    with opened(fails) as memory:
        with pytest.raises(MemoryFault, match="memory-r1: the model"):
            memory.ingest(turn(0))
        assert [] == list(memory.active("a"))


# ---------------------------------------------------------------- distillation


def test_only_what_is_of_use_is_served() -> None:
    """Of the candidates, which are the nearest, those that the policy keeps, nearest first."""
    adds = [Operation("ADD", "", f"Tea number {n}.") for n in range(5)]
    told = Told(*adds, useful=["m4", "m1", "m9"])
    with opened(told, candidates=4) as memory:
        for number in range(5):
            memory.ingest(turn(number))
        assert ["Tea number 1."] == asked(memory, "tea number 1 2 3 0")
        shown = told.asked[-1].said("user")
        assert "number 4" not in shown and "number 2" in shown
        assert [] == asked(memory, "tea", limit=0)


def test_without_candidates_or_question_no_model_is_asked() -> None:
    """There is nothing to distil."""
    told = Told(ADD, useful=["m0"])
    with opened(told) as memory:
        assert [] == asked(memory, "tea")
        memory.ingest(turn(0))
        before = len(told.asked)
        assert [] == asked(memory, " ")
        assert before == len(told.asked)
        assert ["Tea at four."] == asked(memory, "tea")


# ---------------------------------------------------------------- policies


class Hoarder:
    """Adds everything, and finds the first two of use."""

    def __init__(self, chat: Chat) -> None:
        self.chat = chat

    def manage(self, new: str, at: str, related: Mapping[str, Entry]) -> Operation:  # noqa: ARG002
        return Operation("ADD", "", f"{len(related)} near: {new}")

    def distil(self, question: str, candidates: Mapping[str, Entry]) -> Sequence[str]:  # noqa: ARG002
        return list(candidates)[:2]


def test_another_policy_manages_and_distils() -> None:
    """A class named by its path takes both decisions; the model extracts all the same."""
    told = Told()
    with opened(told, policy=f"{__name__}.Hoarder") as memory:
        for number in range(3):
            memory.ingest(turn(number, "Tea."))
        assert ["0 near: Tea.", "1 near: Tea."] == asked(memory, "0 1 near tea")
    assert {"facts"} == {ask.schema_name for ask in told.asked}


@pytest.mark.parametrize(
    "settings",
    [{"related": 0}, {"candidates": 0}, {"policy": "no.such.Policy"}, {"policy": "nobody"}],
)
def test_refuses_settings_that_make_no_sense(settings: dict[str, Any]) -> None:
    """Numbers are positive, and a policy has to be there."""
    with pytest.raises(ValueError, match=r"memory-r1: |policy="):
        MemoryR1(HashEmbedder(), **settings)


# ---------------------------------------------------------------- life


def test_a_fork_is_an_exact_copy_that_lives_on_its_own() -> None:
    """It serves the same, and neither feels what is done to the other, its end included."""
    with opened(Told(ADD, MOVED, MOVED, useful=["m0"])) as memory:
        memory.ingest(turn(0))
        twin = memory.fork()
        assert list(memory.active("a")) == list(twin.active("a"))
        twin.ingest(turn(1))
        assert ("Tea at four.", "Tea at five.") == (
            memory.active("a")[0].text, twin.active("a")[0].text,
        )  # fmt: skip
        twin.close()
        memory.ingest(turn(2))
        assert ["Tea at five."] == asked(memory, "tea")


def test_erases_by_name_and_claims_no_more() -> None:
    """What names topic and field goes, or, where none does, what names the topic."""
    said = ["The host of Old Mill is Kim.", "Old Mill is old.", "It rains."]
    with opened(Told(*(Operation("ADD", "", text) for text in said))) as memory:
        for number in range(3):
            memory.ingest(turn(number))
        subject = Subject("a", "Old Mill", "host", "?")
        memory.erase("a", subject)
        assert said[1:] == [i.text for i in memory.active("a")]
        memory.erase("a", subject)
        assert said[2:] == [i.text for i in memory.active("a")]
        memory.erase("a", None)
        assert [] == list(memory.active("a"))
        assert ["list", "erase", "fork", "models"] == capabilities(memory)


# ---------------------------------------------------------------- the ideal model


def held(said: Script) -> list[str]:
    with opened(answer, said) as memory:
        for number in range(sum(isinstance(step, Turn) for step in said.steps)):
            memory.ingest(turn(number))
        return [item.text for item in memory.active("a")]


def test_the_ideal_manager_keeps_what_holds() -> None:
    """A changed value takes the old one's place, a withdrawal deletes it, a rumour stands apart."""
    said = script(
        Op("tell", HARBOUR, "name:Ilse Brandt"), Op("tell", MILL, "name:Tomas Weld"), Op("noise"),
        Op("restate", MILL, "name:Tomas Weld"), Op("revise", HARBOUR, "name:Noor Haddad"),
        Op("rumour", HARBOUR, "name:Uma Okafor", source="hearsay"), Op("retract", MILL),
    )  # fmt: skip
    assert [
        "The host of Harbour Lights is Noor Haddad.",
        "Unconfirmed, from hearsay: the host of Harbour Lights is Uma Okafor.",
    ] == held(said)


def test_the_ideal_manager_believes_whose_word_counts_more() -> None:
    """What somebody says against the owner is not stored; what the owner says against them is."""
    owner = Op("tell", HARBOUR, "name:Ilse Brandt")
    other = Op("tell", HARBOUR, "name:Noor Haddad", source="colleague")
    assert ["The host of Harbour Lights is Ilse Brandt."] == held(script(owner, other))
    assert ["The host of Harbour Lights is Ilse Brandt."] == held(script(other, owner))


def test_the_ideal_reader_keeps_what_is_asked_for_and_what_it_follows_from() -> None:
    """A rule comes with what it starts from; memories about anything else do not."""
    rule = Op("depend", MILL, target=HARBOUR, rule=Rule("same"))
    said = script(
        Op("tell", HARBOUR, "name:Ilse Brandt"), Op("tell", MILL, "name:Tomas Weld"), rule,
        Op("tell", "a/Old Mill/owner", "name:Kim Lee"),
        asks=[probe(HARBOUR, "Who is the host of Harbour Lights?"), probe(MILL, "And of Old Mill?")],
    )  # fmt: skip
    with opened(answer, said) as memory:
        for number in range(4):
            memory.ingest(turn(number))
        assert {
            "The host of Harbour Lights is Ilse Brandt.", "The host of Old Mill is Tomas Weld.",
            "The host of Harbour Lights is always the same as the host of Old Mill.",
        } == set(asked(memory, "Who is the host of Harbour Lights?"))  # fmt: skip
        assert ["The host of Old Mill is Tomas Weld."] == asked(memory, "And of Old Mill?")
