"""The cells of a sweep: one after the other, or several at once, each in a process of its own.

A cell owns its folder and nothing else, so where it runs makes no difference to what it finds. One
that cannot be run fails alone; anything else that is wrong stops the sweep, and what is finished
stays finished.
"""

from __future__ import annotations

import io
import multiprocessing
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    Future,
    ProcessPoolExecutor,
    wait,
)
from pathlib import Path
from typing import TYPE_CHECKING

from steeltrap.harness.drive import RunStopped
from steeltrap.harness.settings import Settings, SettingsError
from steeltrap.harness.store import CellBusy

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress

__all__ = ["Failed", "RunOne", "sweep"]

Failed = RunStopped | CellBusy
"""Why a cell was not run, though others can be."""
RunOne = Callable[[Settings, str, "Console"], Path]
"""Runs one cell, or finds it finished: its settings, its place in the sweep, who is told; gives its
folder. A function of a module, so that another process finds it."""


def sweep(
    planned: Sequence[Settings], processes: int, run_one: RunOne, aside: Console
) -> Iterator[tuple[Settings, Path | Failed]]:
    """Run every cell and give its folder, or why there is none, in the order of the plan.

    Raises:
        SettingsError: several processes shall share a budget, which none of them could keep.
        RunStopped: a process that ran cells has died.
    """
    if processes == 1 or len(planned) == 1:
        for number, settings in enumerate(planned, 1):
            yield settings, _tried(settings, f"{number}/{len(planned)}", run_one, aside)
        return
    for budget in ("budget_tokens", "budget_usd"):
        if any(one.config.model.get(budget) is not None for one in planned):
            raise SettingsError(f"model.{budget} is kept by one process: write processes=1")
    yield from zip(planned, _abreast(planned, processes, run_one, aside), strict=True)


def _tried(settings: Settings, place: str, run_one: RunOne, aside: Console) -> Path | Failed:
    try:
        return run_one(settings, place, aside)
    except (RunStopped, CellBusy) as why:
        return why


def _abreast(
    planned: Sequence[Settings], processes: int, run_one: RunOne, aside: Console
) -> list[Path | Failed]:
    # not forked: a fork would have copies of threads' locks, and of open clients
    context = multiprocessing.get_context("spawn")
    with (
        _bar(aside) as bar,
        ProcessPoolExecutor(processes, mp_context=context, initializer=_end_with_parent) as pool,
    ):
        task = bar.add_task("cells", total=len(planned))
        asked = [
            pool.submit(_quietly, settings, f"{number}/{len(planned)}", run_one)
            for number, settings in enumerate(planned, 1)
        ]
        try:
            left: set[Future[tuple[Path | Failed, str]]] = set(asked)
            while left:
                done, left = wait(left, return_when=FIRST_COMPLETED)
                for one in done:
                    aside.print(one.result()[1].rstrip("\n"), highlight=False, markup=False)
                    bar.advance(task)
        except BrokenExecutor:  # nobody can tell which cell it was, and no other can be run
            raise RunStopped(
                "a process that ran cells has died: killed, or out of memory; finished cells stay"
                " finished, and the same command goes on from there"
            ) from None
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return [one.result()[0] for one in asked]


def _end_with_parent() -> None:
    """Let no process go on when whoever wants its results is gone, however it went."""
    parent = multiprocessing.parent_process()
    assert parent is not None

    def watch() -> None:
        parent.join()
        os._exit(
            1
        )  # a cell is left as a kill leaves it: its history ends there and goes on from there

    threading.Thread(target=watch, name="parent", daemon=True).start()


def _quietly(settings: Settings, place: str, run_one: RunOne) -> tuple[Path | Failed, str]:
    """One cell in a process of its own; what is said of it is given back."""
    from rich.console import Console

    said = io.StringIO()
    return _tried(settings, place, run_one, Console(file=said, width=10_000)), said.getvalue()


def _bar(console: Console) -> Progress:
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    return Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=40),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )
