"""What commands over stored answers have in common: words that are read, and tables."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from steeltrap.harness.answering.asking import ModelSettings
from steeltrap.harness.answering.scores import Judge, Reader
from steeltrap.harness.commands.dialogue import spoken
from steeltrap.harness.settings import SettingsError
from steeltrap.harness.store import Cell, StoreError, read_cell

if TYPE_CHECKING:
    from rich.table import Table

__all__ = ["Count", "cell_text", "judge_told", "named_cells", "refuse_none", "runs_told", "settings_of", "table_of", "told"]  # fmt: skip

Settings = TypeVar("Settings", bound=ModelSettings)


def named_cells(words: Sequence[str]) -> list[Cell]:
    """The finished runs in and below the folders that were named."""
    found: dict[Path, Cell] = {}
    for folder in (Path(word) for word in words if "=" not in word):
        there = sorted(path.parent for path in folder.rglob("record.json"))
        if not there:
            raise StoreError(f"{folder}: holds no finished run (no record.json)")
        found |= {path.resolve(): read_cell(path) for path in there}
    return list(found.values())


def settings_of(words: Sequence[str], kind: type[Settings]) -> Settings:
    """The settings among the words, as KEY=VALUE.

    Raises:
        SettingsError: one is unknown, or not of its kind.
    """
    given = dict(word.split("=", 1) for word in words if "=" in word)
    known = [field.name for field in msgspec.structs.fields(kind)]
    if unknown := [key for key in given if key not in known]:
        raise SettingsError(f"unknown setting '{unknown[0]}'; there are {', '.join(known)}")
    try:
        return msgspec.convert(given, kind, strict=False)
    except msgspec.ValidationError as error:
        what, _, where = str(error).partition(" - at ")
        raise SettingsError(f"{where.strip('`').removeprefix('$.')}: {what}".replace("`", "")) from None  # fmt: skip


def refuse_none(done: Sequence[object], cells: Sequence[Cell]) -> None:
    """Say so where no run has questions of public data.

    Raises:
        StoreError: nothing was done.
    """
    if not done:
        raise StoreError(
            f"{cells[0].folder}: the script has no questions of public data, so there is nothing to"
            " answer; run one, as experiment=locomo"
        )


class Count:
    """Tells a person how many are done.

    Args:
        shown: a status line of rich.
        what: is counted, in the plural.
    """

    def __init__(self, shown: Any, what: str) -> None:
        self._shown, self._what, self._n = shown, what, 0

    def __call__(self) -> None:
        """One more is done."""
        self._n += 1
        self._shown.update(f"{self._n} {self._what}")


def told(by: Reader) -> str:
    """The reader in a line."""
    room = [f"{by.budget_tokens} tokens"] if by.budget_tokens else []
    room += [f"{by.k} items"] if by.k else []
    return (
        f"reader: {by.model}, prompt {by.prompt} {by.prompt_version} ({by.prompt_sha256[:8]}),"
        f" context {' and '.join(room) or 'all that was served'}"
    )


def judge_told(by: Judge) -> str:
    """The judge in a line."""
    if by.kind != "model":
        return f"judge: {by.name} ({by.kind}, no model; right from {by.right_from:g})"
    return (
        f"judge: {by.name} ({by.model}, temperature {by.temperature:g}, prompts"
        f" {by.prompts_sha256[:8]}, right from {by.right_from:g})"
    )


def runs_told(n: int) -> str:
    """So many runs, in words."""
    return f"{n} run{'s' if n != 1 else ''}"


def table_of(*header: str) -> Table:
    """A table for the console; columns of words stand left."""
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, collapse_padding=True)
    for name in header:
        words = name in (
            "category",
            "run",
            "question",
            "asked",
            "evidence in the prompt",
            "criterion",
        )
        table.add_column(cell_text(name), justify="left" if words else "right")
    return table


def cell_text(text: str) -> Any:
    """Text that others wrote, as it can be shown in a table."""
    from rich.text import Text

    return Text(spoken(text))
