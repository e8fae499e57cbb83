"""Cells on Ray: on a cluster, or on this machine.

Ray places each cell on a node that has the cores that it keeps busy and the memory that it may
take. What is needed of a node: this package and what the systems need, keys of models in the
environment, and the folder in which the command was given.
"""

from __future__ import annotations

import logging
import os
import shutil
import signal
import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from steeltrap.harness.drive import RunStopped
from steeltrap.harness.execution.abreast import abreast
from steeltrap.harness.execution.cells import Cell, Done, apart
from steeltrap.harness.execution.local import CELLS
from steeltrap.harness.settings import SettingsError
from steeltrap.harness.tokens import cache_folder

__all__ = ["ray"]

_LOOPBACK: Final = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"
"""Where no cluster is enabled, Ray listens on the loopback address alone, on any system."""
_PATH_BYTES: Final = 107
"""Of the path of a socket, at most,"""
_SOCKET_BYTES: Final = 64
"""of which Ray needs so many below its folder."""
_STORE_BYTES: Final = 80_000_000
"""Of Ray's store of objects: nearly the least that it takes. Cells are small, and so are results."""


def ray(
    cells: Sequence[Cell], processes: int, asked: Any
) -> Generator[tuple[int, Done], None, None]:
    """Run cells on Ray, up to so many cores at once.

    A cell whose process dies fails alone, and is not tried again. What was started on this machine
    ends with the sweep; on a cluster, its cells do.

    Raises:
        SettingsError: Ray is not installed, or there is no such cluster.
    """
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    if not asked.address:
        os.environ[_LOOPBACK] = "0"  # read when Ray is imported
    try:
        engine = import_module("ray")
    except ModuleNotFoundError:
        raise SettingsError(
            "execution=ray needs the package 'ray', which is not installed: pip install"
            " 'steeltrap[ray]'"
        ) from None
    with _connected(engine, asked.address, processes):
        tasks = _Tasks(engine)
        try:
            yield from abreast(cells, processes, tasks.start, tasks.wait)
        finally:
            tasks.cancel()


class _Tasks:
    """The cells that Ray has."""

    def __init__(self, engine: Any) -> None:
        self._engine = engine
        self._task = engine.remote(max_retries=0, max_calls=CELLS)(apart)
        self._given: dict[Any, tuple[int, float]] = {}
        nodes = [node["Resources"] for node in engine.nodes() if node["Alive"]]
        self._cores = max(node.get("CPU", 1) for node in nodes)
        self._memory = max(node.get("memory", 0) for node in nodes)

    def start(self, number: int, cell: Cell) -> None:
        """Give a cell to Ray; one that needs more than any node has gets all of a node."""
        memory_mb = cell.settings.limits.memory_mb
        needs = {"num_cpus": min(cell.settings.cores, self._cores)}
        if memory_mb:
            needs["memory"] = int(min(memory_mb * 1e6, self._memory))
        self._given[self._task.options(**needs).remote(cell)] = number, time.perf_counter()

    def wait(self) -> Iterator[tuple[int, Done]]:
        """The cells that have ended, at least one."""
        ended, _ = self._engine.wait(list(self._given), num_returns=1)
        for one in ended:
            number, began = self._given.pop(one)
            try:
                done = self._engine.get(one)
            except self._engine.exceptions.RayError as error:
                done = Done(RunStopped(_death(error)), "", time.perf_counter() - began)
            yield number, done

    def cancel(self) -> None:
        """Have what still runs ended."""
        for one in self._given:
            self._engine.cancel(one, force=True)


def _death(error: Exception) -> str:
    """How Ray says that a cell has no result, in one line."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"its process has died on Ray: {type(error).__name__}: {lines[0] if lines else ''}"


@contextmanager
def _connected(engine: Any, address: str | None, processes: int) -> Iterator[None]:
    """A connection to a cluster, or a Ray of this machine alone that is gone afterwards."""
    quiet = {"log_to_driver": False, "logging_level": logging.ERROR}
    if address:
        try:
            engine.init(address=address, **quiet)
        except (ConnectionError, RuntimeError, ValueError) as error:
            raise SettingsError(f"execution.address={address}: {error}") from None
        try:
            yield
        finally:
            engine.shutdown()
        return
    folder = cache_folder().absolute() / "ray" / str(os.getpid())
    if len(os.fsencode(folder)) > _PATH_BYTES - _SOCKET_BYTES:
        raise SettingsError(
            f"{folder}: too long for the sockets that Ray makes below it; set STEELTRAP_CACHE to a"
            f" folder of at most {_PATH_BYTES - _SOCKET_BYTES - len('/ray/1234567')} characters"
        )
    _sweep_out(folder.parent)
    folder.mkdir(parents=True, exist_ok=True)
    ended = signal.getsignal(signal.SIGTERM)
    try:
        engine.init(
            address="local", num_cpus=processes, num_gpus=0, include_dashboard=False,
            object_store_memory=_STORE_BYTES,
            _temp_dir=str(folder), _plasma_directory=str(folder), **quiet,
        )  # fmt: skip
        signal.signal(signal.SIGTERM, ended)  # Ray has put its own there, which aborts
        _refuse_open(engine)
        yield
    finally:
        engine.shutdown()
        shutil.rmtree(folder, ignore_errors=True)


def _refuse_open(engine: Any) -> None:
    """Refuse a Ray that others on the network could give work to."""
    for node in engine.nodes():
        if node["NodeManagerAddress"] not in ("127.0.0.1", "::1"):
            raise SettingsError(
                f"execution=ray: Ray would listen at {node['NodeManagerAddress']}, for everybody who"
                " reaches this machine; this version of Ray cannot be kept to it"
            )


def _sweep_out(folder: Path) -> None:
    """Remove what runs that were killed have left."""
    alive = import_module("psutil").pid_exists
    for one in folder.glob("*"):
        if one.name.isdigit() and not alive(int(one.name)):
            shutil.rmtree(one, ignore_errors=True)
