from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from steeltrap.harness.stats import (
    Interval,
    holm,
    label_permutation,
    mean_interval,
    paired_difference,
    rate_interval,
    sign_flip,
    sign_test,
)

COUNTS = st.lists(
    st.integers(1, 50).flatmap(lambda o: st.tuples(st.integers(0, o), st.just(o))),
    min_size=2,
    max_size=8,
)


def test_interval_needs_two_seeds() -> None:
    """One seed says nothing about other seeds, so it has no interval."""
    assert rate_interval([3], [10]) is None
    assert rate_interval([3, 0], [10, 0]) is None


def test_interval_of_agreeing_seeds_is_a_point() -> None:
    """Where all seeds have the same rate the interval is that rate."""
    assert rate_interval([1, 2, 5], [10, 20, 50]) == Interval(0.1, 0.1)


def test_interval_is_scipys_bca() -> None:
    """With equal opportunities the pooled rate is a mean, and its interval scipy's BCa."""
    values = [0.1, 0.15, 0.3, 0.32, 0.9]
    expected = scipy_stats.bootstrap(
        (values,), np.mean, n_resamples=9999, method="BCa", rng=np.random.default_rng(0)
    ).confidence_interval
    found = mean_interval(values)
    assert found is not None
    assert found == pytest.approx((expected.low, expected.high), abs=0.02)


def test_seeds_weigh_by_their_opportunities() -> None:
    """A seed with one opportunity moves a pooled rate less than one with a thousand."""
    found = rate_interval([1, 20, 20, 20], [1, 1000, 1000, 1000])
    assert found is not None
    assert found.high < 0.05


@given(COUNTS)
def test_interval_is_a_range_of_rates_and_repeats(counts: list[tuple[int, int]]) -> None:
    """An interval lies between the lowest and the highest rate, the same each time."""
    tops, bottoms = zip(*counts, strict=True)
    rates = [top / bottom for top, bottom in counts]
    found = rate_interval(tops, bottoms)
    assert found is not None
    assert min(rates) - 1e-9 <= found.low <= found.high <= max(rates) + 1e-9
    assert found == rate_interval(tops, bottoms)


def test_holm_example() -> None:
    """The smallest p is multiplied by the number of tests, the next by one fewer, never sinking."""
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([]) == []


@given(st.lists(st.floats(0, 1), max_size=12))
def test_holm_never_helps(p_values: list[float]) -> None:
    """Adjusted values are no smaller, at most 1, and keep the order."""
    adjusted = holm(p_values)
    assert all(p <= a <= 1 for p, a in zip(p_values, adjusted, strict=True))
    pairs = sorted(zip(p_values, adjusted, strict=True))
    assert [a for _, a in pairs] == sorted(adjusted)


def test_paired_difference_flips_all_signs() -> None:
    """Five seeds that all point one way give the least p that five seeds can: 2 of 32."""
    first = {seed: 0.1 * (seed + 1) for seed in range(5)}
    found = paired_difference(first, dict.fromkeys(range(5), 0.0))
    assert found is not None
    assert (found.seeds, found.mean, found.p) == (5, pytest.approx(0.3), pytest.approx(2 / 32))


def test_paired_difference_is_over_common_seeds() -> None:
    """Seeds that only one of the two ran are left out."""
    found = paired_difference({0: 1.0, 1: 1.0, 7: 9.0}, {0: 0.0, 1: 0.0, 8: -9.0})
    assert found is not None
    assert (found.seeds, found.mean) == (2, 1.0)
    assert paired_difference({0: 1.0}, {1: 1.0}) is None


def test_paired_difference_of_equals_is_certain_to_be_chance() -> None:
    """Two systems with the same values have p 1; one seed has no p."""
    same = {0: 0.5, 1: 0.25}
    assert paired_difference(same, same) == (2, 0.0, 1.0)
    assert paired_difference({0: 1.0}, {0: 0.5}) == (1, 0.5, None)


def test_labels_are_dealt_out_within_groups() -> None:
    """Two and two values in each of two groups: 36 ways, two of which are so extreme."""
    found = label_permutation([([0, 1], [5, 6]), ([10, 11], [15, 17])])
    assert (found.mean, found.p, found.least) == (pytest.approx(5.25), 2 / 36, 2 / 36)


def test_a_difference_between_groups_is_none_between_labels() -> None:
    """What groups differ in says nothing of the labels."""
    found = label_permutation([([0, 1], [1, 0]), ([100, 101], [101, 100])])
    assert (found.mean, found.p) == (0.0, 1.0)


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=2, max_size=8))
def test_one_value_each_is_a_sign_flip(pairs: list[tuple[int, int]]) -> None:
    """With one value under each label in a group, dealing out anew flips signs."""
    found = label_permutation([([one], [two]) for one, two in pairs])
    assert found.p == pytest.approx(sign_flip([two - one for one, two in pairs]))
    assert found.least <= found.p + 1e-12


def test_the_least_p_is_what_the_values_could_give() -> None:
    """Groups without a difference add nothing: two of eight that differ cannot be significant."""
    assert label_permutation([([0], [1])] * 2 + [([0], [0])] * 6).least == 0.5
    assert label_permutation([([0], [1])] * 8).least == pytest.approx(2 / 256)
    assert label_permutation([([0.1], [0.1])]).least == 1.0


def test_many_labels_are_drawn_and_repeat() -> None:
    """Where there are too many ways, a seeded sample stands for them, and p is never 0."""
    groups = [([0.0] * 12, [1.0] * 12)] * 6
    found = label_permutation(groups)
    assert 0 < found.p <= 0.001
    assert found == label_permutation(groups)


def test_labels_of_one_large_group_are_drawn() -> None:
    """What was seen is among the ways also where a single group has too many of them."""
    assert label_permutation([([0.0] * 10, [1.0] * 10)]).p == pytest.approx(1 / 10_000)


def test_the_least_p_of_sides_of_unequal_size() -> None:
    """Groups whose furthest outcomes lie on different sides cannot have them together."""
    groups = [([0.0], [1.0] * 3), ([1.0], [0.0] * 3)] * 3
    assert label_permutation(groups).least == pytest.approx(54 / 4096)


def test_sign_test_is_mcnemars_exact_test() -> None:
    """As many coins as there are changes, whichever way they went."""
    assert sign_test(0, 0) == 1.0
    assert sign_test(8, 0) == sign_test(0, 8) == pytest.approx(2 / 256)
    assert sign_test(3, 3) == 1.0
