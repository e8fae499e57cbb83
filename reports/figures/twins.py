"""Leakage: what one tenant can infer of another, against what chance gives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from steeltrap.harness.record import Effect, Record
from steeltrap.harness.stats import Interval, rate_interval
from steeltrap.reports.figures.figure import Figure
from steeltrap.reports.figures.style import (
    GREY,
    TWO_COLUMNS,
    Look,
    house,
    label,
    letter,
    line_count,
    panels,
)

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib import figure as drawn
    from matplotlib.axes import Axes

__all__ = ["leakage"]

_ABOUT: Final = {"asking": "what was asked", "telling": "what was told"}


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
    seeds = f"{data['seeds'].min()} to {data['seeds'].max()}"
    one = data["seeds"].max() == 1
    caption = (
        "Advantage of the best simple distinguisher that sees one tenant's answers and guesses "
        "what another did: right less wrong guesses, over all trials (0: nothing can be inferred). "
        "Bars: 95% intervals, "
        + ("exact over the trials of one seed" if one else f"over {seeds} seeds, or exact over trials where seeds agree")
        + ". Vertical strokes: the same between runs of one script, at most."
    )  # fmt: skip
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
    systems = {name: label(name) for name in data["system"].unique()}
    found = list(data.groupby("about", sort=False))
    height = 0.75 + 0.13 * line_count(systems.values()) + 0.07 * len(systems)
    figure, grid = panels(
        1, len(found), width_in=TWO_COLUMNS * (0.3 + 0.35 * len(found)),
        height_in=max(1.3, height), sharey=True,
    )  # fmt: skip
    for axes, (about, rows) in zip(grid[0], found, strict=True):
        letter(axes, _ABOUT[str(about)])
        _panel(axes, rows, list(systems), looks)
    grid[0][0].set_yticks(range(len(systems)), systems.values())
    grid[0][0].set_ylim(len(systems) - 0.5, -0.5)
    figure.supxlabel("advantage of the distinguisher", fontsize=8)
    return figure


def _panel(axes: Axes, rows: pd.DataFrame, systems: list[str], looks: Mapping[str, Look]) -> None:
    axes.axvline(0, color=GREY, lw=0.8, zorder=1)
    for _, row in rows.iterrows():
        y, look = systems.index(row["system"]), looks[row["system"]]
        axes.hlines(y, row["low"], row["high"], color=look.colour, lw=0.9)
        axes.vlines(row["null"], y - 0.3, y + 0.3, color=GREY, lw=1.5)
        axes.plot(row["value"], y, marker=look.marker, color=look.colour, ls="", zorder=3)
    lowest = min(-0.25, rows[["value", "low", "null"]].min().min())
    axes.set_xlim(1.05 * lowest, 1.05)
    axes.set_xticks([-1, -0.5, 0, 0.5, 1] if lowest <= -0.5 else [0, 0.5, 1])
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=False, axis="y")
