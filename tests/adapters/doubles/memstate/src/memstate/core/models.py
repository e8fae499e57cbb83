"""What is asked of the executor, and what it answers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from memstate.datamodel.fields import FieldHistoryEntry


@dataclass
class Policies:
    """Its limits."""

    max_field_history: int = 500
    forget_salience_threshold: float = 0.05
    topic_count_soft_limit: int = 500
    query_salience_bump: float = 0.1


@dataclass
class FieldWrite:
    """A value to be written."""

    name: str
    value: Any = ""
    provenance: str = "api"


@dataclass
class EdgeWrite:
    """An edge to be written."""

    to_topic_id: str
    kind: str


@dataclass
class IngestRequest:
    """One write."""

    placement: str
    topic_id: str | None = None
    title: str = ""
    summary: str | None = None
    salience: float = 1.0
    fields: list[FieldWrite] = field(default_factory=list)
    edges: list[EdgeWrite] = field(default_factory=list)


@dataclass
class QueryRequest:
    """One question."""

    q: str
    explain: bool = False
    top_k: int = 8


@dataclass
class FieldOut:
    """A field that was found."""

    name: str
    history: list[FieldHistoryEntry]


@dataclass
class TopicBundle:
    """A topic that was found."""

    topic_id: str
    title: str
    similarity: float
    fields: list[FieldOut]


@dataclass
class QueryResponse:
    """All that was found."""

    candidates: list[TopicBundle]
