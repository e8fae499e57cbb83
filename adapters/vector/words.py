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


def _stems(texts: list[str]) -> list[list[str]]:
    """Lower-case words of two letters or more, without English stopwords, stemmed."""
    import bm25s

    stems: list[list[str]] = bm25s.tokenize(
        texts, stopwords="en", stemmer=_stemmer(), return_ids=False, show_progress=False
    )
    return stems


class Words:
    """BM25 as in Lucene (k1 1.5, b 0.75); turns that share no word with the query are not found.

    The library has no incremental index: it is made anew at the first search after a change,
    from words that were split once.
    """

    def __init__(self) -> None:
        self._pending: dict[int, str] = {}
        self._stems: dict[int, list[str]] = {}
        self._index: Any = None
        self._numbers: list[int] = []

    def add(self, number: int, text: str) -> None:
        """Take in a turn; numbers rise."""
        self._pending[number] = text
        self._index = None

    def remove(self, number: int) -> None:
        """Take a turn out."""
        if self._pending.pop(number, None) is None:
            del self._stems[number]
        self._index = None

    def search(self, text: str, limit: int) -> Ranking:
        """The turns that match best."""
        self._build()
        query = _stems([text])[0]
        if self._index is None or not query:
            return []
        scores = self._index.get_scores(query)
        found = np.flatnonzero(scores)
        return ranked([self._numbers[at] for at in found], scores[found], limit)

    def _build(self) -> None:
        if self._index is not None:
            return
        import bm25s

        self._stems |= zip(self._pending, _stems(list(self._pending.values())), strict=True)
        self._pending.clear()
        if any(self._stems.values()):
            index = bm25s.BM25(dtype="float64")
            index.index(list(self._stems.values()), show_progress=False)
            self._index, self._numbers = index, list(self._stems)
