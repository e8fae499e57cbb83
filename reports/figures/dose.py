"""Retrieval-dose response: what answers how often a unit is read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import log2
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from steeltrap.harness.record import Dose, Record
from steeltrap.reports.figures.estimates import estimate, over_seeds
from steeltrap.reports.figures.figure import Figure
from steeltrap.reports.figures.parts import legend, letter, panels, percent_axis, points
from steeltrap.reports.figures.style import TWO_COLUMNS, Look, house

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib import figure as drawn
    from matplotlib.axes import Axes

__all__ = ["dose_response"]


class _Measure(NamedTuple):
    title: str
    share: bool
    total: Callable[[Dose], float | None]
    """Over the units of a dose; None where it was not seen."""


_MEASURES: Final = {
    "left": _Measure("left after pressure", True, lambda dose: dose.left),
    "recovered": _Measure("had back by recovery", True, lambda dose: dose.recovered),
    "place": _Measure("place in its group", False, lambda dose: dose.place * dose.n),
    "rise": _Measure("rise of salience", False,
                     lambda dose: None if dose.rise is None else dose.rise * dose.n),
}  # fmt: skip


def dose_response(
    systems: Mapping[str, Sequence[Record]], looks: Mapping[str, Look]
) -> Figure | None:
    """A panel a measure; None where the script gives no doses."""
    import pandas as pd

    rows = [
        {"measure": what, "system": system, **point}
        for what, measure in _MEASURES.items()
        for system, own in systems.items()
        for point in _points(own, measure)
    ]
    if not rows:
        return None
    data = pd.DataFrame(rows)
    caption = (
        "What became of units that are alike but for how often they were read: share still listed "
        "(or served) after pressure, share had back by recovery, mean place in their group after "
        "the reads (1: first), mean rise of salience; each as far as it can be seen. "
        f"{over_seeds(data)}"
    )
    return Figure("dose-response", "Retrieval-dose response", caption, data, partial(_draw, looks))


def _points(records: Sequence[Record], measure: _Measure) -> list[dict[str, Any]]:
    """A mean over units for each dose, pooled over seeds."""
    seen: dict[int, list[tuple[float, float]]] = {}
    for dose in (d for r in records if r.outcome.dose for d in r.outcome.dose.doses):
        if (total := measure.total(dose)) is not None:
            seen.setdefault(dose.reads, []).append((total, dose.n))
    found = ((reads, estimate(seen[reads])) for reads in sorted(seen))
    return [{"reads": reads, **value} for reads, value in found if value]


@house()
def _draw(looks: Mapping[str, Look], data: pd.DataFrame) -> drawn.Figure:
    names = list(data["system"].unique())
    found = list(data.groupby("measure", sort=False))
    columns = 2 if len(found) == 4 else len(found)
    lines = -(-len(found) // columns)
    figure, grid = panels(lines, columns, width_in=TWO_COLUMNS, height_in=0.3 + 1.5 * lines)
    for axes, (what, rows) in zip(grid.flat, found, strict=True):
        letter(axes, _MEASURES[str(what)].title)
        for place, name in enumerate(names):
            own = rows[rows["system"] == name]
            aside = 0.3 / len(names) * (place - (len(names) - 1) / 2)
            points(axes, [log2(reads + 1) + aside for reads in own["reads"]], own, looks[name])
        _axes(axes, rows, share=_MEASURES[str(what)].share)
    figure.supxlabel("times read", fontsize=8)
    legend(figure, {name: looks[name] for name in names})
    return figure


def _axes(axes: Axes, rows: pd.DataFrame, *, share: bool) -> None:
    doses = sorted(rows["reads"].unique())
    axes.set_xticks([log2(reads + 1) for reads in doses], [f"{reads}" for reads in doses])
    if share:
        axes.set_ylim(0, 1.05)
        percent_axis(axes.yaxis)
    else:
        axes.set_ylim(min(0.0, rows[["value", "low"]].min().min()), None)
