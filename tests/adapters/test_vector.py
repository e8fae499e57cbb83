"""Ranking, fusion and storage of the vector memory."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steeltrap.adapters.embedders import HashEmbedder, WordLlamaEmbedder
from steeltrap.adapters.vector import Fusion, Vector
from steeltrap.adapters.vector.okapi import SpacedWords
from steeltrap.adapters.vector.ranking import fused, ranked
from steeltrap.adapters.vector.words import Words
from steeltrap.harness.memory import Item, Query, Subject, Utterance


def tell(memory: Vector, texts: list[str]) -> None:
    for number, text in enumerate(texts):
        memory.ingest(Utterance(f"t{number}", "2026-01-01T10:00", "acme", "s1", "user", text))


def ask(memory: Vector, text: str, limit: int = 10) -> list[Item]:
    return list(memory.retrieve(Query("q", "2026-01-02T10:00", "acme", text, limit)))


NOTES = [
    "Rehearsal of the choir is on Tuesday",
    "The boiler was repaired on Monday",
    "Choir rehearsals move to Thursday",
    "Thursday is the dentist",
    "A new boiler costs 2,400 EUR",
    "The dentist is Doctor Amari",
] * 9


def test_dense_ranking_is_that_of_the_cosines(tmp_path: Path) -> None:
    """Dense search gives the order and values of the cosines computed one by one."""
    memory, embedder = Vector(), WordLlamaEmbedder()
    memory.open(tmp_path)
    tell(memory, NOTES)
    rows = embedder.embed(NOTES).astype(np.float64)
    for question in ("When does the choir rehearse?", "Who is the dentist?"):
        asked = embedder.embed([question])[0].astype(np.float64)
        cosines = [math.fsum(row * asked) for row in rows]
        expected = sorted(range(len(NOTES)), key=lambda at: (-round(cosines[at], 9), at))[:20]
        served = ask(memory, question, 20)
        assert [f"t{at}" for at in expected] == [item.id for item in served]
        assert [cosines[at] for at in expected] == pytest.approx([i.score for i in served])
    memory.close()


def test_bm25_finds_only_turns_that_share_a_stem(tmp_path: Path) -> None:
    """`rehearse` finds `rehearsal` and `rehearsals`; a question without shared words nothing."""
    memory = Vector(fusion="bm25")
    memory.open(tmp_path)
    tell(memory, NOTES[:6])
    assert {"t0", "t2"} == {item.id for item in ask(memory, "rehearsing")}
    assert ask(memory, "Where is the invoice?") == []
    assert ask(memory, "what is that of the") == []
    memory.close()


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(-1, 5), max_size=25))
def test_word_index_does_not_depend_on_its_past(moves: list[int]) -> None:
    """However turns were added and removed, and searched between, results are those of a new index."""
    words, held = Words(), dict[int, str]()
    for number, move in enumerate(moves):
        if move >= 0:
            words.add(number, NOTES[move])
            held[number] = NOTES[move]
        elif held:
            oldest = next(iter(held))
            words.remove(oldest)
            del held[oldest]
        if number % 3 == 0:
            words.search("choir dentist", 5)
    fresh = Words()
    for number, text in held.items():
        fresh.add(number, text)
    for question in ("choir rehearsal on Thursday", "boiler", ""):
        assert fresh.search(question, 9) == words.search(question, 9)


def test_fusion_adds_reciprocal_ranks() -> None:
    """A turn scores the sum of 1 / (60 + rank) over the rankings that hold it."""
    one, two = [(4, 0.9), (2, 0.8), (7, 0.1)], [(7, 12.0), (5, 3.0)]
    expected = [(7, 1 / 63 + 1 / 61), (4, 1 / 61), (2, 1 / 62), (5, 1 / 62)]
    found = fused([one, two], 10)
    assert [number for number, _ in expected] == [number for number, _ in found]
    assert [score for _, score in expected] == pytest.approx([score for _, score in found])


def test_noise_beyond_nine_digits_does_not_order() -> None:
    """Scores that differ only by rounding noise are equal, and the earlier turn comes first."""
    assert [number for number, _ in ranked([8, 3], [0.5 + 1e-13, 0.5], 2)] == [3, 8]


def test_hybrid_finds_by_meaning_and_by_word(tmp_path: Path) -> None:
    """Hybrid serves what either ranking alone has at its top."""
    tops = []
    for fusion in ("dense", "bm25", "hybrid"):
        memory = Vector(fusion=fusion)
        memory.open(tmp_path)
        tell(memory, NOTES[:6])
        tops.append([item.id for item in ask(memory, "When does the choir rehearse?", 2)])
        memory.close()
    assert {tops[0][0], tops[1][0]} <= {*tops[2]}


def test_fusion_looks_deeper_than_the_limit(tmp_path: Path) -> None:
    """What is served within a small limit is the beginning of what is served within a large one."""
    memory = Vector(HashEmbedder(512), fusion="hybrid")
    memory.open(tmp_path)
    # by words the rare one counts most; by the cosine of counted words the short ones do
    tell(memory, ["gull", "ferry gull tide", "tide ferry ferry", "ferry", "ferry oar", "oar"])
    for question in ("ferry gull", "ferry tide oar", "tide ferry ferry gull", "oar gull"):
        deep = [item.id for item in ask(memory, question, 6)]
        for limit in (1, 2, 3):
            assert deep[:limit] == [item.id for item in ask(memory, question, limit)]
    memory.close()


def test_a_pruned_store_does_not_grow(tmp_path: Path) -> None:
    """With a capacity of 4 turns the collection has the places of 5 turns, however many came."""
    memory = Vector(HashEmbedder(), capacity_turns=4)
    memory.open(tmp_path)
    tell(memory, NOTES)
    memory.close()
    from qdrant_client import QdrantClient

    client = QdrantClient(path=str(tmp_path / "qdrant"))
    points, _ = client.scroll("turns-0", limit=100)
    client.close()
    assert {int(point.id) for point in points} <= set(range(5))
    expected = {f"t{number}" for number in range(len(NOTES) - 4, len(NOTES))}
    assert expected == {(point.payload or {})["turn"] for point in points}


def test_the_store_stays_readable_after_closing(tmp_path: Path) -> None:
    """The folder is released at `close`, and holds each turn's text, tenant, time and id."""
    memory = Vector(HashEmbedder())
    memory.open(tmp_path)
    empty = memory.size_bytes()
    tell(memory, NOTES[:2])
    assert memory.size_bytes() > empty
    memory.close()
    from qdrant_client import QdrantClient

    client = QdrantClient(path=str(tmp_path / "qdrant"))
    points, _ = client.scroll("turns-0")
    client.close()
    first = {"text": NOTES[0], "tenant": "acme", "at": "2026-01-01T10:00", "turn": "t0"}
    assert first == points[0].payload


def test_an_erased_tenant_leaves_no_file(tmp_path: Path) -> None:
    """No word of an erased tenant is left in the files of the store."""
    memory = Vector(HashEmbedder())
    memory.open(tmp_path)
    tell(memory, ["The password of the boiler is XYLOPHONE."])
    memory.erase("acme", None)
    assert list((tmp_path / "qdrant" / "collection").iterdir()) == []
    memory.close()
    held = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert b"XYLOPHONE" not in held


def test_erasing_a_subject_reaches_both_rankings(tmp_path: Path) -> None:
    """Erased turns are found neither by vector nor by word, before and after an index was made."""
    memory = Vector(HashEmbedder(), fusion="hybrid")
    memory.open(tmp_path)
    tell(memory, NOTES[:3])
    ask(memory, "boiler")
    memory.ingest(Utterance("t9", "2026-01-01T11:00", "acme", "s1", "user", "Boiler: again"))
    memory.erase("acme", Subject("acme", "boiler", "repair", "?"))
    assert {"t0", "t2"} == {item.id for item in ask(memory, "boiler on Monday")}
    memory.close()


def test_bm25_loads_no_embedder() -> None:
    """Where vectors play no part no embedder is named."""
    assert Vector(fusion="bm25").embedder is None
    named = Vector().embedder
    assert named is not None
    assert named.name == "wordllama-l2-supercat-256"


@pytest.mark.parametrize(
    ("settings", "said"),
    [({"fusion": "sparse"}, "known: dense, bm25, hybrid"), ({"capacity_turns": 0}, "nothing")],
)
def test_settings_that_make_no_sense_are_refused(settings: dict[str, object], said: str) -> None:
    """An unknown fusion, or a capacity that keeps nothing, is an error when the memory is made."""
    with pytest.raises(ValueError, match=said):
        Vector(**settings)  # type: ignore[arg-type]


# ---------------------------------------------------------------- sessions, and words at spaces


def say(memory: Vector, *said: tuple[str, str]) -> None:
    for number, (session, text) in enumerate(said):
        at = f"2026-01-01T10:{number:02d}"
        memory.ingest(Utterance(f"t{number}", at, "acme", session, "user", text))


@pytest.mark.parametrize("fusion", ["dense", "bm25", "hybrid"])
def test_a_session_can_be_one_entry(tmp_path: Path, fusion: Fusion) -> None:
    """What was said in a session is served together, with all its turns as sources, also after
    more was said in it than when something was last asked."""
    memory = Vector(HashEmbedder(), fusion=fusion, entry="session")
    memory.open(tmp_path)
    say(memory, ("a", "The boiler was repaired"), ("b", "Choir on Tuesday"), ("a", "on Monday"))
    ask(memory, "boiler")
    memory.ingest(Utterance("t3", "2026-01-01T11:00", "acme", "a", "user", "by the dentist"))
    best = ask(memory, "Which dentist repaired the boiler?")[0]
    assert ("a", ("t0", "t2", "t3"), "2026-01-01T11:00") == (best.id, best.sources, best.valid_from)
    assert best.text == "The boiler was repaired on Monday by the dentist"
    assert 2 == len(memory.active("acme"))
    memory.erase("acme", Subject("acme", "boiler", "repair", "?"))
    assert ["b"] == [item.id for item in memory.active("acme")]
    memory.close()


def test_a_session_begun_again_after_its_erasure_is_a_new_entry(tmp_path: Path) -> None:
    """Nothing of the erased entry is in the one that follows under its name."""
    memory = Vector(fusion="bm25", entry="session")
    memory.open(tmp_path)
    say(memory, ("a", "The boiler leaks"))
    memory.erase("acme", Subject("acme", "boiler", "state", "?"))
    say(memory, ("a", "Choir on Tuesday"))
    (item,) = memory.active("acme")
    assert "Choir on Tuesday" == item.text
    memory.close()


def test_plain_words_are_neither_stemmed_nor_left_out(tmp_path: Path) -> None:
    """`rehearsal` does not find `rehearsals`, and `the` is a word like any other."""
    memory = Vector(fusion="bm25", words="plain")
    memory.open(tmp_path)
    tell(memory, NOTES[:6])
    assert ["t2"] == [item.id for item in ask(memory, "rehearsals?")]
    assert {"t0", "t1", "t3", "t5"} == {item.id for item in ask(memory, "the")}
    memory.close()


def test_words_split_at_spaces_score_as_okapi_has_it() -> None:
    """Scores are those of the formula, worked out word by word; a frequent word gets the floor."""
    texts = ["a b b", "a c", "a a d e", "f"]
    words = SpacedWords()
    for number, text in enumerate(texts):
        words.add(number, text)
    split = [text.split(" ") for text in texts]
    mean = sum(map(len, split)) / 4
    weight = {w: math.log((4 - n + 0.5) / (n + 0.5)) for w in "abcdef" if (n := sum(w in s for s in split))}  # fmt: skip
    floor = 0.25 * sum(weight.values()) / len(weight)
    assert weight["a"] < 0

    def score(held: list[str]) -> float:
        norm = 1.5 * (0.25 + 0.75 * len(held) / mean)
        return sum(
            (weight[w] if weight[w] >= 0 else floor) * held.count(w) * 2.5 / (held.count(w) + norm)
            for w in ("a", "b", "z") if w in weight
        )  # fmt: skip

    found = words.search("a b z", 4)
    assert dict(found) == pytest.approx({n: score(held) for n, held in enumerate(split)})
    assert [0, 2, 1, 3] == [number for number, _ in found]
    assert words.search("A", 4)[0][1] == 0.0, "no lower case"


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ({"entry": "week"}, "unknown entry 'week'"),
        ({"words": "letters"}, "unknown words 'letters'"),
        ({"entry": "session", "capacity_turns": 5}, "a capacity counts turns"),
    ],
)
def test_what_an_entry_cannot_be_is_refused(setting: dict[str, object], words: str) -> None:
    """A wrong setting is named with what is known."""
    with pytest.raises(ValueError, match=words):
        Vector(fusion="bm25", **setting)  # type: ignore[arg-type]
