"""What the package notes in its log, for developers, and otherwise passes over."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

__all__ = ["HalfDone", "heard"]

_PASSED_OVER: Final = (
    "Memory extraction response validation failed",
    "Memory extraction response exceeded",
    "Memory extraction prompt truncation could not fit",
    "Memory link-resolution response validation failed",
    "Automatic memory-link persistence failed",
    "Automatic memory-link resolution failed",
    "Thread summary candidate generation failed",
    "Thread summary candidate generation returned no usable summary",
    "Thread extraction safe-summary preparation deferred",
    "Thread extraction summary refresh deferred",
    "Thread summary refresh deferred",
)
"""Beginnings of lines of the level of debugging that tell of something left undone."""


class HalfDone(RuntimeError):
    """The message is stored, and a part of what should have followed is not."""


class _Log(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        line = record.getMessage()
        if record.levelno >= logging.WARNING or line.startswith(_PASSED_OVER):
            self.lines.append(line)


@contextmanager
def heard() -> Iterator[None]:
    """Raise what the package passes over as if nothing had happened.

    Raises:
        HalfDone: something was left undone.
    """
    log, logger = _Log(), logging.getLogger("oracleagentmemory")
    level, spreads = logger.level, logger.propagate
    logger.addHandler(log)
    logger.setLevel(logging.DEBUG)
    logger.propagate = False
    try:
        yield
    finally:
        logger.removeHandler(log)
        logger.setLevel(level)
        logger.propagate = spreads
    if log.lines:
        raise HalfDone(f"oracleagentmemory logged: {'; '.join(log.lines)}")
