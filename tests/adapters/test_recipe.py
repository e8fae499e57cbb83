"""Fusion adjusted by recency and by how often an entry was served."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from steeltrap.adapters.embedders import HashEmbedder
from steeltrap.adapters.vector import Recipe, Vector
from steeltrap.harness.memory import Item, Query, Subject, Utterance, capabilities

SAID = {
    "old": ("2026-01-01T10:00", "The boiler was repaired"),
    "new": ("2026-03-01T10:00", "The boiler was repaired"),
    "choir": ("2026-03-01T11:00", "Choir on Tuesday"),
}


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Recipe]:
    made = opened(Recipe(HashEmbedder()), tmp_path)
    yield made
    made.close()


def opened(made: Recipe, folder: Path) -> Recipe:
    made.open(folder)
    for name, (at, text) in SAID.items():
        made.ingest(Utterance(name, at, "acme", "s", "user", text))
    return made


def ask(memory: Vector, text: str, limit: int = 10, at: str = "2026-03-31T10:00") -> list[Item]:
    return list(memory.retrieve(Query("q", at, "acme", text, limit)))


def test_a_score_is_that_of_the_fusion_times_the_adjustments(memory: Recipe) -> None:
    """What is 30 days old keeps half of a quarter; what was served once has half of a quarter."""
    scores = {item.id: item.score for item in ask(memory, "boiler repaired")}
    assert scores["new"] == pytest.approx((1 / 62 + 1 / 62) * (1 + 0.25 / 2), abs=1e-9)
    assert scores["old"] == pytest.approx((1 / 61 + 1 / 61) * (1 + 0.25 * 0.5 ** (89 / 30)))
    again = {item.id: item.score for item in ask(memory, "boiler repaired")}
    assert again["new"] == pytest.approx((1 / 62 + 1 / 62) * (1 + 0.25 / 2 + 0.25 / 2))


def test_of_two_alike_the_recent_one_comes_first(memory: Recipe, tmp_path: Path) -> None:
    """Without recency the earlier of two equal entries is served first, as by the fusion."""
    assert ["new", "old"] == [item.id for item in ask(memory, "boiler repaired", limit=2)]
    plain = opened(Recipe(HashEmbedder(), recency=0), tmp_path / "plain")
    assert ["old", "new"] == [item.id for item in ask(plain, "boiler repaired", limit=2)]
    plain.close()


def test_what_is_said_later_than_asked_is_of_now(memory: Recipe) -> None:
    """An entry dated after the question gains no more than one of the same minute."""
    late = ask(memory, "choir on Tuesday", at="2026-02-01T10:00")[0]
    assert late.score == pytest.approx((1 / 61 + 1 / 61) * 1.25)


def test_what_is_served_is_served_again(tmp_path: Path) -> None:
    """Reading strengthens: an entry that was served passes its twin that was not."""
    memory = opened(Recipe(HashEmbedder(), recency=0), tmp_path)
    memory.ingest(Utterance("third", "2026-03-02T10:00", "acme", "s", "user", SAID["old"][1]))
    assert ["old"] == [item.id for item in ask(memory, "boiler repaired", limit=1)]
    memory._shelf("acme").served["third"] = 9
    assert ["third", "old", "new"] == [item.id for item in ask(memory, "boiler repaired", limit=3)]
    memory.close()


def test_salience_can_be_read_and_reading_it_changes_nothing(memory: Recipe) -> None:
    """It counts servings of entries that name topic and field, or the topic where none does."""
    assert "salience" in capabilities(memory)
    assert "salience" not in capabilities(Vector(HashEmbedder(), fusion="hybrid"))
    boiler, choir = Subject("acme", "Boiler", "repaired", "?"), Subject("acme", "Choir", "day", "?")
    assert (0.0, 0.0) == (memory.salience(boiler), memory.salience(choir))
    ask(memory, "boiler repaired", limit=2)
    assert (2.0, 0.0) == (memory.salience(boiler), memory.salience(choir))
    assert (2.0, 0.0) == (memory.salience(boiler), memory.salience(choir))
    assert memory.salience(Subject("acme", "Dentist", "day", "?")) is None
    assert memory.salience(Subject("other", "Boiler", "repaired", "?")) is None


def test_what_was_served_is_forgotten_with_what_is_erased(memory: Recipe) -> None:
    """A turn that comes back under the id of an erased one begins at no serving; others stand."""
    ask(memory, "boiler repaired choir")
    memory.erase("acme", Subject("acme", "boiler", "repaired", "?"))
    at, text = SAID["old"]
    memory.ingest(Utterance("old", at, "acme", "s", "user", text))
    assert 0.0 == memory.salience(Subject("acme", "boiler", "repaired", "?"))
    assert 1.0 == memory.salience(Subject("acme", "choir", "day", "?"))


def test_another_tenant_s_questions_strengthen_nothing(memory: Recipe) -> None:
    """Servings are counted by tenant."""
    at, text = SAID["old"]
    memory.ingest(Utterance("old", at, "other", "s", "user", text))
    memory.retrieve(Query("q", at, "other", "boiler repaired", 5))
    assert 0.0 == memory.salience(Subject("acme", "boiler", "repaired", "?"))


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ({"half_life_days": 0}, "set more than 0"),
        ({"recency": -1}, "at least 0"),
        ({"salience": -0.1}, "at least 0"),
    ],
)
def test_settings_that_make_no_sense_are_refused(setting: dict[str, float], said: str) -> None:
    """A half life is positive, a weight not negative."""
    with pytest.raises(ValueError, match=said):
        Recipe(HashEmbedder(), **setting)  # type: ignore[arg-type]
