"""Three-valued verdicts."""

from __future__ import annotations

from itertools import product

import pytest

from steeltrap.harness.verdict import Tally, Validity, judge, merge

ALL: tuple[Validity, ...] = ("held", "violated", "unknown")


@pytest.mark.parametrize(("a", "b"), list(product(ALL, ALL)))
def test_merging_keeps_the_worst(a: Validity, b: Validity) -> None:
    """A violation outweighs doubt, doubt outweighs success, and order does not matter."""
    worst = max((a, b), key=("held", "unknown", "violated").index)
    assert worst == merge([a, b]) == merge([b, a])


def test_no_opportunity_is_never_held() -> None:
    """What was not tested is unknown."""
    assert "unknown" == judge(0, 0, {})
    assert "unknown" == merge([])


def test_what_is_blocked_keeps_a_condition_from_being_held() -> None:
    """A name that could not be observed leaves doubt; a violation leaves none."""
    blocked = {"superseded-active": Tally(blocked="the state cannot be listed")}
    assert "unknown" == judge(5, 0, blocked)
    assert "violated" == judge(5, 1, blocked)
    assert "held" == judge(5, 0, {"superseded-active": Tally(opportunities=5)})
