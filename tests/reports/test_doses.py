"""The table of doses: what answers how often a unit is read, pooled over seeds."""

from __future__ import annotations

from steeltrap.harness.record import (
    Dose,
    DoseResponse,
    Outcome,
    Percentiles,
    Record,
    RunSpec,
    Timing,
)
from steeltrap.reports import tables


def record(system: str, seed: int, dose: DoseResponse | None) -> Record:
    spec = RunSpec(
        system=system, settings={}, script="dose", script_sha256="0" * 64, seed=seed,
        reader="oracle", limit=10, steeltrap="0.1.0",
    )  # fmt: skip
    outcome = Outcome(
        turns=300, steps=900, failed=0, answers={}, verdicts={}, recall=None,
        evidence_recall=None, dose=dose,
    )  # fmt: skip
    return Record(
        spec=spec, outcome=outcome, timing=Timing(phases={"retrieve": Percentiles(1, 1, 1, 1, 1)})
    )


def seen(n: int, left: int, rise: float | None, trends: dict[str, list[float]]) -> DoseResponse:
    unread = Dose(reads=0, n=n, left=0, place=2.0, rise=0.0 if rise is not None else None)
    often = Dose(reads=20, n=n, left=left, place=1.0, rise=rise)
    return DoseResponse(groups=n, doses=[unread, often], trends=trends)


def test_doses_are_pooled_over_seeds() -> None:
    """Shares are of all units of a dose, means weigh seeds by their units, trends are over groups."""
    grid = tables.doses([
        record("gem", 0, seen(2, 2, 6.0, {"salience": [1.0, 1.0], "survival": [1.0, 0.0]})),
        record("gem", 1, seen(4, 1, 3.0, {"salience": [1.0] * 4, "survival": [0.0, 0.0, 0.0, 1.0]})),
    ])  # fmt: skip
    assert grid
    assert ["system", "", "0", "20", "trend"] == grid.header
    rows = {row[1]: row for row in grid.rows}
    assert ["gem", "rise", "0.00", "4.00", "+1.00"] == rows["rise"]
    assert ["gem", "place", "2.00", "1.00", "-"] == rows["place"]
    assert ["gem", "left", "0.0%", "50.0%"] == rows["left"][:4]
    assert rows["left"][4].startswith("+0.33\n")
    assert "back" not in rows
    assert "6 groups" in grid.notes[0]


def test_what_is_not_visible_has_no_row() -> None:
    """A system without salience has no row of it; one without doses is not in the table."""
    grid = tables.doses([
        record("vector", 0, seen(2, 2, None, {"standing": [0.0, 0.0]})),
        record("flat", 0, None),
    ])  # fmt: skip
    assert grid
    assert [("vector", "place"), ("vector", "left")] == [(row[0], row[1]) for row in grid.rows]


def test_without_doses_there_is_no_table() -> None:
    """Scripts that give no doses have none."""
    assert tables.doses([record("flat", 0, None)]) is None
