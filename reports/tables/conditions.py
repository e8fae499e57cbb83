"""The six conditions by system, and the violations by name."""

from __future__ import annotations

from collections.abc import Sequence

from steeltrap.harness.record import Record
from steeltrap.harness.stats import rate_interval
from steeltrap.harness.verdict import BEYOND, CONDITIONS, NAMES, Tally, merge
from steeltrap.reports.numbers import by_system
from steeltrap.reports.table import Numbers, Table, crossed
from steeltrap.reports.words import counts, of, percent, span, spans

__all__ = ["conditions", "names", "tally"]


def conditions(records: Sequence[Record]) -> Table | None:
    """Systems by the six conditions: rate, interval over seeds, violations over opportunities.

    None for public question sets, which put none of them to the test. A memory that failed at
    everything has its row: all unknown.
    """
    tested = (v.opportunities for r in records for v in r.outcome.verdicts.values())
    if not any(tested) and any(record.outcome.evidence for record in records):
        return None
    systems = by_system(records)
    numbers = [
        {"system": system, "condition": condition, **_condition(own, condition)}
        for system, own in systems.items()
        for condition in CONDITIONS
    ]
    notes = ["Rate, its 95% interval over seeds, and violations/opportunities."]
    notes += [*_beyond(systems), *_failed(systems)]
    return crossed(
        "conditions", "The six conditions", numbers, _said,
        down={"system": "system"}, across="condition", columns=CONDITIONS,
        notes=notes + _unseen(systems),
    )  # fmt: skip


def _condition(records: Sequence[Record], condition: str) -> Numbers:
    verdicts = [r.outcome.verdicts[condition] for r in records if condition in r.outcome.verdicts]
    violations = [verdict.violations for verdict in verdicts]
    opportunities = [verdict.opportunities for verdict in verdicts]
    blocked = any(tally.blocked for verdict in verdicts for tally in verdict.names.values())
    counted = of(sum(violations), sum(opportunities), blocked=blocked)
    return {
        "validity": merge(verdict.validity for verdict in verdicts),
        "rate": counted.pop("rate"),
        **span(rate_interval(violations, opportunities)),
        **counted,
        "seeds": len(verdicts),
    }


def _said(row: Numbers) -> str:
    counted = f"{row['violations']}/{row['opportunities']}"
    if row["validity"] == "held":
        return f"held\n{counted}"
    if row["validity"] == "violated":
        return "\n".join([percent(row["rate"]), *spans(row), counted])
    if row["opportunities"]:
        return f"unknown\n{counted}"
    return "unknown" if row["observable"] else "not\nobservable"


def _beyond(systems: dict[str, list[Record]]) -> list[str]:
    """What was violated beyond the six, so that nobody takes six held conditions for all."""
    lines = []
    for system, own in systems.items():
        found = {name: tally(own, BEYOND, name) for name in NAMES[BEYOND]}
        shown = [
            f"{name} {row['violations']}/{row['opportunities']}"
            for name, row in found.items()
            if row["violations"]
        ]
        if shown:
            lines.append(f"Beyond the six, {' '.join(system.split())}: {', '.join(shown)}.")
    return lines


def _failed(systems: dict[str, list[Record]]) -> list[str]:
    """How many steps of each system did not end in `ok`."""
    found = {
        system: (sum(r.outcome.failed for r in own), sum(r.outcome.steps for r in own))
        for system, own in systems.items()
    }
    return [
        f"{system}: {failed} of {steps} steps failed or ended in doubt; what they would have "
        f"shown is unknown."
        for system, (failed, steps) in found.items()
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


def names(records: Sequence[Record]) -> Table | None:
    """Violation names by system: counts over opportunities; None where none was tested."""
    systems = by_system(records)
    numbers: list[Numbers] = []
    for condition in (*CONDITIONS, BEYOND):
        for name in NAMES[condition]:
            found = {system: tally(own, condition, name) for system, own in systems.items()}
            if any(counts(row) != "-" for row in found.values()):
                about = {"condition": condition, "violation": name}
                numbers += [{"system": system, **about, **row} for system, row in found.items()]
    if not numbers:
        return None
    return crossed(
        "names", "Violations by name", numbers, counts,
        down={"": "condition", "violation": "violation"}, across="system", columns=[*systems],
        notes=["-: the script put it to no test."],
    )  # fmt: skip


def tally(records: Sequence[Record], condition: str, name: str) -> Numbers:
    """Violations of a name over its opportunities, of all records."""
    verdicts = [r.outcome.verdicts[condition] for r in records if condition in r.outcome.verdicts]
    tallies: list[Tally] = [v.names[name] for v in verdicts if name in v.names]
    return of(
        sum(one.violations for one in tallies),
        sum(one.opportunities for one in tallies),
        blocked=any(one.blocked for one in tallies),
    )
