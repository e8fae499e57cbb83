from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steeltrap.harness import values
from steeltrap.harness.script import OPS, Op, Rule, canonical, field_of, topic_of, unit_id
from steeltrap.workloads.dice import Dice
from steeltrap.workloads.domains import Domain, Field, domains, field_named
from steeltrap.workloads.mint import Mint, pools
from steeltrap.workloads.render import Renderer, Surface
from steeltrap.workloads.render.spell import days, fraction, number, spell, spellings
from steeltrap.workloads.render.wordings import FILES, read, slots_of, wordings

AT = "2026-03-02T09:00"
EARLIER = "2026-02-11T10:00"
LATER = "2026-12-01T18:00"
PLAIN = Surface(paraphrase=0, spelling=0, ellipsis=0, languages=0, decoration=0, paste=0)
VARIED = Surface(paraphrase=1, spelling=1, ellipsis=0, languages=0, decoration=0.3, paste=0)
FIELDS = [(d, f) for d in domains() for f in d.fields]
SIMPLE = ("tell", "revise", "revert", "correct", "restate", "echo", "instruct")
SCENES = (*OPS, "late", "since", "lapse", "relayed")
SCENES_WITH_UNIT = tuple(s for s in SCENES if s not in ("noise", "associate", "depend"))


def scene(
    name: str, mint: Mint, dice: Dice, domain: Domain, field: Field
) -> tuple[Op, dict[str, str | None]]:
    """An op as scripts hold it, on new values, with what held before."""
    unit = unit_id("acme", mint.topic(domain), field.name)
    value, old = mint.value(field, AT), mint.value(field, AT)
    before: dict[str, str | None] = {unit: old}
    topic = f"acme/{topic_of(unit)}"
    match name:
        case "noise":
            return Op("noise"), {}
        case "associate":
            return Op("associate", topic, target=f"acme/{mint.topic(domain)}"), {}
        case "depend":
            return rule_between(mint, dice, domain, topic), {}
        case "tell":
            return Op("tell", unit, value, importance=field.importance), {}
        case "since":
            return Op("tell", unit, value, valid_at=EARLIER), {}
        case "late":
            return Op("revise", unit, value, valid_at=EARLIER), before
        case "relayed":
            return Op("tell", unit, value, source=dice.pick(("colleague", "hearsay"))), {}
        case "rumour":
            source = dice.pick(("colleague", "hearsay"))
            return Op("rumour", unit, value, source=source), before
        case "expire":
            return Op("expire", unit, value, until=LATER), before
        case "lapse":
            return Op("expire", unit, until=LATER), before
        case "retract":
            return Op("retract", unit), before
    return Op(name, unit, value), before  # type: ignore[arg-type]


def rule_between(mint: Mint, dice: Dice, domain: Domain, topic: str) -> Op:
    link = dice.pick(domain.links)
    other = topic if dice.chance(0.5) else f"acme/{mint.topic(domain)}"
    amount = dice.between(link.low, link.high)
    rule = {
        "offset": Rule("offset", days=amount),
        "scaled": Rule("scaled", times=amount, over=link.over),
        "same": Rule("same"),
        "review": Rule("review"),
    }[link.rule]
    return Op("depend", f"{topic}/{link.source}", target=f"{other}/{link.target}", rule=rule)


def said(renderer: Renderer, op: Op, before: dict[str, str | None], last: str | None = None) -> str:
    return renderer.turn([op], at=AT, previous=before, last_unit=last)


def sayings(
    name: str, n: int, surface: Surface, seed: object = 0
) -> Iterator[tuple[Op, dict[str, str | None], str]]:
    """`n` utterances of a scene over all domains and fields."""
    dice = Dice("render", name, seed)
    mint, renderer = Mint(dice.child("mint")), Renderer(surface, dice.child("say"))
    for i in range(n):
        domain, field = FIELDS[(i * 7) % len(FIELDS)]
        op, before = scene(name, mint, dice, domain, field)
        yield op, before, said(renderer, op, before)


def forms(literal: str | None) -> tuple[str, ...]:
    """How a value could stand in a text, longest first."""
    if literal is None:
        return ()
    spelled = [s for language in FILES for s in spellings(literal, language)]
    day = literal.removeprefix("date:")
    if day != literal:
        spelled += [s.partition(" 2026")[0].rstrip(",") for s in spellings(literal)]
    return tuple(sorted(spelled, key=len, reverse=True))


def masked(op: Op, before: dict[str, str | None], text: str) -> str:
    """The wording without topics, fields and values."""
    units = [u for u in (op.unit, op.target) if u]
    if op.rule:
        text = text.replace(f"{days(abs(op.rule.days))} before", "D").replace(f"{days(abs(op.rule.days))} after", "D")  # fmt: skip
        text = text.replace(fraction(op.rule.times, op.rule.over), "Q")
    for literal in (op.value, *before.values()):
        for form in forms(literal):
            text = text.replace(form, "V")
    for unit in units:
        text = text.replace(topic_of(unit), "T")
        known = field_named(unit.split("/", 2)[2]) if unit.count("/") == 2 else None
        for label in sorted(known[1].names if known else (), key=len, reverse=True):
            text = text.replace(label, "F")
    return re.sub(r"(the F (of|for) T|T's F|its F|their F|the F)", "R", text.casefold())


# ---------------------------------------------------------------- the plain surface


@pytest.mark.parametrize(("domain", "field"), FIELDS, ids=lambda x: x.name)
def test_a_plain_turn_holds_exactly_its_values(domain: Domain, field: Field) -> None:
    """Without variation, a reader finds the op's value in the text, and no other."""
    dice = Dice("plain", field.name)
    mint, renderer = Mint(dice), Renderer(PLAIN, dice)
    for name in (*SIMPLE, "rumour", "relayed"):
        op, before = scene(name, mint, dice, domain, field)
        text = said(renderer, op, before)
        assert op.unit is not None
        assert op.value is not None
        assert topic_of(op.unit) in text
        assert field.name in text
        if field.kind in ("name", "text"):
            assert values.payload_of(op.value) in text
            assert values.find(text) == []
        else:
            assert [m.literal for m in values.find(text)] == [op.value]


def test_a_plain_tell_is_the_canonical_sentence() -> None:
    """The plainest way to say a fact is the sentence in which the footprint is counted."""
    for op, _, text in sayings("tell", 80, PLAIN):
        assert op.unit is not None
        assert op.value is not None
        plain = canonical(op.unit, op.value)
        plain = plain if plain[0] == text[0] else plain[0].upper() + plain[1:]
        assert text == (f"{plain} This is vital." if op.importance == "vital" else plain)


@pytest.mark.parametrize("name", SCENES)
def test_the_plain_surface_has_one_wording(name: str) -> None:
    """With all dials at zero an op is worded alike, but for the kind of rule, source or weight."""
    wanted = {"depend": 5, "rumour": 2, "relayed": 2, "tell": 2}.get(name, 1)
    assert len({masked(*saying) for saying in sayings(name, 200, PLAIN)}) <= wanted


# ---------------------------------------------------------------- variety


@pytest.mark.parametrize("name", SCENES)
def test_an_op_has_at_least_eight_wordings(name: str) -> None:
    """An op has eight cores at least, and with what stands around them far more utterances."""
    surface = Surface(1, 0, 0, 0, 0, 0)
    assert len({masked(*saying) for saying in sayings(name, 300, surface)}) >= 20
    sections = {
        "rumour": ["rumour.hearsay", "rumour.colleague"],
        "depend": ["depend.offset", "depend.same", "depend.scaled", "depend.review"],
        "relayed": ["tell"],
        "noise": [],
    }
    for section in sections.get(name, [name]):
        assert len(wordings("en", section, "")) >= 8


@pytest.mark.parametrize("ask", ["current", "previous", "as-of", "rank", "history"])
def test_a_question_has_at_least_eight_wordings(ask: str) -> None:
    """Each kind of question has at least eight."""
    assert len(wordings("en", f"question.{ask}", "")) >= 8


@pytest.mark.parametrize("language", ["de", "ja"])
@pytest.mark.parametrize("section", ["tell", "revise", "restate", "retract", "question.current"])
def test_other_languages_have_four_wordings_for_frequent_ops(language: str, section: str) -> None:
    """German and Japanese say the frequent things in at least four ways, old value or none."""
    assert len(wordings(language, section, "", old=False)) >= 4
    assert len(wordings(language, section, "date", old=False)) >= 4
    assert len(wordings(language, section, "date", topic=False, old=False)) >= 3


def test_noise_has_hundreds_of_variations() -> None:
    """Small talk seldom comes twice."""
    assert len({text for _, _, text in sayings("noise", 1000, VARIED)}) > 700


# ---------------------------------------------------------------- no doubt about unit and value


@pytest.mark.parametrize("name", SCENES_WITH_UNIT)
@pytest.mark.parametrize("surface", [VARIED, Surface(1, 1, 0, 1, 0, 0)], ids=["english", "foreign"])
def test_a_turn_names_its_unit_and_value_and_holds_no_other_value(
    name: str, surface: Surface
) -> None:
    """However it is worded, topic, field and value can be found, and nothing that looks like one."""
    for op, before, text in sayings(name, 400, surface):
        assert op.unit is not None
        assert topic_of(op.unit) in text
        known = field_named(field_of(op.unit))
        assert known is not None
        # German articles and adjectives bend, the last word of a label does not.
        labels = [label.casefold() for label in known[1].names]
        labels.append(known[1].german.split(" ")[-1].casefold())
        assert any(label in text.casefold() for label in labels), text
        allowed = [v for v in (op.value, *before.values()) if v]
        moments = [t for t in (op.until, op.valid_at) if t]
        allowed += [f"date:{t[:10]}" for t in moments] + [f"time:{t[11:]}" for t in moments]
        found = [m.literal for m in values.find(text)]
        assert all(any(values.matches(f, v) for v in allowed) for f in found), text
        if op.value and known[1].kind in ("name", "text"):
            assert values.payload_of(op.value).casefold() in text.casefold()
        elif op.value:
            assert any(values.matches(f, op.value) for f in found), text


@settings(max_examples=300, deadline=None)
@given(
    pick=st.integers(0, len(FIELDS) - 1),
    seed=st.integers(0, 10**6),
    language=st.sampled_from(sorted(FILES)),
    frame=st.sampled_from(["is {}.", "is {}, as agreed", "「{}」", "は {} です。", "({})", "{}?"]),
)
def test_every_spelling_of_a_value_is_found_again(
    pick: int, seed: int, language: str, frame: str
) -> None:
    """Whatever the spelling and the language, the value that is read is the one that was meant."""
    field = FIELDS[pick][1]
    literal = Mint(Dice("spell", seed)).value(field, AT)
    spelled = spell(literal, Dice("s", seed), varied=True, at=AT, language=language)
    for form in (spelled, *spellings(literal, language)):
        text = frame.format(form)
        if field.kind in ("name", "text"):
            assert values.payload_of(literal) in text
        else:
            found = [m.literal for m in values.find(text)]
            assert len(found) == 1
            assert values.matches(found[0], literal), text


@given(literal=st.dates(date(2020, 1, 1), date(2030, 12, 31)), seed=st.integers(0, 1000))
@settings(max_examples=200, deadline=None)
def test_a_date_loses_its_year_only_when_it_is_the_next_such_day(literal: date, seed: int) -> None:
    """A date far ahead or in the past keeps its year, since it could be taken for another."""
    ahead = (literal - date.fromisoformat(AT[:10])).days
    text = spell(f"date:{literal}", Dice("year", seed), varied=True, at=AT)
    assert str(literal.year) in text or 0 <= ahead <= 300


def test_midday_and_midnight_are_never_spelled_with_am_or_pm() -> None:
    """People disagree on what 12 am is."""
    assert spellings("time:12:00") == ("12:00",)
    assert spellings("time:00:30") == ("00:30",)


def test_numbers_of_rules_are_words() -> None:
    """Distances and fractions are spelled so that they read well."""
    assert days(1) == "one day"
    assert days(121) == "one hundred and twenty-one days"
    assert number(1212) == "one thousand two hundred and twelve"
    assert [fraction(*f) for f in ((1, 2), (3, 10), (2, 8), (6, 4), (5, 4), (7, 5), (2, 1), (3, 1))] == [
        "half of", "three tenths of", "a quarter of", "one and a half times",
        "one and a quarter times", "one and two fifths times", "twice", "three times",
    ]  # fmt: skip
    assert fraction(3, 32) == "three parts in thirty-two of"


# ---------------------------------------------------------------- what single ops must make clear


def test_a_rule_can_be_applied_by_its_reader() -> None:
    """A rule names both units, and the distance or the fraction, with its direction."""
    for op, _, text in sayings("depend", 600, VARIED):
        assert op.unit is not None
        assert op.target is not None
        assert op.rule is not None
        assert topic_of(op.unit) in text
        assert topic_of(op.target) in text
        if op.rule.kind == "offset":
            direction = "after" if op.rule.days > 0 else "before"
            assert f"{days(abs(op.rule.days))} {direction}" in text
        if op.rule.kind == "scaled":
            assert fraction(op.rule.times, op.rule.over) in text
        assert values.find(text) == []


def test_a_rule_on_one_day_says_so() -> None:
    """An offset of no days is the same day."""
    op = Op("depend", "a/X/deadline", target="a/X/launch date", rule=Rule("offset"))
    text = said(Renderer(PLAIN, Dice("zero")), op, {})
    assert text == "The launch date of X always falls on the same day as the deadline of X."


def test_an_association_denies_dependence() -> None:
    """Related topics are said to be independent, in every wording."""
    words = ("neither", "independent", "never affects", "nothing about one", "own way", "on its own", "without either", "merely related")  # fmt: skip
    for wording in wordings("en", "associate", ""):
        assert any(word in wording.text for word in words), wording.text


def test_a_rumour_names_its_source() -> None:
    """Hearsay and colleagues can be told from the owner by the words alone."""
    for wording in wordings("en", "rumour.colleague", ""):
        assert re.search(r"colleague|coworker|teammate|another team|I work with", wording.text)
    for wording in wordings("en", "rumour.hearsay", ""):
        assert not re.search(r"^\{|colleague|\bwe\b", wording.text)


def test_what_others_say_is_attributed() -> None:
    """A fact from somebody else than the owner begins with who says it."""
    for op, _, text in sayings("relayed", 100, Surface(1, 1, 0, 1, 0, 0)):
        assert re.search("colleague" if op.source == "colleague" else "hearsay|Heard|Second-hand|rumour", text)  # fmt: skip
    op = Op("tell", "a/X/budget", "money:EUR 40", source="the press office")
    text = said(Renderer(PLAIN, Dice("press")), op, {})
    assert text == "According to the press office: the budget of X is 40 EUR."


def test_late_news_leaves_the_later_value_in_force() -> None:
    """News about the past says from when it held, and that what came later stands."""
    for wording in wordings("en", "late", ""):
        assert {"v", "when"} <= wording.slots
        assert re.search(r"stands|holds|counts|in force|stays|valid|still hold|touch|continues", wording.text)  # fmt: skip


@pytest.mark.parametrize("name", ["late", "since"])
def test_news_with_a_date_of_its_own_says_from_when(name: str) -> None:
    """A value that began to hold before the turn comes with the day from which it held."""
    for _, before, text in sayings(name, 100, Surface(1, 0, 0, 0, 0, 0)):
        assert "11 February 2026" in text
        words = {w.text.rpartition("}")[2] for w in wordings("en", name, "")} - {""}
        assert any(tail in text for tail in words) or not before


def test_a_vital_fact_says_why_it_matters() -> None:
    """Vital facts carry a reason to keep them, others none."""
    reasons = [r for name, group in read("english")["vital"].items() for r in group]
    for op, _, text in sayings("tell", 300, Surface(1, 0, 0, 0, 0, 0)):
        assert any(reason in text for reason in reasons) == (op.importance == "vital")


def test_an_old_value_is_named_only_when_there_was_another_one() -> None:
    """'From A to B' needs an A that is not B."""
    renderer = Renderer(VARIED, Dice("old"))
    unit = "acme/Website Redesign/budget"
    for before in ({}, {unit: None}, {unit: "money:EUR 900"}):
        for _ in range(100):
            text = said(renderer, Op("revise", unit, "money:EUR 900"), dict(before))
            assert [m.literal for m in values.find(text)] == ["money:EUR 900"]


def test_several_ops_make_one_utterance() -> None:
    """Every fact of a turn is in its text."""
    ops = [
        Op("tell", "a/Website Redesign/budget", "money:EUR 900"),
        Op("tell", "a/Website Redesign/deadline", "date:2026-05-06"),
        Op("noise"),
    ]
    surface = Surface(1, 0, 1, 0, 0, 0)
    for seed in range(50):
        text = Renderer(surface, Dice(seed)).turn(ops, at=AT, previous={}, last_unit=None)
        assert [m.literal for m in values.find(text)] == ["money:EUR 900", "date:2026-05-06"]
        assert text.count("Website Redesign") == 1


def test_a_topic_is_named_again_after_two_were_spoken_of() -> None:
    """After a rule between two topics nobody could say which one 'its budget' means."""
    ops = [
        Op("depend", "a/X/budget", target="a/Y/contingency reserve", rule=Rule("same")),
        Op("tell", "a/X/deadline", "date:2026-05-06"),
    ]
    text = Renderer(Surface(0, 0, 1, 0, 0, 0), Dice("two")).turn(ops, at=AT, previous={}, last_unit=None)  # fmt: skip
    assert text.endswith(" The deadline of X is 6 May 2026.")


def test_one_utterance_does_not_repeat_a_wording() -> None:
    """Several facts in a row are said in different ways."""
    ops = [Op("tell", f"a/X/{f.name}", Mint(Dice(f.name)).value(f, AT)) for _, f in FIELDS[:9]]
    for seed in range(20):
        text = Renderer(Surface(1, 0, 1, 0, 0, 0), Dice(seed)).turn(
            ops, at=AT, previous={}, last_unit="a/X/budget"
        )
        assert text.casefold().count("please remember that") <= 1


# ---------------------------------------------------------------- dials


@pytest.mark.parametrize("name", sorted(set(SCENES_WITH_UNIT) - {"instruct"}))
def test_the_topic_is_left_out_only_after_a_turn_about_it(name: str) -> None:
    """Ellipsis needs the same topic in the turn before."""
    dice = Dice("ellipsis", name)
    mint, renderer = Mint(dice), Renderer(Surface(1, 1, 1, 0.2, 0, 0), dice)
    for domain, field in FIELDS:
        op, before = scene(name, mint, dice, domain, field)
        assert op.unit is not None
        topic = topic_of(op.unit)
        near = unit_id("acme", topic, domain.fields[0].name)
        assert topic not in said(renderer, op, before, near)
        other = unit_id("acme", "Other", field.name), unit_id("b", topic, field.name)
        for last in (None, *other, f"acme/{topic}"):
            assert topic in said(renderer, op, before, last)


@pytest.mark.parametrize("name", ["associate", "depend", "instruct"])
def test_rules_and_injections_always_name_their_topics(name: str) -> None:
    """What would be unclear without its topic is never shortened."""
    dice = Dice("named", name)
    mint, renderer = Mint(dice), Renderer(Surface(1, 1, 1, 0, 0, 0), dice)
    for domain, field in FIELDS:
        op, before = scene(name, mint, dice, domain, field)
        assert topic_of(op.unit or "") in said(renderer, op, before, op.unit)


def foreign(text: str) -> bool:
    german = r"[äöüß„]| (ist|der|die|das|es|bitte|für|wie|beträgt) "
    return bool(re.search(r"[\u3040-\u30ff]|" + german, text))


def test_the_share_of_languages_is_as_dialled() -> None:
    """Noise can be said in every language, so its share is the dial's."""
    texts = [t for _, _, t in sayings("noise", 1000, Surface(1, 0, 0, 0.3, 0, 0))]
    japanese = sum(bool(re.search(r"[\u3040-\u30ff]", t)) for t in texts)
    assert 100 < japanese < 200
    assert not any(foreign(t) for _, _, t in sayings("revert", 200, Surface(1, 0, 0, 1, 0, 0)))
    assert not any(foreign(t) for _, _, t in sayings("tell", 200, Surface(1, 0, 0, 0, 0, 0)))


def test_free_texts_are_said_in_english() -> None:
    """An English phrase inside a German sentence would read oddly."""
    renderer = Renderer(Surface(1, 0, 0, 1, 0, 0), Dice("texts"))
    for _ in range(30):
        text = said(renderer, Op("tell", "a/Ilse Brandt/favourite snack", "text:salted figs"), {})
        assert not foreign(text)
        assert foreign(said(renderer, Op("tell", "a/Ilse Brandt/day rate", "money:USD 300"), {}))


def test_decoration_is_a_dial() -> None:
    """No emoji, fences and headers at zero; at one every turn has some."""
    marks = re.compile(r"[^\x00-\x7f€£¥–]|```|^(Hey|Morning|Hello there|Hi again)!|\n\n")
    none, all_ = Surface(1, 1, 0, 0, 0, 0), Surface(1, 1, 0, 0, 1, 0)
    assert not any(marks.search(t) for _, _, t in sayings("revise", 200, none))
    assert all(marks.search(t) for _, _, t in sayings("revise", 200, all_))


def test_english_greetings_stand_before_no_other_language() -> None:
    """German and Japanese turns are decorated with emoji and fences alone."""
    for _, _, text in sayings("noise", 300, Surface(1, 0, 0, 1, 1, 0)):
        assert not re.search(r"^[A-Z][a-z]+( [a-z]+)?! (?=\S)(?=.*[\u3040-\u30ff])|Best wishes|Subject", text)  # fmt: skip


def test_no_fence_stands_inside_a_fence() -> None:
    """Code that an utterance quotes is not fenced again."""
    for name in ("noise", "instruct"):
        texts = [t for _, _, t in sayings(name, 400, Surface(1, 0, 0, 0, 1, 0))]
        assert {t.count("```") for t in texts} == {0, 2}


def test_pastes_are_as_long_and_as_frequent_as_dialled() -> None:
    """A paste is at least as long as asked for, and a paragraph or so longer at most."""
    for _, _, text in sayings("noise", 40, Surface(1, 0, 0, 0, 0, 1, 5000)):
        assert 5000 <= len(text) < 7500
    texts = [t for _, _, t in sayings("noise", 600, Surface(1, 0, 0, 0, 0, 0.2, 2000))]
    assert 80 < sum(len(t) >= 2000 for t in texts) < 160
    (long,) = [t for _, _, t in sayings("noise", 1, Surface(1, 0, 0, 0, 0, 1))]
    assert len(long) >= 30_000


@pytest.mark.parametrize("dial", ["paraphrase", "spelling", "ellipsis", "languages", "paste"])
def test_a_share_outside_zero_to_one_is_refused(dial: str) -> None:
    """The error says which dial and what it may be."""
    with pytest.raises(ValueError, match=rf"surface\.{dial} is 1\.5; it must lie between 0 and 1"):
        Surface(**{dial: 1.5})  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="paste_chars is 0"):
        Surface(paste_chars=0)


# ---------------------------------------------------------------- noise holds no value


def strings(data: Any) -> Iterator[str]:
    if isinstance(data, str):
        yield data
    else:
        for part in data.values() if isinstance(data, dict) else data:
            yield from strings(part)


@pytest.mark.parametrize("file", [*FILES.values(), "noise", "paste"])
def test_no_wording_holds_anything_like_a_value(file: str) -> None:
    """No digit stands in any wording, and nothing that is read as a value."""
    for text in strings(read(file)):
        assert not re.search(r"\d", text), text
        assert values.find(text) == []


@pytest.mark.parametrize("file", ["noise", "paste", "english"])
def test_no_wording_holds_the_head_of_a_text_or_a_name(file: str) -> None:
    """The last word of every text and the surnames of all people are absent from all wordings."""
    texts = " ".join(strings(read(file))).casefold()
    words = set(re.findall(r"[\w'-]+", texts))
    for name in ("person", "lunch", "snack", "seat", "allergy", "colour", "theme"):
        for last in pools()[name].last:
            head = last.casefold()
            assert f" {head} " not in f" {texts} " if " " in head else head not in words, head


def test_rendered_noise_holds_no_minted_value() -> None:
    """Neither small talk nor pastes hold any value or topic that a script could use."""
    mint = Mint(Dice("noise"))
    minted = [values.payload_of(mint.value(f, AT)) for _, f in FIELDS for _ in range(30)]
    minted += [mint.topic(d) for d in domains() for _ in range(100)]
    texts = [t for _, _, t in sayings("noise", 500, Surface(1, 0, 0, 0.2, 0.3, 0))]
    texts += [t for _, _, t in sayings("noise", 30, Surface(1, 0, 0, 0, 0, 1, 20_000))]
    everything = "\n".join(texts).casefold()
    assert values.find(everything) == []
    assert not [m for m in minted if f" {m.casefold()} " in everything]


def test_openers_reasons_and_closers_name_no_field() -> None:
    """What is said around a fact must not be taken for another fact."""
    data = read("english")
    around = [
        text.casefold()
        for part in ("openers", "attributed", "reasons", "planned", "closers", "vital", "trivial")
        for text in strings(data[part])
    ]
    for _, field in FIELDS:
        for label in (field.name, *field.labels):
            assert not [t for t in around if re.search(rf"\b{re.escape(label)}\b", t)], label


def test_all_slots_are_known() -> None:
    """A wording asks for nothing that the renderer does not give."""
    known = {"ref", "f", "t", "its", "v", "old", "when", "src", "dep", "days", "frac", "rounded", "other", "all", "acc", "nom"}  # fmt: skip
    for file in FILES.values():
        for text in strings(read(file)):
            assert slots_of(text) <= known, text


# ---------------------------------------------------------------- questions


@pytest.mark.parametrize("surface", [PLAIN, VARIED, Surface(1, 1, 0, 1, 0, 0)])
@pytest.mark.parametrize("ask", ["current", "previous", "as-of", "history"])
def test_a_question_names_its_unit_and_holds_no_value(ask: str, surface: Surface) -> None:
    """A question can be understood alone; only as-of holds a date, the one asked about."""
    dice = Dice("ask", ask)
    mint, renderer = Mint(dice), Renderer(surface, dice)
    for domain, field in FIELDS * 3:
        unit = unit_id("acme", mint.topic(domain), field.name)
        if ask == "history":
            text = renderer.history_question(unit)
        else:
            of = "2026-02-14T12:00" if ask == "as-of" else None
            text = renderer.question(ask, unit, at=AT, of=of)
        assert topic_of(unit) in text
        labels = (*field.names, field.german.split(" ")[-1])
        assert any(label.casefold() in text.casefold() for label in labels), text
        wanted = ["date:2026-02-14"] if ask == "as-of" else []
        assert [m.literal for m in values.find(text)] == wanted, text


def test_a_rank_question_touches_its_units_alike() -> None:
    """The units are named in the same words and in sorted order, however they are given."""
    units = ("a/Heron Pilot/budget", "a/Ember Audit/deadline")
    for seed in range(40):
        one, other = (
            Renderer(VARIED, Dice(seed)).question("rank", None, at=AT, units=given)
            for given in (units, units[::-1])
        )
        assert one == other
        assert "the deadline of Ember Audit and the budget of Heron Pilot" in one


def test_a_question_that_cannot_be_worded_is_refused() -> None:
    """The error says what is missing."""
    renderer = Renderer(PLAIN, Dice("refuse"))
    with pytest.raises(ValueError, match="no wordings for a question of kind 'evidence'"):
        renderer.question("evidence", "a/X/budget", at=AT)
    with pytest.raises(ValueError, match="'current' needs a unit"):
        renderer.question("current", None, at=AT)
    with pytest.raises(ValueError, match="needs a unit, and as-of an instant"):
        renderer.question("as-of", "a/X/budget", at=AT)
    with pytest.raises(ValueError, match="'rank' needs the units"):
        renderer.question("rank", None, at=AT)


def test_an_op_that_cannot_be_worded_is_refused() -> None:
    """The error names the op and what it lacks."""
    renderer = Renderer(PLAIN, Dice("refuse"))
    with pytest.raises(ValueError, match="the op 'tell' of None cannot be said without a unit"):
        said(renderer, Op("tell", value="count:1"), {})
    with pytest.raises(ValueError, match="the op 'echo' of a/X/budget cannot be said without a value"):  # fmt: skip
        said(renderer, Op("echo", "a/X/budget"), {})
    with pytest.raises(ValueError, match="'depend' of a/X/budget cannot be said without a target"):
        said(renderer, Op("depend", "a/X/budget", rule=Rule("same")), {})
    with pytest.raises(ValueError, match="'depend' of a/X/budget cannot be said without a rule"):
        said(renderer, Op("depend", "a/X/budget", target="a/Y/budget"), {})


def test_a_field_that_no_domain_has_is_spoken_of_by_its_name() -> None:
    """Scripts written by hand may use fields of their own."""
    renderer = Renderer(Surface(1, 0, 0, 1, 0, 0), Dice("own"))
    op = Op("tell", "a/Website Redesign/milestone", "date:2026-05-06")
    for _ in range(50):
        text = said(renderer, op, {})
        assert "milestone" in text
        assert [m.literal for m in values.find(text)] == ["date:2026-05-06"]
        assert "milestone" in renderer.question("current", "a/Website Redesign/milestone", at=AT)


# ---------------------------------------------------------------- determinism

DIGEST = f"""
import importlib.util
spec = importlib.util.spec_from_file_location("t", {__file__!r})
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
print(module.digest())
"""


def digest() -> str:
    """A hash over utterances of all scenes and questions."""
    surface = Surface(0.9, 0.5, 0.3, 0.2, 0.3, 0.1, 2000)
    texts = [t for name in SCENES for _, _, t in sayings(name, 40, surface)]
    renderer = Renderer(surface, Dice("asks"))
    units = ("a/Heron Pilot/budget", "a/Ember Audit/deadline")
    for ask in ("current", "previous", "as-of", "rank") * 20:
        texts.append(renderer.question(ask, units[0], at=AT, of=EARLIER, units=units))
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()


def test_texts_are_the_same_in_every_process_and_under_every_hash_seed(root: Path) -> None:
    """Nothing that is rendered depends on the order of a set."""
    wanted = digest()
    for seed in ("0", "4242"):
        env = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(root / ".src")}
        run = subprocess.run(
            [sys.executable, "-c", DIGEST], env=env, capture_output=True, text=True, check=True
        )
        assert run.stdout.strip() == wanted
