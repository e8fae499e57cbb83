"""Generative Agents: what is rated, how the stream is ranked, what reading and reflecting change."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from steeltrap.adapters.embedders import HashEmbedder
from steeltrap.adapters.generative_agents import GenerativeAgents
from steeltrap.adapters.generative_agents.answers import answer
from steeltrap.adapters.generative_agents.stream import CODE, PAPER, Record, Scoring
from steeltrap.harness.conformance.said import SCRIPT
from steeltrap.harness.gateway.ideal import Ideal
from steeltrap.harness.gateway.mind import ScriptMind
from steeltrap.harness.gateway.server import Gateway
from steeltrap.harness.memory import MemoryFault, Query, Subject, Utterance
from steeltrap.harness.models import Answerer, Ask, Mind, Reply
from steeltrap.harness.script import Header, Op, Script, Turn

TEXTS = ["Atlas is due in March.", "Lunch was late.", "Birch has a new host.", "It rains again."]


def turn(number: int, text: str, at: str = "", tenant: str = "acme") -> Utterance:
    return Utterance(f"t{number}", at or f"2026-01-01T{number:02}:00", tenant, "s1", "user", text)


def asked(text: str, at: str, limit: int = 1, tenant: str = "acme") -> Query:
    return Query("q", at, tenant, text, limit)


class Judge:
    """Rates as told, asks one question and concludes one thing; keeps what it was asked."""

    def __init__(self, *ratings: int, because: tuple[int, ...] = (1, 2)) -> None:
        self.ratings, self.because = list(ratings), because
        self.asked: list[Ask] = []

    def __call__(self, ask: Ask, mind: Mind) -> Reply | None:  # noqa: ARG002
        self.asked.append(ask)
        said: dict[str, Any] = {
            "importance": {"importance": self.ratings[0] if self.ratings else 1},
            "questions": {"questions": ["What is due?", "Who hosts?"]},
            "insights": {"insights": [{"insight": "Much is due.", "because": list(self.because)}]},
        }
        if ask.schema_name == "importance":
            self.ratings[:1] = []
        return Reply(text=msgspec.json.encode(said[ask.schema_name]).decode())


@contextlib.contextmanager
def opened(
    answerer: Answerer, script: Script = SCRIPT, **settings: Any
) -> Iterator[GenerativeAgents]:
    """A memory whose model answers so."""
    embedder = HashEmbedder()
    ideal = Ideal(answerer, ScriptMind(script), embedder, system="generative-agents")
    with Gateway(ideal, embedder) as gateway:
        memory = GenerativeAgents(embedder, **settings)
        memory.connect(gateway.models)
        memory.open(Path())
        yield memory
        memory.close()


# ---------------------------------------------------------------- the score


def record(number: int, accessed: str, importance: int, *vector: float) -> Record:
    row = np.array(vector or (1.0, 0.0), dtype=np.float32)
    return Record(number, f"r{number}", accessed, accessed, importance, (f"t{number}",), row)


def ranked(scoring: Scoring, *records: Record) -> list[tuple[int, float]]:
    question = np.array([1.0, 0.0], dtype=np.float32)
    found = scoring.best(records, question, "2026-01-11T00:00", len(records))
    return [(one.number, score) for one, score in found]


def test_the_paper_adds_three_scaled_parts_with_equal_weights() -> None:
    """Section 4.1: decay 0.995 an hour since the last access, all scaled to [0, 1], weights 1."""
    old = record(1, "2026-01-01T00:00", 9, 1.0, 0.0)  # 240 hours
    mid = record(2, "2026-01-06T00:00", 5, 0.6, 0.8)  # 120 hours
    new = record(3, "2026-01-11T00:00", 1, 0.0, 1.0)  # 0 hours
    recency = (0.995**120 - 0.995**240) / (1 - 0.995**240)
    due = [(1, 0 + 1 + 1), (2, recency + 0.5 + 0.6), (3, 1 + 0 + 0)]
    assert due == [(n, pytest.approx(score, abs=1e-6)) for n, score in ranked(PAPER, old, mid, new)]


def test_the_code_weighs_otherwise_and_favours_what_was_read_longest_ago() -> None:
    """`retrieve.py`: weights 0.5, 3 and 2; its first place, with the least decay, is the oldest access."""
    old = record(1, "2026-01-01T00:00", 5)
    new = record(2, "2026-01-11T00:00", 5)
    assert [2, 1] == [n for n, _ in ranked(PAPER, old, new)]
    # what is alike lies in the middle: relevance gives 1.5 and importance 1
    assert [(1, 3.0), (2, 2.5)] == ranked(CODE, old, new)


def test_in_the_code_the_later_of_equal_accesses_comes_first() -> None:
    """Observations stand newest first before a stable sort, and before reflections."""
    same = [record(n, "2026-01-01T00:00", 5) for n in (1, 2)]
    insight = msgspec.structs.replace(same[0], number=3, because=(1,))
    assert [2, 1, 3] == [n for n, _ in ranked(CODE, *same, insight)]


# ---------------------------------------------------------------- observing and reading


def test_every_turn_is_rated_once_and_kept_word_for_word() -> None:
    """An observation has its importance from when it was made; a rating off the scale is asked again."""
    judge = Judge(11, 7, 2)
    with opened(judge) as memory:
        memory.ingest(turn(0, TEXTS[0]))
        memory.ingest(turn(1, TEXTS[1]))
        assert TEXTS[:2] == [item.text for item in memory.active("acme")]
        assert [("t0",), ("t1",)] == [item.sources for item in memory.active("acme")]
    assert ["importance"] * 3 == [ask.schema_name for ask in judge.asked]
    assert "Your last answer could not be used" in judge.asked[1].text


def test_what_is_served_has_been_accessed() -> None:
    """Reading raises what was read; a copy that is asked leaves the original alone."""
    atlas, birch = (Subject("acme", topic, "host", "?") for topic in ("Atlas", "Birch"))
    with opened(Judge(9, 5, 5)) as memory:
        for number in (0, 1, 2):
            memory.ingest(turn(number, TEXTS[number]))
        before = memory.salience(atlas), memory.salience(birch)
        memory.fork().retrieve(asked(TEXTS[0], "2026-01-03T00:00"))
        assert before == (memory.salience(atlas), memory.salience(birch))
        (served,) = memory.retrieve(asked(TEXTS[0], "2026-01-03T00:00"))
        after = memory.salience(atlas), memory.salience(birch)
        assert TEXTS[0] == served.text and served.score is not None
        assert after[0] > before[0] and after[1] < before[1]  # type: ignore[operator]


def test_in_the_code_reading_lowers_what_was_read() -> None:
    """What was just read goes to the end of the order by last access, where decay is greatest."""
    atlas = Subject("acme", "Atlas", "host", "?")
    with opened(Judge(5, 5, 5), scoring="code") as memory:
        for number in (0, 1, 2):
            memory.ingest(turn(number, TEXTS[number]))
        before = memory.salience(atlas)
        memory.retrieve(asked(TEXTS[0], "2026-01-03T00:00"))
        assert memory.salience(atlas) < before  # type: ignore[operator]


def test_a_question_of_an_earlier_time_takes_no_access_back() -> None:
    """The last access is the latest."""
    atlas = Subject("acme", "Atlas", "host", "?")
    with opened(Judge(9, 5)) as memory:
        memory.ingest(turn(9, TEXTS[0]))
        memory.ingest(turn(9, TEXTS[1]))
        stands = memory.salience(atlas)
        assert TEXTS[:1] == [i.text for i in memory.retrieve(asked(TEXTS[0], "2025-01-01T00:00"))]
        assert stands == memory.salience(atlas)


# ---------------------------------------------------------------- reflecting


def test_reflects_when_more_than_the_threshold_has_come_together() -> None:
    """Section 4.2: questions, retrieval for each, insights with what they rest on, stored alike."""
    judge = Judge(6, 6, 8, 4, 4)
    with opened(judge, threshold=12) as memory:
        memory.ingest(turn(0, TEXTS[0]))
        memory.ingest(turn(1, TEXTS[1]))
        assert {"importance"} == {ask.schema_name for ask in judge.asked}  # 12 is not more than 12
        memory.ingest(turn(2, TEXTS[2]))
        *seen, first, second = memory.active("acme")
        assert TEXTS[:3] == [item.text for item in seen]
        assert ("Much is due.", ("t0", "t1")) == (first.text, first.sources)
        assert first.text == second.text  # nothing is merged
        memory.ingest(turn(3, TEXTS[3]))
        assert 6 == len(memory.active("acme"))  # counting began anew, without what it concluded
    kinds = [ask.schema_name for ask in judge.asked[3:]]
    assert ["questions", "insights", "importance", "insights", "importance", "importance"] == kinds


def test_what_cites_nothing_that_was_shown_is_no_insight() -> None:
    """It is left out rather than stored without its evidence."""
    with opened(Judge(9, because=(77,)), threshold=1) as memory:
        memory.ingest(turn(0, TEXTS[0]))
        assert TEXTS[:1] == [item.text for item in memory.active("acme")]


@pytest.mark.parametrize("broken", ["importance", "insights"])
def test_where_the_model_fails_nothing_is_observed(broken: str) -> None:
    """Neither a turn that cannot be rated nor one whose reflection breaks off."""
    judge = Judge(9)

    def fails(ask: Ask, mind: Mind) -> Reply | None:
        return None if ask.schema_name == broken else judge(ask, mind)

    with opened(fails, threshold=1) as memory:
        with pytest.raises(MemoryFault, match="generative-agents: the model"):
            memory.ingest(turn(0, TEXTS[0]))
        assert [] == list(memory.active("acme"))


def test_erasing_takes_conclusions_from_what_is_erased_along() -> None:
    """A reflection without evidence goes; one with some left keeps that."""
    with opened(Judge(9, 9), threshold=17) as memory:
        memory.ingest(turn(0, TEXTS[0]))
        memory.ingest(turn(1, TEXTS[1]))
        assert 4 == len(memory.active("acme"))
        memory.erase("acme", Subject("acme", "atlas", "due", "?"))
        left = memory.active("acme")
        assert [(TEXTS[1], ("t1",))] + [("Much is due.", ("t1",))] * 2 == [(i.text, i.sources) for i in left]  # fmt: skip
        memory.erase("acme", Subject("acme", "lunch", "time", "?"))
        assert [] == list(memory.active("acme"))


@pytest.mark.parametrize(
    "settings", [{"scoring": "other"}, {"threshold": -1}, {"questions": 0}, {"insights": 0}]
)
def test_refuses_settings_that_make_no_sense(settings: dict[str, Any]) -> None:
    """A variant that is not known, or nothing to ask for."""
    with pytest.raises(ValueError, match="generative-agents: "):
        GenerativeAgents(HashEmbedder(), **settings)


# ---------------------------------------------------------------- the ideal model


def said(*ops: Op) -> Script:
    turns = [
        Turn(at=f"2026-01-01T{n:02}:00", id=f"t{n}", session="s", tenant="acme", text=f"Turn {n} of Atlas.", ops=[op])
        for n, op in enumerate(ops)
    ]  # fmt: skip
    return Script(Header(name="small", tenants=["acme"]), list(turns))


def test_the_ideal_agent_concludes_what_holds() -> None:
    """A changed value, each with the turn that it rests on, and not the value before it."""
    deadline, host = "acme/Atlas/deadline", "acme/Atlas/host"
    script = said(
        Op("tell", deadline, "date:2026-03-05", importance="vital"), Op("noise"),
        Op("tell", host, "text:Ilse Brandt", importance="trivial"),
        Op("revise", deadline, "date:2026-03-09", importance="vital"),
    )  # fmt: skip
    with opened(answer, script, threshold=20) as memory:  # 9 + 1 + 2 + 9
        for number in range(4):
            memory.ingest(turn(number, f"Turn {number} of Atlas."))
        concluded = [(item.text, item.sources) for item in memory.active("acme")][4:]
    assert [
        ("The deadline of Atlas is 9 March 2026.", ("t3",)),
        ("The host of Atlas is Ilse Brandt.", ("t2",)),
    ] == concluded
