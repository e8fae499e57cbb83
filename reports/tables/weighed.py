"""Retrieval of public data beside how much is kept for it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from steeltrap.harness.record import Evidence, Record
from steeltrap.reports.numbers import by_system
from steeltrap.reports.table import Numbers, Table, listed

__all__ = ["weighed"]


def weighed(records: Sequence[Record]) -> Table | None:
    """Retrieval and footprint by system; None where what is active was not counted at the end."""
    able = [record for record in records if record.outcome.evidence and record.outcome.footprint]
    numbers = [
        {"system": system, **row}
        for system, own in by_system(able).items()
        for row in [_row(own)]
        if row
    ]
    if not numbers:
        return None
    columns: list[tuple[str, Any]] = [
        ("system", "system"), ("n", "questions"), ("k", "k"),
        *((score, _share(score)) for score in ("recall", "all", "ndcg")),
        ("active", lambda row: f"{row['active_tokens']:,.0f}"),
        ("of told", lambda row: f"{100 * row['active_share']:.1f}"),
        ("items", lambda row: f"{row['active_items']:,.0f}"),
    ]  # fmt: skip
    return listed(
        "weighed", "Retrieval and what is kept for it", numbers, columns, about=("system",),
        notes=[
            "Evidence among the first k items, over all questions with evidence, in percent. active: "
            "tokens (o200k_base) that compete for a place in an answer at the end, of all runs "
            "together; of told: in percent of the tokens of all turns; items: how many these are."
        ],
    )  # fmt: skip


def _row(records: Sequence[Record]) -> Numbers:
    rows = [row for record in records for row in record.outcome.evidence if _plain(row)]
    if not rows:
        return {}
    k = max((row.k for row in rows if row.k <= _K), default=min(row.k for row in rows))
    own = [row for row in rows if row.k == k]
    total = sum(row.n for row in own)
    last = [record.outcome.footprint[-1] for record in records]
    told = sum(record.outcome.ingested_tokens for record in records)
    active = sum(tokens for _, _, tokens, _, _ in last)
    scores = {
        score: sum(row.n * (getattr(row, score) or 0.0) for row in own) / total
        for score in ("recall", "all", "ndcg")
    }
    return {
        "questions": total, "k": k, **scores, "active_tokens": active,
        "active_share": active / told, "active_items": sum(items for _, items, _, _, _ in last),
    }  # fmt: skip


_K = 5
"""The largest k that is shown; more of them stand in the tables of evidence."""


def _plain(row: Evidence) -> bool:
    whole = row.category == "all" and row.grain == "turn" and not (row.window or row.budget_tokens)
    return whole and not (row.left_out or row.convention)


def _share(score: str) -> Any:
    return lambda row: f"{100 * row[score]:.1f}"
