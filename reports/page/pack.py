"""The data of a page: small indexes that are read at once, and blocks that are read when needed.

All of it is lines of base64. The first is the directory; the others are found through it. An index
holds what the lanes are drawn from, in columns. A shelf holds what is only read (texts, items,
calls), `SHELF` rows to a block, so that a page of 20 000 turns opens as quickly as a small one.
"""

from __future__ import annotations

import base64
import zlib
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec

from steeltrap.harness.trajectory import Line, Played, Shown, Story
from steeltrap.harness.verdict import CONDITION_OF, NAMES
from steeltrap.reports.explain import ASKS, EXPLAINED

__all__ = ["SHELF", "packed"]

SHELF: Final = 256
"""Rows of a block."""
CAUSES: Final = (
    "told", "corrected", "derived", "review", "late", "retracted", "expired", "erased",
)  # fmt: skip
KINDS: Final = {
    "turn": "t", "probe": "p", "gauge": "g", "audit": "a", "pause": "z", "erasure": "e",
}  # fmt: skip
VERDICTS: Final = {
    "": "-", "correct": "c", "stale": "s", "ambiguous": "a", "wrong": "w", "missing": "m",
    "flagged": "f", "inherited": "i", "unknown": "u",
}  # fmt: skip
FAILED: Final = "x"
NONE: Final = -1


def packed(stories: Sequence[Story], runs: Sequence[Played]) -> str:
    """Everything a page shows, as lines of base64."""
    blocks = _Blocks()
    places = {story.sha256: number for number, story in enumerate(stories)}
    lines = [{line.id: i for i, line in enumerate(story.lines)} for story in stories]
    keys, labels = _keys(runs), _labels(runs)
    directory = {
        "names": NAMES,
        "asks": ASKS,
        "explained": EXPLAINED,
        "causes": CAUSES,
        "shelf": SHELF,
        "stories": [_story(story, blocks) for story in stories],
        "runs": [
            {
                "key": key, "label": label, "story": places[run.sha256],
                **_run(run, lines[places[run.sha256]], blocks),
            }
            for key, label, run in zip(keys, labels, runs, strict=True)
        ],
    }  # fmt: skip
    return "\n".join([_block(directory), *blocks.made])


class _Blocks:
    """The blocks made so far; the directory is number 0."""

    def __init__(self) -> None:
        self.made: list[str] = []

    def one(self, data: Any) -> int:
        """The number of a block that holds this."""
        self.made.append(_block(data))
        return len(self.made)

    def shelf(self, rows: Sequence[Any]) -> int:
        """The number of the first of the blocks that hold these rows."""
        first = len(self.made) + 1
        for start in range(0, len(rows), SHELF):
            self.one(rows[start : start + SHELF])
        return first


def _block(data: Any) -> str:
    # zlib's format has neither time nor system in it, so the bytes are always the same
    return base64.b64encode(zlib.compress(msgspec.json.encode(data), 6)).decode()


def _keys(runs: Sequence[Played]) -> list[str]:
    """What a link calls a run: its folder, with a number where two have the same name."""
    seen: dict[str, int] = {}
    keys = []
    for run in runs:
        seen[run.folder] = seen.get(run.folder, 0) + 1
        keys.append(run.folder + (f"~{seen[run.folder]}" if seen[run.folder] > 1 else ""))
    return keys


def _labels(runs: Sequence[Played]) -> list[str]:
    """What a run is called: its label, with its folder where two on one script have the same."""
    called = Counter((run.sha256, run.label) for run in runs)
    return [
        run.label if called[run.sha256, run.label] == 1 else f"{run.label} ({run.folder})"
        for run in runs
    ]


# ---------------------------------------------------------------- a script


def _story(story: Story, blocks: _Blocks) -> dict[str, Any]:
    return {
        "name": story.name, "seed": story.seed, "turns": story.turns, "sha256": story.sha256,
        "index": blocks.one(_told(story)), "lines": blocks.shelf(story.lines),
    }  # fmt: skip


def _told(story: Story) -> dict[str, Any]:
    """What the lanes of a script are drawn from."""
    values: dict[str, int] = {}
    ops: dict[str, int] = {}
    changes, said = [], []
    for i, line in enumerate(story.lines):
        for change in line.changes:
            value = NONE if change.value is None else values.setdefault(change.value, len(values))
            cause = CAUSES.index(change.cause) if change.cause in CAUSES else 0
            changes.append((i, change.unit, value, cause))
        for done in line.ops:
            if done.unit is not None:
                said.append((i, done.unit, ops.setdefault(done.op, len(ops))))
    return {
        "units": story.units,
        "kinds": "".join(KINDS[line.kind] for line in story.lines),
        "unit": [_or_none(line.unit) for line in story.lines],
        "at": _times(story.lines),
        "values": list(values),
        "ops": list(ops),
        "changes": _columns(changes, 4),
        "said": _columns(said, 3),
    }


def _times(lines: Iterable[Line]) -> list[str]:
    """When each turn was said."""
    return [line.at for line in lines if line.kind == "turn"]


# ---------------------------------------------------------------- a run


def _run(run: Played, lines: dict[str, int], blocks: _Blocks) -> dict[str, Any]:
    names: dict[str, int] = {}
    for mark in run.violations:
        names[mark.name] = names.get(mark.name, 0) + 1
    return {
        "folder": run.folder, "reader": run.reader, "limit": run.limit,
        "facts": run.facts, "verdicts": run.verdicts, "numbers": run.numbers, "counts": names,
        "footprint": run.footprint, "index": blocks.one(_index(run, lines)),
        "shown": blocks.shelf(run.shown), "items": blocks.shelf(run.items),
        "marks": blocks.shelf(run.violations), "witnesses": blocks.one(run.witnesses),
    }  # fmt: skip


def _index(run: Played, lines: dict[str, int]) -> dict[str, Any]:
    """What the marks of a run are drawn from."""
    numbers = {name: number for number, name in enumerate(CONDITION_OF)}
    marks = [
        (mark.i, _or_none(mark.unit), numbers[mark.name], lines.get(mark.began, NONE))
        for mark in run.violations
    ]
    return {
        "verdicts": "".join(_letter(shown) for shown in run.shown),
        "by": [lines.get(shown.by[0], NONE) if shown.by else NONE for shown in run.shown],
        "marks": _columns(marks, 4),
    }


def _letter(shown: Shown) -> str:
    return VERDICTS.get(shown.verdict, "u") if shown.type == "ok" else FAILED


def _columns(rows: Sequence[tuple[int, ...]], width: int) -> list[list[int]]:
    return [[row[column] for row in rows] for column in range(width)]


def _or_none(number: int | None) -> int:
    return NONE if number is None else number
