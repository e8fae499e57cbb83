"""`steeltrap run` and `steeltrap score`."""

from __future__ import annotations

import functools
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from steeltrap.harness.checks import Scorer
from steeltrap.harness.commands.report import Found, summary, write_folder, write_page
from steeltrap.harness.commands.systems import install
from steeltrap.harness.commands.watch import Watch
from steeltrap.harness.drive import RunStopped
from steeltrap.harness.environments import EnvironmentMissing, find
from steeltrap.harness.execution import Ran, sweep
from steeltrap.harness.gateway.budget import Purse
from steeltrap.harness.memory import capabilities
from steeltrap.harness.record import Record, read_record
from steeltrap.harness.run import run_cell, score_cell
from steeltrap.harness.script import Script
from steeltrap.harness.settings import Settings, SettingsError, cells, described
from steeltrap.harness.store import Cell, StoreError, find_cells, open_cell, read_cell
from steeltrap.reports.facts import distinct

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
    every = cells(asked)
    if not every:
        raise SettingsError("nothing to run: a sweep has no value, as seed=range(0,0) has none")
    if every[0].config.install:
        _install(every, aside)
    planned, stopped = _runnable(every, aside)
    done: dict[Path, Found] = {}
    run_one = functools.partial(_one, Purse())
    with closing(sweep(planned, run_one, aside)) as ended:
        for settings, found in ended:
            if isinstance(found, Path):
                cell = read_cell(found)
                done[found] = Found(cell, read_record(cell.record))
            else:
                stopped.append(f"{settings.system}, seed {settings.config.seed}: {found}")
    if done:
        families = every[0].config.families
        summary(list(done.values()), planned[0].folder, out, families=families)
        if include := planned[0].include:
            write_folder(list(done.values()), include, out, aside)
            write_page(list(done.values()), planned[0].folder / "index.html", out, aside)
    if stopped:
        raise RunStopped("\n".join(dict.fromkeys(stopped)))


def _install(planned: Sequence[Settings], aside: Console) -> None:
    """Make the environments that are missing; what cannot be made is said, and stays missing."""
    if missing := distinct(one.environment for one in planned if not _installed(one)):
        install(missing, described(), aside)


def _runnable(planned: Sequence[Settings], aside: Console) -> tuple[list[Settings], list[str]]:
    """The cells whose systems have their environments, and a word on the others, said at once too.

    Where no cell has, all are given, and the first will say what is missing.
    """
    missing = distinct(one.environment for one in planned if not _installed(one))
    able = [one for one in planned if one.environment not in missing]
    if not missing or not able:
        return list(planned), []
    word = (
        f"{', '.join(missing)}: not installed, so {len(planned) - len(able)} of {len(planned)} runs"
        f" are left out; `steeltrap systems install {' '.join(missing)}` makes what they need"
    )
    aside.print(word, highlight=False, markup=False)
    return able, [word]


def _edited(target: str, cell: Cell) -> str:
    """A file of somebody else's memory that is newer than its run; empty: there is none.

    A spec holds the revision of our own code and no line of theirs. Looked at is what was imported
    of the memory's package, and of other code that is worked on where it lies.
    """
    top = target.partition(".")[0]
    stored = [path for path in (cell.record, cell.history) if path.exists()]
    if top == "steeltrap" or not stored:
        return ""
    done = stored[0].stat().st_mtime_ns
    for name, module in sorted(sys.modules.items()):
        path = Path(getattr(module, "__file__", None) or "")
        here = path.is_relative_to(Path.cwd()) and "site-packages" not in path.parts
        if (name.partition(".")[0] == top or here) and path.is_file():
            if path.stat().st_mtime_ns > done:
                return path.name
    return ""


def _installed(settings: Settings) -> bool:
    try:
        return not settings.environment or bool(find(settings.environment))
    except EnvironmentMissing:
        return False


def score(folder: Path, out: Console) -> None:
    """Score the stored runs in and below a folder again, and print their table.

    Raises:
        StoreError, ScriptError, HistoryError: nothing to score there, or it cannot be read.
    """
    found = find_cells(folder)
    if not found:
        raise StoreError(f"{folder}: holds no history.jsonl, so there is no run to score")
    done = [Found(cell, score_cell(cell, Script.read(cell.script))) for cell in found]
    summary(done, folder, out)


def _one(purse: Purse, settings: Settings, place: str, aside: Console) -> Ran:
    """Run one cell, or find it finished."""
    script = settings.script()
    with closing(settings.memory()) as memory:
        spec, able = settings.spec(script, memory), capabilities(memory)
    cell = open_cell(settings.folder, spec, script, fresh=settings.config.fresh, alone=True)
    try:
        anew = _recorded(settings, cell, script, able, place, aside, purse)
    finally:
        cell.release()
    return Ran(cell.folder, anew)


def _recorded(
    settings: Settings, cell: Cell, script: Script, able: list[str], place: str, aside: Console,
    purse: Purse,
) -> bool:  # fmt: skip
    """Run a held cell where it is not finished; says whether it was run."""
    spec = cell.spec
    title = f"{place} {spec.system}, {spec.script}, seed {spec.seed}"
    if edited := _edited(settings.node["_target_"], cell):
        aside.print(f"{title}: {edited} was edited since; run anew", markup=False)
        cell = open_cell(settings.folder, spec, script, fresh=True)
    if (record := cell.finished()) and not _goes_on(settings, record):
        cell.compress()  # in case somebody was stopped before it was
        aside.print(f"{title}: finished before; fresh=true runs it anew", markup=False)
        return False
    cell.record.unlink(missing_ok=True)
    reader = settings.reader()
    scorer = Scorer(script.header, able, reader)
    with settings.gateway(script, purse) as gateway, Watch(title, script, scorer, aside) as watch:
        run_cell(
            cell, settings.memory, script, reader, gateway=gateway, vectors=settings.vectors,
            on_event=watch, limits=settings.limits,
        )  # fmt: skip
    return True


def _goes_on(settings: Settings, record: Record) -> bool:
    """Whether a run that ended early, or a twin of it, has more time now."""
    ended_s, run_s = record.timing.run_s, settings.limits.run_s
    return ended_s is not None and (run_s is None or run_s > ended_s)
