"""RDF and property graph: what a graph of entities keeps, replaces, marks, and leaves behind."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from steeltrap.adapters.embedders import HashEmbedder
from steeltrap.adapters.paradigms import property_graph
from steeltrap.adapters.paradigms.base import Write
from steeltrap.adapters.paradigms.entities import EntityGraph
from steeltrap.adapters.paradigms.property_graph import PropertyGraph
from steeltrap.adapters.paradigms.rdf import Rdf
from steeltrap.harness.memory import Forks, Maintains, Query, Recalls, Salient, Subject
from steeltrap.harness.models import Models
from steeltrap.reference_system.statements import Place, Question

EMBEDDER = HashEmbedder()
NOWHERE = Models("http://127.0.0.1:9", "chat", "embedding", 8)
"""An address that nobody is asked at: what is tested here is the store."""
Make = Callable[..., EntityGraph]
every = pytest.mark.parametrize("make", [Rdf, PropertyGraph])

DUE, HOST = Place("Atlas", "deadline"), Place("Atlas", "host")
PARTY, GUIDE, LUNCH = Place("Boreas", "party"), Place("Boreas", "guide"), Place("Calypso", "lunch")


def at(day: int) -> str:
    return f"2026-01-{day:02}T09:00"


@contextmanager
def opened(make: Make, folder: Path, **settings: Any) -> Iterator[EntityGraph]:
    memory = make(embedder=EMBEDDER, **settings)
    memory.connect(NOWHERE)
    memory.open(folder)
    try:
        yield memory
    finally:
        memory.close()


def tell(memory: EntityGraph, place: Place, value: str, day: int, tenant: str = "a", **more: Any) -> None:  # fmt: skip
    """A value that the owner says on a day of January."""
    now = memory.current(tenant, place, at(day))
    more.setdefault("repeats", now is not None and now.value == value)
    more.setdefault("valid_from", at(day))
    with memory.transaction():
        memory.put(
            Write(tenant, place.topic, place.field, value, "owner", f"t{day}", at(day), **more)
        )


def follow(memory: EntityGraph, target: Place, source: Place, tenant: str = "a") -> None:
    with memory.transaction():
        memory.depend(tenant, source, target, None, "t0", at(1))


def state(memory: EntityGraph, tenant: str = "a") -> dict[str, str]:
    """Values by place; a question mark where one waits for review."""
    found = memory.listing(tenant, at(28))
    return {f"{held.topic}/{held.field}": held.value + "?" * held.review for held in found}


# ---------------------------------------------------------------- values


@every
def test_a_value_takes_the_place_of_the_one_before(make: Make, tmp_path: Path) -> None:
    """What held before is gone: there is no history, no salience and no maintenance to ask for."""
    with opened(make, tmp_path) as memory:
        tell(memory, DUE, "5 May", 1)
        tell(memory, DUE, "9 May", 2)
        (held,) = memory.listing("a", at(3))
        assert ("9 May", ("t2",), at(2)) == (held.value, held.turns, held.valid_from)
        assert not isinstance(memory, Recalls | Salient | Maintains)


@every
def test_a_repetition_is_one_more_source(make: Make, tmp_path: Path) -> None:
    """The value, its spelling and the time since when it holds stay; a new end is taken over."""
    with opened(make, tmp_path) as memory:
        tell(memory, DUE, "5 May", 1)
        tell(memory, DUE, "5  may", 2, repeats=True, until=at(20))
        held = memory.current("a", DUE, at(3))
        assert held is not None
        assert ("5 May", ("t1", "t2")) == (held.value, held.turns)
        assert (at(1), at(20)) == (held.valid_from, held.valid_to)
        assert memory.current("a", DUE, at(20)) is None


@every
def test_late_news_does_not_replace_what_began_later(make: Make, tmp_path: Path) -> None:
    """There is room for one value, and it is the latest in the world, not the latest said."""
    with opened(make, tmp_path) as memory:
        follow(memory, PARTY, DUE)
        tell(memory, PARTY, "8 May", 3)
        tell(memory, DUE, "5 May", 5)
        tell(memory, DUE, "2 May", 6, valid_from=at(4))
        assert {"Atlas/deadline": "5 May", "Boreas/party": "8 May"} == state(memory)


@every
def test_a_withdrawn_value_is_gone_and_marks(make: Make, tmp_path: Path) -> None:
    """What depended on its entity waits for review."""
    with opened(make, tmp_path) as memory:
        for place in (DUE, PARTY):
            tell(memory, place, "5 May", 1)
        follow(memory, PARTY, DUE)
        memory.withdraw("a", DUE, "t2", at(2))
        assert {"Boreas/party": "5 May?"} == state(memory)


# ---------------------------------------------------------------- marks


def chained(memory: EntityGraph) -> None:
    """Boreas follows Atlas, Calypso follows Boreas, and Delos is related to Atlas."""
    for place in (DUE, HOST, PARTY, GUIDE, LUNCH, Place("Delos", "dress")):
        tell(memory, place, "one", 1)
    follow(memory, PARTY, DUE)
    follow(memory, LUNCH, PARTY)
    with memory.transaction():
        memory.relate("a", "Delos", "Atlas", "t0")


@every
def test_an_update_marks_entities_over_all_hops(make: Make, tmp_path: Path) -> None:
    """Fields that do not depend are marked with their entity; an association is not crossed."""
    with opened(make, tmp_path) as memory:
        chained(memory)
        tell(memory, HOST, "two", 2)
        assert {
            "Atlas/deadline": "one", "Atlas/host": "two", "Boreas/guide": "one?",
            "Boreas/party": "one?", "Calypso/lunch": "one?", "Delos/dress": "one",
        } == state(memory)  # fmt: skip


@every
def test_what_is_said_after_a_mark_needs_no_review(make: Make, tmp_path: Path) -> None:
    """A new value or a confirmation is newer than the change; the next change marks it again."""
    with opened(make, tmp_path) as memory:
        chained(memory)
        tell(memory, DUE, "two", 2)
        tell(memory, PARTY, "two", 3)
        tell(memory, GUIDE, "one", 4)
        assert {"Boreas/guide": "one", "Boreas/party": "two"}.items() <= state(memory).items()
        tell(memory, DUE, "three", 5)
        assert {"Boreas/guide": "one?", "Boreas/party": "two?"}.items() <= state(memory).items()


@every
def test_a_first_value_and_a_repetition_mark_nothing(make: Make, tmp_path: Path) -> None:
    """Nothing that followed from the entity is older than they are, or differs by them."""
    with opened(make, tmp_path) as memory:
        chained(memory)
        tell(memory, Place("Atlas", "budget"), "9", 2)
        tell(memory, DUE, "one", 3)
        assert not any("?" in value for value in state(memory).values())


@every
def test_on_a_cycle_an_entity_marks_itself(make: Make, tmp_path: Path) -> None:
    """Also on one of a single edge; what was just said is not marked, and the walk ends."""
    with opened(make, tmp_path) as memory:
        chained(memory)
        follow(memory, DUE, LUNCH)
        tell(memory, DUE, "two", 2)
        marked = state(memory)
        assert ("two", "one?") == (marked["Atlas/deadline"], marked["Atlas/host"])
        follow(memory, Place("Delos", "dress"), Place("Delos", "hall"))
        tell(memory, Place("Delos", "hall"), "A", 3)
        tell(memory, Place("Delos", "hall"), "B", 4)
        assert {"Delos/dress": "one?", "Delos/hall": "B"}.items() <= state(memory).items()


@every
def test_on_update_nothing_marks_nothing(make: Make, tmp_path: Path) -> None:
    """The engine by itself does nothing when a value changes."""
    with opened(make, tmp_path, on_update="nothing") as memory:
        chained(memory)
        tell(memory, DUE, "two", 2)
        memory.withdraw("a", HOST, "t3", at(3))
        assert not any("?" in value for value in state(memory).values())


# ---------------------------------------------------------------- questions


class Reads:
    """An interpreter that takes every question for one of these places."""

    def __init__(self, *places: Place) -> None:
        self._places = places

    def question(self, *_: Any) -> Question:
        return Question(places=self._places)

    def close(self) -> None:
        pass


@every
@pytest.mark.parametrize(
    ("hops", "due"),
    [
        (0, ["Atlas/deadline"]),
        (1, ["Atlas/deadline", "Boreas/party", "Boreas/guide", "Delos/dress"]),
        (2, ["Atlas/deadline", "Boreas/party", "Boreas/guide", "Calypso/lunch", "Delos/dress"]),
    ],
)
def test_a_question_looks_so_many_edges_further(make: Make, tmp_path: Path, hops: int, due: list[str]) -> None:  # fmt: skip
    """Along edges of either type and direction, each value once, as far as the limit allows."""
    with opened(make, tmp_path, hops=hops) as memory:
        chained(memory)
        follow(memory, GUIDE, HOST)
        memory._interpreter = Reads(DUE)  # type: ignore[assignment]
        served = [item.id for item in memory.retrieve(Query("q", at(9), "a", "?", 10))]
        assert due[:1] == served[:1] and sorted(due) == sorted(str(name) for name in served)
        assert served[:2] == [i.id for i in memory.retrieve(Query("q", at(9), "a", "?", 2))]


@every
def test_what_lies_about_two_places_is_served_once(make: Make, tmp_path: Path) -> None:
    """What was asked for comes first, in the order of the question."""
    with opened(make, tmp_path) as memory:
        chained(memory)
        memory._interpreter = Reads(PARTY, DUE)  # type: ignore[assignment]
        served = [item.id for item in memory.retrieve(Query("q", at(9), "a", "?", 10))]
        assert ["Boreas/party", "Atlas/deadline"] == served[:2]
        assert len(served) == len(set(served)) == len(state(memory))


@every
def test_topics_and_other_names_are_known_in_order(make: Make, tmp_path: Path) -> None:
    """An entity that an edge named has no fields yet."""
    with opened(make, tmp_path) as memory:
        tell(memory, DUE, "one", 1)
        follow(memory, PARTY, DUE)
        memory.alias("a", "Atlas", "the big one")
        known = [(one.topic, one.fields, one.names) for one in memory.schema("a")]
        assert [("Atlas", ("deadline",), ("the big one",)), ("Boreas", (), ())] == known
        assert [] == list(memory.schema("b"))


# ---------------------------------------------------------------- safety

HOSTILE = (
    'x" . } ; DROP ALL #', "'; MATCH (n) DETACH DELETE n //", "<urn:x> \\ > `y`\n\r\t", "$entity ?e",
    "a/b", "a%2Fb", "a b", "a%20b", '["a"', "Größe 日本 😀", "{tenant: 1}",
)  # fmt: skip


@every
def test_names_and_values_are_never_read_as_statements(make: Make, tmp_path: Path) -> None:
    """Whatever signs they hold, they come back as they were, each in its own tenant."""
    with opened(make, tmp_path) as memory:
        for tenant in HOSTILE:
            for topic in HOSTILE:
                with memory.transaction():
                    memory.put(Write(tenant, topic, tenant, topic, tenant, topic, at(1), at(1)))
                    memory.depend(tenant, Place(topic, "x"), Place(tenant, "y"), None, topic, at(1))
                    memory.alias(tenant, topic, f"{topic}*")
        for tenant in HOSTILE:
            found = memory.listing(tenant, at(2))
            assert [(topic, tenant, topic, tenant, (topic,)) for topic in HOSTILE] == [
                (held.topic, held.field, held.value, held.said_by, held.turns)
                for held in sorted(found, key=lambda held: HOSTILE.index(held.topic))
            ]
            assert {f"{topic}*" for topic in HOSTILE} == {n for s in memory.schema(tenant) for n in s.names}  # fmt: skip
        memory.erase(HOSTILE[0], None)
        assert [] == list(memory.listing(HOSTILE[0], at(2)))
        assert all(len(memory.listing(tenant, at(2))) == len(HOSTILE) for tenant in HOSTILE[1:])


def _fail_in_the_middle(memory: EntityGraph) -> None:
    with memory.transaction():
        memory.put(Write("a", "Atlas", "deadline", "two", "owner", "t2", at(2), at(2)))
        memory.put(Write("a", "Elba", "gate", "two", "owner", "t2", at(2), at(2)))
        memory.relate("a", "Elba", "Atlas", "t2")
        raise ValueError("no field")


@every
def test_a_turn_that_fails_leaves_nothing(make: Make, tmp_path: Path) -> None:
    """Values, marks, edges and entities are as they were before it."""
    with opened(make, tmp_path) as memory:
        chained(memory)
        before = state(memory), list(memory.schema("a"))
        with pytest.raises(ValueError, match="no field"):
            _fail_in_the_middle(memory)
        assert before == (state(memory), list(memory.schema("a")))
        tell(memory, DUE, "two", 3)
        assert "one?" == state(memory)["Boreas/party"]


@every
def test_an_erased_field_leaves_no_byte(make: Make, tmp_path: Path) -> None:
    """An entity goes with its last value and its edges; what remains is there, and goes on."""
    folder = tmp_path / "it's \\ here"
    with opened(make, folder) as memory:
        chained(memory)
        tell(memory, Place("Zanzibar", "codeword"), "Mandragora", 1)
        tell(memory, HOST, "Wolfram", 2)
        follow(memory, LUNCH, Place("Zanzibar", "codeword"))
        memory.erase("a", Subject("a", "Zanzibar", "codeword", ""))
        memory.erase("a", Subject("a", "Atlas", "host", ""))
        memory.erase("a", Subject("a", "Nowhere", "host", ""))
        left = b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())
        for word in (b"andragora", b"anzibar", b"codeword", b"olfram"):
            assert word not in left
        assert {"Atlas/deadline": "one", "Boreas/party": "one?"}.items() <= state(memory).items()
        tell(memory, LUNCH, "two", 4)
        tell(memory, DUE, "two", 5)
        assert "two?" == state(memory)["Calypso/lunch"]
        assert [("Delos", ("dress",), ())] == [
            (one.topic, one.fields, one.names) for one in memory.schema("a") if one.topic == "Delos"
        ]
        assert {"Delos"} <= {held.topic for held in memory.linked("a", DUE, at(6))}
        memory.erase("a", None)
        left = b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())
        assert ({}, []) == (state(memory), list(memory.schema("a")))
        assert b"alypso" not in left


def test_a_triple_goes_with_the_value(tmp_path: Path) -> None:
    """Nothing of a replaced value is left in the graph, neither the triple nor who said it."""
    with opened(Rdf, tmp_path) as memory:
        assert isinstance(memory, Rdf)
        tell(memory, DUE, "5 May", 1)
        before = len(memory._store)
        tell(memory, DUE, "9 May", 2)
        assert before == len(memory._store)
        assert not any(word in str(quad) for quad in memory._store for word in ("5 May", "t1"))


def test_a_fork_of_triples_is_a_store_of_its_own(tmp_path: Path) -> None:
    """It answers alike, and what happens to it, erasure included, does not touch the original."""
    with opened(Rdf, tmp_path) as memory:
        assert isinstance(memory, Forks)
        chained(memory)
        tell(memory, DUE, "two", 2)
        copy: Any = memory.fork()
        assert state(memory) == state(copy)
        before = state(memory)
        tell(copy, PARTY, "three", 3)
        copy.erase("a", Subject("a", "Atlas", "host", ""))
        copy.erase("a", None)
        copy.close()
        assert before == state(memory)
        assert memory.size_bytes() > 0


def test_the_log_is_folded_in_by_and_by(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine's log does not grow with every turn, and nothing is lost by it."""
    monkeypatch.setattr(property_graph, "_CHECKPOINT_TURNS", 5)
    with opened(PropertyGraph, tmp_path) as memory:
        sizes = []
        for day in range(1, 21):
            tell(memory, Place("Atlas", f"field {day}"), str(day), day)
            sizes.append(sum(path.stat().st_size for path in tmp_path.rglob("*.wal")))
        assert 0 in sizes[4::5] and max(sizes[5:]) <= 2 * max(sizes[:5])
        assert 20 == len(state(memory))


@every
@pytest.mark.parametrize(
    ("settings", "said"), [({"on_update": "all"}, "nothing or mark"), ({"hops": 4}, "0 to 3")]
)
def test_a_setting_that_makes_no_sense_is_refused(make: Make, settings: dict[str, Any], said: str) -> None:  # fmt: skip
    """The message says what may be set."""
    with pytest.raises(ValueError, match=said):
        make(embedder=EMBEDDER, **settings)


# ---------------------------------------------------------------- both alike


class Plain:
    """The same graph in dictionaries, as plainly as it can be written."""

    def __init__(self) -> None:
        self.values: dict[Place, tuple[str, int]] = {}
        self.needs: set[tuple[str, str]] = set()
        self.marked: dict[str, int] = {}
        self.count = 0

    def tell(self, place: Place, value: str) -> None:
        self.count += 1
        old = self.values.get(place)
        self.values[place] = value, self.count
        if old is not None and old[0] != value:
            self.mark(place.topic)

    def withdraw(self, place: Place) -> None:
        self.count += 1
        if self.values.pop(place, None):
            self.mark(place.topic)

    def mark(self, topic: str) -> None:
        reached: set[str] = set()
        edge = {topic}
        while edge := {a for a, b in self.needs if b in edge} - reached:
            reached |= edge
        self.marked |= dict.fromkeys(reached, self.count)

    @property
    def state(self) -> dict[str, str]:
        return {
            f"{place.topic}/{place.field}": value + "?" * (said < self.marked.get(place.topic, 0))
            for place, (value, said) in self.values.items()
        }


@pytest.mark.parametrize("seed", range(2))
def test_both_stores_do_as_the_plain_one(tmp_path: Path, seed: int) -> None:
    """Over random tellings, withdrawals and rules, all three hold and mark the same."""
    draw, plain = random.Random(seed), Plain()
    places = [Place(topic, name) for topic in "ABCDEF" for name in ("p", "q")]
    with opened(Rdf, tmp_path / "1") as one, opened(PropertyGraph, tmp_path / "2") as other:
        for day in [day for day in range(1, 21) for _ in range(3)]:
            place, source, value = draw.choice(places), draw.choice(places), draw.choice("xyz")
            what = draw.choice(("tell", "tell", "tell", "withdraw", "depend"))
            for memory in (one, other):
                if what == "tell":
                    tell(memory, place, value, day)
                elif what == "depend":
                    follow(memory, place, source)
                elif memory.current("a", place, at(day)):
                    memory.withdraw("a", place, "t", at(day))
            if what == "tell":
                plain.tell(place, value)
            elif what == "depend":
                plain.needs.add((place.topic, source.topic))
            else:
                plain.withdraw(place)
            assert plain.state == state(one) == state(other)
