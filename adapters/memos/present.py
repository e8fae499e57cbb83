"""The script's time and stable ids, where the package would take the wall clock and chance."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, tzinfo
from importlib import import_module
from types import SimpleNamespace
from typing import Any, Final
from uuid import UUID

from steeltrap.adapters import present

__all__ = ["Present", "install"]

_STAMPED: Final = (
    "memos.memories.textual.item",
    "memos.memories.textual.tree_text_memory.organize.manager",
    "memos.graph_dbs.postgres",
)
"""Modules that stamp or name what is stored."""


class Present(present.Present):
    """The same; each look at the clock is a microsecond later than the one before.

    The age of a memory decides what is evicted: so what was stored in one minute has an order.
    """

    at_work: Present

    def __init__(self) -> None:
        super().__init__()
        self._now = datetime(1970, 1, 1)

    def enter(self, tenant: str, at: str = "", *, asked: bool = False) -> None:
        """Let the package see this present from now on; without `at`, time stands still.

        What is made while a question is answered has ids of its own: who was told the same has the
        same ids, whatever was asked in between.
        """
        if at:
            self._now = max(self._now, datetime.fromisoformat(at))
        super().enter(f"{tenant}?" if asked else f"{tenant}.", at)
        Present.at_work = self

    def now(self) -> datetime:
        """The script's time, in UTC without saying so."""
        self._now += timedelta(microseconds=1)
        return self._now


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
