"""Which cells run at once."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence

from steeltrap.harness.execution.cells import Cell, Done

__all__ = ["abreast"]


def abreast(
    cells: Sequence[Cell],
    slots: int,
    start: Callable[[int, Cell], None],
    wait: Callable[[], Iterable[tuple[int, Done]]],
) -> Iterator[tuple[int, Done]]:
    """Start cells in their order, as long as what they keep busy fits, and give each when it ends.

    A cell that needs more than there is runs alone, and so does one that needs all of it. None
    overtakes another, so a heavy one does not wait until all light ones are done.

    Args:
        cells: of the sweep; each is called by its place among them, from 0.
        slots: cores that they may keep busy together.
        start: lets one run.
        wait: until at least one that was started has ended; gives those that have.
    """
    waiting = deque(enumerate(cells))
    busy: dict[int, int] = {}
    while waiting or busy:
        while waiting:
            number, cell = waiting[0]
            if busy and sum(busy.values()) + cell.settings.cores > slots:
                break
            waiting.popleft()
            start(number, cell)
            busy[number] = cell.settings.cores
        for number, done in wait():
            del busy[number]
            yield number, done
