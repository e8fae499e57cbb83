"""Values of fields."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from typing import Any


@dataclass
class FieldHistoryEntry:
    """One value of a field."""

    value: Any
    valid_from: str
    provenance: str = "api"
    why_changed: str | None = None
    impact_expected: str | None = None
    id: str = field(default_factory=lambda: str(uuid.uuid4()))


@dataclass
class TopicField:
    """A field: its values, the newest first."""

    field_type: str = "string"
    ref_topic_id: str | None = None
    history: list[FieldHistoryEntry] = field(default_factory=list)
