"""The package's client as an adapter, whatever store it works on."""

from __future__ import annotations

import abc
import logging
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar, Final

from steeltrap.adapters import present
from steeltrap.adapters.kept import names
from steeltrap.adapters.logged import heard
from steeltrap.adapters.present import Present
from steeltrap.harness.memory import Item, MemoryFault, Query, Subject, Utterance
from steeltrap.harness.models import Models

__all__ = ["AgentMemory", "made", "models_of"]

_PASSED_OVER: Final = (
    "Memory extraction response validation failed",
    "Memory extraction response exceeded",
    "Memory extraction prompt truncation could not fit",
    "Memory link-resolution response validation failed",
    "Automatic memory-link persistence failed",
    "Automatic memory-link resolution failed",
    "Thread summary candidate generation failed",
    "Thread summary candidate generation returned no usable summary",
    "Thread extraction safe-summary preparation deferred",
    "Thread extraction summary refresh deferred",
    "Thread summary refresh deferred",
)
"""Beginnings of lines of the level of debugging that tell of something left undone."""
_heard = partial(
    heard, "oracleagentmemory", level=logging.DEBUG,
    counts=lambda line: line.levelno >= logging.WARNING or line.getMessage().startswith(_PASSED_OVER),
)  # fmt: skip
"""Raise what the package passes over as if nothing had happened; see `adapters.logged`."""

MEMORIES: Final = ("memory", "fact", "guideline", "preference")
"""Kinds of what the package extracts."""
AGENT: Final = "assistant"
"""Of all threads. One that is made without an agent gets an agent of its own, and what is extracted
is linked to memories of the same agent alone."""
LIFECYCLE: Final = ("supersedes", "refines", "duplicates")
"""Links that put the memory that they point at out of force."""
LOOKED_UP: Final = 10
"""How many records the question of a history may find: the default of `search`."""
QUIET: Final = {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_MODE": "PRODUCTION"}
"""LiteLLM shall neither download a price list nor read files of settings."""


class AgentMemory(abc.ABC):
    """Oracle Agent Memory's client: each tenant is a user, each session a thread.

    See README.md beside this file.

    Args:
        record_types: what a search goes through; empty: all, as is the package's default.
        ttl_days: after which messages, and the memories made of them, expire; None: never, as is
            the package's default.
    """

    name: ClassVar[str]

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
        self._client: Any = None
        self._store: Any = None
        self._threads: dict[tuple[str, str], Any] = {}
        self._present = self._looking = Present()

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
        self._present, self._looking = Present(), Present()
        self._present.enter("")
        for module in ("oracleagentmemory._idgenerator", "oracleagentmemory.core.thread"):
            present.install(import_module(module))
        self._begin(folder, self._models)

    def close(self) -> None:
        """Release the store."""
        self._threads = {}
        if self._client is not None:
            self._client.close()
        self._end()
        self._client = self._store = None

    # ------------------------------------------------------------ how the stores differ

    @abc.abstractmethod
    def _begin(self, folder: Path, models: Models) -> None:
        """Make the client, on a store without a record of the run's users."""

    @abc.abstractmethod
    def _end(self) -> None:
        """Release the store, if there is one."""

    def _user(self, tenant: str) -> str:
        """The package's user for a tenant."""
        return tenant

    def _id(self, record: Any) -> str:
        """How a record is called outside."""
        return str(record.id)

    # ------------------------------------------------------------ operators

    def ingest(self, turn: Utterance) -> None:
        """Append one message to its session's thread, and have memories extracted from it.

        Raises:
            MemoryFault: a model did not answer, and the message is not stored.
        """
        message = {
            "role": turn.role, "content": turn.text, "timestamp": turn.at,
            "metadata": {"turn": turn.id},
        }  # fmt: skip
        expires = {} if self._ttl_days is None else {"ttl_days": self._ttl_days}
        with self._at_work(turn.tenant, turn.at, writes=True), _heard():
            thread = self._thread(turn.tenant, turn.session)
            try:
                thread.add_messages([message], **expires)
            except Exception as error:
                if self._holds(turn):
                    raise
                raise MemoryFault(f"{self.name}: {error}") from error

    def _holds(self, turn: Utterance) -> bool:
        """Whether the message of a turn is stored."""
        user = self._user(turn.tenant)
        return bool(self._client.list_messages(user_id=user, metadata_filter={"turn": turn.id}))

    def retrieve(self, query: Query) -> Sequence[Item]:
        """The client's own search of the user, in every thread."""
        with self._at_work(query.tenant, query.at):
            if query.limit < 1 or not query.text.strip():
                return []  # the package refuses both
            found = self._found(query.tenant, query.text, query.limit, self._kinds)
            return [self._item(result.record, score=1.0 - result.distance) for result in found]

    def _found(self, tenant: str, text: str, limit: int, kinds: list[str]) -> list[Any]:
        only = {"record_types": kinds} if kinds else {}
        try:
            found: list[Any] = self._client.search(
                text, user_id=self._user(tenant), agent_id=AGENT, max_results=limit, **only
            )
        except Exception as error:  # a search changes nothing
            raise MemoryFault(f"{self.name}: {error}") from error
        return found

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
            for record in self._client.list_memories(
                user_id=self._user(subject.tenant), limit=None
            ):
                if topic in record.content.casefold():
                    found[record.id] = self._item(record)
            if subject.text.strip():
                for result in self._found(subject.tenant, subject.text, LOOKED_UP, list(MEMORIES)):
                    found.setdefault(result.record.id, self._item(result.record))
        return [item for _, item in sorted(found.items(), key=lambda one: _age(*one))]

    def erase(self, tenant: str, subject: Subject | None) -> None:
        """Delete the user with all that is the user's; or the memories and messages that name the
        subject (`kept.names`), with the messages of which such memories were made.
        """
        with self._at_work(tenant, writes=True):
            if subject is None:
                self._client.delete_user(self._user(tenant), cascade=True)
                self._threads = {key: one for key, one in self._threads.items() if key[0] != tenant}
            else:
                self._forget(self._user(tenant), subject)

    def _forget(self, user: str, subject: Subject) -> None:
        memories = self._client.list_memories(user_id=user, limit=None)
        messages = self._client.list_messages(user_id=user, limit=None)
        about = names(subject, *map(_text, memories), *map(_text, messages))
        gone = [memory for memory in memories if about(_text(memory))]
        sources = {_turn(memory) for memory in gone} - {None}
        for memory in gone:
            self._client.delete_memory(memory.id)
        for message in messages:
            if about(_text(message)) or _turn(message) in sources:
                self._client.get_thread(message.thread_id).delete_message(message.id)

    # ------------------------------------------------------------ helpers

    def _thread(self, tenant: str, session: str) -> Any:
        key = tenant, session
        if key not in self._threads:
            user = self._user(tenant)
            name = sha256(f"{len(user)}:{user}{session}".encode()).hexdigest()[:32]
            self._threads[key] = self._client.create_thread(
                thread_id=name, user_id=user, agent_id=AGENT
            )
        return self._threads[key]

    def _item(self, record: Any, score: float | None = None) -> Item:
        turn = _turn(record)
        return Item(
            _text(record),
            id=self._id(record),
            sources=(turn,) if turn else None,
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
    def _at_work(self, tenant: str, at: str = "", *, writes: bool = False) -> Iterator[None]:
        """Do something for a tenant.

        The package also names what it only notes. Those names are counted apart where nothing is
        written, so that what is looked at does not change what is stored later.
        """
        self._opened()
        if not tenant:
            raise MemoryFault(f"{self.name}: a tenant without a name can be no user")
        user = self._user(tenant)
        self._present.enter(user, at)
        if not writes:
            self._looking.enter(user, self._present.at)
        yield


def models_of(models: Models) -> tuple[Any, Any]:
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


def made(**store: Any) -> Any:
    """The package's client. What it would do in the background it does at once."""
    core: Any = import_module("oracleagentmemory.core")
    config = core.MemoryExtractionConfig(extraction_mode=core.MemoryExtractionMode.INLINE)
    return core.OracleAgentMemory(memory_extraction_config=config, **store)


def _age(name: str, item: Item) -> tuple[str, str]:
    return item.valid_from or "", name


def _text(record: Any) -> str:
    content = record.content
    if isinstance(content, str):
        return content
    return "\n".join(part.text for part in content if hasattr(part, "text"))


def _turn(record: Any) -> str | None:
    """The turn of a message; memories inherit it from the message of which they were made."""
    turn = (record.metadata or {}).get("turn")
    return turn if isinstance(turn, str) else None


def _minute(stamp: str | None) -> str | None:
    """A time of the package, which is in UTC, as scripts write it."""
    return None if stamp is None else stamp[:16].replace(" ", "T")
