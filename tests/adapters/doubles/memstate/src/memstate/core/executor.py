"""What writes and reads."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime
from typing import Any

import numpy as np

from memstate.core.models import (
    FieldOut,
    IngestRequest,
    Policies,
    QueryRequest,
    QueryResponse,
    TopicBundle,
)
from memstate.datamodel.fields import FieldHistoryEntry
from memstate.store.graph_store import GraphStore


def _utc_iso() -> str:
    return datetime.now(UTC).isoformat()


class Executor:
    """Writes requests into a store, and answers questions from it."""

    def __init__(
        self, store: GraphStore, policies: Policies | None = None, embedder: Any = None
    ) -> None:
        self.store = store
        self.policies = policies or Policies()
        self._embedder = embedder

    def ingest(self, req: IngestRequest) -> str:
        """Write one request."""
        topic = req.topic_id or ""
        if req.placement == "new_topic":
            topic = str(uuid.uuid4())
            (vector,) = self._embedder.embed([req.title])
            self.store.create_topic(topic, req.title or "untitled", req.salience, vector)
        elif req.placement not in ("extend_topic", "version_field"):
            raise ValueError("unknown placement")
        elif self.store.get_topic(topic) is None:
            raise ValueError("topic not found")
        elif req.placement == "version_field" and len(req.fields) != 1:
            raise ValueError("version_field requires topic_id and exactly one field")
        for write in req.fields:
            entry = FieldHistoryEntry(write.value, _utc_iso(), write.provenance)
            most = self.policies.max_field_history
            self.store.append_field_history(topic, write.name, entry, most)
        for edge in req.edges:
            self.store.add_related_edge(topic, edge.to_topic_id, edge.kind)
        return topic

    def query(self, req: QueryRequest) -> QueryResponse:
        """The topics whose titles are nearest, each of which gains salience."""
        asked = np.array(self._embedder.embed([req.q])[0])
        near = {}
        for topic in self.store.list_topic_ids():
            vector = np.array((self.store.get_topic(topic) or {})["embedding"])
            length = float(np.linalg.norm(asked) * np.linalg.norm(vector)) or 1.0
            near[topic] = float((asked * vector).sum()) / length
        best = sorted(near, key=lambda topic: -near[topic])[: req.top_k]
        return QueryResponse([self._bundle(topic, near[topic], req) for topic in best])

    def _bundle(self, topic: str, near: float, req: QueryRequest) -> TopicBundle:
        found = self.store.get_topic(topic) or {}
        bump = self.policies.query_salience_bump
        self.store.update_topic_meta(topic, salience=found["salience"] + bump)
        fields = []
        for name in self.store.list_fields_for_topic(topic):
            field = self.store.get_field_with_history(topic, name)
            values = field.history if field else []
            fields.append(FieldOut(name, values if req.explain else values[:1]))
        return TopicBundle(topic, found["title"], near, fields)

    def run_forget_low_salience(self) -> list[str]:
        """Archive what has little salience."""
        least = self.policies.forget_salience_threshold
        gone = [
            topic
            for topic in self.store.list_topic_ids()
            if (self.store.get_topic(topic) or {})["salience"] < least
        ]
        for topic in gone:
            self.store.update_topic_meta(topic, archived=True)
        return gone
