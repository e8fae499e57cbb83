"""A worker that several threads ask at once.

Requests are written as they come, and a thread of its own hands each answer to whoever asked, by its
number. Its system has claimed that it can have that; see `steeltrap.harness.memory.Concurrent`.
"""

from __future__ import annotations

import itertools
import os
import re
import select
import threading
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec

from steeltrap.harness.process import Broken, Patience, Plan, Worker, WorkerDied, WorkerGone, asked

__all__ = ["SharedWorker"]

T = TypeVar("T")
_LOOK_MS: Final = 500
_NUMBER: Final = re.compile(rb'\{"id":(\d+),')
"""How an answer begins as a rule; the others are decoded twice."""


class SharedWorker(Worker):
    """See the module."""

    def __init__(self, plan: Plan, folder: Path) -> None:
        self._sending = threading.Lock()
        self._numbers = itertools.count(1)
        self._waiting: dict[int, Future[bytes]] = {}
        self._over = False
        """No answer will come any more."""
        self._ending = threading.Lock()
        self._how = ""
        """How it ended, once that is known."""
        self._half = b""
        """What it wrote last, if that was no whole answer."""
        super().__init__(plan, folder)
        # a pipe end of its own: the other is closed when the worker has ended, and its number goes
        # to whatever is opened next
        listening = threading.Thread(target=self._listen, args=(os.dup(self._out),), daemon=True)
        listening.start()

    def _ask(self, do: str, read: Callable[[msgspec.Raw], T], on: int, given: dict[str, Any]) -> T:
        patience = Patience(self._plan.limits, do)
        future: Future[bytes] = Future()
        try:
            with self._sending:
                if self._cause:
                    raise WorkerGone(self._cause)
                if self._over:
                    raise Broken(self._how)
                number = next(self._numbers)
                self._waiting[number] = future
                self._send(asked(number, do, on, given) + b"\n", patience)
            line = future.result(patience.left_s())
        except TimeoutError:
            raise self._broke(f"gave no answer in {patience} and was stopped", do) from None
        except Broken as broken:
            raise self._broke(str(broken), do) from None
        return self._answered(line, number, do, read)

    def _broke(self, how: str, do: str) -> WorkerDied:
        """Stop it, for one cause, however many were waiting; without words it ended by itself."""
        with self._ending:
            self._how = self._how or self._watch.broken or how or self._ended(self._half)
            return self._died(self._how, f"during {do}")

    # ------------------------------------------------------------ answers

    def _listen(self, pipe: int) -> None:
        """Hand answers out until the pipe ends, or somebody has stopped the worker."""
        poll = select.poll()
        poll.register(pipe, select.POLLIN)
        most_bytes = int(1e6 * self._plan.limits.answer_mb)
        parts: list[bytes] = []
        why = ""
        try:
            while not why and not self._cause:
                if not poll.poll(_LOOK_MS):
                    continue
                if not (part := os.read(pipe, 1 << 16)):
                    break
                *ends, rest = part.split(b"\n")
                for end in ends:
                    why = why or self._hand_out(b"".join([*parts, end]))
                    parts.clear()
                parts.append(rest)
                if sum(map(len, parts)) > most_bytes:
                    why = f"gave an answer of more than limits.answer_mb={most_bytes / 1e6:g} MB"
        finally:
            os.close(pipe)
        with self._sending:
            self._over, self._how, self._half = True, self._how or why, b"".join(parts)
            left, self._waiting = self._waiting, {}
        for future in left.values():
            future.set_exception(Broken(why))

    def _hand_out(self, line: bytes) -> str:
        """Give an answer to whoever asked; else what is wrong with it."""
        future = self._waiting.pop(_number(line), None)
        if future is None:
            return f"broke the protocol: said unasked {line[:100].decode(errors='replace')!r}"
        future.set_result(line)
        return ""


def _number(line: bytes) -> int:
    if found := _NUMBER.match(line):
        return int(found[1])
    try:
        number = msgspec.json.decode(line).get("id")
    except (msgspec.DecodeError, AttributeError, RecursionError):
        return -1
    return number if isinstance(number, int) else -1
