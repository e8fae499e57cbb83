"""The numbers of records: by system, and as one frame."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from steeltrap.harness.record import Record
from steeltrap.reports.facts import distinct, model_words

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["BUDGET_TOKENS", "by_system", "frame", "numbers", "once"]

BUDGET_TOKENS = 250
"""The context at which systems are held against each other."""


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
    ingest = record.timing.phases.get("ingest")
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
        "recall_within": outcome.recall_within.get(str(BUDGET_TOKENS)),
        "ingest_ms_p50": ingest.p50_ms if ingest else None,
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
        if unlike := _unlike([other.spec.settings for other in own]):
            settings = ", ".join(f"{key} {record.spec.settings.get(key)}"[:60] for key in unlike)
            name += f"\n({settings})"
        groups.setdefault(name, []).append(record)
    return groups


def once(records: Sequence[Record]) -> list[Record]:
    """Without runs that are another once more, as where a dial at nought was set and was not."""
    asked = {
        (r.spec.script_sha256, r.spec.reader, r.spec.limit, r.outcome.fingerprint or id(r)): r
        for r in reversed(records)
    }
    return list(asked.values())[::-1]


def _unlike(settings: Sequence[Mapping[str, Any]]) -> list[str]:
    """The settings in which adapters of one name differ, as after a change of a default."""
    keys = distinct(key for one in settings for key in one)
    return [k for k in keys if any(one.get(k) != settings[0].get(k) for one in settings)]


def _embedder(record: Record) -> str:
    return record.spec.embedder
