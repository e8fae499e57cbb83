"""What figures are put together from: panels, a legend, points, bands, rows and axes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from steeltrap.reports.figures.style import Look, label

if TYPE_CHECKING:
    import numpy as np
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

__all__ = [
    "Rows",
    "band",
    "faint",
    "legend",
    "letter",
    "panels",
    "percent_axis",
    "points",
    "size_axis",
]


def panels(
    rows: int, columns: int, *, width_in: float, height_in: float, **shared: Any
) -> tuple[Figure, np.ndarray[Any, Any]]:
    """A figure with a grid of panels."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width_in, height_in), layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False, **shared)


def legend(figure: Figure, shown: dict[str, Look], *, extra: Sequence[Any] = ()) -> None:
    """One legend above all panels, in as many columns as fit; the figure grows by its height."""
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], color=look.colour, marker=look.marker, ls=look.line, label=label(name))
        for name, look in shown.items()
    ]
    handles += extra
    width, height = figure.get_size_inches()
    for columns in range(len(handles), 0, -1):
        drawn = figure.legend(
            handles=handles, loc="outside upper center", ncols=columns, handlelength=3,
            columnspacing=1.1, borderaxespad=0.2,
        )  # fmt: skip
        box = drawn.get_window_extent()
        if box.width <= 0.98 * width * figure.dpi or columns == 1:
            break
        drawn.remove()
    figure.set_size_inches(width, height + box.height / figure.dpi)


def letter(axes: Axes, title: str) -> None:
    """The title of a panel, at its left."""
    axes.set_title(title, loc="left", fontweight="bold", fontsize=8)


def points(axes: Axes, x: Sequence[float], rows: Any, look: Look, *, joined: bool = True) -> None:
    """Values with thin intervals, where there are any: columns `value`, `low`, `high`."""
    if not len(rows):  # an empty line would count as one at the corner of the figure
        return
    axes.vlines(x, rows["low"], rows["high"], color=look.colour, lw=0.8)
    axes.plot(
        x, rows["value"], color=look.colour, marker=look.marker, ls=look.line if joined else "",
        clip_on=False, zorder=3,
    )  # fmt: skip


def band(axes: Axes, rows: Any, look: Look, place: int, of: int) -> None:
    """A curve over turns with its band; markers of several curves stand apart, so all are seen."""
    every = max(min(of, len(rows)), len(rows) // 6, 1)
    banded = rows.dropna(subset=["low", "high"])
    if len(banded):
        low, high = (banded[end].astype(float) for end in ("low", "high"))
        axes.fill_between(banded["turn"], low, high, color=look.colour, alpha=faint(of), lw=0)
    axes.plot(
        rows["turn"], rows["value"], color=look.colour, ls=look.line, marker=look.marker,
        markevery=(place * every // of, every), zorder=3,
    )  # fmt: skip


def faint(of: int) -> float:
    """How opaque one of several bands is, so that all on top of each other stay light."""
    return min(0.15, 0.5 / of)


def percent_axis(axis: Axis, most: int = 4) -> None:
    """Shares, written in percent."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    axis.set_major_locator(MaxNLocator(most, steps=[1, 2, 2.5, 5, 10], min_n_ticks=2))
    axis.set_major_formatter(FuncFormatter(lambda share, _: f"{100 * share:g}%"))


def size_axis(axis: Axis, values: Iterable[float], *, linear_to: float) -> None:
    """Sizes over several powers of ten, with nought: linear up to some size, logarithmic beyond."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    top = max([*values, linear_to])
    ticks, tick = [0.0], linear_to
    while tick <= top * 10:
        ticks.append(tick)
        tick *= 10
    axes = axis.axes
    scale = axes.set_xscale if axis is axes.xaxis else axes.set_yscale
    scale("symlog", linthresh=linear_to, linscale=0.5)
    axis.set_major_locator(FixedLocator(ticks))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda size, _: f"{size:,g}"))


class Rows(NamedTuple):
    """Systems below each other, each with as much room as its name takes."""

    names: list[str]
    """As they are drawn."""
    middles: dict[str, float]
    """By system, in inches from the top."""
    height_in: float

    @classmethod
    def of(cls, systems: Iterable[str]) -> Rows:
        """Rows in the order given."""
        names, middles, top = [], {}, 0.0
        for system in systems:
            names.append(label(system))
            height = 0.07 + 0.13 * (names[-1].count("\n") + 1)
            middles[system] = top + height / 2
            top += height
        return cls(names, middles, top)

    def label(self, axes: Axes) -> None:
        """Write the names at the left of a panel."""
        axes.set_yticks([*self.middles.values()], self.names)
        axes.set_ylim(self.height_in, 0)
        axes.tick_params(axis="y", length=0)
