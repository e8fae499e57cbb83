"""Cohen's kappa of two judges."""

from __future__ import annotations

import pytest

from steeltrap.harness.answering.agreement import agreement, kappa
from steeltrap.harness.answering.scores import Verdict


def pairs(**counts: int) -> list[tuple[Verdict, Verdict]]:
    """`cw=3`: three answers that the first calls correct and the second wrong."""
    words: dict[str, Verdict] = {"c": "correct", "w": "wrong", "a": "abstained"}
    return [(words[key[0]], words[key[1]]) for key, n in counts.items() for _ in range(n)]


def test_the_worked_example() -> None:
    """Cohen's own kind of table: 20 and 15 alike, 5 and 10 apart, of 50: 0.7 against 0.5 by chance."""
    found = agreement(pairs(cc=20, cw=5, wc=10, ww=15))
    assert found.kappa == pytest.approx(0.4)
    assert (50, 35) == (found.n, found.same)
    assert [[20, 5, 0], [10, 15, 0], [0, 0, 0]] == found.table
    assert found.interval is not None
    assert found.interval.low < 0.4 < found.interval.high


def test_against_an_independent_count() -> None:
    """With three verdicts, as by the definition: agreement beyond chance over what is left."""
    found = agreement(pairs(cc=10, ww=6, aa=4, ca=3, aw=2, wc=5))
    same = 20 / 30
    chance = (13 * 15 + 11 * 8 + 6 * 7) / 900
    assert found.kappa == pytest.approx((same - chance) / (1 - chance))


def test_full_agreement_is_1_and_opposition_is_below_0() -> None:
    """Judges that always say the opposite agree less than chance would have them."""
    assert 1.0 == agreement(pairs(cc=3, ww=4)).kappa
    opposed = agreement(pairs(cw=3, wc=3)).kappa
    assert opposed is not None and opposed == pytest.approx(-1.0)


def test_one_verdict_throughout_says_nothing() -> None:
    """Two judges that call everything right may agree by chance alone; so does nothing at all."""
    assert agreement(pairs(cc=9)).kappa is None
    assert agreement(pairs(cc=9)).interval is None
    assert agreement([]).kappa is None


def test_errors_are_no_disagreement() -> None:
    """What one of them could not judge says nothing of the two."""
    found = agreement([*pairs(cc=3, ww=4), ("error", "correct"), ("wrong", "error")])
    assert (7, 7, 1.0) == (found.n, found.same, found.kappa)


def test_the_interval_is_that_of_resampled_questions_and_always_the_same() -> None:
    """It narrows with more questions and does not change from call to call."""
    few, many = agreement(pairs(cc=8, ww=8, cw=4)), agreement(pairs(cc=80, ww=80, cw=40))
    assert few.kappa == pytest.approx(many.kappa)
    assert few.interval and many.interval
    assert many.interval.high - many.interval.low < (few.interval.high - few.interval.low) / 2
    assert few.interval == agreement(pairs(cc=8, ww=8, cw=4)).interval


def test_kappa_of_a_table_of_shares() -> None:
    """Counts and shares give the same."""
    assert kappa([[20, 5], [10, 15]]) == pytest.approx(kappa([[0.4, 0.1], [0.2, 0.3]]))
