"""The numbers of records: by system, and as one frame."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from steeltrap.harness.record import Record
from steeltrap.reports.facts import distinct, model_words

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["by_system", "frame", "numbers"]


def frame(records: Iterable[Record]) -> pd.DataFrame:
    """One row a cell: what was run, and every number that the tables are made of.

    Columns `C1` to `C6` and `beyond` hold the validity; with `_violations` and
    `_opportunities` appended, the counts. Times are of retrieval, in milliseconds.
    """
    import pandas as pd

    return pd.DataFrame([numbers(record) for record in records])


def numbers(record: Record) -> dict[str, Any]:
    """A row of the frame."""
    spec, outcome = record.spec, record.outcome
    retrieve = record.timing.phases.get("retrieve")
    row: dict[str, Any] = {
        "system": spec.system,
        "script": spec.script,
        "seed": spec.seed,
        "reader": spec.reader,
        "limit": spec.limit,
        "embedder": spec.embedder,
        "turns": outcome.turns,
        "failed": outcome.failed,
        "recall": outcome.recall,
        "evidence_recall": outcome.evidence_recall,
        "retrieve_ms_p50": retrieve.p50_ms if retrieve else None,
        "retrieve_ms_p95": retrieve.p95_ms if retrieve else None,
        "served_tokens_mean": outcome.served_tokens_mean,
        "footprint_ratio": outcome.footprint_ratio,
        "growth_exponent": outcome.growth_exponent,
    }
    for condition, verdict in outcome.verdicts.items():
        row[condition] = verdict.validity
        row[f"{condition}_violations"] = verdict.violations
        row[f"{condition}_opportunities"] = verdict.opportunities
    return row


def by_system(records: Sequence[Record]) -> dict[str, list[Record]]:
    """The records of each system; what its rows differ in besides is part of the name."""
    groups: dict[str, list[Record]] = {}
    for record in records:
        name = record.spec.system
        own = [other for other in records if other.spec.system == name]
        for words in (_embedder, model_words):
            if len(distinct(map(words, own))) > 1:
                name += f"\n({words(record)})"
        groups.setdefault(name, []).append(record)
    return groups


def _embedder(record: Record) -> str:
    return record.spec.embedder
