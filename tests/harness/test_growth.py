"""How costs grow: known exponents are found, each in its own phase, within honest intervals."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Sequence
from io import StringIO
from pathlib import Path

import pytest
from omegaconf import OmegaConf
from rich.console import Console
from scipy import stats

from steeltrap.harness.commands.run import run
from steeltrap.harness.growth import LEAST_TURNS, LENGTHS, growth
from steeltrap.harness.history import Event
from steeltrap.harness.models import Usage
from steeltrap.harness.record import CostAt, read_record
from steeltrap.harness.script import Erasure, Gauge, Pause, Probe, Step, Turn
from steeltrap.harness.settings import cells
from steeltrap.harness.stats import Power, power

AT = "2026-01-01T00:00"
TURN = Turn(id="t", at=AT, session="s", text="x", ops=[])
PROBE = Probe(id="p", at=AT, ask="current", text="?")
PAUSE = Pause(id="m", at=AT)
GAUGE = Gauge(id="g", at=AT, footprint=(3, 40))
ERASURE = Erasure(id="e", at=AT)

Pairs = Iterator[tuple[Step, Event]]


def life(turns: int, ms: Callable[[int], float], *, ask_every: int = 10) -> Pairs:
    """Turns that take so long, with a question that takes one millisecond now and then."""
    for n in range(1, turns + 1):
        yield TURN, Event(i=n, type="ok", ms=ms(n))
        if n % ask_every == 0:
            yield PROBE, Event(i=n, type="ok", ms=1.0, tokens=50)


def curve(points: Sequence[CostAt], cost: str) -> list[tuple[float, float]]:
    return [(at.turns, at.costs[cost]) for at in points if cost in at.costs]


def fitted(points: Sequence[CostAt], cost: str) -> Power:
    found = power([curve(points, cost)])
    assert found is not None
    return found


# ---------------------------------------------------------------- exponents


def test_each_phase_has_its_own_exponent() -> None:
    """A cost that grows as turns to the power x has exponent x, in the phase that took it."""

    def pairs() -> Pairs:
        for n in range(1, 10_001):
            yield TURN, Event(i=n, type="ok", ms=0.01 * n**0.5)
            if n % 10 == 0:
                asked = Event(i=n, type="ok", ms=0.002 * n, settle_ms=1e-6 * n**2, tokens=2 * n)
                yield PROBE, asked
                yield PAUSE, Event(i=n, type="ok", ms=3.0)
                listed = Event(i=n, type="ok", via="listing", ms=1e-4 * n**1.5, items=n, tokens=7 * n, size_bytes=n**2)  # fmt: skip
                yield GAUGE, listed
                yield ERASURE, Event(i=n, type="ok", ms=5.0 / n)

    points = growth(pairs())
    assert [100, 316, 1000, 3162, 10_000] == [at.turns for at in points]
    expected = {
        "ingest_ms": 0.5, "retrieve_ms": 1.0, "settle_ms": 2.0, "maintain_ms": 0.0, "list_ms": 1.5,
        "erase_ms": -1.0, "served_tokens": 1.0, "active_items": 1.0, "active_tokens": 1.0,
        "size_bytes": 2.0, "true_tokens": 0.0, "ingest_ms_mean": 0.5,
    }  # fmt: skip
    for cost, exponent in expected.items():
        assert exponent == pytest.approx(fitted(points, cost).exponent, abs=0.03), cost


@pytest.mark.parametrize("exponent", [0.0, 0.5, 1.0, 2.0])
def test_intervals_hold_the_exponent_as_often_as_they_say(exponent: float) -> None:
    """Of 60 noisy lives, 95% of the intervals hold what the life was made with, give or take chance."""
    held = 0
    for seed in range(60):
        dice = random.Random(seed)
        # the machine's mood lasts; single operations scatter besides
        mood = {length: dice.lognormvariate(0, 0.2) for length in LENGTHS}

        def ms(n: int, dice: random.Random = dice, mood: dict[int, float] = mood) -> float:
            length = next(length for length in LENGTHS if n <= length)
            return 0.5 * float(n**exponent) * mood[length] * (0.5 + dice.random())

        found = fitted(growth(life(3162, ms)), "ingest_ms")
        held += found.low <= exponent <= found.high
    # 57 expected; fewer than 51, or all and none but all over and over, would be another rate
    assert 51 <= held <= 60


@pytest.mark.parametrize(("seeds", "over"), [(1, "points"), (2, "points"), (5, "seeds")])
def test_coverage_over_points_and_over_seeds(seeds: int, over: str) -> None:
    """Of 2,000 intervals about 95% hold the exponent, whatever they are over."""
    dice = random.Random(0)
    held = widths = 0.0
    for _ in range(2000):
        curves = [
            [(n, level * n**0.7 * dice.lognormvariate(0, 0.3)) for n in LENGTHS[:6]]
            for level in [dice.lognormvariate(0, 1) for _ in range(seeds)]
        ]
        found = power(curves)
        assert found is not None and found.over == over
        held += found.low <= 0.7 <= found.high
        widths += found.high - found.low
    assert 0.93 <= held / 2000 <= 0.97
    assert widths / 2000 < 0.6


def test_one_line_is_that_of_scipy() -> None:
    """With one seed exponent and interval are those of an ordinary regression of logarithms."""
    points = [(n, 3 * n**0.5 * (1 + 0.1 * (-1) ** i)) for i, n in enumerate(LENGTHS[:5])]
    line = stats.linregress([math.log(n) for n, _ in points], [math.log(c) for _, c in points])
    reach = stats.t.ppf(0.975, 3) * line.stderr
    found = power([points])
    assert found is not None
    assert (line.slope, line.slope - reach, line.slope + reach) == pytest.approx(found[:3])
    assert (5, "points") == found[3:]


def test_what_makes_no_line_has_no_exponent() -> None:
    """Three points, four at one place, or a cost that is nought somewhere are refused."""
    line = [(10.0, 1.0), (100.0, 2.0), (1000.0, 4.0)]
    assert power([]) is None
    assert power([line]) is None
    assert power([[*line, line[0]]]) is None
    assert power([[*line, (10_000.0, 0.0)]]) is None
    assert power([[*line, (10_000.0, 8.0)]]) is not None
    # a curve that is too short is left out, and the others are taken
    assert power([line, [*line, (10_000.0, 8.0)]]) == power([[*line, (10_000.0, 8.0)]])


# ---------------------------------------------------------------- lengths and windows


def test_a_cost_is_that_of_the_last_fifth() -> None:
    """At n turns the turns from 0.8 n to n count, the n-th included and the next one not."""
    points = growth(life(1000, float, ask_every=1))
    assert {"ingest": 20, "retrieve": 20} == points[0].operations
    assert (90.5, 90.5) == (points[0].costs["ingest_ms"], points[0].costs["ingest_ms_mean"])
    assert {"ingest": 200, "retrieve": 200} == points[-1].operations
    assert 900.5 == points[-1].costs["ingest_ms"]


def test_what_follows_the_last_turn_of_a_length_belongs_to_it() -> None:
    """A look at exactly n turns is the footprint at n, whatever comes after it."""

    def pairs() -> Pairs:
        for n in range(1, 1001):
            yield TURN, Event(i=n, type="ok", ms=1.0)
            if n % 50 == 0:
                yield GAUGE, Event(i=n, type="ok", via="listing", items=n, tokens=10 * n)

    points = growth(pairs())
    assert [(100, 100.0, 1000.0), (316, 300.0, 3000.0), (1000, 1000.0, 10_000.0)] == [
        (at.turns, at.costs["active_items"], at.costs["active_tokens"]) for at in points
    ]
    assert {(3.0, 40.0)} == {(at.costs["true_items"], at.costs["true_tokens"]) for at in points}


def test_a_life_that_ends_between_lengths_has_a_point_where_it_ends() -> None:
    """Unless its window would reach back behind the last length."""
    assert [100, 316, 1000, 1500] == [at.turns for at in growth(life(1500, float))]
    assert [100, 316, 1000] == [at.turns for at in growth(life(1100, float))]
    assert 1350.5 == growth(life(1500, float))[-1].costs["ingest_ms"]


def test_a_short_life_has_no_growth() -> None:
    """Below a thousand turns nothing is recorded."""
    assert [] == growth(life(LEAST_TURNS - 1, float))
    assert [] != growth(life(LEAST_TURNS, float))


def test_turns_that_were_not_taken_in_are_no_life() -> None:
    """Where a system gives up, its life ends with the last turn that it took in."""

    def pairs() -> Pairs:
        yield from life(1500, float)
        for n in range(1501, 5001):
            yield TURN, Event(i=n, type="fail", error="given up")

    assert growth(life(1500, float)) == growth(pairs())


# ---------------------------------------------------------------- what counts


def test_models_are_counted_apart() -> None:
    """A turn's own time is without its models; what keeping asks is per turn, a query's per query."""

    def pairs() -> Pairs:
        for n in range(1, 1001):
            kept = Usage(
                calls=2, prompt_tokens=100, completion_tokens=10, embedded_tokens=5, ms=7.0
            )
            yield TURN, Event(i=n, type="ok", ms=8.0, usage={"ingest": kept} if n % 2 else {})
            if n % 4 == 0:
                asked = {"retrieve": Usage(calls=1, prompt_tokens=30, ms=1.0)}
                settled = asked | {"settle": Usage(calls=1, prompt_tokens=8, ms=1.0)}
                yield PROBE, Event(i=n, type="ok", ms=3.0, settle_ms=1.5, usage=settled)

    costs = growth(pairs())[-1].costs
    assert (4.5, 2.0, 0.5) == (costs["ingest_ms_mean"], costs["retrieve_ms"], costs["settle_ms"])
    # half of the turns ask twice, a quarter settle with one call
    assert (1.25, 52.0, 5.0, 2.5, 3.75) == (
        costs["calls"], costs["prompt_tokens"], costs["completion_tokens"],
        costs["embedded_tokens"], costs["model_ms"],
    )  # fmt: skip
    assert 30.0 == costs["query_prompt_tokens"]
    assert 500 * 1 + 500 * 8 + 250 * 0.5 == costs["life_ms"]
    assert 500 * 115 + 250 * 8 == costs["life_model_tokens"]


def test_a_life_is_the_sum_of_keeping_it() -> None:
    """Ingest, settle, maintain and erase from the first turn on; questions and looks are the script's."""

    def pairs() -> Pairs:
        for n in range(1, 1001):
            yield TURN, Event(i=n, type="ok", ms=1.0)
            yield PROBE, Event(i=n, type="ok", ms=100.0, settle_ms=0.5)
            yield PAUSE, Event(i=n, type="ok", ms=0.25)
            yield GAUGE, Event(i=n, type="ok", via="listing", ms=100.0)
            yield ERASURE, Event(i=n, type="ok", ms=0.125)

    assert [187.5, 592.5, 1875.0] == [at.costs["life_ms"] for at in growth(pairs())]


def test_what_a_system_does_not_do_takes_no_time() -> None:
    """A pause, a listing or an erasure without such an operation is none; a step that failed neither."""

    def pairs() -> Pairs:
        for n in range(1, 1001):
            yield TURN, Event(i=n, type="ok", ms=0.0)
            yield TURN, Event(i=n, type="info", ms=50.0)
            yield PAUSE, Event(i=n, type="ok")
            yield ERASURE, Event(i=n, type="ok")
            yield GAUGE, Event(i=n, type="ok")
            yield PROBE, Event(i=n, type="fail", ms=50.0)

    (*_, last) = growth(pairs())
    assert ["ingest"] == list(last.operations)
    assert {"ingest_ms", "ingest_ms_mean", "life_ms", "true_items", "true_tokens"} == set(
        last.costs
    )
    assert 0.0 == last.costs["ingest_ms"] == last.costs["life_ms"]


def test_a_look_at_one_tenant_is_no_footprint() -> None:
    """The footprint is that of all, and stays what it was when all were looked at."""
    of_one = Gauge(id="g", at=AT, tenant="acme", footprint=(1, 1))

    def pairs() -> Pairs:
        for n in range(1, 1001):
            yield TURN, Event(i=n, type="ok", ms=1.0)
            yield GAUGE, Event(i=n, type="ok", via="listing", items=5, tokens=60, size_bytes=4096)
            yield of_one, Event(i=n, type="ok", via="listing", items=1, tokens=9)

    costs = growth(pairs())[-1].costs
    assert (5.0, 60.0, 4096.0, 40.0) == (
        costs["active_items"], costs["active_tokens"], costs["size_bytes"], costs["true_tokens"]
    )  # fmt: skip


# ---------------------------------------------------------------- the experiment


def test_the_experiment_measures_every_system_of_table_1(root: Path) -> None:
    """One seed of a long life each, an hour at most, without twins."""
    found = cells(["experiment=growth"])
    assert {("growth", "decade", 50_000, 0, 0, 3600)} == {
        (c.config.name, c.config.script.name, c.config.script.turns, c.config.twins, c.config.seed,
         c.limits.run_s)
        for c in found
    }  # fmt: skip
    of_table_1 = OmegaConf.load(root / "configs" / "experiment" / "table1.yaml").parts[0][2]
    listed = [name.strip() for name in of_table_1.removeprefix("system=").split(",")]
    assert listed == [c.system for c in found]


def test_a_quick_look_ends_with_the_table(tmp_path: Path) -> None:
    """With a thousand turns there are three lengths, in the record and in what is printed."""
    said = StringIO()
    asked = ["experiment=growth", "system=flat", "script.turns=1000", "install=false", f"runs={tmp_path}"]  # fmt: skip
    run(asked, Console(file=said, width=80), Console(quiet=True))
    (record,) = [read_record(path) for path in tmp_path.rglob("record.json")]
    assert [100, 316, 1000] == [at.turns for at in record.timing.growth]
    assert {"ingest_ms", "retrieve_ms", "active_tokens", "true_tokens", "life_ms"} <= set(
        record.timing.growth[-1].costs
    )
    assert "How it grows with the length of a life" in said.getvalue()
