"""One tenant's turns by their words: BM25."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from steeltrap.adapters.vector.ranking import Ranking, ranked

__all__ = ["Words"]


@cache
def _stemmer() -> Any:
    import Stemmer

    return Stemmer.Stemmer("english")


def _split(texts: list[str], *, stemmed: bool) -> list[list[str]]:
    """Lower-case words of two letters or more; stemmed ones without English stopwords."""
    import bm25s

    words: list[list[str]] = bm25s.tokenize(
        texts, stopwords="en" if stemmed else None, stemmer=_stemmer() if stemmed else None,
        return_ids=False, show_progress=False,
    )  # fmt: skip
    return words


class Words:
    """BM25 as in Lucene (k1 1.5, b 0.75); turns that share no word with the query are not found.

    The library has no incremental index: it is made anew at the first search after a change,
    from words that were split once.

    Args:
        stemmed: count stems and leave out stopwords; otherwise words as they are.
    """

    def __init__(self, *, stemmed: bool = True) -> None:
        self._stemmed = stemmed
        self._pending: dict[int, str] = {}
        self._words: dict[int, list[str]] = {}
        self._index: Any = None
        self._numbers: list[int] = []

    def add(self, number: int, text: str) -> None:
        """Take in a turn; numbers rise."""
        self._pending[number] = text
        self._index = None

    def remove(self, number: int) -> None:
        """Take a turn out."""
        if self._pending.pop(number, None) is None:
            del self._words[number]
        self._index = None

    def search(self, text: str, limit: int) -> Ranking:
        """The turns that match best."""
        self._build()
        query = _split([text], stemmed=self._stemmed)[0]
        if self._index is None or not query:
            return []
        scores = self._index.get_scores(query)
        found = np.flatnonzero(scores)
        return ranked([self._numbers[at] for at in found], scores[found], limit)

    def _build(self) -> None:
        if self._index is not None:
            return
        import bm25s

        words = _split(list(self._pending.values()), stemmed=self._stemmed)
        self._words |= zip(self._pending, words, strict=True)
        self._pending.clear()
        if any(self._words.values()):
            index = bm25s.BM25(dtype="float64")
            index.index(list(self._words.values()), show_progress=False)
            self._index, self._numbers = index, list(self._words)
