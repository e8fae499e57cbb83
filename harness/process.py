"""The process of a memory that lives in one: started, asked line by line, watched, and ended.

The lines are those of `worker-protocol.md`. A process that crashes, hangs, garbles, or takes more
than its limits is stopped, and leaves its last words.
"""

from __future__ import annotations

import contextlib
import functools
import os
import re
import select
import shutil
import signal
import subprocess
import tempfile
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any, Final, TypeVar

import msgspec

from steeltrap.harness.limits import HUNG_S, START_S, Limits, amount
from steeltrap.harness.memory import CAPABILITIES, MemoryDied, MemoryFault
from steeltrap.harness.tokens import cache_folder
from steeltrap.harness.watching import Watch
from steeltrap.harness.worker import VERSION, Welcome

__all__ = [
    "ANY",
    "Broken",
    "Patience",
    "Plan",
    "Worker",
    "WorkerDied",
    "WorkerError",
    "WorkerFault",
    "WorkerGone",
    "asked",
    "introduced",
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
_START: Final = "its start"
_STARTING: Final = (_START, "connect", "told", "open")
"""Operations that belong to its start."""


class WorkerError(RuntimeError):
    """Something went wrong in or with a worker."""


class WorkerFault(WorkerError):
    """The system raised an error; it is open whether the operation happened.

    What is raised is a subclass that has the name of the system's own exception, so that a
    history reads the same whether a system ran in a worker or not.
    """


class WorkerDied(WorkerError, MemoryDied):
    """The worker crashed, hung, broke the protocol or a limit; it is open whether the operation
    happened.

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


class Broken(Exception):
    """An exchange of lines cannot be completed; says why."""


class Plan(msgspec.Struct, frozen=True):
    """How a worker is started."""

    name: str
    """As it is called in messages."""
    command: tuple[str, ...]
    hello: bytes
    passes: tuple[str, ...]
    """Environment variables that it gets besides."""
    limits: Limits
    at_home: bool
    """Whether it is started in its own folder, not in that of the caller."""


class Patience:
    """How long an answer may still take."""

    def __init__(self, limits: Limits, doing: str) -> None:
        step_s = limits.step_s or HUNG_S
        starting = doing in _STARTING and step_s < START_S
        self._all_s = START_S if starting else step_s
        self._limit = "" if starting else " (limits.step_s)"
        self._until = time.monotonic() + self._all_s

    def __str__(self) -> str:
        return f"{amount(self._all_s)} s{self._limit}"

    def left_s(self) -> float:
        """From now on."""
        return max(0.0, self._until - time.monotonic())


class _Answer(msgspec.Struct):
    id: int | None = None
    ok: msgspec.Raw = msgspec.Raw(b"")
    fault: str | None = None
    error: str | None = None


ANY: Final = msgspec.json.Decoder()
"""Reads an answer of whatever kind."""
_ANSWER = msgspec.json.Decoder(_Answer)
_WELCOME = msgspec.json.Decoder(Welcome)


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


class Worker:
    """A worker that runs: exchanges lines with it, and ends it.

    Args:
        plan: how it is started.
        folder: takes its `home` and `tmp`, which are removed when it has ended.

    Raises:
        WorkerError: it cannot be started, or does not give a welcome.
    """

    def __init__(self, plan: Plan, folder: Path) -> None:
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
        self._watch = Watch(process, plan.limits.memory_mb)
        listener = threading.Thread(target=_listen, args=(process.stderr, self._said), daemon=True)
        listener.start()
        self.end = weakref.finalize(self, _end, process, listener, self._watch, folder)
        """Ends it, and all that it started; harmless when it has ended."""
        self.welcome = self._greeted()

    def _greeted(self) -> Welcome:
        try:
            line = self._exchange(self._plan.hello, _START)
            try:
                welcome = _WELCOME.decode(line)
            except (ValueError, RecursionError) as error:
                raise self._died(_breach(line, error), f"during {_START}") from None
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
                self._ask("drop", ANY.decode, self._forgotten.pop(), {})
        return self._ask(do, read, on, given)

    def _ask(self, do: str, read: Callable[[msgspec.Raw], T], on: int, given: dict[str, Any]) -> T:
        self._requests += 1
        line = self._exchange(asked(self._requests, do, on, given), do)
        return self._answered(line, self._requests, do, read)

    def _answered(self, line: bytes, number: int, do: str, read: Callable[[msgspec.Raw], T]) -> T:
        """What an answer says; raises what it says instead."""
        try:
            answer = _ANSWER.decode(line)
            if answer.id != number:
                raise ValueError(f"id {number} is due")
            if answer.fault is None and answer.error is None:
                return read(answer.ok)
        except (ValueError, RecursionError) as error:
            raise self._died(_breach(line, error), f"during {do}") from None
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
            raise self._died("was interrupted", f"during {doing}")
        self._busy = True
        over = self._watch.broken or _exited(self._process, 0.0)
        when = f"{'before' if over else 'during'} {doing}"
        patience = Patience(self._plan.limits, doing)
        try:
            self._send(line + b"\n", patience)
            answer = self._receive(patience)
        except Broken as broken:
            raise self._died(self._watch.broken or str(broken), when) from None
        self._busy = False
        return answer

    def _send(self, line: bytes, patience: Patience) -> None:
        if self._rest:
            raise Broken(f"broke the protocol: said unasked {_quoted(self._rest)}")
        left = memoryview(line)
        while left:
            try:
                left = left[os.write(self._in, left) :]
            except BlockingIOError:
                self._wait(self._writable, patience)
            except BrokenPipeError:
                return  # it may have said why; otherwise the end of its answers says it

    def _receive(self, patience: Patience) -> bytes:
        """One line, without its end."""
        parts: list[bytes] = []
        left_bytes = most_bytes = int(1e6 * self._plan.limits.answer_mb)
        while True:
            self._wait(self._readable, patience)
            part = os.read(self._out, 1 << 16)
            if not part:
                raise Broken(self._ended(b"".join(parts)))
            line, end, rest = part.partition(b"\n")
            parts.append(line)
            left_bytes -= len(line)
            if left_bytes < 0:
                raise Broken(
                    f"gave an answer of more than limits.answer_mb={amount(most_bytes / 1e6)} MB"
                    " and was stopped"
                )
            if end:
                self._rest = rest
                return b"".join(parts)

    def _wait(self, poll: select.poll, patience: Patience) -> None:
        """Until a pipe is ready.

        A process that has ended may have left its pipes to children, so its end is looked for too.
        """
        while not poll.poll(1000 * min(1.0, patience.left_s())):
            if not patience.left_s():
                self._process.send_signal(signal.SIGABRT)  # has Python say where it hangs
                _exited(self._process, 1.0)
                raise Broken(f"gave no answer in {patience} and was stopped")
            if _exited(self._process, 0.0) and not self._readable.poll(0):
                raise Broken(self._ended(b""))

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

    def _died(self, how: str, when: str) -> WorkerDied:
        """Stop it; whatever is asked of it from now on fails for this cause."""
        _kill(self._process)
        self.end()
        lines = [self._clean(line) for line in self._said]
        died = WorkerDied(f"the worker of {self._plan.name} {how} {when}", lines)
        self._cause = str(died)
        return died


def asked(number: int, do: str, on: int, given: dict[str, Any]) -> bytes:
    """A request as it is written."""
    return msgspec.json.encode({"id": number, "do": do, "on": on, "with": given})


@functools.cache
def _named(name: str) -> type[WorkerFault]:
    return type(name, (WorkerFault,), {})


def _breach(line: bytes, error: Exception) -> str:
    return f"broke the protocol with {_quoted(line)} ({error})"


def _quoted(line: bytes) -> str:
    more = "…" if len(line) > _QUOTED_BYTES else ""
    return repr(line[:_QUOTED_BYTES].decode(errors="replace")) + more


def _started(plan: Plan, folder: Path) -> subprocess.Popen[bytes]:
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


def _end(
    process: subprocess.Popen[bytes], listener: threading.Thread, watch: Watch, folder: Path
) -> None:
    """End a worker and all that it started, by itself where it can, and clean up after it."""
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdin.close()
    _exited(process, _EXIT_S)
    watch.stop()
    _kill(process)
    process.wait()
    listener.join(1.0)
    process.stdout.close()
    if not listener.is_alive():
        process.stderr.close()
    for name in _OWN:
        shutil.rmtree(folder / name, ignore_errors=True)


@functools.cache
def introduced(plan: Plan) -> Welcome:
    """What a worker says of itself; it is ended at once."""
    with scratch() as folder:
        worker = Worker(plan, folder)
        worker.end()
    return worker.welcome
