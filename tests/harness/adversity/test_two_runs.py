"""Two commands in one folder at the same time."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from steeltrap.harness.history import read_events
from steeltrap.harness.record import read_record

SLOW = """
import time
from steeltrap.adapters.flat import Flat

class Slow(Flat):
    def ingest(self, turn):
        time.sleep(0.02)
        super().ingest(turn)
"""


def start(work: Path, root: Path, *words: str) -> subprocess.Popen[str]:
    env = os.environ | {"PYTHONPATH": os.pathsep.join([str(root / ".src"), str(work.parent)])}
    return subprocess.Popen(
        [sys.executable, "-m", "steeltrap", "run", *words],
        cwd=work, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("processes", [1, 2])
def test_two_commands_run_no_cell_twice(work: Path, root: Path, processes: int) -> None:
    """Each cell that two commands ask for is run by one of them; the other one finds it finished or
    names it as being run, and ends with what it could do. All files are whole."""
    (work.parent / "slowly.py").write_text(SLOW)
    common = ("system=slowly:Slow", "script=flip-flop", "script.turns=20", f"processes={processes}")
    both = [start(work, root, *common, f"seed={seeds}", "name=one") for seeds in ("0,1,2", "2,1,3")]
    said = []
    readers = [threading.Thread(target=lambda one=one: said.append(one.communicate(timeout=120))) for one in both]  # fmt: skip
    for reader in readers:
        reader.start()
    for reader in readers:
        reader.join()
    errors = "".join(err for _, err in said)
    assert "Traceback" not in errors
    assert {0, 1} >= {one.returncode for one in both}, said
    if any(one.returncode for one in both):
        assert "another process is running this; wait for it" in " ".join(errors.split())
    runs = work / "runs" / "one"
    records = {read_record(path).spec.seed: path for path in runs.rglob("record.json")}
    assert {0, 1, 2, 3} == set(records)
    for path in records.values():
        events = list(read_events(path.with_name("history.jsonl")))
        assert list(range(len(events))) == [event.i for event in events]
        ran = [
            line for line in errors.splitlines() if f"seed {read_record(path).spec.seed}: " in line
        ]
        assert 1 == sum(line.endswith(" s") for line in ran), errors
    assert not list(runs.rglob("*.part"))


def test_a_cell_that_is_held_is_named_and_others_go_on(commands: Any, work: Path) -> None:
    """A busy cell alone is left out, by a sentence; afterwards the same command runs it."""
    asked = ("run", "system=flat", "script=flip-flop", "script.turns=3", "seed=0,1")
    commands(work, *asked)
    (busy,) = (work / "runs").rglob("flat-flip-flop-0-*")
    (busy / "record.json").unlink()
    from steeltrap.harness.store import read_cell

    cell = read_cell(busy)
    cell.hold()
    try:
        ended = commands(work, *asked, code=1)
        words = " ".join(ended.err.split())
        assert "flat, seed 0: " in words
        assert "another process is running this" in words
        assert "finished before" in words
        assert not (busy / "record.json").exists()
    finally:
        cell.release()
    commands(work, *asked)
    assert (busy / "record.json").exists()
