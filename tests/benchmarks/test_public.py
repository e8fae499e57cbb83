"""Public data within bounds of time and memory; off by default.

Run with `python -m pytest -m benchmark tests/benchmarks/test_public.py`, with the data (see
`STEELTRAP_DATA`). Bounds are for two cores of an ordinary machine, in CPU time of all processes, so
that a busy machine changes little.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.benchmark

LONGEST_S = {"bm25": 120, "vector": 900}
MOST_BYTES = 2e9


@pytest.mark.parametrize("system", LONGEST_S)
def test_retrieval_over_longmemeval_s(system: str, data: Path, tmp_path: Path) -> None:
    """All of S, 499 lives: `bm25` in two minutes, `vector` with the default embedder in fifteen,
    and neither takes 2 GB."""
    command = ["run", "experiment=longmemeval", f"system={system}", f"runs={tmp_path}"]
    child = subprocess.Popen(
        [sys.executable, "-m", "steeltrap", *command, f"script.path={data / 'longmemeval'}"],
        stdout=subprocess.DEVNULL,
    )
    _, status, used = os.wait4(child.pid, 0)
    assert 0 == os.waitstatus_to_exitcode(status)
    spent_s = used.ru_utime + used.ru_stime
    print(f"{system}: {spent_s:.0f} s of CPU, {used.ru_maxrss / 1e6:.2f} GB")
    assert spent_s < LONGEST_S[system]
    assert used.ru_maxrss * 1024 < MOST_BYTES
