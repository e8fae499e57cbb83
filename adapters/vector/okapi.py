"""BM25 over words split at spaces, as LongMemEval's own retriever has it."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np

from steeltrap.adapters.vector.ranking import Ranking, ranked

__all__ = ["SpacedWords"]

_K1, _B, _FLOOR = 1.5, 0.75, 0.25


class SpacedWords:
    """Okapi's BM25 as `rank_bm25.BM25Okapi` computes it: no stems, no lower case, no stopwords.

    A word that stands in more than half of the entries would count against them; it gets a quarter
    of the mean weight of all words instead. Every entry is ranked, those without a shared word last.
    """

    def __init__(self) -> None:
        self._words: dict[int, Counter[str]] = {}
        self._weight: dict[str, float] | None = None

    def add(self, number: int, text: str) -> None:
        """Take in an entry; numbers rise."""
        self._words[number] = Counter(text.split(" "))
        self._weight = None

    def remove(self, number: int) -> None:
        """Take an entry out."""
        del self._words[number]
        self._weight = None

    def search(self, text: str, limit: int) -> Ranking:
        """The entries that match best."""
        if not self._words:
            return []
        weight = self._weights()
        lengths = np.array([words.total() for words in self._words.values()], dtype=np.float64)
        norm = _K1 * (1 - _B + _B * lengths / lengths.mean())
        scores = np.zeros(len(lengths))
        for word in text.split(" "):
            counts = np.array([words.get(word, 0) for words in self._words.values()])
            scores += weight.get(word, 0.0) * (counts * (_K1 + 1) / (counts + norm))
        return ranked(list(self._words), scores, limit)

    def _weights(self) -> dict[str, float]:
        if self._weight is None:
            held = Counter(word for words in self._words.values() for word in words)
            size = len(self._words)
            weight = {w: math.log(size - n + 0.5) - math.log(n + 0.5) for w, n in held.items()}
            floor = _FLOOR * sum(weight.values()) / len(weight)
            self._weight = {w: floor if value < 0 else value for w, value in weight.items()}
        return self._weight
