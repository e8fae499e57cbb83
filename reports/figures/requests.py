"""Requests turn by turn: how they grow, what a cache would have of them, when to summarise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from steeltrap.harness.record import Record, Request
from steeltrap.reports.figures.estimates import estimate, mean, over_seeds
from steeltrap.reports.figures.figure import Figure
from steeltrap.reports.figures.parts import (
    band,
    legend,
    letter,
    panels,
    percent_axis,
    points,
)
from steeltrap.reports.figures.style import GREY, ONE_COLUMN, TWO_COLUMNS, Look, house, label
from steeltrap.reports.requests import (
    LAYOUTS,
    cached,
    estimated,
    priced,
    total_tokens,
    triggered,
    triggers,
)

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib import figure as drawn
    from matplotlib.axis import Axis

__all__ = ["prompt_cache", "summarisation", "tokens_per_request"]

Systems = Mapping[str, Sequence[Record]]
_POINTS: Final = 20
"""Of a curve, at most; each is the mean of the requests since the one before."""
_HEIGHT_IN: Final = 2.2
_FLAT: Final = "flat"
_LINES: Final = 2.7
"""Heights of a bar for each system: two layouts, and room."""


def tokens_per_request(systems: Systems, looks: Mapping[str, Look]) -> Figure | None:
    """Input tokens of a request over turns; None where the script does not ask with its turns."""
    import pandas as pd

    rows = [
        {"system": system, "turn": turn, **value, "estimated_tokens": _pooled(own, turn, every, estimated)}
        for system, own in systems.items()
        for turn, every in _places(own)
        if (value := _estimate(own, turn, every))
    ]  # fmt: skip
    if not rows:
        return None
    data = pd.DataFrame(rows)
    caption = (
        "Input tokens (o200k_base) of the request that answers a turn (instructions, what the memory "
        "serves for the turn, the turn itself), by turns: mean of the requests since the point "
        f"before, pooled over seeds. {over_seeds(data, drawn='Bands')}"
    )
    draw = partial(_draw_growth, looks)
    return Figure("tokens-per-request", "Tokens of a request against turns", caption, data, draw)


def _places(records: Sequence[Record]) -> list[tuple[int, int]]:
    """The turns of the points, each with how many turns it stands for; the last turn is one."""
    last = max((r.turn for one in records for r in one.outcome.requests), default=0)
    every = -(-last // _POINTS) or 1
    return [(turn, every) for turn in range(last, 0, -every)][::-1]


def _near(record: Record, turn: int, every: int) -> list[Request]:
    return [r for r in record.outcome.requests if turn - every < r.turn <= turn]


def _estimate(records: Sequence[Record], turn: int, every: int) -> dict[str, Any] | None:
    near = [_near(record, turn, every) for record in records]
    return estimate((sum(r.tokens for r in own), len(own)) for own in near)


def _pooled(records: Sequence[Record], turn: int, every: int, of: Any) -> float:
    near = [request for record in records for request in _near(record, turn, every)]
    return float(sum(map(of, near)) / len(near))


@house()
def _draw_growth(looks: Mapping[str, Look], data: pd.DataFrame) -> drawn.Figure:
    names = list(data["system"].unique())
    figure, grid = panels(1, 1, width_in=ONE_COLUMN, height_in=_HEIGHT_IN)
    axes = grid[0][0]
    for place, name in enumerate(names):
        band(axes, data[data["system"] == name], looks[name], place, len(names))
    axes.set_xlim(0, None)
    axes.set_ylim(0, 1.1 * data[["value", "high"]].max().max())
    _thousands(axes.yaxis)
    axes.set_xlabel("turn")
    axes.set_ylabel("input tokens of a request")
    legend(figure, {name: looks[name] for name in names})
    return figure


def _thousands(axis: Axis) -> None:
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    axis.set_major_locator(MaxNLocator(5))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))


# ---------------------------------------------------------------- a cache of prefixes


def prompt_cache(systems: Systems, looks: Mapping[str, Look]) -> Figure | None:
    """What a cache of prefixes would have of a request, by system and layout; None without requests."""
    import pandas as pd

    asked = [record for own in systems.values() for record in own if record.outcome.requests]
    if not asked:
        return None
    model, by = priced(asked)
    rows = []
    for system, own in systems.items():
        for layout in LAYOUTS:
            if found := cached(own, layout):
                usd = 1000 * found.usd(by) / found.requests
                rows.append({
                    "system": system, "layout": layout, "tokens": found.tokens / found.requests,
                    "cached_tokens": found.cached_tokens / found.requests, "usd_per_1000": usd,
                })  # fmt: skip
    caption = (
        "Input of a request, mean, with instructions first (I) or the memory first (M). a: tokens; "
        "the dark part is the exact beginning of an earlier request, from 1,024 tokens on. b: cost "
        f"of 1,000 requests by the prices of {model}, with its discount for cached input."
    )
    draw = partial(_draw_cache, looks)
    return Figure(
        "prompt-cache", "What a cache of prefixes would have", caption, pd.DataFrame(rows), draw
    )


@house()
def _draw_cache(looks: Mapping[str, Look], data: pd.DataFrame) -> drawn.Figure:
    names = list(data["system"].unique())
    height = 0.17 * _LINES * len(names) + 0.5
    figure, grid = panels(1, 2, width_in=TWO_COLUMNS, height_in=height, sharey=True)
    tokens, cost = grid[0]
    for place, row in enumerate(data.to_dict("records")):
        at, colour = place // 2 * _LINES + place % 2, looks[row["system"]].colour
        tokens.barh(at, row["tokens"], 0.8, color=colour, alpha=0.35, lw=0)
        tokens.barh(at, row["cached_tokens"], 0.8, color=colour, lw=0)
        cost.barh(at, row["usd_per_1000"], 0.8, color=colour, alpha=0.7, lw=0)
        tokens.annotate(
            row["layout"][0].upper(), (row["tokens"], at), (3, 0), textcoords="offset points",
            va="center", fontsize=7, color=GREY,
        )  # fmt: skip
    tokens.set_yticks([_LINES * i + 0.5 for i in range(len(names))], [label(n) for n in names])
    tokens.set_ylim(_LINES * len(names) - 1.1, -0.7)
    tokens.tick_params(axis="y", length=0)
    _thousands(tokens.xaxis)
    tokens.set_xlabel("input tokens of a request")
    cost.set_xlabel("US dollars for 1,000 requests")
    letter(tokens, "a")
    letter(cost, "b")
    return figure


# ---------------------------------------------------------------- when to summarise


def summarisation(systems: Systems, looks: Mapping[str, Look]) -> Figure | None:
    """Total input tokens, recall and C1 against the trigger; None without a sweep."""
    import pandas as pd

    records = [record for own in systems.values() for record in own]
    swept = triggers(records)
    flat = [r for r in records if r.spec.system == _FLAT and r.outcome.requests]
    rows = [
        {"measure": what, "system": system, "trigger_tokens": trigger, **value}
        for what, measure in _SWEPT.items()
        for system, trigger, own in (
            *(("summary", trigger, own) for trigger, own in swept.items()),
            *([(_FLAT, None, flat)] if flat else []),
        )
        if swept and (value := measure(own))
    ]
    if not rows:
        return None
    data = pd.DataFrame(rows)
    caption = (
        "A transcript that is summarised when its turns outgrow a trigger, by that trigger: input "
        "tokens of all requests and summarisations of a run, recall, and violations of C1. Dashed: "
        f"the whole transcript without summaries. {over_seeds(data)}"
    )
    draw = partial(_draw_sweep, next(looks[name] for name in systems if triggered(systems[name])))
    return Figure("summarisation", "When to summarise", caption, data, draw)


def _c1(records: Sequence[Record]) -> dict[str, Any] | None:
    verdicts = (record.outcome.verdicts.get("C1") for record in records)
    return estimate((v.violations, v.opportunities) for v in verdicts if v)


_SWEPT: Final = {
    "total input tokens": lambda records: mean(map(total_tokens, records)),
    "recall": lambda records: mean(record.outcome.recall for record in records),
    "C1": _c1,
}


@house()
def _draw_sweep(look: Look, data: pd.DataFrame) -> drawn.Figure:
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    found = list(data.groupby("measure", sort=False))
    figure, grid = panels(1, len(found), width_in=TWO_COLUMNS, height_in=_HEIGHT_IN)
    for axes, (measure, rows) in zip(grid[0], found, strict=True):
        letter(axes, str(measure))
        own = rows[rows["system"] != _FLAT]
        axes.set_xscale("log")
        points(axes, list(own["trigger_tokens"]), own, look)
        for value in rows[rows["system"] == _FLAT]["value"]:
            axes.axhline(value, color=GREY, ls=(0, (4, 2)), lw=1)
        axes.xaxis.set_major_locator(FixedLocator(sorted(own["trigger_tokens"])))
        axes.xaxis.set_minor_locator(NullLocator())
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
        axes.tick_params(axis="x", rotation=45)
        axes.set_ylim(0, 1.1 * rows[["value", "high"]].max().max())
        if measure == "total input tokens":
            axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value / 1e6:g}M"))
        else:
            percent_axis(axes.yaxis)
    figure.supxlabel("trigger, tokens of turns kept word for word", fontsize=8)
    return figure
