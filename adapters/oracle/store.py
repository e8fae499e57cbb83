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
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from oracleagentmemory.apis.records import Record, RecordStatus, ThreadRecord
from oracleagentmemory.core._metadata_filter import (
    matches_metadata_filter,
    matches_nullable_metadata_filter,
)
from oracleagentmemory.core.oraclememorystore import OracleMemoryStore
from oracleagentmemory.core.retention import MemoryRetentionConfig

from steeltrap.adapters.oracle.links import LISTED, Links
from steeltrap.adapters.oracle.rows import (
    MEMORIES,
    SEARCHED,
    UNSET,
    as_json,
    as_plain,
    as_record,
    condition,
    expiry,
    marks,
    payloads,
    spread,
)

__all__ = ["LocalStore"]


class LocalStore(Links, OracleMemoryStore):
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
        self._time, self._new = now, name
        self._memory_retention_config = MemoryRetentionConfig()  # else memories inherit no end
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
        given = {
            name: spread(getattr(batch, field), len(contents))
            for name, field in {
                "id": "record_ids", "thread_id": "thread_ids", "user_id": "user_ids",
                "agent_id": "agent_ids", "role": "roles", "timestamp": "timestamps",
                "metadata": "metadata", "status": "statuses", "index": "index_texts",
                "given": "embeddings", "ttl_days": "ttl_days", "ttl_anchor": "ttl_anchor",
                "expires_at": "_expires_at",
            }.items()
        }  # fmt: skip
        return [
            self._row(batch.record_type, content, {name: of[place] for name, of in given.items()})
            for place, content in enumerate(contents)
        ]

    def _row(self, kind: str, content: Any, given: dict[str, Any]) -> dict[str, Any]:
        metadata = given["metadata"]
        if content is None and kind != "thread_summary":
            content = (metadata or {}).get("content", "")
        created = self._time()
        return given | {
            "kind": kind,
            "id": given["id"] or self._new(),
            "content": as_plain(content),
            "created_at": created,
            "expires_at": expiry(given, created),
            "status": RecordStatus(given["status"] or RecordStatus.VALID).value,
        }

    def _vectors(self, rows: Sequence[dict[str, Any]]) -> builtins.list[builtins.list[bytes]]:
        """Of each row its chunks' vectors; what was given is taken, the rest embedded at once."""
        parts = [payloads(row) if row["given"] is None else [] for row in rows]
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
            row["status"], as_json(row["metadata"]),
        ]  # fmt: skip
        done = self._db.execute(
            "INSERT INTO record (kind, id, thread_id, user_id, agent_id, role, content, timestamp,"
            f" created_at, expires_at, status, metadata) VALUES ({', '.join('?' * 12)})",
            values,
        )
        self._db.executemany(
            "INSERT INTO chunk VALUES (?, ?)", [(done.lastrowid, vector) for vector in vectors]
        )

    def add_user(
        self, user_id: Any = UNSET, information: Any = UNSET, metadata: Any = UNSET
    ) -> str:
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
        (old,) = self._rows("SELECT * FROM record WHERE seq = ?", [found])
        new = dict(old) | {"ttl_days": ttl_days, "ttl_anchor": ttl_anchor}
        new |= {"content": old["content"] if content is UNSET else json.dumps(as_plain(content))}
        new |= {} if metadata is UNSET else {"metadata": as_json(metadata)}
        new |= {} if timestamp is UNSET else {"timestamp": timestamp}
        new |= {} if status is UNSET else {"status": RecordStatus(status).value}
        if ttl_days is not UNSET:
            new["expires_at"] = expiry(new | {"expires_at": None}, old["created_at"])
        texts = {
            "kind": record_type, "content": json.loads(new["content"]),
            "index": None if index_text is UNSET else index_text,
            "given": None if embedding is UNSET else embedding,
        }  # fmt: skip
        anew = any(given is not UNSET for given in (content, index_text, embedding))
        vectors = self._vectors([texts])[0] if anew else []
        with self._transaction() as db:
            db.execute(
                "UPDATE record SET content = :content, metadata = :metadata, status = :status,"
                " timestamp = :timestamp, expires_at = :expires_at WHERE seq = :seq",
                {name: new[name] for name in old.keys()},  # noqa: SIM118 - a row is no dictionary
            )
            if anew:
                db.execute("DELETE FROM chunk WHERE record = ?", [found])
                db.executemany("INSERT INTO chunk VALUES (?, ?)", [(found, one) for one in vectors])
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
                f"DELETE FROM record WHERE id = ? AND kind IN ({marks(kinds)})", [record_id, *kinds]
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

    def get(
        self,
        record_type: str,
        record_id: str,
        include_bytes: Any = UNSET,  # noqa: ARG002 - there are no images
    ) -> Record | None:
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
        include_bytes: Any = UNSET,  # noqa: ARG002 - there are no images
        record_id: Any = UNSET,
    ) -> builtins.list[Any]:
        """See the package."""
        if record_type == "thread":
            found = self._threads(user_id, agent_id, record_id)
        else:
            scope = {"thread_id": thread_id, "user_id": user_id, "agent_id": agent_id}
            scope = {} if record_type.endswith("_profile") else scope
            where, given = condition({"kind": record_type, "id": record_id, **scope})
            found = [as_record(row) for row in self._alive(where, given)]
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
        include_bytes: Any = UNSET,  # noqa: ARG002 - there are no images
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
        max_linked_results: int = 100,  # noqa: ARG002
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
        where, given = condition(scope)
        rows = [
            row
            for row in self._alive(
                f"{where} AND kind IN ({marks(kinds)})", [*given, *kinds], vectors=True
            )
            if not metadata_filter
            or matches_metadata_filter(json.loads(row["metadata"] or "null"), metadata_filter)
        ]
        vector = self._embedder.embed([query], is_query=True)[0] if query else query_vector
        return _nearest(rows, np.asarray(vector, dtype=np.float32), k)

    def _alive(
        self, where: str, given: Sequence[Any], *, vectors: bool = False
    ) -> builtins.list[sqlite3.Row]:
        """Records that have not expired, oldest first; on request a row for each vector."""
        table = "record JOIN chunk ON chunk.record = seq" if vectors else "record"
        return self._rows(
            f"SELECT * FROM {table} WHERE {where} AND (expires_at IS NULL OR expires_at > ?)"
            " ORDER BY seq",
            [*given, self._time()],
        )

    def _seq(self, kind: str, name: str) -> int | None:
        kinds = MEMORIES if kind in MEMORIES else (kind,)
        rows = self._rows(
            f"SELECT seq FROM record WHERE id = ? AND kind IN ({marks(kinds)})", [name, *kinds]
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
                    thread_id, user_id, agent_id, self._time(),
                    as_json(metadata), as_json(runtime_config), as_json(runtime_state),
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
                        f"UPDATE thread SET {column} = ? WHERE id = ?", [as_json(value), thread_id]
                    ).rowcount
        return done

    def _get_thread_record(self, thread_id: str) -> Any:
        found = self._threads(UNSET, UNSET, thread_id)
        return found[0] if found else None

    def _threads(self, user_id: Any, agent_id: Any, thread_id: Any) -> builtins.list[Any]:
        where, given = condition({"user_id": user_id, "agent_id": agent_id, "id": thread_id})
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


def _nearest(rows: Sequence[sqlite3.Row], vector: Any, k: int) -> list[tuple[Any, float]]:
    """The records whose nearest vector is nearest, with its distance; of equals the older first."""
    if not rows:
        return []
    table = np.array([np.frombuffer(row["vector"], np.float32) for row in rows])
    lengths = np.linalg.norm(table, axis=1) * np.linalg.norm(vector)
    distances = 1.0 - (table * vector).sum(axis=1) / np.where(lengths > 0, lengths, 1.0)
    best: dict[int, tuple[float, sqlite3.Row]] = {}
    for row, distance in zip(rows, distances.tolist(), strict=True):
        if row["seq"] not in best or distance < best[row["seq"]][0]:
            best[row["seq"]] = distance, row
    ranked = sorted(best.values(), key=lambda pair: (pair[0], pair[1]["seq"]))
    return [(as_record(row), distance) for distance, row in ranked[:k]]
