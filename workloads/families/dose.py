"""Dose and response: of units that are alike, some are read once, some often, some never.

The reinforcement family asks whether reading matters; this one asks how much.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from steeltrap.harness.script import UNOBSERVED
from steeltrap.workloads.stage import Slot, Stage

__all__ = ["DOSES", "dose"]

DOSES: Final = (0, 1, 2, 5, 20)
"""How often the units of a group are read."""
AT_ONCE: Final = len(DOSES) - 1
"""Reads between two turns; the last so many are one of each unit that is read at all."""


def dose(stage: Stage) -> Iterator[int]:
    """Five units of one field are told in a row, read by their doses, and put under pressure.

    What could be taken for an effect of the dose is balanced or the same:

    - Topics are new ones of one domain, with one importance. They are no look-alikes in name: a
      memory that mixes up names would be judged for that.
    - The order of telling is drawn, and the next group has it the other way round.
    - The last read of each unit falls on one instant, in an order that is drawn and turned round
      likewise, so that units that were read 1, 2, 5 and 20 times were all last read equally long
      ago. What tells them apart is the count alone. Between 0 and 1 stand reading and recency.
    - What changes is not probed on the way: where a system cannot be copied, probes are reads.

    A neutral question for all five is asked before the first read, after the last one, and after
    the pressure: trivial units, small talk, and pauses long enough for what is not used to fade.
    """
    _observe_not(stage)
    slots = dict(zip(DOSES, _alike(stage, len(DOSES)), strict=True))
    for reads in _turned(stage, "dose told", DOSES):
        with stage.unprobed():
            stage.tell(slots[reads])
    stage.rank(*slots.values())
    for place, reads in enumerate(_reads(stage), 1):
        stage.ask(slots[reads], control=slots[0])
        if place % AT_ONCE == 0 and place < sum(DOSES):
            yield 0
            stage.noise()
    stage.rank(*slots.values())
    for _ in range(3):
        for _ in range(2):
            yield stage.dice.between(1, 3)
            stage.tell(stage.slot(importance="trivial"))
            stage.noise()
        stage.pause(days=stage.dice.between(20, 40))
    stage.look(*slots.values())
    stage.rank(*slots.values())
    stage.check(*slots.values())


def _observe_not(stage: Stage) -> None:
    """Let the script have a twin in which nothing is measured on the way."""
    if UNOBSERVED not in stage.header.twins:
        stage.header.twins.append(UNOBSERVED)


def _alike(stage: Stage, n: int) -> list[Slot]:
    """Trivial units of one field of one domain."""
    first = stage.slot(importance="trivial")
    others = [
        stage.slot(field=first.field, domain=first.domain, topic=stage.mint.topic(first.domain))
        for _ in range(n - 1)
    ]
    return [first, *others]


def _reads(stage: Stage) -> list[int]:
    """The doses in the order of their reads."""
    read = [reads for reads in DOSES if reads]
    early = [reads for reads in read for _ in range(reads - 1)]
    return stage.dice.shuffled(early) + _turned(stage, "dose last", read)


def _turned(stage: Stage, deck: str, doses: Sequence[int]) -> list[int]:
    """The doses in an order that is drawn for one group and turned round for the next."""
    order = stage.dice.shuffled([str(reads) for reads in doses])
    drawn = stage.deal(deck, [" ".join(order), " ".join(reversed(order))])
    return [int(reads) for reads in drawn.split()]
