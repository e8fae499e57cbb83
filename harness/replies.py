"""Checks what an adapter replies, and numbers the items it serves.

Jepsen wraps every client for the same reason: a reply of the wrong shape must be found where it
is given, as a fault of the adapter, and not deep inside a check.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

from steeltrap.harness import tokens
from steeltrap.harness.memory import Item

__all__ = ["BadReplyError", "Items", "number", "sound", "words"]


class BadReplyError(TypeError):
    """An adapter's reply breaks its protocol; the message says what was given and what is due."""


class Items:
    """Every different item of a run, numbered in order of first sight."""

    def __init__(self) -> None:
        self.all: list[Item] = []
        self.tokens: list[int] = []
        self._number: dict[Item, int] = {}

    def extend(self, items: Sequence[Item]) -> None:
        """Take over items that an earlier part of the run has numbered."""
        for item in items:
            self._add(item)

    def intern(self, reply: Any, call: str) -> tuple[list[int], list[float]]:
        """The numbers and scores of the items of a reply; new ones join `all`.

        Raises:
            BadReplyError: the reply is not a sequence of well-formed items.
        """
        if not isinstance(reply, list | tuple):
            raise BadReplyError(f"{call} returned {type(reply).__name__}, not a list of Item")
        numbers, scores = [], []
        for item in reply:
            if not isinstance(item, Item):
                raise BadReplyError(f"{call} returned a list with {type(item).__name__} in it, not Item")  # fmt: skip
            if item.score is not None:
                scores.append(number(item.score, f"{call} returned an Item with score"))
                item = msgspec.structs.replace(item, score=None)
            numbers.append(self._numbered(item, call))
        return numbers, scores if len(scores) == len(numbers) else []

    def _numbered(self, item: Item, call: str) -> int:
        try:
            known = self._number.get(item)
        except TypeError:
            known = None
        if known is None:
            checked = sound(item, call)
            known = self._number.get(checked)
            if known is None:
                known = self._add(checked)
            self._number[item] = known
        return known

    def _add(self, item: Item) -> int:
        self._number.setdefault(item, len(self.all))
        self.all.append(item)
        self.tokens.append(tokens.count(item.text))
        return len(self.all) - 1


def number(value: Any, what: str) -> float:
    """A finite number as a plain float.

    Args:
        value: what a memory gave.
        what: the beginning of the sentence that says what is wrong with it.

    Raises:
        BadReplyError: it is no number, or one that JSON does not know.
    """
    try:
        plain = float(value)
    except (TypeError, ValueError, OverflowError):
        plain = math.nan
    if isinstance(value, bool | str) or not math.isfinite(plain):
        raise BadReplyError(f"{what} {value!r}, not a finite number")
    return plain


def words(fault: BaseException, longest: int = 500) -> str:
    """Type and words of an error as they can be written, whatever it is and says."""
    try:
        said = str(fault)
    except BaseException as another:
        said = f"(it has no words: {type(another).__name__})"
    return f"{type(fault).__name__}: {said}"[:longest].encode(errors="backslashreplace").decode()


def sound(item: Any, call: str) -> Item:
    """An item whose fields are of their kinds, its times in the form that scripts use.

    Raises:
        BadReplyError: one is not.
    """
    try:
        hash(item)
    except TypeError:
        raise BadReplyError(f"{call} returned an Item with {_unhashable(item)}") from None
    for name in ("text", "id", "valid_from", "valid_to"):
        value = getattr(item, name)
        if not isinstance(value, str) and (value is not None or name == "text"):
            given = type(value).__name__
            raise BadReplyError(f"{call} returned an Item whose {name} is {given}, not text")
        if value is not None and not _encodable(value):
            raise BadReplyError(f"{call} returned an Item whose {name} is not valid Unicode")
    sources = item.sources
    if sources is not None and not (
        isinstance(sources, tuple) and all(isinstance(source, str) for source in sources)
    ):
        raise BadReplyError(f"{call} returned an Item whose sources are not a tuple of turn ids")
    if sources and not all(map(_encodable, sources)):
        raise BadReplyError(f"{call} returned an Item whose sources are not valid Unicode")
    if not isinstance(item.review, bool):
        raise BadReplyError(f"{call} returned an Item whose review is not True or False")
    return Item(
        _plain(item.text),
        None if item.id is None else _plain(item.id),
        None if sources is None else tuple(map(_plain, sources)),
        _instant(item.valid_from, call),
        _instant(item.valid_to, call),
        item.review,
    )


def _plain(text: str) -> str:
    """A text of a class of its own, as NumPy has one, as text like any other: only that is written."""
    return text if type(text) is str else str.__str__(text)


def _unhashable(item: Any) -> str:
    if isinstance(item.sources, list):
        return "a list as sources; give a tuple of turn ids"
    return "a field that is not text"


def _encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _instant(spelled: str | None, call: str) -> str | None:
    """A time to the minute, in UTC where it names a zone: times are compared as text."""
    if spelled is None:
        return None
    try:
        at = datetime.fromisoformat(spelled)
    except ValueError:
        raise BadReplyError(
            f"{call} returned an Item with the time {spelled!r}; write ISO 8601, 2026-03-15T09:30"
        ) from None
    if at.tzinfo is not None:
        at = at.astimezone(UTC).replace(tzinfo=None)
    return at.isoformat(timespec="minutes")
