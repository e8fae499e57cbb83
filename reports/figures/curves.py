"""What grows or fades: staleness by lag, propagation by hop, footprint and tokens by turn."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import pairwise
from math import log2
from typing import TYPE_CHECKING, Any, Final

from steeltrap.harness.record import Outcome, Record
from steeltrap.reports.figures.estimates import estimate, mean, over_seeds
from steeltrap.reports.figures.figure import Figure
from steeltrap.reports.figures.style import (
    GREY,
    ONE_COLUMN,
    Look,
    band,
    house,
    legend,
    panels,
    percent_axis,
    points,
    size_axis,
)

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib import figure as drawn

__all__ = ["footprint", "propagation", "staleness", "tokens_per_query"]

Systems = Mapping[str, Sequence[Record]]
_POINTS: Final = 50
"""Of a curve over turns, at most."""
_HEIGHT_IN: Final = 2.2


# ---------------------------------------------------------------- by lag and by hop


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
    """Pooled rates by the keys of a tally of `[part, whole]`; the columns are named after the three."""
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


# ---------------------------------------------------------------- over turns


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
    seeds = {r.spec.seed: r.outcome.footprint for own in systems.values() for r in own if r.outcome.footprint}  # fmt: skip
    for what, column in (("truth", 3), ("beta", 4)):
        curves = ({gauge[0]: gauge[column] for gauge in gauges} for gauges in seeds.values())
        rows += [{"what": what, "system": "", **p, "low": None, "high": None} for p in _over_turns(curves, mean)]  # fmt: skip
    data = pd.DataFrame(rows)
    caption = (
        "Tokens that a memory holds as active, by turns, mean over seeds, beside those of what is "
        f"true (truth) and the bound that the script sets (beta). "
        f"{over_seeds(data[data['what'] == 'active'], drawn='Bands')}"
    )
    return Figure("footprint", "Footprint against turns", caption, data, partial(_draw_footprint, looks))  # fmt: skip


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
    return Figure("tokens-per-query", "Tokens per query against turns", caption, data, partial(_draw_tokens, looks))  # fmt: skip


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
