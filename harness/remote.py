"""A memory in a process of its own: the parent's end of the protocol of `worker-protocol.md`.

A system that crashes, hangs or garbles takes nothing else down: the step at which it happened
ends with its last words, and every later one fails at once.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Final, Self, TypeVar

import msgspec

import steeltrap
from steeltrap.harness.memory import CAPABILITIES, Item, MemoryFault, Query, Subject, Utterance
from steeltrap.harness.models import Models
from steeltrap.harness.script import Script
from steeltrap.harness.tokens import cache_folder
from steeltrap.harness.worker import VERSION, Hello, Named, Welcome

__all__ = [
    "Remote",
    "WorkerDied",
    "WorkerError",
    "WorkerFault",
    "WorkerGone",
    "scratch",
]

T = TypeVar("T")
_KEPT: Final = (
    "PATH", "LD_LIBRARY_PATH", "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE",
)  # fmt: skip
"""Variables that every worker gets as they are: where programs and certificates lie."""
_OWN: Final = ("home", "tmp")
"""Folders of a worker itself, beside its memory's."""
_FATAL: Final = "Fatal Python error"
_KEPT_LINES: Final = 200
_LINES: Final = 20
_LINE_BYTES: Final = 2000
_WORDS_CHARS: Final = 350
_SECRET_CHARS: Final = 8
"""Shorter values are no keys, and may stand in any word."""
_QUOTED_BYTES: Final = 100
_EXIT_S: Final = 5.0
"""What a worker that has nothing more to do may need to end."""


class WorkerError(RuntimeError):
    """Something went wrong in or with a worker."""


class WorkerFault(WorkerError):
    """The system raised an error; it is open whether the operation happened.

    What is raised is a subclass that has the name of the system's own exception, so that a
    history reads the same whether a system ran in a worker or not.
    """


class WorkerDied(WorkerError):
    """The worker crashed, hung or broke the protocol; it is open whether the operation happened.

    Attributes:
        last_words: the last lines that it wrote to standard error; where Python was killed, the
            first of its trace.
    """

    def __init__(self, what: str, said: Sequence[str] = ()) -> None:
        fatal = next((n for n, line in enumerate(said) if line.startswith(_FATAL)), None)
        self.last_words = said[-_LINES:] if fatal is None else said[fatal : fatal + _LINES]
        words = " | ".join(line.strip() for line in self.last_words)
        words = words[-_WORDS_CHARS:] if fatal is None else words[:_WORDS_CHARS]
        super().__init__(f"{what}; its last words: {words}" if words else what)


class WorkerGone(MemoryFault):
    """The worker had died before; this operation did not happen."""


class _Broken(Exception):
    """An exchange of lines cannot be completed; says why."""


class _Plan(msgspec.Struct, frozen=True):
    """How a worker is started."""

    name: str
    """As it is called in messages."""
    command: tuple[str, ...]
    hello: bytes
    passes: tuple[str, ...]
    """Environment variables that it gets besides."""
    timeout_s: float
    at_home: bool
    """Whether it is started in its own folder, not in that of the caller."""


class _Answer(msgspec.Struct):
    id: int | None = None
    ok: msgspec.Raw = msgspec.Raw(b"")
    fault: str | None = None
    error: str | None = None


_ANY = msgspec.json.Decoder()
_ANSWER = msgspec.json.Decoder(_Answer)
_WELCOME = msgspec.json.Decoder(Welcome)
_ITEMS = msgspec.json.Decoder(list[Item])
_HANDLE = msgspec.json.Decoder(int)


def _variables(home: Path, passes: Sequence[str] = ()) -> dict[str, str]:
    """The environment variables of a process of a third-party system.

    Nothing of the user's but where programs and certificates lie: no keys, no proxies, no switches.
    What it writes to its home or for a while goes below `home`.

    Args:
        home: takes the folders `home` and `tmp`.
        passes: names of further variables, handed on where they are set.
    """
    kept = {name: os.environ[name] for name in (*_KEPT, *passes) if name in os.environ}
    return kept | {
        "HOME": str(home / "home"),
        "TMPDIR": str(home / "tmp"),
        "STEELTRAP_CACHE": str(cache_folder().absolute()),
        "NO_PROXY": "127.0.0.1,localhost,::1",
        "no_proxy": "127.0.0.1,localhost,::1",
        "LANG": "C.UTF-8",
        "TZ": "UTC",
        "PYTHONHASHSEED": "0",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONUTF8": "1",
    }


@contextlib.contextmanager
def scratch() -> Iterator[Path]:
    """A folder below the cache with a `home` and a `tmp`, for a moment."""
    below = cache_folder().absolute() / "workers"
    below.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=below) as made:
        folder = Path(made)
        for name in _OWN:
            (folder / name).mkdir()
        yield folder


# ---------------------------------------------------------------- the process


class _Worker:
    """A worker that runs: exchanges lines with it, and ends it.

    Args:
        plan: how it is started.
        folder: takes its `home` and `tmp`, which are removed when it has ended.

    Raises:
        WorkerError: it cannot be started, or does not give a welcome.
    """

    def __init__(self, plan: _Plan, folder: Path) -> None:
        self._plan = plan
        self._forgotten: list[int] = []
        self._requests = 0
        self._rest = b""
        self._busy = False
        self._cause = ""
        passed = {os.environ.get(name, ""): name for name in plan.passes}
        self._secrets = {key: passed[key] for key in passed if len(key) >= _SECRET_CHARS}
        process = self._process = _started(plan, folder)
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        self._in, self._out = process.stdin.fileno(), process.stdout.fileno()
        os.set_blocking(self._in, False)
        self._readable, self._writable = select.poll(), select.poll()
        self._readable.register(self._out, select.POLLIN)
        self._writable.register(self._in, select.POLLOUT)
        self._said: deque[str] = deque(maxlen=_KEPT_LINES)
        listener = threading.Thread(target=_listen, args=(process.stderr, self._said), daemon=True)
        listener.start()
        self.end = weakref.finalize(self, _end, process, listener, folder)
        """Ends it, and all that it started; harmless when it has ended."""
        self.welcome = self._greeted()

    def _greeted(self) -> Welcome:
        try:
            line = self._exchange(self._plan.hello, "its start")
            try:
                welcome = _WELCOME.decode(line)
            except (ValueError, RecursionError) as error:
                raise self._died(_breach(line, error), "its start") from None
            self._check(welcome)
        except BaseException:
            self.end()
            raise
        return welcome

    def _check(self, welcome: Welcome) -> None:
        name = self._plan.name
        if welcome.steeltrap != VERSION:
            raise WorkerError(
                f"{name} speaks version {welcome.steeltrap} of the worker protocol, and this"
                f" steeltrap version {VERSION}"
            )
        if welcome.error:
            raise self._fault(welcome.error)
        if unknown := [one for one in welcome.capabilities if one not in CAPABILITIES]:
            raise WorkerError(
                f"{name} names the capability '{unknown[0]}'; known: {', '.join(CAPABILITIES)}"
            )

    # ------------------------------------------------------------ asking

    def forget(self, handle: int) -> None:
        """Have a copy dropped at the next occasion; may be called at any moment."""
        self._forgotten.append(handle)

    def ask(self, do: str, read: Callable[[msgspec.Raw], T], on: int = 0, **given: Any) -> T:
        """What an operation gives.

        Args:
            do: the operation.
            read: takes what it gives, as JSON; raises DecodeError where it is none.
            on: handle of a copy.
            given: its arguments.

        Raises:
            WorkerGone: the worker had died before.
            WorkerDied: it died of this, or did not answer.
            MemoryFault: the system says that nothing has happened.
            WorkerFault: the system raised something else.
        """
        while self._forgotten:
            # what a copy says at its end is nothing that this operation has to do with
            with contextlib.suppress(WorkerFault, MemoryFault):
                self._ask("drop", _ANY.decode, self._forgotten.pop(), {})
        return self._ask(do, read, on, given)

    def _ask(self, do: str, read: Callable[[msgspec.Raw], T], on: int, given: dict[str, Any]) -> T:
        self._requests += 1
        asked = {"id": self._requests, "do": do, "on": on, "with": given}
        line = self._exchange(msgspec.json.encode(asked), do)
        try:
            answer = _ANSWER.decode(line)
            if answer.id != self._requests:
                raise ValueError(f"id {self._requests} is due")
            if answer.fault is None and answer.error is None:
                return read(answer.ok)
        except (ValueError, RecursionError) as error:
            raise self._died(_breach(line, error), do) from None
        if answer.fault is not None:
            raise MemoryFault(self._clean(answer.fault))
        raise self._fault(answer.error or "")

    def _fault(self, words: str) -> WorkerFault:
        name, told, rest = self._clean(words).partition(": ")
        if told and re.fullmatch(r"[A-Za-z_]\w*", name):
            return _named(name)(rest)
        return WorkerFault(self._clean(words))

    def _clean(self, words: str) -> str:
        """Without the values of the variables that were handed on: they may be keys."""
        for value, name in self._secrets.items():
            words = words.replace(value, f"${name}")
        return words

    # ------------------------------------------------------------ lines

    def _exchange(self, line: bytes, doing: str) -> bytes:
        if self._cause:
            raise WorkerGone(self._cause)
        if self._busy:
            raise self._died("was interrupted", doing)
        self._busy = True
        try:
            deadline = time.monotonic() + self._plan.timeout_s
            self._send(line + b"\n", deadline)
            answer = self._receive(deadline)
        except _Broken as broken:
            raise self._died(str(broken), doing) from None
        self._busy = False
        return answer

    def _send(self, line: bytes, deadline: float) -> None:
        if self._rest:
            raise _Broken(f"broke the protocol: said unasked {_quoted(self._rest)}")
        left = memoryview(line)
        while left:
            try:
                left = left[os.write(self._in, left) :]
            except BlockingIOError:
                self._wait(self._writable, deadline)
            except BrokenPipeError:
                return  # it may have said why; otherwise the end of its answers says it

    def _receive(self, deadline: float) -> bytes:
        """One line, without its end."""
        parts: list[bytes] = []
        while True:
            self._wait(self._readable, deadline)
            part = os.read(self._out, 1 << 16)
            if not part:
                raise _Broken(self._ended(b"".join(parts)))
            line, end, rest = part.partition(b"\n")
            parts.append(line)
            if end:
                self._rest = rest
                return b"".join(parts)

    def _wait(self, poll: select.poll, deadline: float) -> None:
        """Until a pipe is ready.

        A process that has ended may have left its pipes to children, so its end is looked for too.
        """
        while not poll.poll(1000 * max(0.0, min(1.0, deadline - time.monotonic()))):
            if time.monotonic() >= deadline:
                self._process.send_signal(signal.SIGABRT)  # has Python say where it hangs
                _exited(self._process, 1.0)
                raise _Broken(f"gave no answer in {self._plan.timeout_s:g} s and was stopped")
            if _exited(self._process, 0.0) and not self._readable.poll(0):
                raise _Broken(self._ended(b""))

    def _ended(self, half: bytes) -> str:
        """How it ended, in words."""
        cut = f" in the middle of an answer ({_quoted(half)})" if half else ""
        if not _exited(self._process, 1.0):
            return f"closed its pipe{cut} and was stopped"
        self.end()
        code = self._process.returncode
        if code < 0:
            known = -code in set(signal.Signals)
            return f"was killed by {signal.Signals(-code).name if known else -code}{cut}"
        return f"ended with exit code {code}{cut}"

    def _died(self, how: str, doing: str) -> WorkerDied:
        """Stop it; whatever is asked of it from now on fails for this cause."""
        _kill(self._process)
        self.end()
        lines = [self._clean(line) for line in self._said]
        died = WorkerDied(f"the worker of {self._plan.name} {how} during {doing}", lines)
        self._cause = str(died)
        return died


@functools.cache
def _named(name: str) -> type[WorkerFault]:
    return type(name, (WorkerFault,), {})


def _breach(line: bytes, error: Exception) -> str:
    return f"broke the protocol with {_quoted(line)} ({error})"


def _quoted(line: bytes) -> str:
    more = "…" if len(line) > _QUOTED_BYTES else ""
    return repr(line[:_QUOTED_BYTES].decode(errors="replace")) + more


def _started(plan: _Plan, folder: Path) -> subprocess.Popen[bytes]:
    for name in _OWN:
        (folder / name).mkdir(parents=True, exist_ok=True)
    folder = folder.absolute()
    try:
        return subprocess.Popen(
            plan.command,
            bufsize=0,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=folder / "home" if plan.at_home else None,
            env=_variables(folder, plan.passes),
            start_new_session=True,
        )
    except OSError as error:
        raise WorkerError(
            f"{plan.name}: {plan.command[0]} cannot be started ({error.strerror})"
        ) from None


def _listen(stream: IO[bytes], said: deque[str]) -> None:
    """Keep the last lines of a stream until it ends."""
    for line in iter(functools.partial(stream.readline, _LINE_BYTES), b""):
        if words := line.decode(errors="replace").rstrip():
            said.append(words)


def _exited(process: subprocess.Popen[bytes], within_s: float) -> bool:
    """Whether a process has ended; it is left to be reaped, so that its number stays its own."""
    deadline = time.monotonic() + within_s
    flags = os.WEXITED | os.WNOHANG | os.WNOWAIT
    while os.waitid(os.P_PID, process.pid, flags) is None:
        if time.monotonic() >= deadline:
            return False
        time.sleep(0.002)
    return True


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kill what is left of a worker's process group, if the worker has not been reaped."""
    if process.returncode is None:
        # what is left may be dead already
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)


def _end(process: subprocess.Popen[bytes], listener: threading.Thread, folder: Path) -> None:
    """End a worker and all that it started, by itself where it can, and clean up after it."""
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdin.close()
    _exited(process, _EXIT_S)
    _kill(process)
    process.wait()
    listener.join(1.0)
    process.stdout.close()
    if not listener.is_alive():
        process.stderr.close()
    for name in _OWN:
        shutil.rmtree(folder / name, ignore_errors=True)


# ---------------------------------------------------------------- the memory


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
        timeout_s: after which an operation that gave no answer is taken for hung.
        name: of the system in messages; by default that of its class or program.

    Attributes:
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
        timeout_s: float = 600.0,
        name: str = "",
    ) -> None:
        settings = {key: value for key, value in node.items() if key != "command"}
        hello = msgspec.json.encode(Hello(VERSION, settings, list(packages)))
        command = _command(node, python)
        self._plan = _Plan(
            name or str(node.get("_target_", command[0])).rpartition(".")[2],
            command, hello, tuple(passes), timeout_s, at_home="command" not in node,
        )  # fmt: skip
        self._on = 0
        self._worker: _Worker | None = None
        self._before: dict[str, dict[str, Any]] = {}
        welcome = self._welcome = _introduced(self._plan)
        self.identity: dict[str, Any] = welcome.identity
        self.embedder: Named | None = welcome.embedder
        self.versions: dict[str, str] = welcome.versions
        self.__class__ = _able(tuple(welcome.capabilities))

    def __repr__(self) -> str:
        return f"<Remote {self._plan.name}>"

    def open(self, folder: Path) -> None:
        """Start the worker and have it begin an empty memory in `folder`/memory."""
        self.close()
        worker = _Worker(self._plan, folder)
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
                worker.ask("close", _ANY.decode)
                shutil.rmtree(folder.absolute() / "memory", ignore_errors=True)
                self._begin(worker, folder)
                return
        shutil.rmtree(folder.absolute() / "memory", ignore_errors=True)
        self.open(folder)

    def _begin(self, worker: _Worker, folder: Path) -> None:
        for do, given in self._before.items():
            worker.ask(do, _ANY.decode, **given)
        own = folder.absolute() / "memory"
        own.mkdir(exist_ok=True)
        worker.ask("open", _ANY.decode, folder=str(own))

    def close(self) -> None:
        """Have the memory closed and end the worker; harmless when it has died."""
        worker, self._worker = self._worker, None
        if worker is None or self._on:
            return
        try:
            # a death is told by the step at which it happened; at the end it loses nothing
            with contextlib.suppress(WorkerDied, WorkerGone):
                worker.ask("close", _ANY.decode)
        finally:
            worker.end()

    def ingest(self, turn: Utterance) -> None:
        """Take in one turn."""
        self._ask("ingest", _ANY.decode, turn=turn)

    def retrieve(self, query: Query) -> Sequence[Item]:
        """What would be put before a model to answer the query, best first."""
        return self._ask("retrieve", _read_items, query=query)

    def settle(self) -> None:
        """Wait until background work is done."""
        self._ask("settle", _ANY.decode)

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
        given: float | None = self._ask("salience", _ANY.decode, subject=subject)
        return given


class _Maintains(Remote):
    def maintain(self, at: str) -> None:
        """Run maintenance as of a simulated time."""
        self._ask("maintain", _ANY.decode, at=at)


class _Recovers(Remote):
    def recover(self, subject: Subject) -> Sequence[Item]:
        """What the archive or the active state holds on the subject."""
        return self._ask("recover", _read_items, subject=subject)


class _Erases(Remote):
    def erase(self, tenant: str, subject: Subject | None) -> None:
        """Remove a subject, or with None everything of the tenant."""
        self._ask("erase", _ANY.decode, tenant=tenant, subject=subject)


class _Sized(Remote):
    def size_bytes(self) -> int:
        """Bytes on disk now."""
        given: int = self._ask("size_bytes", _ANY.decode)
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


@functools.cache
def _introduced(plan: _Plan) -> Welcome:
    """What a worker says of itself; it is ended at once."""
    with scratch() as folder:
        worker = _Worker(plan, folder)
        worker.end()
    return worker.welcome


def _read_items(answer: msgspec.Raw) -> Sequence[Item]:
    """The items of an answer; what is malformed is left as it is for whoever checks replies."""
    try:
        return _ITEMS.decode(answer)
    except msgspec.ValidationError:
        given: Any = _ANY.decode(answer)
        return [_item(one) for one in given] if isinstance(given, list) else given


def _item(given: Any) -> Any:
    if not isinstance(given, dict) or "text" not in given:
        return given
    known = {key: value for key, value in given.items() if key in Item.__struct_fields__}
    if isinstance(known.get("sources"), list):
        known["sources"] = tuple(known["sources"])
    return Item(**known)
