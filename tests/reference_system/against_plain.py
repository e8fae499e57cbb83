"""A store held against the plain one: random transitions to both, and everything compared.

`python against_plain.py kuzu 8 60` tries 8 lives of 60 steps of that kind of store, each in a process
of its own, since an engine may take its process with it, and tells which failed.
"""

from __future__ import annotations

import dataclasses
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from steeltrap.reference_system.rules import Rule
from steeltrap.reference_system.state import (
    NEVER,
    Alias,
    Delta,
    Edge,
    Entry,
    Evidence,
    Field,
    PolicyText,
    Topic,
)
from steeltrap.reference_system.stores import Store, open_store
from steeltrap.reference_system.stores.plain import PlainStore

TEXTS = ("", "a", "März 😀", "two\nlines", "'\"\\`", "$p_id", "nul\0inside", "#000001", "[]", "x" * 5000)  # fmt: skip
RULES = (None, Rule("offset", days=-7), Rule("same"), Rule("scaled", times=2, over=3))
NUMBERS = (0, 1, 200, 70_000, 2**40)


@dataclasses.dataclass
class Both:
    """A store and its model.

    Args:
        begin: opens the store; called again to open it anew.
        rng: decides everything.
    """

    begin: Callable[[], Store]
    rng: random.Random

    def __post_init__(self) -> None:
        self.plain = PlainStore()
        self.store = self.begin()
        self.order = 0
        self.seqs: dict[str, int] = {}

    # ------------------------------------------------------------ what can happen

    def step(self) -> None:
        """One thing happens to both."""
        acts = [self.commit] * 10 + [self.read] * 4 + [self.policies, self.checkpoint, self.erase]
        self.rng.choice([*acts, self.reopen])()

    def commit(self) -> None:
        """A transition of one tenant."""
        delta = self.delta()
        self.plain.commit(delta)
        self.store.commit(delta)

    def read(self) -> None:
        """A retrieval: saliences rise, and the fields are what they are."""
        known = list(self.plain._fields)
        names = self.rng.sample(known, min(len(known), self.rng.randrange(6)))
        touched = {name: self.rng.uniform(0, 3000) for name in names}
        assert self.plain.read(touched) == self.store.read(touched)

    def policies(self) -> None:
        """Another P."""
        names = self.rng.sample("abcd", self.rng.randrange(4))
        texts = [PolicyText(f"policy {n}", place, self.text()) for place, n in enumerate(names)]
        self.plain.set_policies(texts)
        self.store.set_policies(texts)

    def checkpoint(self) -> None:
        """The log is folded in."""
        self.store.checkpoint()

    def reopen(self) -> None:
        """It is closed and opened, and gives everything in the same order as before."""
        before = list(self.store.load())
        self.store.close()
        self.store = self.begin()
        assert before == list(self.store.load())

    def erase(self) -> None:
        """Some topics go with their fields, and some fields alone."""
        topics = [name for name in self.plain._topics if self.rng.random() < 0.2]
        fields = [f.id for f in self.plain._fields.values() if f.topic in topics or self.rng.random() < 0.1]  # fmt: skip
        self.plain.erase(topics, fields)
        self.store.erase(topics, fields)

    def compare(self) -> None:
        """Both hold the same."""
        kept = sorted(self.plain.load(), key=place)
        assert kept == sorted(self.store.load(), key=place)
        names = list(self.plain._fields)
        self.rng.shuffle(names)
        entries = self.plain.entries(names)
        assert entries == self.store.entries(names)
        for entry in entries[:3]:
            assert entry == self.store.entry(entry.field, entry.seq)

    # ------------------------------------------------------------ a transition

    def delta(self) -> Delta:
        """A proposed change to some records and by some new ones."""
        self.order += 1
        tenant = self.rng.choice(("acme", "b"))
        made = Delta(tenant, "ingest", "2026-01-01T00:00:00", self.order)
        topics = [t for t in self.plain._topics.values() if t.tenant == tenant]
        fields = [f for f in self.plain._fields.values() if f.tenant == tenant]
        for n in range(self.rng.choice((0, 0, 1, 2)) if topics else 1):
            topics.append(Topic(self.id(tenant, "t", n), tenant, self.text(), self.text(), bytes(range(n * 8)), (), self.order))  # fmt: skip
            made.topics[topics[-1].id] = topics[-1]
        for n in range(self.rng.choice((0, 1, 1, 3))):
            fields.append(self.field(self.id(tenant, "f", n), tenant, self.rng.choice(topics).id))
            made.fields[fields[-1].id] = fields[-1]
        self.change(made, topics, fields)
        self.histories(made, fields)
        self.edges(made, "extension", fields)
        self.edges(made, "association", topics)
        self.findings(made, fields)
        for target in self.rng.sample(topics, self.rng.randrange(2)):
            scope, name = self.rng.choice((tenant, topics[0].id)), self.rng.choice("xyz")
            made.aliases[f"{scope}\n{name}"] = Alias(f"{scope}\n{name}", tenant, scope, name, target.id)  # fmt: skip
        return made

    def change(self, made: Delta, topics: list[Topic], fields: list[Field]) -> None:
        """Known topics and fields change, or are touched."""
        for topic in self.rng.sample(topics, self.rng.randrange(2)):
            made.topics[topic.id] = msgspec.structs.replace(topic, summary=self.text(), vector=self.rng.randbytes(12), archived=self.rng.random() < 0.5, tags=self.tags(), order=self.order)  # fmt: skip
        for field in self.rng.sample(fields, min(len(fields), self.rng.randrange(4))):
            if self.rng.random() < 0.5:
                made.touched[field.id] = self.rng.choice((NEVER, 0.1 + 0.2, 2500.75))
            else:
                other = self.field(field.id, field.tenant, self.rng.choice(topics).id)
                names = self.rng.sample(field.__struct_fields__, self.rng.randrange(10))
                new = {name: getattr(other, name) for name in names}
                made.fields[field.id] = msgspec.structs.replace(field, **new)

    def histories(self, made: Delta, fields: list[Field]) -> None:
        """Histories go on, some by more than one line."""
        for field in self.rng.sample(fields, min(len(fields), self.rng.randrange(3))):
            for _ in range(self.rng.choice((1, 1, 2, 9, 40))):
                seq = self.seqs[field.id] = self.seqs.get(field.id, 0) + 1
                made.entries.append(
                    Entry(
                        field.id,
                        seq,
                        "told",
                        self.rng.choice((None, self.text())),
                        "v",
                        self.rng.choice((None, "u")),
                        "r",
                        self.order,
                        self.text(),
                        "owner",
                        self.tags(),
                        seq - 1,
                        self.text(),
                        "p",
                    )
                )

    def edges(self, made: Delta, kind: Any, ends: list[Any]) -> None:
        """Edges are added, and some are given another rule."""
        known = [e for e in self.plain._edges.values() if e.kind == kind and e.tenant == made.tenant]  # fmt: skip
        if ends and self.rng.random() < 0.4:
            source, target = self.rng.choices(ends, k=2)
            edge = Edge(self.id(made.tenant, "e", kind == "extension"), made.tenant, kind, source.id, target.id, self.rng.choice(RULES), self.text(), self.order)  # fmt: skip
            made.edges[edge.id] = edge
        for edge in self.rng.sample(known, min(len(known), self.rng.randrange(2))):
            made.edges[edge.id] = msgspec.structs.replace(edge, rule=self.rng.choice(RULES), order=self.order)  # fmt: skip

    def findings(self, made: Delta, fields: list[Field]) -> None:
        """Findings are made, dealt with, and made again under the same id."""
        for n in range(self.rng.randrange(3) if fields else 0):
            name = f"{made.tenant}:v{self.rng.randrange(6)}"
            subject = self.rng.choice(fields).id
            found = Evidence(name, made.tenant, "dependency", subject, "", n, self.order, "t", "p")
            made.evidence[name] = self.rng.choice((found, None))

    def id(self, tenant: str, letter: str, n: int) -> str:
        return f"{tenant}:{letter}{self.order * 10 + n}"

    def text(self) -> str:
        return self.rng.choice(TEXTS)

    def tags(self) -> tuple[str, ...]:
        return tuple(self.rng.sample(TEXTS, self.rng.randrange(3)))

    def field(self, name: str, tenant: str, topic: str) -> Field:
        """A field with some present."""
        number, choice = (lambda: self.rng.choice(NUMBERS)), self.rng.choice
        return Field(name, tenant, topic, self.text(), self.text(), self.tags(), choice(("set", "review")), choice((None, self.text())), number(), "v", choice((None, "u")), self.text(), "owner", self.tags(), "", number(), number(), number(), self.order, choice((NEVER, 12.5)), choice((0, 1, 2)), number())  # fmt: skip


def place(record: Any) -> tuple[str, str]:
    """Where a record stands among all."""
    return type(record).__name__, record.id


def run(kind: Any, seed: int, steps: int) -> None:
    """A life of one store, compared after every step."""
    with tempfile.TemporaryDirectory() as folder:
        both = Both(lambda: open_store(Path(folder, "m.db"), kind), random.Random(seed))
        for number in range(steps):
            print(f"step {number}", flush=True)
            both.step()
            both.compare()
        both.reopen()
        both.compare()


def trials(kind: str, seeds: int, steps: int) -> list[str]:
    """Try the seeds, each in a process of its own, and tell of those that fail."""
    failed = []
    for seed in range(seeds):
        child = subprocess.run(
            [sys.executable, __file__, kind, str(seed), str(steps), "here"],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            capture_output=True,
            text=True,
        )
        if child.returncode:
            said = (child.stdout.splitlines()[-1:], child.stderr.splitlines()[-1:])
            failed.append(f"{kind}, seed {seed}: ended with {child.returncode} after {said}")
    return failed


if __name__ == "__main__":
    if sys.argv[4:] == ["here"]:
        run(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
    else:
        failed = trials(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
        print(f"{len(failed)} of {sys.argv[2]} lives failed", *failed, sep="\n")
