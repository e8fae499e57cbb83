"""What it costs to score a long life, in CPU time and in memory; off by default.

Run with `python -m pytest -m benchmark -s tests/benchmarks/test_scoring.py` on an idle machine: it
prints the figures. What a million turns take is `-m slow` in the same file, and takes minutes.
"""

from __future__ import annotations

import math
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import Final

import msgspec
import pytest

from steeltrap.adapters.flat import Flat
from steeltrap.harness.checks import score
from steeltrap.harness.drive import drive
from steeltrap.harness.history import read_events, read_header
from steeltrap.harness.readers import Oracle
from steeltrap.harness.script import Script
from steeltrap.workloads.compose import ScriptSettings, compose_file

TURNS = 50_000
SIZES = (12_500, 25_000, TURNS, 100_000)
LONG = (100_000, 1_000_000)
NEEDED_PER_S: Final = 50_000
"""Turns that are scored in a second of one core."""


def lived(root: Path, turns: int, folder: Path) -> Path:
    """The folder of a life of ten years, or its like, of a memory that keeps its last 20 turns."""
    folder = folder / str(turns)
    folder.mkdir()
    settings = yaml_settings(root) | {"turns": turns}
    script = compose_file(msgspec.convert(settings, ScriptSettings), 0, folder / "script.jsonl")
    memory = Flat(window_turns=20)
    memory.open(folder)
    drive(memory, script, folder / "history.jsonl", limit=10)
    return folder


def yaml_settings(root: Path) -> dict[str, object]:
    """`script=decade` as it stands in configs."""
    text = (root / "configs" / "script" / "decade.yaml").read_bytes()
    found: dict[str, object] = msgspec.yaml.decode(text)
    return found


def scored(folder: Path) -> int:
    """Score a life from its files; the number of turns."""
    history = folder / "history.jsonl"
    able = read_header(history).capabilities
    script = Script.stored(folder / "script.jsonl")
    return score(script, read_events(history), capabilities=able, reader=Oracle()).outcome.turns


def cpu_s(folder: Path, tries: int) -> float:
    """CPU time of scoring a life, the least of several tries."""
    best = math.inf
    for _ in range(tries):
        start = time.process_time()
        scored(folder)
        best = min(best, time.process_time() - start)
    return best


@pytest.fixture(scope="module")
def lives(root: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[int, Path]:
    folder = tmp_path_factory.mktemp("lives")
    return {turns: lived(root, turns, folder) for turns in SIZES}


@pytest.mark.benchmark
def test_scoring_keeps_up(lives: dict[int, Path]) -> None:
    """A life of 50 000 turns is scored from its files at 50 000 turns a second of one core."""
    spent_s = cpu_s(lives[TURNS], tries=5)
    print(f"\n{TURNS / spent_s:,.0f} turns a second, {1e6 * spent_s / TURNS:.1f} us a turn")
    assert spent_s <= TURNS / NEEDED_PER_S


@pytest.mark.benchmark
def test_scoring_grows_with_the_turns(lives: dict[int, Path]) -> None:
    """Beyond its first turns a longer life costs what its turns cost: an exponent below 1.05."""
    costs = {turns: cpu_s(folder, tries=3) for turns, folder in lives.items()}
    low, high = SIZES[1], SIZES[-1]
    grown = math.log(costs[high] / costs[low]) / math.log(high / low)
    told = ", ".join(f"{turns:,}: {cost:.2f} s" for turns, cost in costs.items())
    print(f"\n{told}; exponent {grown:.2f}")
    assert grown <= 1.05


MEASURE = """
import resource, sys, time
from importlib import util
from pathlib import Path
spec = util.spec_from_file_location("scoring", sys.argv[1])
scoring = util.module_from_spec(spec)
spec.loader.exec_module(scoring)
start = time.process_time()
turns = scoring.scored(Path(sys.argv[2]))
spent_s = time.process_time() - start
print(turns, spent_s, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
"""


def measured(folder: Path) -> tuple[float, int]:
    """CPU time in seconds and peak resident memory in MB of a process that scores a life."""
    command = [sys.executable, "-c", MEASURE, __file__, str(folder)]
    told = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    return float(told[1]), int(told[2])


@pytest.mark.slow
def test_a_million_turns_need_no_more_memory(root: Path, tmp_path: Path) -> None:
    """Ten times the turns take less than twice the memory, and the same time a turn twice at most."""
    short, long = (measured(lived(root, turns, tmp_path)) for turns in LONG)
    told = partial("{:,} turns: {:.1f} s, {} MB".format)
    print(f"\n{told(LONG[0], *short)}; {told(LONG[1], *long)}")
    assert long[1] < 2 * short[1]
    assert long[0] < 20 * short[0]
