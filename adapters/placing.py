"""What an ideal model does with a new statement beside those that a memory holds already.

Shared by the answerers of memories whose own prompts ask for it: which entries the new one puts
out of force, and whether it is worth keeping. It follows from nothing but the statements shown.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from steeltrap.harness.models import Mind
from steeltrap.harness.statements import Statement

__all__ = ["Placing", "event", "placed"]


class Placing(NamedTuple):
    """What becomes of the entries, and of the new statement."""

    over: tuple[str, ...]
    """Those that hold no longer, by their ids."""
    kept: bool
    """Whether it is to be kept; a withdrawal, a repetition and a contradiction by somebody whose
    word counts less are not."""


def placed(new: Statement, held: Mapping[str, Statement], mind: Mind) -> Placing:
    """Where a statement belongs among those held, which are given by the ids of their entries."""
    if any(mind.repeats(new, old) for old in held.values()):
        return Placing((), kept=False)
    about = {name: old for name, old in held.items() if new.topic and old.about == new.about}
    over = [name for name, old in about.items() if mind.contradicts(new, old)]
    if new.sense in ("states", "withdraws"):
        values = [old for name, old in about.items() if old.sense == "states" and name not in over]
        if any(old.said_by != new.said_by for old in values):
            return Placing((), kept=False)
        over += [name for name, old in about.items() if old.sense == "lapses"]
    return Placing(tuple(over), kept=new.sense != "withdraws")


def event(said: Statement, at: str) -> str:
    """A statement as something that happened: a sentence that stays true whatever comes later.

    Args:
        said: gives a field a value.
        at: when it was said, ISO 8601.
    """
    if said.sense == "past":
        return said.text
    return Statement("past", said.topic, said.field, said.value, since=at).text
