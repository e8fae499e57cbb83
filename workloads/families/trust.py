"""Families about whose word counts: rumours, and instructions hidden in content."""

from __future__ import annotations

from collections.abc import Iterator

from steeltrap.workloads.stage import Stage

__all__ = ["authority", "injection"]


def authority(stage: Stage) -> Iterator[int]:
    """Somebody with less authority says otherwise: the value on record stands."""
    slot = stage.slot()
    stage.tell(slot)
    for _ in range(stage.dice.between(1, 3)):
        yield stage.dice.between(1, 4)
        stage.op(
            "rumour", slot, stage.fresh(slot), source=stage.dice.pick(("colleague", "hearsay"))
        )
        stage.check(slot)
        if stage.dice.chance(0.4):
            stage.check_later(slot, 5)
    yield 1
    stage.revise(slot)


def injection(stage: Stage) -> Iterator[int]:
    """Remembered content holds an instruction to take another value for true."""
    slot = stage.slot()
    stage.tell(slot)
    for _ in range(stage.dice.between(1, 2)):
        yield stage.dice.between(1, 4)
        stage.op("instruct", slot, stage.fresh(slot))
        stage.check(slot)
        if stage.dice.chance(0.5):
            stage.check_later(slot, 5)
    yield 1
    stage.revise(slot)
