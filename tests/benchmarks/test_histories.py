"""What it costs to read stored runs, plain and compressed, in CPU time; off by default.

Run with `python -m pytest -m benchmark -s tests/benchmarks/test_histories.py`: it prints the figures,
and judges ratios within one run alone.
"""

from __future__ import annotations

import shutil
import time
import tracemalloc
from collections import deque
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

import pytest

from steeltrap.adapters.embedders.hashed import HashEmbedder
from steeltrap.adapters.flat import Flat
from steeltrap.adapters.vector import Vector
from steeltrap.harness import columns, store
from steeltrap.harness.checks import score
from steeltrap.harness.history import compress, fingerprint, read_events, read_header, stored
from steeltrap.harness.memory import Memory
from steeltrap.harness.readers import Oracle
from steeltrap.harness.run import run_cell, score_cell
from steeltrap.harness.script import Script
from steeltrap.harness.store import Cell, open_cell, run_spec
from steeltrap.workloads.compose import ScriptSettings, compose

pytestmark = pytest.mark.benchmark

TURNS = 20_000
SYSTEMS: dict[str, Callable[[], Memory]] = {
    "flat": lambda: Flat(window_turns=100),
    "vector": lambda: Vector(embedder=HashEmbedder(), capacity_turns=1000),
}


class Ran(NamedTuple):
    """A finished run, and its history compressed beside."""

    cell: Cell
    script: Script
    packed: Path


@pytest.fixture(scope="module", params=sorted(SYSTEMS))
def ran(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Ran:
    folder = tmp_path_factory.mktemp(request.param)
    script = compose(ScriptSettings(name="adversarial", turns=TURNS), 0)
    spec = run_spec(script, system=request.param, settings={}, reader="oracle", limit=10, twins=0)
    cell = open_cell(folder, spec, script)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(store, "COMPRESSED_FROM_BYTES", 1 << 40)
        run_cell(cell, SYSTEMS[request.param], script, Oracle())
    beside = Path(shutil.copy(cell.history, folder / "beside.jsonl"))
    compress(beside)
    return Ran(cell, script, stored(beside))


def cpu_s(work: Callable[[], object], tries: int = 3) -> float:
    """CPU time of some work, the least of several tries."""
    spent = []
    for _ in range(tries):
        start = time.process_time()
        work()
        spent.append(time.process_time() - start)
    return min(spent)


def drained(items: Iterable[object]) -> None:
    deque(items, maxlen=0)


def test_a_compressed_history_is_small_and_read_as_fast(ran: Ran) -> None:
    """A quarter of the size at most, and reading it takes at most two thirds more."""
    plain, packed = ran.cell.history, ran.packed
    ratio = plain.stat().st_size / packed.stat().st_size
    events = sum(1 for _ in read_events(plain))
    times = {path: cpu_s(lambda path=path: drained(read_events(path))) for path in (plain, packed)}  # type: ignore[misc]
    print(
        f"\n{ran.cell.spec.system}: {plain.stat().st_size:,} bytes, {ratio:.1f} times as long as"
        f" compressed; events a second: {events / times[plain]:,.0f} plain,"
        f" {events / times[packed]:,.0f} compressed"
    )
    assert ratio >= 4
    assert times[packed] <= 5 / 3 * times[plain]


def test_all_that_stands_in_a_record_takes_little_more_than_scoring(ran: Ran) -> None:
    """Fingerprint, times and growth ride along in one pass: a third of scoring alone, at most."""
    cell, script = ran.cell, ran.script

    def alone() -> None:
        able = read_header(cell.history).capabilities
        score(script, read_events(cell.history), capabilities=able, reader=Oracle())

    scoring, whole = cpu_s(alone, 2), cpu_s(lambda: score_cell(cell, script), 2)
    print(f"\n{cell.spec.system}: scoring {scoring:.2f} s, the whole record {whole:.2f} s")
    assert whole <= 4 / 3 * scoring


def test_a_fingerprint_takes_no_longer_than_reading(ran: Ran) -> None:
    """At most three times what it takes to read the events."""
    reading = cpu_s(lambda: drained(read_events(ran.cell.history)))
    whole = cpu_s(lambda: fingerprint(ran.cell.history))
    print(f"\n{ran.cell.spec.system}: reading {reading:.2f} s, fingerprint {whole:.2f} s")
    assert whole <= 3 * reading


def test_columns_are_a_stream(ran: Ran, tmp_path: Path) -> None:
    """Rows take the memory of a batch, not of a run: 8 KB a row of a batch, however many there are."""
    cells = [ran.cell]
    rows = sum(batch.num_rows for batch in columns.batches(cells))
    spent = cpu_s(lambda: columns.write(cells, tmp_path / "rows.parquet"), 1)
    print(f"\n{ran.cell.spec.system}: {rows / spent:,.0f} rows a second to Parquet")
    script = Script.read(ran.cell.script)  # held in memory where it is short
    tracemalloc.start()
    try:
        drained(columns.batches(cells))
        peak_bytes = tracemalloc.get_traced_memory()[1]
        tracemalloc.reset_peak()
        before = tracemalloc.get_traced_memory()[0]
        again = Script.read(ran.cell.script)
        held_bytes = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert len(script.steps) == len(again.steps) == rows
    assert peak_bytes - held_bytes < 8192 * columns.ROWS
