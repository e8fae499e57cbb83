"""What the reference system costs, in CPU time; off by default.

Run with `python -m pytest -m benchmark tests/benchmarks/test_reference_system.py` on an idle
machine. `reference_system.py` beside this prints the table.
"""

from __future__ import annotations

import importlib.util
import sys
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest

pytestmark = pytest.mark.benchmark

SMALL, LARGE = 1_000, 100_000


def _bench() -> ModuleType:
    path = Path(__file__).with_name("reference_system.py")
    spec = importlib.util.spec_from_file_location("reference_system_bench", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@cache
def all_figures(kind: str) -> dict[int, dict[str, float]]:
    found: dict[int, dict[str, float]] = _bench().apart(kind)
    assert "failed" not in found[SMALL], found
    return found


def figures(kind: str, size: int) -> dict[str, float]:
    return all_figures(kind)[size]


@pytest.mark.parametrize("size", [SMALL, LARGE])
@pytest.mark.parametrize("work", ["ingest", "retrieve"])
def test_native_is_within_five_times_plain_sqlite(work: str, size: int) -> None:
    """A transition with policies and salience costs at most 5 times the same work in plain SQLite."""
    found = figures("native", size)
    assert found[work] <= 5 * found[f"yardstick {work}"], found


def test_graph_is_within_its_budget() -> None:
    """At 100 000 fields a graph transition costs at most 3.5 ms to ingest, 2 ms to retrieve."""
    found = figures("ladybug", LARGE)
    assert found["ingest"] <= 3.5 and found["retrieve"] <= 2.0, found


@pytest.mark.parametrize("kind", ["native", "ladybug"])
@pytest.mark.parametrize("work", ["ingest", "retrieve", "propagate over 4"])
def test_flat_in_the_size_of_the_store(kind: str, work: str) -> None:
    """From 1 000 to 100 000 fields no transition costs more than 1.3 times as much."""
    assert figures(kind, LARGE)[work] <= 1.3 * figures(kind, SMALL)[work]


@pytest.mark.parametrize("kind", ["native", "ladybug"])
def test_propagation_costs_by_what_it_touches(kind: str) -> None:
    """A walk over 16 edges costs less than 16 walks over one, and more than four."""
    found = figures(kind, LARGE)
    assert found["propagate over 1"] < found["propagate over 4"] < found["propagate over 16"]
    assert found["propagate over 16"] < 16 * found["propagate over 1"]


@pytest.mark.parametrize("kind", ["native", "ladybug"])
def test_growth_on_disk_is_constant(kind: str) -> None:
    """After checkpoints the later updates have added no more bytes each than the earlier ones."""
    found = figures(kind, SMALL)
    blocks = found["bytes an update"]  # type: ignore[index]
    half = len(blocks) // 2
    assert 0 < sum(blocks[half:]) <= 2 * sum(blocks[:half]), blocks
    assert [] == found["wrong"]
