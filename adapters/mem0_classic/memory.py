"""The adapter."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from concurrent import futures
from functools import partial
from importlib import import_module
from types import SimpleNamespace
from typing import Any, ClassVar, Final

from steeltrap.adapters.mem0.memory import ALL, Mem0, heard
from steeltrap.adapters.present import Present, install
from steeltrap.harness.memory import Item
from steeltrap.harness.models import Models

__all__ = ["Mem0Classic"]

_TODAY: Final = re.compile(r"Today's date is \d{4}-\d{2}-\d{2}")
_IN_TURN: Final = SimpleNamespace(
    futures=SimpleNamespace(
        ThreadPoolExecutor=partial(futures.ThreadPoolExecutor, max_workers=1), wait=futures.wait
    )
)
"""Vector store and graph are written and read one after the other: the package does both at once,
and which of their calls reaches the model first would be chance."""


class Mem0Classic(Mem0):
    """mem0ai 1.x: facts are extracted, then a model adds, updates or deletes memories by them.

    Args:
        graph: keep a graph of entities and relations in an embedded kuzu beside the vectors.
        threshold: how similar two names have to be for the graph to take them for one entity;
            by default the package's own default.
    """

    name: ClassVar = "mem0-classic"
    nothing_stored: tuple[str, ...] = (
        "Error in new_retrieved_facts",
        "Error in new memory actions response",
        "Empty response from LLM",
        "Invalid JSON response",
    )

    def __init__(self, *, graph: bool = False, threshold: float = 0.7) -> None:
        super().__init__()
        self._graph = graph
        self._threshold = threshold
        if graph:
            self.nothing_stored = ()  # the graph may have been written

    def _made(self, models: Models) -> Any:
        main: Any = import_module("mem0.memory.main")
        install(main)
        main.concurrent = _IN_TURN
        utils = import_module("mem0.memory.utils")
        main.get_fact_retrieval_messages = _dated(utils.get_fact_retrieval_messages)
        memory = main.Memory.from_config(self._config(models))
        if self._graph:
            memory.graph.graph.set_max_threads_for_exec(1)  # rows come in one order
        return memory

    def _config(self, models: Models) -> dict[str, Any]:
        config = super()._config(models)
        if self._graph:
            config["graph_store"] = {
                "provider": "kuzu",
                "config": {"db": str(self._folder / "graph.kuzu")},
                "threshold": self._threshold,
            }
        return config

    def _clients(self) -> list[Any]:
        graph = self._memory.graph
        return [*super()._clients(), *([graph.llm, graph.embedding_model] if graph else [])]

    def close(self) -> None:
        """Release the stores; their files stay."""
        if self._memory is not None and self._memory.graph is not None:
            self._memory.graph.graph.close()
            self._memory.graph.db.close()
        super().close()

    def _found(self, tenant: str, text: str, limit: int) -> dict[str, Any]:
        found: dict[str, Any] = self._memory.search(text, user_id=tenant, limit=limit)
        return found

    def _listed(self, tenant: str) -> dict[str, Any]:
        listed: dict[str, Any] = self._memory.get_all(user_id=tenant, limit=ALL)
        return listed

    def _served(self, found: dict[str, Any], limit: int) -> list[Item]:
        """Memories, then relations of the graph; where there are many of both, half and half."""
        relations = [_relation(each) for each in found.get("relations") or []][: limit // 2]
        return [*super()._served(found, limit - len(relations)), *relations]

    def active(self, tenant: str) -> Sequence[Item]:
        """Every memory of the tenant, oldest first, then every relation of its graph."""
        memories = super().active(tenant)
        if not self._graph:
            return memories
        with self._at_work(tenant), heard():
            relations = self._listed(tenant)["relations"]
        return [*memories, *sorted(map(_relation, relations), key=lambda item: item.text)]

    def _unanswered(self) -> tuple[type[Exception], ...]:
        return () if self._graph else (import_module("openai").OpenAIError,)


def _dated(messages: Callable[..., tuple[str, str]]) -> Callable[..., tuple[str, str]]:
    """The extraction prompt with the script's date; the package writes that of its import."""

    def dated(message: str, is_agent_memory: bool = False) -> tuple[str, str]:
        system, user = messages(message, is_agent_memory)
        return _TODAY.sub(f"Today's date is {Present.at_work.at[:10]}", system), user

    return dated


def _relation(edge: dict[str, str]) -> Item:
    """A relation as a line of text; the graph writes names in small letters with underscores."""
    target = edge.get("destination") or edge.get("target") or ""
    return Item(f"{edge['source']} -- {edge['relationship']} -- {target}".replace("_", " "))
