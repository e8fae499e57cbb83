"""How adapters keep what they promise where several threads call them at once.

Two locks do, each for its purpose: one for what is kept, held while it is looked at or changed, and
one a tenant for what it tells, held while a turn is worked through, models included. So tenants wait
for each other's stores and never for each other's models, and a turn is read knowing what the one
before it has told.

Who does not claim it, and why:

| systems | why |
|---|---|
| mem0, mem0-classic, graphiti, langmem, memos, mirix, oracle | the script's time stands in the place of the package's clock, one for the whole process, and so do the names of whose turn it is |
| everos | its server files entries under the time of its latest request |
| letta, memstate | files, or a checkout, that one agent works on at a time |
| helix-recipe | its graph is one structure without a lock, and a turn works on it in several passes |
| mirix-client | the maker's client shares a session of `requests`, which promises nothing of threads |
| summary, memgpt, mirix, generative-agents, a-mem, mem-alpha, memory-r1, reflexion | a turn puts a new state in the place of the old one, and would undo what came in between |
| ideal and its mutants | their truth is that of one order |
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

__all__ = ["Turnstiles", "alone"]

M = TypeVar("M")
P = ParamSpec("P")
T = TypeVar("T")


class Turnstiles:
    """A lock for each tenant, made when it is first asked for."""

    def __init__(self) -> None:
        self._making = threading.Lock()
        self._locks: dict[str, threading.RLock] = {}

    def of(self, tenant: str) -> threading.RLock:
        """The tenant's."""
        with self._making:
            return self._locks.setdefault(tenant, threading.RLock())


def alone(method: Callable[Concatenate[M, P], T]) -> Callable[Concatenate[M, P], T]:
    """A method that holds its object's `_lock`, which it may hold already."""

    @wraps(method)
    def held(self: M, /, *args: P.args, **kwargs: P.kwargs) -> T:
        lock: Any = self._lock  # type: ignore[attr-defined]
        with lock:
            return method(self, *args, **kwargs)

    return held
