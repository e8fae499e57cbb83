"""Rankings of turns by their number, with ties broken by the order of the turns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

__all__ = ["RANK_CONSTANT", "Ranking", "fused", "ranked"]

Ranking: TypeAlias = list[tuple[int, float]]
"""Turn numbers with their scores, best first."""

RANK_CONSTANT: Final = 60
"""k of reciprocal rank fusion (Cormack, Clarke and Buettcher, SIGIR 2009)."""
_DIGITS: Final = 9
"""Digits of a score that count: what lies beyond is the noise of floating point."""


def ranked(numbers: Sequence[int], scores: ArrayLike, limit: int) -> Ranking:
    """The best of the scored turns; of equal ones the earlier turn first."""
    rounded = np.round(np.asarray(scores, dtype=np.float64), _DIGITS)
    order = np.lexsort((np.asarray(numbers), -rounded))[:limit]
    return [(int(numbers[at]), float(rounded[at])) for at in order]


def fused(rankings: Sequence[Ranking], limit: int) -> Ranking:
    """Reciprocal rank fusion: a turn scores the sum of 1 / (k + its rank) over the rankings."""
    total: dict[int, float] = {}
    for ranking in rankings:
        for rank, (number, _) in enumerate(ranking, 1):
            total[number] = total.get(number, 0.0) + 1 / (RANK_CONSTANT + rank)
    return ranked(list(total), list(total.values()), limit)
