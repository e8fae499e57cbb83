"""What grows: footprint and tokens per query over turns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

from steeltrap.harness.record import Outcome, Record
from steeltrap.reports.figures.estimates import estimate, mean, over_seeds
from steeltrap.reports.figures.figure import Figure
from steeltrap.reports.figures.parts import band, legend, panels, size_axis
from steeltrap.reports.figures.style import GREY, ONE_COLUMN, Look, house

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib import figure as drawn

__all__ = ["footprint", "tokens_per_query"]

Systems = Mapping[str, Sequence[Record]]
_POINTS: Final = 50
"""Of a curve, at most."""
_HEIGHT_IN: Final = 2.2


def footprint(systems: Systems, looks: Mapping[str, Look]) -> Figure | None:
    """Active tokens over turns, with what is true and the bound; None where nothing is listed."""
    import pandas as pd

    rows = [
        {"what": "active", "system": system, **point}
        for system, own in systems.items()
        for point in _over_turns(({g[0]: g[2] for g in r.outcome.footprint} for r in own), mean)
    ]
    if not rows:
        return None
    records = [record for own in systems.values() for record in own if record.outcome.footprint]
    seeds = {record.spec.seed: record.outcome.footprint for record in records}
    for what, column in (("truth", 3), ("beta", 4)):
        curves = ({gauge[0]: gauge[column] for gauge in gauges} for gauges in seeds.values())
        line = {"what": what, "system": "", "low": None, "high": None}
        rows += [point | line for point in _over_turns(curves, mean)]
    data = pd.DataFrame(rows)
    caption = (
        "Tokens that a memory holds as active, by turns, mean over seeds, beside those of what is "
        f"true (truth) and the bound that the script sets (beta). "
        f"{over_seeds(data[data['what'] == 'active'], drawn='Bands')}"
    )
    draw = partial(_draw_footprint, looks)
    return Figure("footprint", "Footprint against turns", caption, data, draw)


def tokens_per_query(systems: Systems, looks: Mapping[str, Look]) -> Figure | None:
    """Tokens served to a query over turns; None where nothing was gauged."""
    import pandas as pd

    rows = [
        {"system": system, **point}
        for system, own in systems.items()
        for point in _over_turns((_served(record.outcome) for record in own), estimate)
    ]
    if not rows:
        return None
    data = pd.DataFrame(rows)
    caption = (
        "Tokens (o200k_base) put before the reader for a query, by turns: those of the queries "
        f"since the gauge before, pooled over seeds. {over_seeds(data, drawn='Bands')}"
    )
    draw = partial(_draw_tokens, looks)
    return Figure("tokens-per-query", "Tokens per query against turns", caption, data, draw)


def _served(outcome: Outcome) -> dict[int, tuple[int, int]]:
    """Tokens and queries since the gauge before, by turn."""
    cumulative = [(0, 0, 0), *outcome.served_curve]
    return {
        turn: (tokens - tokens_before, queries - queries_before)
        for (_, queries_before, tokens_before), (turn, queries, tokens) in pairwise(cumulative)
        if queries > queries_before
    }


def _over_turns(
    curves: Iterable[dict[int, Any]], pooled: Callable[[Iterable[Any]], dict[str, Any] | None]
) -> list[dict[str, Any]]:
    """Points of several seeds' curves taken together: evenly thinned, the last one kept."""
    found = list(curves)
    turns = sorted({turn for curve in found for turn in curve})
    every = -(-len(turns) // _POINTS) or 1
    kept = turns[::-1][::every][::-1]
    points = ((turn, pooled(c[turn] for c in found if turn in c)) for turn in kept)
    return [{"turn": turn, **point} for turn, point in points if point]


@house()
def _draw_footprint(looks: Mapping[str, Look], data: pd.DataFrame) -> drawn.Figure:
    from matplotlib.lines import Line2D

    truth, beta = (data[data["what"] == what] for what in ("truth", "beta"))
    figure = _draw_curves(looks, data[data["what"] == "active"], "active tokens", 100, data)
    axes = figure.axes[0]
    axes.plot(truth["turn"], truth["value"], color=GREY, lw=3, alpha=0.45, zorder=1)
    axes.plot(beta["turn"], beta["value"], color=GREY, lw=1, ls=(0, (2, 2)), zorder=1)
    extra = [
        Line2D([], [], color=GREY, lw=3, alpha=0.45, label="truth"),
        Line2D([], [], color=GREY, lw=1, ls=(0, (2, 2)), label="beta"),
    ]
    legend(figure, {name: looks[name] for name in data["system"].unique() if name}, extra=extra)
    return figure


@house()
def _draw_tokens(looks: Mapping[str, Look], data: pd.DataFrame) -> drawn.Figure:
    figure = _draw_curves(looks, data, "tokens per query", 10, data)
    legend(figure, {name: looks[name] for name in data["system"].unique()})
    return figure


def _draw_curves(
    looks: Mapping[str, Look],
    curves: pd.DataFrame,
    y_label: str,
    linear_to: float,
    scaled: pd.DataFrame,
) -> drawn.Figure:
    names = list(curves["system"].unique())
    figure, grid = panels(1, 1, width_in=ONE_COLUMN, height_in=_HEIGHT_IN)
    axes = grid[0][0]
    for place, name in enumerate(names):
        band(axes, curves[curves["system"] == name], looks[name], place, len(names))
    size_axis(axes.yaxis, scaled["value"], linear_to=linear_to)
    axes.set_ylim(0, max(linear_to, 1.15 * scaled[["value", "high"]].max().max()))
    axes.set_xlim(0, None)
    axes.set_xlabel("turns")
    axes.set_ylabel(y_label)
    return figure
