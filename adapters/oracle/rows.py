"""What a row of the tables is as a value of the package, and the other way round."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from oracleagentmemory._notset import NOT_SET_MARKER as UNSET
from oracleagentmemory.apis.message import _message_content_to_search_text
from oracleagentmemory.apis.records import RecordStatus, build_record
from oracleagentmemory.apis.relations import RecordRelation

__all__ = [
    "MEMORIES",
    "SEARCHED",
    "UNSET",
    "as_json",
    "as_link",
    "as_plain",
    "as_record",
    "condition",
    "expiry",
    "marks",
    "payloads",
    "spread",
]

MEMORIES: Final = ("memory", "guideline", "fact", "preference")
"""Kinds of durable memories, which one table of the package holds."""
SEARCHED: Final = ("message", *MEMORIES, "user_profile", "agent_profile")
"""Kinds of records that have vectors."""
CHUNK_CHARS: Final = 4000
"""Longer texts have several vectors: the default of the package."""


def spread(given: Any, size: int) -> list[Any]:
    """One value a record: each its own, or all the same; None where none was given."""
    if isinstance(given, list | tuple):
        return list(given)
    return [None if given is UNSET else given] * size


def condition(asked: Mapping[str, Any]) -> tuple[str, list[Any]]:
    """A condition on columns; what is `UNSET` does not matter, and None is NULL."""
    wanted = {name: value for name, value in asked.items() if value is not UNSET}
    return " AND ".join(["1", *(f"{name} IS ?" for name in wanted)]), list(wanted.values())


def marks(values: Sequence[Any]) -> str:
    """A question mark for each value."""
    return ", ".join("?" * len(values))


def as_json(value: Any) -> str | None:
    """JSON; None stays None."""
    return None if value is None else json.dumps(value)


def as_plain(content: Any) -> Any:
    """Content as JSON has it; the parts of a message become one text."""
    if content is None or isinstance(content, str | dict):
        return content
    if isinstance(content, Mapping):
        return dict(content)
    return _message_content_to_search_text(content)


def payloads(row: Mapping[str, Any]) -> list[str]:
    """The texts that stand for a record in a search."""
    if row["kind"] not in SEARCHED:
        return []
    if isinstance(row["index"], list | tuple):
        return [text for text in row["index"] if text]
    text = row["index"] if row["index"] is not None else row["content"] or ""
    return [
        text[start : start + CHUNK_CHARS]
        for start in range(0, len(text), CHUNK_CHARS)
        if text.strip()
    ]


def expiry(given: Mapping[str, Any], created: str) -> str | None:
    """When a record expires: what it inherits, or so many days after it was stored or said."""
    if isinstance(given["expires_at"], datetime):
        return given["expires_at"].replace(tzinfo=None).isoformat(timespec="minutes")
    if not given["ttl_days"]:
        return None
    said = getattr(given["ttl_anchor"], "name", "") == "TIMESTAMP" and given["timestamp"]
    start = datetime.fromisoformat(said or created).replace(tzinfo=None)
    return (start + timedelta(days=given["ttl_days"])).isoformat(timespec="minutes")


def as_record(row: sqlite3.Row) -> Any:
    """A row of `record`; a message's number in its thread is the number of its row."""
    kind = row["kind"]
    scope = {name: row[name] for name in ("thread_id", "user_id", "agent_id")}
    return build_record(
        kind, row["id"], content=json.loads(row["content"]),
        timestamp=row["timestamp"] or row["created_at"],
        metadata=json.loads(row["metadata"] or "null"), status=RecordStatus(row["status"]),
        **({} if kind.endswith("_profile") else scope),
        **({"role": row["role"], "seq_no": row["seq"]} if kind == "message" else {}),
    )  # fmt: skip


def as_link(row: sqlite3.Row) -> Any:
    """A row of `link`, with the ids and kinds of both ends."""
    return RecordRelation(
        id=row["id"], source_record_id=row["source_id"], source_record_type=row["source_kind"],
        target_record_id=row["target_id"], target_record_type=row["target_kind"],
        relation_type=row["type"], opposite_relation_type=row["opposite"],
        timestamp=row["timestamp"], metadata=json.loads(row["metadata"] or "null"),
        created_at=row["created_at"],
    )  # fmt: skip
