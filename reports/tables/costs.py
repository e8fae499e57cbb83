"""What a system gives, what it costs, what it asked models for, and which turns it lost."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import median
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from steeltrap.harness.models import Usage
from steeltrap.harness.record import Record
from steeltrap.harness.stats import mean_interval
from steeltrap.reports.numbers import BUDGET_TOKENS, by_system, frame
from steeltrap.reports.table import Numbers, Table, crossed, listed
from steeltrap.reports.words import percent, span, spans

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["costs", "lost", "models"]


class _Measure(NamedTuple):
    """A column of the table of costs."""

    column: str
    """Of `numbers.frame`."""
    unit: str
    pooled: Callable[[pd.Series[Any]], float]
    """What the seeds come to."""
    note: str = ""


_COSTS: Final = {
    "recall": _Measure(
        "recall", "share", lambda seeds: seeds.mean(), "recall: set current values answered right."
    ),
    "evidence": _Measure(
        "evidence_recall", "share", lambda seeds: seeds.mean(),
        "evidence: right value among the items served.",
    ),
    f"in {BUDGET_TOKENS}": _Measure(
        "recall_within", "share", lambda seeds: seeds.mean(),
        f"in {BUDGET_TOKENS}: recall within the first {BUDGET_TOKENS} tokens that are served.",
    ),
    "ingest ms": _Measure(
        "ingest_ms_p50", "ms", lambda seeds: seeds.median(),
        "ingest: wall time of a turn without its models', median over seeds.",
    ),
    "p50 ms": _Measure(
        "retrieve_ms_p50", "ms", lambda seeds: seeds.median(),
        "p50, p95: wall time of a retrieval, median over seeds.",
    ),
    "p95 ms": _Measure("retrieve_ms_p95", "ms", lambda seeds: seeds.median()),
    "tokens": _Measure(
        "served_tokens_mean", "tokens", lambda seeds: seeds.mean(),
        "tokens: o200k_base, served to a query, mean.",
    ),
    "footprint": _Measure(
        "footprint_ratio", "ratio", lambda seeds: seeds.mean(),
        "footprint: active over true tokens.",
    ),
    "growth": _Measure(
        "growth_exponent", "ratio", lambda seeds: seeds.mean(),
        "growth: slope of log active tokens over log turns.",
    ),
}  # fmt: skip
_ON_PAPER: Final = ("evidence",)
"""Columns that a console has no room for."""


def costs(records: Sequence[Record], *, brief: bool = False) -> Table | None:
    """Systems by recall, time of a retrieval, tokens and footprint; None where nothing was measured.

    Args:
        records: finished cells.
        brief: without what a console has no room for.
    """
    frames = {system: frame(own) for system, own in by_system(records).items()}
    numbers = [
        {"system": system, "measure": name, **_cost(table[measure.column], measure)}
        for system, table in frames.items()
        for name, measure in _COSTS.items()
        if not (brief and name in _ON_PAPER)
    ]
    seen = {row["measure"] for row in numbers if row["value"] is not None}
    if not seen:
        return None
    return crossed(
        "costs", "What it gives and what it costs",
        [row for row in numbers if row["measure"] in seen], _cost_said,
        down={"system": "system"}, across="measure",
        notes=[one.note for name, one in _COSTS.items() if name in seen and one.note],
    )._replace(across=False)  # fmt: skip


def _cost(column: pd.Series[Any], measure: _Measure) -> dict[str, Any]:
    values = [float(value) for value in column.dropna()]
    pooled = float(measure.pooled(column.dropna().astype(float))) if values else None
    interval = mean_interval(values) if measure.unit == "share" else None
    return {"value": pooled, **span(interval), "unit": measure.unit, "seeds": len(values)}


def _cost_said(row: Numbers) -> str:
    value = row["value"]
    if value is None:
        return "-"
    match row["unit"]:
        case "share":
            return "\n".join([percent(value), *spans(row)])
        case "ms" if value < 0.005:
            return "<0.01"
        case "tokens":
            return f"{value:,.0f}"
        case _:
            return f"{value:.2f}"


def models(records: Sequence[Record]) -> Table | None:
    """Systems by what they asked models for; None where none asked any."""
    numbers = [
        {"system": system, **_asked(own)}
        for system, own in by_system(records).items()
        if any(record.outcome.usage for record in own)
    ]
    if not numbers:
        return None
    notes = [
        "calls, vectors: requests to chat and to embedding models, for a turn of the script.",
        "in, out: tokens of chat calls for a turn. cached: share of `in` that the provider had "
        "read before, or else (~) that a cache of exact prefixes would have.",
        "ms: the models' time at an ingest, median over seeds. usd: by the price table, for a run.",
    ]
    columns: list[tuple[str, Any]] = [
        ("system", "system"),
        ("calls", lambda row: f"{row['calls_per_turn']:.2f}"),
        ("failed", "failed_calls"),
        ("vectors", lambda row: f"{row['embeddings_per_turn']:.2f}"),
        ("in", lambda row: f"{row['prompt_tokens_per_turn']:,.0f}"),
        ("out", lambda row: f"{row['completion_tokens_per_turn']:,.0f}"),
        ("cached", _cached_said),
        ("ms", lambda row: _digits(row["ingest_ms_p50"])),
        ("usd", lambda row: _digits(row["cost_usd"])),
    ]
    return listed("models", "What models were asked", numbers, columns, about=("system",), notes=notes)  # fmt: skip


def _asked(records: Sequence[Record]) -> Numbers:
    spent = [sum(r.outcome.usage.values(), Usage()) for r in records]
    turns = sum(record.outcome.turns for record in records)
    used = sum(spent, Usage())
    ms = [r.timing.models["ingest"].p50_ms for r in records if "ingest" in r.timing.models]
    usd = [r.outcome.cost_usd for r in records if r.outcome.cost_usd is not None]
    read_before = used.cached_tokens or used.prefix_tokens
    return {
        "calls_per_turn": (used.calls - used.embeddings) / turns,
        "failed_calls": used.failed,
        "embeddings_per_turn": used.embeddings / turns,
        "prompt_tokens_per_turn": used.prompt_tokens / turns,
        "completion_tokens_per_turn": used.completion_tokens / turns,
        "cached_share": read_before / used.prompt_tokens if used.prompt_tokens else None,
        "cached_by": "provider" if used.cached_tokens else "exact prefixes",
        "ingest_ms_p50": median(ms) if ms else None,
        "cost_usd": sum(usd) / len(usd) if usd else None,
        "seeds": len(records),
    }


def _cached_said(row: Numbers) -> str:
    if row["cached_share"] is None:
        return "-"
    return ("" if row["cached_by"] == "provider" else "~") + percent(row["cached_share"])


def _digits(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def lost(records: Sequence[Record]) -> Table | None:
    """Every turn that did not go in, with what became of it; None where all did."""
    numbers = [
        {"system": system, "seed": record.spec.seed, "turn": turn, "outcome": why}
        for system, own in by_system(records).items()
        for record in own
        for turn, why in record.outcome.lost.items()
    ]
    if not numbers:
        return None
    columns = [("system", "system"), ("seed", "seed"), ("turn", "turn"), ("what became of it", "outcome")]  # fmt: skip
    notes = ["fail: certainly not taken in. info: nobody knows."]
    return listed("lost", "Turns that were lost", numbers, columns, about=("system", "seed", "turn"), notes=notes)  # fmt: skip
