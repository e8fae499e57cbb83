"""Tables drawn on a console and written as Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from steeltrap.harness.record import Record
from steeltrap.reports.facts import comparable, facts, title
from steeltrap.reports.table import Table, abreast
from steeltrap.reports.table1 import of_families
from steeltrap.reports.tables import every
from steeltrap.reports.words import spelled

if TYPE_CHECKING:
    import rich.table
    from rich.console import Console

__all__ = ["escaped", "markdown", "page", "show", "show_table"]

FAMILIES_SHOWN: Final = ("reported",)
"""Scripts whose families are what is asked about, so that they belong on the console."""
_ABREAST: Final = {"families": 4, "growth": 4}
"""Columns side by side on a console, of tables that have more than fit."""
_MEANT: Final = {
    "&": "&amp;", "<": "&lt;", "|": "\\|", "\\": "&#92;", "`": "&#96;", "*": "&#42;", "[": "&#91;",
    "]": "&#93;",
}  # fmt: skip
"""What begins code, emphasis, links and pictures; a page must not load what a name tells it to."""
_SENTENCE: Final = 20
"""Letters from which on what is not a name is read as words, and may be broken between them."""
_WORD: Final = 20
"""Letters of a name that stay together on a console."""
_ON_PAPER: Final = ("names", "promises", "differences", "lost")
"""Tables that a console does not show."""


def show(
    records: Sequence[Record],
    console: Console,
    *,
    notes: Sequence[str] = (),
    families: bool = False,
) -> None:
    """Print facts, conditions, costs and evidence of each comparable group.

    Args:
        records: finished cells.
        console: where to; tables fit 80 columns.
        notes: further facts, such as how defects of public data are handled.
        families: end with the paper's Table 1 and the mechanisms behind it.
    """
    for group in comparable(records):
        for fact in (*facts(group), *notes):
            console.print(spelled(fact), highlight=False, markup=False)
        for table in _shown(group):
            show_table(table, console)
    for table in of_families(records, brief=True) if families else ():
        show_table(table, console)


def show_table(table: Table, console: Console) -> None:
    """Print one table, with its title above and its notes below."""
    console.print()
    console.print(table.title, style="table.title", highlight=False, markup=False)
    console.print(_rich(table))
    for note in table.notes:
        console.print(f"  {spelled(note)}", style="dim", highlight=False, markup=False)


def _shown(group: Sequence[Record]) -> list[Table]:
    """What belongs on a console, as wide as it is."""
    hidden = set(_ON_PAPER)
    if group[0].spec.script not in FAMILIES_SHOWN:
        hidden.add("families")
    found = [table for table in every(group, brief=True) if table.name not in hidden]
    return [part for table in found for part in abreast(table, _most(table))]


def _most(table: Table) -> int:
    return _ABREAST.get(table.name, len(table.header))


def page(records: Sequence[Record], *, notes: Sequence[str] = (), families: bool = False) -> str:
    """The same and more as a Markdown page: violations by name, differences of systems."""
    lines = ["# Can it be trusted over a long life?", ""]
    for group in comparable(records):
        lines += [f"## {_line(title(group))}", ""]
        lines += [f"- {_line(fact)}" for fact in (*facts(group), *notes)]
        for table in every(group):
            lines += ["", markdown(table)]
        lines.append("")
    for table in of_families(records) if families else ():
        lines += [markdown(table), ""]
    return "\n".join(lines)


def _rich(table: Table) -> rich.table.Table:
    from rich import box
    from rich.table import Table as Drawn
    from rich.text import Text

    drawn = Drawn(
        box=box.SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
        collapse_padding=True,
    )
    for position, name in enumerate(table.header):
        if position < table.left:
            # names are broken between words where there is no room, so that no number is cut off
            words = [word for row in (table.header, *table.rows) for word in row[position].split()]
            least = min(_WORD, max(map(len, words), default=1))
            drawn.add_column(Text(spelled(name)), min_width=least, overflow="fold")
        else:
            if all(
                len(line) < len(name) for row in table.rows for line in row[position].split("\n")
            ):
                name = "\n".join(name.split())
            long = any(
                len(line) > _SENTENCE for row in table.rows for line in row[position].split("\n")
            )
            drawn.add_column(Text(spelled(name)), justify="right", no_wrap=not long)
    for row in table.rows:
        drawn.add_row(*(Text(spelled(cell)) for cell in row))
    return drawn


def escaped(text: str) -> str:
    """Text that means nothing to Markdown or to HTML: names come from scripts and systems."""
    return "".join(_MEANT.get(letter, letter) for letter in spelled(text))


def _line(text: str) -> str:
    """The same on one line, or what follows could be a heading."""
    return escaped(" ".join(text.split()))


def markdown(table: Table) -> str:
    """A table in Markdown, with its title above and its notes below."""

    def line(cells: Sequence[str]) -> str:
        words = (escaped(cell).replace("\n", "<br>") for cell in cells)
        return f"| {' | '.join(words)} |"

    rule = ["---"] * table.left + ["---:"] * (len(table.header) - table.left)
    lines = [f"### {_line(table.title)}", "", line(table.header), line(rule)]
    lines += [line(row) for row in table.rows]
    return "\n".join([*lines, "", *(f"- {_line(note)}" for note in table.notes)])
