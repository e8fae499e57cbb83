from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

import pytest

from steeltrap.harness.execution.abreast import abreast
from steeltrap.harness.execution.cells import Cell, Done
from steeltrap.harness.settings import cells


class Watched:
    """Runs nothing; the cell that began first ends first."""

    def __init__(self) -> None:
        self.running: list[int] = []
        self.at_once: list[set[int]] = []

    def start(self, number: int, _: Cell) -> None:
        self.running.append(number)
        self.at_once.append(set(self.running))

    def wait(self) -> Iterator[tuple[int, Done]]:
        yield self.running.pop(0), Done(RuntimeError())


def of(cores: Sequence[int]) -> list[Cell]:
    (settings,) = cells(["system=flat"])
    heavy = {n: cells([f"+system.cores={n}"])[0] for n in {*cores}}
    whole = [heavy.get(n, settings) for n in cores]
    return [Cell(one, "", lambda *_: pytest.fail("is run")) for one in whole]


@pytest.mark.parametrize(
    ("slots", "cores", "expected"),
    [
        (2, [1, 1, 1], [{0}, {0, 1}, {1, 2}]),
        (2, [2, 2, 1, 1], [{0}, {1}, {2}, {2, 3}]),
        (3, [1, 2, 2, 1], [{0}, {0, 1}, {2}, {2, 3}]),
        (2, [1, 4, 1], [{0}, {1}, {2}]),
    ],
)
def test_cells_run_at_once_as_long_as_their_cores_fit(
    slots: int, cores: list[int], expected: list[set[int]]
) -> None:
    """Two heavy ones share no core, one that needs more than there is runs alone, none overtakes."""
    watched = Watched()
    ended = [number for number, _ in abreast(of(cores), slots, watched.start, watched.wait)]
    assert expected == watched.at_once
    assert [*range(len(cores))] == ended


def test_a_cell_is_named_by_system_and_seed() -> None:
    """What failed can be found in the plan."""
    (one,) = of([1])
    assert "flat, seed 0" == one.name
    assert "3/4" == dataclasses.replace(one, place="3/4").place
