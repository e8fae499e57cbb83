"""Matrices of words: each cell says yes, some or no by a sign, a tint and its words."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from steeltrap.reports.figures.style import GREY, INK, TWO_COLUMNS, house, label

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib import figure as drawn
    from matplotlib.axes import Axes

__all__ = ["SIGNS", "matrix"]


class _Sign(NamedTuple):
    text: str
    tint: str
    word: str


SIGNS: Final = {
    "yes": _Sign("✓", "#cfe3f1", "held"),
    "some": _Sign("◐", "#fbe6b8", "in part"),
    "no": _Sign("✗", "#f3c1a5", "not"),
    "unknown": _Sign("?", "#f2f2f2", "unknown"),
    "": _Sign("", "#ffffff", ""),
}
"""By mark: what is drawn for it. Tints also differ in grey; signs differ without any."""

_CHARACTER_IN: Final = 0.066
_LINE_IN: Final = 0.135
_MOST_LABEL: Final = 18
"""Characters of the name of a row on one line."""


@house()
def matrix(frame: pd.DataFrame) -> drawn.Figure:
    """Draw cells of words with a three-valued mark.

    Args:
        frame: columns `row` and `column` (names, in order of first sight), `mark` (a key of
            `SIGNS`) and `words`; where there is a column `beside`, its words stand below in grey,
            and where there is a column `framed`, cells with a true one have a thick frame. A
            place without a row of the frame stays empty.
    """
    from matplotlib.figure import Figure

    columns = list(dict.fromkeys(frame["column"]))
    rows = list(dict.fromkeys(frame["row"]))
    names = {row: label(str(row), _MOST_LABEL) for row in rows}
    longest = max(len(line) for name in names.values() for line in name.split("\n"))
    side_in = _CHARACTER_IN * longest + 0.15
    cell_in = (TWO_COLUMNS - side_in) / len(columns)
    width = max(6, int((cell_in - 0.12) / _CHARACTER_IN))
    heads = [label(str(column), width) for column in columns]
    cells = [_Cell.of(cell, width) for cell in frame.to_dict("records")]
    heights = [_height_in(names[r], [c for c in cells if c.row == r]) for r in rows]
    head_in = 0.06 + _LINE_IN * max(head.count("\n") + 1 for head in heads)
    height = sum(heights) + head_in + 0.05

    figure = Figure(figsize=(TWO_COLUMNS, height))
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_xlim(0, TWO_COLUMNS)
    axes.set_ylim(height, 0)
    axes.set_axis_off()
    for place, head in enumerate(heads):
        axes.text(
            side_in + cell_in * (place + 0.5), head_in - 0.04, head, fontsize=7,
            fontweight="bold", ha="center", va="bottom",
        )  # fmt: skip
    top = head_in
    for row, row_in in zip(rows, heights, strict=True):
        axes.text(side_in - 0.08, top + row_in / 2, names[row], ha="right", va="center")
        for cell in (cell for cell in cells if cell.row == row):
            left = side_in + cell_in * columns.index(cell.column)
            cell.draw(axes, left, top, cell_in, row_in)
        top += row_in
    return figure


class _Cell(NamedTuple):
    row: str
    column: str
    mark: str
    words: str
    beside: str
    framed: bool

    @classmethod
    def of(cls, cell: Mapping[Any, Any], width: int) -> _Cell:
        mark = str(cell["mark"])
        words = f"{SIGNS[mark].text} {label(str(cell['words']), 10_000)}".strip()
        beside = label(str(cell.get("beside") or ""), 10_000)
        return cls(
            str(cell["row"]), str(cell["column"]), mark, _fill(words, width), _fill(beside, width),
            bool(cell.get("framed")),
        )  # fmt: skip

    @property
    def lines(self) -> int:
        return sum(text.count("\n") + 1 for text in (self.words, self.beside) if text)

    def draw(self, axes: Axes, left: float, top: float, width: float, height: float) -> None:
        from matplotlib.patches import Rectangle

        gap = 0.02
        edge, thick = (INK, 1.3) if self.framed else ("#cccccc", 0.5)
        axes.add_patch(
            Rectangle(
                (left + gap, top + gap), width - 2 * gap, height - 2 * gap,
                facecolor=SIGNS[self.mark].tint, edgecolor=edge, lw=thick,
            )
        )  # fmt: skip
        middle, upper = left + width / 2, top + (height - _LINE_IN * self.lines) / 2
        split = upper + _LINE_IN * (self.words.count("\n") + 1 if self.words else 0)
        for text, at, colour in ((self.words, upper, INK), (self.beside, split, GREY)):
            axes.text(
                middle, at, text, ha="center", va="top", fontsize=7, color=colour, linespacing=1.15
            )


def _fill(text: str, width: int) -> str:
    lines = [part for line in text.split("\n") for part in textwrap.wrap(line, width) or [""]]
    return "\n".join(lines)


def _height_in(name: str, cells: list[_Cell]) -> float:
    lines = max([name.count("\n") + 1, *(cell.lines for cell in cells)])
    return 0.12 + _LINE_IN * lines
