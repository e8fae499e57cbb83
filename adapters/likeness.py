"""How near texts are to a question, by meaning or by words, for memories that keep few of them.

Nothing is indexed: a few hundred short texts are scored faster than an index is kept up to date.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, Protocol

import numpy as np

from steeltrap.adapters.embedders import Embedder, WordLlamaEmbedder
from steeltrap.adapters.embedders.base import Vectors
from steeltrap.adapters.vector.okapi import SpacedWords
from steeltrap.adapters.vector.ranking import Ranking, ranked

__all__ = ["ByMeaning", "ByWords", "Likeness"]

_WORD: Final = re.compile(r"\w+")


class Likeness(Protocol):
    """Ranks texts by a question."""

    def best(self, question: str, texts: Sequence[str], limit: int) -> Ranking:
        """Places of the nearest texts with their scores; of equal ones the earlier first."""


class ByMeaning:
    """Cosine of vectors.

    Args:
        embedder: makes them; by default `WordLlamaEmbedder`.
    """

    def __init__(self, embedder: Embedder | None = None) -> None:
        self._embedder = embedder or WordLlamaEmbedder()
        self._known: dict[str, Vectors] = {}
        """Vectors of the texts of the last few searches, so that most are made once."""

    def best(self, question: str, texts: Sequence[str], limit: int) -> Ranking:
        """See `Likeness`."""
        if not texts or limit < 1:
            return []
        new = [text for text in dict.fromkeys(texts) if text not in self._known]
        if new:
            self._known |= zip(new, self._embedder.embed(new), strict=True)
        rows = np.array([self._known[text] for text in texts], dtype=np.float64)
        asked = self._embedder.embed([question])[0].astype(np.float64)
        return ranked(range(len(texts)), (rows * asked).sum(axis=1), limit)

    def forget(self) -> None:
        """Keep no text and no vector of one."""
        self._known.clear()


class ByWords:
    """Okapi's BM25 over words in small letters, without stems or stopwords.

    Every text is ranked, those without a shared word last.
    """

    def best(self, question: str, texts: Sequence[str], limit: int) -> Ranking:
        """See `Likeness`."""
        if limit < 1:
            return []
        index = SpacedWords()
        for place, text in enumerate(texts):
            index.add(place, _words(text))
        return index.search(_words(question), limit)


def _words(text: str) -> str:
    return " ".join(_WORD.findall(text.casefold()))
