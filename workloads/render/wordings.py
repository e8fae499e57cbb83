"""The wordings, read from `wordings/*.toml` and sorted by what they can be used for."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from string import Formatter
from typing import Any, Final

__all__ = ["Wording", "phrases", "plain", "read", "slots_of", "wordings"]

FOLDER: Final = Path(__file__).parent / "wordings"
FILES: Final = {"en": "english", "de": "german", "ja": "japanese"}
AMOUNTS: Final = ("money", "measure", "count")
CLOSED: Final = (".", "?", "!", "。", '"', "`")


@dataclass(frozen=True, slots=True)
class Wording:
    """One way of saying something."""

    text: str
    slots: frozenset[str]
    open: bool
    """It ends without a full stop."""
    bare: bool
    """It is open and nothing much stands after its last slot, so that a reason may follow."""
    led: bool
    """It brings its own opening ('as before, …'), so that no other should stand before it."""


def slots_of(text: str) -> frozenset[str]:
    """The names in braces."""
    return frozenset(name for _, name, _, _ in Formatter().parse(text) if name)


def _wording(text: str) -> Wording:
    start = text.partition("{")[0]
    led = "," in start or ":" in start or "?" in start
    open_ended = not text.endswith(CLOSED)
    tail = text.rpartition("}")[2]
    return Wording(text, slots_of(text), open_ended, open_ended and not set(tail) & set(",;:"), led)


@cache
def read(name: str) -> dict[str, Any]:
    """One file of wordings."""
    with (FOLDER / f"{name}.toml").open("rb") as stream:
        return tomllib.load(stream)


def _section(language: str, path: str) -> Any:
    part: Any = read(FILES[language])
    for key in path.split("."):
        part = part.get(key, {})
    return part


@cache
def wordings(
    language: str,
    path: str,
    kind: str,
    *,
    topic: bool = True,
    old: bool = True,
    quoted: bool = False,
) -> tuple[Wording, ...]:
    """The wordings of a section that suit a kind of value; none if the language has no such section.

    Args:
        language: en, de or ja.
        path: the section, such as `tell` or `question.current`.
        kind: the kind of value.
        topic: whether the topic may be named.
        old: whether there is a value before this one that may be named.
        quoted: whether somebody else says it, so that it should not speak of me or you.
    """
    section = _section(language, path)
    texts = [*section.get("any", ()), *section.get(kind, ())]
    texts += section.get("undated", ()) if kind != "date" else ()
    if kind in AMOUNTS:
        texts += section.get("amount", ())
    barred = {name for name, allowed in (("t", topic), ("old", old)) if not allowed}
    fit = tuple(w for w in map(_wording, texts) if not w.slots & barred)
    impersonal = tuple(w for w in fit if w.text[0] == "{") if quoted else ()
    return impersonal or fit


@cache
def plain(path: str) -> Wording:
    """The one plain English wording of an op or a question."""
    return _wording(_section("en", f"plain.{path}"))


@cache
def phrases(language: str, path: str) -> tuple[str, ...]:
    """Openers, reasons, closers and the like; none if the language has no such section."""
    return tuple(_section(language, path))
