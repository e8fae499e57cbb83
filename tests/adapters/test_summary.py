"""Flat history with summarisation: when it summarises, what it sends, what it keeps and loses."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from steeltrap.adapters.embedders import HashEmbedder
from steeltrap.adapters.summary import Summary
from steeltrap.adapters.summary.answers import answer
from steeltrap.harness.conformance.said import SCRIPT
from steeltrap.harness.gateway.ideal import Ideal
from steeltrap.harness.gateway.mind import Dials, ScriptMind
from steeltrap.harness.gateway.server import Gateway
from steeltrap.harness.memory import (  # fmt: skip
    Erases,
    Forks,
    Lists,
    MemoryFault,
    Query,
    Recalls,
    Sized,
    Subject,
    Utterance,
)
from steeltrap.harness.models import Ask, Message, Mind, Reply
from steeltrap.harness.script import Header, Op, Script, Turn
from steeltrap.harness.tokens import count

TEXTS = [f"Lunch number {n} was good today." for n in range(8)]
SIZE = count(TEXTS[0])


def turn(number: int, text: str, tenant: str = "acme") -> Utterance:
    return Utterance(f"t{number}", f"2026-01-01T10:{number:02}", tenant, "s1", "user", text)


class Scribe:
    """Summarises as told, and keeps what it was asked."""

    def __init__(self, *said: str) -> None:
        self.said = list(said)
        self.asked: list[Ask] = []

    def __call__(self, ask: Ask, mind: Mind) -> Reply | None:  # noqa: ARG002
        self.asked.append(ask)
        return Reply(text=self.said[len(self.asked) - 1])


@contextlib.contextmanager
def opened(
    answerer: Callable[[Ask, Mind], Reply | None], script: Script = SCRIPT, **settings: int
) -> Iterator[Summary]:
    """A memory whose model answers so."""
    embedder = HashEmbedder()
    with Gateway(
        Ideal(answerer, ScriptMind(script), embedder, system="summary"), embedder
    ) as gateway:
        memory = Summary(**settings)  # type: ignore[arg-type]
        memory.connect(gateway.models)
        memory.open(Path())
        yield memory
        memory.close()


def served(memory: Summary, tenant: str = "acme") -> list[str]:
    return [i.text for i in memory.retrieve(Query("q", "2026-01-02T10:00", tenant, "?", 1))]


# ---------------------------------------------------------------- when and what


def test_summarises_when_the_turns_outgrow_the_trigger() -> None:
    """Four turns fit, the fifth does not: three go into the summary and two stay word for word."""
    scribe = Scribe("Lunch was good.\nAll liked it.")
    with opened(scribe, trigger_tokens=4 * SIZE, keep_tokens=2 * SIZE) as memory:
        for number, text in enumerate(TEXTS[:4]):
            memory.ingest(turn(number, text))
        assert [] == scribe.asked
        assert TEXTS[3::-1] == served(memory)
        memory.ingest(turn(4, TEXTS[4]))
        assert [TEXTS[4], TEXTS[3], "Lunch was good.", "All liked it."] == served(memory)
        assert served(memory)[::-1][1::-1] == [i.text for i in memory.active("acme")][:2]
    (asked,) = scribe.asked
    assert "Summary so far:\nNONE\n\n" in asked.said("user")
    assert all(text in asked.said("user") for text in TEXTS[:3])
    assert TEXTS[3] not in asked.said("user") and '"t0"' not in asked.said("user")


def test_the_next_summary_is_told_the_one_before() -> None:
    """And it takes its place; a tenant has a summary and a trigger of its own."""
    scribe = Scribe("Lunch was good.", "Lunch was always good.")
    with opened(scribe, trigger_tokens=2 * SIZE, keep_tokens=SIZE) as memory:
        for number, text in enumerate(TEXTS[:2]):
            memory.ingest(turn(number, text, "other"))
        for number, text in enumerate(TEXTS[:5]):
            memory.ingest(turn(number, text))
        assert "Summary so far:\nLunch was good.\n\n" in scribe.asked[1].said("user")
        assert [TEXTS[4], "Lunch was always good."] == served(memory)
        assert TEXTS[1::-1] == served(memory, "other")


def test_a_turn_longer_than_all_room_is_summarised_at_once() -> None:
    """Turns stay whole, so nothing is kept word for word then."""
    with opened(Scribe("It was long."), trigger_tokens=2 * SIZE, keep_tokens=SIZE) as memory:
        memory.ingest(turn(0, " ".join(TEXTS)))
        assert ["It was long."] == served(memory)


def test_nothing_worth_keeping_is_no_sentence() -> None:
    """The word for it is not served."""
    with opened(Scribe("NONE\n"), trigger_tokens=SIZE, keep_tokens=0) as memory:
        for number, text in enumerate(TEXTS[:2]):
            memory.ingest(turn(number, text))
        assert [] == served(memory)


def test_where_the_model_fails_nothing_is_taken_in_or_lost() -> None:
    """An empty or cut summary would lose the rest, and an error is no summary."""

    def fails(ask: Ask, mind: Mind) -> Reply | None:
        return replies.pop(0)

    replies = [Reply(text=""), Reply(text="Half of", finish="length"), None]
    with opened(fails, trigger_tokens=SIZE, keep_tokens=0) as memory:
        memory.ingest(turn(0, TEXTS[0]))
        for number in (1, 2, 3):
            with pytest.raises(MemoryFault, match="summary: the model"):
                memory.ingest(turn(number, TEXTS[number]))
        assert TEXTS[:1] == served(memory)


def test_sentences_have_no_sources_and_turns_have() -> None:
    """Nobody knows which turns a sentence was made of."""
    with opened(Scribe("Lunch was good."), trigger_tokens=SIZE, keep_tokens=SIZE - 1) as memory:
        memory.ingest(turn(0, TEXTS[0]))
        (verbatim,) = memory.active("acme")
        memory.ingest(turn(1, TEXTS[1]))
        (sentence,) = memory.active("acme")
        assert (("t0",), "2026-01-01T10:00") == (verbatim.sources, verbatim.valid_from)
        assert (None, None) == (sentence.sources, sentence.valid_from)


def test_erases_by_name_and_claims_no_more() -> None:
    """Sentences and turns that name the topic go, or all of a tenant; there is no history."""
    with opened(Scribe("Old Mill opens in May.\nIt rains."), trigger_tokens=20, keep_tokens=9) as memory:  # fmt: skip
        memory.ingest(turn(0, TEXTS[0]))
        memory.ingest(turn(1, TEXTS[1]))
        memory.ingest(turn(2, "Who asked for old mill?"))
        memory.erase("acme", Subject("acme", "Old Mill", "opening", "?"))
        assert [i for i in served(memory) if "mill" in i.casefold()] == []
        assert "It rains." in served(memory)
        memory.erase("acme", None)
        assert [] == served(memory)
        assert isinstance(memory, Erases) and isinstance(memory, Lists)
        assert not isinstance(memory, Forks | Recalls | Sized)


@pytest.mark.parametrize(
    "settings", [{"trigger_tokens": 10, "keep_tokens": 10}, {"keep_tokens": -1}, {"prompt": "x"}]
)
def test_refuses_settings_that_make_no_sense(settings: dict[str, int]) -> None:
    """The part that is kept is below the trigger, and a prompt has to be there."""
    with pytest.raises(ValueError, match="summary: "):
        Summary(**settings)  # type: ignore[arg-type]


def test_needs_a_model() -> None:
    """Without one it cannot be opened."""
    with pytest.raises(MemoryFault, match="no model is connected"):
        Summary().open(Path())


# ---------------------------------------------------------------- the ideal summariser


def said(*ops: Op) -> Script:
    """A conversation in which each turn does one thing, under a text of its own."""
    turns = [
        Turn(at=f"2026-01-01T10:{n:02}", id=f"t{n}", session="s", tenant="a", text=f"Turn {n} of Atlas.", ops=[op])
        for n, op in enumerate(ops)
    ]  # fmt: skip
    return Script(Header(name="small", tenants=["a"]), list(turns))


def summarised(script: Script, *parts: range, dials: Dials | None = None) -> list[str]:
    """What an ideal model makes of the turns, so many at a time."""
    mind, summary = ScriptMind(script, dials), "NONE"
    for part in parts:
        rows = "\n".join(f'{{"text": "Turn {n} of Atlas."}}' for n in part)
        user = f"Summary so far:\n{summary}\n\nMessages, one JSON object a line:\n{rows}"
        reply = answer(Ask("m", (Message("user", user),)), mind)
        assert reply is not None
        summary = reply.text
    return summary.split("\n")


DEADLINE, HOST = "a/Atlas/deadline", "a/Atlas/host"


def test_the_ideal_summary_is_what_holds() -> None:
    """A changed value takes the place of the old one; the rest stays, small talk leaves nothing."""
    script = said(
        Op("tell", DEADLINE, "date:2026-03-05"), Op("noise"), Op("tell", HOST, "text:Ilse Brandt"),
        Op("revise", DEADLINE, "date:2026-03-09"), Op("restate", HOST, "text:Ilse Brandt"),
    )  # fmt: skip
    due = ["The host of Atlas is Ilse Brandt.", "The deadline of Atlas is 9 March 2026."]
    assert due == summarised(script, range(5))
    assert due == summarised(script, range(2), range(2, 3), range(3, 5))


def test_the_ideal_summary_forgets_what_was_withdrawn() -> None:
    """Nothing is said of it, and without anything else there is no summary."""
    script = said(Op("tell", DEADLINE, "date:2026-03-05"), Op("retract", DEADLINE))
    assert ["NONE"] == summarised(script, range(1), range(1, 2))


def test_the_ideal_summary_forgets_an_end_with_its_value() -> None:
    """When what would have ended is replaced, its end says nothing any more."""
    script = said(
        Op("tell", DEADLINE, "date:2026-03-05"), Op("expire", DEADLINE, until="2026-02-01T09:00"),
        Op("revise", DEADLINE, "date:2026-03-09"),
    )  # fmt: skip
    assert 2 == len(summarised(script, range(2)))
    assert ["The deadline of Atlas is 9 March 2026."] == summarised(script, range(3))


def test_the_ideal_summary_keeps_to_whose_word_counts() -> None:
    """A colleague does not overrule the owner; hearsay stands as such."""
    script = said(
        Op("tell", DEADLINE, "date:2026-03-05"),
        Op("revise", DEADLINE, "date:2026-03-09", source="colleague"),
        Op("rumour", DEADLINE, "date:2026-03-11", source="hearsay"),
    )
    told, rumoured = summarised(script, range(3))
    assert "The deadline of Atlas is 5 March 2026." == told
    assert "Unconfirmed, from hearsay" in rumoured


def test_an_overlooked_contradiction_leaves_both() -> None:
    """What the dial says is not noticed stands beside what it contradicts."""
    script = said(
        Op("tell", DEADLINE, "date:2026-03-05"), Op("revise", DEADLINE, "date:2026-03-09")
    )
    assert 2 == len(summarised(script, range(2), dials=Dials(overlooked=1.0)))


def test_another_prompt_is_not_known() -> None:
    """The ideal model answers the adapter's prompt and no other."""
    assert answer(Ask("m", (Message("user", "Hello"),)), ScriptMind(SCRIPT)) is None
