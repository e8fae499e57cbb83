"""One cell of a sweep: as it is given away, as it is run, and what became of it."""

from __future__ import annotations

import dataclasses
import io
import os
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from steeltrap.harness.drive import RunStopped
from steeltrap.harness.history import HistoryError
from steeltrap.harness.record import RecordError
from steeltrap.harness.replies import words
from steeltrap.harness.script import ScriptError
from steeltrap.harness.settings import Settings, SettingsError
from steeltrap.harness.store import StoreError
from steeltrap.harness.surroundings import Surroundings

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["FAILED", "Cell", "Done", "Failed", "Ran", "RunOne", "apart", "here"]

Failed = RunStopped | StoreError | HistoryError | RecordError
"""Why a cell was not run, though others can be."""
FAILED: Final = (RunStopped, StoreError, HistoryError, RecordError)


class Ran(NamedTuple):
    """A cell that has its record."""

    folder: Path
    anew: bool
    """False where it was found finished."""


RunOne = Callable[[Settings, str, "Console"], Ran]
"""Runs one cell, or finds it finished: its settings, its place in the sweep, who is told. A
function of a module, or a partial one of plain data, so that another process finds it."""


@dataclasses.dataclass(frozen=True)
class Cell:
    """A cell as it is given to a process, of this machine or of another one."""

    settings: Settings
    place: str
    """In the sweep, as `3/40`."""
    run_one: RunOne
    folder: str = dataclasses.field(default_factory=os.getcwd)
    """From which relative paths go."""
    path: tuple[str, ...] = dataclasses.field(default_factory=lambda: tuple(sys.path))
    """Where modules are looked for: a memory may be a file in this folder."""

    @property
    def name(self) -> str:
        """As it is called when it fails."""
        return f"{self.settings.system}, seed {self.settings.config.seed}"


class Done(NamedTuple):
    """What became of a cell."""

    result: Ran | Exception
    """`Failed` where the cell failed alone; any other error means that what was asked is wrong."""
    said: str = ""
    """What there was to say on the way."""
    seconds: float = 0.0


def apart(cell: Cell) -> Done:
    """Run a cell in a process that is not the user's own; what is said of it is given back."""
    from rich.console import Console

    for folder in cell.path:
        if folder not in sys.path:
            sys.path.append(folder)
    try:
        os.chdir(cell.folder)
    except OSError as error:
        return Done(
            RunStopped(
                f"{cell.folder}: not there where the cell was to run ({error.strerror}); start in a"
                " folder that all nodes see"
            )
        )
    said = io.StringIO()
    return here(cell, Console(file=said, width=10_000))._replace(said=said.getvalue())


def here(cell: Cell, aside: Console) -> Done:
    """Run a cell in this process."""
    began = time.perf_counter()
    result: Ran | Exception
    around = Surroundings()
    try:
        result = cell.run_one(cell.settings, cell.place, aside)
    except (SettingsError, ScriptError, *FAILED) as why:
        result = why
    except KeyboardInterrupt:
        raise
    except BaseException as fault:  # whatever it is, the other cells can be run
        result = RunStopped(_in_words(fault))
    finally:
        around.restore()
    return Done(result, seconds=time.perf_counter() - began)


def _in_words(fault: BaseException) -> str:
    if isinstance(fault, SystemExit):
        return f"a memory, or what it imports, called sys.exit({fault.code})"
    if isinstance(fault, OSError):
        return f"{fault.filename or 'a file'}: {fault.strerror}; what was done is kept"
    place = traceback.extract_tb(fault.__traceback__)[-1]
    return f"{words(fault)} ({place.filename}, line {place.lineno})"
