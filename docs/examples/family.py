"""A family, as the page "Add a family" builds it."""

# region family
from collections.abc import Iterator

from steeltrap.workloads.stage import Stage


def second_thoughts(stage: Stage) -> Iterator[int]:
    """A value is replaced, and a turn later it is back, as if nothing had happened."""
    slot = stage.slot(kinds=("date", "time"))
    stage.tell(slot)
    first = stage.current(slot)
    yield stage.dice.between(1, 3)
    stage.revise(slot)
    yield 1
    stage.op("revert", slot, first)
    stage.check_later(slot, 5)
    yield 1


# endregion
