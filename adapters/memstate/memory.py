"""The adapter."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any, ClassVar, Final, NamedTuple

import msgspec

from steeltrap.adapters.chat import Chat, prompts
from steeltrap.adapters.memstate.checkout import Checkout, Embedder
from steeltrap.adapters.present import Present
from steeltrap.harness.memory import Item, MemoryFault, Query, Subject, Utterance
from steeltrap.harness.models import Models

__all__ = ["Fact", "MemState", "Placed"]

TOPICS: Final = 8
"""How many topics a query finds: the prototype's default."""


class Fact(msgspec.Struct, frozen=True):
    """One thing that a message states, as the prompt asks for it."""

    topic: str
    field: str
    value: str
    related: str


class Placed(msgspec.Struct, frozen=True):
    """All that it states."""

    facts: list[Fact]


class _Graph(NamedTuple):
    """A tenant's."""

    executor: Any
    reasoner: Any


class MemState:
    """The executor and the reasoner of a checkout; what a message states is placed by a model.

    A tenant has a graph of its own; sessions are not told apart. See README.md beside this file.

    Args:
        checkout: folder of the checkout.
        placing: of prompts.toml; asks for topics, fields and values.
    """

    name: ClassVar = "memstate"

    def __init__(self, *, checkout: str = "", placing: str = "placing-1") -> None:
        entries = prompts(__package__)
        if placing not in entries:
            raise ValueError(f"memstate: placing: prompts.toml has no '{placing}'")
        self._path, self._prompt = checkout, entries[placing]
        self._models: Models | None = None
        self._chat = Chat(self.name)
        self._folder = Path()
        self._checkout: Checkout | None = None
        self._embedder: Embedder | None = None
        self._graphs: dict[str, _Graph] = {}
        self._present = Present()

    def connect(self, models: Models) -> None:
        """Take the address of the models."""
        self._models = models
        self._chat.connect(models)

    def open(self, folder: Path) -> None:
        """Begin with no graph, in `folder`/memstate.

        Raises:
            MemoryFault: there is no checkout, or it was not connected.
        """
        self.close()
        if self._models is None:
            raise MemoryFault("memstate: no models; call connect(models) before open(folder)")
        self._present = Present()
        self._present.enter("")
        checkout = Checkout(self._path)
        self._folder = folder / "memstate"
        shutil.rmtree(self._folder, ignore_errors=True)
        self._folder.mkdir(parents=True)
        self._chat.open()
        self._embedder = Embedder(self._models)
        self._checkout = checkout

    def close(self) -> None:
        """Let go of the graphs; their files stay."""
        self._graphs = {}
        self._chat.close()
        if self._embedder is not None:
            self._embedder.close()
        if self._checkout is not None:
            self._checkout.end()
        self._embedder = self._checkout = None

    # ------------------------------------------------------------ operators

    def ingest(self, turn: Utterance) -> None:
        """Have a message placed, and write each of its facts by one request of its own.

        Afterwards the reasoner is told, as the prototype's server tells it. There is no transaction
        over several requests: what fails between two of them leaves the first behind.
        """
        with self._at_work(turn.tenant, turn.at) as graph:
            for fact in self._placed(turn, graph):
                self._write(fact, turn, graph)
            graph.reasoner.run("ingest_complete")

    def _placed(self, turn: Utterance, graph: _Graph) -> list[Fact]:
        titles = "\n".join(json.dumps(title) for title in self._titles(graph.executor.store))
        message = json.dumps({"at": turn.at, "role": turn.role, "content": turn.text})
        asked = self._prompt.messages(topics=titles or "(none)", message=message)
        return self._chat.filled(asked, "placing", Placed).facts

    def _write(self, fact: Fact, turn: Utterance, graph: _Graph) -> None:
        """A new topic, a new field of one, or a new value of a field: the prototype's placements."""
        models, store = self._modules().models, graph.executor.store
        titles = self._titles(store)
        known = titles.get(fact.topic)
        value = models.FieldWrite(name=fact.field, value=fact.value, provenance=turn.id)
        related = titles.get(fact.related)
        edges = [models.EdgeWrite(to_topic_id=related, kind="related")] if related else []
        if known is None:
            placement = {"placement": "new_topic", "title": fact.topic}
        elif fact.field in store.list_fields_for_topic(known) and not edges:
            placement = {"placement": "version_field", "topic_id": known}
        else:
            placement = {"placement": "extend_topic", "topic_id": known}
        graph.executor.ingest(models.IngestRequest(**placement, fields=[value], edges=edges))

    def retrieve(self, query: Query) -> Sequence[Item]:
        """The fields of the topics that the prototype's query finds, earlier values after them."""
        with self._at_work(query.tenant, query.at) as graph:
            if query.limit < 1:
                return []
            asked = self._modules().models.QueryRequest(q=query.text, explain=True, top_k=TOPICS)
            found = graph.executor.query(asked).candidates
            graph.reasoner.run("query_complete")
            return [
                msgspec.structs.replace(item, score=bundle.similarity)
                for bundle in found
                for item in _items(
                    {field.name: field.history for field in bundle.fields}, bundle.topic_id
                )
            ][: query.limit]

    def settle(self) -> None:
        """Nothing runs in the background."""
        self._modules()

    # ------------------------------------------------------------ optional capabilities

    def active(self, tenant: str) -> Sequence[Item]:
        """All fields of all topics that are not archived, with their earlier values."""
        with self._at_work(tenant) as graph:
            store = graph.executor.store
            return [
                item
                for topic in sorted(store.list_topic_ids(include_archived=False))
                for item in _items(self._fields(store, topic), topic)
            ]

    def history(self, subject: Subject) -> Sequence[Item]:
        """The values of the subject's field, oldest first."""
        with self._at_work(subject.tenant) as graph:
            items = self._of(subject, graph)
        return sorted(items, key=lambda item: (item.valid_from or "", item.id or ""))

    def recover(self, subject: Subject) -> Sequence[Item]:
        """The same: a topic that is archived can still be had by its id."""
        return self.history(subject)

    def salience(self, subject: Subject) -> float | None:
        """The salience of the subject's topic: what decides about archiving."""
        with self._at_work(subject.tenant) as graph:
            topic = self._topic(subject, graph)
            return float(graph.executor.store.get_topic(topic)["salience"]) if topic else None

    def maintain(self, at: str) -> None:
        """Run the reasoner on every graph, as its scheduler does."""
        self._modules()
        for tenant in list(self._graphs):
            with self._at_work(tenant, at) as graph:
                graph.reasoner.run("cron")

    def erase(self, tenant: str, subject: Subject | None) -> None:
        """Delete the tenant's topics, or the field of the subject, and those that go by its name.

        A topic that has no field left is deleted with it; where no field is the subject's, so is
        its topic.
        """
        with self._at_work(tenant) as graph:
            store = graph.executor.store
            if subject is None:
                for topic in store.list_topic_ids(include_archived=True):
                    store.delete_topic(topic)
            elif topic := self._topic(subject, graph):
                fields = _about(subject, store.list_fields_for_topic(topic))
                for field in fields:
                    store.delete_field(topic, field)
                if not fields or not store.list_fields_for_topic(topic):
                    store.delete_topic(topic)

    def size_bytes(self) -> int:
        """Bytes of the graphs' files."""
        self._modules()
        return sum(path.stat().st_size for path in self._folder.rglob("*") if path.is_file())

    # ------------------------------------------------------------ helpers

    def _titles(self, store: Any) -> dict[str, str]:
        """Ids of the topics that are not archived, by title."""
        topics = sorted(store.list_topic_ids(include_archived=False))
        return {str(store.get_topic(topic)["title"]): topic for topic in topics}

    def _fields(self, store: Any, topic: str) -> dict[str, list[Any]]:
        return {
            name: store.get_field_with_history(topic, name).history
            for name in store.list_fields_for_topic(topic)
        }

    def _topic(self, subject: Subject, graph: _Graph) -> str | None:
        """The topic that has the subject's as its title."""
        store, title = graph.executor.store, subject.topic.casefold()
        for topic in sorted(store.list_topic_ids(include_archived=True)):
            if str(store.get_topic(topic)["title"]).casefold() == title:
                return str(topic)
        return None

    def _of(self, subject: Subject, graph: _Graph) -> list[Item]:
        topic = self._topic(subject, graph)
        if topic is None:
            return []
        fields = self._fields(graph.executor.store, topic)
        return _items({name: fields[name] for name in _about(subject, list(fields))}, topic)

    def _modules(self) -> Checkout:
        if self._checkout is None:
            raise MemoryFault(
                "memstate: not open; call open(folder) first, and nothing after close()"
            )
        return self._checkout

    @contextmanager
    def _at_work(self, tenant: str, at: str = "") -> Iterator[_Graph]:
        """Do something with a tenant's graph, which is made when it is first needed."""
        checkout = self._modules()
        self._present.enter(tenant, at)
        if tenant not in self._graphs:
            assert self._embedder is not None
            name = sha256(tenant.encode()).hexdigest()[:16]
            self._graphs[tenant] = _Graph(
                *checkout.begin(self._folder / f"{name}.kuzu", self._embedder)
            )
        yield self._graphs[tenant]


def _about(subject: Subject, fields: Sequence[str]) -> list[str]:
    """The fields that the subject's name begins: what stands beside a field is called after it."""
    name = subject.field.casefold()
    return [field for field in fields if field.casefold().startswith(name)]


def _items(fields: dict[str, list[Any]], topic: str) -> list[Item]:
    """The present values of a topic's fields, then the earlier ones, each up to the next."""
    present: list[Item] = []
    past: list[Item] = []
    for values in fields.values():
        for place, entry in enumerate(values):  # the newest first
            item = Item(
                str(entry.value),
                id=f"{topic}/{entry.id}",
                sources=(entry.provenance,) if entry.provenance else None,
                valid_from=_minute(entry.valid_from),
                valid_to=_minute(values[place - 1].valid_from) if place else None,
            )
            (past if place else present).append(item)
    return [*present, *past]


def _minute(stamp: str | None) -> str | None:
    return stamp[:16] if stamp else None
