"""How what a system takes grows with the length of a life."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from steeltrap.harness.record import Record
from steeltrap.harness.stats import mean_interval
from steeltrap.reports.growth import (
    COSTS,
    MAIN,
    SUMS,
    exponent,
    grown,
    late,
    reached,
    reading,
)
from steeltrap.reports.numbers import by_system
from steeltrap.reports.table import Numbers, Table, crossed
from steeltrap.reports.words import size, span

__all__ = ["growth", "growth_costs"]

_SHOWN: Final = (100, 1000, 10_000, 50_000, 100_000, 1_000_000)
"""Lengths that are shown; the numbers have all."""
_END: Final = "end"
"""Where a system came to."""


def growth(records: Sequence[Record]) -> Table | None:
    """Systems by the exponents of what they take; None where no life was long enough."""
    systems, found = by_system(grown(records)), _found(records)
    numbers = [
        {"system": system, **_came(own), "cost": cost, **_grows(own, cost)}
        for system, own in systems.items()
        for cost in found
    ]
    if not numbers:
        return None
    shown = [cost for cost in MAIN if cost in found]
    lengths = {str(row["reached"]): f"{row['reached']:,}" for row in numbers}
    return crossed(
        "growth", "How it grows with the length of a life", numbers, _exponent_said,
        down={"system": "system", "turns": "reached"}, across="cost", columns=shown,
        head=lambda cost: COSTS[cost].head, said=lengths, notes=[*_meant(numbers, shown), *_ended(systems)],
    )._replace(about=("system", "cost"))  # fmt: skip


def _found(records: Sequence[Record]) -> list[str]:
    """The costs of which any of the records has some, in the order in which they are read."""
    found = {
        cost
        for record in records
        for at in record.timing.growth
        for cost, value in at.costs.items()
        if value
    }
    return [cost for cost in COSTS if cost in found]


def _came(records: Sequence[Record]) -> Numbers:
    """How far the shortest of a system's runs came, and why it ended."""
    shortest = min(records, key=reached)
    return {"reached": reached(shortest), "stopped": shortest.outcome.stopped}


def _grows(records: Sequence[Record], cost: str) -> Numbers:
    found = exponent(records, cost)
    told = found is not None and (cost not in SUMS or found.over == "seeds")
    return {
        "exponent": found.exponent if found else None,
        "low": found.low if found and told else None,
        "high": found.high if found and told else None,
        "reading": reading(found) if told else "",
        "late": late(records, cost),
        "over": found.over if found and told else "",
        "points": found.points if found else None,
        "seeds": len(records),
    }


def _exponent_said(row: Numbers) -> str:
    if row["exponent"] is None:
        return "-" if row["late"] is None else f"late {_two(row['late'])}"
    lines = [_two(row["exponent"])]
    if row["low"] is not None:
        lines[0] += f" ±{_two(row['high'] - row['exponent'])}"
    if row["late"] is not None:
        lines.append(f"late {_two(row['late'])}")
    return "\n".join([*lines, *([row["reading"]] if row["reading"] else [])])


def _two(value: float) -> str:
    """With two digits; nought without a sign."""
    return f"{round(value, 2) + 0.0:.2f}"


def _meant(numbers: Sequence[Numbers], shown: Sequence[str]) -> Iterator[str]:
    yield (
        "Exponent x of a cost that grows as turns to the power x, by least squares of logarithms; a "
        "cost at n turns is that of the turns from 0.8 n to n. "
        f"{'; '.join(f'{COSTS[cost].head}: {COSTS[cost].words}' for cost in shown)}."
    )
    over = {row["over"] for row in numbers}
    if "points" in over:
        yield "±: Student's 95% interval by the distances of the points from the line, four at least."
    if "seeds" in over:
        yield "±: Student's 95% interval over seeds, where there are three at least."
    yield (
        "late: the slope over the last tenfold of the life; where a cost has a fixed part the whole "
        "line is flatter. life: a sum, so its points hang together and one seed has no interval."
    )
    yield (
        "flat: the interval lies below 0.1 (falling: below -0.1); sublinear: below 1; superlinear: "
        "above 1; linear: it holds 1 and lies within 0.5 and 1.5; unclear: it holds 1 and more."
    )
    known = [row for row in numbers if row["cost"] == "true_tokens"]
    if truth := max(known, key=lambda row: row["reached"], default=None):
        said = _exponent_said(truth).split("\n")
        yield f"What is worth keeping grows alike for all (tokens): {', '.join(said)}."


def _ended(systems: dict[str, list[Record]]) -> Iterator[str]:
    """Why runs ended before their scripts did."""
    for system, own in systems.items():
        for why in dict.fromkeys(r.outcome.stopped for r in own if r.outcome.stopped):
            yield f"{' '.join(system.split())} ended early: {why}."


# ---------------------------------------------------------------- the costs themselves


def growth_costs(records: Sequence[Record], *, brief: bool = False) -> Table | None:
    """Costs and systems by the length of a life; None where no life was long enough.

    Args:
        records: of a comparable group.
        brief: the main costs alone.
    """
    found = [cost for cost in _found(records) if not brief or cost in MAIN]
    numbers = [
        {"cost": cost, "system": system, **row}
        for cost in found
        for system, own in by_system(grown(records)).items()
        for row in _over_life(own, cost)
    ]
    if not numbers:
        return None
    there = {row["at"] for row in numbers}
    ends = {row["turns"] for row in numbers if row["at"] == _END}
    columns = [str(turns) for turns in _SHOWN if str(turns) in there]
    columns += [] if ends <= {*_SHOWN} else [_END]
    return crossed(
        "growth-costs", "What it takes at lengths of a life, in turns", numbers, _cost_said,
        down={"cost": "cost", "system": "system"}, across="at",
        columns=columns,
        head=lambda at: at if at == _END else f"{int(at):,}",
        said={cost: COSTS[cost].words for cost in found}, once=True,
        notes=[
            "Times are the system's own, without its models: the median of the window, mean over "
            "seeds. Tokens are those of o200k_base. What is active, on disk and worth keeping is what "
            "was seen last. whole life: all that keeping the turns took up to then, without questions.",
            *(["end: where a system came to."] if _END in columns else []),
        ],
    )  # fmt: skip


def _over_life(records: Sequence[Record], cost: str) -> list[Numbers]:
    """A cost at each length that any run came to, and where the last one ended again."""
    lengths = sorted({at.turns for record in records for at in record.timing.growth})
    rows = [
        {"at": str(turns), "turns": turns, **_pooled(values)}
        for turns in lengths
        if (values := _values(records, cost, turns))
    ]
    return [*rows, *({**row, "at": _END} for row in rows if row["turns"] == lengths[-1])]


def _values(records: Sequence[Record], cost: str, turns: int) -> list[float]:
    return [
        at.costs[cost]
        for record in records
        for at in record.timing.growth
        if at.turns == turns and cost in at.costs
    ]


def _pooled(values: Sequence[float]) -> Numbers:
    mean = sum(values) / len(values)
    return {"value": mean, **span(mean_interval(values)), "seeds": len(values)}


def _cost_said(row: Numbers) -> str:
    return size(row["value"] / COSTS[row["cost"]].of_unit)
