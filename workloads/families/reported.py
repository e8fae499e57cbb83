"""Families after the kinds of fault that users report: news that says what is new in ways that
the other families never do.

Their wordings are their own (`render/wordings/kinds.toml`), and they play in scripts of their
own, so that what other scripts say stays as it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import date, timedelta
from itertools import pairwise
from typing import Any

from steeltrap.harness import values
from steeltrap.harness.script import Op, OpName, field_of, topic_of
from steeltrap.harness.values import Kind
from steeltrap.workloads.domains import Domain, Field, domains
from steeltrap.workloads.render import noise
from steeltrap.workloads.render.wordings import read
from steeltrap.workloads.stage import Slot, Stage

__all__ = [
    "bare_number",
    "code_and_braces",
    "concurrent_writers",
    "implicit_contradiction",
    "name_change",
    "needle_in_paste",
    "negation",
    "no_spaces",
    "numbered_names",
    "polarity_flip",
    "popular_then_wrong",
    "relative_date",
    "said_back",
]

PASTE_CHARS = (3000, 12_000)


def _domain(name: str) -> Domain:
    return next(domain for domain in domains() if domain.name == name)


def _person(stage: Stage, field: str, kind: Kind = "text", topic: str | None = None) -> Slot:
    """A field of somebody that no domain has."""
    return stage.slot(field=Field(field, kind), domain=_domain("people"), topic=topic)


def _thing(stage: Stage, pool: str) -> str:
    """Two words of a pool that no other episode has been about; further first words in time."""
    words = read("kinds")[pool]
    first, last = words["first"].split(), words["last"].split()
    for tries in range(10_000):
        parts = [stage.dice.pick(first) for _ in range(1 + tries // 60)]
        thing = " ".join([*dict.fromkeys(parts), stage.dice.pick(last)])
        if stage.mint.claim(f"text:{thing}"):
            return thing
    raise AssertionError(f"the pool {pool} is empty")


def _say(
    stage: Stage, name: OpName, slot: Slot, value: str, wordings: Sequence[str],
    more: Mapping[str, str] | None = None, **how: Any,
) -> None:  # fmt: skip
    """One op in one of the wordings."""
    slots = {"t": topic_of(slot.unit), "f": field_of(slot.unit), "v": values.display(value)}
    text = stage.dice.pick(wordings).format_map({**slots, **(more or {})})
    stage.say([Op(name, slot.unit, value, importance=slot.field.importance)], text=text, **how)


# ---------------------------------------------------------------- what is new is not said so


def implicit_contradiction(stage: Stage) -> Iterator[int]:
    """Somebody does what the value on record rules out; nobody says that anything changed."""
    words = read("kinds")["implicit"]
    kind = words[stage.deal("implicit", tuple(words))]
    things = {"x": _thing(stage, kind["thing"]), "y": _thing(stage, kind["thing"])}
    slot = _person(stage, kind["field"])
    _say(stage, "tell", slot, "text:" + kind["before"].format_map(things), kind["tell"], things)
    yield stage.dice.between(1, 6)
    _say(stage, "revise", slot, "text:" + kind["after"].format_map(things), kind["revise"], things)
    yield stage.dice.between(1, 5)
    stage.ask(slot)


def polarity_flip(stage: Stage) -> Iterator[int]:
    """Liking turns into dislike, in the same words but one, and perhaps back again."""
    words, thing = read("kinds")["polarity"], {"x": _thing(stage, "matter")}
    slot = _person(stage, f"view of {thing['x']}")
    fond, tired = f"text:fond of {thing['x']}", f"text:tired of {thing['x']}"
    first, second = (fond, tired) if stage.dice.chance(0.6) else (tired, fond)
    wordings = {fond: words["like"], tired: words["dislike"]}
    _say(stage, "tell", slot, first, wordings[first], thing)
    yield stage.dice.between(1, 5)
    _say(stage, "revise", slot, second, wordings[second], thing)
    yield stage.dice.between(1, 5)
    if second == tired and stage.dice.chance(0.5):
        _say(stage, "revert", slot, fond, words["again"], thing)
        yield 1
    stage.ask(slot)


def negation(stage: Stage) -> Iterator[int]:
    """A rule is turned round by the word 'not' alone, one way or the other."""
    words, thing = read("kinds")["negated"], {"x": _thing(stage, "permit")}
    yes, no = f"text:{thing['x']} permitted", f"text:{thing['x']} not permitted"
    slot = stage.slot(field=Field(f"rule on {thing['x']}", "text"), domain=_domain("projects"))
    told = [(yes, words["permitted"]), (no, words["forbidden"])]
    if stage.dice.chance(0.5):
        told.reverse()
    for name, (value, wordings) in zip(("tell", "revise"), told, strict=True):
        _say(stage, name, slot, value, wordings, thing)  # type: ignore[arg-type]
        yield stage.dice.between(1, 6)
    stage.check(slot, ask="previous")


def name_change(stage: Stage) -> Iterator[int]:
    """Somebody takes another name; the old one is no second name."""
    words = read("kinds")["renamed"]
    slot = _person(stage, words["field"], "name")
    _say(stage, "tell", slot, f"name:{stage.mint.person()}", words["tell"])
    for _ in range(stage.dice.between(1, 2)):
        yield stage.dice.between(1, 6)
        _say(stage, "revise", slot, f"name:{stage.mint.person()}", words["revise"])
    yield 1
    stage.check(slot, ask="previous")


# ---------------------------------------------------------------- what is said leaves much out


def bare_number(stage: Stage) -> Iterator[int]:
    """The assistant asks, and the answer is a number and nothing else."""
    words, slot = read("kinds")["bare"], stage.slot(kinds=("count",))
    for name, asked in (("tell", words["first"]), ("revise", words["later"])):
        told = {"t": topic_of(slot.unit), "f": field_of(slot.unit)}
        stage.say([Op("noise")], text=stage.dice.pick(asked).format_map(told), role="assistant")
        _say(stage, name, slot, stage.fresh(slot), ["{v}."])  # type: ignore[arg-type]
        yield stage.dice.between(1, 6)
    stage.ask(slot)


def relative_date(stage: Stage) -> Iterator[int]:
    """A day is told from the day on which it is said, and asked for long after."""
    words, ahead = read("kinds")["relative"], stage.dice.chance(0.5)
    slot = _person(stage, stage.dice.pick(words["fields"]), "date")
    told = words["future" if ahead else "past"]
    if not _told_from_today(stage, "tell", slot, words["ahead" if ahead else "back"], told):
        return
    yield stage.dice.between(2, 8)
    if ahead and _told_from_today(stage, "revise", slot, words["ahead"], words["moved"]):
        yield stage.dice.between(2, 8)
    stage.check_later(slot, 20)
    stage.ask(slot)


def _told_from_today(
    stage: Stage, name: OpName, slot: Slot, days: Mapping[str, int], wordings: Sequence[str]
) -> bool:
    """Say a day by its distance; False where all those days are somebody else's already."""
    session = stage.moment(stage.tenant)
    today = date.fromisoformat(stage.at[:10])
    for when in stage.dice.shuffled(list(days)):
        value = f"date:{(today + timedelta(days=days[when])).isoformat()}"
        if stage.mint.claim(value):
            _say(stage, name, slot, value, wordings, {"when": when}, session=session)
            return True
    return False


# ---------------------------------------------------------------- where and how it is said


def needle_in_paste(stage: Stage) -> Iterator[int]:
    """Something vital stands within a long paste, or at its end; something trivial beside it."""
    vital, trivial = stage.slot(importance="vital"), stage.slot(importance="trivial")
    stage.tell(trivial)
    yield 1
    value = stage.fresh(vital)
    parts = noise.paste(stage.dice, stage.dice.pick(PASTE_CHARS)).split("\n")
    place = stage.dice.pick((len(parts) // 3, len(parts) // 2, len(parts)))
    needle = stage.dice.pick(read("kinds")["needle"]["any"])
    # Nothing of a paste is a place to be filled in.
    before, after = ("\n".join(some).replace("{", "{{").replace("}", "}}") for some in (parts[:place], parts[place:]))  # fmt: skip
    _say(stage, "tell", vital, value, ["\n".join([before, needle, after])])
    yield stage.dice.between(1, 6)
    stage.check(trivial, vital)


def code_and_braces(stage: Stage) -> Iterator[int]:
    """A value stands in code, with braces that close nothing."""
    slot = stage.slot(kinds=("code", "name", "text"))
    _say(stage, "tell", slot, stage.fresh(slot), read("kinds")["code"]["any"])
    yield stage.dice.between(1, 5)
    _say(stage, "revise", slot, stage.fresh(slot), read("kinds")["code"]["any"])
    yield 1
    stage.ask(slot)


def no_spaces(stage: Stage) -> Iterator[int]:
    """Chinese or Japanese: no spaces between words, and names that have no other spelling."""
    languages = read("kinds")["unspaced"]
    words = languages[stage.deal("unspaced", tuple(languages))]
    topic = _joined(stage, "name", words, ("names", "given", "titles"))
    meals = [f"text:{_joined(stage, 'text', words, ('first', 'last'))}" for _ in range(3)]
    slot = _person(stage, words["field"], topic=topic)
    _say(stage, "tell", slot, meals[0], words["tell"])
    for old, meal in pairwise(meals):
        yield stage.dice.between(1, 5)
        _say(stage, "revise", slot, meal, words["revise"], {"old": values.payload_of(old)})
    stage.op("restate", slot)


def _joined(stage: Stage, kind: Kind, words: Mapping[str, str], parts: Sequence[str]) -> str:
    """A new name or text, its parts written together; the first part more than once in time."""
    for tries in range(10_000):
        first = [stage.dice.pick(words[parts[0]].split()) for _ in range(1 + tries // 60)]
        rest = [stage.dice.pick(words[part].split()) for part in parts[1:]]
        joined = "".join([*dict.fromkeys(first), *rest])
        if stage.mint.claim(f"{kind}:{joined}"):
            return joined
    raise AssertionError(f"no further {kind} can be made of {', '.join(parts)}")


def numbered_names(stage: Stage) -> Iterator[int]:
    """Two topics whose names differ in a number alone hold the same field."""
    first = stage.slot(kinds=("count", "money", "time", "text"))
    stem, number = topic_of(first.unit), stage.dice.between(101, 798)
    pair = [
        stage.slot(field=first.field, domain=first.domain, topic=f"{stem} {n}")
        for n in (number, number + 1)
    ]
    for slot in pair:
        stage.tell(slot)
        yield stage.dice.between(0, 2)
    for _ in range(2):
        stage.revise(stage.dice.pick(pair))
        stage.check(*pair)
        yield stage.dice.between(1, 4)


# ---------------------------------------------------------------- who says it, and how often


def said_back(stage: Stage) -> Iterator[int]:
    """What was recalled is said back by the assistant, time after time; it is no news."""
    words, slot = read("kinds")["said_back"]["any"], stage.slot()
    stage.tell(slot)
    for rounds in (6, 4):
        for _ in range(rounds):
            yield 0
            stage.ask(slot)
            _say(stage, "restate", slot, stage.current(slot) or "", words, role="assistant")
        if rounds == 6:
            stage.revise(slot)
    stage.check(slot)


def concurrent_writers(stage: Stage) -> Iterator[int]:
    """Several sessions say it at one minute: the same, or different things, of which the last holds."""
    words, slot = read("kinds")["at_once"]["any"], stage.slot()
    for name in ("tell", "revise"):
        value, session = stage.fresh(slot), stage.moment(stage.tenant)
        _say(stage, name, slot, value, words, session=session)
        for other in range(stage.dice.between(1, 3)):
            _say(stage, "restate", slot, value, words, session=f"{session}-{other + 2}")
        yield stage.dice.between(1, 5)
    session = stage.moment(stage.tenant)
    for other in range(2):
        value = stage.fresh(slot)
        _say(stage, "revise", slot, value, words, session=f"{session}-{other + 2}")
    yield 1
    stage.ask(slot)


def popular_then_wrong(stage: Stage) -> Iterator[int]:
    """What everybody asks for is replaced; the new value comes first at once."""
    slot = stage.slot()
    stage.tell(slot)
    for _ in range(stage.dice.between(6, 10)):
        stage.ask(slot)
    yield stage.dice.between(1, 4)
    stage.revise(slot)
    yield 1
    stage.ask(slot)
    stage.check_later(slot, 5)
