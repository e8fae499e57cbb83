"""The tables of a comparison, made from stored records alone.

Rates are pooled over seeds (violations
over opportunities), with 95% intervals over seeds.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from steeltrap.harness.record import Record
from steeltrap.harness.stats import (
    Difference,
    Interval,
    holm,
    mean_interval,
    paired_difference,
    rate_interval,
)
from steeltrap.harness.verdict import BEYOND, CONDITIONS, NAMES, Tally, merge
from steeltrap.reports.facts import distinct

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "Grid",
    "conditions",
    "costs",
    "differences",
    "evidence",
    "frame",
    "names",
]


class Grid(NamedTuple):
    """A table of words, to be drawn on a console or written as Markdown."""

    title: str
    header: list[str]
    rows: list[list[str]]
    """Lines within a cell are parted by a newline."""
    notes: list[str]


# ---------------------------------------------------------------- numbers


def frame(records: Iterable[Record]) -> pd.DataFrame:
    """One row a cell: what was run, and every number that the tables are made of.

    Columns `C1` to `C6` and `beyond` hold the validity; with `_violations` and
    `_opportunities` appended, the counts. Times are of retrieval, in milliseconds.
    """
    import pandas as pd

    return pd.DataFrame([_numbers(record) for record in records])


def _numbers(record: Record) -> dict[str, Any]:
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


def _by_system(records: Sequence[Record]) -> dict[str, list[Record]]:
    """The records of each system; the embedder is part of the name where a system had several."""
    embedders: dict[str, list[str]] = {}
    for record in records:
        embedders.setdefault(record.spec.system, []).append(record.spec.embedder)
    groups: dict[str, list[Record]] = {}
    for record in records:
        several = len(distinct(embedders[record.spec.system])) > 1
        name = record.spec.system + (f"\n({record.spec.embedder})" if several else "")
        groups.setdefault(name, []).append(record)
    return groups


# ---------------------------------------------------------------- tables


def conditions(records: Sequence[Record]) -> Grid | None:
    """Systems by the six conditions: rate, interval over seeds, violations over opportunities.

    None where the script put none of them to the test, as public question sets do.
    """
    tested = (v.opportunities for r in records for v in r.outcome.verdicts.values())
    if not any(tested):
        return None
    systems = _by_system(records)
    rows = [
        [system, *(_condition(own, condition) for condition in CONDITIONS)]
        for system, own in systems.items()
    ]
    notes = ["Rate, its 95% interval over seeds, and violations/opportunities.", *_failed(systems)]
    return Grid("The six conditions", ["system", *CONDITIONS], rows, notes + _unseen(systems))


def _condition(records: Sequence[Record], condition: str) -> str:
    verdicts = [r.outcome.verdicts[condition] for r in records if condition in r.outcome.verdicts]
    violations = [verdict.violations for verdict in verdicts]
    opportunities = [verdict.opportunities for verdict in verdicts]
    validity = merge(verdict.validity for verdict in verdicts)
    counts = f"{sum(violations)}/{sum(opportunities)}"
    if validity == "held":
        return f"held\n{counts}"
    if validity == "violated":
        interval = rate_interval(violations, opportunities)
        rate = percent(sum(violations) / sum(opportunities))
        return "\n".join([rate, *([_span(interval)] if interval else []), counts])
    if sum(opportunities):
        return f"unknown\n{counts}"
    blocked = any(tally.blocked for verdict in verdicts for tally in verdict.names.values())
    return "not\nobservable" if blocked else "unknown"


def _failed(systems: dict[str, list[Record]]) -> list[str]:
    """How many steps of each system did not end in `ok`."""
    counts = {
        system: (sum(r.outcome.failed for r in own), sum(r.outcome.steps for r in own))
        for system, own in systems.items()
    }
    return [
        f"{system}: {failed} of {steps} steps failed or ended in doubt; what they would have "
        f"shown is unknown."
        for system, (failed, steps) in counts.items()
        if failed
    ]


def _unseen(systems: dict[str, list[Record]]) -> list[str]:
    """What could not be observed: each reason once, with the names and systems it holds for."""
    reasons: dict[tuple[str, str], list[str]] = {}
    for (system, why), what in _reasons(systems).items():
        reasons.setdefault((why, ", ".join(what)), []).append(system)
    return [f"{what} ({', '.join(who)}): {why}" for (why, what), who in reasons.items()]


def _reasons(systems: dict[str, list[Record]]) -> dict[tuple[str, str], list[str]]:
    """By system and reason, the names or conditions that it holds for."""
    found: dict[tuple[str, str], list[str]] = {}
    for system, own in systems.items():
        for verdict in (v for record in own for v in record.outcome.verdicts.values()):
            blocked = [(tally.blocked, name) for name, tally in verdict.names.items()]
            for why, name in [*blocked, (verdict.note, verdict.condition)]:
                what = found.setdefault((system, why), []) if why else [name]
                if name not in what:
                    what.append(name)
    return found


def costs(records: Sequence[Record]) -> Grid:
    """Systems by recall, time of a retrieval, tokens and footprint."""
    header = ["system", "recall", "evidence", "p50 ms", "p95 ms", "tokens", "footprint", "growth"]
    rows = []
    for system, own in _by_system(records).items():
        table = frame(own)
        rows.append(
            [
                system,
                _share(table["recall"]),
                _share(table["evidence_recall"]),
                _median(table["retrieve_ms_p50"]),
                _median(table["retrieve_ms_p95"]),
                _mean(table["served_tokens_mean"], "{:,.0f}"),
                _mean(table["footprint_ratio"], "{:.2f}"),
                _mean(table["growth_exponent"], "{:.2f}"),
            ]
        )
    notes = [
        "recall: set current values answered right. evidence: right value among the items served.",
        "p50, p95: wall time of a retrieval, median over seeds. tokens: o200k_base, a query.",
        "footprint: active over true tokens. growth: slope of log active tokens on log turns.",
    ]
    return Grid("What it gives and what it costs", header, rows, notes)


def names(records: Sequence[Record]) -> Grid | None:
    """Violation names by system: counts over opportunities; None where none was tested."""
    systems = _by_system(records)
    rows = []
    for condition in (*CONDITIONS, BEYOND):
        for name in NAMES[condition]:
            cells = [_tally(own, condition, name) for own in systems.values()]
            if any(cell != "-" for cell in cells):
                rows.append([condition, name, *cells])
    if not rows:
        return None
    notes = ["-: the script put it to no test."]
    return Grid("Violations by name", ["", "violation", *systems], rows, notes)


def _tally(records: Sequence[Record], condition: str, name: str) -> str:
    verdicts = [r.outcome.verdicts[condition] for r in records if condition in r.outcome.verdicts]
    tallies: list[Tally] = [v.names[name] for v in verdicts if name in v.names]
    opportunities = sum(tally.opportunities for tally in tallies)
    if opportunities:
        return f"{sum(tally.violations for tally in tallies)}/{opportunities}"
    return "not obs." if any(tally.blocked for tally in tallies) else "-"


def evidence(records: Sequence[Record]) -> Grid | None:
    """Evidence recall of public data by category and cut-off; None where none was measured."""
    found: dict[tuple[str, str, str], dict[int, list[tuple[int, float, float]]]] = {}
    for system, own in _by_system(records).items():
        for one in (one for record in own for one in record.outcome.evidence):
            row = found.setdefault((one.left_out, system, one.category), {})
            row.setdefault(one.k, []).append((one.n, one.recall, one.hit))
    if not found:
        return None
    cuts = sorted({k for row in found.values() for k in row})
    rows = []
    for (left_out, system, category), row in found.items():
        n = max(sum(n for n, _, _ in cells) for cells in row.values())
        cells = [_weighted(row[k]) if k in row else "-" for k in cuts]
        rows.append([left_out or "nothing", system, category, str(n), *cells])
    header = ["left out", "system", "category", "n", *(f"R@{k} (hit)" for k in cuts)]
    notes = [
        "n: questions with evidence. R@k: mean share of a question's evidence among the first k "
        "items; hit: share of questions with any of it there."
    ]
    return Grid("Evidence recall", header, rows, notes)


def _weighted(cells: Sequence[tuple[int, float, float]]) -> str:
    """Recall and hit as means over all questions of several cells."""
    total = sum(n for n, _, _ in cells)
    recall = sum(n * recall for n, recall, _ in cells) / total
    hit = sum(n * hit for n, _, hit in cells) / total
    return f"{100 * recall:.1f} ({100 * hit:.1f})"


def differences(records: Sequence[Record]) -> Grid | None:
    """Every pair of systems by condition: difference in points, with its p after Holm.

    None where there is no pair, or no seed in common.
    """
    rates = {
        system: {condition: _rates(own, condition) for condition in CONDITIONS}
        for system, own in _by_system(records).items()
    }
    pairs = list(itertools.combinations(rates, 2))
    found = {
        (one, two, condition): paired_difference(rates[one][condition], rates[two][condition])
        for one, two in pairs
        for condition in CONDITIONS
    }
    tested = [key for key, difference in found.items() if difference and difference.p is not None]
    if not tested:
        return None
    adjusted = dict(zip(tested, holm([found[key].p for key in tested]), strict=True))  # type: ignore[union-attr,misc]
    rows = [
        [
            f"{one} - {two}",
            *(_difference(found[one, two, c], adjusted.get((one, two, c))) for c in CONDITIONS),
        ]
        for one, two in pairs
    ]
    seeds = max(difference.seeds for difference in found.values() if difference)
    notes = [
        f"Percentage points, and p of a two-sided sign-flip test over seeds after Holm over "
        f"{len(tested)} tests; {seeds} seeds cannot give a p below {2 / 2**seeds:.2g} before it."
    ]
    return Grid("Differences", ["systems", *CONDITIONS], rows, notes)


def _rates(records: Sequence[Record], condition: str) -> dict[int, float]:
    """The rate of a condition by seed, where it had an opportunity and could be judged."""
    verdicts = {r.spec.seed: r.outcome.verdicts.get(condition) for r in records}
    return {
        seed: verdict.violations / verdict.opportunities
        for seed, verdict in verdicts.items()
        if verdict and verdict.opportunities
    }


def _difference(difference: Difference | None, p: float | None) -> str:
    if difference is None or p is None:
        return "-"
    return f"{100 * difference.mean:+.1f}\np {p:.2g}"


# ---------------------------------------------------------------- words


def percent(share: float) -> str:
    """A share in percent; what is not nought or all is never written so."""
    if 0 < share < 0.0005:
        return "<0.1%"
    if 0.9995 <= share < 1:
        return ">99.9%"
    return f"{100 * share:.1f}%"


def _span(interval: Interval) -> str:
    return f"{100 * interval.low:.1f}–{100 * interval.high:.1f}"


def _share(column: pd.Series[Any]) -> str:
    values = [float(value) for value in column.dropna()]
    if not values:
        return "-"
    interval = mean_interval(values)
    mean = percent(sum(values) / len(values))
    return f"{mean}\n{_span(interval)}" if interval and interval.low < interval.high else mean


def _median(column: pd.Series[Any]) -> str:
    values = column.dropna()
    return "-" if values.empty else f"{float(values.median()):.2f}"


def _mean(column: pd.Series[Any], form: str) -> str:
    values = column.dropna()
    return "-" if values.empty else form.format(float(values.mean()))
