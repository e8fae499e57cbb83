"""Violation rates by condition and system."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from steeltrap.harness.record import Record
from steeltrap.harness.verdict import CONDITIONS, merge
from steeltrap.reports.figures.estimates import estimate, over_seeds
from steeltrap.reports.figures.figure import Figure
from steeltrap.reports.figures.parts import Rows, letter, panels, percent_axis
from steeltrap.reports.figures.style import GREY, TWO_COLUMNS, Look, house

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib import figure as drawn
    from matplotlib.axes import Axes

__all__ = ["violation_rates"]

_NARROWEST: Final = 0.05
"""A panel shows rates up to this share at least, or a tenth of a percent would look large."""


def violation_rates(
    systems: Mapping[str, Sequence[Record]], looks: Mapping[str, Look]
) -> Figure | None:
    """A panel a condition, a row a system; None where no condition was put to the test."""
    import pandas as pd

    tested = [c for c in CONDITIONS if any(_counts(own, c) for own in systems.values())]
    if not tested:
        return None
    rows = [_row(system, own, c) for c in tested for system, own in systems.items()]
    data = pd.DataFrame(rows)
    caption = (
        "Violations over opportunities by condition, pooled over seeds. "
        f"{over_seeds(data[data['opportunities'] > 0])} Open marks: held, no violation seen; "
        "?: not enough was seen to say that it held; n/o: not observable or not tested."
    )
    return Figure("violation-rates", "Violation rates", caption, data, partial(_draw, looks))


def _counts(records: Sequence[Record], condition: str) -> list[tuple[int, int]]:
    verdicts = (record.outcome.verdicts.get(condition) for record in records)
    return [(v.violations, v.opportunities) for v in verdicts if v and v.opportunities]


def _row(system: str, records: Sequence[Record], condition: str) -> dict[str, Any]:
    counts = _counts(records, condition)
    verdicts = (record.outcome.verdicts.get(condition) for record in records)
    return {
        "condition": condition,
        "system": system,
        "validity": merge(v.validity for v in verdicts if v),
        "violations": sum(part for part, _ in counts),
        "opportunities": sum(whole for _, whole in counts),
        **(estimate(counts) or {"value": None, "low": None, "high": None, "seeds": 0}),
    }


@house()
def _draw(looks: Mapping[str, Look], data: pd.DataFrame) -> drawn.Figure:
    table = Rows.of(data["system"].unique())
    found = list(data.groupby("condition", sort=False))
    height = 0.65 + table.height_in
    figure, grid = panels(1, len(found), width_in=TWO_COLUMNS, height_in=height, sharey=True)
    for axes, (condition, rows) in zip(grid[0], found, strict=True):
        letter(axes, str(condition))
        _panel(axes, rows, table, looks)
    table.label(grid[0][0])
    figure.supxlabel("violations over opportunities", fontsize=8)
    return figure


def _panel(axes: Axes, rows: pd.DataFrame, table: Rows, looks: Mapping[str, Look]) -> None:
    top = max(_NARROWEST, rows[["value", "high"]].max().max())
    axes.set_xlim(0, 1.12 * top)
    percent_axis(axes.xaxis, 3)
    for _, row in rows.iterrows():
        y, look = table.middles[row["system"]], looks[row["system"]]
        if not row["opportunities"]:
            axes.text(0.03 * top, y, "n/o", color=GREY, fontsize=7, va="center")
            continue
        axes.hlines(y, row["low"], row["high"], color=look.colour, lw=0.9)
        face = look.colour if row["validity"] == "violated" else "white"
        axes.plot(
            row["value"], y, marker=look.marker, color=look.colour, mfc=face, clip_on=False,
            zorder=3, ls="",
        )  # fmt: skip
        if row["validity"] == "unknown":
            axes.text(0.08 * top, y, "?", color=GREY, fontsize=7, va="center")
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=False, axis="y")
