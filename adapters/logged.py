"""What packages say in their logs where they go on as if nothing had happened."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from steeltrap.harness.memory import MemoryFault

__all__ = ["HalfDone", "heard"]


class HalfDone(RuntimeError):
    """The package reported success, and a part of what belonged to it was not done."""


class _Log(logging.Handler):
    def __init__(self, level: int, counts: Callable[[logging.LogRecord], bool]) -> None:
        super().__init__(level)
        self._counts = counts
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if self._counts(record):
            self.lines.append(record.getMessage())


@contextmanager
def heard(
    package: str,
    logger: str = "",
    *,
    counts: Callable[[logging.LogRecord], bool] = lambda _: True,
    level: int = logging.WARNING,
    nothing_done: tuple[str, ...] = (),
) -> Iterator[None]:
    """Raise what a package logs and otherwise passes over.

    Args:
        package: for messages.
        logger: its name; by default that of the package.
        counts: whether a line tells of something left undone; by default each does.
        level: from which on lines are looked at.
        nothing_done: beginnings of the lines after which it certainly has stored nothing.

    Raises:
        MemoryFault: it logged only lines after which nothing is stored.
        HalfDone: it logged others.
    """
    log, source = _Log(level, counts), logging.getLogger(logger or package)
    before, spreads = source.level, source.propagate
    source.addHandler(log)
    if level < logging.WARNING:  # what is only listened to here shall be seen nowhere else
        source.setLevel(level)
        source.propagate = False
    try:
        yield
    finally:
        source.removeHandler(log)
        source.setLevel(before)
        source.propagate = spreads
    if log.lines:
        nothing = all(line.startswith(nothing_done) for line in log.lines)
        raise (MemoryFault if nothing else HalfDone)(f"{package} logged: {'; '.join(log.lines)}")
