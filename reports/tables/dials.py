"""How much of a failure is the model's: rates against a dial of the ideal model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from steeltrap.harness.record import Record
from steeltrap.harness.verdict import CONDITIONS, merge
from steeltrap.reports.facts import distinct
from steeltrap.reports.numbers import once
from steeltrap.reports.table import Table, crossed
from steeltrap.reports.words import percent

__all__ = ["dials"]

_DIALS: Final = {
    "missed": "share of facts missed",
    "wrong_host": "share of facts put to another topic",
    "overlooked": "share of contradictions overlooked",
    "invented": "facts invented for each that was told",
}
_FEWEST: Final = 3
"""Points that make a curve."""


def dials(records: Sequence[Record]) -> Table | None:
    """The rates against the one dial that differs between records; None where none or several do."""
    ideal = [record for record in records if record.spec.model.get("name") == "ideal"]
    values = {dial: sorted({r.spec.model.get(dial, 0.0) for r in ideal}) for dial in _DIALS}
    turned = [dial for dial, found in values.items() if len(found) >= _FEWEST]
    if len(turned) != 1 or any(len(values[dial]) > 1 for dial in _DIALS if dial not in turned):
        return None
    (dial,) = turned
    points: dict[tuple[str, float], list[Record]] = {}
    for record in ideal:
        points.setdefault((_system(record, dial), record.spec.model[dial]), []).append(record)
    numbers = [
        {"measure": what, "system": system, dial: share, "rate": rate(once(points.get((system, share), [])))}
        for what, rate in _MEASURES.items()
        for system in distinct(system for system, _ in points)
        for share in values[dial]
    ]  # fmt: skip
    return crossed(
        f"dial-{dial.replace('_', '-')}", f"Against the {_DIALS[dial]}", numbers,
        lambda row: "-" if row["rate"] is None else percent(row["rate"]),
        down={"": "measure", "system": "system"}, across=dial, head=lambda share: f"{share:g}",
        once=True,
    )  # fmt: skip


def _system(record: Record, dial: str) -> str:
    """The system's name without the setting of the dial."""
    parts = record.spec.system.split(" ")
    return " ".join(part for part in parts if not part.startswith(f"model.{dial}="))


def _rate(condition: str) -> Callable[[Sequence[Record]], float | None]:
    """Violations over opportunities, pooled over seeds; None where the condition is unknown."""

    def rate(records: Sequence[Record]) -> float | None:
        outcomes = [record.outcome for record in records]
        verdicts = [one.verdicts[condition] for one in outcomes if condition in one.verdicts]
        opportunities = sum(verdict.opportunities for verdict in verdicts)
        violations = sum(verdict.violations for verdict in verdicts)
        unknown = merge(verdict.validity for verdict in verdicts) == "unknown"
        return None if unknown or not opportunities else violations / opportunities

    return rate


def _recall(records: Sequence[Record]) -> float | None:
    found: list[Any] = [r.outcome.recall for r in records if r.outcome.recall is not None]
    return sum(found) / len(found) if found else None


_MEASURES: Final[dict[str, Callable[[Sequence[Record]], float | None]]] = {
    **{condition: _rate(condition) for condition in CONDITIONS if condition != "C6"},
    "recall": _recall,
}
