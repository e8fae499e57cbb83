"""Beyond the contract: what memories that keep every word, or rank, must do, here and in a worker.

The contract itself is put to every configured system in `test_contract.py`.
"""

from __future__ import annotations

import contextlib
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steeltrap.adapters.embedders import HashEmbedder
from steeltrap.adapters.flat import Flat
from steeltrap.adapters.gem import Gem
from steeltrap.adapters.vector import Recipe, Vector
from steeltrap.harness.conformance import CHECKS, Broken, NotApplicable, put
from steeltrap.harness.memory import (
    Erases,
    Forks,
    Item,
    Lists,
    Maintains,
    Memory,
    Query,
    Recalls,
    Recovers,
    Salient,
    Subject,
    Utterance,
    capabilities,
)
from steeltrap.harness.remote import Remote

MEMORIES: dict[str, Callable[[], Memory]] = {
    "flat": Flat,
    "flat, 40 turns": lambda: Flat(window_turns=40),
    "flat, 20000 tokens": lambda: Flat(window_tokens=20_000),
    "vector": lambda: Vector(HashEmbedder()),
    "vector, 40 turns": lambda: Vector(HashEmbedder(), capacity_turns=40),
    "bm25": lambda: Vector(fusion="bm25"),
    "hybrid": lambda: Vector(HashEmbedder(), fusion="hybrid"),
    "hybrid-recipe": lambda: Recipe(HashEmbedder()),
    "gem": lambda: Gem(embedder=HashEmbedder()),
}
VERBATIM = [name for name in MEMORIES if name != "gem"]
"""Those that keep what was said as it was said."""
RANKING = [name for name in VERBATIM if not name.startswith("flat")]

SAID = [
    "The kick-off of Harbour Lights is on 3 May.",
    "Lunch was late again today.",
    "The budget of Harbour Lights is 4,300 EUR.",
    "Marta asked about the kick-off of Old Mill.",
    "The kick-off of Harbour Lights moved to 9 May.",
]


def turn(number: int, text: str, tenant: str = "acme") -> Utterance:
    return Utterance(
        id=f"t{number}",
        at=f"2026-01-{1 + number // 24:02d}T{number % 24:02d}:00",
        tenant=tenant,
        session="s1",
        role="user",
        text=text,
    )


def query(text: str, tenant: str = "acme", limit: int = 10) -> Query:
    return Query(id="q1", at="2026-03-01T12:00", tenant=tenant, text=text, limit=limit)


def subject(topic: str, tenant: str = "acme") -> Subject:
    return Subject(tenant, topic, "kick-off", f"When is the kick-off of {topic}?")


def tell(memory: Memory, texts: list[str], tenant: str = "acme") -> None:
    for number, text in enumerate(texts):
        memory.ingest(turn(number, text, tenant))
    memory.settle()


@pytest.fixture(params=VERBATIM)
def transcript(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Memory]:
    made = MEMORIES[request.param]()
    made.open(tmp_path)
    yield made
    made.close()


@pytest.fixture(params=RANKING)
def ranking(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Memory]:
    made = MEMORIES[request.param]()
    made.open(tmp_path)
    yield made
    made.close()


# ---------------------------------------------------------------- the contract

SELDOM = {
    "threads-where-claimed", "times-in-order", "history-oldest-first", "salience-only-looks",
    "maintains-at-a-simulated-time", "forks-answer-alike", "forks-leave-alone",
    "recovers-what-it-holds", "tells-its-size",
}  # fmt: skip
"""Checks of what a transcript or a plain store has nothing of."""


@pytest.mark.parametrize("name", MEMORIES)
def test_lists_and_erases(name: str) -> None:
    """Each can be listed, and erases."""
    assert {"list", "erase"} <= set(capabilities(MEMORIES[name]()))


@pytest.fixture(scope="session")
def program(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A flat memory in another language, as the page of the worker's protocol shows it."""
    if shutil.which("perl") is None:
        pytest.skip("perl is not here: the page's worker is written in it")
    page = (root / "harness" / "worker-protocol.md").read_text()
    path = tmp_path_factory.mktemp("worker") / "flat.pl"
    path.write_text(re.findall(r"```perl\n(.*?)```", page, re.DOTALL)[0])
    return path


@pytest.mark.parametrize("check", CHECKS)
def test_keeps_to_the_contract_in_a_process_of_its_own(
    check: str, program: Path, tmp_path: Path
) -> None:
    """A memory in a worker, in any language, keeps to the contract as `flat` does."""
    with contextlib.ExitStack() as made:

        def make() -> Memory:
            return made.enter_context(
                contextlib.closing(Remote({"command": ["perl", str(program)]}))
            )

        try:
            with pytest.raises(Broken) if check == "keeps-to-the-limit" else contextlib.nullcontext():  # fmt: skip
                put(CHECKS[check], make, tmp_path)
        except NotApplicable:
            assert check in SELDOM


# ---------------------------------------------------------------- what is served


def test_names_the_turn_that_an_item_came_from(transcript: Memory) -> None:
    """Text, source and time of an item are those of one turn."""
    tell(transcript, SAID)
    said = {f"t{number}": turn(number, text) for number, text in enumerate(SAID)}
    served = transcript.retrieve(query("When is the kick-off of Harbour Lights?"))
    assert served
    for item in served:
        (source,) = item.sources or ()
        expected = (said[source].text, said[source].at)
        assert expected == (item.text, item.valid_from)


@pytest.mark.parametrize(
    "text",
    [
        "Der Kickoff wurde auf den 3. Mai verschoben, 14 Uhr.",
        "キックオフは5月3日の午後2時です。",
        "kick-off 🚢 → 2 pm; naïve café, e\u0301 as two code points, \u202ereversed\u202c",
        "```python\nkickoff = '2026-05-03'\n```\n\n| a | b |\n",
        "The kick-off is on 3 May. " + "lorem ipsum dolor sit amet " * 1200,
    ],
    ids=["german", "japanese", "emoji", "code", "30 KB"],
)
def test_text_is_served_verbatim(transcript: Memory, text: str) -> None:
    """A turn of any script, shape and length comes back as it was said."""
    transcript.ingest(turn(0, text))
    assert isinstance(transcript, Lists)
    assert [text] == [item.text for item in transcript.active("acme")]
    assert [text] == [item.text for item in transcript.retrieve(query(text[:200]))]


def test_order_of_listing_is_the_order_of_turns(transcript: Memory) -> None:
    """`active` gives the oldest turn first."""
    tell(transcript, SAID)
    assert isinstance(transcript, Lists)
    assert [item.text for item in transcript.active("acme")] == SAID


def test_ranked_items_come_best_first(ranking: Memory) -> None:
    """Scores fall from the first item to the last, and the best match comes first."""
    tell(ranking, SAID)
    served = ranking.retrieve(query("The budget of Harbour Lights"))
    scores = [item.score for item in served if item.score is not None]
    assert len(served) == len(scores)
    assert sorted(scores, reverse=True) == scores
    assert SAID[2] == served[0].text


@pytest.mark.parametrize("limit", [0, 1, 3, 50])
def test_ranked_items_keep_to_the_limit(ranking: Memory, limit: int) -> None:
    """At most `limit` items are served, and a larger budget only adds at the end."""
    if isinstance(ranking, Salient):
        pytest.skip("what it served comes first when it is asked again")
    tell(ranking, SAID * 6)
    asked = "When is the kick-off of Harbour Lights?"
    served = list(ranking.retrieve(query(asked, limit=limit)))
    assert min(limit, 6) <= len(served) <= limit
    assert list(ranking.retrieve(query(asked, limit=60)))[: len(served)] == served


def test_ties_are_broken_by_turn_order(ranking: Memory) -> None:
    """Turns of the same words, more than are served, come in the order in which they were said."""
    tell(ranking, [*(["The same words."] * 38), "Other words."])
    served = ranking.retrieve(query("The same words", limit=20))
    assert [f"t{number}" for number in range(20)] == [item.id for item in served]


def test_reading_changes_nothing(transcript: Memory) -> None:
    """The same question twice gets the same answer, and others between leave no mark."""
    if isinstance(transcript, Salient):
        pytest.skip("reading is meant to change it")
    tell(transcript, SAID)
    first = list(transcript.retrieve(query("When is the kick-off of Harbour Lights?")))
    for text in ("What is the budget?", "Who asked?", ""):
        transcript.retrieve(query(text))
        transcript.retrieve(query(text, tenant="other"))
    assert first == list(transcript.retrieve(query("When is the kick-off of Harbour Lights?")))


# ---------------------------------------------------------------- tenants

WORDS = st.lists(st.sampled_from("kick off harbour mill budget May lunch".split()), min_size=1)
TOLD = st.lists(st.tuples(st.sampled_from(["acme", "other"]), WORDS), max_size=25)


@pytest.mark.parametrize("name", MEMORIES)
@settings(max_examples=12, deadline=None)
@given(told=TOLD, asked=WORDS)
def test_tenants_are_not_felt(
    name: str, told: list[tuple[str, list[str]]], asked: list[str]
) -> None:
    """What a tenant is served is what it would be served if no other tenant had ever spoken."""

    def served(tenants: set[str]) -> list[Item]:
        memory = MEMORIES[name]()
        with tempfile.TemporaryDirectory() as folder:
            memory.open(Path(folder))
            for number, (tenant, words) in enumerate(told):
                if tenant in tenants:
                    memory.ingest(turn(number, " ".join(words), tenant))
            found = list(memory.retrieve(query(" ".join(asked))))
            memory.close()
        return found

    assert served({"acme"}) == served({"acme", "other"})


# ---------------------------------------------------------------- erasure and eviction


def test_an_erased_subject_is_not_named_any_more(transcript: Memory) -> None:
    """After erasing a subject no turn that names its topic, in any case, is served or listed."""
    tell(transcript, [*SAID, "HARBOUR LIGHTS again."])
    assert isinstance(transcript, Erases)
    assert isinstance(transcript, Lists)
    transcript.erase("acme", subject("Harbour Lights"))
    kept = [SAID[1], SAID[3]]
    assert kept == [item.text for item in transcript.active("acme")]
    served = transcript.retrieve(query("When is the kick-off of Harbour Lights?"))
    assert {item.text for item in served} <= set(kept)


@pytest.mark.parametrize("name", ["flat, 40 turns", "vector, 40 turns"])
def test_what_is_pruned_is_gone(name: str, tmp_path: Path) -> None:
    """With room for 40 turns the last 40 are there, and the reply is as if nothing had been before."""
    texts = [f"{SAID[number % 5]} Note {number}." for number in range(97)]
    pruned, fresh = MEMORIES[name](), MEMORIES[name]()
    pruned.open(tmp_path / "pruned")
    fresh.open(tmp_path / "fresh")
    tell(pruned, texts)
    for number in range(57, 97):
        fresh.ingest(turn(number, texts[number]))
    assert isinstance(pruned, Lists)
    assert texts[57:] == [item.text for item in pruned.active("acme")]
    asked = query("When is the kick-off of Harbour Lights?", limit=30)
    assert list(fresh.retrieve(asked)) == list(pruned.retrieve(asked))
    for memory in (pruned, fresh):
        memory.close()


def test_baselines_claim_no_more_than_they_do() -> None:
    """The baselines have no history, maintenance, recovery or fork; salience has one that uses it."""
    for name in VERBATIM:
        memory = MEMORIES[name]()
        assert not isinstance(memory, Recalls | Maintains | Recovers | Forks)
        assert isinstance(memory, Salient) == (name == "hybrid-recipe")
