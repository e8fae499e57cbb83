"""One look for all figures: widths, type, colours, and how systems are told apart.

A system has its own colour, marker and line, so that it is known in grey as well. Colours are
those of Okabe and Ito (Color Universal Design, 2008) without their yellow, and a wine red, so that
colour-blind readers tell them apart.
Nothing is set below 7 points.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

__all__ = ["GREY", "INK", "ONE_COLUMN", "TWO_COLUMNS", "Look", "house", "label", "looks"]

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
