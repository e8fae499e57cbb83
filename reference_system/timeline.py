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
    """None: nothing has ended it. What lost a merge to an earlier value held for no time."""
    sources: tuple[str, ...]
    """The turn that wrote it, those of its rules, and those that said it again."""
    never_true: bool
    last: bool
    """It is what the field holds, or held last."""


def timeline(entries: Iterable[Entry], *, recorded_by: str | None = None) -> list[Held]:
    """Every value that a field had, withdrawals included, oldest first by when it held.

    Args:
        entries: the histories of the field and of those that were merged into it.
        recorded_by: leave out what the memory learned after this instant.
    """
    known = [e for e in entries if recorded_by is None or e.recorded <= recorded_by]
    values = sorted((e for e in known if e.op in VALUES), key=_place)
    verdicts = _verdicts(known, {(e.field, e.seq): e for e in values})
    lost = _lost(values, verdicts)
    notes: dict[tuple[str, int], list[Entry]] = {}
    for entry in known:
        if entry.op in ("restated", "ends", "void"):
            about = entry.field, entry.about
            won = verdicts.get(about, (entry, None))[1]
            notes.setdefault((won.field, won.seq) if won else about, []).append(entry)
    held: list[Held] = []
    following, last = None, True
    for entry in reversed(values):
        about_it = notes.get((entry.field, entry.seq), ())
        ends = [note.until for note in about_it if note.until]
        void = any(note.op == "void" for note in about_it)
        stands = not void and entry.order not in lost
        until = entry.valid_from if entry.order in lost else ends[-1] if ends else entry.until
        said = [note.turn for note in about_it if note.op != "void"]
        held.append(Held(
            entry, entry.valid_from, min(filter(None, (following, until)), default=None),
            tuple(dict.fromkeys((entry.turn, *entry.sources, *said))), void, stands and last,
        ))  # fmt: skip
        if stands:
            following, last = entry.valid_from, False
    return held[::-1]


def _place(entry: Entry) -> tuple[str, int]:
    """Where an entry stands among values: by when it held, then by when it was written."""
    return entry.valid_from, entry.order


def _verdicts(
    known: Iterable[Entry], values: dict[tuple[str, int], Entry]
) -> dict[tuple[str, int], tuple[Entry, Entry | None]]:
    """Every merge, in the order in which they were made, with the value that it made current."""
    found: dict[tuple[str, int], tuple[Entry, Entry | None]] = {}
    for merge in sorted((e for e in known if e.op == "merged"), key=lambda e: e.order):
        won = merge.via, merge.about
        value = found[won][1] if won in found else values.get(won)
        found[merge.field, merge.seq] = merge, value
    return found


def _lost(
    values: Sequence[Entry], verdicts: dict[tuple[str, int], tuple[Entry, Entry | None]]
) -> set[int]:
    """Values, by `order`, that a merge put below an earlier one."""
    lost: set[int] = set()
    for merge, won in verdicts.values():
        if won is not None:
            lost |= {e.order for e in values if e.order < merge.order and _place(e) > _place(won)}
            lost.discard(won.order)
    return lost


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
