"""Routing: which topics and fields a text is about, by name, by words and by meaning."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from steeltrap.reference_system.index import Vectors, Words, fused, grams
from steeltrap.reference_system.mirror import Mirror
from steeltrap.reference_system.state import Delta, Field, Topic, key

__all__ = ["Router"]

TOPICS_NEAR = 5
"""Topics that are looked into where a text names none."""
NOTES_DEEP = 100
"""How deep the rankings of notes go that are fused."""
SIMILAR = 0.9
"""Cosine from which two topics are put before the policies as possible duplicates."""


class Router:
    """Finds topics by title and meaning, and fields within them.

    Args:
        mirror: the present; read only.
        embed: unit vectors of texts, or None to go by names alone.
    """

    def __init__(self, mirror: Mirror, embed: Callable[[Sequence[str]], NDArray[np.float32]] | None) -> None:  # fmt: skip
        self._mirror = mirror
        self._embed = embed
        self._topics = Vectors()
        self._notes = Vectors()
        self._words = Words()
        self._waiting: dict[str, None] = {}
        """Notes that are not embedded yet."""
        self._borrowed = False
        for topic in mirror.topics.values():
            self._put(topic)
        for field in mirror.fields.values():
            self._put_note(field)

    def fits(self) -> None:
        """See to it that the embedder can be compared with the vectors that are stored.

        Raises:
            ValueError: it gives vectors of another length.
        """
        stored = next((len(t.vector) // 4 for t in self._mirror.topics.values() if t.vector), 0)
        made = len(self._embed([""])[0]) if self._embed is not None and stored else stored
        if made != stored:
            raise ValueError(
                f"the store has vectors of {stored} numbers and the embedder gives {made}; "
                "open it with the embedder that it was written with"
            )

    def fork(self, mirror: Mirror) -> Router:
        """A copy over another mirror; the indexes are shared until the copy has to change them."""
        self._embed_waiting()
        twin = object.__new__(Router)
        twin.__dict__.update(self.__dict__)
        twin._mirror, twin._waiting, twin._borrowed = mirror, {}, True
        return twin

    def _own(self) -> None:
        """Have indexes of one's own before changing them."""
        if self._borrowed:
            self._topics, self._notes = self._topics.fork(), self._notes.fork()
            self._words, self._borrowed = self._words.fork(), False

    def fold(self, delta: Delta) -> None:
        """Take in what has changed."""
        if delta.topics or delta.fields:
            self._own()
        for topic in delta.topics.values():
            self._put(topic)
        for field in delta.fields.values():
            self._put_note(field)

    def drop(self, tenant: str, names: Iterable[str]) -> None:
        """Forget topics and fields for good."""
        self._own()
        for name in names:
            self._topics.drop(tenant, name)
            self._notes.drop(tenant, name)
            self._words.drop(tenant, name)
            self._waiting.pop(name, None)

    def _put(self, topic: Topic) -> None:
        if topic.into or topic.archived or not topic.vector:
            self._topics.drop(topic.tenant, topic.id)
        else:
            vector = np.frombuffer(topic.vector, dtype=np.float32)
            self._topics.put(topic.tenant, topic.id, vector)

    def _put_note(self, field: Field) -> None:
        if "note" in field.tags and field.value is not None:
            self._words.put(field.tenant, field.id, field.value)
            self._waiting[field.id] = None

    def near(self, topic: Topic) -> list[tuple[str, float]]:
        """Topics of nearly the same meaning."""
        if not topic.vector:
            return []
        vector = np.frombuffer(topic.vector, dtype=np.float32)
        found = self._topics.nearest(topic.tenant, vector, 3)
        return [(name, cosine) for name, cosine in found if name != topic.id and cosine >= SIMILAR]

    def topics(self, tenant: str, text: str, limit: int) -> list[str]:
        """The topics that a text names, the longest title first; then the nearest in meaning."""
        named = dict.fromkeys(
            name for run in grams(text) if (name := self._mirror.by_title.get((tenant, run)))
        )
        if len(named) < limit and self._embed is not None:
            vector = self._embed([text])[0]
            named |= dict.fromkeys(n for n, _ in self._topics.nearest(tenant, vector, limit))
        return list(named)[:limit]

    def fields(self, tenant: str, text: str, limit: int) -> list[str]:
        """The fields that a text asks for, best first.

        Fields that are named come first, within topics that are named or near; then notes near in
        meaning; then what else those topics hold, the most salient first.
        """
        mirror = self._mirror
        runs = set(grams(text))
        topics = self.topics(tenant, text, TOPICS_NEAR)
        named_topics = [t for t in topics if key(mirror.topics[t].title) in runs]
        fields = [
            field
            for topic in named_topics or topics
            for name in mirror.of_topic[topic]
            if mirror.active(field := mirror.fields[name]) and "note" not in field.tags
        ]
        named = [field.id for field in fields if key(field.name) in runs]
        others = sorted((f for f in fields if f.id not in named), key=lambda f: -f.salience)
        found = [*named, *self._near_notes(tenant, text, limit), *(f.id for f in others)]
        return list(dict.fromkeys(found))[:limit]

    def _near_notes(self, tenant: str, text: str, limit: int) -> list[str]:
        fields = self._mirror.fields
        return [n for n in self.notes(tenant, text, limit) if self._mirror.active(fields[n])]

    def notes(self, tenant: str, text: str, limit: int) -> list[str]:
        """Notes by words and meaning, best first, whatever has become of them."""
        deep = max(limit, NOTES_DEEP)
        rankings = [self._words.nearest(tenant, text, deep)]
        if self._embed is not None and rankings[0]:
            self._embed_waiting()
            near = self._notes.nearest(tenant, self._embed([text])[0], deep)
            rankings.append([name for name, _ in near])
        return fused(rankings, limit)

    def _embed_waiting(self) -> None:
        """Notes are embedded when they are first looked for, many at once."""
        fields = [f for n in self._waiting if (f := self._mirror.fields.get(n)) is not None]
        if fields and self._embed is not None:
            vectors = self._embed([field.value or "" for field in fields])
            for field, vector in zip(fields, vectors, strict=True):
                self._notes.put(field.tenant, field.id, vector)
        self._waiting.clear()
