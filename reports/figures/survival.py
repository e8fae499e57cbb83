"""Time to the first violation of a condition, over seeds (Kaplan and Meier 1958)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from steeltrap.harness.record import Record
from steeltrap.harness.verdict import CONDITIONS, merge
from steeltrap.reports.figures.estimates import kaplan_meier
from steeltrap.reports.figures.figure import Figure
from steeltrap.reports.figures.parts import faint, legend, letter, panels, percent_axis
from steeltrap.reports.figures.style import GREY, TWO_COLUMNS, Look, house

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from matplotlib import figure as drawn
    from matplotlib.axes import Axes

__all__ = ["time_to_first_violation"]

_ABREAST: Final = 3
"""Panels in a row."""


def time_to_first_violation(
    systems: Mapping[str, Sequence[Record]], looks: Mapping[str, Look]
) -> Figure | None:
    """A panel a condition; None where no condition was ever held or violated."""
    import pandas as pd

    rows = [
        {"condition": condition, "system": system, **step}
        for condition in CONDITIONS
        for system, own in systems.items()
        for step in _steps(own, condition)
    ]
    if not rows:
        return None
    data = pd.DataFrame(rows)
    seeds = data[data["turn"] == 0]["at_risk"]
    several = (
        "Bands: 95%, log-log of Greenwood's variance, where it is defined."
        if seeds.max() > 1
        else "One seed each, so there is no band."
    )
    caption = (
        "Kaplan-Meier estimate of the share of seeds without a violation, by turns taken in; "
        "runs without one are censored at the end of the script (bars); systems of which it could "
        "not be said whether a condition held, and runs that put it to no test, are left out. "
        f"{several}"
    )
    return Figure(
        "time-to-first-violation", "Time to the first violation", caption, data,
        partial(_draw, looks),
    )  # fmt: skip


def _steps(records: Sequence[Record], condition: str) -> list[dict[str, Any]]:
    """Where some runs of a system were violated, one that was not is censored though a name could
    not be observed in it: in none of them could it, and left out it would be counted as violated.
    """
    pairs = [(record, record.outcome.verdicts.get(condition)) for record in records]
    tested = [(record, verdict) for record, verdict in pairs if verdict and verdict.opportunities]
    if merge(verdict.validity for _, verdict in tested) == "unknown":
        return []
    violated = [verdict.first_turn for _, verdict in tested if verdict.first_turn is not None]
    censored = [record.outcome.turns for record, verdict in tested if not verdict.violations]
    return kaplan_meier(violated, censored)


# ---------------------------------------------------------------- drawing


@house()
def _draw(looks: Mapping[str, Look], data: pd.DataFrame) -> drawn.Figure:
    names = list(data["system"].unique())
    found = list(data.groupby("condition", sort=False))
    columns = min(_ABREAST, len(found))
    rows = -(-len(found) // columns)
    risk_in = 0.35 + 0.13 * len(names)
    figure, grid = panels(
        2 * rows, columns, width_in=TWO_COLUMNS, height_in=rows * (1.55 + risk_in) + 0.2,
        height_ratios=[1.3, risk_in] * rows,
    )  # fmt: skip
    end = int(data["turn"].max())
    for place in range(rows * columns):
        above, below = _pair(grid, place, columns)
        if place >= len(found):
            above.remove()
            below.remove()
            continue
        condition, steps = found[place]
        letter(above, str(condition))
        for number, name in enumerate(names):
            _curve(above, steps[steps["system"] == name], looks[name], number, len(names), end)
        _at_risk(below, steps, names, looks, end)
        above.set_xlim(0, 1.02 * end)
        above.set_ylim(0, 1.05)
        percent_axis(above.yaxis)
        above.tick_params(labelbottom=False)
        below.set_xlim(above.get_xlim())
        below.set_xticks(_ticks(end))
    figure.supylabel("seeds without a violation", fontsize=8)
    figure.supxlabel("turns", fontsize=8)
    legend(figure, {name: looks[name] for name in names})
    return figure


def _pair(grid: np.ndarray[Any, Any], place: int, columns: int) -> tuple[Axes, Axes]:
    row, column = divmod(place, columns)
    return grid[2 * row][column], grid[2 * row + 1][column]


def _ticks(end: int) -> list[int]:
    return sorted({0, round(end / 3), round(2 * end / 3), end})


def _curve(axes: Axes, steps: pd.DataFrame, look: Look, place: int, of: int, end: int) -> None:
    """A staircase to the end of the script; markers of several stand apart, so all are seen."""
    if steps.empty:
        return
    turns, values = [*steps["turn"], end], [*steps["value"], steps["value"].iloc[-1]]
    axes.step(turns, values, where="post", color=look.colour, ls=look.line, clip_on=False)
    _band(axes, steps, look, faint(of), end)
    at = [end * (place + 0.5 + of * k) / (of * 3) for k in range(3)]
    there = [values[sum(turn <= x for turn in turns) - 1] for x in at]
    axes.plot(at, there, ls="", marker=look.marker, color=look.colour, clip_on=False, zorder=3)
    ended = steps[steps["censored"] > 0]
    if len(ended):
        axes.plot(
            ended["turn"], ended["value"], ls="", marker="|", ms=6, color=look.colour,
            clip_on=False,
        )  # fmt: skip


def _band(axes: Axes, steps: pd.DataFrame, look: Look, alpha: float, end: int) -> None:
    """The band of each step, as wide as the step."""
    ends = [*steps["turn"].iloc[1:], end]
    for (_, step), until in zip(steps.iterrows(), ends, strict=True):
        if step["low"] is not None and step["low"] == step["low"]:
            axes.fill_between(
                [step["turn"], until],
                step["low"],
                step["high"],
                color=look.colour,
                alpha=alpha,
                lw=0,
            )


def _at_risk(
    axes: Axes, steps: pd.DataFrame, names: list[str], looks: Mapping[str, Look], end: int
) -> None:
    """The seeds at risk of each system at some turns, a row a system."""
    for y, name in enumerate(names):
        own = steps[steps["system"] == name]
        if own.empty:
            continue
        axes.plot(
            [-0.09 * end], [y], ls="", marker=looks[name].marker, ms=4, color=looks[name].colour,
            clip_on=False, in_layout=False,
        )  # fmt: skip
        for turn in _ticks(end):
            later = own[own["turn"] >= turn]["at_risk"]
            count = int(later.iloc[0]) if len(later) else 0
            axes.text(turn, y, str(count), ha="center", va="center", fontsize=7, in_layout=False)
    axes.set_title("seeds at risk", loc="left", fontsize=7, color=GREY, pad=2)
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.set_yticks([])
    axes.grid(visible=False)
    axes.spines[["left", "bottom"]].set_visible(False)
    axes.tick_params(length=0)
