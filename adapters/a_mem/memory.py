"""The adapter: a slip box of notes, as "A-Mem: Agentic Memory for LLM Agents" describes it.

The sections named here are those of the paper (Xu and others, arXiv 2502.12110, version 11).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec
import numpy as np

from steeltrap.adapters.chat import prompts
from steeltrap.adapters.embedders import Embedder, WordLlamaEmbedder
from steeltrap.adapters.embedders.base import Vectors
from steeltrap.adapters.kept import Kept
from steeltrap.adapters.vector.ranking import Ranking, ranked
from steeltrap.harness.memory import Item, Query, Subject, Utterance

__all__ = ["AMem", "Attributes", "Changed", "Evolution"]


class Attributes(msgspec.Struct, frozen=True):
    """What a model writes about a message (3.1, equation 2)."""

    keywords: list[str]
    context: list[str]
    """Sentences, each of which can be understood by itself."""
    tags: list[str]


class Changed(Attributes, frozen=True):
    """An old note's attributes from now on (3.3, equation 7)."""

    id: str


class Evolution(msgspec.Struct, frozen=True):
    """What a new note does to those that are nearest to it (3.2 and 3.3)."""

    links: list[str]
    """Ids of those that the new note leads to (equation 6)."""
    changed: list[Changed]


class _Note(msgspec.Struct):
    """One message with its attributes, its vector and its links (equation 1)."""

    turn: Utterance
    first: Attributes
    """As they were written when it was said."""
    attributes: Attributes
    vector: Vectors
    links: tuple[int, ...] = ()

    @property
    def texts(self) -> Iterator[str]:
        """All that it says."""
        now = self.attributes
        yield from (self.turn.text, *now.keywords, *now.tags, *now.context)


class _Box(msgspec.Struct):
    """One tenant's notes by number, oldest first."""

    notes: dict[int, _Note] = {}
    next: int = 0

    def forget(self, subject: Subject) -> None:
        """Drop each note whose message or attributes name the subject's topic, and links to it."""
        topic = subject.topic.casefold()
        gone = {n for n, note in self.notes.items() if _names(note.texts, topic)}
        self.notes = {n: note for n, note in self.notes.items() if n not in gone}
        for note in self.notes.values():
            note.links = tuple(number for number in note.links if number not in gone)


class AMem(Kept[_Box]):
    """Files each message as a note, links it to others, and brings those up to date.

    A model gives a new message keywords, a context and tags; the note's vector is made of all of
    them and of the message (3.1). Then it sees the nearest notes, says which of them the new one
    leads to (3.2), and rewrites the attributes of those that the new one changes (3.3); what was
    said is never changed. A question finds the notes nearest to it, and with them those that they
    lead to (3.4 and figure 2). Reading changes nothing. Where the model cannot be asked nothing is
    filed.

    A note is served as its message, and with it the sentences that evolution has put into its
    context since, each sentence once. Those that were there from the beginning say again what the
    message says.

    Args:
        embedder: makes the vectors; by default `WordLlamaEmbedder`.
        k: how many notes a question finds; the query's limit holds besides.
        neighbours: how many notes a new one is held against.
        note: which of `prompts.toml`.
        evolution: the same.

    Raises:
        ValueError: a number or a prompt makes no sense.
    """

    def __init__(
        self, embedder: Embedder | None = None, *, k: int = 10, neighbours: int = 5,
        note: str = "note-1", evolution: str = "evolution-1",
    ) -> None:  # fmt: skip
        if min(k, neighbours) < 1:
            raise ValueError(f"a-mem: k={k}, neighbours={neighbours}: both have to be at least 1")
        known = prompts("steeltrap.adapters.a_mem")
        for name in (note, evolution):
            if name not in known:
                raise ValueError(f"a-mem: prompt {name}: there are {', '.join(known)}")
        self._embedder = embedder or WordLlamaEmbedder()
        self._k, self._neighbours = k, neighbours
        self._note, self._evolution = known[note], known[evolution]
        super().__init__("a-mem", _Box)

    # ------------------------------------------------------------ filing

    def ingest(self, turn: Utterance) -> None:
        """File a message; links and changes are known before anything is written."""
        box = self._of(turn.tenant)
        said = {"at": turn.at, "role": turn.role, "content": turn.text}
        made = self._chat.filled(self._note.messages(note=_json(said)), "note", Attributes)
        note = _Note(turn, made, made, self._embedded(turn.text, made))
        near = [number for number, _ in _nearest(box, note.vector, self._neighbours)]
        evolution = self._evolved(box, note, near) if near else Evolution([], [])
        note.links = tuple(n for n in near if _name(n) in evolution.links)
        changed = {one.id: one for one in evolution.changed}
        for number in near:
            if one := changed.get(_name(number)):
                old = box.notes[number]
                old.attributes = Attributes(one.keywords, one.context, one.tags)
                old.vector = self._embedded(old.turn.text, old.attributes)
        self._opened()[turn.tenant] = box
        box.notes[box.next], box.next = note, box.next + 1

    def _evolved(self, box: _Box, note: _Note, near: Sequence[int]) -> Evolution:
        """Links and changes, asked for in one call as in the authors' code."""
        rows = (_row(box.notes[number]) | {"id": _name(number)} for number in near)
        filled = self._evolution.messages(note=_json(_row(note)), near="\n".join(map(_json, rows)))
        return self._chat.filled(filled, "evolution", Evolution)

    def _embedded(self, text: str, made: Attributes) -> Vectors:
        """The vector of a message and its attributes (equation 3)."""
        parts = (text, *made.keywords, *made.tags, *made.context)
        vector: Vectors = self._embedder.embed([" ".join(parts)])[0]
        return vector

    # ------------------------------------------------------------ asking

    def retrieve(self, query: Query) -> Sequence[Item]:
        """The nearest notes, then those that the first of them lead to, then the other near ones.

        The notes that are led to have room from half of the query's limit on.
        """
        box = self._of(query.tenant)
        if query.limit < 1:
            return []
        found = _nearest(box, self._embedder.embed([query.text])[0], min(self._k, query.limit))
        near = [number for number, _ in found]
        first, others = near[: (query.limit + 1) // 2], near[(query.limit + 1) // 2 :]
        led_to = [number for hit in first for number in box.notes[hit].links]
        order, scores = dict.fromkeys((*first, *led_to, *others)), dict(found)
        served: dict[int | str, Item] = {}
        for number in order:
            for item in _items(number, box.notes[number], scores.get(number)):
                served.setdefault(number if item.sources else item.text, item)
        return list(served.values())[: query.limit]

    def active(self, tenant: str) -> Sequence[Item]:
        """Every note, oldest first."""
        notes = self._of(tenant).notes
        return [item for number, note in notes.items() for item in _items(number, note)]


def _nearest(box: _Box, vector: Vectors, limit: int) -> Ranking:
    """The notes with the greatest cosine (equations 4, 5, 9 and 10)."""
    if not box.notes:
        return []
    rows = np.array([note.vector for note in box.notes.values()], dtype=np.float64)
    return ranked(list(box.notes), (rows * vector.astype(np.float64)).sum(axis=1), limit)


def _items(number: int, note: _Note, score: float | None = None) -> Iterator[Item]:
    """A note's message, and what evolution has put into its context.

    A note has one time and one source, those of its message: which note changed it is not kept.
    """
    turn, name = note.turn, _name(number)
    yield Item(turn.text, name, (turn.id,), turn.at, score=score)
    for sentence in note.attributes.context:
        if sentence not in note.first.context:
            yield Item(sentence, name, None, turn.at)


def _row(note: _Note) -> dict[str, Any]:
    """A note as the model sees it."""
    row = {"at": note.turn.at, "role": note.turn.role, "content": note.turn.text}
    return row | msgspec.structs.asdict(note.attributes)


def _names(texts: Iterable[str], topic: str) -> bool:
    return any(topic in text.casefold() for text in texts)


def _name(number: int) -> str:
    return f"n{number}"


def _json(row: dict[str, Any]) -> str:
    """On one line, so that nothing in it can be taken for a heading."""
    return msgspec.json.encode(row).decode()
