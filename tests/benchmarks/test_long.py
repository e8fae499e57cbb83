"""What a long life costs to compose, to drive and to check, in CPU time and memory; off by default.

Run with `python -m pytest -m benchmark -s tests/benchmarks/test_long.py` on an idle machine: it
prints the figures. What a million turns take is `-m slow` in the same file, and takes minutes.
Each figure is of a process of its own, so that nothing is warm and nothing is left from before.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Final, NamedTuple

import msgspec
import pytest

from steeltrap.adapters.flat import Flat
from steeltrap.harness.drive import drive
from steeltrap.harness.memory import Item, Query, Utterance
from steeltrap.harness.script import Script
from steeltrap.harness.tokens import count
from steeltrap.workloads.check import check
from steeltrap.workloads.compose import ScriptSettings, compose_file

SHORT, MEDIUM, LONG = 500, 5_000, 50_000
SIZES = (SHORT, MEDIUM, LONG)
TENFOLD: Final = (100_000, 1_000_000)
NEEDED_MS: Final = 0.2
"""CPU time that driving may take a turn beyond the memory's own."""
DECADE: Final = Path(__file__).parents[2] / "configs" / "script" / "decade.yaml"


class Cost(NamedTuple):
    """Of one kind of work on a life, in a process of its own."""

    turns: int
    ms: float
    """CPU time a turn, starting up left out."""
    mb: float
    """Resident at the end; it never shrinks on the way."""
    steps: int


class Timed(Flat):
    """A transcript of its last 20 turns, which knows how much CPU time it takes itself."""

    def __init__(self) -> None:
        super().__init__(window_turns=20)
        self.own_s = 0.0

    def ingest(self, turn: Utterance) -> None:
        """Append a turn."""
        start = time.process_time()
        super().ingest(turn)
        self.own_s += time.process_time() - start

    def retrieve(self, query: Query) -> Sequence[Item]:
        """The window."""
        start = time.process_time()
        found = super().retrieve(query)
        self.own_s += time.process_time() - start
        return found


def composed(turns: int, folder: Path) -> Callable[[], float]:
    """Compose a decade, or its like, into a file."""
    settings = msgspec.yaml.decode(DECADE.read_bytes()) | {"turns": turns}

    def work() -> float:
        compose_file(msgspec.convert(settings, ScriptSettings), 0, script(turns, folder))
        return 0.0

    return work


def driven(turns: int, folder: Path) -> Callable[[], float]:
    """Drive a memory through it from its file, the memory's own time left out."""
    memory = Timed()
    memory.open(folder)
    history = folder / f"{turns}.history.jsonl"

    def work() -> float:
        drive(memory, Script.stored(script(turns, folder)), history, limit=10)
        return memory.own_s

    return work


def checked(turns: int, folder: Path) -> Callable[[], float]:
    """Replay its truth."""

    def work() -> float:
        check(script(turns, folder))
        return 0.0

    return work


WORKS: Final = {"compose": composed, "drive": driven, "check": checked}


def script(turns: int, folder: Path) -> Path:
    return folder / f"{turns}.script.jsonl"


def cost(name: str, turns: int, folder: Path, tries: int = 1) -> Cost:
    """What a work costs, the least of several tries."""
    command = [sys.executable, __file__, name, str(turns), str(folder)]
    tried = [
        Cost(*json.loads(subprocess.run(command, check=True, capture_output=True).stdout))
        for _ in range(tries)
    ]
    least = min(tried, key=lambda one: one.ms)
    print(f"\n{name} {turns:,} turns: {least.ms:.3f} ms a turn, {least.mb:.0f} MB", end="")
    return least


def main(name: str, turns: int, folder: Path) -> None:
    """Do the work, and print what it cost."""
    count("The tables of the tokenizer are read before the clock starts.")
    work = WORKS[name](turns, folder)
    start = time.process_time()
    own_s = work()
    spent_s = time.process_time() - start - own_s
    resident_mb = import_module("psutil").Process().memory_info().rss / 2**20
    steps = len(Script.stored(script(turns, folder)).steps)
    print(json.dumps([turns, 1000 * spent_s / turns, resident_mb, steps]))


@pytest.fixture(scope="module")
def lives(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("lives")
    for turns in SIZES:
        cost("compose", turns, folder)
    return folder


@pytest.mark.benchmark
def test_composing_a_turn_costs_no_more_in_a_long_life(tmp_path: Path) -> None:
    """A turn of 100 000 costs at most a fifth more than a turn of 1 000."""
    short, long = cost("compose", 1_000, tmp_path, 3), cost("compose", 100_000, tmp_path)
    assert long.ms < 1.2 * short.ms


@pytest.mark.benchmark
def test_driving_a_turn_costs_no_more_in_a_long_life(lives: Path) -> None:
    """Under 0.2 ms a turn at 500 turns as at 50 000, and a step costs at most half as much again."""
    short, long = cost("drive", SHORT, lives, 5), cost("drive", LONG, lives, 2)
    assert max(short.ms, long.ms) < NEEDED_MS
    assert long.ms * LONG / long.steps < 1.5 * short.ms * SHORT / short.steps


@pytest.mark.benchmark
def test_driving_a_long_life_needs_no_more_memory(lives: Path) -> None:
    """Ten times the turns leave at most 10 MB more behind."""
    short, long = cost("drive", MEDIUM, lives), cost("drive", LONG, lives)
    assert long.mb < short.mb + 10


@pytest.mark.slow
def test_a_million_turns_need_no_more_memory(tmp_path: Path) -> None:
    """Ten times the turns take less than twice the memory and the same time a turn, to compose, to
    drive and to check."""
    for name in WORKS:
        short, long = (cost(name, turns, tmp_path) for turns in TENFOLD)
        assert long.ms < 1.5 * short.ms
        assert long.mb < 2 * short.mb


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]))
