"""What a transition costs, by store and size, against plain SQLite doing the same work.

    python tests/benchmarks/reference_system.py            # the table of reference_system/README.md
    python tests/benchmarks/reference_system.py --kuzu     # with a column for kuzu

Each store is measured in a process of its own, in rounds that alternate with the yardstick, so
that a ratio compares what was measured side by side. Figures are medians of CPU time.
"""

from __future__ import annotations

import argparse
import gc
import json
import random
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from statistics import median

from steeltrap.reference_system.memory import Memory
from steeltrap.reference_system.policy import default_policies
from steeltrap.reference_system.rules import Rule
from steeltrap.reference_system.statements import Dependency, Fact, Place, Question
from steeltrap.reference_system.stores import Kind

SIZES = (1_000, 10_000, 100_000)
"""Fields."""
FIELDS = 10
"""Fields a topic."""
ROUNDS = 400
HOPS = (1, 4, 16)
PROPAGATIONS = 80
BLOCKS, BLOCK = 6, 8_000
"""Blocks of updates, with a checkpoint after each: a graph's file grows by large steps."""
AT = "2026-01-05T09:00"


def cpu_ms(work: Callable[[], object]) -> float:
    """CPU time of one call."""
    start = time.process_time_ns()
    work()
    return (time.process_time_ns() - start) / 1e6


class Yardstick:
    """Topics, fields and histories in plain SQLite: no policies, no mirror, no embedding."""

    def __init__(self, path: Path, topics: int) -> None:
        self._db = db = sqlite3.connect(path, isolation_level=None)
        db.executescript(
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA cache_size = -65536;"
            "CREATE TABLE field(id TEXT PRIMARY KEY, topic TEXT, name TEXT, value TEXT, seq INTEGER,"
            " valid_from TEXT, turn TEXT, said_by TEXT, salience REAL) WITHOUT ROWID;"
            "CREATE INDEX of_topic ON field(topic);"
            "CREATE TABLE entry(field TEXT, seq INTEGER, value TEXT, valid_from TEXT, turn TEXT,"
            " said_by TEXT, PRIMARY KEY(field, seq)) WITHOUT ROWID;"
        )
        rows = [(t, k) for t in range(topics) for k in range(FIELDS)]
        db.execute("BEGIN")
        db.executemany(
            "INSERT INTO field VALUES (?, ?, ?, ?, 1, ?, 't', 'owner', 1.0)",
            [(f"{t}/{k}", str(t), f"field {k}", f"value {t} {k}", AT) for t, k in rows],
        )
        db.executemany(
            "INSERT INTO entry VALUES (?, 1, ?, ?, 't', 'owner')",
            [(f"{t}/{k}", f"value {t} {k}", AT) for t, k in rows],
        )
        db.execute("COMMIT")

    def ingest(self, topic: int, field: int, number: int) -> None:
        """The prior value is read, a line of history is added, the present and its salience written."""
        db, name = self._db, f"{topic}/{field}"
        db.execute("BEGIN IMMEDIATE")
        seq, _ = db.execute("SELECT seq, said_by FROM field WHERE id = ?", (name,)).fetchone()
        value = (f"new {number}", AT, f"u{number}", "owner")
        db.execute("INSERT INTO entry VALUES (?, ?, ?, ?, ?, ?)", (name, seq + 1, *value))
        db.execute(
            "UPDATE field SET value = ?, valid_from = ?, turn = ?, said_by = ?, seq = seq + 1,"
            " salience = salience + 1 WHERE id = ?",
            (*value, name),
        )
        db.execute("COMMIT")

    def retrieve(self, topic: int) -> None:
        """The fields of a topic, read and reinforced in one statement."""
        self._db.execute("BEGIN IMMEDIATE")
        self._db.execute(
            "UPDATE field SET salience = salience + 1 WHERE topic = ? RETURNING *", (str(topic),)
        ).fetchall()
        self._db.execute("COMMIT")

    def close(self) -> None:
        """Release the file."""
        self._db.close()


def filled(folder: Path, kind: Kind, topics: int) -> Memory:
    """A memory of so many topics, with room for all of them."""
    memory = Memory.open(folder / "gem.db", kind)
    memory.set_policies(default_policies().with_("SET bound = 1000000000"))
    for first in range(0, topics, 20):
        memory.ingest("acme", at=AT, turn=f"t{first}", statements=[
            Fact(f"Project {topic}", f"field {field}", f"value {topic} {field}")
            for topic in range(first, min(topics, first + 20))
            for field in range(FIELDS)
        ])  # fmt: skip
    memory.checkpoint()
    return memory


def ingest(memory: Memory, topic: int, field: int, number: int) -> object:
    """One fact, a new value of a field."""
    fact = Fact(f"Project {topic}", f"field {field}", f"new {number}")
    return memory.ingest("acme", at=AT, turn=f"u{number}", statements=[fact])


def retrieve(memory: Memory, topic: int, field: str = "") -> object:
    """One topic, or one field of it."""
    place = Place(f"Project {topic}", field)
    return memory.retrieve("acme", Question(places=(place,)), at=AT)


def as_of(memory: Memory, topic: int, field: int) -> object:
    """What a field was at an instant."""
    places = (Place(f"Project {topic}", f"field {field}"),)
    asked = Question(places=places, mode="temporal", as_of=AT)
    return memory.retrieve("acme", asked, at=AT)


Round = tuple[int, int, int]
"""Topic, field, number of the round."""
WORK: dict[str, Callable[[Memory, Yardstick, Round], object]] = {
    "yardstick ingest": lambda _, plain, at: plain.ingest(*at),
    "ingest": lambda memory, _, at: ingest(memory, *at),
    "yardstick retrieve": lambda _, plain, at: plain.retrieve(at[0]),
    "retrieve": lambda memory, _, at: retrieve(memory, at[0]),
    "retrieve a field": lambda memory, _, at: retrieve(memory, at[0], f"field {at[1]}"),
    "as of": lambda memory, _, at: as_of(memory, at[0], at[1]),
}


@dataclass
class Site:
    """A memory of one size, and the yardstick beside it."""

    memory: Memory
    plain: Yardstick
    topics: int


def costs(sites: dict[int, Site]) -> dict[int, dict[str, float]]:
    """Medians in ms, in rounds that go through all sizes and the yardstick."""
    dice = random.Random(1)
    found: dict[int, dict[str, list[float]]] = {size: {} for size in sites}
    gc.collect()
    gc.freeze()
    for number in range(ROUNDS):
        for size, site in sites.items():
            at = dice.randrange(site.topics), dice.randrange(FIELDS), number
            for name, work in WORK.items():
                ms = cpu_ms(partial(work, site.memory, site.plain, at))
                found[size].setdefault(name, []).append(ms)
    gc.unfreeze()
    return {size: medians(times) for size, times in found.items()}


def medians(times: dict[str, list[float]]) -> dict[str, float]:
    """Of each row."""
    return {name: median(ms) for name, ms in times.items()}


def propagation(sites: dict[int, Site]) -> dict[int, dict[str, float]]:
    """Medians in ms of a revision that walks so many edges."""
    found: dict[int, dict[str, list[float]]] = {size: {} for size in sites}
    for hops in HOPS:
        for site in sites.values():
            _chain(site.memory, hops)
        for number in range(PROPAGATIONS):
            month = ("April", "May", "June")[number // 28 % 3]
            fact = Fact(f"Chain {hops} 0", "due", f"{1 + number % 28} {month} 2026")
            for size, site in sites.items():
                site.memory.ingest("acme", at=AT, turn=f"d{number}", statements=[fact])
                ms = cpu_ms(partial(site.memory.revise, "acme", at=AT))
                found[size].setdefault(f"propagate over {hops}", []).append(ms)
    return {size: medians(times) for size, times in found.items()}


def _chain(memory: Memory, hops: int) -> None:
    """Topics of which each follows from the one before."""
    chain = [Place(f"Chain {hops} {place}", "due") for place in range(hops + 1)]
    facts = [Fact(place.topic, place.field, "1 March 2026") for place in chain]
    ties = [Dependency(one, other, Rule("offset", days=1)) for one, other in pairwise(chain)]
    memory.ingest("acme", at=AT, turn="c", statements=[*facts, *ties])


def growth(memory: Memory, topics: int) -> list[float]:
    """Bytes on disk an update, block by block, after a checkpoint each."""
    dice = random.Random(2)
    memory.checkpoint()
    sizes = [memory.size_bytes()]
    for block in range(BLOCKS):
        for number in range(BLOCK):
            ingest(
                memory, dice.randrange(topics), dice.randrange(FIELDS), BLOCK * (block + 9) + number
            )
        memory.checkpoint()
        sizes.append(memory.size_bytes())
    return [(after - before) / BLOCK for before, after in pairwise(sizes)]


def measured(kind: Kind) -> dict[int, dict[str, object]]:
    """All figures of one store, at all sizes."""
    with tempfile.TemporaryDirectory() as name:
        sites = {}
        for size in SIZES:
            folder = Path(name, str(size))
            folder.mkdir()
            topics = size // FIELDS
            sites[size] = Site(
                filled(folder, kind, topics), Yardstick(folder / "plain.db", topics), topics
            )
        times, walks = costs(sites), propagation(sites)
        small = sites[SIZES[0]]
        found: dict[int, dict[str, object]] = {
            size: {**times[size], **walks[size]} for size in SIZES
        }
        found[SIZES[0]]["bytes an update"] = growth(small.memory, small.topics)
        found[SIZES[0]]["wrong"] = small.memory.check()
        for site in sites.values():
            site.plain.close()
            site.memory.close()
        return found


def apart(kind: Kind) -> dict[int, dict[str, object]]:
    """The same in a process of its own."""
    done = subprocess.run([sys.executable, __file__, "--one", kind], capture_output=True, text=True)
    if done.returncode:
        said = done.stderr.strip().splitlines()[-1:] or [f"ended with {done.returncode}"]
        return {size: {"failed": said} for size in SIZES}
    result: dict[str, dict[str, object]] = json.loads(done.stdout)
    return {int(size): figures for size, figures in result.items()}


ROWS = (
    "ingest", "retrieve", "retrieve a field", "as of", *(f"propagate over {hops}" for hops in HOPS),
)  # fmt: skip


Figures = dict[str, dict[int, dict[str, object]]]
"""By store and size."""


def table(found: Figures, kinds: list[Kind]) -> str:
    """The figures as Markdown: CPU ms at each size, and what the compatibility layer costs."""
    sizes = " / ".join(f"{size:,}" for size in SIZES)
    lines = [
        f"| CPU ms at {sizes} fields | plain SQLite | {' | '.join(kinds)} | {kinds[1]} over native |",
        "|" + "---|" * (3 + len(kinds)),
    ]
    for row in ROWS:
        plain = _cells(found, "native", f"yardstick {row}")
        cells = [_cells(found, kind, row) for kind in kinds]
        over = [_ratio(found, row, size, kinds[1]) for size in SIZES]
        lines.append(f"| {row} | {plain} | {' | '.join(cells)} | {' / '.join(over)} |")
    growths = (found[kind][SIZES[0]].get("bytes an update") for kind in kinds)
    cells = [
        ", ".join(f"{b:.0f}" for b in blocks) if isinstance(blocks, list) else "–"
        for blocks in growths
    ]
    lines.append(f"| bytes an update, in {BLOCKS} blocks of {BLOCK} | | {' | '.join(cells)} | |")
    return "\n".join(lines)


def _cells(found: Figures, kind: str, row: str) -> str:
    times = [found[kind][size].get(row) for size in SIZES]
    return " / ".join("–" if t is None else f"{t:.3f}" for t in times) if any(times) else ""


def _ratio(found: Figures, row: str, size: int, kind: str) -> str:
    graph, native = found[kind][size].get(row), found["native"][size].get(row)
    return (
        f"{graph / native:.1f}" if isinstance(graph, float) and isinstance(native, float) else "–"
    )


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--kuzu", action="store_true", help="with a column for kuzu")
    parser.add_argument("--one", metavar="STORE", help="one store as JSON")
    asked = parser.parse_args()
    if asked.one:
        print(json.dumps(measured(asked.one)))
        return
    kinds: list[Kind] = ["native", "ladybug", *(["kuzu"] if asked.kuzu else [])]  # type: ignore[list-item]
    found = {kind: apart(kind) for kind in kinds}
    for kind, sizes in found.items():
        for figures in sizes.values():
            if wrong := figures.get("failed") or figures.get("wrong"):
                print(f"{kind}: {wrong}")
    print(table(found, kinds))


if __name__ == "__main__":
    main()
