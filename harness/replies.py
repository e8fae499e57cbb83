"""Checks what an adapter replies, and numbers the items it serves.

Jepsen wraps every client for the same reason: a reply of the wrong shape must be found where it
is given, as a fault of the adapter, and not deep inside a check.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from steeltrap.harness import tokens
from steeltrap.harness.memory import Item

__all__ = ["BadReplyError", "Items"]


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

    def intern(self, reply: Any, call: str) -> tuple[list[int], list[float], list[Item]]:
        """The numbers and scores of the items of a reply, and those that are new.

        Raises:
            BadReplyError: the reply is not a sequence of well-formed items.
        """
        if not isinstance(reply, list | tuple):
            raise BadReplyError(f"{call} returned {type(reply).__name__}, not a list of Item")
        seen = len(self.all)
        numbers, scores = [], []
        for item in reply:
            if not isinstance(item, Item):
                raise BadReplyError(f"{call} returned a list with {type(item).__name__} in it, not Item")  # fmt: skip
            if item.score is not None:
                scores.append(_score(item.score, call))
                item = msgspec.structs.replace(item, score=None)
            try:
                number = self._number.get(item)
            except TypeError:
                raise BadReplyError(f"{call} returned an Item with {_unhashable(item)}") from None
            numbers.append(self._add(_checked(item, call)) if number is None else number)
        return numbers, scores if len(scores) == len(numbers) else [], self.all[seen:]

    def _add(self, item: Item) -> int:
        self._number[item] = number = len(self.all)
        self.all.append(item)
        self.tokens.append(tokens.count(item.text))
        return number


def _score(score: Any, call: str) -> float:
    if isinstance(score, bool) or not isinstance(score, int | float) or score != score:
        raise BadReplyError(f"{call} returned an Item with score {score!r}, not a number")
    return float(score)


def _unhashable(item: Any) -> str:
    if isinstance(item.sources, list):
        return "a list as sources; give a tuple of turn ids"
    return "a field that is not text"


def _checked(item: Any, call: str) -> Item:
    for name in ("text", "id", "valid_from", "valid_to"):
        value = getattr(item, name)
        if not isinstance(value, str) and (value is not None or name == "text"):
            given = type(value).__name__
            raise BadReplyError(f"{call} returned an Item whose {name} is {given}, not text")
    sources = item.sources
    if sources is not None and not (
        isinstance(sources, tuple) and all(isinstance(source, str) for source in sources)
    ):
        raise BadReplyError(f"{call} returned an Item whose sources are not a tuple of turn ids")
    if not isinstance(item.review, bool):
        raise BadReplyError(f"{call} returned an Item whose review is not True or False")
    return item  # type: ignore[no-any-return]
