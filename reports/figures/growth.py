"""What a system takes against the length of its life, a panel a cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from math import sqrt
from typing import TYPE_CHECKING, Any, Final

from steeltrap.harness.record import Record
from steeltrap.reports.figures.estimates import mean, over_seeds
from steeltrap.reports.figures.figure import Figure
from steeltrap.reports.figures.parts import legend, letter, panels, points
from steeltrap.reports.figures.style import GREY, TWO_COLUMNS, Look, house
from steeltrap.reports.growth import COSTS, MAIN, curves, grown

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib import figure as drawn
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis

__all__ = ["growth"]

Systems = Mapping[str, Sequence[Record]]
_ABREAST: Final = 3
_TRUTH: Final = Look(GREY, "", "-")


def growth(systems: Systems, looks: Mapping[str, Look]) -> Figure | None:
    """The main costs against turns, both logarithmic; None where no life was long enough."""
    import pandas as pd

    rows = [
        {"cost": cost, "system": system, **point}
        for cost in MAIN
        for system, own in systems.items()
        for point in _points(grown(own), cost)
    ]
    if not rows:
        return None
    everybody = [record for own in systems.values() for record in grown(own)]
    if any(row["cost"] == "active_tokens" for row in rows):
        rows += [
            {"cost": "active_tokens", "system": "", **point}
            for point in _points(_one_a_seed(everybody), "true_tokens")
        ]
    data = pd.DataFrame(rows)
    caption = (
        "What a system takes against the length of its life in turns; both axes are logarithmic, so "
        "that a power of the turns is a straight line, and the thin grey one is as steep as the turns "
        "themselves. Times are the system's own, the median from 0.8 n to n turns. "
        f"{_grey(data)}Lines end where runs ended; what is nought is not drawn. {over_seeds(data)}"
    )
    return Figure("growth", "What it takes against the length of a life", caption, data, partial(_draw, looks))  # fmt: skip


def _grey(data: pd.DataFrame) -> str:
    return "Thick grey: what is worth keeping. " if (data["system"] == "").any() else ""


def _one_a_seed(records: Sequence[Record]) -> list[Record]:
    """The run of each seed that shows most of what is worth keeping: that is the same in all."""
    ordered = sorted(records, key=lambda record: sum(map(len, curves([record], "true_tokens"))))
    return list({record.spec.seed: record for record in ordered}.values())


def _points(records: Sequence[Record], cost: str) -> list[dict[str, Any]]:
    """The mean over seeds at each length, without what is nought."""
    found = [dict(curve) for curve in curves(records, cost)]
    lengths = sorted({turns for curve in found for turns in curve})
    at = ((int(turns), mean(curve.get(turns) for curve in found)) for turns in lengths)
    return [{"turns": turns, **value} for turns, value in at if value and value["value"] > 0]


@house()
def _draw(looks: Mapping[str, Look], data: pd.DataFrame) -> drawn.Figure:
    from matplotlib.lines import Line2D

    found = list(data.groupby("cost", sort=False))
    columns = min(_ABREAST, len(found))
    lines = -(-len(found) // columns)
    figure, grid = panels(lines, columns, width_in=TWO_COLUMNS, height_in=1.75 * lines + 0.2)
    for axes in grid.flat[len(found) :]:
        axes.remove()
    for axes, (cost, rows) in zip(grid.flat, found, strict=False):
        letter(axes, COSTS[str(cost)].words)
        _panel(axes, rows, looks, COSTS[str(cost)].of_unit)
        axes.set_xlim(data["turns"].min() / 1.3, data["turns"].max() * 1.3)
    figure.supxlabel("turns", fontsize=8)
    names = [name for name in data["system"].unique() if name]
    truth = (data["system"] == "").any()
    extra = [Line2D([], [], color=GREY, lw=3, alpha=0.45, label="truth")] if truth else []
    legend(figure, {name: looks[name] for name in names}, extra=extra)
    return figure


def _panel(axes: Axes, rows: pd.DataFrame, looks: Mapping[str, Look], of_unit: float) -> None:
    axes.set_xscale("log")
    axes.set_yscale("log")
    shown = rows.assign(**{column: rows[column] / of_unit for column in ("value", "low", "high")})
    axes.set_ylim(*_room(shown))
    _guide(axes, shown)
    for name, own in shown.groupby("system", sort=False):
        if name:
            points(axes, list(own["turns"]), own, looks[str(name)])
        else:
            axes.plot(own["turns"], own["value"], color=GREY, lw=3, alpha=0.45, zorder=1)
    for axis in (axes.xaxis, axes.yaxis):
        _decades(axis)


def _guide(axes: Axes, rows: pd.DataFrame) -> None:
    """A thin line as steep as n, from the lowest point of the shortest life on."""
    first, last = rows["turns"].min(), rows["turns"].max()
    least = rows[rows["turns"] == first]["value"].min()
    axes.plot(
        [first, last], [least, least * last / first], color=GREY, lw=0.6, alpha=0.6, zorder=0,
        gid="guide",
    )  # fmt: skip


def _room(rows: pd.DataFrame) -> tuple[float, float]:
    """From below the least to above the most, over two powers of ten or more: what hardly changes
    looks flat."""
    least, most = rows[["value", "low"]].min().min(), rows[["value", "high"]].max().max()
    wider = max(1.5, 10 / sqrt(most / least))
    return least / wider, most * wider


def _decades(axis: Axis) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    axis.set_major_locator(LogLocator(10, numticks=6))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(_said))


def _said(value: float, _: object = None) -> str:
    """A power of ten, short: 0.01, 100, 10k, 1M."""
    for size, letter_of in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if value >= size:
            unit = 1e3 if letter_of == "k" else size
            return f"{value / unit:g}{letter_of}"
    return f"{value:g}"
