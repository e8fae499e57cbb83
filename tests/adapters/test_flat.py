"""The flat transcript's window."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steeltrap.adapters.flat import Flat
from steeltrap.harness.memory import Query, Subject, Utterance
from steeltrap.harness.tokens import count


def opened(memory: Flat) -> Flat:
    memory.open(Path())
    return memory


def turns(texts: list[str], tenant: str = "acme") -> Iterator[Utterance]:
    for number, text in enumerate(texts):
        yield Utterance(f"t{number}", "2026-01-01T10:00", tenant, "s1", "user", text)


def served(memory: Flat, limit: int = 1) -> list[str]:
    return [i.text for i in memory.retrieve(Query("q", "2026-01-02T10:00", "acme", "?", limit))]


def test_serves_newest_first_whatever_the_limit() -> None:
    """The whole window is served, newest turn first, though the query's limit is 1."""
    memory = opened(Flat())
    for turn in turns(["a", "b", "c"]):
        memory.ingest(turn)
    assert served(memory) == ["c", "b", "a"]


@given(st.lists(st.text(max_size=40), max_size=30), st.integers(1, 60))
def test_token_window_is_the_longest_end_that_fits(texts: list[str], window: int) -> None:
    """The window holds as many whole turns from the end as have at most so many tokens."""
    memory = opened(Flat(window_tokens=window))
    for turn in turns(texts):
        memory.ingest(turn)
    expected: list[str] = []
    for text in reversed(texts):
        if sum(map(count, [*expected, text])) > window:
            break
        expected.append(text)
    # a turn of no tokens fits any window, also one that was emptied before it
    assert expected == served(memory)


def test_window_after_erasure_has_room_again() -> None:
    """Tokens of erased turns no longer count against the window."""
    memory = opened(Flat(window_tokens=12))
    for turn in turns(["Old Mill opens today.", "Lunch was late."]):
        memory.ingest(turn)
    memory.erase("acme", Subject("acme", "Old Mill", "opening", "?"))
    for turn in turns(["Dinner was late."]):
        memory.ingest(turn)
    assert served(memory) == ["Dinner was late.", "Lunch was late."]


def test_without_stamps_no_time_is_served() -> None:
    """`stamps=False` leaves the time of a turn out."""
    memory = opened(Flat(stamps=False))
    for turn in turns(["a"]):
        memory.ingest(turn)
    assert [item.valid_from for item in memory.active("acme")] == [None]


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"window_turns": 3, "window_tokens": 9}, "not both"),
        ({"window_turns": 0}, "at least 1"),
        ({"window_tokens": -5}, "at least 1"),
    ],
)
def test_a_window_that_makes_no_sense_is_refused(settings: dict[str, int], said: str) -> None:
    """Two windows, or one that keeps nothing, are an error when the memory is made."""
    with pytest.raises(ValueError, match=said):
        Flat(**settings)  # type: ignore[arg-type]
