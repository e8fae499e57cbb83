"""What goes wrong around a command, put into its process before it starts.

Each is a function of plain data, so that it can be asked for by name from another process.
"""

from __future__ import annotations

import builtins
import errno
import io
import os
import resource
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

FILE_CALLS = ("replace", "rename", "unlink", "remove", "mkdir", "rmdir", "utime", "truncate")


class Trouble:
    """Counts what is done to files below a folder, and does harm at the one of a number.

    Args:
        below: the folder.
        at: number of the call, from 1; 0: none, they are only counted.
        how: SIGKILL `before` the call, `half`-way through it (a write of which half is there) or
            `after` it; or `full`: from that call on no byte can be written and no name be made.
        log: gets a line for each call: its kind and the file's path below the folder.
    """

    def __init__(self, below: str, at: int, how: str, log: str) -> None:
        self.below = os.path.realpath(below)
        self.at, self.how = at, how
        self.calls = 0
        self.log = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def concerns(self, path: Any) -> bool:
        if isinstance(path, int):
            return False
        return os.path.realpath(os.fspath(path)).startswith(self.below + os.sep)

    def due(self, kind: str, path: Any) -> str:
        """Count a call; says what is to happen at it."""
        self.calls += 1
        relative = os.path.relpath(os.path.realpath(os.fspath(path)), self.below)
        os.write(self.log, f"{kind} {relative}\n".encode(errors="replace"))
        if not self.at or self.calls < self.at:
            return ""
        if self.how == "full":
            return "half" if self.calls == self.at and kind == "write" else "full"
        if self.calls == self.at:
            if self.how == "before":
                kill()
            return self.how
        return ""

    def wrapped(self, name: str) -> Callable[..., Any]:
        """A function of `os` that changes what is at a path."""
        real = getattr(os, name)
        makes = name in ("mkdir", "utime")

        def call(path: Any, *rest: Any, **more: Any) -> Any:
            # within a folder that is being removed paths are relative to it
            if not ("dir_fd" in more and more["dir_fd"] is not None) and not self.concerns(path):
                return real(path, *rest, **more)
            how = self.due(name, path)
            if how == "full" and makes:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), os.fspath(path))
            given = real(path, *rest, **more)
            if how in ("half", "after") and self.how != "full":
                kill()
            return given

        return call


def kill() -> None:
    """End this process at once, as nobody can prevent."""
    os.kill(os.getpid(), signal.SIGKILL)


def files(below: str, at: int, how: str, log: str) -> None:
    """Harm at the n-th change of a file below a folder; see `Trouble`."""
    trouble = Trouble(below, at, how, log)
    real_open = io.open

    class Raw(io.FileIO):
        """A file whose writes are counted as the system sees them."""

        def write(self, data: Any, /) -> int:
            how = trouble.due("write", self.name)
            if not how:
                return super().write(data) or 0
            if how == "full":
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), self.name)
            view = memoryview(data).cast("B")
            part = view if how == "after" else view[: len(view) // 2]
            written = super().write(part) or 0
            if trouble.how != "full":
                kill()
            return written

    def opened(
        file: Any, mode: str = "r", buffering: int = -1, encoding: str | None = None,
        errors: str | None = None, newline: str | None = None, closefd: bool = True,
        opener: Any = None,
    ) -> Any:  # fmt: skip
        if not set(mode) & set("wxa+") or not trouble.concerns(file):
            return real_open(file, mode, buffering, encoding, errors, newline, closefd, opener)
        if set(mode) & set("wxa"):
            how = trouble.due("open", file)
            if how == "full" and not Path(file).exists():
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), os.fspath(file))
        raw = Raw(os.fspath(file), mode.replace("b", "").replace("t", ""), closefd, opener)
        if (
            set(mode) & set("wxa")
            and trouble.calls == trouble.at
            and trouble.how in ("half", "after")
        ):
            kill()
        if "b" in mode and buffering == 0:
            return raw
        buffered: Any = io.BufferedRandom(raw) if "+" in mode else io.BufferedWriter(raw)
        if "b" in mode:
            return buffered
        return io.TextIOWrapper(buffered, encoding, errors, newline)

    io.open = opened
    builtins.open = opened
    for name in FILE_CALLS:
        setattr(os, name, trouble.wrapped(name))


def clock(jumps: list[float], start: float = 0.0) -> None:
    """A wall clock that each time it is asked has jumped: by the next of `jumps`, in seconds, in turn.

    The monotonic clocks are left alone, as they are where somebody sets a machine's clock.
    """
    real, asked = time.time, [0]

    def jumped() -> float:
        asked[0] += 1
        return max(0.0, real() + start + jumps[asked[0] % len(jumps)])

    time.time = jumped
    time.time_ns = lambda: int(jumped() * 1e9)


def memory(mb: int) -> None:
    """So much address space at most, in 10**6 bytes."""
    resource.setrlimit(resource.RLIMIT_AS, (mb * 10**6, mb * 10**6))


def longest_file(size: int) -> None:
    """No file may be longer, in bytes."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


def loopback(log: str) -> None:
    """Refuse and note down whatever would leave this machine, in Python's own words."""

    def look(event: str, given: tuple[Any, ...]) -> None:
        if event in ("socket.connect", "socket.sendto", "socket.sendmsg", "socket.bind"):
            address = given[1]
        elif event in ("socket.getaddrinfo", "socket.gethostbyname"):
            address = (given[0],)
        else:
            return
        if isinstance(address, str | bytes):
            return  # a socket of this machine
        host = address[0] if address else None
        if host in (None, "", "localhost", b"localhost", "::1") or str(host).startswith("127."):
            if not (event == "socket.bind" and host in (None, "")):
                return
        note = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.write(note, f"{event} {address!r}\n".encode())
        os.close(note)
        raise OSError(errno.ENETUNREACH, "no way out of this machine")

    sys.addaudithook(look)


def environment(**values: str) -> None:
    """Set variables."""
    os.environ.update(values)


def whole(value: int) -> None:
    """Compress histories from so many bytes on."""
    from steeltrap.harness import store

    store.COMPRESSED_FROM_BYTES = value


def path(folder: str) -> None:
    """Look for modules there too."""
    sys.path.insert(0, str(Path(folder)))


def user(number: int) -> None:
    """Be somebody else, who may not write everywhere."""
    os.setgid(number)
    os.setuid(number)
