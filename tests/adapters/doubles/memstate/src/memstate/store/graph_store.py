"""The graph: a dictionary, written to its file after each change."""

from __future__ import annotations

import json
import uuid
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from memstate.config import Settings
from memstate.datamodel.fields import FieldHistoryEntry, TopicField

__all__ = ["GraphStore", "get_store", "uuid"]


def _now_iso() -> str:
    return datetime.now(UTC).isoformat()


class GraphStore:
    """Topics by id."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._topics: dict[str, dict[str, Any]] = {}
        self._edges: set[tuple[str, str, str]] = set()
        self._write()

    def _write(self) -> None:
        self._path.write_text(
            json.dumps(
                {
                    topic: one | {"fields": {n: asdict(f) for n, f in one["fields"].items()}}
                    for topic, one in self._topics.items()
                }
            )
        )

    def create_topic(self, topic: str, title: str, salience: float, embedding: list[float]) -> None:
        """Make one."""
        self._topics[topic] = {
            "id": topic, "title": title, "salience": salience, "archived": False,
            "embedding": embedding, "created_at": _now_iso(), "fields": {},
        }  # fmt: skip
        self._write()

    def get_topic(self, topic_id: str) -> dict[str, Any] | None:
        """One, or nothing."""
        return self._topics.get(topic_id)

    def update_topic_meta(self, topic_id: str, **changes: Any) -> None:
        """Change what it says of itself."""
        self._topics[topic_id] |= changes
        self._write()

    def append_field_history(
        self, topic_id: str, name: str, entry: FieldHistoryEntry, most: int
    ) -> None:
        """A newer value."""
        field = self._topics[topic_id]["fields"].setdefault(name, TopicField())
        field.history = [entry, *field.history][:most]
        self._write()

    def get_field_with_history(self, topic_id: str, field_name: str) -> TopicField | None:
        """A field."""
        found: TopicField | None = self._topics[topic_id]["fields"].get(field_name)
        return found

    def list_fields_for_topic(self, topic_id: str) -> list[str]:
        """Names of fields, in order."""
        return sorted(self._topics[topic_id]["fields"]) if topic_id in self._topics else []

    def list_topic_ids(self, *, include_archived: bool = False) -> list[str]:
        """Ids."""
        return [t for t, one in self._topics.items() if include_archived or not one["archived"]]

    def count_topics(self) -> int:
        """How many, archived ones too."""
        return len(self._topics)

    def add_related_edge(self, from_id: str, to_id: str, kind: str) -> None:
        """An edge."""
        self._edges.add((from_id, to_id, kind))

    def delete_topic(self, topic_id: str) -> None:
        """Remove a topic with its edges."""
        self._topics.pop(topic_id, None)
        self._edges = {edge for edge in self._edges if topic_id not in edge[:2]}
        self._write()

    def delete_field(self, topic_id: str, field_name: str) -> None:
        """Remove a field with its values."""
        self._topics[topic_id]["fields"].pop(field_name, None)
        self._write()


def get_store(settings: Settings | None = None) -> GraphStore:
    """The store of a file."""
    return GraphStore(Path((settings or Settings()).kuzu_path))
