"""What removal keeps: the three promises, each from what broke it."""

from __future__ import annotations

from steeltrap.harness.record import Effect, Outcome, Record, RunSpec, Timing
from steeltrap.harness.verdict import NAMES, ConditionVerdict, Tally
from steeltrap.reports.tables.promises import promises


def record(system: str, effects: list[Effect], **broken: int) -> Record:
    """A cell in which each name was tested ten times and broken so often."""
    verdicts = {
        condition: ConditionVerdict(
            condition, "unknown", 10, 0, {name: Tally(10, broken.get(name.replace("-", "_"), 0)) for name in names}
        )
        for condition, names in NAMES.items()
    }  # fmt: skip
    outcome = Outcome(
        turns=1, steps=1, failed=0, answers={}, verdicts=verdicts, recall=None,
        evidence_recall=None, effects=effects,
    )  # fmt: skip
    spec = RunSpec(
        system=system, settings={}, script="erase-unit", script_sha256="0", seed=0, reader="oracle",
        limit=10, steeltrap="0",
    )  # fmt: skip
    return Record(spec=spec, outcome=outcome, timing=Timing(phases={}))


def shown(what: str, n: int, differing: int, about: str = "existing") -> Effect:
    return Effect(twin="w", about=about, what=what, n=n, differing=differing)


def test_each_promise_stands_with_what_broke_it() -> None:
    """Counts of violations, then what differs from the twin, summed over twins."""
    effects = [shown("files", 20, 3), shown("files", 10, 1), shown("served", 50, 0)]
    grid = promises([record("leaky", effects, superseded_active=4, lost_history=2, trace=7)])
    assert grid is not None
    rows = {row[1]: row[2:] for row in grid.rows}
    assert rows["still active"] == ["4/10"]
    assert rows["not in the history"] == ["2/10"]
    assert rows["not to be had back"] == ["0/10"]
    assert rows["there in any way"] == ["7/10"]
    assert rows["in files"] == ["4/30"]
    assert rows["served to others' questions"] == ["0/50"]
    assert [row[0] for row in grid.rows if row[0]] == ["superseded", "archived", "erased"]


def test_what_could_not_be_seen_is_said() -> None:
    """A place that one system does not show is not observable there, and never held."""
    seen = record("seen", [shown("files", 20, 0)])
    unseen = record("unseen", [shown("served", 5, 0)])
    grid = promises([seen, unseen])
    assert grid is not None
    rows = {row[1]: row[2:] for row in grid.rows}
    assert rows["in files"] == ["0/20", "not obs."]


def test_without_an_erasure_there_is_no_table() -> None:
    """Twins of another kind say nothing of removal."""
    assert promises([record("any", [shown("served", 5, 1, about="asking")])]) is None
    assert promises([record("any", [])]) is None
