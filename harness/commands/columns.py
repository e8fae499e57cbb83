"""`steeltrap columns`: stored runs as one table with a row a step."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from steeltrap.harness.columns import FORMS, finished, write
from steeltrap.harness.record import read_record
from steeltrap.harness.settings import SettingsError

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["columns"]


def columns(runs: Sequence[Path], to: Path, out: Console, aside: Console) -> None:
    """Write the steps of finished runs to a file, a row a step.

    Args:
        runs: run folders, or folders of them.
        to: ends in `.parquet` or `.csv`.
        out: gets a line for what was written.
        aside: gets the bar.

    Raises:
        SettingsError: the file's name ends in something else.
        StoreError: there is no finished run, or the file cannot be written.
        HistoryError, RecordError, ScriptError: a run cannot be read.
    """
    from rich.progress import Progress

    if to.suffix not in FORMS:
        raise SettingsError(f"--to {to}: give the file a name that ends in {' or '.join(FORMS)}")
    cells = finished(runs)
    steps = sum(read_record(cell.record).outcome.steps for cell in cells)
    with Progress(console=aside, transient=True, disable=not aside.is_terminal) as bar:
        task = bar.add_task("rows", total=steps)
        rows = write(cells, to, on_rows=lambda count: bar.advance(task, count))
    out.print(f"Columns: {to} ({rows} rows of {len(cells)} runs)", highlight=False, markup=False)
