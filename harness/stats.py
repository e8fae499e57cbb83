"""Intervals over seeds, and comparisons of two systems over the seeds that both ran.

A seed is the unit of resampling: what happens within one run hangs together, so a run counts
once, however many probes it holds.
"""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

if TYPE_CHECKING:
    import numpy as np

__all__ = [
    "Difference",
    "Interval",
    "Labelled",
    "Power",
    "advantage_interval",
    "holm",
    "label_permutation",
    "mean_interval",
    "order_distance",
    "paired_difference",
    "power",
    "rate_interval",
    "sign_flip",
    "sign_test",
]

RESAMPLES: Final = 9999


class Interval(NamedTuple):
    """A confidence interval."""

    low: float
    high: float


class Difference(NamedTuple):
    """How far one system lies above another over the same seeds."""

    seeds: int
    mean: float
    """Mean of first minus second."""
    p: float | None
    """Two-sided; None with fewer than two seeds."""


def mean_interval(values: Sequence[float], *, level: float = 0.95) -> Interval | None:
    """The interval of a mean over seeds, one value a seed; None with fewer than two seeds."""
    return rate_interval(values, [1.0] * len(values), level=level)


def rate_interval(
    violations: Sequence[float], opportunities: Sequence[float], *, level: float = 0.95
) -> Interval | None:
    """The interval of a pooled rate, sum of violations over sum of opportunities.

    Bias-corrected and accelerated bootstrap over seeds (Efron 1987; `scipy.stats.bootstrap`).
    Where every seed agrees the interval is a point; where the acceleration is not defined the
    plain percentiles of the same resamples stand in.

    Args:
        violations: one count a seed.
        opportunities: one count a seed, in the same order; seeds without any are left out.
        level: confidence level, between 0 and 1.

    Returns:
        The interval, or None with fewer than two seeds that had an opportunity.
    """
    seen = [(v, o) for v, o in zip(violations, opportunities, strict=True) if o]
    if len(seen) < 2:
        return None
    tops, bottoms = zip(*seen, strict=True)
    rates = [top / bottom for top, bottom in seen]
    if max(rates) == min(rates):
        return Interval(rates[0], rates[0])
    return _bootstrap(tops, bottoms, level, "BCa") or _bootstrap(tops, bottoms, level, "percentile")


def _bootstrap(
    tops: Sequence[float], bottoms: Sequence[float], level: float, method: Any
) -> Interval | None:
    import numpy as np
    from scipy import stats

    def pooled(top: np.ndarray, bottom: np.ndarray, axis: int = -1) -> Any:
        return top.sum(axis=axis) / bottom.sum(axis=axis)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", stats.DegenerateDataWarning)
        warnings.simplefilter("ignore", RuntimeWarning)
        found = stats.bootstrap(
            (np.asarray(tops, float), np.asarray(bottoms, float)),
            pooled,
            n_resamples=RESAMPLES,
            paired=True,
            vectorized=True,
            confidence_level=level,
            method=method,
            rng=np.random.default_rng(0),
        ).confidence_interval
    low, high = float(found.low), float(found.high)
    return None if math.isnan(low) or math.isnan(high) else Interval(low, high)


def advantage_interval(right: int, wrong: int, trials: int, *, level: float = 0.95) -> Interval:
    """The interval of (right - wrong) / trials, where a trial may be neither.

    Clopper and Pearson's exact interval of each share, at a level that leaves both together the
    one asked for (Bonferroni).
    """
    from scipy import stats

    half = (1 + level) / 2

    def share(count: int) -> Any:
        return stats.binomtest(count, trials).proportion_ci(half, method="exact")

    hits, misses = share(right), share(wrong)
    return Interval(float(hits.low - misses.high), float(hits.high - misses.low))


def order_distance(one: Sequence[str], two: Sequence[str]) -> float:
    """How far two orders of what both hold are apart: 0 the same, 1 reversed (Kendall's tau).

    The share of pairs that stand the other way round; what occurs again counts where it is first.
    """
    places = {text: place for place, text in reversed(list(enumerate(two)))}
    order = [places[text] for text in dict.fromkeys(one) if text in places]
    if order == sorted(order):
        return 0.0
    from scipy.stats import kendalltau

    return (1.0 - float(kendalltau(range(len(order)), order).statistic)) / 2


def holm(p_values: Sequence[float]) -> list[float]:
    """The p-values adjusted for being several (Holm 1979), in the order given."""
    order = sorted(range(len(p_values)), key=lambda i: p_values[i])
    adjusted = [0.0] * len(p_values)
    highest = 0.0
    for rank, i in enumerate(order):
        highest = max(highest, min(1.0, (len(p_values) - rank) * p_values[i]))
        adjusted[i] = highest
    return adjusted


def paired_difference(first: Mapping[int, float], second: Mapping[int, float]) -> Difference | None:
    """Compare two systems by a value a seed, over the seeds that both have.

    The test flips the sign of each seed's difference (all 2^n ways up to 13 seeds, a seeded
    sample of them beyond), so n seeds cannot give a p below 2 / 2^n.

    Returns:
        The difference, or None without a common seed.
    """
    seeds = sorted(first.keys() & second.keys())
    if not seeds:
        return None
    differences = [first[seed] - second[seed] for seed in seeds]
    mean = math.fsum(differences) / len(differences)
    if len(seeds) < 2:
        return Difference(len(seeds), mean, None)
    return Difference(len(seeds), mean, sign_flip(differences))


def sign_flip(differences: Sequence[float]) -> float:
    """Two-sided p that the mean is 0, by flipping signs: exact where every sign is a fair coin.

    All 2^n ways up to 13 differences, a seeded sample of them beyond.
    """
    if len(differences) < 2 or not any(differences):
        return 1.0
    import numpy as np
    from scipy import stats

    found = stats.permutation_test(
        (np.asarray(differences, float),),
        lambda sample, axis: sample.mean(axis=axis),
        permutation_type="samples",
        vectorized=True,
        n_resamples=RESAMPLES,
        rng=np.random.default_rng(0),
    )
    return float(found.pvalue)


class Labelled(NamedTuple):
    """A test by dealing out labels anew."""

    mean: float
    """Mean over groups of the second's mean less the first's."""
    p: float
    """Two-sided."""
    least: float
    """The least p that any outcome with these values could have given."""


def label_permutation(groups: Sequence[tuple[Sequence[float], Sequence[float]]]) -> Labelled:
    """Whether two labels differ, where values were measured in groups under both.

    Within each group the labels are dealt out anew, in all ways where these are few, and in a
    seeded sample of them otherwise. With one value each in a group these are the sign flips of
    `sign_flip`. It holds exactly where within a group the labels make no difference.

    Args:
        groups: the values under the first label and under the second, at least one of each.
    """
    import numpy as np

    rng = np.random.default_rng(0)
    seen = [math.fsum(two) / len(two) - math.fsum(one) / len(one) for one, two in groups]
    dealt = [_dealt(one, two, rng) for one, two in groups]
    ways = math.prod(math.comb(len(one) + len(two), len(one)) for one, two in groups)
    if ways <= RESAMPLES:
        sums = np.zeros(1)
        for differences in dealt:
            sums = np.add.outer(sums, differences).ravel()
    else:
        drawn = [rng.choice(differences, RESAMPLES) for differences in dealt]
        # what was seen is one of the ways, or a p could be 0
        sums = np.append(np.sum(drawn, axis=0), math.fsum(seen))
    size, near = np.abs(sums), 1e-12
    p = float(np.mean(size >= abs(math.fsum(seen)) - near))
    # all groups at once as far up, or as far down, as they go
    most = max(math.fsum(float(np.max(sign * one)) for one in dealt) for sign in (1, -1))
    least = float(np.mean(size >= most - near)) if ways <= RESAMPLES else 1 / (RESAMPLES + 1)
    return Labelled(math.fsum(seen) / len(seen), p, least if most > near else 1.0)


def _dealt(one: Sequence[float], two: Sequence[float], rng: np.random.Generator) -> np.ndarray:
    """The difference of means under ways to deal out the labels of one group."""
    import numpy as np

    values = np.asarray([*one, *two], float)
    first, n = len(one), len(one) + len(two)
    if math.comb(n, first) <= RESAMPLES:
        chosen = np.asarray(list(itertools.combinations(range(n), first)))
    else:
        chosen = np.argsort(rng.random((RESAMPLES, n)), axis=1)[:, :first]
    of_first = values[chosen].sum(axis=1)
    result: np.ndarray = (values.sum() - of_first) / len(two) - of_first / first
    return result


class Power(NamedTuple):
    """How a cost grows with n: as n to the power of the exponent."""

    exponent: float
    low: float
    high: float
    """Student's interval of the exponent."""
    points: int
    over: Literal["points", "seeds"]
    """What the interval is over: the distances of the points from the line, or the seeds."""


FEWEST_POINTS: Final = 4
"""Of a line: three give an interval of 12.7 standard errors, which says nothing."""
_FEWEST_SEEDS: Final = 3
"""Over which there is an interval; below, each seed has a line of its own, and all one slope."""


def power(curves: Sequence[Sequence[tuple[float, float]]], *, level: float = 0.95) -> Power | None:
    """The exponent of a cost by least squares of its logarithm over that of n.

    From three seeds on it is the mean of the seeds' exponents, and the interval is over seeds.
    Below that it is the common slope of the seeds' lines, and the interval is over the distances
    of the points from them: it is wide where the cost is no power of n.

    Args:
        curves: for each seed, (n, cost) in any order; curves of too few points are left out.
        level: confidence level, between 0 and 1.

    Returns:
        The exponent, or None with fewer than four points in each curve, or where a cost is 0.
    """
    from scipy import stats

    kept = [curve for curve in curves if len({n for n, _ in curve}) >= FEWEST_POINTS]
    if not kept or any(n <= 0 or cost <= 0 for curve in kept for n, cost in curve):
        return None
    lines = [_line(curve) for curve in kept]
    points = sum(len(curve) for curve in kept)
    if len(kept) >= _FEWEST_SEEDS:
        slopes = [across / along for along, across, _ in lines]
        exponent, freedom = math.fsum(slopes) / len(slopes), len(slopes) - 1
        squares = math.fsum((slope - exponent) ** 2 for slope in slopes)
        error = math.sqrt(squares / freedom / len(slopes))
    else:
        along, across, up = (math.fsum(column) for column in zip(*lines, strict=True))
        exponent, freedom = across / along, points - len(kept) - 1
        error = math.sqrt(max(0.0, up - exponent * across) / freedom / along)
    reach = float(stats.t.ppf((1 + level) / 2, freedom)) * error
    over: Literal["points", "seeds"] = "seeds" if len(kept) >= _FEWEST_SEEDS else "points"
    return Power(exponent, exponent - reach, exponent + reach, points, over)


def _line(curve: Sequence[tuple[float, float]]) -> tuple[float, float, float]:
    """Sums of squares of a curve's logarithms around their means: of n, of both, of the cost."""
    logs = [(math.log(n), math.log(cost)) for n, cost in curve]
    mean_x, mean_y = (math.fsum(column) / len(logs) for column in zip(*logs, strict=True))
    from_means = [(x - mean_x, y - mean_y) for x, y in logs]
    return (
        math.fsum(x * x for x, _ in from_means),
        math.fsum(x * y for x, y in from_means),
        math.fsum(y * y for _, y in from_means),
    )


def sign_test(for_it: int, against: int) -> float:
    """Two-sided p that either is as likely: McNemar's exact test of what changed one way or the
    other."""
    from scipy import stats

    if not for_it + against:
        return 1.0
    return float(stats.binomtest(for_it, for_it + against).pvalue)
