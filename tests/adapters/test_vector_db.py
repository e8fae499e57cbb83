"""Vector database: what counts as one entry, what is pruned, what is found and what is erased."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from steeltrap.adapters.embedders import HashEmbedder
from steeltrap.adapters.paradigms.base import Write
from steeltrap.adapters.paradigms.vector_db import VectorDb
from steeltrap.harness.memory import (
    Erases,
    Forks,
    Item,
    Lists,
    Maintains,
    MemoryFault,
    Query,
    Recalls,
    Salient,
    Subject,
)
from steeltrap.harness.models import Models
from steeltrap.reference_system.rules import Rule
from steeltrap.reference_system.statements import Place

NOWHERE = Models("http://127.0.0.1:9", "chat", "embedding", 8)
"""An address that nobody is asked at: what is tested here is the store."""
DUE, PARTY = Place("Atlas", "deadline"), Place("Boreas", "party")


class Angles:
    """Sentences as points of a circle, so that a test can say how near two of them are."""

    dimension = 2

    def __init__(self, **degrees: float) -> None:
        self._degrees = degrees

    def embed(self, texts: Sequence[str]) -> np.ndarray[Any, Any]:
        """By the first word that is known."""
        found = [next((d for w, d in self._degrees.items() if w in t), 180.0) for t in texts]
        radians = np.radians(np.array(found))
        return np.stack([np.cos(radians), np.sin(radians)], axis=1).astype(np.float32)


FAR_AND_NEAR = Angles(May=0.0, June=10.0, July=40.0)
"""June is near May (cosine .985), and July is not (.77)."""


def at(day: int) -> str:
    return f"2026-01-{day:02}T09:00"


@contextmanager
def opened(folder: Path, embedder: Any = FAR_AND_NEAR, **settings: Any) -> Iterator[VectorDb]:
    memory = VectorDb(embedder=embedder, **settings)
    memory.connect(NOWHERE)
    memory.open(folder)
    try:
        yield memory
    finally:
        memory.close()


def tell(memory: VectorDb, place: Place, value: str, day: int, **more: Any) -> None:
    """A value that the owner says on a day of January."""
    more.setdefault("valid_from", at(day))
    memory.passed(at(day))
    with memory.transaction():
        memory.put(Write("a", place.topic, place.field, value, "owner", f"t{day}", at(day), **more))


def texts(items: Sequence[Item]) -> list[str]:
    return [item.text.rpartition(" is ")[2].rstrip(".") for item in items]


def asked(memory: VectorDb, text: str, limit: int = 10, tenant: str = "a") -> list[Item]:
    return list(memory.retrieve(Query("q", at(28), tenant, text, limit)))


# ---------------------------------------------------------------- what is one entry


def test_a_near_value_is_replaced_and_a_far_one_stays_beside(tmp_path: Path) -> None:
    """Nearness of the sentences decides it, and neither the topic nor the field."""
    with opened(tmp_path) as memory:
        tell(memory, DUE, "5 May", 1)
        tell(memory, DUE, "9 June", 2)
        assert ["9 June"] == texts(memory.active("a"))
        tell(memory, DUE, "3 July", 3)
        assert ["9 June", "3 July"] == texts(memory.active("a"))
        tell(memory, PARTY, "1 May", 4)
        assert ["3 July", "1 May"] == texts(memory.active("a"))
        assert all(item.valid_to is None for item in memory.active("a"))


def test_skipped_is_what_is_near(tmp_path: Path) -> None:
    """The older entry stays as it is: a small revision is lost."""
    with opened(tmp_path, on_near_duplicate="skip") as memory:
        for day, value in enumerate(("5 May", "9 June", "3 July"), 1):
            tell(memory, DUE, value, day)
        assert [("5 May", ("t1",)), ("3 July", ("t3",))] == [
            (texts([item])[0], item.sources) for item in memory.active("a")
        ]


def test_without_the_check_everything_is_appended(tmp_path: Path) -> None:
    """Repetitions too, each an entry with an id of its own."""
    with opened(tmp_path, near_duplicate=None) as memory:
        for day, value in enumerate(("5 May", "9 June", "5 May"), 1):
            tell(memory, DUE, value, day)
        assert ["5 May", "9 June", "5 May"] == texts(memory.active("a"))
        assert 3 == len({item.id for item in memory.active("a")})


def test_a_repetition_is_one_more_source(tmp_path: Path) -> None:
    """The same words again are one entry, which holds from the latest time on."""
    with opened(tmp_path) as memory:
        tell(memory, DUE, "5 May", 1)
        tell(memory, DUE, "5 May", 2)
        (item,) = memory.active("a")
        assert (("t1", "t2"), at(2)) == (item.sources, item.valid_from)


def test_neither_late_news_nor_another_kind_takes_a_place(tmp_path: Path) -> None:
    """What held earlier, a withdrawal and a rule stand beside the entry that they resemble."""
    with opened(tmp_path, Angles(Atlas=0.0)) as memory:
        tell(memory, DUE, "5 May", 5)
        tell(memory, DUE, "1 May", 6, valid_from=at(2))
        with memory.transaction():
            memory.withdraw("a", DUE, "t7", at(7))
            memory.depend("a", DUE, PARTY, Rule("offset", days=-1), "t7", at(7))
        assert [
            "The deadline of Atlas is 5 May.",
            "The deadline of Atlas is 1 May.",
            "The deadline of Atlas is no longer set.",
            "The party of Boreas is always 1 day before the deadline of Atlas.",
        ] == [item.text for item in memory.active("a")]


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        (Rule("offset", days=7), "is always 7 days after the deadline of Atlas."),
        (Rule("same"), "is always the same as the deadline of Atlas."),
        (Rule("offset"), "is always the same as the deadline of Atlas."),
        (
            Rule("scaled", times=1, over=2),
            "is always 1/2 of the deadline of Atlas, rounded to a whole number.",
        ),
        (Rule("review"), "has to be looked at whenever the deadline of Atlas changes."),
        (None, "has to be looked at whenever the deadline of Atlas changes."),
    ],
)
def test_a_rule_is_a_sentence(tmp_path: Path, rule: Rule | None, said: str) -> None:
    """Nothing follows from it."""
    with opened(tmp_path) as memory:
        with memory.transaction():
            memory.depend("a", DUE, PARTY, rule, "t1", at(1))
        (item,) = memory.active("a")
        assert (f"The party of Boreas {said}", ("t1",)) == (item.text, item.sources)


# ---------------------------------------------------------------- what is known


def test_the_latest_in_the_world_counts(tmp_path: Path) -> None:
    """For whose word counts: by the time from which it holds, until it ends or is withdrawn."""
    with opened(tmp_path, near_duplicate=None) as memory:
        tell(memory, DUE, "3 July", 3, until=at(9))
        tell(memory, DUE, "5 May", 4, valid_from=at(2))
        held = memory.current("a", DUE, at(5))
        assert held is not None and "3 July" == held.value
        assert memory.current("a", DUE, at(9)) is None
        assert memory.current("b", DUE, at(5)) is None
        with memory.transaction():
            memory.withdraw("a", DUE, "t5", at(5))
        assert memory.current("a", DUE, at(6)) is None


def test_topics_fields_and_other_names_come_from_the_payload(tmp_path: Path) -> None:
    """In the order in which they came, also within a turn."""
    with opened(tmp_path) as memory:
        tell(memory, DUE, "5 May", 1)
        with memory.transaction():
            memory.alias("a", "Atlas", "the big one")
            memory.relate("a", "Boreas", "Calypso", "t2")
            known = [(one.topic, one.fields, one.names) for one in memory.schema("a")]
        assert known == [(one.topic, one.fields, one.names) for one in memory.schema("a")]
        assert [("Atlas", ("deadline",), ("the big one",)), ("Boreas", (), ()), ("Calypso", (), ())] == known  # fmt: skip


def test_a_turn_that_fails_leaves_nothing(tmp_path: Path) -> None:
    """Its entries are written when all of them are known."""
    with opened(tmp_path) as memory:
        with pytest.raises(ValueError, match="no field"):
            _fail_in_the_middle(memory)
        assert [] == list(memory.active("a"))
        assert [] == list(memory.schema("a"))


def _fail_in_the_middle(memory: VectorDb) -> None:
    with memory.transaction():
        memory.put(Write("a", "Atlas", "deadline", "5 May", "owner", "t1", at(1), at(1)))
        assert memory.current("a", DUE, at(1))
        raise ValueError("no field")


def test_finds_by_meaning_and_by_words(tmp_path: Path) -> None:
    """The two rankings are fused: an entry that both know comes first, and scores fall."""
    with opened(tmp_path, Angles(May=0.0, July=40.0, soon=41.0, codeword=90.0)) as memory:
        tell(memory, DUE, "5 May", 1)
        tell(memory, PARTY, "3 July", 2)
        tell(memory, Place("Calypso", "codeword"), "heron", 3)
        assert "3 July" == texts(asked(memory, "soon?"))[0]
        assert "heron" == texts(asked(memory, "heron, soon?"))[0]
        served = asked(memory, "the party, soon", 2)
        assert 2 == len(served) and "3 July" == texts(served)[0]
        assert (served[0].score or 0) > (served[1].score or 0) > 0
        assert [] == asked(memory, "soon?", 0) == asked(memory, "soon?", tenant="b")
        assert not isinstance(memory, Recalls | Salient | Forks)
        with pytest.raises(MemoryFault, match="whose memory"):
            asked(memory, "soon?", tenant="")


# ---------------------------------------------------------------- retention and erasure


def test_the_oldest_goes_when_the_room_runs_out(tmp_path: Path) -> None:
    """Whatever it is worth; an entry that was replaced is as young as what replaced it."""
    with opened(tmp_path, HashEmbedder(), capacity=3, near_duplicate=0.999) as memory:
        for day, value in enumerate(("one", "two", "three", "one", "four"), 1):
            tell(memory, DUE, value, day, tags=("vital",))
        assert ["three", "one", "four"] == texts(memory.active("a"))
        assert {"three", "one", "four"} == set(texts(asked(memory, "deadline")))


def test_what_is_too_old_goes_on_write_and_by_maintenance(tmp_path: Path) -> None:
    """By the time at which it was said, in simulated days."""
    with opened(tmp_path, HashEmbedder(), ttl_days=5, near_duplicate=None) as memory:
        assert isinstance(memory, Maintains)
        for day, value in ((1, "one"), (6, "two"), (7, "three")):
            tell(memory, DUE, value, day, valid_from=at(1))
        assert ["two", "three"] == texts(memory.active("a"))
        memory.maintain(at(12))
        assert ["three"] == texts(memory.active("a"))
        memory.maintain(at(13))
        assert [] == memory.active("a") == asked(memory, "deadline")


def test_an_erased_place_leaves_no_byte(tmp_path: Path) -> None:
    """Rules that name it go too; what remains is found as before."""
    with opened(tmp_path, HashEmbedder(), near_duplicate=None) as memory:
        assert isinstance(memory, Erases) and isinstance(memory, Lists)
        for day, value in enumerate(("Mandragora", "Wolfram"), 1):
            tell(memory, DUE, value, day)
        tell(memory, PARTY, "heron", 3)
        with memory.transaction():
            memory.depend("a", DUE, PARTY, Rule("same"), "t4", at(4))
            memory.relate("a", "Atlas", "Boreas", "t4")
        memory.erase("a", Subject("a", "Atlas", "deadline", ""))
        memory.erase("a", Subject("a", "Nowhere", "deadline", ""))
        memory.erase("b", None)
        assert ["heron", "are related, and independent of each other"] == [
            text.rpartition("Boreas ")[2] for text in texts(memory.active("a"))
        ]
        assert "heron" in texts(asked(memory, "heron"))
        left = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
        assert not any(word in left for word in (b"andragora", b"olfram", b"deadline"))
        memory.erase("a", None)
        assert [] == memory.active("a") == asked(memory, "heron")
        tell(memory, DUE, "again", 5)
        assert ["again"] == texts(memory.active("a"))
        assert memory.size_bytes() > 0


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"near_duplicate": 0.0}, "a cosine above 0"),
        ({"near_duplicate": 1.5}, "a cosine above 0"),
        ({"on_near_duplicate": "merge"}, "replace or skip"),
        ({"capacity": 0}, "above 0, or null"),
        ({"ttl_days": 0}, "above 0, or null"),
    ],
)
def test_a_setting_that_makes_no_sense_is_refused(settings: dict[str, Any], said: str) -> None:
    """The message says what may be set."""
    with pytest.raises(ValueError, match=said):
        VectorDb(embedder=HashEmbedder(), **settings)
