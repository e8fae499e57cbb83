"""`steeltrap judge RUN ... against=SYSTEM`: whose answers are better, question by question."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from steeltrap.harness.answering.asking import Asker, over_cells
from steeltrap.harness.answering.pairwise import CRITERIA, Pair, compare, tally
from steeltrap.harness.answering.scores import Judge, Reader
from steeltrap.harness.commands.asked import Count, cell_text, judge_told, runs_told, table_of, told
from steeltrap.harness.commands.dialogue import spoken
from steeltrap.harness.drive import RunStopped
from steeltrap.harness.store import Cell, StoreError

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["pairs"]


def pairs(
    cells: Sequence[Cell], against: str, by: Judge, asker: Asker, out: Console, aside: Console
) -> int:
    """Have the answers of each run compared with those of another system on the same script.

    Args:
        cells: finished runs with answers, those of the other system among them.
        against: the other system, with what was set differently.
        by: the judge.
        asker: its model.
        out: gets the tables.
        aside: gets a count.

    Returns:
        0 where every question could be compared, else 1.

    Raises:
        StoreError, ScriptError: the runs cannot be compared, read or written.
        RunStopped: the model can be asked no more; what was compared is kept.
    """
    rivals = {cell.spec.script_sha256: cell for cell in cells if cell.spec.system == against}
    others = [cell for cell in cells if cell.spec.system != against]
    _refuse_unpaired(cells, others, rivals, against)
    with aside.status("") as shown:
        count = Count(shown, "questions")
        sheets = over_cells(
            others, lambda cell: compare(cell, rivals[cell.spec.script_sha256], by, asker, count),
            asker.at_once,
        )  # fmt: skip
    groups: dict[tuple[str, str, Reader], list[list[Pair]]] = {}
    for cell, sheet in zip(others, sheets, strict=True):
        key = (cell.spec.system, cell.spec.script, sheet.header.reader)
        groups.setdefault(key, []).append(list(sheet.lines.values()))
    for (system, script, reader), found in groups.items():
        out.print(f"\n{spoken(f'{system} against {against}, {script}, {runs_told(len(found))}')}", markup=False)  # fmt: skip
        out.print(told(reader), markup=False)
        out.print(judge_told(by), markup=False)
        _show([line for lines in found for line in lines], out)
    if asker.stopped:
        raise RunStopped(asker.stopped)
    return int(any(line.outcome == "error" for found in groups.values() for lines in found for line in lines))  # fmt: skip


def _refuse_unpaired(
    cells: Sequence[Cell], others: Sequence[Cell], rivals: dict[str, Cell], against: str
) -> None:
    if not rivals:
        there = ", ".join(dict.fromkeys(cell.spec.system for cell in cells))
        raise StoreError(f"against={against}: no run of it among these; there are {there}")
    if not others:
        raise StoreError(f"against={against}: there is no run of another system to compare with it")
    for cell in others:
        if cell.spec.script_sha256 not in rivals:
            raise StoreError(f"{cell.folder}: no run of {against} on the same script among these")


def _show(lines: Sequence[Pair], out: Console) -> None:
    """A line a criterion, the whole last."""
    table = table_of("criterion", "n", "wins", "losses", "ties", "errors", "p")
    for criterion in CRITERIA:
        found = tally(lines, criterion)
        name = "on the whole" if criterion == "better" else criterion
        numbers = map(str, (found.n, found.wins, found.losses, found.ties, found.errors))
        table.add_row(cell_text(name), *numbers, f"{found.p:.3f}")
    out.print(table)
    whole = tally(lines)
    out.print("p: sign test of wins against losses, two-sided; ties say nothing")
    if whole.swayed:
        out.print(f"of the ties, in {whole.swayed} the judge preferred a place and no answer")
