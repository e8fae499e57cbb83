"""The native layout, on SQLite: what the paper's section 4.3 asks of an engine of its own.

Histories are bitemporal rows clustered by field, so that a history is one range of one tree;
the present of a field is one row that a retrieval reads and reinforces in one statement
(read-modify-write); extension edges carry their rules; a transition is one transaction.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, Literal

import msgspec

from steeltrap.reference_system.rules import Rule
from steeltrap.reference_system.state import (
    Alias,
    Delta,
    Edge,
    Entry,
    Evidence,
    Field,
    PolicyText,
    Record,
    Topic,
)
from steeltrap.reference_system.stores.base import DamagedStore, ForeignFile, StoreError
from steeltrap.reference_system.stores.lock import Lock
from steeltrap.reference_system.stores.seal import Seal

__all__ = ["NativeStore"]

APPLICATION_ID: Final = 0x47454D31
"""'GEM1': by this a file is known to be one of ours."""
FORMAT: Final = 1
MAGIC: Final = b"SQLite format 3\0"
ERASE_AT_ONCE: Final = 500
"""Ids in one statement; SQLite takes a limited number of parameters."""

_SCHEMA: Final = """
CREATE TABLE topic(id TEXT PRIMARY KEY, tenant TEXT, title TEXT, summary TEXT, vector BLOB,
    tags TEXT, ord INTEGER, archived INTEGER, merged_into TEXT) WITHOUT ROWID;
CREATE TABLE field(id TEXT PRIMARY KEY, tenant TEXT, topic TEXT, name TEXT, about TEXT, tags TEXT,
    state TEXT, value TEXT, seq INTEGER, valid_from TEXT, until TEXT, turn TEXT, said_by TEXT,
    sources TEXT, via TEXT, cause INTEGER, entries INTEGER, mentions INTEGER, ord INTEGER,
    salience REAL, level INTEGER, tokens INTEGER, merged_into TEXT) WITHOUT ROWID;
CREATE TABLE entry(field TEXT, seq INTEGER, op TEXT, value TEXT, valid_from TEXT, until TEXT,
    recorded TEXT, ord INTEGER, turn TEXT, said_by TEXT, sources TEXT, about INTEGER, via TEXT,
    policy TEXT, PRIMARY KEY(field, seq)) WITHOUT ROWID;
CREATE TABLE edge(id TEXT PRIMARY KEY, tenant TEXT, kind TEXT, source TEXT, target TEXT, rule TEXT,
    turn TEXT, ord INTEGER) WITHOUT ROWID;
CREATE TABLE evidence(id TEXT PRIMARY KEY, tenant TEXT, kind TEXT, subject TEXT, other TEXT,
    seq INTEGER, ord INTEGER, at TEXT, policy TEXT) WITHOUT ROWID;
CREATE TABLE alias(id TEXT PRIMARY KEY, tenant TEXT, scope TEXT, name TEXT, target TEXT) WITHOUT ROWID;
CREATE TABLE policy(id TEXT PRIMARY KEY, place INTEGER, text TEXT) WITHOUT ROWID;
"""  # fmt: skip

_TOUCH: Final = """
UPDATE field SET salience = touched.value FROM json_each(?) AS touched
WHERE field.id = touched.key RETURNING *
"""

_KEPT: Final[tuple[tuple[str, type[Record]], ...]] = (
    ("topic", Topic), ("field", Field), ("edge", Edge), ("evidence", Evidence), ("alias", Alias),
    ("policy", PolicyText),
)  # fmt: skip
_ORDER: Final[dict[type[Record], str]] = {PolicyText: "place", Alias: "id"}
"""Everything else comes by tenant, in the order in which it was made."""
_LISTS: Final = ("tags", "sources")
"""Columns that hold a list of texts, as JSON."""


class NativeStore:
    """Keeps M in one SQLite file.

    Args:
        path: the file; begun where there is none.
        durability: `process`: a commit outlives the end of the process, however it comes.
            `power`: also the loss of power, at the cost of a disk flush each.

    Raises:
        ForeignFile: the file is something else, or of another version.
        DamagedStore: it is one of ours and cannot be read whole.
        StoreInUse: it is open elsewhere.
    """

    def __init__(self, path: Path, *, durability: Literal["process", "power"] = "process") -> None:
        self._path = path
        self._lock = Lock(path)
        try:
            self._seal = Seal(path, _wal(path), "sqlite")
            shutil.rmtree(_examined(path), ignore_errors=True)
            new = not path.exists() or path.stat().st_size == 0
            if not new:
                _recognise(path)
                _examine(path, self._seal)
            self._db = self._connect(path, durability)
            if new:
                self._begin()
            self._seal.begin()
        except BaseException:
            self._lock.release()
            raise
        self._closed = False

    def _connect(self, path: Path, durability: str) -> sqlite3.Connection:
        db = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        db.execute("PRAGMA journal_mode = WAL")
        db.execute(f"PRAGMA synchronous = {'FULL' if durability == 'power' else 'NORMAL'}")
        db.execute("PRAGMA secure_delete = ON")
        db.execute("PRAGMA cache_size = -65536")
        return db

    def _begin(self) -> None:
        script = f"BEGIN; PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {FORMAT};"
        self._db.executescript(f"{script} {_SCHEMA} COMMIT;")
        self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    # ------------------------------------------------------------ reading

    def load(self) -> Iterator[Record]:
        """Everything but the histories, in the order in which it was made."""
        for table, kind in _KEPT:
            order = _ORDER.get(kind, "tenant, CAST(substr(id, length(tenant) + 3) AS INTEGER)")
            rows = self._db.execute(f"SELECT * FROM {table} ORDER BY {order}").fetchall()
            yield from (_record(kind, row) for row in rows)

    def read(self, touched: dict[str, float]) -> list[Field]:
        """Read and reinforce by one statement."""
        with _Transaction(self._db) as db:
            rows = db.execute(_TOUCH, (json.dumps(touched),)).fetchall()
        found = {row[0]: _field(row) for row in rows}
        return [found[name] for name in touched]

    def entries(self, fields: Sequence[str]) -> list[Entry]:
        """The histories of some fields."""
        select = "SELECT * FROM entry WHERE field = ? ORDER BY seq"
        return [_entry(row) for name in fields for row in self._db.execute(select, (name,))]

    def entry(self, field: str, seq: int) -> Entry:
        """One line of a history."""
        select = "SELECT * FROM entry WHERE field = ? AND seq = ?"
        row = self._db.execute(select, (field, seq)).fetchone()
        if row is None:
            raise StoreError(f"{self._path}: the history of {field} has no line {seq}")
        return _entry(row)

    # ------------------------------------------------------------ writing

    def commit(self, delta: Delta) -> None:
        """One transaction."""
        with _Transaction(self._db) as db:
            _put(db, "topic", delta.topics.values())
            _put(db, "field", delta.fields.values())
            _put(db, "entry", delta.entries)
            _put(db, "edge", delta.edges.values())
            _put(db, "alias", delta.aliases.values())
            _put(db, "evidence", (e for e in delta.evidence.values() if e is not None))
            for name, evidence in delta.evidence.items():
                if evidence is None:
                    db.execute("DELETE FROM evidence WHERE id = ?", (name,))
            for name, salience in delta.touched.items():
                db.execute("UPDATE field SET salience = ? WHERE id = ?", (salience, name))

    def set_policies(self, policies: Sequence[PolicyText]) -> None:
        """Replace P."""
        with _Transaction(self._db) as db:
            db.execute("DELETE FROM policy")
            _put(db, "policy", policies)

    def erase(self, topics: Iterable[str], fields: Iterable[str]) -> None:
        """Remove for good: rows are overwritten, the log is emptied, the file is rebuilt."""
        gone = [*topics, *fields]
        with _Transaction(self._db) as db:
            for first in range(0, len(gone), ERASE_AT_ONCE):
                some = gone[first : first + ERASE_AT_ONCE]
                among = f"({', '.join('?' * len(some))})"
                for table, columns in _SPEAKS_OF.items():
                    for column in columns:
                        db.execute(f"DELETE FROM {table} WHERE {column} IN {among}", some)
        self._db.execute("VACUUM")
        self.checkpoint()

    # ------------------------------------------------------------ the file

    def checkpoint(self) -> None:
        """Fold the log into the file."""
        self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def size_bytes(self) -> int:
        """File and log."""
        files = (self._path, _wal(self._path))
        return sum(file.stat().st_size for file in files if file.exists())

    def close(self) -> None:
        """Fold the log in, note that the file is whole, and let others have it."""
        if self._closed:
            return
        self._closed = True
        try:
            self.checkpoint()
            self._db.close()
            self._seal.take("closed")
        finally:
            self._lock.release()


_SPEAKS_OF: Final = {
    "topic": ("id",), "field": ("id",), "entry": ("field",), "edge": ("source", "target"),
    "evidence": ("subject", "other"), "alias": ("scope", "target"),
}  # fmt: skip


class _Transaction:
    """Commits at the end, or rolls back if there was an error."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def __enter__(self) -> sqlite3.Connection:
        self._db.execute("BEGIN IMMEDIATE")
        return self._db

    def __exit__(self, kind: object, *_: object) -> None:
        self._db.execute("COMMIT" if kind is None else "ROLLBACK")


# ---------------------------------------------------------------- rows


def _columns(kind: type[Any]) -> tuple[tuple[int, ...], int]:
    """Places of the lists, and the number of columns."""
    names = kind.__struct_fields__
    return tuple(place for place, name in enumerate(names) if name in _LISTS), len(names)


_SHAPE: Final = {kind: _columns(kind) for kind in (Topic, Field, Entry, Edge, Evidence, Alias, PolicyText)}  # fmt: skip
_INSERT: Final = {
    table: f"INSERT OR REPLACE INTO {table} VALUES ({', '.join('?' * _SHAPE[kind][1])})"
    for table, kind in (*_KEPT, ("entry", Entry))
}


def _put(db: sqlite3.Connection, table: str, records: Iterable[Record]) -> None:
    rows = [_row(record) for record in records]
    if rows:
        db.executemany(_INSERT[table], rows)


def _row(record: Record) -> list[Any]:
    row = list(msgspec.structs.astuple(record))
    for place in _SHAPE[type(record)][0]:
        row[place] = json.dumps(row[place], ensure_ascii=False) if row[place] else "[]"
    if type(record) is Edge:
        row[5] = None if record.rule is None else msgspec.json.encode(record.rule).decode()
    return row


def _record(kind: type[Record], row: Sequence[Any]) -> Record:
    values = list(row)
    for place in _SHAPE[kind][0]:
        values[place] = tuple(json.loads(values[place])) if values[place] != "[]" else ()
    if kind is Edge and values[5] is not None:
        values[5] = msgspec.json.decode(values[5], type=Rule)
    if kind is Topic:
        values[7] = bool(values[7])
    return kind(*values)


_field: Callable[[Sequence[Any]], Field] = lambda row: _record(Field, row)  # type: ignore[assignment, return-value]  # noqa: E731
_entry: Callable[[Sequence[Any]], Entry] = lambda row: _record(Entry, row)  # type: ignore[assignment, return-value]  # noqa: E731


# ---------------------------------------------------------------- is it ours, is it whole


def _wal(path: Path) -> Path:
    return path.with_name(path.name + "-wal")


def _recognise(path: Path) -> None:
    """Whether a file is one of ours, by its first bytes alone.

    Raises:
        ForeignFile: it is not.
    """
    if path.is_dir():
        raise ForeignFile(f"{path} is a folder; name a file for the store")
    with path.open("rb") as file:
        head = file.read(100)
    if head[:16] != MAGIC:
        raise ForeignFile(f"{path} is no store of this kind (it is no SQLite file); it was left as it is. Name another file")  # fmt: skip
    if int.from_bytes(head[68:72], "big") != APPLICATION_ID:
        raise ForeignFile(f"{path} is an SQLite file of another program; it was left as it is. Name another file")  # fmt: skip
    version = int.from_bytes(head[60:64], "big")
    if version != FORMAT:
        raise ForeignFile(f"{path} has version {version} of the format, and this reads {FORMAT}; it was left as it is")  # fmt: skip


def _examine(path: Path, seal: Seal) -> None:
    """Whether a store can be read whole; a store that was not closed is examined in a copy.

    Raises:
        DamagedStore: it cannot.
    """
    wal = _wal(path)
    if seal.note is not None and seal.note.state == "closed":
        seal.compare(seal.note)
        return
    if not wal.exists() or wal.stat().st_size == 0:
        _read_through(path, path, "immutable=1")
        return
    folder = _examined(path)
    folder.mkdir()
    try:
        copy = folder / path.name
        shutil.copyfile(path, copy)
        shutil.copyfile(wal, _wal(copy))
        _read_through(copy, path, "mode=rw")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _examined(path: Path) -> Path:
    """Where a copy is read through; what a kill leaves there is removed at the next opening."""
    return path.with_name(path.name + ".check")


def _read_through(file: Path, path: Path, mode: str) -> None:
    try:
        db = sqlite3.connect(f"{file.absolute().as_uri()}?{mode}", uri=True)
        try:
            found = [row[0] for row in db.execute("PRAGMA integrity_check(3)")]
        finally:
            db.close()
    except sqlite3.DatabaseError as error:
        found = [str(error)]
    if found != ["ok"]:
        raise DamagedStore(
            f"{path} is damaged ({'; '.join(found)[:300]}); it was left as it is. "
            "Bring it back from a copy, or name another file to begin anew"
        )
