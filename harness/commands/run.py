"""`steeltrap run` and `steeltrap score`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from steeltrap.harness.checks import Scorer
from steeltrap.harness.commands.watch import Watch
from steeltrap.harness.drive import RunStopped
from steeltrap.harness.gateway.budget import Purse
from steeltrap.harness.history import read_events
from steeltrap.harness.memory import capabilities
from steeltrap.harness.record import Record
from steeltrap.harness.run import run_cell, score_cell
from steeltrap.harness.script import Header, Script, read_steps
from steeltrap.harness.settings import Settings, cells
from steeltrap.harness.store import Cell, CellBusy, StoreError, open_cell, read_cell, write

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
        RunStopped: a system could not be opened, or a model call not be answered; the other
            cells were run and are reported.
    """
    planned = cells(asked)
    done: dict[Path, tuple[Cell, Record]] = {}
    stopped: list[str] = []
    purse = Purse()
    for number, settings in enumerate(planned, 1):
        try:
            cell, record = _one(settings, f"{number}/{len(planned)}", aside, purse)
        except (RunStopped, CellBusy) as why:
            stopped.append(f"{settings.system}, seed {settings.config.seed}: {why}")
        else:
            done[cell.folder] = cell, record
    if done:
        _report(list(done.values()), planned[0].folder, out)
    if stopped:
        raise RunStopped("\n".join(dict.fromkeys(stopped)))


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


def _one(settings: Settings, place: str, aside: Console, purse: Purse) -> tuple[Cell, Record]:
    """Run one cell, or find it finished."""
    script = settings.script()
    with closing(settings.memory()) as memory:
        spec, able = settings.spec(script, memory), capabilities(memory)
    cell = open_cell(settings.folder, spec, script, fresh=settings.config.fresh, alone=True)
    try:
        return cell, _recorded(settings, cell, script, able, place, aside, purse)
    finally:
        cell.release()


def _recorded(
    settings: Settings, cell: Cell, script: Script, able: list[str], place: str, aside: Console,
    purse: Purse,
) -> Record:  # fmt: skip
    """The record of a held cell, run where it is not finished."""
    spec = cell.spec
    title = f"{place} {spec.system}, {spec.script}, seed {spec.seed}"
    if record := cell.finished():
        aside.print(f"{title}: finished before; fresh=true runs it anew", markup=False)
        return record
    reader = settings.reader()
    scorer = Scorer(script.header, able, reader)
    with settings.gateway(script, purse) as gateway, Watch(title, script, scorer, aside) as watch:
        return run_cell(
            cell, settings.memory, script, reader, gateway=gateway, vectors=settings.vectors,
            on_event=watch,
        )  # fmt: skip


def _report(done: Sequence[tuple[Cell, Record]], folder: Path, out: Console) -> None:
    from steeltrap.reports.facts import notes
    from steeltrap.reports.layout import markdown, show

    newest = _newest(done)
    records = [record for _, record in newest]
    scripts = {cell.spec.script_sha256: cell for cell, _ in newest}
    told = notes(map(_header, scripts.values()))
    if older := len(done) - len(newest):
        told.append(f"left out: {older} older runs of the same system, script and seed")
    show(records, out, notes=told)
    for line in _first_failures(newest):
        out.print(line, highlight=False, markup=False)
    path = folder / "report.md"
    write(path, markdown(records, notes=told).encode())
    out.print(f"\nReport: {path}", markup=False)
    _figure(records, folder, out)


def _figure(records: Sequence[Record], folder: Path, out: Console) -> None:
    """Draw violations against a dial of the ideal model, where one was turned."""
    from steeltrap.reports.figures import curves, draw

    if found := curves(records):
        path = folder / f"{found.dial}.svg"
        draw(found, path)
        out.print(f"Figure: {path}", markup=False)


def _newest(done: Sequence[tuple[Cell, Record]]) -> list[tuple[Cell, Record]]:
    """Without runs that ask what a later one asked again, as after a change of the code.

    The later one is that whose history was written last: scoring leaves histories alone.
    """
    found: dict[bytes, tuple[Cell, Record]] = {}
    for cell, record in sorted(done, key=lambda one: one[0].history.stat().st_mtime_ns):
        spec = cell.spec
        found[
            msgspec.json.encode(
                [spec.system, spec.settings, spec.embedder, spec.model, spec.script, _header(cell).settings,
                 record.outcome.turns, spec.seed, spec.reader, spec.limit],
                order="sorted",
            )
        ] = cell, record  # fmt: skip
    kept = {cell.folder for cell, _ in found.values()}
    return [(cell, record) for cell, record in done if cell.folder in kept]


def _first_failures(done: Sequence[tuple[Cell, Record]]) -> Iterator[str]:
    """A line for each system that failed, with its own words for the first failure."""
    failing: dict[str, list[tuple[Cell, Record]]] = {}
    for cell, record in done:
        if record.outcome.failed:
            failing.setdefault(cell.spec.system, []).append((cell, record))
    for system, own in failing.items():
        failed = sum(record.outcome.failed for _, record in own)
        steps = sum(record.outcome.steps for _, record in own)
        events = read_events(own[0][0].history)
        words = next((event.error for event in events if event.type != "ok"), "")
        yield f"{system}: {failed} of {steps} steps failed; first: {words or 'no words'}"


def _header(cell: Cell) -> Header:
    header = next(read_steps(cell.script))
    assert isinstance(header, Header)
    return header
