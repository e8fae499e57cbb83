"""What the harness costs beyond the memories, in CPU time; off by default.

Run with `python -m pytest -m benchmark` on an idle machine: growth is judged by ratios within one
run, and the few absolute bounds are for one core of an ordinary machine.
"""

from __future__ import annotations

import math
import time
import tracemalloc
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from steeltrap.adapters.flat import Flat
from steeltrap.harness import tokens
from steeltrap.harness.checks import score
from steeltrap.harness.drive import drive
from steeltrap.harness.history import read_events, read_header
from steeltrap.harness.readers import Oracle
from steeltrap.harness.script import Script
from steeltrap.workloads.compose import ScriptSettings, compose

pytestmark = pytest.mark.benchmark

SHORT = 500
SIZES = (1_000, 10_000, 100_000)


class Driven(NamedTuple):
    """A recorded run of a memory that does next to nothing."""

    script: Script
    history: Path
    beyond_ms: float
    """CPU time of the driver, without the memory's own."""


def made(turns: int) -> Script:
    return compose(ScriptSettings(name="adversarial", turns=turns), 0)


@cache
def long_script(turns: int) -> Script:
    return made(turns)


def cpu_s(work: Callable[[], object], tries: int = 1) -> float:
    """CPU time of some work, the least of several tries."""
    best = math.inf
    for _ in range(tries):
        start = time.process_time()
        work()
        best = min(best, time.process_time() - start)
    return best


def driven(script: Script, folder: Path) -> Driven:
    history = folder / f"{script.turns}.jsonl"
    history.unlink(missing_ok=True)
    memory = Flat(window_turns=20)
    memory.open(folder)
    spent_ms = 1000 * cpu_s(lambda: drive(memory, script, history, limit=10))
    own_ms = sum(event.ms for event in read_events(history))
    return Driven(script, history, spent_ms - own_ms)


def scored(run: Driven) -> object:
    tokens.count.cache_clear()  # a long run does not fit into it, so a short one may not either
    return score(
        run.script,
        read_events(run.history),
        capabilities=read_header(run.history).capabilities,
        reader=Oracle(),
    )


def exponent(costs: dict[int, float]) -> float:
    """The power of n with which a cost grew from the smallest to the largest n."""
    low, high = min(costs), max(costs)
    return math.log(costs[high] / costs[low]) / math.log(high / low)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[int, Driven]]:
    folder = tmp_path_factory.mktemp("runs")
    made(50)  # loads words and token ranks
    yield {turns: driven(long_script(turns), folder) for turns in SIZES}
    long_script.cache_clear()


def test_composing_500_turns() -> None:
    """Composing and rendering 500 turns, truth included, takes under 0.3 s."""
    made(50)
    assert cpu_s(lambda: made(SHORT), tries=3) < 0.3


def test_composing_costs_the_same_a_turn() -> None:
    """A turn of a script of 100 000 costs what a turn of 1 000 costs."""
    made(50)
    costs = {turns: cpu_s(lambda turns=turns: long_script(turns)) for turns in SIZES}  # type: ignore[misc]
    assert exponent(costs) < 1.1, costs


def test_driving_a_turn(tmp_path: Path) -> None:
    """Driving and recording cost under 0.2 ms a turn beyond the memory's own time."""
    script = made(SHORT)
    least = min(driven(script, tmp_path).beyond_ms for _ in range(3))
    assert least / SHORT < 0.2


def test_driving_costs_the_same_a_turn(runs: dict[int, Driven]) -> None:
    """Driving does not slow down with the length of the run."""
    costs = {turns: run.beyond_ms for turns, run in runs.items()}
    assert exponent(costs) < 1.1, costs


def test_scoring_500_turns(tmp_path: Path) -> None:
    """Scoring the history of 500 turns takes under 0.5 s."""
    run = driven(made(SHORT), tmp_path)
    assert cpu_s(lambda: scored(run), tries=3) < 0.5


def test_scoring_grows_linearly(runs: dict[int, Driven]) -> None:
    """Scoring time grows with the length of the run by an exponent of at most 1.05."""
    costs = {turns: cpu_s(lambda run=run: scored(run)) for turns, run in runs.items()}  # type: ignore[misc]
    assert exponent(costs) <= 1.05, costs


def test_scoring_needs_memory_only_for_what_was_said(runs: dict[int, Driven]) -> None:
    """Scoring keeps a bounded amount for each turn, however long the run: 20 KB."""
    run = runs[SIZES[1]]
    tracemalloc.start()
    try:
        scored(run)
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak_bytes / SIZES[1] < 20_000
