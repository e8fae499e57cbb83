"""Leakage: what one tenant can infer of another, against what chance gives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from steeltrap.harness.record import Effect, Record
from steeltrap.harness.stats import Interval, rate_interval
from steeltrap.reports.figures.figure import Figure
from steeltrap.reports.figures.parts import Rows, letter, panels
from steeltrap.reports.figures.style import INK, TWO_COLUMNS, Look, house

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib import figure as drawn
    from matplotlib.axes import Axes

__all__ = ["leakage"]

_ABOUT: Final = {"asking": "what was asked", "telling": "what was told"}
_EXACT: Final = "exact over the trials of one seed (Clopper and Pearson)"
_OVER_SEEDS: Final = (
    "over seeds (BCa bootstrap), or the widest of the seeds' own, exact over their trials, where "
    "seeds agree"
)


def leakage(systems: Mapping[str, Sequence[Record]], looks: Mapping[str, Look]) -> Figure | None:
    """A panel for asking and one for telling, a row a system; None without such twins."""
    import pandas as pd

    rows = [
        {"about": about, "system": system, **pooled}
        for about in _ABOUT
        for system, own in systems.items()
        if (pooled := _pooled(_effects(own, about)))
    ]
    if not rows:
        return None
    data = pd.DataFrame(rows)
    exact = data["seeds"].max() < 2
    caption = (
        "Advantage of the best simple distinguisher that sees one tenant's answers and guesses "
        "what another did: right less wrong guesses, over all trials (0: nothing can be inferred). "
        f"Bars: 95% intervals, {_EXACT if exact else _OVER_SEEDS}. Strokes: the same between runs "
        "of one script, at most."
    )
    return Figure("leakage", "Leakage between tenants", caption, data, partial(_draw, looks))


def _effects(records: Sequence[Record], about: str) -> list[Effect]:
    return [
        effect
        for record in records
        for effect in record.outcome.effects
        if effect.about == about and effect.what == "distinguisher" and effect.n
    ]


def _pooled(effects: Sequence[Effect]) -> dict[str, Any] | None:
    """Over all twins and seeds, weighed by trials; the interval is the one of the tables."""
    if not effects:
        return None
    trials = sum(effect.n for effect in effects)
    parts = [(effect.value or 0.0) * effect.n for effect in effects]
    spread = rate_interval(parts, [effect.n for effect in effects])
    if spread is None or spread.low == spread.high:
        spread = _widest(effects)
    nulls = [e.null_value * e.n for e in effects if e.null_value is not None]
    return {
        "value": sum(parts) / trials,
        "low": spread.low if spread else None,
        "high": spread.high if spread else None,
        "null": sum(nulls) / trials if len(nulls) == len(effects) else None,
        "trials": trials,
        "seeds": len(effects),
    }


def _widest(effects: Sequence[Effect]) -> Interval | None:
    own = [(e.low, e.high) for e in effects if e.low is not None and e.high is not None]
    return Interval(min(low for low, _ in own), max(high for _, high in own)) if own else None


@house()
def _draw(looks: Mapping[str, Look], data: pd.DataFrame) -> drawn.Figure:
    table = Rows.of(data["system"].unique())
    found = list(data.groupby("about", sort=False))
    figure, grid = panels(
        1, len(found), width_in=TWO_COLUMNS * (0.3 + 0.35 * len(found)),
        height_in=0.75 + table.height_in, sharey=True,
    )  # fmt: skip
    for axes, (about, rows) in zip(grid[0], found, strict=True):
        letter(axes, _ABOUT[str(about)])
        _panel(axes, rows, table, looks)
    table.label(grid[0][0])
    figure.supxlabel("advantage of the distinguisher", fontsize=8)
    return figure


def _panel(axes: Axes, rows: pd.DataFrame, table: Rows, looks: Mapping[str, Look]) -> None:
    axes.axvline(0, color="#bbbbbb", lw=0.8, zorder=1)
    for _, row in rows.iterrows():
        y, look = table.middles[row["system"]], looks[row["system"]]
        axes.hlines(y, row["low"], row["high"], color=look.colour, lw=0.9)
        axes.vlines(row["null"], y - 0.06, y + 0.06, color=INK, lw=1.2)
        axes.plot(row["value"], y, marker=look.marker, color=look.colour, ls="", zorder=3)
    lowest = min(-0.25, rows[["value", "low", "null"]].min().min())
    axes.set_xlim(1.05 * lowest, 1.05)
    axes.set_xticks([-1, -0.5, 0, 0.5, 1] if lowest <= -0.5 else [0, 0.5, 1])
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=False, axis="y")
