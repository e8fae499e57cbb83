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
from steeltrap.reports.numbers import by_system
from steeltrap.reports.table import Numbers, Table, crossed
from steeltrap.reports.tables.conditions import tally
from steeltrap.reports.words import counts, of

__all__ = ["promises"]

_NAMES: Final = (
    ("superseded", "still active", "superseded-active"),
    ("superseded", "served unmarked", "exposed-history"),
    ("superseded", "not in the history", "lost-history"),
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


def promises(records: Sequence[Record]) -> Table | None:
    """How often each promise was broken, by system; None where no twin was without what is erased."""
    systems = by_system(records)
    effects = {system: _effects(own) for system, own in systems.items()}
    if not any(effects.values()):
        return None
    numbers: list[Numbers] = [
        {"promise": promise, "broken": how, "system": system, **tally(own, CONDITION_OF[name], name)}
        for promise, how, name in _NAMES
        for system, own in systems.items()
    ]  # fmt: skip
    numbers += [
        {"promise": "erased", "broken": how, "system": system, **_broken(effects[system], place)}
        for place, how in _PLACES.items()
        for system in systems
    ]
    notes = [
        "Broken, of so many points at which it could have been. The first five are counts of "
        "violations; below `there in any way` stands what differs from the twin in which what is "
        "erased never was.",
        "in files: texts, values and vectors that the files still hold after the erasure or at "
        "the end. What the files of a database hold depends on how its library was built.",
    ]
    seen = {row["broken"] for row in numbers if counts(row) != "-"}
    return crossed(
        "promises", "What removal keeps", [row for row in numbers if row["broken"] in seen], counts,
        down={"promise": "promise", "broken when it is": "broken"}, across="system",
        columns=[*systems], notes=notes, once=True,
    )  # fmt: skip


def _effects(records: Sequence[Record]) -> list[Effect]:
    return [e for record in records for e in record.outcome.effects if e.about == "existing"]


def _broken(effects: Sequence[Effect], place: str) -> Numbers:
    own = [effect for effect in effects if effect.what == place]
    points = sum(effect.n for effect in own)
    broken = sum(effect.differing for effect in own)
    return of(broken, points, blocked=bool(effects))
