"""How much of a failure is the model's: rates against a dial of the ideal model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from steeltrap.harness.record import Record
from steeltrap.harness.verdict import CONDITIONS, merge
from steeltrap.reports.dialled import DIALS, along_a_dial
from steeltrap.reports.table import Table, crossed
from steeltrap.reports.words import percent

__all__ = ["dials"]


def dials(records: Sequence[Record]) -> Table | None:
    """The rates against the one dial that differs between records; None where none or several do."""
    found = along_a_dial(records)
    if found is None:
        return None
    numbers = [
        {
            "measure": what,
            "system": system,
            found.dial: share,
            "rate": rate(found.at(system, share)),
        }
        for what, rate in _MEASURES.items()
        for system in found.systems
        for share in found.shares
    ]
    return crossed(
        f"dial-{found.dial.replace('_', '-')}", f"Against the {DIALS[found.dial]}", numbers,
        lambda row: "-" if row["rate"] is None else percent(row["rate"]),
        down={"": "measure", "system": "system"}, across=found.dial, head=lambda share: f"{share:g}",
        once=True,
    )  # fmt: skip


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
