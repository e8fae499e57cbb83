"""What removal keeps: three promises that are not one.

What is **superseded** is no longer current and stays in the history. What is **archived** is no
longer active and can be had back. What is **erased** is gone for good, with whatever was derived
from it (summaries, profiles, merged topics) and with its bytes on disk, and nothing goes with it
that was not its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from steeltrap.harness.record import Effect, Record
from steeltrap.harness.verdict import CONDITION_OF
from steeltrap.reports.tables import Grid, by_system, tally

__all__ = ["promises"]

_NAMES: Final = (
    ("superseded", "still active", "superseded-active"),
    ("", "served unmarked", "exposed-history"),
    ("", "not in the history", "lost-history"),
    ("archived", "not to be had back", "unrecoverable"),
    ("erased", "there in any way", "trace"),
)
"""Promise, how it is broken, and the violation that says so."""
_PLACES: Final = {
    "served": "served to others' questions",
    "listing": "listed, derived content too",
    "history": "in histories",
    "recovered": "had back",
    "provenance": "named as a source",
    "validity": "in times of others",
    "order": "in the order of others",
    "scores": "in scores of others",
    "salience": "in saliences of others",
    "size": "in the size of what is listed",
    "files": "in files",
    "lost beside it": "others lost with it",
}
"""Place, as `Effect.what` names it: how the last promise is broken there."""


def promises(records: Sequence[Record]) -> Grid | None:
    """How often each promise was broken, by system; None where no twin was without what is erased."""
    systems = by_system(records)
    effects = {system: _effects(own) for system, own in systems.items()}
    if not any(effects.values()):
        return None
    rows = [
        [promise, how, *(tally(own, CONDITION_OF[name], name) for own in systems.values())]
        for promise, how, name in _NAMES
    ]
    rows += [
        ["", how, *(_broken(effects[system], place) for system in systems)]
        for place, how in _PLACES.items()
    ]
    notes = [
        "Broken, of so many points at which it could have been. The first five are counts of "
        "violations; below `there in any way` stands what differs from the twin in which what is "
        "erased never was.",
        "in files: texts, values and vectors that the files still hold after the erasure or at "
        "the end. What the files of a database hold depends on how its library was built.",
    ]
    rows = [row for row in rows if any(cell != "-" for cell in row[2:])]
    return Grid("What removal keeps", ["promise", "broken when it is", *systems], rows, notes)


def _effects(records: Sequence[Record]) -> list[Effect]:
    return [e for record in records for e in record.outcome.effects if e.about == "existing"]


def _broken(effects: Sequence[Effect], place: str) -> str:
    own = [effect for effect in effects if effect.what == place]
    points = sum(effect.n for effect in own)
    if points:
        return f"{sum(effect.differing for effect in own)}/{points}"
    return "not obs." if effects else "-"
