"""Values over seeds with their intervals, as the figures draw them."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from steeltrap.harness.stats import rate_interval

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["estimate", "kaplan_meier", "mean", "over_seeds"]

INTERVALS = "95% intervals over seeds (BCa bootstrap)"


def estimate(counts: Iterable[tuple[float, float]]) -> dict[str, Any] | None:
    """A pooled rate with its interval over seeds; None where nothing was counted.

    Args:
        counts: a part and a whole for each seed; seeds without any whole are left out.

    Returns:
        `value`, `low` and `high` (None for one seed) and `seeds`.
    """
    seen = [(part, whole) for part, whole in counts if whole]
    if not seen:
        return None
    parts, wholes = zip(*seen, strict=True)
    spread = rate_interval(parts, wholes)
    low, high = spread or (None, None)
    return {"value": sum(parts) / sum(wholes), "low": low, "high": high, "seeds": len(seen)}


def mean(values: Iterable[float | None]) -> dict[str, Any] | None:
    """A mean over seeds, one value a seed, with its interval; None where there is no value."""
    return estimate((value, 1.0) for value in values if value is not None)


def over_seeds(data: pd.DataFrame, *, drawn: str = "Bars") -> str:
    """The sentence of a caption about intervals and seeds."""
    fewest, most = int(data["seeds"].min()), int(data["seeds"].max())
    if most < 2:
        return "One seed, so there is no interval over seeds."
    if fewest == most:
        return f"{drawn}: {INTERVALS}; {most} seeds."
    one = "; none where there is one seed" if fewest == 1 else ""
    return f"{drawn}: {INTERVALS}; {fewest} to {most} seeds{one}."


def kaplan_meier(violated: Sequence[int], censored: Sequence[int]) -> list[dict[str, Any]]:
    """The estimate at turn 0 and at every time that occurs.

    Args:
        violated: turns at which runs were first violated.
        censored: turns at which runs ended without.

    Returns:
        `turn`, `at_risk` just before it, `violated` and `censored` at it, `value` (the share
        without a violation from it on) with `low` and `high`; None where there is no band.
    """
    import numpy as np
    from scipy import stats

    sample = stats.CensoredData.right_censored(
        [*violated, *censored], [False] * len(violated) + [True] * len(censored)
    )
    function: Any = stats.ecdf(sample).sf
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # no variance where all or none survive
        spread = function.confidence_interval(0.95, method="log-log")
    everybody = len(violated) + len(censored)
    start = {
        "turn": 0, "at_risk": everybody, "violated": 0, "censored": 0,
        "value": 1.0, "low": None, "high": None,
    }  # fmt: skip
    steps = [
        {
            "turn": int(turn),
            "at_risk": sum(time >= turn for time in (*violated, *censored)),
            "violated": violated.count(turn),
            "censored": censored.count(turn),
            "value": float(value),
            "low": None if np.isnan(low) else float(low),
            "high": None if np.isnan(high) else float(high),
        }
        for turn, value, low, high in zip(
            function.quantiles, function.probabilities, spread.low.probabilities,
            spread.high.probabilities, strict=True,
        )
    ]  # fmt: skip
    return [start, *steps]
