from __future__ import annotations

import threading
from itertools import pairwise
from pathlib import Path
from time import sleep
from typing import Any

import pytest

from steeltrap.harness.load import LoadSettings, apply, planned
from steeltrap.harness.load.histogram import Histogram, percentile_ms
from steeltrap.harness.load.running import Done
from steeltrap.harness.memory import Utterance


def _p99_ms(done: list[Done], *, intended: bool) -> float:
    kept = [one for one in done if one.operation.kind == "write"]
    return Histogram.of(
        1000 * (one.ended_s - (one.operation.at_s if intended else one.started_s)) for one in kept
    ).p99_ms


def test_a_stall_is_felt_by_all_who_meant_to_start_during_it(loaded: Any, memories: Any) -> None:
    """From the intended start the 99th percentile sees a stall that the service time hides: it was
    one slow operation, and a crowd that waited for it.
    """
    trace, _ = loaded(
        memories.StallsOnce(), seconds=1.5, writes=1.0, arrivals="constant", threads=1
    )
    assert _p99_ms(trace.done, intended=True) > 150
    assert _p99_ms(trace.done, intended=False) < _p99_ms(trace.done, intended=True) / 2
    assert max(one.ended_s - one.started_s for one in trace.done) >= 0.3


def test_what_one_client_asks_is_asked_in_order_and_alone(memories: Any, tmp_path: Path) -> None:
    """Operations of one client never overlap and keep their order; those of several do overlap."""

    class Slow(memories.Sound):  # type: ignore[misc, name-defined]
        def ingest(self, turn: Utterance) -> None:
            sleep(0.004)
            super().ingest(turn)

    plan = planned(LoadSettings(seconds=0.4, tenants=3, writes=1.0, traced=0.0), 400)
    memory = Slow()
    memory.open(tmp_path)
    trace = apply(memory, plan, limit=10, threads=8)
    by_client: dict[str, list[Done]] = {}
    for one in trace.done:
        by_client.setdefault(one.operation.client, []).append(one)
    for asked in by_client.values():
        for before, after in pairwise(asked):
            assert after.started_s >= before.ended_s
            assert after.at > before.at
    spans = sorted((one.started_s, one.ended_s) for one in trace.done)
    assert any(later[0] < before[1] for before, later in pairwise(spans))


def test_what_never_came_to_its_turn_counts_with_the_time_that_it_waited(
    memories: Any, tmp_path: Path
) -> None:
    """Patience ends a load; what had not begun is told, and so is what gave no answer."""
    released = threading.Event()

    class Hangs(memories.Sound):  # type: ignore[misc, name-defined]
        def ingest(self, turn: Utterance) -> None:
            if turn.tenant != "warm-up":
                released.wait(5)

    plan = planned(LoadSettings(seconds=0.2, tenants=2, writes=1.0, traced=0.0), 100)
    memory = Hangs()
    memory.open(tmp_path)
    trace = apply(memory, plan, limit=10, threads=2, patience_s=0.1)
    released.set()
    types = [one.type for one in trace.done]
    assert types.count("info") == 2
    assert types.count("unserved") == len(types) - 2 > 5
    assert all(one.ended_s - one.operation.at_s > 0.09 for one in trace.done)
    assert "no answer" in trace.quiet.error


def test_an_interruption_keeps_what_there_is(memories: Any, tmp_path: Path) -> None:
    """Ctrl-C ends a load at once, and what had been answered by then can still be judged."""

    class Interrupted(memories.Sound):  # type: ignore[misc, name-defined]
        pass

    plan = planned(LoadSettings(seconds=0.2, tenants=2, traced=0.0), 200)
    memory = Interrupted()
    memory.open(tmp_path)
    asked = memory.ingest

    def ingest(turn: Utterance) -> None:
        if len(memory.held) > 2:
            raise KeyboardInterrupt
        asked(turn)

    memory.ingest = ingest
    trace = apply(memory, plan, limit=10, threads=1, in_turn=True)
    assert trace.cut
    assert 0 < len(trace.done) < len(plan.operations)
    assert trace.quiet.error == "interrupted"


def test_a_histogram_can_be_read_by_others(memories: Any) -> None:
    """Percentiles of a stored histogram are those of the values, to three digits."""
    made = Histogram.of(ms / 10 for ms in range(1, 10_001))
    assert (made.n, made.max_ms) == (10_000, pytest.approx(1000, rel=0.002))
    assert made.p50_ms == pytest.approx(500, rel=0.002)
    assert percentile_ms(made, 75) == pytest.approx(750, rel=0.002)
    assert Histogram.of([]).n == 0
