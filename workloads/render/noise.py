"""Small talk, talk about other people's affairs, and long pastes.

Nothing here holds a digit, a date, an amount or the name of a person, so that no noise can be
taken for a value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Final

from steeltrap.workloads.dice import Dice
from steeltrap.workloads.domains import domains
from steeltrap.workloads.render.wordings import phrases, read, slots_of

__all__ = ["paste", "small_talk"]

PARAGRAPHS: Final = 120
"""Different paragraphs of a genre; their order is drawn for each paste."""

_Words = Mapping[str, Sequence[str]]


def small_talk(dice: Dice, language: str) -> str:
    """A few sentences that are about nothing that matters here."""
    if language != "en":
        first, second = (phrases(language, f"noise.{part}") for part in ("first", "second"))
        return f"{dice.pick(first)} {dice.pick(second)}"
    patterns, words = _small_talk()
    pattern, slots = dice.pick(dice.weighted(patterns, (9, 8, 2)))
    text = _filled(pattern, slots, words, dice)
    return text[0].upper() + text[1:]


def paste(dice: Dice, chars: int) -> str:
    """A text of at least `chars` characters, copied from somewhere."""
    genre = dice.pick(tuple(read("paste")))
    data = read("paste")[genre]
    between = "\n" if data["glue"] == "\n" else "\n\n"
    parts = [dice.pick(data["start"])]
    length = 0
    while length < chars:
        for paragraph in dice.shuffled(_paragraphs(genre)):
            parts.append(paragraph if len(parts) == 1 else between + paragraph)
            length += len(parts[-1])
            if length >= chars:
                break
    return "".join([*parts, dice.pick(data["end"])])


@cache
def _small_talk() -> tuple[list[list[tuple[str, tuple[str, ...]]]], _Words]:
    data = read("noise")
    groups = [
        [(text, tuple(sorted(slots_of(text)))) for text in data["patterns"][name]]
        for name in ("small", "alike", "code")
    ]
    fields = [field.name for domain in domains() for field in domain.fields]
    return groups, {**data["words"], "field": fields}


def _filled(pattern: str, slots: Sequence[str], words: _Words, dice: Dice) -> str:
    return pattern.format_map({slot: dice.pick(words[slot]) for slot in slots})


@cache
def _paragraphs(genre: str) -> tuple[str, ...]:
    data = read("paste")[genre]
    dice = Dice("paste", genre)
    patterns = [(text, tuple(sorted(slots_of(text)))) for text in data["sentences"]]
    paragraphs = []
    for _ in range(PARAGRAPHS):
        chosen = dice.sample(patterns, dice.between(5, 8))
        lines = [_filled(text, slots, data["words"], dice) for text, slots in chosen]
        paragraphs.append(data["glue"].join(lines))
    return tuple(paragraphs)
