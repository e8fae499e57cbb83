"""Tables drawn on a console and written as Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from steeltrap.harness.record import Record
from steeltrap.reports import figures, tables
from steeltrap.reports.facts import comparable, facts, title
from steeltrap.reports.promises import promises
from steeltrap.reports.tables import Grid

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

__all__ = ["markdown", "show"]

FAMILIES_SHOWN = ("reported",)
"""Scripts whose families are what is asked about, so that they belong on the console."""


def show(records: Sequence[Record], console: Console, *, notes: Sequence[str] = ()) -> None:
    """Print facts, conditions, costs and evidence of each comparable group.

    Args:
        records: finished cells.
        console: where to; tables fit 80 columns.
        notes: further facts, such as how defects of public data are handled.
    """
    for group in comparable(records):
        for fact in (*facts(group), *notes):
            console.print(fact, highlight=False, markup=False)
        for grid in _grids(group, full=False):
            console.print()
            console.print(grid.title, style="table.title", highlight=False, markup=False)
            console.print(_rich(grid))
            for note in grid.notes:
                console.print(f"  {note}", style="dim", highlight=False, markup=False)


def markdown(records: Sequence[Record], *, notes: Sequence[str] = ()) -> str:
    """The same and more as a Markdown page: violations by name, differences of systems."""
    lines = ["# Can it be trusted over a long life?", ""]
    for group in comparable(records):
        lines += [f"## {escaped(title(group))}", ""]
        lines += [f"- {escaped(fact)}" for fact in (*facts(group), *notes)]
        for grid in _grids(group, full=True):
            lines += ["", *_markdown(grid)]
        lines.append("")
    return "\n".join(lines)


def _grids(group: Sequence[Record], *, full: bool) -> list[Grid]:
    grids = [tables.conditions(group), tables.doses(group), tables.twins(group)]
    grids += [tables.costs(group), tables.models(group)]
    grids += tables.evidence(group)
    if found := figures.curves(group):
        grids.append(figures.table(found))
    if full or group[0].spec.script in FAMILIES_SHOWN:
        grids += tables.families(group, abreast=None if full else 4)
    if full:
        grids += [tables.names(group), promises(group)]
        grids += [tables.differences(group), tables.lost(group)]
    return [grid for grid in grids if grid]


def _rich(grid: Grid) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(
        box=box.SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
        collapse_padding=True,
    )
    for position, name in enumerate(grid.header):
        table.add_column(name, justify="left" if position == 0 else "right", no_wrap=True)
    for row in grid.rows:
        table.add_row(*row)
    return table


def escaped(text: str) -> str:
    """Text that means nothing to Markdown's tables or to HTML: names come from scripts and systems."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace("|", "\\|")


def _markdown(grid: Grid) -> list[str]:
    def line(cells: Sequence[str]) -> str:
        words = (escaped(cell).replace("\n", "<br>") for cell in cells)
        return f"| {' | '.join(words)} |"

    rule = ["---", *["---:"] * (len(grid.header) - 1)]
    lines = [f"### {grid.title}", "", line(grid.header), line(rule)]
    lines += [line(row) for row in grid.rows]
    return [*lines, "", *(f"- {note}" for note in grid.notes)]
