"""One after the other, where the package would do several things at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from importlib import import_module
from typing import Any, Final, Self

__all__ = ["install"]

_THREADED: Final = (
    "memos.mem_reader.simple_struct",
    "memos.memories.textual.tree_text_memory.organize.manager",
    "memos.memories.textual.tree_text_memory.retrieve.recall",
    "memos.memories.textual.tree_text_memory.retrieve.searcher",
)
"""Modules that start threads, whose order would decide ids, ages and the order of equal ranks."""


class _InTurn:
    """An executor that does everything at once, in its caller's thread."""

    def __init__(self, *_: Any, **__: Any) -> None:
        pass

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def submit(self, work: Callable[..., Any], *given: Any, **named: Any) -> Future[Any]:
        done: Future[Any] = Future()
        try:
            done.set_result(work(*given, **named))
        except Exception as error:
            done.set_exception(error)
        return done

    def map(self, work: Callable[..., Any], *given: Iterable[Any]) -> Iterator[Any]:
        return map(work, *given)

    def shutdown(self, *_: Any, **__: Any) -> None:
        pass


def install() -> None:
    """Let the modules of the package work in turn."""
    for name in _THREADED:
        module: Any = import_module(name)
        module.ContextThreadPoolExecutor = _InTurn
        if hasattr(module, "as_completed"):
            module.as_completed = lambda futures, **_: iter(futures)
