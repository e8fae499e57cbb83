"""A-Mem: what is filed, what the model is shown, what evolves, what a question finds."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from steeltrap.adapters.a_mem import AMem
from steeltrap.adapters.a_mem.answers import answer
from steeltrap.adapters.a_mem.memory import Attributes, Changed, Evolution
from steeltrap.adapters.embedders import HashEmbedder
from steeltrap.harness.gateway.ideal import Ideal
from steeltrap.harness.gateway.mind import ScriptMind
from steeltrap.harness.gateway.server import Gateway
from steeltrap.harness.memory import Item, MemoryFault, Query, Subject, Utterance, capabilities
from steeltrap.harness.models import Ask, Message, Mind, Reply
from steeltrap.harness.script import Script

ON_MAY = "The kick-off of Old Mill is 3 May 2026."
ON_JUNE = "The kick-off of Old Mill is 9 June 2026."
BUDGET = "The budget of Old Mill is 4,300 EUR."

Answer = Callable[[Ask, Mind], Reply | None]


class Filer:
    """Describes and evolves as told, and keeps what it was asked.

    Args:
        evolutions: one for each message but the first.
    """

    def __init__(self, *evolutions: Evolution) -> None:
        self.evolutions = list(evolutions)
        self.asked: list[Ask] = []

    def __call__(self, ask: Ask, mind: Mind) -> Reply | None:  # noqa: ARG002
        self.asked.append(ask)
        made: Any = Attributes(["word"], ["A context."], ["tag"])
        if ask.schema_name == "evolution":
            made = self.evolutions.pop(0) if self.evolutions else Evolution([], [])
        return Reply(msgspec.json.encode(made).decode())

    @property
    def shown(self) -> list[dict[str, Any]]:
        """The near notes of the last prompt."""
        lines = self.asked[-1].said("user").partition("a line:\n")[2].split("\n")
        return [msgspec.json.decode(line) for line in lines]


@contextlib.contextmanager
def opened(answerer: Answer, script: Script, **settings: Any) -> Iterator[AMem]:
    """A memory whose model answers so."""
    embedder = HashEmbedder()
    ideal = Ideal(answerer, ScriptMind(script), embedder, system="a-mem")
    with Gateway(ideal, embedder) as gateway:
        memory = AMem(embedder, **settings)
        memory.connect(gateway.models)
        memory.open(Path())
        yield memory
        memory.close()


def turn(number: int, text: str) -> Utterance:
    return Utterance(f"t{number}", f"2026-01-01T10:{number:02}", "acme", "s1", "user", text)


def asked(memory: AMem, text: str, limit: int = 10, tenant: str = "acme") -> list[Item]:
    return list(memory.retrieve(Query("q", "2026-02-01T12:00", tenant, text, limit)))


def texts(items: Any) -> list[str]:
    return [item.text for item in items]


# ---------------------------------------------------------------- filing


def test_a_note_is_the_message_with_its_time_and_source(small: Any) -> None:
    """What was said is kept word for word; a context as it was first written is not served."""
    with opened(Filer(), small.script) as memory:
        memory.ingest(turn(0, "Lunch was late."))
        assert capabilities(memory) == ["list", "erase", "models"]
        (note,) = memory.active("acme")
        assert note == Item("Lunch was late.", "n0", ("t0",), "2026-01-01T10:00")


def test_the_first_message_is_held_against_nothing_and_later_ones_against_the_nearest(
    small: Any,
) -> None:
    """Their contents and attributes are shown, as many as `neighbours`, nearest first."""
    filer = Filer()
    with opened(filer, small.script, neighbours=2) as memory:
        for number, text in enumerate(("cats purr", "dogs bark", "dogs bark loudly", "dogs bark")):
            memory.ingest(turn(number, text))
    asks = [ask.schema_name for ask in filer.asked]
    assert asks == ["note", *["note", "evolution"] * 3]
    assert [row["id"] for row in filer.shown] == ["n1", "n2"]
    assert filer.shown[0] == {
        "at": "2026-01-01T10:01", "role": "user", "content": "dogs bark", "keywords": ["word"],
        "context": ["A context."], "tags": ["tag"], "id": "n1",
    }  # fmt: skip


def test_evolution_rewrites_attributes_and_never_what_was_said(small: Any) -> None:
    """New sentences of a context are served with the note; the vector follows, so it is found by them."""
    change = Changed(["zebra"], ["A context.", "Stripes everywhere."], ["zebra"], "n0")
    unknown = Changed([], ["Nowhere."], [], "n7")
    with opened(Filer(Evolution([], [change, unknown])), small.script) as memory:
        memory.ingest(turn(0, "cats purr"))
        before = asked(memory, "zebra stripes everywhere")[0].score
        memory.ingest(turn(1, "dogs bark"))
        found = asked(memory, "zebra stripes everywhere")
        assert texts(found) == ["cats purr", "Stripes everywhere.", "dogs bark"]
        assert (found[0].score or 0) > (before or 0)
        news = found[1]
        assert (news.id, news.sources, news.valid_from) == ("n0", None, "2026-01-01T10:00")
        assert texts(memory.active("acme")) == texts(found)


def test_a_sentence_that_stands_in_several_notes_is_served_once(small: Any) -> None:
    """It would take the place of other notes."""
    both = [Changed([], ["Now it is so."], [], name) for name in ("n0", "n1")]
    with opened(Filer(Evolution([], []), Evolution([], both)), small.script) as memory:
        for number, text in enumerate(("dogs bark", "dogs bark", "dogs bark")):
            memory.ingest(turn(number, text))
        assert texts(asked(memory, "dogs")).count("Now it is so.") == 1
        assert texts(asked(memory, "dogs")).count("dogs bark") == 3


def test_where_the_model_fails_nothing_is_filed(small: Any) -> None:
    """Neither the note nor a change, whichever of the two calls fails."""

    def fails(ask: Ask, mind: Mind) -> Reply | None:
        return None if ask.schema_name in failing else filer(ask, mind)

    failing: list[str] = []
    filer = Filer()
    with opened(fails, small.script) as memory:
        memory.ingest(turn(0, "cats purr"))
        for failing[:] in (["note"], ["evolution"]):
            with pytest.raises(MemoryFault, match="a-mem: the model could not be asked"):
                memory.ingest(turn(1, "dogs bark"))
        assert texts(memory.active("acme")) == ["cats purr"]


# ---------------------------------------------------------------- asking


def test_half_of_the_limit_is_found_and_leads_to_others(small: Any) -> None:
    """Linked notes come before those that are found less near, and only the new note leads anywhere."""
    evolutions = [Evolution([], []), Evolution(["n0", "n9"], []), Evolution([], [])]
    with opened(Filer(*evolutions), small.script) as memory:
        for number, text in enumerate(("cats purr", "dogs run", "dogs bark loudly", "dogs walk")):
            memory.ingest(turn(number, text))
        assert texts(asked(memory, "bark loudly", 2)) == ["dogs bark loudly", "cats purr"]
        assert texts(asked(memory, "bark loudly dogs", 3))[:2] == ["dogs bark loudly", "dogs run"]
        assert texts(asked(memory, "cats purr", 1)) == ["cats purr"]
        assert asked(memory, "dogs", 0) == []


def test_k_bounds_what_a_question_finds(small: Any) -> None:
    """With k=1 a question finds the nearest note and what it leads to."""
    with opened(Filer(), small.script, k=1) as memory:
        for number, text in enumerate(("cats purr", "dogs bark")):
            memory.ingest(turn(number, text))
        assert texts(asked(memory, "dogs bark")) == ["dogs bark"]


# ---------------------------------------------------------------- erasing


def test_erases_by_name_wherever_it_stands(small: Any) -> None:
    """Notes that name the topic in message or attributes go, and links to them."""
    change = Changed([], ["It is about Old Mill."], [], "n0")
    evolutions = [Evolution([], [change]), Evolution(["n0", "n1"], [])]
    with opened(Filer(*evolutions), small.script) as memory:
        for number, text in enumerate(("cats purr", "dogs bark", "birds sing")):
            memory.ingest(turn(number, text))
        memory.ingest(turn(3, "Who knows old mill?"))
        memory.erase("acme", Subject("acme", "Old Mill", "kick-off", "?"))
        assert texts(memory.active("acme")) == ["dogs bark", "birds sing"]
        assert texts(asked(memory, "birds sing", 2)) == ["birds sing", "dogs bark"]
        memory.erase("acme", None)
        assert memory.active("acme") == []


# ---------------------------------------------------------------- the ideal model


@pytest.fixture
def filed(small: Any) -> Iterator[Callable[..., list[str]]]:
    """What is listed after turns of the short script, with an ideal model."""
    with opened(answer, small.script) as memory:

        def file(*turns: str) -> list[str]:
            for name in turns:
                memory.ingest(small.heard(name))
            return texts(memory.active("acme"))

        yield file


def test_an_old_context_is_brought_up_to_date(filed: Any, small: Any) -> None:
    """The new sentence stands in the place of the old one, in every note that held it."""
    told = [small.turns[name].text for name in ("tell", "revise", "two", "retract")]
    assert filed("tell") == told[:1]
    assert filed("revise") == [told[0], ON_JUNE, told[1]]
    assert filed("two") == [told[0], ON_JUNE, told[1], told[2]]
    gone = "The kick-off of Old Mill is no longer set."
    assert filed("retract") == [told[0], gone, told[1], gone, told[2], gone, told[3]]


def test_what_contradicts_nothing_changes_nothing(filed: Any, small: Any) -> None:
    """Rumours, rules, small talk and late news leave the others as they are."""
    turns = ("tell", "rumour", "noise", "depend", "late", "host")
    assert filed(*turns) == [small.turns[name].text for name in turns]


def test_attributes_are_what_a_message_states(small: Any) -> None:
    """Each statement is a sentence of the context; small talk has none."""

    def described(name: str) -> Attributes:
        user = f"Message:\n{msgspec.json.encode({'content': small.turns[name].text}).decode()}"
        reply = answer(Ask("m", (Message("user", user),), "schema", "note"), mind)
        assert reply is not None
        return msgspec.json.decode(reply.text, type=Attributes)

    mind = ScriptMind(small.script)
    assert described("two") == Attributes(
        ["Old Mill", "kick-off", "9 June 2026", "budget", "4,300 EUR"],
        [ON_JUNE, BUDGET],
        ["kick-off", "budget"],
    )
    assert described("noise") == Attributes([], [], ["small talk"])
    assert described("host").context == ["The host is Ilse Brandt."]


def test_notes_of_one_topic_are_linked(small: Any) -> None:
    """The topic that a message leaves out is known where a near note shows it."""
    near = [
        {"id": "n0", "content": "x", "context": [ON_MAY], "keywords": [], "tags": []},
        {"id": "n1", "content": "x", "context": ["The host is Ilse Brandt."], "keywords": []},
        {"id": "n2", "content": "x\n{", "context": [], "keywords": [], "tags": []},
    ]
    lines = "\n".join(msgspec.json.encode(row).decode() for row in near)
    for name, links in (("host", ["n0"]), ("revise", ["n0"]), ("noise", [])):
        new = msgspec.json.encode({"content": small.turns[name].text}).decode()
        user = f"New note:\n{new}\n\nNearest notes, one JSON object a line:\n{lines}"
        ask = Ask("m", (Message("user", user),), "schema", "evolution")
        reply = answer(ask, ScriptMind(small.script))
        assert reply is not None
        assert msgspec.json.decode(reply.text, type=Evolution).links == links


def test_other_prompts_are_left_to_the_gateway(small: Any) -> None:
    """Only the two of its own are answered."""
    assert answer(Ask("m", (Message("user", "Message:\n{}"),)), ScriptMind(small.script)) is None


@pytest.mark.parametrize("settings", [{"k": 0}, {"neighbours": 0}, {"note": "x"}])
def test_refuses_settings_that_make_no_sense(settings: dict[str, Any]) -> None:
    """Numbers are positive, and a prompt has to be there."""
    with pytest.raises(ValueError, match="a-mem: "):
        AMem(HashEmbedder(), **settings)


def test_not_open_is_a_fault() -> None:
    """Without a model it cannot be opened, and nothing works before."""
    memory = AMem(HashEmbedder())
    memory.close()
    with pytest.raises(MemoryFault, match="no model is connected"):
        memory.open(Path())
    with pytest.raises(MemoryFault, match="not open"):
        memory.active("acme")
