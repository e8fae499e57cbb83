"""Cells as jobs of a Slurm cluster, by submitit.

Cells that need the same are one array of jobs, of which so many run at once as was asked. A job that
is preempted, or runs out of time, is put into the queue again and goes on at its cell's last turn.
What is needed of a node is what is needed here: this package, and the folder of the command.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import suppress
from importlib import import_module
from typing import Any, Final

from steeltrap.harness.drive import RunStopped
from steeltrap.harness.execution.cells import Cell, Done, apart
from steeltrap.harness.settings import SettingsError

__all__ = ["slurm"]

_LOOK_S: Final = 1.0
"""Between two looks at what jobs have written."""
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
            yield from _ended([(number, job) for (number, _), job in zip(some, jobs, strict=True)])
    finally:
        with suppress(OSError):  # the logs of jobs that failed stay
            executor.folder.rmdir()


def _executor(folder: Any, asked: Any) -> Any:
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


def _ended(jobs: list[tuple[int, Any]]) -> Iterator[tuple[int, Done]]:
    """Each job as it ends; all are cancelled where nobody waits for them any more."""
    try:
        while jobs:
            for one in [one for one in jobs if one[1].done()]:
                jobs.remove(one)
                yield one[0], _taken(one[1])
            if jobs:
                time.sleep(_LOOK_S)
    finally:
        for _, job in jobs:
            job.cancel(check=False)


def _taken(job: Any) -> Done:
    """What became of a job's cell; of one that has a result nothing else is kept."""
    submitit = import_module("submitit")
    try:
        done: Done = job.result()
    except (submitit.core.utils.UncompletedJobError, submitit.core.utils.FailedJobError):
        lines = (job.stdout() or "").strip().splitlines()[-_LINES:]
        said = " | ".join(line.strip() for line in lines)
        return Done(
            RunStopped(
                f"its job {job.job_id} ended as {job.state}; the last lines of {job.paths.stdout}:"
                f" {said or 'none'}"
            )
        )
    paths = job.paths
    for path in (
        paths.result_pickle, paths.submitted_pickle, paths.submission_file, paths.stdout,
    ):  # fmt: skip
        path.unlink(missing_ok=True)
    return done
