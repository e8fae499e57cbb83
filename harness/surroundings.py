"""What a memory in this process may change for everybody, and what is put back after each step."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

__all__ = ["Surroundings", "streams"]


class Surroundings:
    """The process, its working directory and how deep calls may go, as they were before a memory was
    asked anything.

    A memory that changes the directory would have a run write elsewhere; one that copies its
    process would have two write the same history.
    """

    def __init__(self) -> None:
        self._process = os.getpid()
        self._folder = _folder()
        self._depth = sys.getrecursionlimit()

    def restore(self) -> None:
        """Go back to the directory; a copy of the process ends here."""
        if os.getpid() != self._process:
            os._exit(1)  # nothing that the original will write may be written here too
        if _folder() != self._folder:
            os.chdir(self._folder)
        if sys.getrecursionlimit() != self._depth:
            sys.setrecursionlimit(self._depth)


def _folder() -> str:
    """The working directory; empty where it was removed."""
    try:
        return os.getcwd()  # noqa: PTH109 - at every step: a Path costs more than the question
    except OSError:
        return ""


@contextmanager
def streams() -> Iterator[None]:
    """Have standard output and error afterwards, though a memory has closed them; and the variables
    of the environment, though it has removed them. What it has set stays: it may be set once only."""
    kept: dict[int, int] = {}
    variables = dict(os.environ)
    for number in (1, 2):
        with suppress(OSError):  # it is not there, as where nobody listens
            kept[number] = os.dup(number)
    try:
        yield
    finally:
        for name, value in variables.items():
            os.environ.setdefault(name, value)
        for number, copy in kept.items():
            with suppress(OSError):  # the copy was closed too
                os.dup2(copy, number)
                os.close(copy)
        for name, number in (("stdout", 1), ("stderr", 2)):
            if number in kept and getattr(sys, name).closed:
                setattr(sys, name, os.fdopen(number, "w", closefd=False))
