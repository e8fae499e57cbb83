from __future__ import annotations

from steeltrap.harness.execution.estimate import Estimate, Work, about


def of(*kinds: str, slots: int = 1, cores: int = 1) -> Estimate:
    return Estimate([Work(kind, cores) for kind in kinds], slots)


def test_nothing_is_said_before_anything_is_known() -> None:
    """Cells that were found finished, or failed, say nothing of how long others take."""
    estimate = of("a", "a", "b")
    assert None is estimate.left_s
    estimate.done(0, None)
    assert None is estimate.left_s
    assert "" == about(None)


def test_a_cell_takes_as_long_as_those_of_its_kind() -> None:
    """The mean of the kind counts where there is one, and else the mean of all that is known."""
    estimate = of("a", "a", "a", "b", "b", "c")
    estimate.done(0, 2.0)
    estimate.done(1, 4.0)
    estimate.done(3, 30.0)
    assert 3.0 + 30.0 + 12.0 == estimate.left_s


def test_cells_at_once_share_the_time_by_their_cores() -> None:
    """Two slots halve what is left; cells that fill both do not."""
    light, heavy = of(*"aaaaa", slots=2), of(*"aaaaa", slots=2, cores=8)
    for estimate in (light, heavy):
        estimate.done(0, 10.0)
    assert 20.0 == light.left_s
    assert 40.0 == heavy.left_s


def test_the_last_cell_takes_its_own_time() -> None:
    """No number of slots makes a single cell faster, and when all are done nothing is left."""
    estimate = of("a", "a", slots=8)
    estimate.done(0, 10.0)
    assert 10.0 == estimate.left_s
    estimate.done(1, 10.0)
    assert 0.0 == estimate.left_s


def test_a_time_is_said_roughly() -> None:
    """Seconds, minutes or hours, whichever says enough."""
    said = [about(0.2), about(59), about(240), about(9000)]
    assert ["about 1 s left", "about 59 s left", "about 4 min left", "about 2.5 h left"] == said
