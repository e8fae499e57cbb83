"""Claimed against measured: what makers say of a condition, and what was found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from steeltrap.harness.record import Record
from steeltrap.harness.verdict import CONDITIONS, merge
from steeltrap.reports.claims import Claim
from steeltrap.reports.explain import ASKS
from steeltrap.reports.facts import made_to_fail
from steeltrap.reports.figures.figure import Figure
from steeltrap.reports.figures.matrix import matrix
from steeltrap.reports.tables import percent

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib import figure as drawn

__all__ = ["claimed_and_measured"]

MARKS: Final = {"held": "yes", "some": "some", "violated": "no", "unknown": "unknown"}
_HALF: Final = 0.5
"""Of the opportunities: from so many on, a condition is violated and not held in part."""


def claimed_and_measured(
    systems: Mapping[str, Sequence[Record]], claims: Sequence[Claim]
) -> Figure | None:
    """A row a system, a column a condition; None where nothing is claimed of any of the systems.

    Runs whose model was made to fail are left out: nobody claimed anything of those.
    """
    import pandas as pd

    systems = {name: own for name, own in systems.items() if not any(map(made_to_fail, own))}
    said = {(claim.system, claim.condition): claim.claimed for claim in claims}
    if not any(_name(own) == system for own in systems.values() for system, _ in said):
        return None
    rows = [
        {
            "system": system,
            "condition": condition,
            "claimed": said.get((_name(own), condition), ""),
            **_measured(own, condition),
        }
        for system, own in systems.items()
        for condition in CONDITIONS
    ]
    caption = (
        "What was measured of each condition, with violations over opportunities pooled over "
        "seeds, and below it in grey what the makers claim. Tick: held; half circle: violated at "
        "fewer than half of the opportunities; cross: at half of them or more; question mark: not "
        "observable, or not enough was seen. Framed: claimed, and not so."
    )
    title = "Claimed against measured"
    return Figure("claimed-and-measured", title, caption, pd.DataFrame(rows), _draw)


def _name(records: Sequence[Record]) -> str:
    """The system as configured in this project, without what was set differently."""
    return records[0].spec.system.split(" ")[0]


def _measured(records: Sequence[Record], condition: str) -> dict[str, Any]:
    found = [record.outcome.verdicts.get(condition) for record in records]
    verdicts = [verdict for verdict in found if verdict]
    violations = sum(verdict.violations for verdict in verdicts)
    opportunities = sum(verdict.opportunities for verdict in verdicts)
    rate = violations / opportunities if opportunities else None
    measured: str = merge(verdict.validity for verdict in verdicts)
    if measured == "violated" and rate is not None and rate < _HALF:
        measured = "some"
    return {
        "measured": measured, "violations": violations, "opportunities": opportunities,
        "rate": rate,
    }  # fmt: skip


def _draw(data: pd.DataFrame) -> drawn.Figure:
    import pandas as pd

    return matrix(pd.DataFrame({
        "row": data["system"],
        "column": [f"{c}\n{ASKS[c].partition(':')[0]}" for c in data["condition"]],
        "mark": [MARKS[measured] for measured in data["measured"]],
        "words": [_words(row) for row in data.to_dict("records")],
        "framed": (data["claimed"] == "yes") & data["measured"].isin(["some", "violated"]),
        "beside": [f"claim: {said}" if said else "no claim" for said in data["claimed"]],
    }))  # fmt: skip


def _words(row: dict[Any, Any]) -> str:
    if not row["opportunities"]:
        return "unknown"
    counts = f"{row['violations']}/{row['opportunities']}"
    if row["measured"] in ("held", "unknown"):
        return f"{row['measured']}\n{counts}"
    return f"{percent(row['rate'])}\n{counts}"
