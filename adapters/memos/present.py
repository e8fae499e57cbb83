"""The script's time and stable ids, where the package would take the wall clock and chance."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta, tzinfo
from hashlib import sha256
from importlib import import_module
from types import SimpleNamespace
from typing import Any, Final
from uuid import UUID

__all__ = ["Present", "install"]

_STAMPED: Final = (
    "memos.memories.textual.item",
    "memos.memories.textual.tree_text_memory.organize.manager",
    "memos.graph_dbs.postgres",
)
"""Modules that stamp or name what is stored."""


class Present:
    """When and for whom one memory works, and how many ids it has given each tenant.

    The age of a memory decides what is evicted, so each look at the clock is a microsecond later
    than the one before: what was stored in one minute has an order.
    """

    at_work: Present
    """Of the memory that does something now; one at a time in a process."""

    def __init__(self) -> None:
        self._now = datetime(1970, 1, 1)
        self._tenant = ""
        self._given: Counter[str] = Counter()

    def enter(self, tenant: str, at: str = "", *, asked: bool = False) -> None:
        """Let the package see this present from now on; without `at`, time stands still.

        What is made while a question is answered has ids of its own: who was told the same has the
        same ids, whatever was asked in between.
        """
        if at:
            self._now = max(self._now, datetime.fromisoformat(at))
        self._tenant = f"{tenant}?" if asked else f"{tenant}."
        Present.at_work = self

    def now(self) -> datetime:
        """The script's time, in UTC without saying so."""
        self._now += timedelta(microseconds=1)
        return self._now

    def uuid4(self) -> UUID:
        """The tenant's next id: other tenants do not matter."""
        self._given[self._tenant] += 1
        name = sha256(self._tenant.encode()).digest()[:8]
        return UUID(int=int.from_bytes(name) << 64 | self._given[self._tenant])


class _Datetime(datetime):
    @classmethod
    def now(cls, tz: tzinfo | None = None) -> datetime:  # type: ignore[override]
        return Present.at_work.now().replace(tzinfo=tz)

    @classmethod
    def utcnow(cls) -> datetime:  # type: ignore[override]
        return Present.at_work.now()


def install() -> None:
    """Put the script's time and stable ids into the modules of the package."""
    for name in _STAMPED:
        module: Any = import_module(name)
        module.datetime = _Datetime
        if hasattr(module, "uuid"):
            module.uuid = SimpleNamespace(uuid4=lambda: Present.at_work.uuid4(), UUID=UUID)
    monitor: Any = import_module("memos.mem_scheduler.monitors.general_monitor")
    monitor.get_utc_now = lambda: Present.at_work.now().replace(tzinfo=UTC)
