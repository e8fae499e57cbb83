"""Figures over a run."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from steeltrap.harness.history import Event
from steeltrap.harness.metrics import footprint_ratio, growth_exponent, percentile, timing
from steeltrap.harness.script import Probe, Turn


@given(st.lists(st.floats(0, 1e6), min_size=1), st.floats(0, 1))
def test_percentiles_agree_with_numpy(values: list[float], share: float) -> None:
    """A percentile is the linear one that everybody computes."""
    assert float(np.quantile(values, share)) == pytest.approx(percentile(sorted(values), share))


@pytest.mark.parametrize("exponent", [0.0, 0.5, 1.0, 1.5])
def test_the_growth_exponent_is_the_power_of_the_turns(exponent: float) -> None:
    """A footprint that grows like turns to the power x has exponent x."""
    curve = [(n, n, int(1e6 * n**exponent), 10, 1.0) for n in (10, 100, 1000, 10000)]
    assert exponent == pytest.approx(growth_exponent(curve), abs=1e-3)


def test_too_few_gauges_have_no_exponent() -> None:
    """Two points make a line of anything, so they say nothing."""
    assert growth_exponent([(10, 1, 5, 5, 1.0), (20, 1, 9, 5, 1.0)]) is None


def test_the_ratio_is_the_mean_over_the_gauges() -> None:
    """Gauges at which nothing is true do not count."""
    assert 3.0 == footprint_ratio([(10, 1, 20, 10, 1.0), (20, 1, 40, 10, 1.0), (30, 1, 9, 0, 1.0)])


def test_failed_steps_have_no_time() -> None:
    """Only what was done is timed, by phase; the size on disk is the last that was told."""
    turn = Turn(id="t", at="2026-01-01T00:00", session="s", text="x", ops=[])
    probe = Probe(id="p", at="2026-01-01T00:00", ask="current", text="?")
    pairs = [
        (turn, Event(i=0, type="ok", ms=1.0)),
        (turn, Event(i=1, type="fail", ms=99.0)),
        (probe, Event(i=2, type="ok", ms=3.0, size_bytes=7)),
    ]
    told = timing(pairs)
    assert (["ingest", "retrieve"], 7) == (list(told.phases), told.size_bytes)
    assert (1, 1.0) == (told.phases["ingest"].n, told.phases["ingest"].p50_ms)
