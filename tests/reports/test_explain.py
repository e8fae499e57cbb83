"""Every violation is explained, once."""

from __future__ import annotations

from steeltrap.harness.verdict import CONDITION_OF, NAMES
from steeltrap.reports.explain import ASKS, EXPLAINED


def test_every_name_is_explained_and_nothing_else() -> None:
    """The explanations stand in the order of the names, and are keyed by exactly these."""
    assert list(EXPLAINED) == list(CONDITION_OF)


def test_every_condition_says_what_it_asks() -> None:
    """The six, and what lies beyond them."""
    assert list(ASKS) == list(NAMES)


def test_an_explanation_is_one_sentence() -> None:
    """It ends with a full stop, and has no other."""
    assert all(words.endswith(".") and words.count(". ") == 0 for words in EXPLAINED.values())
