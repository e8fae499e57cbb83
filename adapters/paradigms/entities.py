"""Graphs of entities: what RDF and property graphs have in common, however they store it.

A topic is an entity and a field one of its attributes, which holds one value. Edges are typed and
go from entity to entity: an edge says that something about the one depends on something about the
other, and not which field on which. That is the grain that the paper finds in this family ("Typed,
entity-grain", table 1; "property graph or RDF stores desynchronize at entity grain", section 2.2).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import Any, Literal, get_args

from steeltrap.adapters.paradigms.base import Held, Paradigm, Write
from steeltrap.reference_system.statements import Place, Question

__all__ = ["EntityGraph", "OnUpdate"]

OnUpdate = Literal["nothing", "mark"]
_HOPS = 3
"""A question that looks further sees most of a graph."""


class EntityGraph(Paradigm):
    """A graph of entities that is updated in place, so that what held before is gone.

    Neither engine does anything by itself when a value changes. What an engineer can have of it is
    one walk along the edges: with `on_update=mark` every entity from which dependency edges lead to
    the one that changed, over all hops, is marked for review, and so is each of its values that was
    said before. Whether a value is among those that depend cannot be seen at this grain. A value
    that is said after the mark needs no review. Edges of association are not walked.

    Args:
        on_update: `mark`, or `nothing`.
        hops: a question is answered by the values asked for, and then by those of the entities
            that lie so many edges of either type away; 0 leaves these out.
        settings: as for `Paradigm`.

    Raises:
        ValueError: a setting is unknown, or `hops` is not between 0 and 3.
    """

    def __init__(self, *, on_update: OnUpdate = "mark", hops: int = 1, **settings: Any) -> None:
        super().__init__(**settings)
        if on_update not in get_args(OnUpdate):
            known = " or ".join(get_args(OnUpdate))
            raise ValueError(f"{self.name}: on_update={on_update}: it is {known}")
        if not 0 <= hops <= _HOPS:
            raise ValueError(f"{self.name}: hops={hops}: set 0 to {_HOPS}")
        self._marks = on_update == "mark"
        self._hops = hops
        self._said = 0

    # ------------------------------------------------------------ the graph

    @abstractmethod
    def replace(self, write: Write) -> bool:
        """Store a value in the place of what the field holds, unless that began to hold later.

        Returns:
            Whether another value was there and is gone.
        """

    @abstractmethod
    def confirm(self, write: Write) -> None:
        """The value that the field holds was said once more, perhaps in another spelling."""

    @abstractmethod
    def remove(self, tenant: str, place: Place) -> None:
        """The field holds nothing any more."""

    @abstractmethod
    def mark(self, tenant: str, topic: str) -> None:
        """Mark the entities that depend on one, over all hops; on a cycle that is itself, too.

        The mark has the number of the latest statement, which itself needs no review.
        """

    # ------------------------------------------------------------ the operations of a store

    def put(self, write: Write) -> None:
        """Store or confirm a value; where another one was there, mark what depends on its entity.

        A first value marks nothing: what follows from it was not there to follow.
        """
        if write.repeats:
            self.confirm(write)
        elif self.replace(write) and self._marks:
            self.mark(write.tenant, write.topic)

    def withdraw(self, tenant: str, place: Place, turn: str, at: str) -> None:  # noqa: ARG002
        """Remove a value, and mark what depends on its entity; who withdrew it is not kept."""
        self.remove(tenant, place)
        self.number()
        if self._marks:
            self.mark(tenant, place.topic)

    def _answer(self, tenant: str, asked: Question, limit: int, at: str) -> Iterator[Held]:
        """What was asked for, and then what lies about it, each once."""
        given = set()
        for held in super()._answer(tenant, asked, limit, at):
            given.add((held.topic, held.field))
            yield held
        for topic in dict.fromkeys(place.topic for place in self._fields(tenant, asked.places)):
            for held in self.linked(tenant, Place(topic, ""), at):
                if (held.topic, held.field) not in given:
                    given.add((held.topic, held.field))
                    yield held

    def number(self) -> int:
        """The number of the next statement; later ones have higher numbers."""
        self._said += 1
        return self._said
