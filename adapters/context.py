"""What of a model's whole context is served where a query has a limit.

Some memories put everything that they hold before the model: a trajectory, a queue of messages. What
of it bears on a question is for the model to find. Where a query may be served less than all, what
lies nearest to the question stands for that, in the order in which the context has it: the cut is
no ranking of the memory's own, and decides nothing about what is kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from steeltrap.adapters.embedders import Embedder
from steeltrap.adapters.embedders.base import Vectors
from steeltrap.adapters.vector.ranking import ranked
from steeltrap.harness.memory import Item

__all__ = ["Nearness", "fitting"]

_MOST: Final = 20_000
"""Vectors that are kept; beyond, they are made anew."""


class Nearness:
    """How near texts lie to a question, by the cosine; the vector of a text is made once.

    Args:
        embedder: makes the vectors.
    """

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._known: dict[str, Vectors] = {}

    def of(self, texts: Sequence[str], question: str) -> NDArray[np.float64]:
        """One number a text; the higher the nearer."""
        new = [text for text in dict.fromkeys(texts) if text not in self._known]
        if new:
            if len(self._known) + len(new) > _MOST:
                self._known.clear()
                new = list(dict.fromkeys(texts))
            self._known |= zip(new, self._embedder.embed(new), strict=True)
        rows = np.array([self._known[text] for text in texts], dtype=np.float64)
        near: NDArray[np.float64] = (rows * self._embedder.embed([question])[0]).sum(axis=1)
        return near

    def forget(self) -> None:
        """Drop all vectors, so that none is left of what is erased."""
        self._known.clear()


def fitting(items: Sequence[Item], question: str, limit: int, nearness: Nearness) -> list[Item]:
    """At most so many items, those nearest to the question, in their own order."""
    if len(items) <= limit:
        return list(items)
    if limit < 1:
        return []
    scores = nearness.of([item.text for item in items], question)
    kept = {number for number, _ in ranked(range(len(items)), scores, limit)}
    return [item for number, item in enumerate(items) if number in kept]
