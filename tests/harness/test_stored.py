"""Stored runs: formats stay readable, and old histories are scored as they were.

Each folder below tests/stored holds a script, a history and the violations that it was found to
have. When a format or a rule changes on purpose, the folder is made again from its spec:

    steeltrap run experiment=figure-1 system=flat-window
"""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from steeltrap.harness.checks import score
from steeltrap.harness.history import fingerprint, read_events, read_header
from steeltrap.harness.readers import Oracle
from steeltrap.harness.script import Script
from steeltrap.harness.twins import compare
from steeltrap.harness.verdict import Violation
from steeltrap.workloads.check import check

STORED = sorted(
    path for path in (Path(__file__).parent.parent / "stored").iterdir() if path.is_dir()
)
RUNS = pytest.mark.parametrize("run", STORED, ids=lambda path: path.name)


def twins(run: Path, script: Script) -> list[tuple]:  # type: ignore[type-arg]
    return [
        compare(script, twin, run / "history.jsonl", run / "twins" / f"{twin.name}.history.jsonl")
        for twin in script.header.twins
    ]


@RUNS
def test_a_stored_history_is_scored_as_it_was(run: Path) -> None:
    """The violations found in a stored run are those that were found when it was stored."""
    script = Script.read(run / "script.jsonl")
    history = run / "history.jsonl"
    scored = score(
        script,
        read_events(history),
        capabilities=read_header(history).capabilities,
        reader=Oracle(),
        twins=twins(run, script),
    )
    lines = (run / "violations.jsonl").read_bytes().splitlines()
    assert [msgspec.json.decode(line, type=Violation) for line in lines] == scored.violations


@RUNS
def test_the_truth_of_a_stored_script_still_holds(run: Path) -> None:
    """The world says of a stored script what it said when it was stored."""
    path = run / "script.jsonl"
    assert read_header(run / "history.jsonl").script_sha256 == check(path).sha256()


@RUNS
def test_a_stored_history_has_the_fingerprint_it_had(run: Path) -> None:
    """The hash by which runs are compared does not change with the code."""
    assert (run / "fingerprint").read_text().strip() == fingerprint(run / "history.jsonl")
