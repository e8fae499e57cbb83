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
BLOCKS = 5
"""Blocks of `ROUNDS` updates, with a checkpoint after each, for growth on disk."""
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


def costs(memory: Memory, plain: Yardstick, topics: int) -> dict[str, float]:
    """Medians in ms, in rounds that alternate between the memory and the yardstick."""
    dice = random.Random(1)
    found: dict[str, list[float]] = {}
    gc.collect()
    gc.freeze()
    for number in range(ROUNDS):
        at = dice.randrange(topics), dice.randrange(FIELDS), number
        for name, work in WORK.items():
            found.setdefault(name, []).append(cpu_ms(partial(work, memory, plain, at)))
    gc.unfreeze()
    return {name: median(times) for name, times in found.items()}


def propagation(memory: Memory) -> dict[str, float]:
    """Medians in ms of a revision that walks so many edges."""
    found = {}
    for hops in HOPS:
        chain = [f"Chain {hops} {place}" for place in range(hops + 1)]
        facts = [Fact(title, "due", "1 March 2026") for title in chain]
        ties = [
            Dependency(Place(chain[n], "due"), Place(chain[n + 1], "due"), Rule("offset", days=1))
            for n in range(hops)
        ]
        memory.ingest("acme", at=AT, turn="c", statements=[*facts, *ties])
        times = []
        for number in range(60):
            day = f"{1 + number % 28} {'April' if number < 28 else 'May' if number < 56 else 'June'} 2026"
            memory.ingest("acme", at=AT, turn=f"d{number}", statements=[Fact(chain[0], "due", day)])
            times.append(cpu_ms(lambda: memory.revise("acme", at=AT)))
        found[f"propagate over {hops}"] = median(times)
    return found


def growth(memory: Memory, topics: int) -> list[float]:
    """Bytes on disk an update, block by block, after a checkpoint each."""
    dice = random.Random(2)
    memory.checkpoint()
    sizes = [memory.size_bytes()]
    for block in range(BLOCKS):
        for number in range(ROUNDS):
            ingest(
                memory,
                dice.randrange(topics),
                dice.randrange(FIELDS),
                ROUNDS * (block + 9) + number,
            )
        memory.checkpoint()
        sizes.append(memory.size_bytes())
    return [(after - before) / ROUNDS for before, after in pairwise(sizes)]


def measured(kind: Kind, size: int) -> dict[str, object]:
    """All figures of one store at one size."""
    topics = size // FIELDS
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        plain = Yardstick(folder / "plain.db", topics)
        memory = filled(folder, kind, topics)
        try:
            return {
                **costs(memory, plain, topics),
                **propagation(memory),
                "bytes an update": growth(memory, topics),
                "bytes a field": memory.size_bytes() / size,
                "wrong": len(memory.check()) if size < SIZES[-1] else 0,
            }
        finally:
            plain.close()
            memory.close()


def apart(kind: Kind, size: int) -> dict[str, object]:
    """The same in a process of its own."""
    done = subprocess.run(
        [sys.executable, __file__, "--one", kind, str(size)], capture_output=True, text=True
    )
    if done.returncode:
        return {
            "failed": done.stderr.strip().splitlines()[-1:] or [f"ended with {done.returncode}"]
        }
    result: dict[str, object] = json.loads(done.stdout)
    return result


ROWS = (
    "ingest", "retrieve", "retrieve a field", "as of", *(f"propagate over {hops}" for hops in HOPS),
)  # fmt: skip


def table(found: dict[tuple[str, int], dict[str, object]], kinds: list[Kind]) -> str:
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
    lines.append("| bytes an update, block by block | | " + " | ".join(
        ", ".join(f"{b:.0f}" for b in found[kind, SIZES[1]].get("bytes an update", ()))  # type: ignore[attr-defined]
        for kind in kinds
    ) + " | |")  # fmt: skip
    return "\n".join(lines)


def _cells(found: dict[tuple[str, int], dict[str, object]], kind: str, row: str) -> str:
    times = [found[kind, size].get(row) for size in SIZES]
    return " / ".join("–" if t is None else f"{t:.3f}" for t in times) if any(times) else ""


def _ratio(found: dict[tuple[str, int], dict[str, object]], row: str, size: int, kind: str) -> str:
    graph, native = found[kind, size].get(row), found["native", size].get(row)
    return f"{graph / native:.1f}" if graph and native else "–"  # type: ignore[operator]


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--kuzu", action="store_true", help="with a column for kuzu")
    parser.add_argument("--one", nargs=2, metavar=("STORE", "FIELDS"), help="one store as JSON")
    asked = parser.parse_args()
    if asked.one:
        print(json.dumps(measured(asked.one[0], int(asked.one[1]))))
        return
    kinds: list[Kind] = ["native", "ladybug", *(["kuzu"] if asked.kuzu else [])]  # type: ignore[list-item]
    found = {(kind, size): apart(kind, size) for kind in kinds for size in SIZES}
    for (kind, size), figures in found.items():
        if "failed" in figures:
            print(f"{kind} at {size}: {figures['failed']}")
    print(table(found, kinds))


if __name__ == "__main__":
    main()
