"""Values over seeds with their intervals, as the figures draw them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from steeltrap.harness.stats import rate_interval

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["estimate", "mean", "over_seeds"]

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
