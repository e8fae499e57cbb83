"""The adapter."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, TypeVar

from steeltrap.adapters.langmem import engine
from steeltrap.adapters.langmem.present import Present
from steeltrap.harness.memory import Item, MemoryFault, Query, Subject, Utterance
from steeltrap.harness.models import Models

__all__ = ["LangMem"]

T = TypeVar("T")
ALL: Final = 1_000_000
"""A listing leaves nothing out; without a number it stops at 10."""
QUIET: Final = {
    "LANGSMITH_TRACING": "false",
    "LANGSMITH_TRACING_V2": "false",
    "LANGCHAIN_TRACING": "false",
    "LANGCHAIN_TRACING_V2": "false",
}
"""LangSmith's tracing, which sends every prompt to its maker where it is on."""
_ESCAPES: Final = {"%": "%25", ".": "%2E", "\0": "%00"}
"""What the store does not take in a namespace, and the sign that writes it."""


class LangMem:
    """Has a model keep memories up to date: it adds, patches and removes them turn by turn.

    A tenant is a user; sessions are not told apart. See README.md beside this file.

    Args:
        enable_deletes: the model may remove memories too.
        query_limit: how many memories the model is shown with a turn.
    """

    def __init__(self, *, enable_deletes: bool = True, query_limit: int = 5) -> None:
        if query_limit < 4:
            raise ValueError(
                f"langmem: query_limit={query_limit}: with less than 4 the package looks for nothing"
            )
        self._settings: dict[str, Any] = {
            "enable_deletes": enable_deletes, "query_limit": query_limit,
        }  # fmt: skip
        self._models: Models | None = None
        self._manager: Any = None
        self._store: Any = None
        self._present = Present()

    def connect(self, models: Models) -> None:
        """Take the address of the models."""
        self._models = models

    def open(self, folder: Path) -> None:  # noqa: ARG002 - the store is in memory
        """Begin with an empty store.

        Raises:
            MemoryFault: it was not connected.
        """
        self.close()
        if self._models is None:
            raise MemoryFault("langmem: no models; call connect(models) before open(folder)")
        os.environ |= QUIET
        self._present = Present()
        self._present.enter("")
        self._manager, self._store = engine.made(self._models, **self._settings)

    def close(self) -> None:
        """Drop everything."""
        self._manager = self._store = None

    # ------------------------------------------------------------ operators

    def ingest(self, turn: Utterance) -> None:
        """Have the manager work one message into the memories."""
        message = {"role": turn.role, "content": turn.text}
        manager = self._opened()
        with engine.heard():
            written = self._at_work(
                turn.tenant, manager.invoke, {"messages": [message]}, at=turn.at
            )
        engine.check_written(self._store, written)

    def retrieve(self, query: Query) -> Sequence[Item]:
        """The manager's own search, with at most `query.limit` results."""
        manager = self._opened()
        if query.limit < 1:
            return []
        found = self._at_work(
            query.tenant, manager.search, query=query.text, limit=query.limit, at=query.at
        )
        return [_item(one) for one in found]

    def settle(self) -> None:
        """Nothing runs in the background."""
        self._opened()

    def active(self, tenant: str) -> Sequence[Item]:
        """Every memory of the tenant, in the order in which they were made."""
        return [_item(one) for one in self._memories(tenant)]

    def _memories(self, tenant: str) -> list[Any]:
        found = self._at_work(tenant, self._opened().search, limit=ALL)
        return sorted(found, key=lambda one: str(one.key))

    def erase(self, tenant: str, subject: Subject | None) -> None:
        """Delete all of the tenant's memories, or each that names the subject.

        It names it with topic and field; where none does so, with the topic alone.
        """
        gone = self._memories(tenant)
        if subject is not None:
            topic, field = subject.topic.casefold(), subject.field.casefold()
            named = [one for one in gone if topic in _text(one).casefold()]
            gone = [one for one in named if field in _text(one).casefold()] or named
        for one in gone:
            self._at_work(tenant, self._manager.delete, one.key)

    # ------------------------------------------------------------ helpers

    def _opened(self) -> Any:
        if self._manager is None:
            raise MemoryFault(
                "langmem: not open; call open(folder) first, and nothing after close()"
            )
        return self._manager

    def _at_work(
        self, tenant: str, call: Callable[..., T], *arguments: Any, at: str = "", **named: Any
    ) -> T:
        """Call the manager for a tenant; a model that gives no answer is a fault.

        One thing is done at a time, because the manager writes memories in as many threads as it
        may have, and their order would be chance.
        """
        self._present.enter(tenant, at)
        config = {"configurable": {"langgraph_user_id": _label(tenant)}, "max_concurrency": 1}
        try:
            return call(*arguments, config=config, **named)
        except engine.unanswered() as error:
            raise MemoryFault(f"langmem: the model could not be asked: {error}") from error


def _label(tenant: str) -> str:
    """The tenant's name as the store takes it: not empty, without dots."""
    return "".join(_ESCAPES.get(sign, sign) for sign in tenant) or "%"


def _text(one: Any) -> str:
    return str(one.value.content)


def _item(one: Any) -> Item:
    """A memory; where a question has no words, its vector has no length and the score is no number."""
    updated: datetime = one.updated_at
    return Item(
        _text(one),
        id=str(one.key),
        valid_from=updated.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="minutes"),
        score=one.score if one.score is not None and math.isfinite(one.score) else None,
    )
