"""What running cells at once gains, and what a cell costs before it runs; off by default."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from steeltrap.harness.composing import assembled, composed, configs

pytestmark = pytest.mark.benchmark

CPU_BOUND = ("system=bm25", "script=adversarial", "script.turns=1000", "seed=range(0,12)")
"""Cells of some seconds each, beside which a process costs little to start."""
ROUNDS = 1


def wall_s(folder: Path, root: Path, processes: int) -> float:
    """Wall time of a whole command, its report included."""
    folder.mkdir()
    began = time.perf_counter()
    subprocess.run(
        [sys.executable, "-m", "steeltrap", "run", *CPU_BOUND, f"processes={processes}"],
        cwd=folder, env=os.environ | {"PYTHONPATH": str(root / ".src")}, check=True,
        capture_output=True,
    )  # fmt: skip
    return time.perf_counter() - began


@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="needs two cores")
def test_two_processes_are_nearly_twice_as_fast_as_one(tmp_path: Path, root: Path) -> None:
    """Cells that keep a core busy end in 1/1.8 of the time; rounds are interleaved."""
    took = {1: 0.0, 2: 0.0}
    for turn in range(ROUNDS):
        for processes in took:
            took[processes] += wall_s(tmp_path / f"{turn}-{processes}", root, processes)
    print(f"one process {took[1]:.1f} s, two {took[2]:.1f} s: {took[1] / took[2]:.2f} times")
    assert took[1] / took[2] >= 1.8


def test_a_further_cell_of_known_options_costs_a_tenth() -> None:
    """What was composed for a choice of options is copied for every seed and setting of it."""

    def spent_s(make: object, tries: int) -> float:
        assert callable(make)
        began = time.process_time()
        for seed in range(tries):
            make(["system=gem", "script=retention", "script.turns=70", f"seed={seed}"])
        return (time.process_time() - began) / tries

    with configs():
        for make in (composed, assembled):
            make(["system=gem", "script=retention", "script.turns=70", "seed=99"])
        whole, copied = spent_s(composed, 20), spent_s(assembled, 200)
    print(f"composed {1000 * whole:.1f} ms, copied {1000 * copied:.1f} ms a cell")
    assert copied * 10 <= whole
