"""What a worker costs beyond its memory: CPU time of both ends together; off by default.

Run with `python -m pytest -m benchmark` on an idle machine.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from statistics import median

import pytest

from steeltrap.adapters.flat import Flat
from steeltrap.harness.memory import Memory, Query, Utterance
from steeltrap.harness.remote import Remote

pytestmark = pytest.mark.benchmark

ROUNDS, OPERATIONS = 15, 500
BOUND_MS = 0.2


def operations(memory: Memory) -> None:
    """Small ones, half of them turns and half questions with ten items each."""
    for number in range(OPERATIONS // 2):
        said = Utterance(f"t{number}", "2026-03-02T10:00", "acme", "s1", "user", "Lunch was late.")
        memory.ingest(said)
        memory.retrieve(Query("p1", "2026-03-02T10:00", "acme", "When is the deadline?", 10))


def cpu_s(pid: int) -> float:
    """CPU time that another process has taken so far; in hundredths of a second."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")


def test_an_operation_costs_little_more_in_a_worker(tmp_path: Path) -> None:
    """Lines, pipes and waking each other cost both ends together under 0.2 ms an operation."""
    here = Flat(window_turns=10)
    there = Remote({"_target_": "steeltrap.adapters.flat.Flat", "window_turns": 10})
    here.open(tmp_path / "here")
    there.open(tmp_path / "there")
    assert there._worker is not None
    child = there._worker._process.pid
    operations(there)
    plain, parent = [], []
    child_before = cpu_s(child)
    for _ in range(ROUNDS):
        for memory, spent in ((here, plain), (there, parent)):
            start = time.process_time()
            operations(memory)
            spent.append(time.process_time() - start)
    child_s = (cpu_s(child) - child_before) / ROUNDS
    there.close()
    beyond_ms = 1000 * (median(parent) + child_s - median(plain)) / OPERATIONS
    print(f"{beyond_ms:.3f} ms an operation, {1000 * child_s / OPERATIONS:.3f} of it in the worker")
    assert beyond_ms < BOUND_MS
