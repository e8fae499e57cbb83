"""Rankings of turns by their number, with ties broken by the order of the turns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, TypeAlias

__all__ = ["RANK_CONSTANT", "Ranking", "fused", "ranked"]

Ranking: TypeAlias = list[tuple[int, float]]
"""Turn numbers with their scores, best first."""

RANK_CONSTANT: Final = 60
"""k of reciprocal rank fusion (Cormack, Clarke and Buettcher, SIGIR 2009)."""
_DIGITS: Final = 9
"""Digits of a score that count: what lies beyond is the noise of floating point."""


def ranked(scores: Iterable[tuple[int, float]], limit: int) -> Ranking:
    """The best of the scored turns; of equal ones the earlier turn first."""
    rounded = [(number, round(float(score), _DIGITS)) for number, score in scores]
    return sorted(rounded, key=lambda pair: (-pair[1], pair[0]))[:limit]


def fused(rankings: Sequence[Ranking], limit: int) -> Ranking:
    """Reciprocal rank fusion: a turn scores the sum of 1 / (k + its rank) over the rankings."""
    total: dict[int, float] = {}
    for ranking in rankings:
        for rank, (number, _) in enumerate(ranking, 1):
            total[number] = total.get(number, 0.0) + 1 / (RANK_CONSTANT + rank)
    return ranked(total.items(), limit)
