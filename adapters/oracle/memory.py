"""The adapter."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar, Final

from steeltrap.adapters.kept import names
from steeltrap.adapters.mem0 import present
from steeltrap.adapters.mem0.present import Present
from steeltrap.adapters.oracle.logged import heard
from steeltrap.harness.memory import Item, MemoryFault, Query, Subject, Utterance
from steeltrap.harness.models import Models

__all__ = ["Oracle"]

MEMORIES: Final = ("memory", "fact", "guideline", "preference")
"""Kinds of what the package extracts."""
LIFECYCLE: Final = ("supersedes", "refines", "duplicates")
"""Links that put the memory that they point at out of force."""
LOOKED_UP: Final = 10
"""How many records the question of a history may find: the default of `search`."""
QUIET: Final = {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_MODE": "PRODUCTION"}
"""LiteLLM shall neither download a price list nor read files of settings."""


class Oracle:
    """Oracle Agent Memory's client: each tenant is a user, each session a thread.

    The records lie in a store of ours, in SQLite. See README.md beside this file.

    Args:
        record_types: what a search goes through; empty: all, as is the package's default.
        ttl_days: after which messages, and the memories made of them, expire; None: never, as is
            the package's default.
    """

    name: ClassVar = "oracle"

    def __init__(self, *, record_types: Sequence[str] = (), ttl_days: int | None = None) -> None:
        unknown = set(record_types) - {"message", *MEMORIES}
        if unknown:
            raise ValueError(
                f"{self.name}: record_types: no such type: {', '.join(sorted(unknown))}"
            )
        if ttl_days is not None and ttl_days < 1:
            raise ValueError(f"{self.name}: ttl_days={ttl_days}: at least one day, or null")
        self._kinds = list(record_types)
        self._ttl_days = ttl_days
        self._models: Models | None = None
        self._folder = Path()
        self._client: Any = None
        self._store: Any = None
        self._threads: dict[tuple[str, str], Any] = {}
        self._present = Present()

    def connect(self, models: Models) -> None:
        """Take the address of the models."""
        self._models = models

    def open(self, folder: Path) -> None:
        """Begin an empty memory.

        Raises:
            MemoryFault: it was not connected, or its store cannot be reached.
        """
        self.close()
        if self._models is None:
            raise MemoryFault(f"{self.name}: no models; call connect(models) before open(folder)")
        os.environ |= QUIET
        self._present = Present()
        self._present.enter("")
        for module in ("oracleagentmemory._idgenerator", "oracleagentmemory.core.thread"):
            present.install(import_module(module))
        self._begin(folder, self._models)

    def close(self) -> None:
        """Release the store; its file stays."""
        self._threads = {}
        if self._client is not None:
            self._client.close()
        self._end()
        self._client = self._store = None

    # ------------------------------------------------------------ how the stores differ

    def _begin(self, folder: Path, models: Models) -> None:
        """Make the client on an empty store."""
        self._folder = folder / self.name
        shutil.rmtree(self._folder, ignore_errors=True)
        self._folder.mkdir(parents=True)
        llm, embedder = _models(models)
        store = import_module("steeltrap.adapters.oracle.store").LocalStore(
            self._folder / "records.sqlite",
            embedder,
            now=lambda: self._present.at,
            name=lambda: str(self._present.uuid4()),
        )
        self._store = store
        self._client = _client(store=store, llm=llm)

    def _end(self) -> None:
        if self._store is not None:
            self._store.close()

    def _user(self, tenant: str) -> str:
        """The package's user for a tenant."""
        return tenant

    # ------------------------------------------------------------ operators

    def ingest(self, turn: Utterance) -> None:
        """Append one message to its session's thread, and have memories extracted from it."""
        message = {
            "role": turn.role, "content": turn.text, "timestamp": turn.at,
            "metadata": {"turn": turn.id},
        }  # fmt: skip
        expires = {} if self._ttl_days is None else {"ttl_days": self._ttl_days}
        with self._at_work(turn.tenant, turn.at), heard():
            self._thread(turn.tenant, turn.session).add_messages([message], **expires)

    def retrieve(self, query: Query) -> Sequence[Item]:
        """The client's own search of the user, in every thread."""
        with self._at_work(query.tenant, query.at):
            if query.limit < 1 or not query.text.strip():
                return []  # the package refuses both
            return self._found(query.tenant, query.text, query.limit)

    def _found(self, tenant: str, text: str, limit: int) -> list[Item]:
        kinds = {"record_types": self._kinds} if self._kinds else {}
        found = self._client.search(text, user_id=self._user(tenant), max_results=limit, **kinds)
        return [
            self._item(result.record, score=1.0 - result.distance)
            for result in found
            if result.record.record_type in ("message", *MEMORIES)
        ]

    def settle(self) -> None:
        """Nothing to wait for: memories are extracted before a call returns."""
        self._opened()

    def active(self, tenant: str) -> Sequence[Item]:
        """Every record of the tenant that a search goes through, oldest first."""
        with self._at_work(tenant):
            return [self._item(record) for record in self._records(tenant)]

    def _records(self, tenant: str) -> list[Any]:
        user = self._user(tenant)
        records: list[Any] = []
        if not self._kinds or "message" in self._kinds:
            records += self._client.list_messages(user_id=user, limit=None)
        records += [
            record
            for record in self._client.list_memories(user_id=user, limit=None)
            if not self._kinds or record.record_type in self._kinds
        ]
        return sorted(records, key=lambda one: (str(one.timestamp), str(one.id)))

    def history(self, subject: Subject) -> Sequence[Item]:
        """The memories about the subject, oldest first, invalid ones with their end.

        The package keeps a memory that another one supersedes, and the link between the two. Which
        memories are about a subject is decided here: those that name its topic, and those that its
        question finds.
        """
        topic = subject.topic.casefold()
        with self._at_work(subject.tenant):
            found = {}
            for record in self._client.list_memories(user_id=self._user(subject.tenant), limit=None):
                if topic in record.content.casefold():
                    found[record.id] = self._item(record)
            if subject.text.strip():
                for result in self._client.search(
                    subject.text, user_id=self._user(subject.tenant), max_results=LOOKED_UP,
                    record_types=list(MEMORIES),
                ):  # fmt: skip
                    found.setdefault(result.record.id, self._item(result.record))
        return sorted(found.values(), key=lambda item: (item.valid_from or "", item.id or ""))

    def erase(self, tenant: str, subject: Subject | None) -> None:
        """Delete the user with all that is the user's, or each memory and message that names the
        subject (`kept.names`).
        """
        with self._at_work(tenant):
            user = self._user(tenant)
            if subject is None:
                self._client.delete_user(user, cascade=True)
                self._threads = {key: one for key, one in self._threads.items() if key[0] != tenant}
                return
            memories = self._client.list_memories(user_id=user, limit=None)
            messages = self._client.list_messages(user_id=user, limit=None)
            texts = {one.id: _text(one) for one in (*memories, *messages)}
            about = names(subject, *texts.values())
            for memory in memories:
                if about(texts[memory.id]):
                    self._client.delete_memory(memory.id)
            for message in messages:
                if about(texts[message.id]):
                    self._client.get_thread(message.thread_id).delete_message(message.id)

    def size_bytes(self) -> int:
        """Bytes of the store's file."""
        self._opened()
        return sum(path.stat().st_size for path in self._folder.rglob("*") if path.is_file())

    # ------------------------------------------------------------ helpers

    def _thread(self, tenant: str, session: str) -> Any:
        key = tenant, session
        if key not in self._threads:
            name = sha256(f"{len(tenant)}:{tenant}{session}".encode()).hexdigest()[:32]
            self._threads[key] = self._client.create_thread(
                thread_id=self._named(name), user_id=self._user(tenant)
            )
        return self._threads[key]

    def _named(self, name: str) -> str:
        """The package's name for a thread."""
        return name

    def _item(self, record: Any, score: float | None = None) -> Item:
        turn = (record.metadata or {}).get("turn")
        return Item(
            _text(record),
            id=str(record.id),
            sources=(turn,) if isinstance(turn, str) else None,
            valid_from=_minute(record.timestamp),
            valid_to=self._end_of(record),
            score=score,
        )

    def _end_of(self, record: Any) -> str | None:
        """Until when a memory holds: to the first that put it out of force, or as it says."""
        if record.status.value == "invalid":
            links = self._store.list_relations(
                target_record_id=record.id, target_record_type=record.record_type, limit=None
            )
            ends = [
                self._store.get(link.source_record_type, link.source_record_id).timestamp
                for link in links
                if link.relation_type in LIFECYCLE
            ]
            return _minute(min(ends)) if ends else None
        told = ((record.metadata or {}).get("$agent_memory") or {}).get("valid_to")
        return _minute(told) if isinstance(told, str) else None

    def _opened(self) -> Any:
        if self._client is None:
            raise MemoryFault(
                f"{self.name}: not open; call open(folder) first, and nothing after close()"
            )
        return self._client

    @contextmanager
    def _at_work(self, tenant: str, at: str = "") -> Iterator[None]:
        """Do something for a tenant; a model that gives no answer to a question is a fault."""
        self._opened()
        if not tenant:
            raise MemoryFault(f"{self.name}: a tenant without a name can be no user")
        self._present.enter(tenant, at)
        yield


def _models(models: Models) -> tuple[Any, Any]:
    """The package's own clients of the chat and the embedding model."""
    access = {"api_base": models.openai_url, "api_key": models.key, "trust_env": False}
    patience = {"timeout": models.timeout_s, "max_retries": models.retries}
    llm = import_module("oracleagentmemory.core.llms.llm").Llm(
        model=f"openai/{models.chat}", temperature=0.0, supports_vision=False, **access, **patience
    )
    embedder = import_module("oracleagentmemory.core.embedders.embedder").Embedder(
        model=f"openai/{models.embedding}", embedding_dimension=models.dimension, **access
    )
    return llm, embedder


def _client(**store: Any) -> Any:
    """The package's client. What it would do in the background it does at once."""
    core: Any = import_module("oracleagentmemory.core")
    config = core.MemoryExtractionConfig(extraction_mode=core.MemoryExtractionMode.INLINE)
    return core.OracleAgentMemory(memory_extraction_config=config, **store)


def _text(record: Any) -> str:
    content = record.content
    if isinstance(content, str):
        return content
    return "\n".join(part.text for part in content if hasattr(part, "text"))


def _minute(stamp: str | None) -> str | None:
    """A time of the package, which is in UTC, as scripts write it."""
    return None if stamp is None else stamp[:16].replace(" ", "T")
