"""The adapter."""

from __future__ import annotations

import shutil
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, get_args

import msgspec

from steeltrap.adapters.crowd import alone
from steeltrap.adapters.embedders import Embedder, WordLlamaEmbedder
from steeltrap.adapters.vector.dense import Dense
from steeltrap.adapters.vector.okapi import SpacedWords
from steeltrap.adapters.vector.ranking import fused
from steeltrap.adapters.vector.words import Words
from steeltrap.harness.memory import Item, MemoryFault, Query, Subject, Utterance

if TYPE_CHECKING:
    from qdrant_client.local.qdrant_local import QdrantLocal

    from steeltrap.adapters.vector.ranking import Ranking

__all__ = ["FUSION_DEPTH", "Entry", "Fusion", "Shelf", "Splitting", "Vector"]

Fusion = Literal["dense", "bm25", "hybrid"]
Entry = Literal["turn", "session"]
Splitting = Literal["stems", "plain", "spaces"]
FUSION_DEPTH: Final = 100
"""How deep each ranking goes into a fusion, or to the query's limit where that is more."""


_WORDS: Final[dict[str, Callable[[], Words | SpacedWords]]] = {
    "stems": Words, "plain": partial(Words, stemmed=False), "spaces": SpacedWords,
}  # fmt: skip


@dataclass
class Shelf:
    """One tenant's entries by number, oldest first, and the indexes over them."""

    dense: Dense | None
    words: Words | SpacedWords | None
    items: dict[int, Item] = field(default_factory=dict)
    next: int = 0
    sessions: dict[str, int] = field(default_factory=dict)
    """Session -> its entry, where a session is one."""
    waiting: dict[int, dict[str, str]] = field(default_factory=dict)
    """Entries that are not indexed yet, each with what is stored beside its vector."""
    served: Counter[str] = field(default_factory=Counter)
    """Item id -> to how many questions it was served, where that is counted."""

    def remove(self, number: int) -> None:
        """Take an entry out, and all that is known of it."""
        if self.waiting.pop(number, None) is None:
            self.unindex(number)
        item = self.items.pop(number)
        self.served.pop(item.id or "", None)
        self.sessions = {name: at for name, at in self.sessions.items() if at != number}

    def unindex(self, number: int) -> None:
        """Take an entry out of the indexes."""
        if self.dense:
            self.dense.remove(number)
        if self.words:
            self.words.remove(number)


class Vector:
    """Stores every turn and serves those nearest to the question, best first.

    What is embedded and indexed is the text alone. Each tenant has a collection of its
    own, so that neither content nor load of one is felt by another. Of equal scores the
    earlier turn comes first. Reading changes nothing. Nothing is ever revised: a superseded
    statement stays beside its successor. Ingestion does not wait until a turn is safely on disk.

    Args:
        embedder: makes the vectors; by default `WordLlamaEmbedder`. `bm25` needs none.
        fusion: `dense` ranks by cosine of the vectors, `bm25` by shared words, `hybrid` by
            reciprocal rank fusion of both.
        capacity_turns: a tenant's oldest turns are pruned when it has more ("vector databases
            prune embeddings by capacity or age", section 2.1 of the paper); by default never.
        stamps: serve each turn with the time at which it was said, as `valid_from`.
        entry: `turn`, or `session`: what was said in a session is one entry, joined by spaces, as
            LongMemEval's retrievers have it; it has the time of its latest turn.
        words: how BM25 splits texts: `stems`, `plain` words (`Words`), or `spaces` (`SpacedWords`).

    Raises:
        ValueError: `fusion`, `entry` or `words` is unknown, or `capacity_turns` is not positive, or
            given where entries are sessions.
    """

    concurrent = True

    def __init__(
        self,
        embedder: Embedder | None = None,
        *,
        fusion: Fusion = "dense",
        capacity_turns: int | None = None,
        stamps: bool = True,
        entry: Entry = "turn",
        words: Splitting = "stems",
    ) -> None:
        for name, value, kinds in (
            ("fusion", fusion, Fusion), ("entry", entry, Entry), ("words", words, Splitting),
        ):  # fmt: skip
            if value not in get_args(kinds):
                known = ", ".join(get_args(kinds))
                raise ValueError(f"vector: unknown {name} '{value}'; known: {known}")
        if capacity_turns is not None and entry == "session":
            raise ValueError("vector: a capacity counts turns; set it with entry=turn")
        if capacity_turns is not None and capacity_turns < 1:
            raise ValueError(f"vector: a capacity of {capacity_turns} turns keeps nothing")
        self.embedder: Embedder | None = None
        """None where vectors play no part."""
        if fusion != "bm25":
            self.embedder = embedder or WordLlamaEmbedder()
        self._fusion = fusion
        self._capacity = capacity_turns
        self._stamps = stamps
        self._by_session = entry == "session"
        self._words = words
        self._lock = threading.RLock()
        self._folder = Path()
        self._client: QdrantLocal | None = None
        self._made = 0
        self._shelves: dict[str, Shelf] | None = None

    def open(self, folder: Path) -> None:
        """Begin an empty store in `folder`/qdrant."""
        self.close()
        self._folder = folder / "qdrant"
        shutil.rmtree(self._folder, ignore_errors=True)
        if self.embedder:
            from qdrant_client.local.qdrant_local import QdrantLocal

            self._client = QdrantLocal(str(self._folder))
        self._shelves = {}

    def close(self) -> None:
        """Release the store; its files stay."""
        if self._client is not None:
            self._client.close()
        self._client = self._shelves = None

    @alone
    def ingest(self, turn: Utterance) -> None:
        """Store a turn, then prune to the capacity; it is indexed when something is asked."""
        shelf = self._shelf(turn.tenant)
        number = shelf.sessions.get(turn.session) if self._by_session else None
        item = self._item(turn)
        if number is None:
            number, shelf.next = shelf.next, shelf.next + 1
            if self._by_session:
                shelf.sessions[turn.session] = number
        else:
            item = _longer(shelf.items[number], item)
            if number not in shelf.waiting:
                shelf.unindex(number)
        shelf.items[number] = item
        shelf.waiting[number] = {"tenant": turn.tenant, "at": turn.at, "turn": turn.id}
        if not self._by_session:
            self._index(shelf)
        if self._capacity is not None and len(shelf.items) > self._capacity:
            shelf.remove(next(iter(shelf.items)))

    def _item(self, turn: Utterance) -> Item:
        return Item(
            text=turn.text,
            id=turn.session if self._by_session else turn.id,
            sources=(turn.id,),
            valid_from=turn.at if self._stamps else None,
        )

    def _index(self, shelf: Shelf) -> None:
        """Index what waits; a session that grows is indexed once, when it is whole."""
        for number, payload in shelf.waiting.items():
            text = shelf.items[number].text
            if shelf.dense and self.embedder:
                vector = self.embedder.embed([text])[0]
                shelf.dense.add(number, vector, {"text": text, **payload})
            if shelf.words:
                shelf.words.add(number, text)
        shelf.waiting.clear()

    @alone
    def retrieve(self, query: Query) -> Sequence[Item]:
        """The `query.limit` best turns of the query's tenant, with their scores."""
        shelf = self._opened().get(query.tenant)
        if shelf is None or query.limit < 1:
            return []
        served = []
        for number, score in self._ranking(shelf, query):
            served.append(msgspec.structs.replace(shelf.items[number], score=score))
        return served

    @alone
    def settle(self) -> None:
        """Index what waits."""
        for shelf in self._opened().values():
            self._index(shelf)

    @alone
    def active(self, tenant: str) -> list[Item]:
        """Every turn stored, oldest first."""
        shelf = self._opened().get(tenant)
        return list(shelf.items.values()) if shelf else []

    @alone
    def erase(self, tenant: str, subject: Subject | None) -> None:
        """Delete the tenant's turns, or those that name the subject's topic.

        A store of turns has no other way to find a subject: turns that speak of it without
        its name stay, and turns that name the topic for another reason go.
        """
        shelf = self._opened().get(tenant)
        if shelf is None:
            return
        if subject is None:
            del self._opened()[tenant]
            if shelf.dense:
                shelf.dense.drop()
            return
        words = subject.topic.casefold()
        for number, item in list(shelf.items.items()):
            if words in item.text.casefold():
                shelf.remove(number)

    def size_bytes(self) -> int:
        """Bytes of the store's files; an index of words is kept in memory only."""
        self._opened()
        return sum(path.stat().st_size for path in self._folder.rglob("*") if path.is_file())

    def _ranking(self, shelf: Shelf, query: Query) -> Ranking:
        rankings = self._rankings(shelf, query)
        return rankings[0] if len(rankings) == 1 else fused(rankings, query.limit)

    def _rankings(self, shelf: Shelf, query: Query) -> list[Ranking]:
        """By meaning, by words, or both."""
        self._index(shelf)
        rankings = []
        depth = query.limit
        if self._fusion == "hybrid":
            depth = max(depth, FUSION_DEPTH)
        if shelf.dense and self.embedder:
            rankings.append(shelf.dense.search(self.embedder.embed([query.text])[0], depth))
        if shelf.words:
            rankings.append(shelf.words.search(query.text, depth))
        return rankings

    def _shelf(self, tenant: str) -> Shelf:
        shelves = self._opened()
        if tenant not in shelves:
            dense = None
            if self.embedder and self._client:
                dense = Dense(self._client, f"turns-{self._made}", self.embedder.dimension)
                self._made += 1
            words = None
            if self._fusion != "dense":
                words = _WORDS[self._words]()
            shelves[tenant] = Shelf(dense, words)
        return shelves[tenant]

    def _opened(self) -> dict[str, Shelf]:
        if self._shelves is None:
            raise MemoryFault(
                "vector: not open; call open(folder) first, and nothing after close()"
            )
        return self._shelves


def _longer(entry: Item, said: Item) -> Item:
    """A session with one more turn."""
    return msgspec.structs.replace(
        entry,
        text=f"{entry.text} {said.text}",
        sources=(*(entry.sources or ()), *(said.sources or ())),
        valid_from=said.valid_from,
    )
