"""Families in which values change: chains, returns, echoes, late news, ends and withdrawals."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from steeltrap.workloads.stage import Stage, days_between

__all__ = [
    "expiry",
    "flip_flop",
    "history_audit",
    "out_of_order",
    "retraction",
    "revision_chain",
    "stale_echo",
]


def _until_days_have_passed(stage: Stage, since: str, days: int) -> Iterator[int]:
    """Let turns pass until so many whole days lie between an instant and now."""
    while len(days_between(since, stage.at)) < days:
        yield 1


def revision_chain(stage: Stage) -> Iterator[int]:
    """One or two units, told together, revised again and again, sometimes both in one turn."""
    pair = [stage.slot() for _ in range(stage.dice.between(1, 2))]
    stage.tell(*pair)
    yield 1
    for _ in range(stage.dice.between(3, 7)):
        stage.revise(*stage.dice.sample(pair, stage.dice.between(1, 2)))
        yield stage.dice.between(1, 6)


def flip_flop(stage: Stage) -> Iterator[int]:
    """A, B, A: the first value is legitimately current again, and perhaps once more after C."""
    slot = stage.slot()
    stage.tell(slot)
    first = stage.current(slot)
    yield stage.dice.between(1, 4)
    stage.revise(slot)
    second = stage.current(slot)
    yield stage.dice.between(1, 6)
    stage.op("revert", slot, first)
    yield stage.dice.between(1, 4)
    if stage.dice.chance(0.6):
        stage.op("revert", slot, second)
        yield 2
    stage.revise(slot)
    yield 1
    stage.op("revert", slot, first)
    yield 0


def stale_echo(stage: Stage) -> Iterator[int]:
    """After a revision the old value is mentioned, quoted, supposed, denied or asked about."""
    slot = stage.slot()
    stage.tell(slot)
    old = stage.current(slot)
    yield stage.dice.between(1, 4)
    stage.revise(slot)
    for _ in range(stage.dice.between(2, 4)):
        yield stage.dice.between(1, 5)
        stage.op("echo", slot, old)
        stage.check(slot)
        if stage.dice.chance(0.3):
            stage.check_later(slot, 5)


def out_of_order(stage: Stage) -> Iterator[int]:
    """Late news about a time before the present value: history changes, the present does not."""
    slot = stage.slot()
    stage.tell(slot)
    told_at = stage.at
    yield from _until_days_have_passed(stage, told_at, 2)
    stage.revise(slot)
    since, later = days_between(told_at, stage.at)[:2]
    yield stage.dice.between(1, 5)
    stage.revise(slot, valid_at=since)
    stage.check(slot, ask="as-of", of=later)
    stage.check(slot, ask="previous")
    yield stage.dice.between(2, 6)
    stage.ask(slot)


def expiry(stage: Stage) -> Iterator[int]:
    """A value that holds until a stated time; nothing takes its place, or a new value does."""
    slot = stage.slot()
    # Later than the longest gap between two turns, so that it lies ahead when it is said.
    until = datetime.fromisoformat(stage.at) + timedelta(hours=stage.dice.between(96, 160))
    stage.op(
        "expire",
        slot,
        stage.fresh(slot),
        until=until.replace(minute=0).isoformat(timespec="minutes"),
    )
    while stage.current(slot) is not None:
        yield 1
    yield stage.dice.between(1, 8)
    if stage.dice.chance(0.4):
        stage.tell(slot)
        yield 1


def retraction(stage: Stage) -> Iterator[int]:
    """A value is withdrawn; another turns out to have been wrong from the start."""
    withdrawn, mistaken = stage.slot(), stage.slot()
    stage.tell(withdrawn)
    stage.tell(mistaken)
    yield stage.dice.between(1, 4)
    stage.op("correct", mistaken, stage.fresh(mistaken))
    yield 1
    if stage.dice.chance(0.5):
        stage.revise(withdrawn)
        yield 2
    stage.op("retract", withdrawn)
    yield stage.dice.between(2, 8)
    stage.check(withdrawn, mistaken)
    if stage.dice.chance(0.5):
        stage.revise(withdrawn)
        yield 1


def history_audit(stage: Stage) -> Iterator[int]:
    """A chain of values, then questions about the past: the one before, and as of an instant."""
    slot = stage.slot()
    stage.tell(slot)
    days: list[str] = []
    for _ in range(stage.dice.between(2, 4)):
        since = stage.at
        if stage.dice.chance(0.7) or not days:
            yield from _until_days_have_passed(stage, since, 1)
        yield stage.dice.between(1, 3)
        stage.revise(slot)
        days += days_between(since, stage.at)[:1]
    yield 1
    stage.check(slot, ask="previous")
    for day in stage.dice.sample(days, 2):
        stage.check(slot, ask="as-of", of=day)
    yield stage.dice.between(1, 6)
    stage.check(slot, ask="previous")
