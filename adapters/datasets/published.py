"""Figures that others published on the public data, and what became of them here.

They stand in `published.toml`: where each was published, by which conventions, and whether it was
reproduced, comes out different and why, or cannot be had here. Figures with a run are computed again
by the tests, from the data of whoever has it.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Final, Literal

import msgspec

from steeltrap.harness.record import Evidence

__all__ = ["Figure", "Published", "Run", "published"]

_FILE: Final = Path(__file__).with_name("published.toml")

Outcome = Literal["reproduced", "different", "not reproducible"]


class Run(msgspec.Struct, forbid_unknown_fields=True):
    """A run that figures are read from."""

    script: str
    """Of `script=`; `script.path` is the reader's own."""
    asked: list[str]
    """The other settings, as on a command line."""
    slow: bool = False
    """It takes over 20 s."""


class Figure(msgspec.Struct, forbid_unknown_fields=True):
    """One published number, in percent."""

    data: str
    what: str
    """System, unit, score and k, as its authors have them."""
    source: str
    outcome: Outcome
    why: str
    """The convention by which it differs, or what it would take; empty where it is reproduced."""
    published: float | None = None
    """None where the number was not at hand."""
    ours: float | None = None
    n: int | None = None
    """Questions that ours counts."""
    run: str = ""
    system: str = ""
    """Of the run's, where it has several."""
    row: dict[str, str | int] = {}
    """What picks the row: category, grain, k, window, left_out, convention."""
    score: str = "recall"

    def value(self, rows: Iterable[Evidence]) -> tuple[int, float]:
        """Questions and score in percent of the rows of all scripts that fit, pooled."""
        wanted = _ANY | self.row
        found = [row for row in rows if all(getattr(row, k) == v for k, v in wanted.items())]
        n = sum(row.n for row in found)
        return n, 100 * sum(row.n * getattr(row, self.score) for row in found) / max(1, n)


_ANY: Final[dict[str, str | int]] = {
    "category": "all", "grain": "turn", "window": 0, "budget_tokens": 0, "left_out": "",
    "convention": "",
}  # fmt: skip


class Published(msgspec.Struct, forbid_unknown_fields=True):
    """The file."""

    run: dict[str, Run]
    figure: list[Figure]


@cache
def published() -> Published:
    """All figures, with the runs that they are read from."""
    return msgspec.toml.decode(_FILE.read_bytes(), type=Published)
