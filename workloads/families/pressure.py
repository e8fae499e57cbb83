"""Families that press on what is kept: floods, distraction, importance and reading."""

from __future__ import annotations

from collections.abc import Iterator

from steeltrap.workloads.stage import Slot, Stage

__all__ = ["distraction", "importance_inversion", "reinforcement", "restatement_flood"]


def restatement_flood(stage: Stage) -> Iterator[int]:
    """The same value over and over in other words; a memory must not grow by it."""
    slot = stage.slot()
    stage.tell(slot)
    for flood in range(2):
        for _ in range(stage.dice.between(5, 9)):
            yield stage.dice.between(0, 2)
            stage.op("restate", slot)
        if flood == 0:
            yield 1
            stage.revise(slot)
    stage.check(slot)


def distraction(stage: Stage) -> Iterator[int]:
    """An update, then many turns about nothing, then the question."""
    slot = stage.slot()
    stage.tell(slot)
    yield stage.dice.between(1, 3)
    stage.revise(slot)
    for _ in range(stage.dice.pick((4, 8, 15))):
        yield 0
        stage.noise()
    stage.ask(slot)


def importance_inversion(stage: Stage) -> Iterator[int]:
    """Something vital is said once, something trivial again and again."""
    vital, trivial = stage.slot(importance="vital"), stage.slot(importance="trivial")
    stage.tell(vital)
    yield 1
    stage.tell(trivial)
    for _ in range(stage.dice.between(5, 9)):
        yield stage.dice.between(0, 3)
        stage.op("restate", trivial)
        if stage.dice.chance(0.3):
            stage.ask(trivial)
    yield stage.dice.between(2, 10)
    stage.check(trivial, vital)
    stage.ask(vital)
    yield stage.dice.between(10, 40)
    stage.check(trivial, vital)


def reinforcement(stage: Stage) -> Iterator[int]:
    """Of two exchangeable units one is read, five times; then room gets scarce.

    In the other twin the other unit is read, and nothing else differs.
    """
    a, b = _alike(stage)
    stage.tell(a)
    yield 0
    stage.tell(b)
    yield 0
    twin = stage.next_twin()
    stage.rank(a, b)
    for _ in range(5):
        stage.ask(a, swap=(twin, b), control=b)
        yield 0
        stage.noise()
    stage.rank(a, b)
    for _ in range(4):
        yield 0
        stage.tell(stage.slot(importance="trivial"))
        stage.noise()
    stage.check(a, b)
    stage.rank(a, b)
    stage.twin(twin, a, b)


def _alike(stage: Stage) -> tuple[Slot, Slot]:
    """Two units of one field of one domain."""
    a = stage.slot(importance="trivial")
    topic = stage.mint.topic(a.domain)
    return a, stage.slot(field=a.field, domain=a.domain, topic=topic)
