"""What the database paradigms share: reading by a model, the catalogue of topics, whose word counts.

An utterance is read into typed statements by the reference system's interpreter; each goes to one
operation of the store. A question is read into places (topic and field), which the store looks up;
only where it names none that is known does the store's own search answer, if it has one.

Whose word counts is decided here, in the same way for every store: a source of a lower rank does
not overwrite or withdraw what one of a higher rank said.
"""

from __future__ import annotations

import copy
import re
import threading
import unicodedata
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import datetime
from pathlib import Path
from typing import Any, Final, Literal, Self

import msgspec
import numpy as np

from steeltrap.adapters.crowd import Turnstiles, alone
from steeltrap.adapters.embedders import Embedder, WordLlamaEmbedder
from steeltrap.harness.memory import Item, MemoryFault, Query, Subject, Utterance
from steeltrap.harness.models import Models
from steeltrap.reference_system.interpret import (
    InterpretationError,
    ModelFault,
    ModelInterpreter,
    Sketch,
    Speech,
)
from steeltrap.reference_system.rules import Rule, same_value
from steeltrap.reference_system.statements import (
    Association,
    Dependency,
    Fact,
    Place,
    Question,
    Same,
    Statement,
    Withdrawal,
)

__all__ = ["RANK", "Held", "Paradigm", "Schema", "Write", "key", "sentence"]

RANK: Final = {"owner": 4, "colleague": 3, "hearsay": 2, "content": 1}
"""Whose word counts, the higher the more, as in the reference system's default policies; whoever
is not named here ranks below all."""
EPOCH: Final = "1970-01-01T00:00"


class Write(msgspec.Struct, frozen=True):
    """A value that shall be stored. Times are ISO 8601 to the minute."""

    tenant: str
    topic: str
    field: str
    value: str
    said_by: str
    turn: str
    """Id of the turn that said it."""
    at: str
    """When it was said."""
    valid_from: str
    """From when it holds in the world; `at` where nothing else was said."""
    until: str | None = None
    """It holds until then."""
    corrects: bool = False
    """The value on record was wrong all along."""
    tags: tuple[str, ...] = ()
    """`vital` or `trivial`."""
    about: str = ""
    """The person or thing within the topic that the field describes."""
    repeats: bool = False
    """The present value says the same."""


class Held(msgspec.Struct, frozen=True):
    """A value as a store holds it."""

    topic: str
    field: str
    value: str
    said_by: str = ""
    turns: tuple[str, ...] | None = None
    """Ids of the turns that it came from; None where the store does not keep them."""
    valid_from: str | None = None
    valid_to: str | None = None
    """Until when it holds or held; None while no end is known."""
    review: bool = False
    """Somebody has to look at it before it can be relied on."""
    score: float | None = None
    text: str = ""
    """The sentence by which it is served, where the store keeps sentences; empty: see `sentence`."""
    entry: str = ""
    """Id of the entry, where the store keeps several of a field; empty: topic and field are its id."""


class Schema(msgspec.Struct, frozen=True):
    """A topic that a store knows, and the names of its fields."""

    topic: str
    fields: tuple[str, ...]
    names: tuple[str, ...] = ()
    """Other titles by which it goes."""


class Paradigm(ABC):
    """A database as a memory; a subclass is a store.

    A subclass gives the operations below `the store`. What a paradigm has besides, it gives as the
    methods of the harness's protocols: `history`, `maintain`, `fork`.

    Args:
        dialect: `openai` or `anthropic`: the client through which the interpreter asks.
        embedder: makes the vectors of topics, by which those nearest to a text are found; by
            default `WordLlamaEmbedder`.
    """

    name: str
    """Of the paradigm, for messages."""
    concurrent = True
    """One thread at a time is in the store; models are asked outside."""

    def __init__(
        self,
        *,
        dialect: Literal["openai", "anthropic"] = "openai",
        embedder: Embedder | None = None,
    ) -> None:
        self.embedder = embedder or WordLlamaEmbedder()
        self._dialect = dialect
        self._models: Models | None = None
        self._interpreter: ModelInterpreter | None = None
        self._vectors: dict[str, np.ndarray[Any, Any]] = {}
        """Vectors of the catalogue by their texts."""
        self._open = self._is_twin = False
        self._lock, self._turnstiles = threading.RLock(), Turnstiles()
        self.now = EPOCH
        """The latest time that was heard of."""

    # ------------------------------------------------------------ the store

    @abstractmethod
    def create(self, folder: Path) -> None:
        """Begin an empty store in a folder that is there, whatever an earlier one left."""

    @abstractmethod
    def release(self) -> None:
        """Close the store; it is open."""

    @abstractmethod
    def schema(self, tenant: str) -> Sequence[Schema]:
        """Every topic of a tenant, in a settled order."""

    @abstractmethod
    def put(self, write: Write) -> None:
        """Store a value of a field, which may be new; its topic too."""

    @abstractmethod
    def withdraw(self, tenant: str, place: Place, turn: str, at: str) -> None:
        """A field that has a value has none any more."""

    @abstractmethod
    def depend(self, tenant: str, source: Place, target: Place, rule: Rule | None, turn: str, at: str) -> None:  # fmt: skip
        """`target` follows `source`; either may be new. A rule of None asks for review."""

    @abstractmethod
    def relate(self, tenant: str, topic: str, other: str, turn: str) -> None:
        """Two topics are related, and independent; either may be new."""

    @abstractmethod
    def alias(self, tenant: str, topic: str, name: str) -> None:
        """A topic goes by another name too."""

    @abstractmethod
    def current(self, tenant: str, place: Place, at: str) -> Held | None:
        """The value that holds at an instant from now on."""

    @abstractmethod
    def listing(self, tenant: str, at: str) -> Sequence[Held]:
        """Every value that holds, in a settled order."""

    @abstractmethod
    def drop(self, tenant: str, place: Place | None) -> None:
        """Remove a field, or everything of a tenant, for good; what is not there needs no removal."""

    @abstractmethod
    def size_bytes(self) -> int:
        """Bytes on disk now."""

    def past(self, tenant: str, place: Place, question: Question, at: str) -> Sequence[Held]:
        """What held before, the latest first, and then what holds; or what held at an instant.

        A store that keeps one value a field knows nothing else: it gives that one, unless it began
        to hold only after the instant that is asked about.
        """
        held = self.current(tenant, place, at)
        if held is None or (question.as_of and held.valid_from and held.valid_from > moment(question.as_of)):  # fmt: skip
            return ()
        return (held,)

    def linked(self, tenant: str, place: Place, at: str) -> Sequence[Held]:  # noqa: ARG002
        """What follows from a field, what it follows from, and what is related to its topic."""
        return ()

    def search(self, tenant: str, text: str, limit: int, at: str) -> Sequence[Held]:  # noqa: ARG002
        """The store's own search by words or meaning, best first; nothing where it has none."""
        return ()

    def transaction(self) -> AbstractContextManager[Any]:
        """What is written within it is stored whole or not at all, where the store can do that."""
        return nullcontext()

    # ------------------------------------------------------------ life

    def connect(self, models: Models) -> None:
        """Read by this model."""
        self._models = models

    def open(self, folder: Path) -> None:
        """Begin an empty memory in `folder`.

        Raises:
            MemoryFault: there is no model.
        """
        if self._models is None:
            raise MemoryFault(f"{self.name}: no model is connected; call connect(models) first")
        self.close()
        folder.mkdir(parents=True, exist_ok=True)
        self.create(folder)
        self._interpreter = self._asking(self._models)
        self._open, self.now, self._vectors = True, EPOCH, {}

    def _asking(self, models: Models) -> ModelInterpreter:
        if self._dialect == "openai":
            make, url = ModelInterpreter.openai, models.openai_url
        else:
            make, url = ModelInterpreter.anthropic, models.url
        return make(
            models.chat, url, models.key, timeout_s=models.timeout_s, retries=models.retries
        )

    def close(self) -> None:
        """Close the store and the connections; those of a fork are its original's."""
        if not self._open:
            return
        self._open = False
        self.release()
        if self._interpreter is not None and not self._is_twin:
            self._interpreter.close()

    def settle(self) -> None:
        """Nothing runs in the background."""
        self._opened()

    def twin(self) -> Self:
        """A copy of what is kept here; a fork gives it a store of its own."""
        self._opened()
        twin = copy.copy(self)
        twin._vectors, twin._is_twin = dict(self._vectors), True
        return twin

    @alone
    def passed(self, at: str) -> str:
        """The time has come to this instant; gives the latest one that was heard of."""
        self._opened()
        self.now = max(self.now, at)
        return self.now

    def _opened(self) -> None:
        """Refuse what is asked of a memory that is not open."""
        if not self._open:
            raise MemoryFault(f"{self.name}: not open; call open(folder) first, and nothing after close()")  # fmt: skip

    def _reader(self) -> ModelInterpreter:
        self._opened()
        assert self._interpreter is not None
        return self._interpreter

    # ------------------------------------------------------------ telling

    def ingest(self, turn: Utterance) -> None:
        """Read one turn and store what it states, whole or not at all."""
        self.passed(turn.at)
        self._refuse_nobody(turn.tenant)
        speech = Speech(turn.id, turn.at, turn.tenant, turn.role, "", turn.text)
        try:
            with self._turnstiles.of(turn.tenant):
                said = self._reader().statements(speech, self._known(turn.tenant))
                with self._lock, self.transaction():
                    for statement in said:
                        self._take_in(turn, statement)
        except (InterpretationError, ModelFault, ValueError) as fault:
            raise MemoryFault(f"{self.name}: {fault}") from fault

    def _take_in(self, turn: Utterance, said: Statement) -> None:
        tenant = turn.tenant
        match said:
            case Fact():
                self._fact(turn, said)
            case Withdrawal():
                place = self.place(tenant, Place(said.topic, said.field))
                held = self.current(tenant, place, turn.at)
                if held is not None and _counts(said.said_by, held):
                    self.withdraw(tenant, place, turn.id, turn.at)
            case Dependency():
                source, target = self.place(tenant, said.source), self.place(tenant, said.target)
                if source == target:
                    raise ValueError(f"the {source.field} of {source.topic} cannot follow from itself")  # fmt: skip
                self.depend(tenant, source, target, said.rule, turn.id, turn.at)
            case Association():
                topic, other = self._title(tenant, said.topic), self._title(tenant, said.other)
                if topic != other:
                    self.relate(tenant, topic, other, turn.id)
            case Same():
                self._same(tenant, said)

    def _fact(self, turn: Utterance, said: Fact) -> None:
        tenant = turn.tenant
        place = self.place(tenant, Place(said.topic, said.field))
        if said.new_topic:
            place = Place(self._untaken(tenant, place.topic), place.field)
        held = self.current(tenant, place, turn.at)
        if held is not None and not _counts(said.said_by, held):
            return
        self.put(
            Write(
                tenant, place.topic, place.field, said.value, said.said_by, turn.id, turn.at,
                moment(said.valid_from) if said.valid_from else turn.at,
                moment(said.until) if said.until else None, said.corrects, said.tags, said.about,
                held is not None and same_value(held.value, said.value),
            )
        )  # fmt: skip

    def _same(self, tenant: str, said: Same) -> None:
        """The name that is new becomes another one of the topic that is known; two that are known
        stay apart: to make one of them is a migration of data, which no store does by itself.
        """
        titles = self._titles(tenant)
        one, other = titles.get(key(said.topic)), titles.get(key(said.other))
        if one is not None and other is None:
            self.alias(tenant, one, _name(said.other))
        elif one is None and other is not None:
            self.alias(tenant, other, _name(said.topic))

    # ------------------------------------------------------------ asking

    def retrieve(self, query: Query) -> Sequence[Item]:
        """What the store has on the places that a question asks for. Reading changes nothing."""
        at = max(self.now, query.at)
        self._opened()
        self._refuse_nobody(query.tenant)
        try:
            asked = self._reader().question(query.text, query.at, query.tenant, self._known(query.tenant))  # fmt: skip
            with self._lock:
                found = list(self._answer(query.tenant, asked, query.limit, at))
        except (InterpretationError, ModelFault, ValueError) as fault:
            raise MemoryFault(f"{self.name}: {fault}") from fault
        return [item(held) for held in found[: max(query.limit, 0)]]

    def _answer(self, tenant: str, asked: Question, limit: int, at: str) -> Iterator[Held]:
        if not asked.places:
            yield from self.search(tenant, asked.text, limit, at)
        for place in self._fields(tenant, asked.places):
            if asked.mode == "temporal":
                yield from self.past(tenant, place, asked, at)
            elif held := self.current(tenant, place, at):
                yield held
            if asked.mode == "structural":
                yield from self.linked(tenant, place, at)

    def _fields(self, tenant: str, places: Iterable[Place]) -> Iterator[Place]:
        """The places, each topic that is asked for as a whole by its fields."""
        for place in dict.fromkeys(places):
            if place.field:
                yield self.place(tenant, place)
            else:
                title = self._title(tenant, place.topic)
                for one in self.schema(tenant):
                    yield from (Place(title, name) for name in one.fields if one.topic == title)

    @alone
    def active(self, tenant: str) -> Sequence[Item]:
        """Every value that holds."""
        self._opened()
        return [item(held) for held in self.listing(tenant, self.now)]

    @alone
    def erase(self, tenant: str, subject: Subject | None) -> None:
        """Remove a field or a tenant for good; what is not there needs no removal."""
        self._opened()
        place = None
        if subject is not None:
            place = self.place(tenant, Place(subject.topic, subject.field))
        with self.transaction():
            self.drop(tenant, place)
        self._vectors.clear()

    # ------------------------------------------------------------ the catalogue

    def _known(self, tenant: str) -> Any:
        """The topics that a text names, the longest title first; then the nearest in meaning."""

        def known(text: str, limit: int) -> list[Sketch]:
            with self._lock:
                topics = self.schema(tenant)
                words = f" {_words(text)} "
                named = [one for one in topics if any(f" {_words(n)} " in words for n in (one.topic, *one.names))]  # fmt: skip
                found = {one.topic: one for one in sorted(named, key=lambda one: -len(one.topic))}
                if len(found) < min(limit, len(topics)):
                    found |= {one.topic: one for one in self._nearest(topics, text)}
            shown = list(found.values())[:limit]
            return [Sketch(one.topic, ", ".join(one.fields), one.fields) for one in shown]

        return known

    def _nearest(self, topics: Sequence[Schema], text: str) -> list[Schema]:
        texts = [f"{one.topic}: {', '.join(one.fields)}" for one in topics]
        if missing := [one for one in dict.fromkeys(texts) if one not in self._vectors]:
            self._vectors |= zip(missing, self.embedder.embed(missing), strict=True)
        cosines = np.stack([self._vectors[one] for one in texts]) @ self.embedder.embed([text])[0]
        order = sorted(range(len(topics)), key=lambda n: (-float(cosines[n]), n))
        return [topics[n] for n in order]

    def _titles(self, tenant: str) -> dict[str, str]:
        """Topics by the keys of their names."""
        found = self.schema(tenant)
        return {key(name): one.topic for one in found for name in (*one.names, one.topic)}

    def _title(self, tenant: str, title: str) -> str:
        """A title as it is stored; a new one with single blanks."""
        if not key(title):
            raise ValueError("a statement names no topic; every fact needs a title")
        return self._titles(tenant).get(key(title)) or _name(title)

    def place(self, tenant: str, place: Place) -> Place:
        """A place as it is stored; the names of a new one with single blanks."""
        title = self._title(tenant, place.topic)
        if not key(place.field):
            raise ValueError(f"a statement about {title} names no field")
        fields = next((one.fields for one in self.schema(tenant) if one.topic == title), ())
        there = {key(name): name for name in fields}
        return Place(title, there.get(key(place.field)) or _name(place.field))

    def _untaken(self, tenant: str, title: str) -> str:
        """A title that no topic has: a name is a key in every store."""
        taken, number = self._titles(tenant), 1
        name = title
        while key(name) in taken:
            number += 1
            name = f"{title} ({number})"
        return name

    def _refuse_nobody(self, tenant: str) -> None:
        if not tenant:
            raise MemoryFault(f"{self.name}: whose memory is meant? Nothing is kept without a tenant's name")  # fmt: skip


def item(held: Held) -> Item:
    """A stored value in the harness's terms."""
    return Item(
        text=sentence(held),
        id=held.entry or f"{held.topic}/{held.field}",
        sources=held.turns,
        valid_from=held.valid_from,
        valid_to=held.valid_to,
        review=held.review,
        score=held.score,
    )


def sentence(held: Held) -> str:
    """The sentence by which a value is served."""
    return held.text or f"The {held.field} of {held.topic} is {held.value}."


def key(name: str) -> str:
    """A name as it is compared: letters in any case, signs in any composition, blanks apart."""
    return " ".join(unicodedata.normalize("NFKC", name).casefold().split())


def moment(at: str) -> str:
    """An instant as ISO 8601 to the minute; a day alone is its first minute.

    Raises:
        ValueError: it is none.
    """
    return datetime.fromisoformat(at).replace(tzinfo=None).isoformat(timespec="minutes")


def _counts(said_by: str, held: Held) -> bool:
    """Whether somebody's word may replace a value that is held."""
    return RANK.get(said_by, 0) >= RANK.get(held.said_by, 0)


def _name(title: str) -> str:
    return " ".join(title.split())


def _words(text: str) -> str:
    return " ".join(re.findall(r"\w+", key(text)))
