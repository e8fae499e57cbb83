"""The table by family, pinned as text."""

from __future__ import annotations

import io

from rich.console import Console

from steeltrap.harness.record import Outcome, Record, RunSpec, Timing
from steeltrap.reports import layout, tables
from steeltrap.reports.table import abreast

Counts = dict[str, dict[str, list[int]]]


def record(system: str, by_family: Counts, seed: int = 0, script: str = "reported") -> Record:
    spec = RunSpec(
        system=system, settings={}, script=script, script_sha256="0" * 64, seed=seed,
        reader="oracle", limit=10, steeltrap="0.1.0",
    )  # fmt: skip
    outcome = Outcome(
        turns=9, steps=20, failed=0, answers={}, verdicts={}, recall=None, evidence_recall=None,
        by_family=by_family,
    )  # fmt: skip
    return Record(spec=spec, outcome=outcome, timing=Timing(phases={}))


SOUND: Counts = {
    "flip_flop": {"C2": [0, 2], "C1": [0, 6], "missing": [0, 4]},
    "long_message_lost": {"C1": [0, 3], "C4": [0, 0], "unrecoverable": [0, 1], "missing": [0, 3]},
    "cross_user_leak": {"C1": [0, 5], "leak": [0, 7], "missing": [0, 5]},
    "never_asked": {"C6": [0, 0]},
}
WEAK: Counts = {
    "flip_flop": {"C2": [1, 2], "C1": [2, 6], "missing": [0, 4]},
    "long_message_lost": {"C1": [0, 0], "C4": [0, 0], "unrecoverable": [0, 0], "missing": [3, 3]},
    "cross_user_leak": {"C1": [0, 5], "leak": [4, 7], "missing": [0, 5]},
    "never_asked": {"C6": [0, 0]},
}


def test_a_row_says_what_came_of_a_family() -> None:
    """Violated names its conditions, untested is unknown, silence is told, and rows nobody tested go."""
    grid = tables.families([record("weak", WEAK), record("sound", SOUND)])
    assert grid
    assert ["family", "weak", "sound"] == grid.header
    assert [
        ["flip_flop\nC2 C1", "C2 C1\n3/8", "held\n0/8"],
        ["long_message_lost\nC1 C5", "unknown\n0/0\n3 missing", "held\n0/4"],
        ["cross_user_leak\nC1 leak", "leak\n4/12", "held\n0/12"],
    ] == grid.rows


def test_seeds_are_pooled() -> None:
    """Counts of several seeds of one system are added up."""
    grid = tables.families([record("weak", WEAK), record("weak", SOUND, seed=1)])
    assert grid
    assert ["flip_flop\nC2 C1", "C2 C1\n3/16"] == grid.rows[0]


def test_a_name_beside_its_condition_is_counted_once() -> None:
    """Where the whole condition is counted, a name of it adds nothing."""
    both = {"a": {"C5": [1, 4], "unrecoverable": [1, 2]}, "b": {"C1": [0, 1]}}
    grid = tables.families([record("one", both)])
    assert grid
    assert ["a\nC5", "C5\n1/4"] == grid.rows[0]


def test_one_family_makes_no_table() -> None:
    """There is nothing to tell apart in a script of one family."""
    assert None is tables.families([record("weak", {"flip_flop": WEAK["flip_flop"]})])


def test_many_systems_stand_in_several_tables_on_a_console() -> None:
    """A console shows four systems abreast, for reported cases; a page shows all, for every script."""
    records = [record(f"system-{n}", SOUND) for n in range(6)]
    grid = tables.families(records)
    assert grid
    assert [5, 3] == [len(part.header) for part in abreast(grid, 4)]
    out = io.StringIO()
    layout.show(records, Console(file=out, width=80))
    assert 2 == out.getvalue().count("By family")
    assert 1 == layout.page(records).count("### By family")
    mixed = [record("one", SOUND, script="adversarial")]
    out = io.StringIO()
    layout.show(mixed, Console(file=out, width=80))
    assert "By family" not in out.getvalue()
    assert "### By family" in layout.page(mixed)
