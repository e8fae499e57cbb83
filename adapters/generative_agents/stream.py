"""The memory stream of one agent, and the score by which it is searched."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Final, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from steeltrap.adapters.embedders.base import Vectors
from steeltrap.harness.memory import Subject

__all__ = [
    "CODE",
    "IMPORTANCE_MAX",
    "PAPER",
    "Record",
    "Scores",
    "Scoring",
    "Stream",
    "Variant",
    "named",
]

Variant = Literal["paper", "code"]
Scores = NDArray[np.float64]
"""One number a record, in the order of the stream."""
IMPORTANCE_MAX: Final = 10
_DIGITS: Final = 9
"""Digits of a score that count: what lies beyond is the noise of floating point."""
_SECONDS_AN_HOUR: Final = 3600


class Record(msgspec.Struct, frozen=True):
    """A memory object (section 4.1), or a reflection, which is one too (section 4.2)."""

    number: int
    text: str
    at: str
    """When it was made."""
    accessed: str
    """When it was last retrieved, or made."""
    importance: int
    """1 to 10, by the model, when it was made."""
    turns: tuple[str, ...]
    """The turn that was observed; of a reflection those at the leaves of its tree."""
    vector: Vectors
    """Of the text."""
    because: tuple[int, ...] = ()
    """reflection: the records that it cites."""


def named(record: Record, name: str) -> bool:
    """Whether a record names something."""
    return name.casefold() in record.text.casefold()


class Stream(msgspec.Struct):
    """All that an agent remembers, oldest first. It only grows."""

    records: list[Record] = []
    next: int = 1
    pending: int = 0
    """Importance of what was observed since the last reflection."""

    def copy(self) -> Stream:
        """Another one with the same records; those never change."""
        return Stream(list(self.records), self.next, self.pending)

    def forget(self, subject: Subject) -> None:
        """Drop what names the subject's topic, and reflections of which nothing is left that they
        were drawn from."""
        kept: dict[int, Record] = {}
        for record in self.records:
            because = tuple(number for number in record.because if number in kept)
            if named(record, subject.topic) or (record.because and not because):
                continue
            if because != record.because:
                turns = dict.fromkeys(turn for n in because for turn in kept[n].turns)
                record = msgspec.structs.replace(record, because=because, turns=tuple(turns))
            kept[record.number] = record
        self.records = list(kept.values())

    def add(
        self, text: str, at: str, importance: int, turns: Sequence[str], vector: Vectors,
        because: Sequence[int] = (),
    ) -> None:  # fmt: skip
        """Remember one thing more."""
        self.records.append(
            Record(self.next, text, at, at, importance, tuple(turns), vector, tuple(because))
        )
        self.next += 1

    def access(self, records: Sequence[Record], at: str) -> None:
        """Note that some were retrieved; a time before the last access changes nothing."""
        read = {record.number for record in records}
        self.records = [
            msgspec.structs.replace(one, accessed=max(one.accessed, at))
            if one.number in read
            else one
            for one in self.records
        ]


class Scoring(msgspec.Struct, frozen=True):
    """How recency, relevance and importance make one score, each scaled to [0, 1] first."""

    recency: Callable[[Sequence[Record], str, float], Scores]
    decay: float
    weights: tuple[float, float, float]
    """Of recency, relevance and importance."""

    def salience(self, records: Sequence[Record], at: str) -> Scores:
        """What each record stands by without a question: weighed recency and importance.

        Neither is scaled to what else is in the stream, so that a record moves when it is read and
        with time, and not because others were.
        """
        recent, _, important = self.weights
        recency, importance = self.recency(records, at, self.decay), _importance(records)
        salience: Scores = recent * recency + important * importance / IMPORTANCE_MAX
        return salience

    def best(
        self, records: Sequence[Record], question: Vectors, at: str, limit: int
    ) -> list[tuple[Record, float]]:
        """The best records for the vector of a question, with their scores; of equal ones the later
        first.
        """
        if not records or limit < 1:
            return []
        rows = np.array([record.vector for record in records], dtype=np.float64)
        relevance = (rows * question.astype(np.float64)).sum(axis=1)
        parts = self.recency(records, at, self.decay), relevance, _importance(records)
        scores = sum(
            weight * _scaled(part) for weight, part in zip(self.weights, parts, strict=True)
        )
        rounded = np.round(scores, _DIGITS)
        order = np.lexsort((-np.arange(len(records)), -rounded))[:limit]
        return [(records[place], float(rounded[place])) for place in order]


def _importance(records: Sequence[Record]) -> Scores:
    return np.array([record.importance for record in records], dtype=np.float64)


def _scaled(values: Scores) -> Scores:
    """Min-max scaling; values that are all alike lie in the middle, as in the released code."""
    low, high = values.min(), values.max()
    scaled: Scores = np.full_like(values, 0.5) if high == low else (values - low) / (high - low)
    return scaled


def _since_access(records: Sequence[Record], at: str, decay: float) -> Scores:
    """Decay by the hours since a record was last retrieved (section 4.1)."""
    now = datetime.fromisoformat(at)
    ages = [now - datetime.fromisoformat(record.accessed) for record in records]
    hours = [max(0.0, age.total_seconds() / _SECONDS_AN_HOUR) for age in ages]
    decayed: Scores = decay ** np.array(hours, dtype=np.float64)
    return decayed


def _by_place(records: Sequence[Record], at: str, decay: float) -> Scores:  # noqa: ARG001
    """Decay by place, as the released code has it: from the record that was retrieved longest ago.

    It sorts by last access, oldest first, with observations before reflections and the later
    made first where that is equal, and gives the first place the least decay. So what was just
    retrieved has the lowest recency of all.
    """
    first = sorted(records, key=lambda one: (bool(one.because), -one.number))
    order = sorted(first, key=lambda one: one.accessed)
    place = {record.number: place for place, record in enumerate(order, 1)}
    places = np.array([place[record.number] for record in records], dtype=np.float64)
    decayed: Scores = decay**places
    return decayed


PAPER: Final = Scoring(_since_access, 0.995, (1.0, 1.0, 1.0))
"""Section 4.1: decay 0.995 an hour, all weights 1."""
CODE: Final = Scoring(_by_place, 0.99, (0.5, 3.0, 2.0))
"""`retrieve.py` and `scratch.py` of the released code."""
