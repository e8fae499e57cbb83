"""How costs grow with the length of a life: what the tables and the figure of it are made of."""

from __future__ import annotations

from collections.abc import Sequence
from math import log
from statistics import median
from typing import Final, Literal, NamedTuple

from steeltrap.harness.record import CostAt, Record
from steeltrap.harness.stats import Power, power

__all__ = ["COSTS", "MAIN", "Cost", "curves", "exponent", "grown", "late", "reached", "reading"]

Curve = list[tuple[float, float]]
"""(turns, cost) of one run."""
Reading = Literal["falling", "flat", "sublinear", "linear", "superlinear", "unclear", ""]


class Cost(NamedTuple):
    """How a cost is named."""

    head: str
    """Of a column."""
    words: str
    """With its unit."""
    of_unit: float = 1.0
    """The number that makes one of the unit in which it is said."""


COSTS: Final = {
    "ingest_ms": Cost("ingest", "ingest a turn, ms"),
    "retrieve_ms": Cost("retrieve", "answer a query, ms"),
    "maintain_ms": Cost("maintain", "maintain, ms"),
    "settle_ms": Cost("settle", "settle, ms"),
    "served_tokens": Cost("served", "served to a query, tokens"),
    "active_tokens": Cost("active", "active, tokens"),
    "size_bytes": Cost("on disk", "on disk, kB", 1000),
    "life_ms": Cost("life", "whole life, s", 1000),
    "list_ms": Cost("list", "list what is active, ms"),
    "erase_ms": Cost("erase", "erase, ms"),
    "ingest_ms_mean": Cost("ingest, mean", "ingest a turn, mean ms"),
    "retrieve_ms_mean": Cost("retrieve, mean", "answer a query, mean ms"),
    "maintain_ms_mean": Cost("maintain, mean", "maintain, mean ms"),
    "settle_ms_mean": Cost("settle, mean", "settle, mean ms"),
    "list_ms_mean": Cost("list, mean", "list what is active, mean ms"),
    "erase_ms_mean": Cost("erase, mean", "erase, mean ms"),
    "model_ms": Cost("models", "models for a turn, ms"),
    "calls": Cost("calls", "model calls for a turn"),
    "prompt_tokens": Cost("in", "to models for a turn, tokens"),
    "completion_tokens": Cost("out", "from models for a turn, tokens"),
    "embedded_tokens": Cost("embedded", "embedded for a turn, tokens"),
    "query_prompt_tokens": Cost("in, query", "to models for a query, tokens"),
    "life_model_tokens": Cost("life, models", "models, whole life, tokens"),
    "active_items": Cost("items", "active, items"),
    "true_items": Cost("true items", "worth keeping, items"),
    "true_tokens": Cost("true", "worth keeping, tokens"),
}
"""Each cost of `harness.growth` in words, in the order in which they are read."""
MAIN: Final = (
    "ingest_ms", "retrieve_ms", "maintain_ms", "served_tokens", "active_tokens", "size_bytes",
    "prompt_tokens", "life_ms",
)  # fmt: skip
"""What belongs on a console and into a figure."""
SUMS: Final = ("life_ms", "life_model_tokens")
"""Costs that add up over a life: points of one run hang together, so there is no interval of them."""
_FLAT: Final = 0.1
"""An exponent below this is none: a life ten times as long costs a quarter more at most."""
_LINEAR: Final = (0.5, 1.5)
"""An interval that reaches beyond holds a root or a square beside 1: it says nothing of either."""


def grown(records: Sequence[Record]) -> list[Record]:
    """The records of lives that were long enough."""
    return [record for record in records if record.timing.growth]


def reached(record: Record) -> int:
    """Turns up to which it can be said what the system took: all that were told, but for a rest of
    which none was taken in."""
    last: CostAt = record.timing.growth[-1]
    told = record.outcome.turns
    return told if last.turns >= 0.8 * told else last.turns


def curves(records: Sequence[Record], cost: str) -> list[Curve]:
    """The curve of a cost in each run that has any of it."""
    found = [
        [(float(at.turns), at.costs[cost]) for at in record.timing.growth if cost in at.costs]
        for record in records
    ]
    return [curve for curve in found if curve]


def exponent(records: Sequence[Record], cost: str) -> Power | None:
    """How a cost grows; None where it is known at too few lengths, or nought somewhere."""
    return power(curves(records, cost))


def late(records: Sequence[Record], cost: str) -> float | None:
    """The slope over the last tenfold of a life, median over runs; None for shorter curves.

    A cost with a fixed part grows little at first: there the exponent of the whole is too small.
    """
    slopes = []
    for curve in curves(records, cost):
        n, value = curve[-1]
        before = [point for point in curve if point[0] <= n / 10]
        if before and value > 0 and before[-1][1] > 0:
            slopes.append(log(value / before[-1][1]) / log(n / before[-1][0]))
    return median(slopes) if slopes else None


def reading(found: Power | None) -> Reading:
    """An exponent in a word, by its interval."""
    if found is None:
        return ""
    if found.high < _FLAT:
        return "falling" if found.high < -_FLAT else "flat"
    if found.low > 1:
        return "superlinear"
    if found.high < 1:
        return "sublinear"
    root, steep = _LINEAR
    return "linear" if root < found.low and found.high < steep else "unclear"
