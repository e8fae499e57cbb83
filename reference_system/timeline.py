"""Reading a history: what held when, as the entries of a field tell it.

Two times are kept apart (bitemporal): `valid_from` and `until` say when a value held in the
world, `recorded` says since when the memory knew. So what was believed at an instant can be had
back as well as what was true at it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from steeltrap.reference_system.state import Entry

__all__ = ["Held", "as_of", "present", "timeline"]

VALUES = ("told", "corrected", "withdrawn", "derived")


class Held(msgspec.Struct, frozen=True):
    """One value of a history, with when it held and where it came from."""

    entry: Entry
    valid_from: str
    valid_to: str | None
    """None: nothing has ended it."""
    sources: tuple[str, ...]
    """The turn that wrote it, those of its rules, and those that said it again."""
    never_true: bool


def timeline(entries: Iterable[Entry], *, recorded_by: str | None = None) -> list[Held]:
    """Every value that a field had, withdrawals included, oldest first by when it held.

    Args:
        entries: the histories of the field and of those that were merged into it.
        recorded_by: leave out what the memory learned after this instant.
    """
    known = [e for e in entries if recorded_by is None or e.recorded <= recorded_by]
    values = sorted((e for e in known if e.op in VALUES), key=lambda e: (e.valid_from, e.order))
    notes: dict[tuple[str, int], list[Entry]] = {}
    for entry in known:
        if entry.op in ("restated", "ends", "void"):
            notes.setdefault((entry.field, entry.about), []).append(entry)
    held = []
    for place, entry in enumerate(values):
        about = notes.get((entry.field, entry.seq), [])
        following = values[place + 1].valid_from if place + 1 < len(values) else None
        ends = [note.until for note in about if note.until]
        until = ends[-1] if ends else entry.until
        said = [note.turn for note in about if note.op != "void"]
        held.append(Held(
            entry, entry.valid_from, min(filter(None, (following, until)), default=None),
            tuple(dict.fromkeys((entry.turn, *entry.sources, *said))),
            any(note.op == "void" for note in about),
        ))  # fmt: skip
    return held


def as_of(held: Sequence[Held], at: str) -> Held | None:
    """What held at an instant, or None."""
    for value in reversed(held):
        if not value.never_true and value.valid_from <= at:
            ended = value.valid_to is not None and value.valid_to <= at
            if ended and value.valid_from == value.valid_to:
                continue
            return None if ended or value.entry.value is None else value
    return None


def present(entries: Sequence[Entry]) -> Entry | None:
    """The entry that holds, or held last, as the history tells it: the rule that `check` applies.

    Args:
        entries: the history of one field, in the order in which it was written.
    """
    now: Entry | None = None
    for entry in entries:
        if (
            entry.op in VALUES
            and (now is None or entry.op != "told" or entry.valid_from >= now.valid_from)
        ) or entry.op == "merged":
            now = entry
    return now
