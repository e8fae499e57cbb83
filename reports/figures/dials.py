"""Sensitivity to the model's failures: rates against one dial of the ideal model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from steeltrap.harness.record import Record
from steeltrap.harness.verdict import CONDITIONS, merge
from steeltrap.reports.dialled import DIALS, Curves
from steeltrap.reports.figures.estimates import estimate, mean, over_seeds
from steeltrap.reports.figures.figure import Figure
from steeltrap.reports.figures.parts import legend, letter, panels, percent_axis, points
from steeltrap.reports.figures.style import TWO_COLUMNS, Look, house

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib import figure as drawn

__all__ = ["model_failures"]


def model_failures(found: Curves, looks: Mapping[str, Look]) -> Figure | None:
    """The rates against the dial, a panel a measure; None where nothing was observed."""
    import pandas as pd

    rows = [
        {"measure": what, "system": system, found.dial: share, **value}
        for what, measure in _MEASURES.items()
        for system in found.systems
        for share in found.shares
        if (value := measure(found.at(system, share)))
    ]
    if not rows:
        return None
    data = pd.DataFrame(rows)
    caption = (
        f"Violation rates and recall against the {DIALS[found.dial]} by the model that a system "
        f"asks, pooled over seeds. {over_seeds(data)}"
    )
    draw = partial(_draw, looks, DIALS[found.dial])
    return Figure("model-failures", "Sensitivity to the model's failures", caption, data, draw)


@house()
def _draw(looks: Mapping[str, Look], x_label: str, data: pd.DataFrame) -> drawn.Figure:
    names = list(data["system"].unique())
    found = list(data.groupby("measure", sort=False))
    columns = min(3, len(found))
    lines = -(-len(found) // columns)
    figure, grid = panels(lines, columns, width_in=TWO_COLUMNS, height_in=1.65 * lines + 0.2)
    dial = data.columns[2]
    shares = sorted(data[dial].unique())
    for axes in grid.flat[len(found) :]:
        axes.remove()
    for axes, (measure, rows) in zip(grid.flat, found, strict=False):
        letter(axes, str(measure))
        for place, name in enumerate(names):
            own = rows[rows["system"] == name]
            aside = 0.012 * shares[-1] * (place - (len(names) - 1) / 2)
            points(axes, own[dial] + aside, own, looks[name])
        axes.set_ylim(0, max(0.05, 1.05 * rows[["value", "high"]].max().max()))
        percent_axis(axes.yaxis)
        percent_axis(axes.xaxis)
    figure.supxlabel(x_label, fontsize=8)
    legend(figure, {name: looks[name] for name in names})
    return figure


# ---------------------------------------------------------------- numbers


def _rate(condition: str) -> Callable[[Sequence[Record]], dict[str, Any] | None]:
    """Violations over opportunities, pooled over seeds; None where the condition is unknown."""

    def rate(records: Sequence[Record]) -> dict[str, Any] | None:
        found = (record.outcome.verdicts.get(condition) for record in records)
        verdicts = [verdict for verdict in found if verdict]
        if merge(verdict.validity for verdict in verdicts) == "unknown":
            return None
        return estimate((v.violations, v.opportunities) for v in verdicts)

    return rate


def _recall(records: Sequence[Record]) -> dict[str, Any] | None:
    return mean(record.outcome.recall for record in records)


_MEASURES: Final[dict[str, Callable[[Sequence[Record]], dict[str, Any] | None]]] = {
    **{condition: _rate(condition) for condition in CONDITIONS if condition != "C6"},
    "recall": _recall,
}
