"""What a table is: numbers, and how they are said.

A table is defined once, by its numbers and by how a number becomes words. Console, Markdown and
LaTeX draw the words (`layout`, `latex`); CSV files and the numbers that a text quotes are the
numbers themselves, one row for each cell of a crossed table and one for each line of a listed one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from steeltrap.reports.facts import distinct

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Numbers", "Say", "Table", "abreast", "crossed", "listed"]

Numbers = Mapping[str, Any]
"""One row of numbers, with what it is about."""
Say = Callable[[Numbers], str]
"""How a row of numbers is said; lines are parted by a newline."""


class Table(NamedTuple):
    """A table: its words, to be drawn, and the numbers that they were made of."""

    name: str
    """Of its files, as `conditions`."""
    title: str
    header: list[str]
    rows: list[list[str]]
    """Lines within a cell are parted by a newline."""
    notes: list[str]
    numbers: list[Numbers]
    about: tuple[str, ...]
    """Columns of the numbers that say what a row is about, such as system and condition."""
    left: int = 1
    """So many columns of words say what a line is about."""
    across: bool = False
    """Whether the other columns are one thing each, so that some of them make a table too."""

    def frame(self) -> pd.DataFrame:
        """The numbers as a tidy frame: no words to be parsed, whole numbers whole."""
        import pandas as pd

        return pd.DataFrame([dict(row) for row in self.numbers]).convert_dtypes()


def crossed(
    name: str,
    title: str,
    numbers: Sequence[Numbers],
    say: Say,
    *,
    down: Mapping[str, str],
    across: str,
    columns: Sequence[Any] = (),
    notes: Sequence[str] = (),
    head: Callable[[Any], str] = str,
    said: Mapping[str, str] | None = None,
    once: bool = False,
) -> Table:
    """A table whose columns are the values of one thing; each cell is one row of numbers.

    Args:
        name: of its files.
        title: above it.
        numbers: a row for each cell; a cell without one is said as `-`.
        say: how a cell is said.
        down: what a line is about: word of the header -> column of the numbers.
        across: the column of the numbers whose values stand side by side.
        columns: its values in order; by default in order of first sight.
        notes: below the table.
        head: how such a value is said in the header.
        said: what a line is about in other words than its name.
        once: say the first of several things that a line is about only where it changes.
    """
    keys = tuple(down.values())
    columns = columns or distinct(row[across] for row in numbers)
    cells: dict[tuple[Any, ...], dict[Any, str]] = {}
    for row in numbers:
        cells.setdefault(tuple(row[key] for key in keys), {})[row[across]] = say(row)
    rows, before = [], ""
    for about, found in cells.items():
        words = [(said or {}).get(str(value), str(value)) for value in about]
        if once:
            words[0], before = "" if words[0] == before else words[0], words[0]
        rows.append([*words, *(found.get(column, "-") for column in columns)])
    header = [*down, *map(head, columns)]
    return Table(
        name, title, header, rows, list(notes), list(numbers), (*keys, across), len(keys), True
    )


def listed(
    name: str,
    title: str,
    numbers: Sequence[Numbers],
    columns: Sequence[tuple[str, str | Say]],
    *,
    about: Sequence[str],
    notes: Sequence[str] = (),
) -> Table:
    """A table with a line for each row of numbers.

    Args:
        name: of its files.
        title: above it.
        numbers: a row for each line.
        columns: word of the header, and the column of the numbers or how the cell is said.
        about: columns of the numbers that say what a line is about, first in the table too.
        notes: below the table.
    """
    rows = [
        [str(row[say]) if isinstance(say, str) else say(row) for _, say in columns]
        for row in numbers
    ]
    header = [word for word, _ in columns]
    return Table(
        name, title, header, rows, list(notes), list(numbers), tuple(about), len(about)
    )  # fmt: skip


def abreast(table: Table, most: int) -> Iterator[Table]:
    """The table in several, with so many columns side by side at most; the last has the notes."""
    columns = len(table.header) - table.left
    if not table.across or columns <= most:
        yield table
        return
    for start in range(table.left, len(table.header), most):
        end = start + most
        rows = [row[: table.left] + row[start:end] for row in table.rows]
        header = table.header[: table.left] + table.header[start:end]
        yield table._replace(
            header=header, rows=rows, notes=table.notes if end >= len(table.header) else []
        )
