"""Retention: what decides which units are put away when room gets scarce, or time passes.

The dose family asks how much reading counts; this one holds three causes against each other.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Final

from steeltrap.workloads.domains import domains
from steeltrap.workloads.stage import Slot, Stage

__all__ = ["retention"]

READS: Final = 3
"""Of each unit that is read at all."""
DAYS: Final = (45, 45)
"""Days of silence, a pause each, after the pressure: a time to live of weeks runs out in them."""


def retention(stage: Stage) -> Iterator[int]:
    """Eight units, each told early or late, vital or trivial, read or not; then pressure, then time.

    What is still listed after the pressure tells whether room decides, what is listed after the
    silence whether time does, and who is left tells by what: by age, by importance, or by use.

    - Each unit has a topic of its own, of one domain. The order is drawn for the early ones, and turned
      round for the late ones.
    - What is active is listed after either half: what was never taken in was not put away.
    - The reads come after the last of them was told, in an order that is drawn.
    - Nothing of them is probed on the way, and no other episode comes between, so that all of them
      have been through the same pressure and the same time.
    """
    domain = stage.dice.pick(domains())
    slots: dict[tuple[bool, bool, bool], Slot] = {}
    order = stage.dice.shuffled(list(product((False, True), repeat=2)))
    for late in (False, True):
        if late:
            _press(stage, 6)
        for vital, read in reversed(order) if late else order:
            slot = stage.slot(
                importance="vital" if vital else "trivial", domain=domain,
                topic=stage.mint.topic(domain),
            )  # fmt: skip
            slots[late, vital, read] = slot
            with stage.unprobed():
                stage.tell(slot)
        stage.look()
    for slot in stage.dice.shuffled([s for (*_, read), s in slots.items() if read] * READS):
        stage.ask(slot)
    _press(stage, 14)
    stage.pause()
    stage.look()
    for days in DAYS:
        stage.pause(days=days)
    stage.look(*slots.values())
    stage.check(*slots.values())
    yield 0


def _press(stage: Stage, units: int) -> None:
    """So many trivial units that are told once, and small talk."""
    for number in range(units):
        with stage.unprobed():
            stage.tell(stage.slot(importance="trivial"))
        if number % 3 == 2:
            stage.noise()
