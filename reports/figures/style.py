"""One look for all figures: widths, type, colours, and how systems are told apart.

A system has its own colour, marker and line, so that it is known in grey as well. Colours are
those of Okabe and Ito (Color Universal Design, 2008), which colour-blind readers tell apart.
Nothing is set below 7 points.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

__all__ = [
    "GREY",
    "INK",
    "ONE_COLUMN",
    "TWO_COLUMNS",
    "Look",
    "Rows",
    "band",
    "faint",
    "house",
    "label",
    "legend",
    "letter",
    "looks",
    "panels",
    "percent_axis",
    "points",
    "size_axis",
]

ONE_COLUMN: Final = 3.33
TWO_COLUMNS: Final = 7.0
"""Widths of a paper's columns, in inches."""

INK: Final = "#222222"
GREY: Final = "#6b6b6b"
_HOUSE: Final[dict[str, Any]] = {
    "axes.axisbelow": True,
    "axes.edgecolor": GREY,
    "axes.grid": True,
    "axes.labelcolor": INK,
    "axes.labelsize": 8,
    "axes.linewidth": 0.6,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlesize": 8,
    "axes.unicode_minus": True,
    "figure.constrained_layout.wspace": 0.04,
    "figure.dpi": 100,
    "font.family": ["DejaVu Sans"],
    "font.size": 8,
    "grid.color": "#e6e6e6",
    "grid.linewidth": 0.5,
    "legend.fontsize": 8,
    "legend.frameon": False,
    "lines.linewidth": 1.2,
    "lines.markersize": 4.5,
    "pdf.fonttype": 42,
    "savefig.dpi": 300,
    "text.color": INK,
    "text.parse_math": False,  # names come from other people: a `$` is a `$`
    "xtick.color": GREY,
    "xtick.labelcolor": INK,
    "xtick.labelsize": 7,
    "xtick.major.size": 2.5,
    "xtick.major.width": 0.6,
    "ytick.color": GREY,
    "ytick.labelcolor": INK,
    "ytick.labelsize": 7,
    "ytick.major.size": 2.5,
    "ytick.major.width": 0.6,
}


@contextmanager
def house() -> Iterator[None]:
    """The house style, whatever the settings of the user's own matplotlib; also a decorator."""
    import matplotlib as mpl

    with mpl.rc_context():
        mpl.rcdefaults()
        settings: dict[Any, Any] = _HOUSE
        mpl.rcParams.update(settings)
        yield


# ---------------------------------------------------------------- systems


class Look(NamedTuple):
    """How a system is drawn."""

    colour: str
    marker: str
    line: Any
    """A line style of matplotlib."""


_FIXED: Final = {
    "gem": Look("#0072B2", "o", "-"),
    "ideal": Look("#000000", "*", (0, (1, 1.2))),
}
_COLOURS: Final = ("#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#882255")
_MARKERS: Final = ("s", "^", "D", "v", "P", "<", "X", ">", "p", "d", "h")
_LINES: Final = ("--", "-.", (0, (5, 1)), (0, (3, 1, 1, 1, 1, 1)), ":")


def looks(systems: Iterable[str]) -> dict[str, Look]:
    """A look for each system, in the order given; no two of the first 300 are the same.

    `gem` and `ideal` always look the same, so that figures of several papers can be laid side
    by side.
    """
    names = list(dict.fromkeys(systems))
    others = [name for name in names if name not in _FIXED]
    found = {name: _FIXED[name] for name in names if name in _FIXED}
    for i, name in enumerate(others):
        found[name] = Look(
            _COLOURS[i % len(_COLOURS)], _MARKERS[i % len(_MARKERS)], _LINES[i % len(_LINES)]
        )
    return found


# ---------------------------------------------------------------- words


def label(text: str, width: int = 26) -> str:
    """A name as it can be drawn: broken into lines, and nothing in it that a font cannot show.

    A sign that the font does not have, or that cannot be seen, is written as its number.
    """
    lines = ["".join(map(_shown, line)) for line in text.split("\n")]
    return "\n".join(part for line in lines for part in textwrap.wrap(line, width) or [""])


def _shown(sign: str) -> str:
    return sign if sign.isprintable() and _in_font(sign) else f"[U+{ord(sign):04X}]"


def _in_font(sign: str) -> bool:
    from matplotlib.font_manager import FontProperties, findfont, get_font

    return sign.isascii() or bool(
        get_font(findfont(FontProperties(family=["DejaVu Sans"]))).get_char_index(ord(sign))
    )


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


# ---------------------------------------------------------------- parts of figures


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
