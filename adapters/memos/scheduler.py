"""The package's scheduler, which pages memories into the working tier by what is asked."""

from __future__ import annotations

import contextlib
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

from steeltrap.adapters.logged import HalfDone
from steeltrap.adapters.memos.parts import Parts

__all__ = ["Scheduler"]

_NOT_NEEDED: Final = "cannot unpack non-iterable NoneType object"
"""How the package ends where it finds that the working tier has all that is asked for."""


class Scheduler:
    """Handles questions at once, in place of the threads and queues of the package.

    Args:
        parts: whose model it asks.
        folder: takes its own database.
    """

    def __init__(self, parts: Parts, folder: Path) -> None:
        configs: Any = import_module("memos.configs.mem_scheduler")
        schedulers: Any = import_module("memos.mem_scheduler.general_scheduler")
        labels: Any = import_module("memos.mem_scheduler.schemas.task_schemas")
        sql: Any = import_module("sqlalchemy")
        monitors: Any = import_module("memos.mem_scheduler.schemas.monitor_schemas")
        # The window of questions drops the oldest when it is full. It says that it never waits
        # for room, and waits for five seconds first.
        monitors.QueryMonitorQueue.put.__defaults__ = (False, None)
        self._message: Any = import_module(
            "memos.mem_scheduler.schemas.message_schemas"
        ).ScheduleMessageItem
        self._label: str = labels.MEM_UPDATE_TASK_LABEL
        self._parts = parts
        config = configs.GeneralSchedulerConfig(
            enable_parallel_dispatch=False, enable_activation_memory=False
        )
        self._scheduler: Any = schedulers.GeneralScheduler(config)
        self._engine: Any = sql.create_engine(f"sqlite:///{folder / 'scheduler.db'}")
        sql.event.listen(self._engine, "connect", _unhurried)
        self._scheduler.initialize_modules(chat_llm=parts.llm, db_engine=self._engine)
        self._handler: Any = self._scheduler.dispatcher.handlers[self._label]

    def asked(self, tenant: str, cube: Any, question: str) -> None:
        """Let it see a question, and page.

        Raises:
            HalfDone: the model did not answer; the search before it was made.
        """
        self._scheduler.mem_cube = SimpleNamespace(text_mem=cube)
        message = self._message(
            user_id=tenant, mem_cube_id=tenant, label=self._label, content=question
        )
        try:
            self._handler.batch_handler(tenant, tenant, [message])
        except TypeError as error:
            if _NOT_NEEDED not in str(error):
                raise
        finally:
            self._parts.raise_unanswered(HalfDone)

    def forget(self, tenant: str, texts: set[str]) -> None:
        """Drop memories from what it keeps for itself; otherwise it would page them in again."""
        kept = self._scheduler.monitor.working_memory_monitors.get(tenant, {}).get(tenant)
        if kept is not None:
            kept.obj.memories = [one for one in kept.obj.memories if one.memory_text not in texts]

    def close(self) -> None:
        """Close its database."""
        with contextlib.suppress(Exception):
            self._scheduler.monitor.close()
        self._engine.dispose()


def _unhurried(connection: Any, _: Any) -> None:
    """Wait for no disk: what the scheduler keeps lives as long as a run."""
    connection.execute("PRAGMA synchronous = OFF")
