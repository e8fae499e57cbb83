"""A memory store in SQLite, in the place of the package's own store in an Oracle database.

What a store has to do is told by the docstrings of the package's abstract store and of its database
store: scopes, statuses that follow from links, expiry, cascades, the order of results. Ranking is
the database store's default, the least cosine distance of a record's chunks. It keeps text; images,
and searching by words or by both words and vectors, are the database's alone.
"""

from __future__ import annotations

import builtins
import json
import sqlite3
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

import numpy as np
from oracleagentmemory._notset import NOT_SET_MARKER as UNSET
from oracleagentmemory.apis.message import _message_content_to_search_text
from oracleagentmemory.apis.records import Record, RecordStatus, ThreadRecord, build_record
from oracleagentmemory.apis.relations import RecordRelation
from oracleagentmemory.core._metadata_filter import (
    matches_metadata_filter,
    matches_nullable_metadata_filter,
)
from oracleagentmemory.core.oraclememorystore import OracleMemoryStore

__all__ = ["MEMORIES", "LocalStore"]

MEMORIES: Final = ("memory", "guideline", "fact", "preference")
"""Kinds of durable memories, which one table of the package holds."""
SEARCHED: Final = ("message", *MEMORIES, "user_profile", "agent_profile")
"""Kinds of records that have vectors."""
LISTED: Final = 1000
"""A listing without a number stops here."""
CHUNK_CHARS: Final = 4000
"""Longer texts have several vectors: the default of the package."""
OPPOSITES: Final = {
    "supersedes": "is_superseded_by", "refines": "is_refined_by", "supports": "is_supported_by",
}  # fmt: skip
"""What a link is called from the other end; others have one name."""
_EPOCH: Final = "1970-01-01T00:00"


class LocalStore(OracleMemoryStore):
    """One file of SQLite.

    Args:
        path: the file, which is made.
        embedder: the package's embedder.
        now: gives the time as ISO 8601.
        name: gives an id that no record has yet.
    """

    def __init__(
        self, path: Path, embedder: Any, now: Callable[[], str], name: Callable[[], str]
    ) -> None:
        self._embedder = embedder
        self._now = now
        self._name = name
        self._lock = threading.RLock()  # the package calls from threads of its own
        self._db = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
        self._db.row_factory = sqlite3.Row
        self._db.executescript((files(__package__) / "tables.sql").read_text(encoding="utf-8"))

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._db.close()

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """All of what follows, or nothing."""
        with self._lock:
            self._db.execute("BEGIN")
            try:
                yield self._db
            except BaseException:
                self._db.execute("ROLLBACK")
                raise
            self._db.execute("COMMIT")

    def _rows(self, sql: str, given: Sequence[Any] = ()) -> builtins.list[sqlite3.Row]:
        with self._lock:
            return self._db.execute(sql, given).fetchall()

    # ------------------------------------------------------------ writing

    def _add_prepared_batches(self, batches: Any, **_: Any) -> builtins.list[str]:
        rows = [row for batch in batches for row in self._batch_rows(batch)]
        vectors = self._vectors(rows)
        with self._transaction():
            for row, made in zip(rows, vectors, strict=True):
                self._insert(row, made)
        return [row["id"] for row in rows]

    async def _add_prepared_batches_async(self, batches: Any, **kwargs: Any) -> Any:
        return self._add_prepared_batches(batches, **kwargs)

    def _batch_rows(self, batch: Any) -> builtins.list[dict[str, Any]]:
        """The records of a batch, with the payloads that stand for them in search."""
        batch = self._normalize_pending_batch(batch)
        contents = self._materialize_batch_contents(batch)
        spread = {
            name: _spread(getattr(batch, field), len(contents))
            for name, field in {
                "id": "record_ids", "thread_id": "thread_ids", "user_id": "user_ids",
                "agent_id": "agent_ids", "role": "roles", "timestamp": "timestamps",
                "metadata": "metadata", "status": "statuses", "index": "index_texts",
                "given": "embeddings", "ttl_days": "ttl_days", "ttl_anchor": "ttl_anchor",
                "expires_at": "_expires_at",
            }.items()
        }  # fmt: skip
        return [
            self._row(
                batch.record_type, content, {name: of[place] for name, of in spread.items()}
            )
            for place, content in enumerate(contents)
        ]

    def _row(self, kind: str, content: Any, given: dict[str, Any]) -> dict[str, Any]:
        metadata = given["metadata"]
        if content is None and kind != "thread_summary":
            content = (metadata or {}).get("content", "")
        created = self._now()
        return given | {
            "kind": kind,
            "id": given["id"] or self._name(),
            "content": _plain(content),
            "created_at": created,
            "expires_at": _expiry(given, created),
            "status": RecordStatus(given["status"] or RecordStatus.VALID).value,
        }

    def _vectors(self, rows: Sequence[dict[str, Any]]) -> builtins.list[builtins.list[bytes]]:
        """Of each row its chunks' vectors; what was given is taken, the rest embedded at once."""
        parts = [_chunks(row) if row["given"] is None else [] for row in rows]
        texts = [text for chunks in parts for text in chunks]
        made = iter(self._embedder.embed(texts) if texts else ())
        return [
            [np.asarray(next(made), dtype=np.float32).tobytes() for _ in chunks]
            if row["given"] is None
            else [vector.tobytes() for vector in np.atleast_2d(np.float32(row["given"]))]
            for row, chunks in zip(rows, parts, strict=True)
        ]

    def _insert(self, row: dict[str, Any], vectors: Sequence[bytes]) -> None:
        if self._seq(row["kind"], row["id"]) is not None:
            raise ValueError(f"duplicate record id: {row['id']}")
        values = [row[name] for name in ("kind", "id", "thread_id", "user_id", "agent_id", "role")]
        values += [
            json.dumps(row["content"]), row["timestamp"], row["created_at"], row["expires_at"],
            row["status"], _json(row["metadata"]),
        ]  # fmt: skip
        done = self._db.execute(
            "INSERT INTO record (kind, id, thread_id, user_id, agent_id, role, content, timestamp,"
            f" created_at, expires_at, status, metadata) VALUES ({', '.join('?' * 12)})",
            values,
        )
        self._db.executemany(
            "INSERT INTO chunk VALUES (?, ?)", [(done.lastrowid, vector) for vector in vectors]
        )

    def add_user(self, user_id: Any = UNSET, information: Any = UNSET, metadata: Any = UNSET) -> str:
        """See the package."""
        return self._add_profile("user_profile", user_id, information, metadata)

    def add_agent(self, agent_id: str, information: str, metadata: Any = UNSET) -> str:
        """See the package."""
        return self._add_profile("agent_profile", agent_id, information, metadata)

    def _add_profile(self, kind: str, name: str, information: str, metadata: Any) -> str:
        return str(self.add([information], record_type=kind, record_ids=name, metadata=metadata)[0])

    def update(
        self,
        record_type: str,
        record_id: str,
        content: Any = UNSET,
        index_text: Any = UNSET,
        embedding: Any = UNSET,
        metadata: Any = UNSET,
        timestamp: Any = UNSET,
        ttl_days: Any = UNSET,
        ttl_anchor: Any = UNSET,
        status: Any = UNSET,
        text: Any = UNSET,
    ) -> int:
        """See the package."""
        found = self._seq(record_type, record_id)
        if found is None:
            return 0
        content = text if content is UNSET else content
        changes: dict[str, Any] = {}
        if content is not UNSET:
            changes["content"] = json.dumps(_plain(content))
        if metadata is not UNSET:
            changes["metadata"] = _json(metadata)
        if timestamp is not UNSET:
            changes["timestamp"] = timestamp
        if status is not UNSET:
            changes["status"] = RecordStatus(status).value
        if ttl_days is not UNSET:
            (row,) = self._rows("SELECT timestamp, created_at FROM record WHERE seq = ?", [found])
            given = {"timestamp": changes.get("timestamp", row["timestamp"]), "expires_at": None}
            given |= {"ttl_days": ttl_days, "ttl_anchor": None if ttl_anchor is UNSET else ttl_anchor}
            changes["expires_at"] = _expiry(given, row["created_at"])
        row = {
            "kind": record_type, "content": _plain(content) if content is not UNSET else None,
            "index": None if index_text is UNSET else index_text,
            "given": None if embedding is UNSET else embedding,
        }  # fmt: skip
        anew = UNSET not in (content,) or row["index"] is not None or row["given"] is not None
        vectors = self._vectors([row])[0] if anew else []
        with self._transaction():
            for column, value in changes.items():  # names of ours
                self._db.execute(f"UPDATE record SET {column} = ? WHERE seq = ?", [value, found])
            if anew:
                self._db.execute("DELETE FROM chunk WHERE record = ?", [found])
                self._db.executemany(
                    "INSERT INTO chunk VALUES (?, ?)", [(found, vector) for vector in vectors]
                )
        return 1

    # ------------------------------------------------------------ removing

    def delete(self, record_type: str, record_id: str, cascade: bool = False) -> int:
        """See the package."""
        if record_type == "thread":
            return self.delete_thread(record_id)
        with self._transaction():
            if cascade and record_type in ("user_profile", "agent_profile"):
                owner = "user_id" if record_type == "user_profile" else "agent_id"
                for row in self._rows(f"SELECT id FROM thread WHERE {owner} = ?", [record_id]):
                    self._drop_thread(row["id"])
                self._db.execute(f"DELETE FROM record WHERE {owner} = ?", [record_id])
            kinds = MEMORIES if record_type in MEMORIES else (record_type,)
            done = self._db.execute(
                f"DELETE FROM record WHERE id = ? AND kind IN ({_marks(kinds)})", [record_id, *kinds]
            )
        return done.rowcount

    def delete_thread(self, thread_id: str) -> int:
        """See the package."""
        with self._transaction():
            return self._drop_thread(thread_id)

    def _drop_thread(self, thread_id: str) -> int:
        self._db.execute("DELETE FROM record WHERE thread_id = ?", [thread_id])
        return self._db.execute("DELETE FROM thread WHERE id = ?", [thread_id]).rowcount

    # ------------------------------------------------------------ reading

    def get(self, record_type: str, record_id: str, include_bytes: Any = UNSET) -> Record | None:
        """See the package."""
        if record_type == "thread":
            return self._get_thread_record(record_id)
        found = self.list(record_type, limit=1, record_id=record_id)
        return found[0] if found else None

    def list(
        self,
        record_type: str,
        *,
        limit: Any = UNSET,
        thread_id: Any = UNSET,
        user_id: Any = UNSET,
        agent_id: Any = UNSET,
        metadata_filter: Any = UNSET,
        include_bytes: Any = UNSET,
        record_id: Any = UNSET,
    ) -> builtins.list[Any]:
        """See the package."""
        if record_type == "thread":
            found = self._threads(user_id, agent_id, record_id)
        else:
            scope = {"thread_id": thread_id, "user_id": user_id, "agent_id": agent_id}
            scope = {} if record_type.endswith("_profile") else scope
            where, given = _where({"kind": record_type, "id": record_id, **scope})
            found = [_record(row) for row in self._alive(where, given)]
        found = [
            one for one in found if matches_nullable_metadata_filter(one.metadata, metadata_filter)
        ]
        most = LISTED if limit is UNSET else limit
        return found if most is None else found[:most]

    def list_thread_messages(
        self,
        thread_id: str,
        *,
        last_n: int | None = None,
        range_start_seq_no: int | None = None,
        range_end_seq_no: int | None = None,
        include_bytes: Any = UNSET,
    ) -> builtins.list[Any]:
        """See the package."""
        found = [
            record
            for record in self.list("message", limit=None, thread_id=thread_id)
            if (range_start_seq_no is None or record.seq_no >= range_start_seq_no)
            and (range_end_seq_no is None or record.seq_no < range_end_seq_no)
        ]
        return found if last_n is None else found[max(0, len(found) - last_n) :]

    def search(
        self,
        query: str | None,
        k: int,
        query_vector: Any = None,
        thread_id: str | None = None,
        user_id: str | None = None,
        agent_id: str | None = None,
        exact_user_match: bool = False,
        exact_agent_match: bool = False,
        exact_thread_match: bool = False,
        record_types: set[str] | None = None,
        metadata_filter: Any = None,
        num_hops: int = 0,
        max_linked_results: int = 100,
        include_invalid_results: bool = True,
    ) -> builtins.list[tuple[Any, float]]:
        """See the package; links are not followed (`num_hops`)."""
        k = self._validate_search_k(k)
        if (query is None) == (query_vector is None):
            raise ValueError("search takes a query or a vector")
        if num_hops:
            raise ValueError("this store follows no links in a search")
        kinds = sorted(record_types & set(SEARCHED)) if record_types else SEARCHED
        scope = {
            "thread_id": thread_id if exact_thread_match else UNSET,
            "user_id": user_id if exact_user_match else UNSET,
            "agent_id": agent_id if exact_agent_match else UNSET,
            "status": UNSET if include_invalid_results else "valid",
        }
        where, given = _where(scope)
        rows = self._alive(f"{where} AND kind IN ({_marks(kinds)})", [*given, *kinds])
        rows = [
            row
            for row in rows
            if not metadata_filter
            or matches_metadata_filter(json.loads(row["metadata"] or "null"), metadata_filter)
        ]
        vector = self._embedder.embed([query], is_query=True)[0] if query else query_vector
        return self._nearest(rows, np.asarray(vector, dtype=np.float32), k)

    def _nearest(
        self, rows: Sequence[sqlite3.Row], vector: Any, k: int
    ) -> builtins.list[tuple[Any, float]]:
        """The records whose nearest chunk is nearest; of equals the older first."""
        by_seq = {row["seq"]: row for row in rows}
        chunks = [
            chunk
            for chunk in self._rows("SELECT record, vector FROM chunk ORDER BY record")
            if chunk["record"] in by_seq
        ]
        if not chunks:
            return []
        table = np.array([np.frombuffer(chunk["vector"], np.float32) for chunk in chunks])
        lengths = np.linalg.norm(table, axis=1) * (np.linalg.norm(vector) or 1.0)
        likeness = (table * vector).sum(axis=1) / np.where(lengths > 0, lengths, 1.0)
        best: dict[int, float] = {}
        for chunk, near in zip(chunks, likeness, strict=True):
            best[chunk["record"]] = min(best.get(chunk["record"], 2.0), 1.0 - float(near))
        ranked = sorted(best, key=lambda seq: (best[seq], seq))[:k]
        return [(_record(by_seq[seq]), best[seq]) for seq in ranked]

    def _alive(self, where: str, given: Sequence[Any]) -> builtins.list[sqlite3.Row]:
        """Records that have not expired, oldest first."""
        return self._rows(
            f"SELECT * FROM record WHERE {where} AND (expires_at IS NULL OR expires_at > ?)"
            " ORDER BY seq",
            [*given, self._now()],
        )

    def _seq(self, kind: str, name: str) -> int | None:
        kinds = MEMORIES if kind in MEMORIES else (kind,)
        rows = self._rows(
            f"SELECT seq FROM record WHERE id = ? AND kind IN ({_marks(kinds)})", [name, *kinds]
        )
        return rows[0]["seq"] if rows else None

    def _get_record_expiration(self, record_type: str, record_id: str) -> datetime | None:
        seq = self._seq(record_type, record_id)
        rows = self._rows("SELECT expires_at FROM record WHERE seq = ?", [seq])
        spelled = rows[0]["expires_at"] if rows else None
        return datetime.fromisoformat(spelled) if spelled else None

    # ------------------------------------------------------------ threads

    def _create_thread_record(
        self,
        thread_id: str,
        user_id: str | None,
        agent_id: str | None,
        metadata: Any,
        runtime_config: Any,
        runtime_state: Any = None,
    ) -> Any:
        with self._transaction():
            self._db.execute(
                "INSERT INTO thread VALUES (?, ?, ?, ?, ?, ?, ?)",
                [
                    thread_id, user_id, agent_id, self._now(),
                    _json(metadata), _json(runtime_config), _json(runtime_state),
                ],
            )  # fmt: skip
        return self._get_thread_record(thread_id)

    def _update_thread_record(
        self,
        thread_id: str,
        metadata: Any = UNSET,
        runtime_config: Any = UNSET,
        runtime_state: Any = UNSET,
    ) -> int:
        done = 0
        changes = {
            "metadata": metadata, "runtime_config": runtime_config, "runtime_state": runtime_state,
        }  # fmt: skip
        with self._transaction():
            for column, value in changes.items():
                if value is not UNSET:
                    done = self._db.execute(
                        f"UPDATE thread SET {column} = ? WHERE id = ?", [_json(value), thread_id]
                    ).rowcount
        return done

    def _get_thread_record(self, thread_id: str) -> Any:
        found = self._threads(UNSET, UNSET, thread_id)
        return found[0] if found else None

    def _threads(self, user_id: Any, agent_id: Any, thread_id: Any) -> builtins.list[Any]:
        where, given = _where({"user_id": user_id, "agent_id": agent_id, "id": thread_id})
        return [
            ThreadRecord(
                id=row["id"], thread_id=row["id"], user_id=row["user_id"],
                agent_id=row["agent_id"], timestamp=row["created_at"],
                metadata=json.loads(row["metadata"] or "null"),
                runtime_config=json.loads(row["runtime_config"] or "null"),
                runtime_state=json.loads(row["runtime_state"] or "null"),
            )
            for row in self._rows(f"SELECT * FROM thread WHERE {where} ORDER BY rowid", given)
        ]  # fmt: skip

    # ------------------------------------------------------------ links

    def add_relations(
        self,
        source_record_ids: Any,
        source_record_types: Any,
        target_record_ids: Any,
        target_record_types: Any,
        relation_types: Any,
        opposite_relation_types: Any = UNSET,
        relation_ids: Any = UNSET,
        timestamps: Any = UNSET,
        metadata: Any = UNSET,
    ) -> builtins.list[str]:
        """See the package; what a link says of its target's status follows by itself."""
        sources = [source_record_ids] if isinstance(source_record_ids, str) else source_record_ids
        columns = [
            _spread(given, len(sources))
            for given in (
                source_record_types, target_record_ids, target_record_types, relation_types,
                opposite_relation_types, relation_ids, timestamps, metadata,
            )
        ]  # fmt: skip
        names = []
        with self._transaction():
            for source, kind, target, of_kind, label, opposite, name, at, about in zip(
                sources, *columns, strict=True
            ):
                ends = self._seq(kind, source), self._seq(of_kind, target)
                if None in ends or {kind, of_kind} - set(MEMORIES):
                    raise ValueError(f"no two memories to link: {source} and {target}")
                names.append(name or self._name())
                self._db.execute(
                    "INSERT INTO link (id, source, target, type, opposite, timestamp, metadata,"
                    " created_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                    [
                        names[-1], *ends, label, opposite or OPPOSITES.get(label, label), at,
                        _json(about), self._now(),
                    ],
                )  # fmt: skip
        return names

    def update_relations(
        self,
        relation_ids: Any,
        relation_types: Any = UNSET,
        opposite_relation_types: Any = UNSET,
        timestamps: Any = UNSET,
        metadata: Any = UNSET,
    ) -> builtins.list[str]:
        """See the package."""
        names = [relation_ids] if isinstance(relation_ids, str) else relation_ids
        columns = {
            "type": relation_types, "opposite": opposite_relation_types, "timestamp": timestamps,
            "metadata": metadata,
        }  # fmt: skip
        with self._transaction():
            for column, given in columns.items():
                if given is not UNSET:
                    for name, value in zip(names, _spread(given, len(names)), strict=True):
                        value = _json(value) if column == "metadata" else value
                        self._db.execute(
                            f"UPDATE link SET {column} = ? WHERE id = ?", [value, name]
                        )
        return [name for name in names if self.list_relations(relation_id=name)]

    def delete_relations(self, relation_ids: Any) -> int:
        """See the package."""
        names = [relation_ids] if isinstance(relation_ids, str) else relation_ids
        with self._transaction():
            done = self._db.execute(f"DELETE FROM link WHERE id IN ({_marks(names)})", names)
        return done.rowcount

    def get_relation(
        self,
        source_record_id: Any = UNSET,
        source_record_type: Any = UNSET,
        target_record_id: Any = UNSET,
        target_record_type: Any = UNSET,
        relation_type: Any = UNSET,
        relation_id: Any = UNSET,
    ) -> Any:
        """See the package."""
        found = self.list_relations(
            relation_type, source_record_id, source_record_type, target_record_id,
            target_record_type, relation_id=relation_id,
        )  # fmt: skip
        return found[0] if found else None

    def list_relations(
        self,
        relation_type: Any = UNSET,
        source_record_id: Any = UNSET,
        source_record_type: Any = UNSET,
        target_record_id: Any = UNSET,
        target_record_type: Any = UNSET,
        limit: Any = UNSET,
        metadata_filter: Any = UNSET,
        relation_id: Any = UNSET,
    ) -> builtins.list[Any]:
        """See the package."""
        where, given = _where(
            {
                "link.type": relation_type, "link.id": relation_id,
                "source.id": source_record_id, "source.kind": source_record_type,
                "target.id": target_record_id, "target.kind": target_record_type,
            }
        )  # fmt: skip
        found = [
            _relation(row)
            for row in self._rows(
                "SELECT link.*, source.id AS source_id, source.kind AS source_kind,"
                " target.id AS target_id, target.kind AS target_kind FROM link"
                " JOIN record AS source ON source.seq = link.source"
                f" JOIN record AS target ON target.seq = link.target WHERE {where}"
                " ORDER BY link.seq",
                given,
            )
        ]
        found = [
            one for one in found if matches_nullable_metadata_filter(one.metadata, metadata_filter)
        ]
        most = LISTED if limit is UNSET else limit
        return found if most is None else found[:most]


# ---------------------------------------------------------------- values


def _spread(given: Any, size: int) -> builtins.list[Any]:
    """One value a record: each its own, or all the same; None where none was given."""
    if isinstance(given, list | tuple):
        return list(given)
    return [None if given is UNSET else given] * size


def _where(asked: Mapping[str, Any]) -> tuple[str, builtins.list[Any]]:
    """A condition on columns; what is `UNSET` does not matter, and None is NULL."""
    wanted = {name: value for name, value in asked.items() if value is not UNSET}
    return " AND ".join(["1", *(f"{name} IS ?" for name in wanted)]), list(wanted.values())


def _marks(values: Sequence[Any]) -> str:
    return ", ".join("?" * len(values))


def _json(value: Any) -> str | None:
    return None if value is None else json.dumps(value)


def _plain(content: Any) -> Any:
    """Content as JSON has it; the parts of a message become one text."""
    if content is None or isinstance(content, str | dict):
        return content
    if isinstance(content, Mapping):
        return dict(content)
    return _message_content_to_search_text(content)


def _chunks(row: Mapping[str, Any]) -> builtins.list[str]:
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


def _expiry(given: Mapping[str, Any], created: str) -> str | None:
    """When a record expires: what it inherits, or so many days after it was stored or said."""
    if isinstance(given["expires_at"], datetime):
        return given["expires_at"].replace(tzinfo=None).isoformat(timespec="minutes")
    if not given["ttl_days"]:
        return None
    said = getattr(given["ttl_anchor"], "name", "") == "TIMESTAMP" and given["timestamp"]
    start = datetime.fromisoformat(said or created).replace(tzinfo=None)
    return (start + timedelta(days=given["ttl_days"])).isoformat(timespec="minutes")


def _record(row: sqlite3.Row) -> Any:
    kind = row["kind"]
    scope = {name: row[name] for name in ("thread_id", "user_id", "agent_id")}
    return build_record(
        kind, row["id"], content=json.loads(row["content"]),
        timestamp=row["timestamp"] or row["created_at"],
        metadata=json.loads(row["metadata"] or "null"), status=RecordStatus(row["status"]),
        **({} if kind.endswith("_profile") else scope),
        **({"role": row["role"], "seq_no": row["seq"]} if kind == "message" else {}),
    )  # fmt: skip


def _relation(row: sqlite3.Row) -> Any:
    return RecordRelation(
        id=row["id"], source_record_id=row["source_id"], source_record_type=row["source_kind"],
        target_record_id=row["target_id"], target_record_type=row["target_kind"],
        relation_type=row["type"], opposite_relation_type=row["opposite"],
        timestamp=row["timestamp"], metadata=json.loads(row["metadata"] or "null"),
        created_at=row["created_at"],
    )  # fmt: skip
