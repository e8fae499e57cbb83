"""Whether two judges agree: Cohen's kappa over the same answers, and where they differ."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from steeltrap.harness.answering.scores import Verdict
from steeltrap.harness.stats import RESAMPLES, Interval

__all__ = ["VERDICTS", "Agreement", "agreement", "kappa"]

VERDICTS: Final[tuple[Verdict, ...]] = ("correct", "wrong", "abstained")


class Agreement(NamedTuple):
    """How far two judges say the same."""

    n: int
    """Answers that both judged; those that one of them could not judge are left out."""
    same: int
    kappa: float | None
    """0: as often as by chance, 1: always; None where both gave one and the same verdict
    throughout, or there is no answer, so that chance alone would explain it."""
    interval: Interval | None
    """95%, by bootstrap over the questions."""
    table: list[list[int]]
    """Counts: a row for each verdict of the first judge, a column for each of the second."""


def agreement(pairs: Sequence[tuple[Verdict, Verdict]]) -> Agreement:
    """Compare two judges.

    Args:
        pairs: what each said of the same answer; those with an error are left out.
    """
    table = [[pairs.count((one, two)) for two in VERDICTS] for one in VERDICTS]
    n = sum(map(sum, table))
    same = sum(table[i][i] for i in range(len(VERDICTS)))
    return Agreement(n, same, kappa(table), _interval(table, n), table)


def kappa(table: Sequence[Sequence[float]]) -> float | None:
    """Cohen's kappa of a table of counts; None where it is not defined."""
    n = sum(map(sum, table))
    if not n:
        return None
    same = sum(table[i][i] for i in range(len(table))) / n
    rows = [sum(row) / n for row in table]
    columns = [sum(column) / n for column in zip(*table, strict=True)]
    chance = sum(row * column for row, column in zip(rows, columns, strict=True))
    return None if chance >= 1 else (same - chance) / (1 - chance)


def _interval(table: Sequence[Sequence[int]], n: int) -> Interval | None:
    """Percentiles of resampled kappas. To draw questions anew is to draw their cells of the table.

    Resamples in which kappa is not defined, all questions being of one cell, are left out.
    """
    import numpy as np

    if n < 2 or kappa(table) is None:
        return None
    shares = np.asarray(table, float).ravel() / n
    drawn = np.random.default_rng(0).multinomial(n, shares, size=RESAMPLES)
    cells = drawn.reshape(-1, len(table), len(table)) / n
    same = np.trace(cells, axis1=1, axis2=2)
    chance = (cells.sum(axis=2) * cells.sum(axis=1)).sum(axis=1)
    defined = chance < 1 - 1e-12
    if not defined.any():
        return None
    kappas = (same[defined] - chance[defined]) / (1 - chance[defined])
    low, high = np.percentile(kappas, [2.5, 97.5])
    return Interval(float(low), float(high))
