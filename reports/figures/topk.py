"""Top-k recall against prompt recall: what neighbours bring, and what they cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from steeltrap.harness.record import Evidence, Record
from steeltrap.reports.figures.estimates import estimate, over_seeds
from steeltrap.reports.figures.figure import Figure
from steeltrap.reports.figures.parts import legend, letter, panels, percent_axis, points
from steeltrap.reports.figures.style import TWO_COLUMNS, Look, house, label

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib import figure as drawn

__all__ = ["prompt_recall"]

Systems = Mapping[str, Sequence[Record]]
_MOST: Final = 3
"""Panels side by side."""
_WINDOWS: Final = {
    0: Look("#000000", "o", "-"),
    1: Look("#0072B2", "s", "--"),
    2: Look("#D55E00", "^", "-."),
}


def prompt_recall(systems: Systems, looks: Mapping[str, Look]) -> Figure | None:  # noqa: ARG001
    """Recall against tokens, with and without neighbours, a panel a system; None without windows."""
    import pandas as pd

    rows = [
        {"system": system, "window": window, "k": k, "tokens": _tokens(found), **value}
        for system, own in systems.items()
        for (window, k), found in _points(own).items()
        if (value := estimate((row.n * row.recall, row.n) for row in found))
    ]
    if not any(row["window"] for row in rows):
        return None
    data = pd.DataFrame(rows)
    caption = (
        "Share of a question's evidence among the first k items (window 0), and with so many turns "
        "before and after each of them beside it (prompt recall), against the tokens (o200k_base) "
        f"that this puts before a reader; k = {', '.join(map(str, sorted(data['k'].unique())))}. "
        f"{over_seeds(data)}"
    )
    return Figure("prompt-recall", "Top-k recall against prompt recall", caption, data, _draw)


def _points(records: Sequence[Record]) -> dict[tuple[int, int], list[Evidence]]:
    found: dict[tuple[int, int], list[Evidence]] = {}
    for record in records:
        for row in record.outcome.evidence:
            whole = row.category == "all" and row.grain == "turn" and not row.budget_tokens
            if whole and not row.left_out and not row.convention:
                found.setdefault((row.window, row.k), []).append(row)
    return dict(sorted(found.items()))


def _tokens(rows: Sequence[Evidence]) -> float:
    return sum(row.n * row.tokens for row in rows) / sum(row.n for row in rows)


@house()
def _draw(data: pd.DataFrame) -> drawn.Figure:
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    names = list(data["system"].unique())
    columns = min(_MOST, len(names))
    lines = -(-len(names) // columns)
    figure, grid = panels(
        lines,
        columns,
        width_in=TWO_COLUMNS,
        height_in=1.9 * lines + 0.2,
        sharex=True,
        sharey=True,
    )
    for axes in grid.flat[len(names) :]:
        axes.remove()
    for axes, name in zip(grid.flat, names, strict=False):
        letter(axes, label(name))
        axes.set_xscale("log")
        for window, look in _WINDOWS.items():
            own = data[(data["system"] == name) & (data["window"] == window)]
            own = own[own["tokens"] > 0]  # where nothing is served there is no place for it
            points(axes, list(own["tokens"]), own, look)
        axes.xaxis.set_major_locator(LogLocator(subs=(1, 3)))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda tokens, _: f"{tokens:,.0f}"))
        axes.xaxis.set_minor_locator(NullLocator())
        axes.set_ylim(0, 1.02)
        percent_axis(axes.yaxis)
    figure.supxlabel("tokens before the reader", fontsize=8)
    figure.supylabel("recall of evidence", fontsize=8)
    legend(figure, {f"window {window}": look for window, look in _WINDOWS.items()})
    return figure
