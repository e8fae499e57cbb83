"""A memory in a process of its own: the parent's end of the protocol of `worker-protocol.md`.

A system that crashes, hangs or garbles takes nothing else down: the step at which it happened
ends with its last words, and nothing can be asked of it until it is opened again.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import shutil
import sys
import weakref
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Self, TypeVar

import msgspec

import steeltrap
from steeltrap.harness.limits import Limits
from steeltrap.harness.memory import Item, MemoryFault, Query, Subject, Utterance
from steeltrap.harness.models import Models
from steeltrap.harness.process import (
    ANY,
    Plan,
    Worker,
    WorkerDied,
    WorkerError,
    WorkerFault,
    WorkerGone,
    introduced,
)
from steeltrap.harness.script import Script
from steeltrap.harness.shared import SharedWorker
from steeltrap.harness.worker import VERSION, Hello, Named

__all__ = ["Remote", "WorkerDied", "WorkerError", "WorkerFault", "WorkerGone"]

T = TypeVar("T")
_ITEMS: Final = msgspec.json.Decoder(list[Item])
_HANDLE: Final = msgspec.json.Decoder(int)
_NONE: Final = Limits()


class Remote:
    """A memory that lives in a worker, with exactly the capabilities that the system has.

    Made in the way of any adapter; the worker is started by `open` and ended by `close`. To know
    the capabilities a first one is started and ended at once; that is done once for the same
    settings. What the system writes goes below the folder given to `open`: its own into `memory`,
    what it takes for its user's into `home` and `tmp`, which are removed.

    Args:
        node: the system's settings, with `_target_` (a class that the worker makes) or `command`
            (a program that speaks the protocol, with its arguments).
        python: of the environment in which `_target_` is made; by default the present one.
        packages: whose versions are asked for.
        passes: names of environment variables that the system gets besides (its keys).
        limits: which of them a worker breaks ends it.
        name: of the system in messages; by default that of its class or program.
        threads: that may ask at once, where the system claims that they may.

    Attributes:
        concurrent: whether it does.
        identity: what besides its settings decides what the system does.
        embedder: name and version of the embedder, or None.
        versions: of Python (or what the worker is written in) and of `packages`.

    Raises:
        WorkerFault: the system cannot be made; has the name and words of its own exception.
        WorkerError: the worker cannot be started.
    """

    def __init__(
        self,
        node: Mapping[str, Any],
        *,
        python: Path | str | None = None,
        packages: Sequence[str] = (),
        passes: Sequence[str] = (),
        limits: Limits = _NONE,
        name: str = "",
        threads: int = 1,
    ) -> None:
        settings = {key: value for key, value in node.items() if key != "command"}
        hello = msgspec.json.encode(Hello(VERSION, settings, list(packages), threads))
        command = _command(node, python)
        self._plan = Plan(
            name or str(node.get("_target_", command[0])).rpartition(".")[2],
            command, hello, tuple(passes), limits, at_home="command" not in node,
        )  # fmt: skip
        self._on = 0
        self._worker: Worker | None = None
        self._before: dict[str, dict[str, Any]] = {}
        welcome = self._welcome = introduced(self._plan)
        self.identity: dict[str, Any] = welcome.identity
        self.embedder: Named | None = welcome.embedder
        self.versions: dict[str, str] = welcome.versions
        self.concurrent = welcome.concurrent
        self._shared = threads > 1 and welcome.concurrent
        self.__class__ = _able(tuple(welcome.capabilities))

    def __repr__(self) -> str:
        return f"<Remote {self._plan.name}>"

    def open(self, folder: Path) -> None:
        """Start the worker and have it begin an empty memory in `folder`/memory."""
        self.close()
        worker = (SharedWorker if self._shared else Worker)(self._plan, folder)
        try:
            if worker.welcome != self._welcome:
                raise WorkerError(f"{self._plan.name} says something else of itself than before")
            self._begin(worker, folder)
        except BaseException:
            worker.end()
            raise
        self._worker = worker

    def reopen(self, folder: Path) -> None:
        """Begin an empty memory again, in the worker that is there.

        A new worker takes its place where it has died, or will not begin again; starting one may
        take seconds.

        Args:
            folder: the one that was given to `open`.
        """
        worker = self._worker
        if worker is not None:
            with contextlib.suppress(WorkerError, MemoryFault):
                worker.ask("close", ANY.decode)
                shutil.rmtree(folder.absolute() / "memory", ignore_errors=True)
                self._begin(worker, folder)
                return
        shutil.rmtree(folder.absolute() / "memory", ignore_errors=True)
        self.open(folder)

    def _begin(self, worker: Worker, folder: Path) -> None:
        for do, given in self._before.items():
            worker.ask(do, ANY.decode, **given)
        own = folder.absolute() / "memory"
        own.mkdir(exist_ok=True)
        worker.ask("open", ANY.decode, folder=str(own))

    def close(self) -> None:
        """Have the memory closed and end the worker; harmless when it has died."""
        worker, self._worker = self._worker, None
        if worker is None or self._on:
            return
        try:
            # a death is told by the step at which it happened; at the end it loses nothing
            with contextlib.suppress(WorkerDied, WorkerGone):
                worker.ask("close", ANY.decode)
        finally:
            worker.end()

    def ingest(self, turn: Utterance) -> None:
        """Take in one turn."""
        self._ask("ingest", ANY.decode, turn=turn)

    def retrieve(self, query: Query) -> Sequence[Item]:
        """What would be put before a model to answer the query, best first."""
        return self._ask("retrieve", _read_items, query=query)

    def settle(self) -> None:
        """Wait until background work is done."""
        self._ask("settle", ANY.decode)

    def _ask(self, do: str, read: Callable[[msgspec.Raw], T], **given: Any) -> T:
        if self._worker is None:
            raise MemoryFault(
                f"{self._plan.name}: not open; call open(folder) first, and nothing after close()"
            )
        return self._worker.ask(do, read, self._on, **given)


class _Told(Remote):
    def told(self, script: Script) -> None:
        """Keep the script with its truth for the memory."""
        self._before["told"] = {"lines": [msgspec.Raw(line.rstrip()) for line in script.lines()]}


class _UsesModels(Remote):
    def connect(self, models: Models) -> None:
        """Keep the address of the models for the memory."""
        self._before["connect"] = {"models": models}


class _Lists(Remote):
    def active(self, tenant: str) -> Sequence[Item]:
        """All content that competes for a place in an answer."""
        return self._ask("active", _read_items, tenant=tenant)


class _Recalls(Remote):
    def history(self, subject: Subject) -> Sequence[Item]:
        """All entries, oldest first."""
        return self._ask("history", _read_items, subject=subject)


class _Salient(Remote):
    def salience(self, subject: Subject) -> float | None:
        """Higher is safer; None when the subject is not known."""
        given: float | None = self._ask("salience", ANY.decode, subject=subject)
        return given


class _Maintains(Remote):
    def maintain(self, at: str) -> None:
        """Run maintenance as of a simulated time."""
        self._ask("maintain", ANY.decode, at=at)


class _Recovers(Remote):
    def recover(self, subject: Subject) -> Sequence[Item]:
        """What the archive or the active state holds on the subject."""
        return self._ask("recover", _read_items, subject=subject)


class _Erases(Remote):
    def erase(self, tenant: str, subject: Subject | None) -> None:
        """Remove a subject, or with None everything of the tenant."""
        self._ask("erase", ANY.decode, tenant=tenant, subject=subject)


class _Sized(Remote):
    def size_bytes(self) -> int:
        """Bytes on disk now."""
        given: int = self._ask("size_bytes", ANY.decode)
        return given


class _Forks(Remote):
    def fork(self) -> Self:
        """A copy in the same worker, dropped there when it is not used here any more."""
        handle = self._ask("fork", _HANDLE.decode)
        twin = copy.copy(self)
        twin._on = handle
        assert self._worker is not None
        weakref.finalize(twin, self._worker.forget, handle).atexit = False
        return twin


_ABLE: Final[dict[str, type[Remote]]] = {
    "list": _Lists,
    "history": _Recalls,
    "salience": _Salient,
    "maintain": _Maintains,
    "recover": _Recovers,
    "erase": _Erases,
    "fork": _Forks,
    "size": _Sized,
    "told": _Told,
    "models": _UsesModels,
}


@functools.cache
def _able(capabilities: tuple[str, ...]) -> type[Remote]:
    """A remote memory that has these capabilities and no others: they are found by methods."""
    return type("Remote", (*(_ABLE[name] for name in capabilities), Remote), {})


def _command(node: Mapping[str, Any], python: Path | str | None) -> tuple[str, ...]:
    if ("command" in node) == ("_target_" in node):
        raise WorkerError(f"{dict(node)}: a worker needs either _target_ or command")
    if "_target_" in node:
        program = Path(steeltrap.__file__).parent / "harness" / "worker.py"
        return str(python or sys.executable), "-P", str(program)
    command = node["command"]
    return tuple(command.split() if isinstance(command, str) else map(str, command))


def _read_items(answer: msgspec.Raw) -> Sequence[Item]:
    """The items of an answer; what is malformed is left as it is for whoever checks replies."""
    try:
        return _ITEMS.decode(answer)
    except msgspec.ValidationError:
        given: Any = ANY.decode(answer)
        return [_item(one) for one in given] if isinstance(given, list) else given


def _item(given: Any) -> Any:
    if not isinstance(given, dict) or "text" not in given:
        return given
    known = {key: value for key, value in given.items() if key in Item.__struct_fields__}
    if isinstance(known.get("sources"), list):
        known["sources"] = tuple(known["sources"])
    return Item(**known)
