"""How far back and how far along: staleness by lag, propagation by hop."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import pairwise
from math import log2
from typing import TYPE_CHECKING, Final

from steeltrap.harness.record import Outcome, Record
from steeltrap.reports.figures.estimates import estimate, over_seeds
from steeltrap.reports.figures.figure import Figure
from steeltrap.reports.figures.parts import legend, panels, percent_axis, points
from steeltrap.reports.figures.style import ONE_COLUMN, Look, house

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib import figure as drawn

__all__ = ["propagation", "staleness"]

Systems = Mapping[str, Sequence[Record]]
_HEIGHT_IN: Final = 2.2


def staleness(systems: Systems, looks: Mapping[str, Look]) -> Figure | None:
    """Answers that gave a superseded value, by turns since the update; None without such probes."""
    data = _counted(systems, ("lag", "stale", "asked"), lambda outcome: outcome.staleness_by_lag)
    if data is None:
        return None
    caption = (
        "Share of questions about an updated value that were answered with a superseded one, by "
        f"the turns between update and question. {over_seeds(data)}"
    )
    draw = partial(_draw_counted, looks, "turns since the update", "stale answers", _widely)
    return Figure("staleness-by-lag", "Staleness against lag", caption, data, draw)


def propagation(systems: Systems, looks: Mapping[str, Look]) -> Figure | None:
    """Updates that did not arrive, by hops from the source; None without a dependent."""
    data = _counted(systems, ("hop", "missed", "due"), lambda outcome: outcome.missed_by_hop)
    if data is None:
        return None
    caption = (
        "Share of dependent values that an update of their source did not reach, by the edges "
        f"between the two. {over_seeds(data)}"
    )
    draw = partial(_draw_counted, looks, "hops from the source", "missed propagations", float)
    return Figure("propagation-by-hop", "Propagation against hops", caption, data, draw)


def _counted(
    systems: Systems,
    columns: tuple[str, str, str],
    counts: Callable[[Outcome], dict[str, list[int]]],
) -> pd.DataFrame | None:
    """Pooled rates by the keys of a tally of `[part, whole]`.

    Args:
        systems: the records of each.
        columns: names of key, part and whole.
        counts: the tally.
    """
    import pandas as pd

    rows = []
    for system, own in systems.items():
        tallies = [counts(record.outcome) for record in own]
        for key in sorted({int(key) for tally in tallies for key in tally}):
            found = [tally[str(key)] for tally in tallies if str(key) in tally]
            if value := estimate((part, whole) for part, whole in found):
                part, whole = (sum(pair[i] for pair in found) for i in (0, 1))
                rows.append(
                    {
                        "system": system,
                        **dict(zip(columns, (key, part, whole), strict=True)),
                        **value,
                    }
                )
    return pd.DataFrame(rows) if rows else None


def _widely(lag: int) -> float:
    """Lags lie by the logarithm of one more."""
    return log2(lag + 1)


@house()
def _draw_counted(
    looks: Mapping[str, Look],
    x_label: str,
    y_label: str,
    place_of: Callable[[int], float],
    data: pd.DataFrame,
) -> drawn.Figure:
    """Systems stand side by side at each lag or hop."""
    over = data.columns[1]
    names = list(data["system"].unique())
    keys = sorted(data[over].unique())
    figure, grid = panels(1, 1, width_in=ONE_COLUMN, height_in=_HEIGHT_IN)
    axes = grid[0][0]
    gap = min((place_of(b) - place_of(a) for a, b in pairwise(keys)), default=1.0)
    step = 0.5 * gap / max(1, len(names))
    for place, name in enumerate(names):
        rows = data[data["system"] == name]
        aside = step * (place - (len(names) - 1) / 2)
        points(axes, [place_of(key) + aside for key in rows[over]], rows, looks[name])
    axes.set_xticks([place_of(key) for key in keys], [f"{key}" for key in keys])
    axes.set_xlim(place_of(keys[0]) - 0.5 * gap, place_of(keys[-1]) + 0.5 * gap)
    axes.set_ylim(0, max(0.05, 1.05 * data[["value", "high"]].max().max()))
    percent_axis(axes.yaxis)
    axes.set_xlabel(x_label)
    axes.set_ylabel(y_label)
    legend(figure, {name: looks[name] for name in names})
    return figure
