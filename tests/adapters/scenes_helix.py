"""Scenes of the recipe's store, played in its own environment: `python scenes_helix.py SCENE FOLDER`.

What a model would say stands in the turns themselves, so that each scene says exactly what is
written. A scene that goes wrong raises.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from steeltrap.adapters.helix import HelixRecipe, forget
from steeltrap.adapters.helix.asks import Candidate
from steeltrap.adapters.helix.graph import LABELS, Row, Store, dsl, every, keyed
from steeltrap.harness.memory import MemoryFault, Query, Subject, Utterance

DIMENSION = 8
DAY = "2026-01-{:02d}T09:00"


class Told:
    """Models that say what stands in the turn, as JSON: facts, and how each relates to which texts."""

    def __init__(self) -> None:
        self._facts: list[dict[str, Any]] = []

    def open(self) -> int:
        return DIMENSION

    def close(self) -> None:
        pass

    def embedded(self, texts: Sequence[str]) -> list[list[float] | None]:
        """By letters, so that texts that are alike are near; a text in * has a wrong dimension."""
        vectors: list[list[float] | None] = []
        for text in texts:
            counts = [1.0] * DIMENSION
            for letter in text:
                counts[ord(letter) % DIMENSION] += 1
            vectors.append(counts[:3] if text.startswith("*") else counts)
        return vectors

    def extracted(self, turn: Utterance, *_: Any) -> list[Candidate]:
        self._facts = json.loads(turn.text)
        given = {
            "kind": "fact", "confidence": 1.0, "source": turn.id,
            "scope": "user", "importance": "normal", "event_at": "", "expires_at": "",
        }  # fmt: skip
        found = []
        for fact in self._facts:
            said = {name: one for name, one in fact.items() if name not in ("relation", "to")}
            named = [name for name in ("Mill", "Barn") if name.lower() in fact["content"]]
            found.append(Candidate(**{**given, "entities": named, **said}))
        return found

    def adjudicated(self, _: Any, memories: Sequence[Row]) -> list[tuple[Any, list[Row]]]:
        return [
            (
                fact.get("relation", "new"),
                [row for row in memories if row.text in fact.get("to", ())],
            )
            for fact in self._facts
        ]

    def profiled(self, *_: Any) -> list[Any]:
        return []


def opened(folder: Path, **settings: Any) -> HelixRecipe:
    memory = HelixRecipe(**settings)
    memory._minds = Told()  # type: ignore[assignment]
    memory.open(folder)
    return memory


def tell(
    memory: HelixRecipe, turn: str, day: int, *facts: dict[str, Any], tenant: str = "a"
) -> None:
    said = json.dumps(facts)
    memory.ingest(Utterance(turn, DAY.format(day), tenant, "s", "user", said))


def fact(content: str, relation: str = "new", *to: str, **more: Any) -> dict[str, Any]:
    return {"content": content, "relation": relation, "to": to, **more}


def texts(memory: HelixRecipe) -> set[str]:
    return {item.text for item in memory.active("a") if item.id.startswith("memory-")}


def served(memory: HelixRecipe, at: str, question: str = "the mill?") -> set[str]:
    items = memory.retrieve(Query("q", at, "a", question, 10))
    return {item.text for item in items if item.id.startswith("memory-")}


def recovered(memory: HelixRecipe) -> set[str]:
    return {item.text for item in memory.recover(Subject("a", "mill", "", "?"))}


def dump(store: Store) -> str:
    """Every node with all that it holds, and every edge."""
    is_, g = dsl().Predicate, dsl().g
    nodes = {
        label: store.read(rows=g().n_with_label(label).value_map())["rows"] for label in LABELS
    }
    found = store.read(edges=g().e_where(is_.has_key("$id")).edge_properties())["edges"]
    return json.dumps([nodes, sorted(found, key=json.dumps)], sort_keys=True)


# ---------------------------------------------------------------- forgetting


def soft_deletion(folder: Path) -> None:
    memory = opened(folder)
    tell(memory, "t1", 1, fact("the mill is red"), fact("the barn is old"))
    memory.remove(Subject("a", "mill", "", "?"))
    assert texts(memory) == served(memory, DAY.format(2)) == {"the barn is old"}
    assert recovered(memory) == {"the mill is red"}
    memory.restore(Subject("a", "mill", "", "?"))
    assert texts(memory) == served(memory, DAY.format(2)) == {"the mill is red", "the barn is old"}


def expiry(folder: Path) -> None:
    memory = opened(folder)
    tell(memory, "t1", 1, fact("the mill is shut", expires_at=DAY.format(10)), fact("mill is red"))
    tell(memory, "t2", 2, fact("the red ends", "extend", "mill is red", expires_at=DAY.format(20)))
    assert len(served(memory, DAY.format(9))) == 3
    assert served(memory, DAY.format(10)) == {"mill is red", "the red ends"}
    memory.maintain(DAY.format(11))
    (row,) = memory._about(Subject("a", "shut", "", "?"))
    assert (row.hidden_at, row.hidden_by) == (DAY.format(11), "expiry")
    assert served(memory, DAY.format(20)) == set()
    memory.restore(Subject("a", "mill", "", "?"))
    assert served(memory, DAY.format(20)) == set()
    assert "the mill is shut" in recovered(memory)


def decay(folder: Path) -> None:
    memory = opened(folder)
    faded = {"kind": "episode", "importance": "low"}
    tell(memory, "t1", 1, fact("mill: it rained", **faded), fact("mill: guests", **faded),
         fact("mill: fire", kind="episode"), fact("mill: trifle", importance="low"))  # fmt: skip
    rain = memory._about(Subject("a", "rained", "", "?"))[0].key
    memory._recalls = {rain: (2.0, DAY.format(2))}
    memory.maintain(DAY.format(30))
    assert len(texts(memory)) == 4
    memory.maintain(DAY.format(31))
    assert texts(memory) == {"mill: it rained", "mill: fire", "mill: trifle"}
    assert "mill: guests" in recovered(memory)
    memory.restore(Subject("a", "guests", "", "?"))
    assert "mill: guests" in texts(memory)


def a_source_goes(folder: Path) -> None:
    memory = opened(folder)
    tell(memory, "t1", 1, fact("mill is red"), fact("barn is old"))
    tell(memory, "t2", 2, fact("mill is blue", "update", "mill is red"))
    tell(memory, "t3", 3, fact("barn has bats", "extend", "barn is old"))
    tell(memory, "t4", 4, fact("barn has bats", "duplicate", "barn has bats"))
    memory.erase_source("a", "t2")
    assert texts(memory) == {"barn is old", "barn has bats"}
    left = dump(memory._store)  # type: ignore[arg-type]
    assert "mill" not in left and "Mill" not in left
    (old,) = [item for item in memory.active("a") if item.text == "barn is old"]
    assert old.sources == ("t1",), "what else was derived from a source still cites it"
    memory.erase_source("a", "t3")
    assert texts(memory) == {"barn is old"}
    memory.erase("a", None)
    assert all(not rows for rows in json.loads(dump(memory._store))[0].values())  # type: ignore[arg-type]


def names_that_begin_alike(folder: Path) -> None:
    memory = opened(folder)
    tell(memory, "t1", 1, fact("mill is red", entities=["Mill"]))
    tell(memory, "t2", 2, fact("mill two is blue", entities=["Mill Two"]))
    (only,) = memory.history(Subject("a", "Mill", "", "?"))
    assert only.text == "mill is red"
    memory.erase("a", Subject("a", "MILL", "", "?"))
    assert texts(memory) == {"mill two is blue"}


# ---------------------------------------------------------------- all or nothing


def a_fault_in_the_middle(folder: Path) -> None:
    memory = opened(folder)
    tell(memory, "t1", 1, fact("mill is red"), fact("barn is old"))
    before, found = dump(memory._store), served(memory, DAY.format(2))  # type: ignore[arg-type]
    memory._recalls = {}
    row = memory._about(Subject("a", "barn", "", "?"))[0]
    wrong = [fact("mill is blue", "update", "mill is red"), fact("*")]
    late = [fact("mill is blue", "update", "mill is red"), fact("gone", "update", "barn is old")]
    for facts, gone in ((wrong, False), (late, True)):
        if gone:  # between the decision and the write somebody else removes the second memory
            forget.remove(memory._store, [row], DAY.format(2))  # type: ignore[arg-type]
            before = dump(memory._store)  # type: ignore[arg-type]
            memory._minds.adjudicated = lambda *_: [  # type: ignore[method-assign]
                ("update", memory._about(Subject("a", "mill", "", "?"))), ("update", [row])
            ]  # fmt: skip
        try:
            tell(memory, "t2", 3, *facts)
        except MemoryFault:
            pass
        else:
            raise AssertionError("a batch with a step that cannot be done was written")
        assert dump(memory._store) == before  # type: ignore[arg-type]
        assert served(memory, DAY.format(4)) == (found if not gone else {"mill is red"})
        memory._recalls = {}
    assert served(memory, DAY.format(4), "blue") == {"mill is red"}


def write_until_killed(folder: Path) -> None:
    """Supersede one memory again and again; a line is printed after each batch."""
    store = Store(folder, DIMENSION)
    rows = store.rows(rows=every("Memory", dsl().Predicate.eq("tenant", "a")))["rows"]
    memory = HelixRecipe()
    memory._minds, memory._store = Told(), store  # type: ignore[assignment]
    number = len(rows)
    memory._tenants = {"a": memory._nobody()}
    memory._tenants["a"].written = max((row.number for row in rows), default=0)
    while True:
        to = [f"mill has {number} doors"] if number else []
        number += 1
        tell(
            memory,
            f"t{number}",
            1,
            fact(f"mill has {number} doors", "update" if to else "new", *to),
        )
        print(number, flush=True)


def whole(folder: Path) -> None:
    """After a kill every version is there with all of its edges, and one of them is current."""
    store = Store(folder, DIMENSION)
    rows = store.rows(rows=dsl().g().n_with_label("Memory"))["rows"]
    latest = [row for row in rows if row.is_latest]
    assert [row.text for row in latest] == [f"mill has {len(rows)} doors"], latest
    assert all(row.valid_to for row in rows if not row.is_latest)
    keys = [row.key for row in rows]
    for edge, way, each in (
        ("UPDATES", "out", len(rows) - 1), ("DERIVED_FROM", "out", len(rows)),
        ("OWNS", "in_", len(rows)), ("MENTIONS", "out", len(rows)),
    ):  # fmt: skip
        assert len(store.reached(keyed("Memory", keys), (way, edge))) == each, edge
    sources = store.read(rows=dsl().g().n_with_label("Source").count())["rows"]
    chunks = store.read(rows=dsl().g().n_with_label("Chunk").count())["rows"]
    assert sources == chunks == len(rows)
    within = every("Memory", dsl().Predicate.eq("isLatest", True))
    (vector,) = Told().embedded(["mill"])
    found = store.searched(within, tenant="a", text="mill doors", vector=vector, limit=len(rows))
    assert {name: [one["key"] for one in hits] for name, hits in found.items()} == {
        "near": [latest[0].key], "worded": [latest[0].key]
    }  # fmt: skip
    print(len(rows))
    store.close()


SCENES: dict[str, Callable[[Path], None]] = {
    scene.__name__: scene
    for scene in (soft_deletion, expiry, decay, a_source_goes, names_that_begin_alike, a_fault_in_the_middle, write_until_killed, whole)
}  # fmt: skip

if __name__ == "__main__":
    SCENES[sys.argv[1]](Path(sys.argv[2]))
