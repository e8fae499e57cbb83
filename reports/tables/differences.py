"""Systems against each other, and rates against a dial of the ideal model."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Final

from steeltrap.harness.record import Record
from steeltrap.harness.stats import Difference, holm, paired_difference
from steeltrap.harness.verdict import CONDITIONS
from steeltrap.reports.numbers import by_system
from steeltrap.reports.table import Numbers, Table, crossed

__all__ = ["differences"]

_SEEDS_FOR_P: Final = 6
"""A sign-flip test over n seeds cannot give a p below 2 / 2^n: so many give one below 0.05."""


def differences(records: Sequence[Record]) -> Table | None:
    """Every pair of systems by condition: mean difference in points, with its p after Holm.

    There is no p where so few seeds could not give one below 0.05. None where there is no pair,
    or no two seeds in common.
    """
    rates = {
        system: {condition: _rates(own, condition) for condition in CONDITIONS}
        for system, own in by_system(records).items()
    }
    found = {
        (one, two, condition): paired_difference(rates[one][condition], rates[two][condition])
        for one, two in itertools.combinations(rates, 2)
        for condition in CONDITIONS
    }
    seeds = max((difference.seeds for difference in found.values() if difference), default=0)
    if seeds < 2:
        return None
    tested = [key for key, one in found.items() if one and one.seeds >= _SEEDS_FOR_P]
    adjusted = dict(zip(tested, holm([found[key].p for key in tested]), strict=True))  # type: ignore[union-attr,misc]
    numbers = [
        {"systems": f"{one} - {two}", "condition": c, **_difference(known, adjusted.get((one, two, c)))}
        for (one, two, c), known in found.items()
    ]  # fmt: skip
    notes = ["Percentage points: means over seeds of the difference between two rates."]
    if tested:
        notes.append(
            f"p: two-sided sign-flip test over {_range([found[key].seeds for key in tested])} seeds,"  # type: ignore[union-attr]
            f" after Holm over {len(tested)} tests."
        )
    else:
        notes.append(f"No p: {seeds} seeds cannot give one below 0.05; {_SEEDS_FOR_P} can.")
    return crossed(
        "differences", "Differences", numbers, _said,
        down={"systems": "systems"}, across="condition", columns=CONDITIONS, notes=notes,
    )  # fmt: skip


def _range(seeds: Sequence[int]) -> str:
    return f"{max(seeds)}" if len(set(seeds)) == 1 else f"{min(seeds)} to {max(seeds)}"


def _rates(records: Sequence[Record], condition: str) -> dict[int, float]:
    """The rate of a condition by seed, where it had an opportunity."""
    verdicts = {r.spec.seed: r.outcome.verdicts.get(condition) for r in records}
    return {
        seed: verdict.violations / verdict.opportunities
        for seed, verdict in verdicts.items()
        if verdict and verdict.opportunities
    }


def _difference(difference: Difference | None, p: float | None) -> Numbers:
    known = difference is not None and difference.seeds >= 2
    return {
        "points": 100 * difference.mean if difference and known else None,
        "p_holm": p,
        "seeds": difference.seeds if difference else 0,
    }


def _said(row: Numbers) -> str:
    if row["points"] is None:
        return "-"
    points = f"{row['points']:+.1f}"
    return points if row["p_holm"] is None else f"{points}\np {row['p_holm']:.2g}"
