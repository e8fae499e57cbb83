"""The ideal model's mind."""

from __future__ import annotations

from collections import Counter
from functools import cache

import pytest

from steeltrap.harness.gateway.mind import Dials, ScriptMind
from steeltrap.harness.memory import Item
from steeltrap.harness.models import NotUnderstood
from steeltrap.harness.readers.claims import Catalogue
from steeltrap.harness.script import Audit, Probe, Script, Turn, tenant_of
from steeltrap.harness.settings import cells
from steeltrap.harness.statements import stated


@cache
def script(seed: int = 0, name: str = "adversarial", **extra: float) -> Script:
    settings = [f"script.{key}={value}" for key, value in extra.items()]
    return cells([f"script={name}", f"seed={seed}", *settings])[0].script()


def turns(of: Script) -> list[Turn]:
    return [step for step in of.steps if isinstance(step, Turn)]


@pytest.mark.parametrize("seed", range(3))
def test_a_reader_understands_a_statement_as_the_turn_it_came_from(seed: int) -> None:
    """What a turn states, said in plain words, claims what the turn itself claims."""
    made = script(seed)
    catalogue = Catalogue(made.header)
    before: dict[str, str | None] = {}
    read = 0
    for turn in turns(made):
        catalogue.hear(turn, dict(before))
        tenant = turn.tenant
        from_turn = catalogue.claims(Item(turn.text, sources=(turn.id,)), tenant)
        for op in turn.ops:
            said = stated(op, turn.at)
            if said is None or said.sense == "relation":
                continue
            assert op.unit is not None
            for text in (said.text, said.untopical.text):
                claims = catalogue.claims(Item(text), tenant)
                assert [c for c in from_turn if c.unit == op.unit] == [
                    c for c in claims if c.unit == op.unit
                ], text
                assert {tenant_of(c.unit) for c in claims} == {tenant}
            read += 1
        for change in turn.changes:
            before[change.unit] = change.value
    assert read > 200


def test_every_sentence_and_question_of_a_script_is_understood() -> None:
    """Every turn is read, whatever its white space, and every question finds its places."""
    made = script(1)
    mind = ScriptMind(made)
    for step in made.steps:
        if isinstance(step, Turn):
            expected = [said.sense for said in (stated(op, step.at) for op in step.ops) if said]
            shown = " ".join(op.unit for op in step.ops if op.unit)
            found = mind.facts(step.text.replace(" ", "  \n"), shown)
            assert [said.sense for said in found] == expected
            for said in found:
                stored = mind.read(said.text)
                assert stored
                assert mind.repeats(said, stored)
        elif isinstance(step, Probe | Audit):
            assert mind.asked(step.text).places


def test_a_turn_that_is_shown_cut_off_is_known_by_its_beginning() -> None:
    """Systems cut long pastes; what is left of one is still known."""
    made = script()
    long = next(turn for turn in turns(made) if len(turn.text) > 20_000)
    assert ScriptMind(made).facts(long.text[:5000]) == []


def test_a_sentence_that_no_turn_says_is_an_error() -> None:
    """An unknown sentence or question is never answered by silence."""
    mind = ScriptMind(script())
    with pytest.raises(NotUnderstood, match="no turn of the script reads 'The moon is"):
        mind.facts("The moon is made of cheese.")
    with pytest.raises(NotUnderstood, match="no question"):
        mind.asked("What is the moon made of?")


def test_a_topic_that_nothing_shows_stays_unknown() -> None:
    """An elliptical turn gives its topic only where the prompt shows it somewhere."""
    made = script()
    mind = ScriptMind(made)
    short = [
        (turn, said)
        for turn in turns(made)
        for said in (stated(op, turn.at) for op in turn.ops)
        if said and said.sense == "states" and said.topic.casefold() not in turn.text.casefold()
    ]
    assert len(short) >= 3
    for turn, said in short:
        assert [one.topic for one in mind.facts(turn.text)] == [""]
        assert [one.topic for one in mind.facts(turn.text, f"Earlier: {said.topic}")] == [
            said.topic
        ]


def test_a_revision_contradicts_what_it_replaces_and_a_repetition_repeats_it() -> None:
    """Only the present of one field is contradicted, and only by a word that counts as much."""
    made = script()
    mind = ScriptMind(made)
    seen: Counter[str] = Counter()
    present = {}
    for turn in turns(made):
        for op, said in zip(turn.ops, (stated(op, turn.at) for op in turn.ops), strict=True):
            if said is None or op.unit is None:
                continue
            old = present.get(op.unit)
            if old and said.sense in ("states", "withdraws"):
                contradicted, repeated = mind.contradicts(said, old), mind.repeats(said, old)
                assert contradicted != repeated
                seen["contradicted" if contradicted else "repeated"] += 1
            elif old:
                assert not mind.contradicts(said, old)
                seen[said.sense] += 1
            if said.sense in ("states", "withdraws"):
                present[op.unit] = said
    assert seen["contradicted"] > 80
    assert seen["repeated"] > 80
    assert seen["rumour"] > 3


@pytest.mark.parametrize(
    ("dial", "expected"), [("missed", 0.3), ("wrong_host", 0.3), ("invented", 0.3)]
)
def test_a_dial_is_the_share_of_facts_that_go_wrong(dial: str, expected: float) -> None:
    """A share is kept within chance, and the same seed fails at the same facts."""
    made = script(2)
    right, failing = ScriptMind(made), ScriptMind(made, Dials(**{dial: expected}))
    again = ScriptMind(made, Dials(**{dial: expected}))
    opportunities = wrong = 0
    for turn in reversed(turns(made)):  # the order of calls changes nothing
        shown = " ".join(op.unit for op in turn.ops if op.unit)
        due = [s for s in right.facts(turn.text, shown) if dial == "missed" or s.sense == "states"]
        got = failing.facts(turn.text, shown)
        assert got == again.facts(turn.text, shown)
        opportunities += len(due)
        if dial == "invented":
            assert all(said in got for said in due)
            wrong += len(got) - len(right.facts(turn.text, shown))
        else:
            wrong += sum(said not in got for said in due)
    assert opportunities > 200
    assert abs(wrong / opportunities - expected) < 0.08


def test_an_invented_value_was_given_to_its_field_by_nobody() -> None:
    """What is made up is no value that the field ever had."""
    made = script(2)
    right, mind = ScriptMind(made), ScriptMind(made, Dials(invented=1.0))
    had: dict[tuple[str, str], set[str]] = {}
    for turn in turns(made):
        for said in filter(None, (stated(op, turn.at) for op in turn.ops)):
            had.setdefault(said.about, set()).add(said.value)
    for turn in turns(made):
        shown = " ".join(op.unit for op in turn.ops if op.unit)
        true = right.facts(turn.text, shown)
        for said in mind.facts(turn.text, shown):
            assert said in true or said.value not in had[said.about]


def test_an_overlooked_contradiction_is_a_share_of_pairs() -> None:
    """The dial decides for each pair of statements, in either run alike."""
    made = script()
    right, failing = ScriptMind(made), ScriptMind(made, Dials(overlooked=0.4))
    pairs = []
    said = [
        s for turn in turns(made) for s in filter(None, (stated(op, turn.at) for op in turn.ops))
    ]
    for new in said:
        pairs += [(new, old) for old in said if right.contradicts(new, old)]
    different = {(new.text, old.text): (new, old) for new, old in pairs}.values()
    noticed = sum(failing.contradicts(new, old) for new, old in different)
    assert abs(noticed / len(different) - 0.6) < 0.08


def test_a_dial_that_is_no_share_is_refused() -> None:
    """Shares are from 0 to 1."""
    with pytest.raises(ValueError, match=r"model\.missed=1\.2: write a share"):
        Dials(missed=1.2)
