"""Shelves and piles: they are what a dict and lists by keys are, wherever their entries lie."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from steeltrap.harness.shelf import Attic, Pile, Shelf

KEYS = st.text(max_size=2) | st.sampled_from("abcdefgh")


class LikeADict(RuleBasedStateMachine):
    """A shelf with room for two entries beside a dict, with values that are changed in place."""

    def __init__(self) -> None:
        super().__init__()
        self.shelf: Shelf[str, list[int]] = Shelf(Attic(2), list[int])
        self.known: dict[str, list[int]] = {}

    @rule(key=KEYS, values=st.lists(st.integers(0, 9), max_size=3))
    def put(self, key: str, values: list[int]) -> None:
        self.shelf[key], self.known[key] = values, list(values)

    @rule(key=KEYS, value=st.integers(0, 9))
    def change(self, key: str, value: int) -> None:
        if key in self.known:
            self.shelf[key].append(value)
            self.known[key].append(value)

    @rule(key=KEYS)
    def get(self, key: str) -> None:
        assert self.known.get(key) == self.shelf.get(key)
        assert (key in self.known) == (key in self.shelf)

    @rule(key=KEYS)
    def remove(self, key: str) -> None:
        if key in self.known:
            del self.known[key]
            del self.shelf[key]
        else:
            with pytest.raises(KeyError):
                del self.shelf[key]

    @rule()
    def clear(self) -> None:
        self.shelf.clear()
        self.known.clear()

    @invariant()
    def the_same(self) -> None:
        assert self.known == dict(self.shelf.items())
        assert sorted(self.known.values()) == sorted(self.shelf.values())
        assert sorted(self.known) == sorted(self.shelf)
        assert len(self.known) == len(self.shelf)


TestLikeADict = LikeADict.TestCase
"""A shelf gives what a dict would, changes in place included."""


@given(st.lists(st.tuples(KEYS, st.integers(0, 9))), st.integers(1, 4))
def test_a_pile_is_lists_by_keys(added: list[tuple[str, int]], room: int) -> None:
    """What was added under a key comes in order, and so does everything, by time and by key."""
    pile: Pile[int] = Pile(Attic(room), int)
    for n, (key, thing) in enumerate(added, 1):
        pile.add(key, thing)
        assert [t for k, t in added[:n] if k == key] == pile.get(key)
    assert added == list(pile.pairs())
    in_order = [thing for _, thing in sorted(added, key=lambda pair: pair[0])]
    found = pile.sorted()
    assert in_order == list(found) == list(found[:])
    assert (len(added), in_order[-1:]) == (len(found), [found[-1]] if added else [])


def test_what_was_got_may_be_changed_until_as_many_others_were_used() -> None:
    """An object keeps the changes made to it while no more others were used than there is room."""
    shelf: Shelf[str, list[int]] = Shelf(Attic(3), list[int])
    shelf["a"] = []
    mine = shelf["a"]
    for other in "bcd":
        shelf[other] = []
        mine.append(1)
    for other in "efghijkl":
        shelf[other] = []
    assert [1, 1, 1] == shelf["a"]


def test_nothing_is_left_of_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file has no name from the moment it is open, so that a crash leaves nothing."""
    monkeypatch.setenv("STEELTRAP_CACHE", str(tmp_path))
    shelf: Shelf[int, str] = Shelf(Attic(2), str)
    for number in range(100):
        shelf[number] = str(number)
    assert (100, "0") == (len(shelf), shelf[0])
    assert not list(tmp_path.iterdir())


def test_a_short_life_opens_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As long as there is room in memory, nothing is written: not even the folder is made."""
    monkeypatch.setenv("STEELTRAP_CACHE", str(tmp_path / "cache"))
    shelf: Shelf[int, str] = Shelf(Attic(100), str)
    pile: Pile[str] = Pile(Attic(100), str)
    for number in range(90):
        shelf[number] = "x"
        pile.add("a", "x")
    assert not list(tmp_path.iterdir())


def test_a_full_disk_is_said_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the file cannot grow, the error says where it lies and what to do."""
    attic = Attic(2)
    shelf: Shelf[int, str] = Shelf(attic, str)
    attic.all("PRAGMA max_page_count = 20")
    with pytest.raises(OSError, match="make room, or set STEELTRAP_CACHE"):
        shelf.update(dict.fromkeys(range(1000), "x" * 1000))
