"""Cells as jobs of a Slurm cluster, by submitit.

Cells that need the same are one array of jobs, of which so many run at once as was asked. A job that
is preempted, or runs out of time, is put into the queue again and goes on at its cell's last turn.
What is needed of a node is what is needed here: this package, and the folder of the command.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from steeltrap.harness.drive import RunStopped
from steeltrap.harness.execution.cells import Cell, Done, apart
from steeltrap.harness.settings import SettingsError

__all__ = ["slurm"]

_LOOK_S: Final = 1.0
"""Between two looks at what jobs have written."""
_QUEUE_S: Final = 10.0
"""Between two looks at the queue."""
_MISSED: Final = 2
"""Looks at which a job without a result was not there, before it is taken for failed."""
_LINES: Final = 5
"""Of the log of a job that failed."""
_HARNESS_MB: Final = 1000
"""That a cell needs beside its system."""


def slurm(
    cells: Sequence[Cell], processes: int, asked: Any
) -> Generator[tuple[int, Done], None, None]:
    """Run cells as jobs, up to so many cores at once; their logs go below the run folder.

    One whose job fails fails alone. An interrupt cancels all that was submitted.

    Raises:
        SettingsError: submitit is not installed, or there is no Slurm.
    """
    executor = _executor(cells[0].settings.folder / "slurm", asked)
    try:
        for some in _alike(cells, processes, asked.cluster):
            settings = some[0][1].settings
            memory_mb = settings.limits.memory_mb
            executor.update_parameters(
                name="steeltrap", timeout_min=asked.timeout_min, stderr_to_stdout=True,
                cpus_per_task=settings.cores, slurm_partition=asked.partition,
                mem_gb=(memory_mb + _HARNESS_MB) / 1000 if memory_mb else None,
                slurm_array_parallelism=max(1, processes // settings.cores),
            )  # fmt: skip
            jobs = executor.map_array(_Cell(), [cell for _, cell in some])
            numbered = {number: job for (number, _), job in zip(some, jobs, strict=True)}
            yield from _ended(numbered, _Queue() if asked.cluster == "slurm" else _Processes())
    finally:
        _tidy(executor.folder)


def _executor(folder: Path, asked: Any) -> Any:
    try:
        submitit = import_module("submitit")
    except ModuleNotFoundError:
        raise SettingsError(
            "execution=slurm needs the package 'submitit', which is not installed: pip install"
            " 'steeltrap[slurm]'"
        ) from None
    if asked.cluster == "slurm" and shutil.which("sbatch") is None:
        raise SettingsError(
            "execution=slurm: there is no command sbatch here; begin on a machine of the cluster"
            " from which jobs are submitted"
        )
    return submitit.AutoExecutor(folder, cluster=asked.cluster)


class _Cell:
    """What a job does."""

    def __call__(self, cell: Cell) -> Done:
        return apart(cell)

    def checkpoint(self, cell: Cell) -> Any:
        """What is done when the job runs again: the same, since a cell goes on where it stopped."""
        return import_module("submitit").helpers.DelayedSubmission(self, cell)


def _alike(cells: Sequence[Cell], processes: int, cluster: str) -> Iterator[list[tuple[int, Cell]]]:
    """The cells that may be one array, one array after the other, so that never more run at once."""
    kinds: dict[tuple[int, float | None], list[tuple[int, Cell]]] = {}
    for number, cell in enumerate(cells):
        needs = cell.settings.cores, cell.settings.limits.memory_mb
        kinds.setdefault(needs, []).append((number, cell))
    for alike in kinds.values():
        # submitit's own processes, which try it out without a cluster, all begin at once
        size = len(alike) if cluster == "slurm" else processes
        for first in range(0, len(alike), size):
            yield alike[first : first + size]


class _Queue:
    """Knows of a job whether it is over, by its result or by the queue of Slurm.

    Slurm's accounting would tell more; not every cluster has it.
    """

    def __init__(self) -> None:
        self._looked = time.monotonic()
        self._missed: dict[str, int] = {}

    def over(self, jobs: Iterable[Any]) -> list[Any]:
        """The jobs that have a result, or were not in the queue in the last looks at it."""
        if time.monotonic() - self._looked > _QUEUE_S:
            asked = subprocess.run(
                ["squeue", "--me", "--noheader", "--array", "--format=%i"],
                capture_output=True, text=True, check=False,
            )  # fmt: skip
            self._looked = time.monotonic()
            if asked.returncode == 0:
                there = set(asked.stdout.split())
                for job in jobs:
                    missed = self._missed.get(job.job_id, 0) + 1
                    self._missed[job.job_id] = 0 if job.job_id in there else missed
        return [
            job for job in jobs
            if _has_result(job) or self._missed.get(job.job_id, 0) >= _MISSED
        ]  # fmt: skip


class _Processes:
    """The same of processes of this machine."""

    def over(self, jobs: Iterable[Any]) -> list[Any]:
        """The jobs that have ended."""
        return [job for job in jobs if job.done()]


def _has_result(job: Any) -> bool:
    """Whether a job has written its result; looks at the folder, so that a shared one is current."""
    path: Path = job.paths.result_pickle
    return path.name in os.listdir(path.parent)  # noqa: PTH208


def _ended(jobs: dict[int, Any], queue: _Queue | _Processes) -> Iterator[tuple[int, Done]]:
    """Each job as it ends; all are cancelled where nobody waits for them any more."""
    try:
        while jobs:
            over = queue.over(jobs.values())
            for number, job in [one for one in jobs.items() if one[1] in over]:
                del jobs[number]
                yield number, _taken(job)
            if jobs:
                time.sleep(_LOOK_S)
    finally:
        for job in jobs.values():
            job.cancel(check=False)


def _taken(job: Any) -> Done:
    """What became of a job's cell; of one that has a result nothing else is kept."""
    failed = import_module("submitit").core.utils.FailedJobError
    if _has_result(job):
        with suppress(failed):
            done: Done = job.result()
            for name in ("result_pickle", "submitted_pickle", "stdout"):
                getattr(job.paths, name).unlink(missing_ok=True)
            return done
    lines = [line.strip() for line in (job.stdout() or "").splitlines()]
    said = " | ".join([line for line in lines if line and "submitit INFO" not in line][-_LINES:])
    return Done(
        RunStopped(
            f"its job {job.job_id} ended without a result; last lines of {job.paths.stdout}: {said or 'none'}"
        )
    )


def _tidy(folder: Path) -> None:
    """Remove what jobs were started from; the logs of those that failed stay."""
    for pattern in ("*_submission.sh", ".submission_file_*.sh", "*_submitted.pkl", "*_result.pkl"):
        for path in folder.glob(pattern):
            path.unlink(missing_ok=True)
    with suppress(OSError):
        folder.rmdir()
