"""What is answered right against what it costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from steeltrap.harness.models import Usage
from steeltrap.harness.record import Record
from steeltrap.reports.figures.estimates import estimate, mean, over_seeds
from steeltrap.reports.figures.figure import Figure
from steeltrap.reports.figures.parts import legend, panels, percent_axis, size_axis
from steeltrap.reports.figures.style import GREY, TWO_COLUMNS, Look, house

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib import figure as drawn
    from matplotlib.axes import Axes

__all__ = ["front", "recall_and_cost"]

Systems = Mapping[str, Sequence[Record]]
_LINEAR_TO: Final = {"served": 10.0, "prompt": 10.0, "usd": 0.01}
_LABELS: Final = {
    "served": "tokens served to a query",
    "prompt": "model prompt tokens a turn",
    "usd": "US dollars a run",
}


def recall_and_cost(systems: Systems, looks: Mapping[str, Look]) -> Figure | None:
    """Recall against tokens served and against what models cost; None where neither is known."""
    import pandas as pd

    rows = _rows(systems, "served") + _rows(systems, _models_cost(systems))
    if not rows:
        return None
    data = pd.DataFrame(rows)
    caption = (
        "Share of set current values that were answered right, against "
        f"{' and '.join(_LABELS[cost] for cost in data['cost'].unique())}. Filled, on the line: no "
        f"other system gives more for less (Pareto). {over_seeds(data)}"
    )
    return Figure("recall-and-cost", "Recall against cost", caption, data, partial(_draw, looks))


def front(costs: Sequence[float], gains: Sequence[float]) -> list[bool]:
    """Which points give something and are beaten by none.

    A point is beaten by one that costs at most as much and gives at least as much, one of the two
    strictly.
    """
    both = list(zip(costs, gains, strict=True))
    return [
        gain > 0 and not any(c <= cost and g >= gain and (c, g) != (cost, gain) for c, g in both)
        for cost, gain in both
    ]


def _models_cost(systems: Systems) -> str:
    """`usd` where every run that asked models has a price, `prompt` otherwise."""
    asked = [r.outcome for own in systems.values() for r in own if r.outcome.usage]
    return "usd" if asked and all(o.cost_usd is not None for o in asked) else "prompt"


def _rows(systems: Systems, measure: str) -> list[dict[str, Any]]:
    """A row a system with recall and cost; none where no system had that cost."""
    rows = []
    for system, own in systems.items():
        recall, cost = mean(record.outcome.recall for record in own), _cost(own, measure)
        if recall and cost:
            rows.append({
                "cost": measure, "system": system, "recall": recall["value"],
                "recall_low": recall["low"], "recall_high": recall["high"], "value": cost["value"],
                "low": cost["low"], "high": cost["high"], "seeds": recall["seeds"],
            })  # fmt: skip
    if not any(row["value"] for row in rows):
        return []
    best = front([row["value"] for row in rows], [row["recall"] for row in rows])
    return [{**row, "pareto": on} for row, on in zip(rows, best, strict=True)]


def _cost(records: Sequence[Record], measure: str) -> dict[str, Any] | None:
    if measure == "served":
        return mean(record.outcome.served_tokens_mean for record in records)
    if measure == "usd":
        return mean(record.outcome.cost_usd or 0.0 for record in records)
    return estimate(
        (sum(r.outcome.usage.values(), Usage()).prompt_tokens, r.outcome.turns) for r in records
    )


@house()
def _draw(looks: Mapping[str, Look], data: pd.DataFrame) -> drawn.Figure:
    found = list(data.groupby("cost", sort=False))
    width = TWO_COLUMNS if len(found) > 1 else TWO_COLUMNS / 2
    figure, grid = panels(1, len(found), width_in=width, height_in=2.3, sharey=True)
    for axes, (measure, rows) in zip(grid[0], found, strict=True):
        _panel(axes, str(measure), rows, looks)
    grid[0][0].set_ylabel("recall")
    grid[0][0].set_ylim(0, 1.05)
    percent_axis(grid[0][0].yaxis)
    legend(figure, {name: looks[name]._replace(line="") for name in data["system"].unique()})
    return figure


def _panel(axes: Axes, measure: str, rows: pd.DataFrame, looks: Mapping[str, Look]) -> None:
    best = rows[rows["pareto"]].sort_values(["value", "recall"])
    right = 1.6 * rows[["value", "high"]].max().max()
    axes.step(
        [*best["value"], right], [*best["recall"], best["recall"].iloc[-1]], where="post",
        color=GREY, lw=0.8, zorder=1,
    )  # fmt: skip
    for _, row in rows.iterrows():
        look = looks[row["system"]]
        axes.vlines(row["value"], row["recall_low"], row["recall_high"], color=look.colour, lw=0.8)
        axes.hlines(row["recall"], row["low"], row["high"], color=look.colour, lw=0.8)
        axes.plot(
            row["value"], row["recall"], marker=look.marker, color=look.colour, ms=5.5,
            mfc=look.colour if row["pareto"] else "white", clip_on=False, zorder=3, ls="",
        )  # fmt: skip
    size_axis(axes.xaxis, rows["value"], linear_to=_LINEAR_TO[measure])
    axes.set_xlim(0, right)
    axes.set_xlabel(_LABELS[measure])
