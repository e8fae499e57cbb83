"""Families after reported faults: each says its news in a way of its own, and the ideal memory follows."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date, timedelta
from itertools import pairwise
from pathlib import Path

import pytest

from steeltrap.adapters.ideal import Ideal
from steeltrap.adapters.mutants import MUTANTS
from steeltrap.harness import values
from steeltrap.harness.script import Probe, Script, Turn, field_of, topic_of
from steeltrap.harness.validate import examine
from steeltrap.workloads.check import check
from steeltrap.workloads.compose import ScriptSettings, compose
from steeltrap.workloads.families import ALONE, FAMILIES, reported
from steeltrap.workloads.render.wordings import read

OURS = [name for name, family in ALONE.items() if family.__module__ == reported.__name__]
EACH = pytest.mark.parametrize("family", OURS)


def made(family: str, seed: int = 1, turns: int = 90) -> Script:
    return compose(ScriptSettings(name=family, turns=turns, families={family: 1.0}), seed)


def spoken(script: Script) -> Iterator[Turn]:
    """The turns of the family itself that tell of units."""
    for step in script.steps:
        if isinstance(step, Turn) and step.family == script.header.name and step.ops[0].unit:
            yield step


def test_they_stand_outside_the_mix() -> None:
    """None of them is in the adversarial mix, whose bytes are pinned."""
    assert len(OURS) >= 10
    assert not set(OURS) & set(FAMILIES)
    assert set(reported.__all__) == {ALONE[name].__name__ for name in OURS}


@EACH
def test_each_is_true_and_the_same_for_a_seed(family: str, tmp_path: Path) -> None:
    """A seed gives the same bytes each time, and the truth in them is what the ops make."""
    sha256 = made(family).write(tmp_path / "script.jsonl")
    assert sha256 == made(family).sha256() == check(tmp_path / "script.jsonl").sha256()
    assert sha256 != made(family, seed=2).sha256()


@EACH
def test_the_ideal_memory_has_no_violation(family: str) -> None:
    """Nothing in a family is beyond a memory that understands it."""
    for seed in range(2):
        assert (set(), 0) == examine(Ideal, made(family, seed, turns=150)), seed


@pytest.mark.slow
@EACH
def test_the_ideal_memory_has_no_violation_on_twenty_seeds(family: str) -> None:
    """The same, on 20 seeds."""
    for seed in range(20):
        assert (set(), 0) == examine(Ideal, made(family, seed, turns=150)), seed


@pytest.mark.parametrize(
    ("family", "mutant"),
    [
        ("implicit-contradiction", "keeps-first"),
        ("polarity-flip", "never-supersedes"),
        ("negation", "keeps-first"),
        ("name-change", "lists-superseded"),
        ("bare-number", "serves-first"),
        ("relative-date", "keeps-first"),
        ("needle-in-paste", "never-keeps-vital"),
        ("code-and-braces", "never-supersedes"),
        ("no-spaces", "serves-history-unmarked"),
        ("numbered-names", "confuses-look-alikes"),
        ("said-back", "resurrects-on-restate"),
        ("concurrent-writers", "resurrects-on-restate"),
        ("popular-then-wrong", "serves-first"),
    ],
)
def test_each_catches_a_mutant(family: str, mutant: str) -> None:
    """A memory with a defect of the kind is told by the name of its defect, and by no other."""
    found, _ = examine(MUTANTS[mutant], made(family, turns=120))
    assert found
    assert found <= set(MUTANTS[mutant].raises)


# ---------------------------------------------------------------- how each says it


@pytest.mark.parametrize("family", ["implicit-contradiction", "polarity-flip", "negation"])
def test_the_words_of_a_value_stand_in_the_sentence(family: str) -> None:
    """What a text value says is said in those words, and the topic is named."""
    for turn in spoken(made(family)):
        (op,) = turn.ops
        assert op.unit and op.value
        assert values.payload_of(op.value) in turn.text
        assert topic_of(op.unit) in turn.text


def test_a_contradiction_does_not_say_that_it_is_one() -> None:
    """The second sentence of an implicit contradiction names neither the field nor the old value."""
    for turn in spoken(made("implicit-contradiction")):
        (op,) = turn.ops
        if op.op == "revise":
            assert field_of(op.unit or "") not in turn.text
            assert not re.search(r"\b(no longer|not any more|instead|changed|used to)\b", turn.text)


def test_negations_differ_in_one_word() -> None:
    """Without the word 'not' both sides of a rule read alike."""
    told: dict[str, set[str]] = {}
    for turn in spoken(made("negation")):
        rule = values.payload_of(turn.ops[0].value or "").replace("not ", "")
        told.setdefault(turn.ops[0].unit or "", set()).add(rule)
    assert any(told.values()) and all(len(rules) == 1 for rules in told.values())


def test_a_bare_number_is_nothing_else() -> None:
    """The answer is a number; what it is about was asked by the assistant in the turn before."""
    script = made("bare-number")
    turns = [step for step in script.steps if isinstance(step, Turn)]
    for before, turn in pairwise(turns):
        if turn.ops[0].unit:
            assert re.fullmatch(r"[\d,]+\.", turn.text)
            assert "assistant" == before.role
            assert topic_of(turn.ops[0].unit) in before.text


def test_relative_dates_name_no_day() -> None:
    """No sentence holds a date, and the value is the day that its words come to from its time."""
    words = read("kinds")["relative"]
    days = {**words["back"], **words["ahead"]}
    for turn in spoken(made("relative-date")):
        assert [] == values.find(turn.text)
        when = max((when for when in days if when in turn.text), key=len)
        day = date.fromisoformat(turn.at[:10]) + timedelta(days=days[when])
        assert f"date:{day.isoformat()}" == turn.ops[0].value


def test_a_needle_lies_in_a_long_paste() -> None:
    """The vital sentence is one line of thousands of characters, in the midst of them or last."""
    pastes = [turn for turn in spoken(made("needle-in-paste")) if len(turn.text) > 2000]
    assert pastes
    for turn in pastes:
        (op,) = turn.ops
        assert "vital" == op.importance
        lines = [line for line in turn.text.split("\n") if topic_of(op.unit or "") in line]
        assert 1 == len(lines)
        assert len(lines[0]) < 200


def test_writing_without_spaces_has_none() -> None:
    """Chinese and Japanese sentences, both of them heard, hold no space."""
    texts = [turn.text for turn in spoken(made("no-spaces")) if turn.ops[0].op != "restate"]
    assert all(" " not in text for text in texts)
    assert any("早餐" in text for text in texts) and any("朝食" in text for text in texts)


def test_concurrent_writers_share_a_minute_and_no_session() -> None:
    """Several turns about one unit stand at the same minute, each in a session of its own."""
    at: dict[tuple[str, str | None], list[str]] = {}
    for turn in spoken(made("concurrent-writers")):
        at.setdefault((turn.at, turn.ops[0].unit), []).append(turn.session)
    assert any(len(sessions) > 1 for sessions in at.values())
    assert all(len(sessions) == len(set(sessions)) for sessions in at.values())


def test_what_is_said_back_is_said_by_the_assistant_after_a_question() -> None:
    """Each time the question comes first, as part of the trajectory, and nothing is news."""
    script = made("said-back")
    steps = [s for s in script.steps if isinstance(s, Turn) or (isinstance(s, Probe) and s.observe == "in-script")]  # fmt: skip
    back = [place for place, s in enumerate(steps) if isinstance(s, Turn) and s.role == "assistant"]
    assert len(back) > 10
    for place in back:
        asked, turn = steps[place - 1], steps[place]
        assert isinstance(asked, Probe) and isinstance(turn, Turn)
        assert asked.unit == turn.ops[0].unit
        assert "restate" == turn.ops[0].op


def test_numbered_names_differ_in_a_number() -> None:
    """Two topics are the same but for their number, which is one higher."""
    units = sorted({turn.ops[0].unit or "" for turn in spoken(made("numbered-names"))})
    stems: dict[tuple[str, str], list[int]] = {}
    for unit in units:
        stem, _, number = topic_of(unit).rpartition(" ")
        stems.setdefault((stem, field_of(unit)), []).append(int(number))
    assert any(len(numbers) == 2 for numbers in stems.values())
    assert all(max(numbers) - min(numbers) <= 1 for numbers in stems.values())


def test_code_keeps_its_braces() -> None:
    """Values stand in code as it is written, also where a brace is never closed."""
    texts = [turn.text for turn in spoken(made("code-and-braces"))]
    assert all("{" in text for text in texts)
    assert any(text.count("{") != text.count("}") for text in texts)
