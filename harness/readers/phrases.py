"""Finds the names that are known, word by word."""

from __future__ import annotations

import re
from collections.abc import Iterator

from steeltrap.harness.shelf import Attic, Shelf

__all__ = ["Phrases", "Words"]

_WORD = re.compile(r"\w+(?:['’.-]\w+)*['’]?")
_POSSESSIVE = re.compile(r"['’]s?$")


class Words:
    """The words of a text as they are compared, and where each stands in it."""

    def __init__(self, text: str) -> None:
        matches = list(_WORD.finditer(text))
        self.folded = [_POSSESSIVE.sub("", match.group().casefold()) for match in matches]
        self.spans = [match.span() for match in matches]


class Phrases:
    """Known phrases; the longest one that stands somewhere is the one that is meant there."""

    def __init__(self, attic: Attic) -> None:
        self._known: Shelf[str, list[str]] = Shelf(attic, list[str])
        """Words, with a space between each two -> what they mean."""
        self._longest: Shelf[str, int] = Shelf(attic, int)
        """First word -> how many words the longest phrase has that begins with it."""

    def add(self, phrase: str, meaning: str) -> None:
        """Know a phrase; the same phrase may mean several things."""
        words = Words(phrase).folded
        if not words:
            return
        meanings = self._known.get(key := " ".join(words))
        if meanings is None:
            self._known[key] = [meaning]
        elif meaning not in meanings:
            meanings.append(meaning)
        self._longest[words[0]] = max(self._longest.get(words[0], 0), len(words))

    def find(self, text: Words) -> Iterator[tuple[list[str], int, int]]:
        """Each phrase in a text: its meanings, and where it begins and ends."""
        words, spans, place = text.folded, text.spans, 0
        while place < len(words):
            longest = self._longest.get(words[place], 0)
            for length in range(min(longest, len(words) - place), 0, -1):
                meanings = self._known.get(" ".join(words[place : place + length]))
                if meanings:
                    yield meanings, spans[place][0], spans[place + length - 1][1]
                    place += length - 1
                    break
            place += 1
