"""The cells of a sweep, given to the execution that was chosen."""

from __future__ import annotations

import dataclasses
import signal
import threading
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from steeltrap.harness.execution.bar import Bar
from steeltrap.harness.execution.cells import FAILED, Cell, Done, Failed, Ran, RunOne, here
from steeltrap.harness.execution.estimate import Estimate, Work, about
from steeltrap.harness.execution.local import local
from steeltrap.harness.execution.ray import ray
from steeltrap.harness.execution.slurm import slurm
from steeltrap.harness.settings import Settings, SettingsError
from steeltrap.harness.store import StoreError

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["sweep"]

Execution = Callable[[Sequence[Cell], int, Any], Generator[tuple[int, Done], None, None]]
"""Runs cells, with what they keep busy limited to so many cores, and settings of its own; gives the
place of each among them, and what became of it, in the order in which they end."""
_EXECUTIONS: Final[dict[str, Execution]] = {"local": local, "ray": ray, "slurm": slurm}
_SEEN_S: Final = 30.0
"""That a shared folder may take to show what another machine has written."""


def sweep(
    planned: Sequence[Settings], run_one: RunOne, aside: Console
) -> Generator[tuple[Settings, Path | Failed], None, None]:
    """Run every cell and give its folder, or why there is none, in the order of the plan.

    Close what this gives, also where something goes wrong, or what was started goes on.

    A cell that cannot be run fails alone, and is named at once. What is finished stays finished.

    Raises:
        SettingsError, ScriptError: what was asked is wrong; several processes shall share a budget,
            which none of them could keep; or an execution lacks what it needs.
        StoreError: the folder of a cell that ran elsewhere is not here.
    """
    config = planned[0].config
    cells = [
        Cell(settings, f"{number}/{len(planned)}", run_one)
        for number, settings in enumerate(planned, 1)
    ]
    estimate = Estimate([_work(settings) for settings in planned], config.processes)
    if config.execution.name == "local" and (config.processes == 1 or len(planned) == 1):
        ended = _one_by_one(cells, estimate, aside)
    else:
        _refuse_budgets(planned)
        ended = _in_order(_apart(cells, estimate, aside), len(cells))
    with closing(ended):
        for settings, result in zip(planned, ended, strict=True):
            if isinstance(result, Ran):
                yield settings, result.folder
            elif isinstance(result, FAILED):
                yield settings, result
            else:
                raise result


def _work(settings: Settings) -> Work:
    script = settings.config.script
    return Work((settings.system, script.name, script.get("turns")), settings.cores)


def _refuse_budgets(planned: Sequence[Settings]) -> None:
    for budget in ("budget_tokens", "budget_usd"):
        if any(one.config.model.get(budget) is not None for one in planned):
            raise SettingsError(
                f"model.{budget} is kept by one process: write execution=local processes=1"
            )


def _one_by_one(
    cells: Sequence[Cell], estimate: Estimate, aside: Console
) -> Generator[Ran | Exception, None, None]:
    """The cells in this process, each with a bar of its own."""
    for number, cell in enumerate(cells):
        left = about(estimate.left_s) if aside.is_terminal else ""
        place = f"{cell.place}, {left}:" if left else cell.place
        done = here(dataclasses.replace(cell, place=place), aside)
        _told(cell, done, estimate, number, aside)
        yield done.result


def _apart(
    cells: Sequence[Cell], estimate: Estimate, aside: Console
) -> Generator[tuple[int, Ran | Exception], None, None]:
    """The cells wherever they are to run, as they end."""
    config = cells[0].settings.config
    run = _EXECUTIONS[config.execution.name](cells, config.processes, config.execution)
    with _ended_gently(), closing(run), Bar(len(cells), estimate, aside) as bar:
        for number, done in run:
            _told(cells[number], done, estimate, number, aside)
            if isinstance(done.result, Ran):
                _see(done.result.folder)
            bar()
            yield number, done.result


def _in_order(
    ended: Generator[tuple[int, Ran | Exception], None, None], count: int
) -> Generator[Ran | Exception, None, None]:
    """What became of each cell in the order of the plan; what is wrong with all of them, at once."""
    known: dict[int, Ran | Exception] = {}
    with closing(ended):
        for number in range(count):
            while number not in known:
                other, result = next(ended)
                if not isinstance(result, (Ran, *FAILED)):
                    raise result
                known[other] = result
            yield known.pop(number)


def _told(cell: Cell, done: Done, estimate: Estimate, number: int, aside: Console) -> None:
    """Say what became of a cell, and learn from it how long others may take."""
    if said := done.said.rstrip("\n"):
        aside.print(said, highlight=False, markup=False, soft_wrap=True)
    if isinstance(done.result, FAILED):
        words = f"{cell.place} {cell.name}: {done.result}"
        aside.print(words, highlight=False, markup=False, soft_wrap=True)
    anew = isinstance(done.result, Ran) and done.result.anew
    estimate.done(number, done.seconds if anew else None)


def _see(folder: Path) -> None:
    """Make sure that a finished cell is here; on a shared folder it may need a moment.

    Raises:
        StoreError: it is not, so the cells ran where their folders are of no use.
    """
    deadline = time.monotonic() + _SEEN_S
    while not (folder / "record.json").exists():
        if time.monotonic() > deadline:
            raise StoreError(
                f"{folder}: finished where it ran, and is not here; runs=FOLDER must be a folder"
                " that all nodes see"
            )
        time.sleep(0.1)


@contextmanager
def _ended_gently() -> Iterator[None]:
    """Have a request to end clean up after itself as an interrupt does."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
