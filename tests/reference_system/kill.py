"""A process that commits numbered transitions until it is killed, and how that is done.

`python kill.py kind path first` opens the store, and from transition `first` on does one after
the other, with a line `n` on its output when the n-th is done, `c` when a checkpoint or an erasure
(which rewrites the files) is about to begin, and `d` when it has ended. What a store holds after n
transitions follows from n.

`python kill.py kind kills` kills that often, and prints what came of it.
"""

from __future__ import annotations

import dataclasses
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from steeltrap.reference_system.rules import Rule
from steeltrap.reference_system.state import NEVER, Delta, Edge, Entry, Field, Record, Topic
from steeltrap.reference_system.stores import Store, StoreError, open_store

CHECKPOINT_EVERY = 7
ERASE_EVERY = 11
LIVES = 50
"""Kills after which a new store is begun."""
FIELDS = 40
"""Fields that are written over and over."""


# ---------------------------------------------------------------- what is written


def field(name: int, n: int, entries: int) -> Field:
    """A field as transition n leaves it; one value in nine is longer than a page of a log."""
    value = f"value of {n} " * (700 if n % 9 == 0 else 1)
    return Field(f"a:f{name}", "a", f"a:t{name % 10}", f"name {name}", "", ("tag",), "set", value, entries, "v", None, f"turn {n}", "owner", (), "", n, entries, 1, n, NEVER, 0, 9)  # fmt: skip


def delta(n: int) -> Delta:
    """What transition n writes: topics, a known and a new field, an entry for each, an edge."""
    made = Delta("a", "ingest", "2026-01-01T00:00:00", n)
    for name in (n % FIELDS, 1000 + n):
        rounds = range(n % FIELDS or FIELDS, n + 1, FIELDS)
        seq = sum(k % ERASE_EVERY != 0 for k in rounds) if name < 1000 else 1
        topic = f"a:t{name % 10}"
        made.topics[topic] = Topic(topic, "a", topic, f"summary {n}", bytes([n % 256]) * 64, (), n)
        made.fields[f"a:f{name}"] = field(name, n, seq)
        made.entries.append(Entry(f"a:f{name}", seq, "told", f"value of {n}", "v", None, "r", n, f"turn {n}", "owner", (), 0, "", "p"))  # fmt: skip
    source, target = made.fields
    made.edges[f"a:e{n}"] = Edge(f"a:e{n}", "a", "extension", source, target, Rule("same"), f"turn {n}", n)  # fmt: skip
    return made


def expected(n: int) -> tuple[list[Record], list[Entry]]:
    """What a store holds after n transitions."""
    records: dict[str, Record] = {}
    entries: list[Entry] = []
    for number in range(1, n + 1):
        if number % ERASE_EVERY:
            made = delta(number)
            records |= made.topics | made.fields | made.edges
            entries += made.entries
        else:
            records.pop(f"a:e{number - 1}")
            records.pop(f"a:f{999 + number}")
            entries.pop()
    return order(records.values()), order(entries)


def held(store: Store) -> tuple[list[Record], list[Entry]]:
    """What it holds."""
    records = list(store.load())
    return order(records), order(store.entries([r.id for r in records if isinstance(r, Field)]))


def order(records: Any) -> list[Any]:
    """Records in an order of their own."""
    return sorted(records, key=repr)


# ---------------------------------------------------------------- the process that is killed


def write(kind: Any, path: Path, first: int) -> None:
    """Commit one transition after the other."""
    store = open_store(path, kind)
    for n in range(first, first + 100_000):
        if n % ERASE_EVERY == 0:
            print("c", flush=True)
            store.erase([], [f"a:f{999 + n}"])
            print("d", flush=True)
        else:
            store.commit(delta(n))
        print(n, flush=True)
        if n % CHECKPOINT_EVERY == 0:
            print("c", flush=True)
            store.checkpoint()
            print("d", flush=True)


@dataclasses.dataclass
class Tally:
    """What came of the kills."""

    before: int = 0
    """Opened, without the transition in flight."""
    after: int = 0
    """Opened, with it."""
    inside: int = 0
    """Of all: killed between the beginning and the end of a checkpoint or an erasure."""
    failed: list[str] = dataclasses.field(default_factory=list)
    """Neither opened nor held what it should."""

    def __str__(self) -> str:
        kills = self.before + self.after + len(self.failed)
        return f"{kills} kills, {self.inside} inside a checkpoint: {self.before} before, {self.after} after, {len(self.failed)} failed {self.failed[:3]}"  # fmt: skip


def kill_often(kind: Any, folder: Path, kills: int, seed: int = 0) -> Tally:
    """Kill the process again and again; a store that failed is replaced by an empty one."""
    rng, tally = random.Random(seed), Tally()
    number, done = 0, 0
    for turn in range(kills):
        if turn and turn % LIVES == 0:
            number, done = number + 1, 0
        path = folder / f"m{number}.db"
        last, inside = killed(kind, path, done + 1, rng, aim=turn % 2 == 0)
        tally.inside += inside
        try:
            done = outcome(kind, path, max(last, done), tally)
        except (StoreError, AssertionError, subprocess.CalledProcessError) as error:
            tally.failed.append(f"kill {turn}: {type(error).__name__} {str(error)[:200]}")
            number, done = number + 1, 0
    return tally


def killed(kind: Any, path: Path, first: int, rng: random.Random, aim: bool) -> tuple[int, bool]:
    """Let it write and kill it.

    Args:
        kind: of store.
        path: of the store.
        first: number of its first transition.
        rng: decides when.
        aim: soon after a checkpoint or an erasure has begun.

    Returns:
        The last transition that it reported, and whether it was inside of one of those.
    """
    child = subprocess.Popen(
        [sys.executable, __file__, str(kind), str(path), str(first)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        stdout=subprocess.PIPE,
    )
    assert child.stdout is not None
    said: list[bytes] = []
    wanted = rng.randrange(1, 4) if aim else rng.randrange(1, 20)
    for line in child.stdout:
        said.append(line.strip())
        if aim and said.count(b"c") == wanted and said[-1] == b"c":
            time.sleep(rng.uniform(0, 0.02))
            break
        if not aim and len(said) == wanted:
            time.sleep(rng.uniform(0, 0.006))
            break
    child.send_signal(signal.SIGKILL)
    said += [line.strip() for line in child.stdout]
    child.wait()
    return max((int(s) for s in said if s.isdigit()), default=0), said[-1:] == [b"c"]


def outcome(kind: Any, path: Path, last: int, tally: Tally) -> int:
    """Open the store, compare, and give the number of its transitions."""
    store = open_store(path, kind)
    try:
        found = held(store)
    finally:
        store.close()
    if found == expected(last):
        tally.before += 1
        return last
    assert found == expected(last + 1), f"holds neither {last} nor {last + 1} transitions"
    tally.after += 1
    return last + 1


if __name__ == "__main__":
    if len(sys.argv) > 3:
        write(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]))
    else:
        with tempfile.TemporaryDirectory() as room:
            print(sys.argv[1], kill_often(sys.argv[1], Path(room), int(sys.argv[2])))
