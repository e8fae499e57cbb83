"""The tables of a comparison, made from stored records alone.

Rates are pooled over seeds (violations
over opportunities), with 95% intervals over seeds.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from statistics import median
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from steeltrap.harness.models import Usage
from steeltrap.harness.record import Dose, DoseResponse, Effect, Evidence, Record
from steeltrap.harness.stats import (
    Difference,
    Interval,
    holm,
    mean_interval,
    paired_difference,
    rate_interval,
)
from steeltrap.harness.verdict import BEYOND, CONDITION_OF, CONDITIONS, NAMES, Tally, merge
from steeltrap.reports.facts import distinct, model_words

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "Grid",
    "by_system",
    "conditions",
    "costs",
    "differences",
    "doses",
    "evidence",
    "families",
    "frame",
    "lost",
    "models",
    "names",
    "tally",
    "twins",
]


_SEEDS_FOR_P = 6
"""A sign-flip test over n seeds cannot give a p below 2 / 2^n: so many give one below 0.05."""


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


# ---------------------------------------------------------------- tables


def conditions(records: Sequence[Record]) -> Grid | None:
    """Systems by the six conditions: rate, interval over seeds, violations over opportunities.

    None for public question sets, which put none of them to the test. A memory that failed at
    everything has its row: all unknown.
    """
    tested = (v.opportunities for r in records for v in r.outcome.verdicts.values())
    if not any(tested) and any(record.outcome.evidence for record in records):
        return None
    systems = by_system(records)
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
        return "\n".join([rate, *_spans(interval), counts])
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
            why_not = [(t.blocked, name) for name, t in verdict.names.items() if t.blocked]
            if not why_not and verdict.condition != BEYOND:
                why_not = [(verdict.note, verdict.condition)]
            for why, name in why_not:
                what = found.setdefault((system, why), []) if why else [name]
                if name not in what:
                    what.append(name)
    return found


def costs(records: Sequence[Record]) -> Grid | None:
    """Systems by recall, time of a retrieval, tokens and footprint; None where nothing was measured."""
    frames = {system: frame(own) for system, own in by_system(records).items()}
    columns = {
        name: cells
        for name, (number, cell) in _COSTS.items()
        if any(cells := [cell(table[number]) for table in frames.values()])
    }
    if not columns:
        return None
    rows = [
        [system, *(cells[row] or "-" for cells in columns.values())]
        for row, system in enumerate(frames)
    ]
    notes = [note for name, note in _COST_NOTES.items() if name in columns]
    return Grid("What it gives and what it costs", ["system", *columns], rows, notes)


def models(records: Sequence[Record]) -> Grid | None:
    """Systems by what they asked models for; None where none asked any."""
    rows = [
        [system, *_asked(own)]
        for system, own in by_system(records).items()
        if any(record.outcome.usage for record in own)
    ]
    if not rows:
        return None
    notes = [
        "calls, vectors: requests to chat and to embedding models, for a turn of the script.",
        "in, out: tokens of chat calls for a turn. cached: share of `in` that the provider had "
        "read before, or else (~) that a cache of exact prefixes would have.",
        "ms: the models' time at an ingest, median over seeds. usd: by the price table, for a run.",
    ]
    header = ["system", "calls", "failed", "vectors", "in", "out", "cached", "ms", "usd"]
    return Grid("What models were asked", header, rows, notes)


def _asked(records: Sequence[Record]) -> list[str]:
    spent = [sum(r.outcome.usage.values(), Usage()) for r in records]
    turns = sum(record.outcome.turns for record in records)
    used = sum(spent, Usage())
    ms = [r.timing.models["ingest"].p50_ms for r in records if "ingest" in r.timing.models]
    usd = [r.outcome.cost_usd for r in records if r.outcome.cost_usd is not None]
    return [
        f"{(used.calls - used.embeddings) / turns:.2f}",
        f"{used.failed}",
        f"{used.embeddings / turns:.2f}",
        f"{used.prompt_tokens / turns:,.0f}",
        f"{used.completion_tokens / turns:,.0f}",
        _cached(used),
        f"{median(ms):.2f}" if ms else "-",
        f"{sum(usd) / len(usd):.2f}" if usd else "-",
    ]


def _cached(used: Usage) -> str:
    if not used.prompt_tokens:
        return "-"
    if used.cached_tokens:
        return percent(used.cached_tokens / used.prompt_tokens)
    return f"~{percent(used.prefix_tokens / used.prompt_tokens)}"


def doses(records: Sequence[Record]) -> Grid | None:
    """Systems by what answers how often a unit is read; None where the script gives no doses."""
    found = {
        system: [r.outcome.dose for r in own if r.outcome.dose]
        for system, own in by_system(records).items()
    }
    given = sorted({dose.reads for own in found.values() for one in own for dose in one.doses})
    if not given:
        return None
    rows = []
    for system, own in found.items():
        for what, (trend, cell) in _DOSES.items():
            seen = [[d for one in own for d in one.doses if d.reads == reads] for reads in given]
            cells = [cell(at_dose) for at_dose in seen]
            if any(cells):
                rows.append([system, what, *(c or "-" for c in cells), _trend(own, trend)])
    notes = [
        f"Columns: times read; {sum(one.groups for one in next(iter(found.values())))} groups of "
        "units that are alike otherwise.",
        "place: among its group, after the reads. rise: of salience, since before the first read. "
        "left: still listed (or served) after pressure; back: had back by recovery.",
        "trend: pairs that moved with the dose less those against it, over all pairs (-1 to 1), "
        "with its 95% interval over the groups of all seeds: doses were drawn for each group.",
    ]
    return Grid("Dose and response", ["system", "", *map(str, given), "trend"], rows, notes)


def _weighed(doses: Sequence[Dose], value: Callable[[Dose], float | None]) -> float | None:
    """The mean over units, as far as the value is known."""
    known = [(dose.n, v) for dose in doses if (v := value(dose)) is not None]
    return sum(n * v for n, v in known) / sum(n for n, _ in known) if known else None


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def _part(value: float | None) -> str:
    return "" if value is None else percent(value)


def _trend(own: Sequence[DoseResponse], what: str) -> str:
    groups = [value for one in own for value in one.trends.get(what, ())]
    if not groups:
        return "-"
    mean, spread = sum(groups) / len(groups), mean_interval(groups)
    if spread is None or spread.low == spread.high:
        return f"{mean:+.2f}"
    return f"{mean:+.2f}\n{spread.low:+.2f} to {spread.high:+.2f}"


def lost(records: Sequence[Record]) -> Grid | None:
    """Every turn that did not go in, with what became of it; None where all did."""
    rows = [
        [system, str(record.spec.seed), turn, why]
        for system, own in by_system(records).items()
        for record in own
        for turn, why in record.outcome.lost.items()
    ]
    if not rows:
        return None
    notes = ["fail: certainly not taken in. info: nobody knows."]
    return Grid(
        "Turns that were lost", ["system", "seed", "turn", "what became of it"], rows, notes
    )


def names(records: Sequence[Record]) -> Grid | None:
    """Violation names by system: counts over opportunities; None where none was tested."""
    systems = by_system(records)
    rows = []
    for condition in (*CONDITIONS, BEYOND):
        for name in NAMES[condition]:
            cells = [tally(own, condition, name) for own in systems.values()]
            if any(cell != "-" for cell in cells):
                rows.append([condition, name, *cells])
    if not rows:
        return None
    notes = ["-: the script put it to no test."]
    return Grid("Violations by name", ["", "violation", *systems], rows, notes)


def tally(records: Sequence[Record], condition: str, name: str) -> str:
    """Violations of a name over its opportunities; `-` where it was put to no test."""
    verdicts = [r.outcome.verdicts[condition] for r in records if condition in r.outcome.verdicts]
    tallies: list[Tally] = [v.names[name] for v in verdicts if name in v.names]
    opportunities = sum(tally.opportunities for tally in tallies)
    if opportunities:
        return f"{sum(tally.violations for tally in tallies)}/{opportunities}"
    return "not obs." if any(tally.blocked for tally in tallies) else "-"


def families(records: Sequence[Record], *, abreast: int | None = None) -> list[Grid]:
    """Families by systems: what came of the conditions that a family tests.

    Args:
        records: of one script.
        abreast: so many systems a table; by default all. A script of one family has no table.
    """
    systems = list(by_system(records).items())
    found = {system: _pooled(own) for system, own in systems}
    order = distinct(family for r in records for family in r.outcome.by_family)
    tested = {family: _tested(family, found.values()) for family in order}
    rows = {family: keys for family, keys in tested.items() if keys}
    if len(rows) < 2:
        return []
    grids = []
    for start in range(0, len(systems), abreast or len(systems)):
        some = [name for name, _ in systems[start : start + (abreast or len(systems))]]
        cells = [
            [f"{family or 'twins'}\n{_labels(keys)}", *(_came_of(found[s].get(family, {}), keys) for s in some)]
            for family, keys in rows.items()
        ]  # fmt: skip
        notes = [] if start + len(some) < len(systems) else _FAMILY_NOTES
        grids.append(Grid("By family", ["family", *some], cells, notes))
    return grids


_FAMILY_NOTES: Final = [
    "Violations/opportunities over the conditions below the family's name, and which of them "
    "were violated.",
    "unknown: one of them was never put to the test; missing: values that are set and were not "
    "answered.",
]


def _pooled(records: Sequence[Record]) -> dict[str, dict[str, list[int]]]:
    """`Outcome.by_family` of several records together."""
    pooled: dict[str, dict[str, list[int]]] = {}
    for record in records:
        for family, counts in record.outcome.by_family.items():
            rows = pooled.setdefault(family, {})
            for key, (part, whole) in counts.items():
                before = rows.get(key, [0, 0])
                rows[key] = [before[0] + part, before[1] + whole]
    return pooled


def _tested(family: str, found: Iterable[dict[str, dict[str, list[int]]]]) -> list[str]:
    """The conditions and names of a family that any system was put to the test in."""
    counts = [(key, row[1]) for system in found for key, row in system.get(family, {}).items()]
    return distinct(key for key, whole in counts if whole and key != "missing")


def _labels(keys: Sequence[str]) -> str:
    """Conditions in order; names by their conditions, but those beyond the six as they are."""
    named = (key if key in CONDITIONS else CONDITION_OF.get(key, key) for key in keys)
    beyond = zip(keys, named, strict=True)
    return " ".join(distinct(key if name == BEYOND else name for key, name in beyond))


def _came_of(counts: dict[str, list[int]], keys: Sequence[str]) -> str:
    """One cell: held, unknown, or which conditions were violated, with the counts."""
    rows = {key: counts.get(key, [0, 0]) for key in keys}
    # A name stands beside its condition only where the condition is not counted as a whole.
    rows = {key: row for key, row in rows.items() if CONDITION_OF.get(key) not in rows}
    violated = [key for key, row in rows.items() if row[0]]
    word = "held" if all(row[1] for row in rows.values()) else "unknown"
    part, whole = (sum(row[place] for row in rows.values()) for place in (0, 1))
    lines = [_labels(violated) or word, f"{part}/{whole}"]
    if silent := counts.get("missing", [0])[0]:
        lines.append(f"{silent} missing")
    return "\n".join(lines)


def evidence(records: Sequence[Record]) -> list[Grid]:
    """Evidence recall of public data by category and cut-off; one table for each selection."""
    found: dict[str, dict[tuple[str, str], dict[int, list[Evidence]]]] = {}
    for system, own in by_system(records).items():
        for one in (one for record in own for one in record.outcome.evidence):
            rows = found.setdefault(one.left_out, {})
            rows.setdefault((system, one.category), {}).setdefault(one.k, []).append(one)
    return [_evidence(left_out, rows) for left_out, rows in found.items()]


def _evidence(left_out: str, found: dict[tuple[str, str], dict[int, list[Evidence]]]) -> Grid:
    cuts = sorted({k for row in found.values() for k in row})
    rows = []
    for (system, category), row in found.items():
        n = max(sum(one.n for one in cells) for cells in row.values())
        recalls = [_weighted(row[k]) if k in row else "-" for k in cuts]
        rows.append([system, category, str(n), *recalls])
    notes = [
        "n: questions with evidence. Recall is the mean share of a question's evidence among the "
        "first k items; hit the share of questions with any of it there. In percent."
    ]
    title = "Recall / hit of evidence" + (f", without {left_out}" if left_out else "")
    return Grid(title, ["system", "category", "n", *(f"@{k}" for k in cuts)], rows, notes)


def _weighted(cells: Sequence[Evidence]) -> str:
    """Recall and hit as means over all questions of several cells."""
    total = sum(one.n for one in cells)
    recall = sum(one.n * one.recall for one in cells) / total
    hit = sum(one.n * one.hit for one in cells) / total
    return f"{100 * recall:.1f} / {100 * hit:.1f}"


def twins(records: Sequence[Record]) -> Grid | None:
    """What twins showed but for reading (C6), by what differs in them; None without such twins."""
    found: dict[tuple[str, str, str], list[Effect]] = {}
    for system, own in by_system(records).items():
        for record in own:
            for effect in record.outcome.effects:
                found.setdefault((system, effect.about, effect.what), []).append(effect)
    if not found:
        return None
    rows = [[*key, *_effect(effects)] for key, effects in found.items()]
    measures = {e.what: e.measure for effects in found.values() for e in effects if e.measure}
    notes = [
        "differ: points at which a run differs from its twin, of those compared; value: the size, "
        "with its 95% interval. null: the same between runs of one script.",
        *(f"{what}: {measure}." for what, measure in measures.items()),
    ]
    header = ["system", "twin", "what", "differ", "null", "value", "null"]
    return Grid("What twins showed", header, rows, notes)


def _effect(effects: Sequence[Effect]) -> list[str]:
    """One effect over all twins and seeds."""
    nulls = [effect.null for effect in effects if effect.null is not None]
    sized = [effect for effect in effects if effect.value is not None and effect.n]
    null_values = [e.null_value * e.n for e in sized if e.null_value is not None]
    points = sum(effect.n for effect in sized)
    value, null_value = "-", "-"
    if points:
        mean = sum((effect.value or 0.0) * effect.n for effect in sized) / points
        value = "\n".join([_size(mean), *_interval(sized)])
    if points and len(null_values) == len(sized):
        null_value = _size(sum(null_values) / points)
    return [
        f"{sum(effect.differing for effect in effects)}/{sum(effect.n for effect in effects)}",
        f"{sum(nulls)}" if len(nulls) == len(effects) else "-",
        value,
        null_value,
    ]


def _interval(effects: Sequence[Effect]) -> list[str]:
    """The interval of a pooled size: over twins, or the widest of their own where all agree."""
    over = rate_interval([(e.value or 0.0) * e.n for e in effects], [e.n for e in effects])
    if over is None or over.low == over.high:
        own = [(e.low, e.high) for e in effects if e.low is not None and e.high is not None]
        over = Interval(min(o[0] for o in own), max(o[1] for o in own)) if own else None
    return (
        [] if over is None or over.low == over.high else [f"{_size(over.low)}–{_size(over.high)}"]
    )


def _size(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def differences(records: Sequence[Record]) -> Grid | None:
    """Every pair of systems by condition: mean difference in points, with its p after Holm.

    There is no p where so few seeds could not give one below 0.05. None where there is no pair,
    or no two seeds in common.
    """
    rates = {
        system: {condition: _rates(own, condition) for condition in CONDITIONS}
        for system, own in by_system(records).items()
    }
    pairs = list(itertools.combinations(rates, 2))
    found = {
        (one, two, condition): paired_difference(rates[one][condition], rates[two][condition])
        for one, two in pairs
        for condition in CONDITIONS
    }
    seeds = max((difference.seeds for difference in found.values() if difference), default=0)
    if seeds < 2:
        return None
    tested = [key for key, one in found.items() if one and one.seeds >= _SEEDS_FOR_P]
    adjusted = dict(zip(tested, holm([found[key].p for key in tested]), strict=True))  # type: ignore[union-attr,misc]
    rows = [
        [
            f"{one} - {two}",
            *(_difference(found[one, two, c], adjusted.get((one, two, c))) for c in CONDITIONS),
        ]
        for one, two in pairs
    ]
    notes = ["Percentage points: means over seeds of the difference between two rates."]
    if tested:
        notes.append(
            f"p: two-sided sign-flip test over {seeds} seeds, after Holm over {len(tested)} tests."
        )
    else:
        notes.append(f"No p: {seeds} seeds cannot give one below 0.05; {_SEEDS_FOR_P} can.")
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
    if difference is None or difference.seeds < 2:
        return "-"
    points = f"{100 * difference.mean:+.1f}"
    return points if p is None else f"{points}\np {p:.2g}"


# ---------------------------------------------------------------- words


def percent(share: float) -> str:
    """A share in percent; what is not nought or all is never written so."""
    if 0 < share < 0.0005:
        return "<0.1%"
    if 0.9995 <= share < 1:
        return ">99.9%"
    return f"{100 * share:.1f}%"


def _spans(interval: Interval | None) -> list[str]:
    """An interval in percent; nothing for one seed, or where all agree."""
    if interval is None or interval.low == interval.high:
        return []
    return [f"{100 * interval.low:.1f}–{100 * interval.high:.1f}"]


def _share(column: pd.Series[Any]) -> str:
    values = [float(value) for value in column.dropna()]
    if not values:
        return ""
    mean = percent(sum(values) / len(values))
    return "\n".join([mean, *_spans(mean_interval(values))])


def _ms(column: pd.Series[Any]) -> str:
    values = column.dropna()
    if values.empty:
        return ""
    median = float(values.median())
    return "<0.01" if median < 0.005 else f"{median:.2f}"


def _tokens(column: pd.Series[Any]) -> str:
    values = column.dropna()
    return "" if values.empty else f"{float(values.mean()):,.0f}"


def _ratio(column: pd.Series[Any]) -> str:
    values = column.dropna()
    return "" if values.empty else f"{float(values.mean()):.2f}"


_DOSES: dict[str, tuple[str, Callable[[Sequence[Dose]], str]]] = {
    "rise": ("salience", lambda doses: _number(_weighed(doses, lambda d: d.rise))),
    "place": ("standing", lambda doses: _number(_weighed(doses, lambda d: d.place))),
    "left": ("survival", lambda doses: _part(
        _weighed(doses, lambda d: None if d.left is None else d.left / d.n))),
    "back": ("", lambda doses: _part(
        _weighed(doses, lambda d: None if d.recovered is None else d.recovered / d.n))),
}  # fmt: skip
"""Row of the table: the trend that it has, and the cell of a dose."""

_COSTS: dict[str, tuple[str, Callable[[pd.Series[Any]], str]]] = {
    "recall": ("recall", _share),
    "evidence": ("evidence_recall", _share),
    "p50 ms": ("retrieve_ms_p50", _ms),
    "p95 ms": ("retrieve_ms_p95", _ms),
    "tokens": ("served_tokens_mean", _tokens),
    "footprint": ("footprint_ratio", _ratio),
    "growth": ("growth_exponent", _ratio),
}
"""Column of the table: column of the frame, and how its seeds become one cell."""

_COST_NOTES = {
    "recall": "recall: set current values answered right.",
    "evidence": "evidence: right value among the items served.",
    "p50 ms": "p50, p95: wall time of a retrieval, median over seeds.",
    "tokens": "tokens: o200k_base, served to a query, mean.",
    "footprint": "footprint: active over true tokens.",
    "growth": "growth: slope of log active tokens over log turns.",
}
