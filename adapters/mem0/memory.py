"""The adapter."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar, Final

from steeltrap.adapters import logged
from steeltrap.adapters.present import Present, install
from steeltrap.harness.memory import Item, MemoryFault, Query, Subject, Utterance
from steeltrap.harness.models import Models

__all__ = ["Mem0", "heard"]

_NOTICES: Final = ("fastembed not installed", "Failed to load spaCy", "Resetting")
"""Warnings at the start that tell of an option which is not installed."""
heard = partial(
    logged.heard, "mem0", counts=lambda line: not line.getMessage().startswith(_NOTICES)
)
"""Raise what the package logs and otherwise passes over; see `adapters.logged`."""

ALL: Final = 1_000_000
"""A listing leaves nothing out; without a number it stops at 20 or 100."""
LOOKED_UP: Final = 20
"""How many memories the question of a history may find: the default of `search`."""


class Mem0:
    """mem0ai 2.x: what a model extracts from each turn is added to an embedded Qdrant store.

    A tenant is a `user_id`; sessions are not told apart. See README.md beside this file.
    """

    name: ClassVar = "mem0"
    collection: ClassVar = "mem0"
    nothing_stored: tuple[str, ...] = ("Error parsing extraction response",)
    """What the package logs when it passes over an answer and stores nothing."""

    def __init__(self) -> None:
        self._models: Models | None = None
        self._folder = Path()
        self._memory: Any = None
        self._present = Present()
        self._told: dict[str, dict[str, list[str]]] = {}

    def connect(self, models: Models) -> None:
        """Take the address of the models."""
        self._models = models

    def open(self, folder: Path) -> None:
        """Begin an empty memory in `folder`/mem0.

        Raises:
            MemoryFault: it was not connected.
        """
        self.close()
        if self._models is None:
            raise MemoryFault(f"{self.name}: no models; call connect(models) before open(folder)")
        self._folder = folder / "mem0"
        shutil.rmtree(self._folder, ignore_errors=True)
        self._folder.mkdir(parents=True)
        self._present, self._told = Present(), {}
        self._present.enter("")
        # Read while the package is imported; a key of OpenRouter would win over the address.
        os.environ |= {"MEM0_TELEMETRY": "False", "MEM0_DIR": str(self._folder)}
        os.environ.pop("OPENROUTER_API_KEY", None)
        self._memory = self._made(self._models)
        for part in self._clients():
            part.client = part.client.with_options(
                timeout=self._models.timeout_s, max_retries=self._models.retries
            )

    def close(self) -> None:
        """Release the stores; their files stay."""
        if self._memory is not None:
            self._memory.vector_store.client.close()
            self._memory.close()
        self._memory = None

    # ------------------------------------------------------------ how this version differs

    def _made(self, models: Models) -> Any:
        """The package's memory, made anew."""
        main = import_module("mem0.memory.main")
        install(main, import_module("mem0.configs.prompts"))
        return main.Memory.from_config(self._config(models))

    def _config(self, models: Models) -> dict[str, Any]:
        access = {"api_key": models.key, "openai_base_url": models.openai_url}
        return {
            "llm": {
                "provider": "openai",
                "config": {"model": models.chat, "temperature": 0.0, **access},
            },
            "embedder": {
                "provider": "openai",
                "config": {"model": models.embedding, "embedding_dims": models.dimension, **access},
            },
            "vector_store": {
                "provider": "qdrant",
                "config": {
                    "collection_name": self.collection,
                    "path": str(self._folder / "qdrant"),
                    "on_disk": True,
                    "embedding_model_dims": models.dimension,
                },
            },
            "history_db_path": str(self._folder / "history.db"),
        }

    def _clients(self) -> list[Any]:
        """Whatever asks models."""
        return [self._memory.llm, self._memory.embedding_model]

    def _found(self, tenant: str, text: str, limit: int) -> dict[str, Any]:
        found: dict[str, Any] = self._memory.search(text, filters={"user_id": tenant}, top_k=limit)
        return found

    def _listed(self, tenant: str) -> dict[str, Any]:
        listed: dict[str, Any] = self._memory.get_all(filters={"user_id": tenant}, top_k=ALL)
        return listed

    # ------------------------------------------------------------ operators

    def ingest(self, turn: Utterance) -> None:
        """Have the package infer from one message what to remember."""
        said = [{"role": turn.role, "content": turn.text}]
        with self._at_work(turn.tenant, turn.at), heard(nothing_done=self.nothing_stored):
            done = self._memory.add(said, user_id=turn.tenant, metadata={"turn": turn.id})
            told = self._told.setdefault(turn.tenant, {})
            for each in done["results"]:
                told.setdefault(each["id"], []).append(each["memory"])

    def retrieve(self, query: Query) -> Sequence[Item]:
        """The package's own search, with at most `query.limit` results."""
        with self._at_work(query.tenant, query.at), heard():
            if query.limit < 1 or not query.text.strip():
                return []  # the package refuses both
            return self._served(self._found(query.tenant, query.text, query.limit), query.limit)

    def _served(self, found: dict[str, Any], limit: int) -> list[Item]:
        return [_item(memory) for memory in found["results"][:limit]]

    def settle(self) -> None:
        """Nothing runs in the background."""
        self._opened()

    def active(self, tenant: str) -> Sequence[Item]:
        """Every memory of the tenant, in the order in which they were made."""
        with self._at_work(tenant), heard():
            return [_item(memory) for memory in self._memories(tenant)]

    def _memories(self, tenant: str) -> list[dict[str, Any]]:
        listed: list[dict[str, Any]] = self._listed(tenant)["results"]
        return sorted(listed, key=lambda memory: str(memory["id"]))

    def history(self, subject: Subject) -> Sequence[Item]:
        """The package's history of each memory that is about the subject, oldest entry first.

        The package looks histories up by the id of a memory. Which memories are about a subject
        is decided here: those whose texts have ever named its topic, by what the package
        reported when it wrote them, and those that the subject's question finds now.
        """
        tenant, topic = subject.tenant, subject.topic.casefold()
        with self._at_work(tenant), heard():
            live = {str(memory["id"]): memory for memory in self._memories(tenant)}
            texts = {name: [memory["memory"]] for name, memory in live.items()}
            texts |= self._told.get(tenant, {})
            about = {name for name in texts if topic in "\n".join(texts[name]).casefold()}
            if subject.text.strip():
                found = self._found(tenant, subject.text, LOOKED_UP)["results"]
                about |= {str(memory["id"]) for memory in found}
            entries: list[Item] = []
            for name in sorted(about):
                entries += _entries(self._memory.history(name), live.get(name))
            return sorted(entries, key=lambda entry: entry.valid_from or "")

    def erase(self, tenant: str, subject: Subject | None) -> None:
        """Delete all of the tenant's memories in one call, or each that names the subject.

        It names it with topic and field; where none does so, with the topic alone.
        """
        with self._at_work(tenant), heard():
            if subject is None:
                self._memory.delete_all(user_id=tenant)
                return
            topic, field = subject.topic.casefold(), subject.field.casefold()
            named = [m for m in self._memories(tenant) if topic in m["memory"].casefold()]
            close = [m for m in named if field in m["memory"].casefold()]
            for memory in close or named:
                self._memory.delete(memory["id"])

    def size_bytes(self) -> int:
        """Bytes of the stores' files."""
        self._opened()
        return sum(path.stat().st_size for path in self._folder.rglob("*") if path.is_file())

    # ------------------------------------------------------------ helpers

    def _opened(self) -> Any:
        if self._memory is None:
            raise MemoryFault(
                f"{self.name}: not open; call open(folder) first, and nothing after close()"
            )
        return self._memory

    @contextmanager
    def _at_work(self, tenant: str, at: str = "") -> Iterator[None]:
        """Do something for a tenant; a model that gives no answer at all is a fault.

        So is a tenant without a name, which the package refuses before it does anything.
        """
        self._opened()
        self._present.enter(tenant, at)
        refused = () if tenant else (ValueError, import_module("mem0.exceptions").ValidationError)
        try:
            yield
        except (*self._unanswered(), *refused) as error:
            raise MemoryFault(f"{self.name}: {type(error).__name__}: {error}") from error

    def _unanswered(self) -> tuple[type[Exception], ...]:
        """What is raised when a model does not answer and nothing has been stored."""
        return import_module("openai").OpenAIError, import_module("mem0.exceptions").LLMError


def _item(memory: dict[str, Any]) -> Item:
    turn = (memory.get("metadata") or {}).get("turn")
    return Item(
        memory["memory"],
        id=str(memory["id"]),
        sources=(turn,) if turn else None,
        valid_from=_minute(memory["updated_at"] or memory["created_at"]),
        score=memory.get("score"),
    )


def _entries(rows: list[dict[str, Any]], live: dict[str, Any] | None) -> list[Item]:
    """The texts that one memory had; the last has the sources that the store still holds."""
    entries = []
    for row, later in zip(rows, [*rows[1:], None], strict=True):
        if row["new_memory"] is not None:
            entries.append(
                Item(
                    row["new_memory"],
                    id=row["memory_id"],
                    sources=_item(live).sources if live and later is None else None,
                    valid_from=_minute(row["updated_at"] or row["created_at"]),
                    valid_to=_minute(later["updated_at"] or later["created_at"]) if later else None,
                )
            )
    return entries


def _minute(stamp: str) -> str:
    """A time of the package, which is in UTC, as scripts write it."""
    return stamp[:16]
