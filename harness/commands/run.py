"""`steeltrap run` and `steeltrap score`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from steeltrap.harness.checks import Scorer
from steeltrap.harness.commands.watch import Watch
from steeltrap.harness.memory import capabilities
from steeltrap.harness.record import Record
from steeltrap.harness.run import run_cell, score_cell
from steeltrap.harness.script import Header, Script, read_steps
from steeltrap.harness.settings import Settings, cells
from steeltrap.harness.store import Cell, StoreError, open_cell, read_cell, write

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["run", "score"]


def run(asked: Sequence[str], out: Console, aside: Console) -> None:
    """Run every cell that the overrides ask for, print the table and write the report.

    Args:
        asked: overrides in Hydra's grammar.
        out: gets the table.
        aside: gets the bar, and a line for each cell.

    Raises:
        SettingsError, ScriptError, HistoryError, RecordError, StoreError: each names what is
            wrong and what to do; finished cells stay finished.
    """
    planned = cells(asked)
    done: dict[Path, tuple[Cell, Record]] = {}
    for number, settings in enumerate(planned, 1):
        cell, record = _one(settings, f"{number}/{len(planned)}", aside)
        done[cell.folder] = cell, record
    _report(list(done.values()), planned[0].folder, out)


def score(folder: Path, out: Console) -> None:
    """Score the stored runs in and below a folder again, and print their table.

    Raises:
        StoreError, ScriptError, HistoryError: nothing to score there, or it cannot be read.
    """
    found = sorted(path.parent for path in folder.rglob("history.jsonl"))
    if not found:
        raise StoreError(f"{folder}: holds no history.jsonl, so there is no run to score")
    done = []
    for path in found:
        cell = read_cell(path)
        done.append((cell, score_cell(cell, Script.read(cell.script))))
    _report(done, folder, out)


def _one(settings: Settings, place: str, aside: Console) -> tuple[Cell, Record]:
    """Run one cell, or find it finished."""
    memory, script, reader = settings.memory(), settings.script(), settings.reader()
    spec = settings.spec(script, memory)
    cell = open_cell(settings.folder, spec, script, fresh=settings.config.fresh)
    title = f"{place} {spec.system}, {spec.script}, seed {spec.seed}"
    if record := cell.finished():
        aside.print(f"{title}: finished before; fresh=true runs it anew", markup=False)
        return cell, record
    scorer = Scorer(script.header, capabilities(memory), reader)
    with Watch(title, script, scorer, aside) as watch:
        record = run_cell(cell, settings.memory, script, reader, on_event=watch)
    return cell, record


def _report(done: Sequence[tuple[Cell, Record]], folder: Path, out: Console) -> None:
    from steeltrap.reports.facts import notes
    from steeltrap.reports.layout import markdown, show

    records = [record for _, record in done]
    scripts = {cell.spec.script_sha256: cell for cell, _ in done}
    told = notes(map(_header, scripts.values()))
    show(records, out, notes=told)
    path = folder / "report.md"
    write(path, markdown(records, notes=told).encode())
    out.print(f"\nReport: {path}", markup=False)


def _header(cell: Cell) -> Header:
    header = next(read_steps(cell.script))
    assert isinstance(header, Header)
    return header
