"""Cells in processes of this machine.

A process takes one cell after another, so that it imports and loads once; after some cells it
makes way for a new one, so that what it gathers does not grow. Each has a pipe of its own, so it
is known which cell a process died of, and no lock can be left behind.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from typing import Any, Final

from steeltrap.harness.drive import RunStopped
from steeltrap.harness.execution.abreast import abreast
from steeltrap.harness.execution.cells import Cell, Done, apart

__all__ = ["CELLS", "local"]

CELLS: Final = 25
"""That one process runs, one after the other."""
_LOOK_S: Final = 1.0
"""After which the processes are looked at, though none has said anything: what a process started
may hold its pipes open when it has died."""
_END_S: Final = 5.0


def local(
    cells: Sequence[Cell], processes: int, _: Any = None
) -> Generator[tuple[int, Done], None, None]:
    """Run cells in up to so many processes.

    One whose process dies fails alone. All processes end with this one, however it ends.
    """
    pool = _Pool()
    try:
        yield from abreast(cells, processes, pool.start, pool.wait)
    finally:
        pool.end()


class _Pool:
    """The processes that are there, idle or with a cell."""

    def __init__(self) -> None:
        self._idle: list[_Process] = []
        self._busy: dict[int, _Process] = {}

    def start(self, number: int, cell: Cell) -> None:
        """Give a cell to a process."""
        while self._idle:
            process = self._idle.pop()
            if process.fresh:
                break
            process.end()
        else:
            process = _Process()
        process.give(cell)
        self._busy[number] = process

    def wait(self) -> Iterator[tuple[int, Done]]:
        """The cells that have ended; none may have."""
        wait([one for process in self._busy.values() for one in process.signs], _LOOK_S)
        for number, process in list(self._busy.items()):
            if done := process.taken():
                del self._busy[number]
                if process.fresh:
                    self._idle.append(process)
                else:
                    process.end()
                yield number, done

    def end(self) -> None:
        """End every process; a cell that one is at is left as a kill leaves it."""
        for process in self._busy.values():
            process.stop()
        for process in (*self._busy.values(), *self._idle):
            process.end()


class _Process:
    """A process that runs cells."""

    def __init__(self) -> None:
        # not forked: a fork would have copies of threads' locks, and of open clients
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs,), name="cells")
        self._process.start()
        theirs.close()
        self._given = 0
        self._began = 0.0

    @property
    def signs(self) -> list[Any]:
        """What becomes ready when a cell ends, or the process does."""
        return [self._pipe, self._process.sentinel]

    @property
    def fresh(self) -> bool:
        """Whether it may have another cell."""
        return self._given < CELLS and self._process.is_alive()

    def give(self, cell: Cell) -> None:
        """Have it run a cell."""
        self._given += 1
        self._began = time.perf_counter()
        with suppress(BrokenPipeError):  # that it is not there any more is told by `taken`
            self._pipe.send(cell)

    def taken(self) -> Done | None:
        """What became of its cell; None as long as it is at it."""
        alive = self._process.is_alive()  # asked first: what it said before its end is still read
        try:
            if self._pipe.poll():
                done: Done = self._pipe.recv()
                return done
        except (EOFError, OSError):
            alive = False
        if alive:
            return None
        self._process.join()
        return Done(
            RunStopped(_death(self._process.exitcode)), "", time.perf_counter() - self._began
        )

    def stop(self) -> None:
        """End it in the middle of a cell."""
        self._process.terminate()

    def end(self) -> None:
        """End it; it has no cell."""
        self._pipe.close()
        self._process.join(_END_S)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()
        self._process.close()


def _death(code: int | None) -> str:
    """How a process died, in words."""
    if code is None or code >= 0:
        return f"its process ended with exit code {code}, in the middle of the cell"
    known = -code in set(signal.Signals)
    name = signal.Signals(-code).name if known else str(-code)
    hint = "; this is what happens where memory runs out" if name == "SIGKILL" else ""
    return f"its process was killed by {name}{hint}"


def _serve(pipe: Connection) -> None:
    """Run cells until no more come."""
    # an interrupt is the parent's affair; what is started from here has its own way with one
    signal.signal(signal.SIGINT, lambda *_: None)
    _end_with_parent()
    while True:
        try:
            cell = pipe.recv()
        except EOFError:
            return
        pipe.send(apart(cell))


def _end_with_parent() -> None:
    """Let no process go on when whoever wants its results is gone, however it went."""
    parent = multiprocessing.parent_process()
    assert parent is not None

    def watch() -> None:
        parent.join()
        # a cell is left as a kill leaves it: its history ends there and goes on from there
        os._exit(1)

    threading.Thread(target=watch, name="parent", daemon=True).start()
