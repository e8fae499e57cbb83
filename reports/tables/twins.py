"""What reading does: doses and responses, and what twins showed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from steeltrap.harness.record import Dose, DoseResponse, Effect, Record
from steeltrap.harness.stats import Interval, mean_interval, rate_interval
from steeltrap.reports.numbers import by_system
from steeltrap.reports.table import Numbers, Table, crossed, listed
from steeltrap.reports.words import percent, size, span

__all__ = ["doses", "twins"]


class _Response(NamedTuple):
    """A line of the table of doses."""

    trend: str
    """Its trend, as `DoseResponse.trends` names it."""
    unit: str
    value: Callable[[Dose], float | None]
    """Of the units at one dose, a mean."""


_DOSES: Final = {
    "rise": _Response("salience", "salience", lambda dose: dose.rise),
    "place": _Response("standing", "place", lambda dose: dose.place),
    "left": _Response("survival", "share", lambda dose: _part(dose.left, dose.n)),
    "back": _Response("", "share", lambda dose: _part(dose.recovered, dose.n)),
}
_TREND: Final = "trend"


def _part(some: int | None, n: int) -> float | None:
    return None if some is None else some / n


def doses(records: Sequence[Record]) -> Table | None:
    """Systems by what answers how often a unit is read; None where the script gives no doses."""
    found = {
        system: [r.outcome.dose for r in own if r.outcome.dose]
        for system, own in by_system(records).items()
    }
    given = sorted({dose.reads for own in found.values() for one in own for dose in one.doses})
    if not given:
        return None
    numbers: list[Numbers] = []
    for system, own in found.items():
        for what, response in _DOSES.items():
            about = {"system": system, "response": what, "unit": response.unit}
            at = {str(reads): _weighed(own, reads, response.value) for reads in given}
            if any(value is not None for value in at.values()):
                numbers += [{**about, "reads": r, "value": v, **span(None)} for r, v in at.items()]
                numbers.append({**about, "reads": _TREND, **_trend(own, response.trend)})
    notes = [
        f"Columns: times read; {sum(one.groups for one in next(iter(found.values())))} groups of "
        "units that are alike otherwise.",
        "place: among its group, after the reads. rise: of salience, since before the first read. "
        "left: still listed (or served) after pressure; back: had back by recovery.",
        "trend: pairs that moved with the dose less those against it, over all pairs (-1 to 1), "
        "with its 95% interval over the groups of all seeds: doses were drawn for each group.",
    ]
    return crossed(
        "doses", "Dose and response", numbers, _dose_said,
        down={"system": "system", "": "response"}, across="reads",
        columns=[*map(str, given), _TREND], notes=notes,
    )._replace(across=False)  # fmt: skip


def _weighed(
    own: Sequence[DoseResponse], reads: int, value: Callable[[Dose], float | None]
) -> float | None:
    """The mean over the units at a dose, as far as the value is known."""
    at_dose = [dose for one in own for dose in one.doses if dose.reads == reads]
    known = [(dose.n, v) for dose in at_dose if (v := value(dose)) is not None]
    return sum(n * v for n, v in known) / sum(n for n, _ in known) if known else None


def _trend(own: Sequence[DoseResponse], what: str) -> dict[str, Any]:
    groups = [value for one in own for value in one.trends.get(what, ())]
    mean = sum(groups) / len(groups) if groups else None
    return {"value": mean, **span(mean_interval(groups)), "unit": _TREND}


def _dose_said(row: Numbers) -> str:
    value, low, high = row["value"], row["low"], row["high"]
    if value is None:
        return "-"
    if row["unit"] == _TREND:
        spread = [] if low is None or low == high else [f"{low:+.2f} to {high:+.2f}"]
        return "\n".join([f"{value:+.2f}", *spread])
    return percent(value) if row["unit"] == "share" else f"{value:.2f}"


# ---------------------------------------------------------------- twins


def twins(records: Sequence[Record]) -> Table | None:
    """What twins showed but for reading (C6), by what differs in them; None without such twins."""
    found: dict[tuple[str, str, str], list[Effect]] = {}
    for system, own in by_system(records).items():
        for record in own:
            for effect in record.outcome.effects:
                found.setdefault((system, effect.about, effect.what), []).append(effect)
    if not found:
        return None
    numbers = [
        {"system": system, "twin": about, "what": what, **_effect(effects)}
        for (system, about, what), effects in found.items()
    ]
    measures = {e.what: e.measure for effects in found.values() for e in effects if e.measure}
    notes = [
        "differ: points at which a run differs from its twin, of those compared; value: the size, "
        "with its 95% interval. null: the same between runs of one script.",
        *(f"{what}: {measure}." for what, measure in measures.items()),
    ]
    columns: list[tuple[str, Any]] = [
        ("system", "system"), ("twin", "twin"), ("what", "what"),
        ("differ", lambda row: f"{row['differing']}/{row['points']}"),
        ("null", lambda row: _known(row["null_differing"], str)),
        ("value", _value_said),
        ("null", lambda row: _known(row["null_value"], size)),
    ]  # fmt: skip
    return listed("twins", "What twins showed", numbers, columns, about=("system", "twin", "what"), notes=notes)  # fmt: skip


def _known(value: Any, say: Callable[[Any], str]) -> str:
    return "-" if value is None else say(value)


def _value_said(row: Numbers) -> str:
    if row["value"] is None:
        return "-"
    low, high = row["low"], row["high"]
    spread = [] if low is None or low == high else [f"{size(low)}–{size(high)}"]
    return "\n".join([size(row["value"]), *spread])


def _effect(effects: Sequence[Effect]) -> Numbers:
    """One effect over all twins and seeds."""
    nulls = [effect.null for effect in effects if effect.null is not None]
    sized = [effect for effect in effects if effect.value is not None and effect.n]
    null_values = [e.null_value * e.n for e in sized if e.null_value is not None]
    points = sum(effect.n for effect in sized)
    all_null = bool(points) and len(null_values) == len(sized)
    return {
        "differing": sum(effect.differing for effect in effects),
        "points": sum(effect.n for effect in effects),
        "null_differing": sum(nulls) if len(nulls) == len(effects) else None,
        "value": sum((e.value or 0.0) * e.n for e in sized) / points if points else None,
        **span(_interval(sized) if points else None),
        "null_value": sum(null_values) / points if all_null else None,
        "measure": next((effect.measure for effect in effects if effect.measure), ""),
    }


def _interval(effects: Sequence[Effect]) -> Interval | None:
    """The interval of a pooled size: over twins, or the widest of their own where all agree."""
    over = rate_interval([(e.value or 0.0) * e.n for e in effects], [e.n for e in effects])
    if over is not None and over.low != over.high:
        return over
    own = [(e.low, e.high) for e in effects if e.low is not None and e.high is not None]
    return Interval(min(o[0] for o in own), max(o[1] for o in own)) if own else None
