"""Requests turn by turn: how they grow, what a cache would have of them, when to summarise."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from steeltrap.harness.models import Usage
from steeltrap.harness.record import Record
from steeltrap.reports.numbers import by_system
from steeltrap.reports.requests import (
    LAYOUTS,
    cached,
    estimated,
    priced,
    total_tokens,
    triggers,
)
from steeltrap.reports.table import Numbers, Table, crossed, listed
from steeltrap.reports.words import percent

__all__ = ["prompt_cache", "requests", "summarisation"]

_AT: Final = (20, 40, 80, 160, 320, 500, 1000, 2000)
"""Turns that are shown, with the last one."""
_BACK: Final = 10
"""So many requests up to a turn are taken together: a single one may be of another tenant."""


def requests(records: Sequence[Record]) -> Table | None:
    """Input tokens of a request by turns, in both ways of counting; None without requests."""
    asked = [record for record in records if record.outcome.requests]
    if not asked:
        return None
    last = max(record.outcome.requests[-1].turn for record in asked)
    turns = [*(turn for turn in _AT if turn < last), last]
    numbers = [
        {"system": system, "turn": turn, **_at(own, turn)}
        for system, own in by_system(asked).items()
        for turn in turns
    ]
    return crossed(
        "requests", "Input tokens of a request", numbers, _request_said,
        down={"system": "system"}, across="turn", head=lambda turn: f"turn {turn}",
        notes=[
            f"Instructions, what the memory serves for the turn, and the turn: mean of the {_BACK} "
            "requests up to that turn, over seeds. First o200k_base, then characters / 4; below, the "
            "part that the memory served (o200k_base)."
        ],
    )  # fmt: skip


def _at(records: Sequence[Record], turn: int) -> Numbers:
    near = [r for one in records for r in one.outcome.requests if turn - _BACK < r.turn <= turn]
    if not near:
        return {"tokens": None, "estimated_tokens": None, "memory_tokens": None, "requests": 0}
    return {
        "tokens": _mean(request.tokens for request in near),
        "estimated_tokens": _mean(map(estimated, near)),
        "memory_tokens": _mean(request.memory_tokens for request in near),
        "requests": len(near),
    }


def _request_said(row: Numbers) -> str:
    if row["tokens"] is None:
        return "-"
    return f"{row['tokens']:,.0f} / {row['estimated_tokens']:,.0f}\n{row['memory_tokens']:,.0f}"


def _mean(values: Iterable[float]) -> float:
    found = list(values)
    return sum(found) / len(found)


# ---------------------------------------------------------------- a cache of prefixes


def prompt_cache(records: Sequence[Record]) -> Table | None:
    """Systems by layout of their requests: what a cache has, what the input costs; None without."""
    asked = [record for record in records if record.outcome.requests]
    if not asked:
        return None
    model, by = priced(asked)
    numbers: list[Numbers] = []
    for system, own in by_system(asked).items():
        for layout in LAYOUTS:
            if found := cached(own, layout):
                whole = found._replace(cached_tokens=0).usd(by)
                numbers.append({
                    "system": system, "layout": layout, "requests": found.requests,
                    "tokens": found.tokens, "cached_tokens": found.cached_tokens,
                    "cached_share": found.share, "usd_uncached": whole, "usd": found.usd(by),
                })  # fmt: skip
    columns: list[tuple[str, Any]] = [
        ("system", "system"), ("layout", "layout"),
        ("tokens", lambda row: f"{row['tokens'] / row['requests']:,.0f}"),
        ("cached", lambda row: percent(row["cached_share"])),
        ("fresh", lambda row: f"{(row['tokens'] - row['cached_tokens']) / row['requests']:,.0f}"),
        ("usd", lambda row: f"{1000 * row['usd_uncached'] / row['requests']:.3f}"),
        ("effective", lambda row: f"{1000 * row['usd'] / row['requests']:.3f}"),
    ]  # fmt: skip
    return listed(
        "prompt-cache", "What a cache of prefixes would have", numbers, columns,
        about=("system", "layout"),
        notes=[
            "Input of a request, mean: tokens, the share that is the exact beginning of an earlier "
            "request (from 1,024 tokens on, in blocks of 128), and the rest. The turn stands last in "
            "both layouts; nothing is ever dropped from the cache.",
            f"usd: of 1,000 requests by the prices of {model}, without and with its discount for "
            "cached input; what is written to the cache costs as any input.",
        ],
    )  # fmt: skip


# ---------------------------------------------------------------- when to summarise


def summarisation(records: Sequence[Record]) -> Table | None:
    """Total input tokens, recall and C1 by the trigger of summarisation; None without a sweep."""
    swept = triggers(records)
    if not swept:
        return None
    flat = [r for r in records if r.spec.system == "flat" and r.outcome.requests]
    rows = [("flat", flat)] if flat else []
    rows += [(f"{trigger:,}", own) for trigger, own in swept.items()]
    columns: list[tuple[str, Any]] = [
        ("trigger", "trigger"),
        ("total", lambda row: f"{row['total_tokens']:,.0f}"),
        ("least", lambda row: f"{row['total_tokens_min']:,.0f}"),
        ("most", lambda row: f"{row['total_tokens_max']:,.0f}"),
        ("summaries", lambda row: f"{row['summary_tokens']:,.0f}"),
        ("recall", lambda row: "-" if row["recall"] is None else percent(row["recall"])),
        ("C1", lambda row: "-" if row["C1"] is None else percent(row["C1"])),
        ("seeds", "seeds"),
    ]
    return listed(
        "summarisation", "When to summarise",
        [{"trigger": name, **_swept(own)} for name, own in rows], columns, about=("trigger",),
        notes=[
            "trigger: tokens of turns kept word for word from which on the older ones are summarised. "
            "total: input tokens of all requests and summarisations of a run, mean over seeds, beside "
            "the least and the most of a seed; summaries: the part of the summarisations."
        ],
    )  # fmt: skip


def _swept(records: Sequence[Record]) -> Numbers:
    totals = [total for record in records if (total := total_tokens(record)) is not None]
    verdicts = [v for record in records if (v := record.outcome.verdicts.get("C1"))]
    due = sum(verdict.opportunities for verdict in verdicts)
    recalls = [r.outcome.recall for r in records if r.outcome.recall is not None]
    return {
        "total_tokens": _mean(totals), "total_tokens_min": min(totals),
        "total_tokens_max": max(totals),
        "summary_tokens": _mean(sum(r.outcome.usage.values(), Usage()).prompt_tokens for r in records),
        "recall": _mean(recalls) if recalls else None,
        "C1": sum(verdict.violations for verdict in verdicts) / due if due else None,
        "seeds": len(records),
    }  # fmt: skip
