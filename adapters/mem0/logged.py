"""What the package says in its log where it goes on as if nothing had happened."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from steeltrap.harness.memory import MemoryFault

__all__ = ["HalfDone", "heard"]

_NOTICES: Final = ("fastembed not installed", "Failed to load spaCy", "Resetting")
"""Warnings at the start that tell of an option which is not installed."""


class HalfDone(RuntimeError):
    """The package reported success and logged a failure; the message is what it logged."""


class _Log(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        line = record.getMessage()
        if not line.startswith(_NOTICES):
            self.lines.append(line)


@contextmanager
def heard(nothing_done: tuple[str, ...] = ()) -> Iterator[None]:
    """Raise what the package logs as a warning or an error and otherwise passes over.

    Args:
        nothing_done: beginnings of the lines after which it certainly has stored nothing.

    Raises:
        MemoryFault: it logged only such lines.
        HalfDone: it logged others.
    """
    log, logger = _Log(), logging.getLogger("mem0")
    logger.addHandler(log)
    try:
        yield
    finally:
        logger.removeHandler(log)
    if log.lines:
        fault = (
            MemoryFault if all(line.startswith(nothing_done) for line in log.lines) else HalfDone
        )
        raise fault(f"mem0 logged: {'; '.join(log.lines)}")
