"""A store on an embedded property graph: Ladybug, or Kuzu through the same code.

Topics, fields, entries, findings, names and policies are nodes; HAS, EXT and ASSOC are edges; so
the state can be asked in Cypher (`query`). A transition is one transaction of the engine. What
differs from what is stored is written, no more: an attribute costs as much as a small node.

Beside the store `g.db` are `g.db.lock` (one opener), `g.db.seal` (what its files were when they
were last whole; see `seal`), and the engine's log. Where the seal can vouch for the files, they
are opened as they are. Where it cannot (there is none, or the process died while the engine was
checkpointing), a copy is read through in a process of its own first, since the engines write to
what they open and may end the process over a damaged page.

Not noticed are: whole commits cut off the end of the log together with an older seal; and a value
changed within a page of a file for which there is no seal.

Kuzu is here because published systems stand on it. It is the last release of an archived project,
and one kill in nine leaves it a file that never opens again (`tests/reference_system/kill.py`).
The two engines must not be loaded into one process.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import importlib.util  # Kuzu uses it without importing it
import itertools
import json
import os
import shutil
import subprocess
import sys
import threading
import warnings
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, Literal, TypeVar

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
from steeltrap.reference_system.stores.base import DamagedStore, ForeignFile, StoreError, StoreInUse
from steeltrap.reference_system.stores.cypher import (
    ALIAS,
    ASSOC,
    ENTRY,
    EVIDENCE,
    EXT,
    FIELD,
    POLICY,
    SCHEMA,
    TOPIC,
    Rows,
    entry_id,
    rows_of,
)
from steeltrap.reference_system.stores.lock import Lock
from steeltrap.reference_system.stores.seal import Seal

__all__ = ["GraphStore"]

Engine = Literal["ladybug", "kuzu"]
_T = TypeVar("_T")

_VERSION: Final = 1
_MAGIC: Final = {"ladybug": b"LBUG", "kuzu": b"KUZU"}
_SIDE: Final = (".wal", ".wal.checkpoint", ".shadow", ".tmp", ".checkpoint.intent.lock", ".checkpoint.apply.lock")  # fmt: skip
"""What the engines put beside their main file."""
_PRESENT: Final = (TOPIC, FIELD, EXT, ASSOC, EVIDENCE, ALIAS, POLICY)
_BATCH: Final = 500
_PAGE: Final = 50_000
_STATEMENTS: Final = 400
"""That are kept prepared."""
_COPIED_BYTES: Final = 32 << 10
"""What the engine keeps in memory, until the next checkpoint, of a column in which a value changed."""
_TOUCH: Final = "UNWIND $keys AS x MATCH (n:Field {`id`: x.id}) SET n.`salience` = x.salience RETURN "  # fmt: skip
_HEADER: Final = "MATCH (s:Store) RETURN s.`version`, s.`engine`, s.`package`"


class _Session:
    """A connection to a database, with the statements that were prepared on it."""

    def __init__(self, path: Path, engine: Engine, buffer_bytes: int) -> None:
        kuzu: Any = importlib.import_module(engine)
        self._database = kuzu.Database(
            str(path),
            buffer_pool_size=buffer_bytes,
            max_num_threads=1,
            max_db_size=1 << 36,
            auto_checkpoint=False,
        )
        self._connection = kuzu.Connection(self._database)
        self._prepared: dict[str, Any] = {}
        self.run("CALL force_checkpoint_on_close=false")

    def run(self, statement: str, **parameters: Any) -> list[list[Any]]:
        """Run one statement, which is prepared once, and give its rows."""
        prepared = self._prepared.get(statement)
        if prepared is None:
            if len(self._prepared) >= _STATEMENTS:
                self._prepared.clear()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)
                prepared = self._connection.prepare(statement)
            self._prepared[statement] = prepared
        result = self._connection.execute(prepared, parameters)
        rows: list[list[Any]] = result.get_all()
        result.close()
        return rows

    def scan(self, rows: Rows) -> list[Any]:
        """All records of a table; in pages, since the engine holds a whole answer in memory."""
        records: list[Any] = []
        while True:
            page = self.run(f"{rows.all} SKIP $skip LIMIT $limit", skip=len(records), limit=_PAGE)
            records += rows.records(page)
            if len(page) < _PAGE:
                return records

    def close(self) -> None:
        """Let go of the files; the log stays."""
        self._prepared.clear()
        self._connection.close()
        self._database.close()


class GraphStore:
    """Keeps M as a property graph in a file.

    Args:
        path: the main file; it is made where there is none.
        engine: who keeps it. A file of the one cannot be read by the other.
        checkpoint_every: transitions after which the log is folded into the main file, if it has
            grown to a sixteenth of it: a checkpoint rewrites what is near to a change, and so
            costs by the size of the file, and this keeps its part in a transition constant.
        buffer_bytes: memory for the engine's pages and for what changed since the last
            checkpoint, which comes early before that takes half of it.

    Raises:
        StoreInUse: somebody else has it open.
        ForeignFile: something else is there, or it is of another engine or version.
        DamagedStore: it is a store and cannot be read whole. Its files are as they were.
    """

    def __init__(
        self,
        path: Path,
        engine: Engine = "ladybug",
        checkpoint_every: int = 400,
        buffer_bytes: int = 512 << 20,
    ) -> None:
        if engine not in _MAGIC:
            raise ValueError(f"there is no engine {engine!r}: it is one of {', '.join(_MAGIC)}")
        self._path = Path(path)
        self._engine: Engine = engine
        self._every = checkpoint_every
        self._buffer_bytes = buffer_bytes
        self._log = _beside(self._path, ".wal")
        self._mutex = threading.RLock()
        self._session: _Session | None = None
        self._closed = "was not opened"
        self._since = 0
        """Transitions since the last checkpoint."""
        self._changed = 0
        """Values that were changed since the last checkpoint."""
        if self._path.exists():
            _recognise(self._path, engine)
        self._lock = Lock(self._path)
        try:
            self._seal = Seal(self._path, self._log, engine)
            self._open()
        except BaseException:
            self._leave("could not be opened")
            raise

    # ------------------------------------------------------------ the protocol

    def load(self) -> Iterator[Record]:
        """Everything but the histories; each kind by tenant and number, which is order of creation."""
        for rows in _PRESENT:
            with self._mutex:
                records = sorted(self._alive().scan(rows), key=_place)
            yield from records

    def commit(self, delta: Delta) -> None:
        """Write a proposed change: all of it, or nothing if this raises."""
        if not delta:
            return
        with self._transaction():
            for records in (delta.topics, delta.fields, delta.edges, delta.aliases):
                for record in records.values():
                    self._put(record)
            self._touch(delta.touched, "n.`id`")
            for entry in delta.entries:
                self._run(ENTRY.add, **_parameters(ENTRY.row(entry)))
            for name, evidence in delta.evidence.items():
                if evidence is None:
                    self._run(EVIDENCE.remove, p_id=name)
                else:
                    self._put(evidence)

    def read(self, touched: dict[str, float]) -> list[Field]:
        """Write the new salience of some fields and give the fields, in one transition."""
        if not touched:
            return []
        with self._transaction():
            found = FIELD.records(self._touch(touched, FIELD.listed))
        by_id = {field.id: field for field in found}
        return [by_id[name] for name in touched]

    def entries(self, fields: Sequence[str]) -> list[Entry]:
        """The histories of some fields, each in the order in which it was written.

        Entries are numbered from 1, so they are looked up by number until one is missing.
        """
        kept: dict[str, list[Entry]] = {name: [] for name in fields}
        open_, first, step = list(kept), 1, 8
        with self._mutex:
            while open_:
                numbers = range(first, first + step)
                keys = [{"id": entry_id(name, n)} for name in open_ for n in numbers]
                for entry in ENTRY.records(self._each(ENTRY.some, keys)):
                    kept[entry.field].append(entry)
                open_ = [name for name in open_ if len(kept[name]) == numbers[-1]]
                first, step = first + step, 4 * step
        return [e for held in kept.values() for e in sorted(held, key=lambda entry: entry.seq)]

    def entry(self, field: str, seq: int) -> Entry:
        """One line of a history."""
        with self._mutex:
            found = ENTRY.records(self._run(ENTRY.one, p_id=entry_id(field, seq)))
        if not found:
            raise StoreError(f"{self._path}: the history of {field} has no line {seq}")
        return found[0]  # type: ignore[no-any-return]

    def set_policies(self, policies: Sequence[PolicyText]) -> None:
        """Replace P."""
        with self._transaction():
            kept = {policy.id for policy in policies}
            for old in self._alive().scan(POLICY):
                if old.id not in kept:
                    self._run(POLICY.remove, p_id=old.id)
            for policy in policies:
                self._put(policy)

    def erase(self, topics: Iterable[str], fields: Iterable[str]) -> None:
        """Remove topics and fields with all that speaks of them.

        The engines leave the bytes of what is deleted in their file, so what remains is written
        to a new one, which then takes the place of the old.
        """
        gone = {*topics, *fields}
        with self._mutex:
            self.checkpoint()
            try:
                self._install(self._remaining(gone))
            finally:
                if self._session is None:
                    self._leave("was not opened after an erasure that failed")

    def checkpoint(self) -> None:
        """Fold the log into the main file."""
        with self._mutex:
            self._seal.begin()
            try:
                self._vital("CHECKPOINT")
            finally:
                if self._session is not None:
                    self._seal.take("open")
            self._since = self._changed = 0

    def size_bytes(self) -> int:
        """Bytes of the store's files now."""
        files = [self._path, *(_beside(self._path, end) for end in (*_SIDE, ".seal"))]
        return sum(file.stat().st_size for file in files if file.exists())

    def close(self) -> None:
        """Fold the log in and release the files; a second call does nothing."""
        with self._mutex:
            if self._session is not None:
                try:
                    self.checkpoint()
                    self._session.close()
                    self._session = None
                    self._seal.take("closed")
                finally:
                    self._leave("is closed")

    def query(self, cypher: str, **parameters: Any) -> list[list[Any]]:
        """Ask the graph in Cypher; what would change it is refused by the engine."""
        with self._mutex:
            self._run("BEGIN TRANSACTION READ ONLY")
            try:
                return self._run(cypher, **parameters)
            except RuntimeError as error:
                raise StoreError(f"the graph cannot answer that: {error}") from error
            finally:
                with contextlib.suppress(RuntimeError):
                    self._run("ROLLBACK")

    # ------------------------------------------------------------ writing

    def _alive(self) -> _Session:
        if self._session is None:
            raise StoreError(f"the store {self._path} {self._closed}; open it again")
        return self._session

    def _run(self, statement: str, **parameters: Any) -> list[list[Any]]:
        return self._alive().run(statement, **parameters)

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[None]:
        with self._mutex:
            self._run("BEGIN TRANSACTION")
            try:
                yield
            except BaseException as error:
                with contextlib.suppress(RuntimeError):
                    self._run("ROLLBACK")  # raises if an error of the engine has done it already
                if isinstance(error, RuntimeError) and not isinstance(error, StoreError):
                    raise StoreError(f"nothing was written to {self._path}: {error}") from error
                raise
            self._vital("COMMIT")
            self._seal.grow()
            self._since += 1
            if self._due():
                with contextlib.suppress(StoreError):  # what was committed is; the next call tells
                    self.checkpoint()

    def _due(self) -> bool:
        note = self._seal.note
        grown = note is None or 16 * note.log_bytes >= note.main_bytes
        return (self._since >= self._every and grown) or (
            2 * _COPIED_BYTES * self._changed >= self._buffer_bytes
        )

    def _vital(self, statement: str) -> None:
        """Run a statement after whose failure only opening the store again tells what is in it."""
        try:
            self._run(statement)
        except RuntimeError as error:
            if self._session is None:
                raise
            self._leave(f"failed at a {statement} ({error})")
            raise StoreError(f"the store {self._path} {self._closed}; open it again") from error

    def _put(self, record: Record) -> None:
        """Add a record, or change what differs from the stored one of its id."""
        rows = rows_of(record)
        row = rows.row(record)
        keys = ("id", "source", "target") if rows.ends else ("id",)
        where = {f"p_{name}": row[name] for name in keys}
        found = self._run(rows.one, **where)
        if not found:
            if not self._run(rows.add, **_parameters(row)):
                raise StoreError(
                    f"nothing was written: {row['id']!r} belongs to what is not stored"
                )
            return
        changed = [n for n, old in zip(rows.names, found[0], strict=True) if old != row[n]]
        if changed:
            new = {f"p_{name}": row[name] for name in changed}
            self._run(rows.change(changed), **where, **new)
            self._changed += len(changed)
            if isinstance(record, Field) and "topic" in changed:
                self._run("MATCH (:Topic)-[h:HAS]->(n:Field {`id`: $p_id}) DELETE h", **where)
                self._run(_OWNS, **where, p_topic=record.topic)

    def _touch(self, touched: dict[str, float], listed: str) -> list[list[Any]]:
        """Write saliences; gives a row for each field."""
        if not touched:
            return []
        self._changed += len(touched)
        rows = self._each(_TOUCH + listed, [{"id": n, "salience": s} for n, s in touched.items()])
        if len(rows) != len(touched):
            known = {row[0] for row in rows}
            missing = next(name for name in touched if name not in known)
            raise StoreError(f"nothing was written: there is no field {missing!r}")
        return rows

    def _each(self, statement: str, keys: list[dict[str, Any]]) -> list[list[Any]]:
        """Run a statement that unwinds `keys`; Kuzu would scan for those, so it gets them singly."""
        if self._engine == "ladybug":
            return self._run(statement, keys=keys)
        single = statement.removeprefix("UNWIND $keys AS x ").replace(" x.", " $")
        return [row for key in keys for row in self._run(single, **key)]

    def _remaining(self, gone: set[str]) -> Iterator[Record]:
        """All records, histories too, but those that are gone or speak of what is."""
        fields: list[str] = []
        for record in self.load():
            if _named(record) & gone:
                continue
            if isinstance(record, Field):
                if record.topic in gone:
                    raise StoreError(
                        f"nothing was erased: {record.topic!r} was to be without its {record.id!r}"
                    )
                fields.append(record.id)
            yield record
        for batch in _batches(fields, _BATCH):
            yield from self.entries(batch)

    # ------------------------------------------------------------ opening

    def _open(self) -> None:
        """Open the files, or make them; see the module."""
        _clear(_beside(self._path, ".new"))
        shutil.rmtree(_beside(self._path, ".check"), ignore_errors=True)
        if not self._path.exists():
            left = [p.name for p in (self._log, _beside(self._path, ".seal")) if p.exists()]
            if left:
                raise DamagedStore(
                    f"{self._path} is gone, and {' and '.join(left)} of it are here. Bring it back, "
                    f"or remove them too to begin with an empty store"
                )
            self._install(iter(()))
            return
        note = self._seal.note
        if note is None or note.state == "checkpoint":
            self._try_copy()
        else:
            self._seal.compare(note)
        self._connect()
        self.checkpoint()

    def _connect(self) -> None:
        """Open the files; all that may be wrong is what the log holds after its noted end."""
        try:
            self._session = _Session(self._path, self._engine, self._buffer_bytes)
        except RuntimeError as error:
            _explain(self._path, error)
            if "wal" not in str(error).lower() or not self._seal.cut():
                raise DamagedStore(f"{self._path} cannot be opened: {error}") from error
            self._session = _Session(self._path, self._engine, self._buffer_bytes)

    def _install(self, records: Iterator[Record]) -> None:
        """Make a database of some records, and let it take the place of what is there."""
        fresh = _beside(self._path, ".new")
        try:
            _make(fresh, self._engine, self._buffer_bytes, records)
        except BaseException:
            _clear(fresh)
            raise
        if self._session is not None:
            self._session.close()
            self._session = None
        for end in _SIDE:
            _beside(self._path, end).unlink(missing_ok=True)
        if self._path.exists():
            self._seal.begin()
        fresh.replace(self._path)
        _clear(fresh)
        folder = os.open(self._path.parent, os.O_RDONLY)
        os.fsync(folder)
        os.close(folder)
        self._connect()
        self._seal.take("open")

    def _try_copy(self) -> None:
        """Read through a copy of the files in a process of its own."""
        room = _beside(self._path, ".check")
        room.mkdir()
        try:
            for end in ("", *_SIDE):
                file = _beside(self._path, end)
                if file.exists():
                    shutil.copyfile(file, room / file.name)
            child = subprocess.run(
                [
                    sys.executable,
                    "-c",
                    f"from {__name__} import _survey; _survey()",
                    self._engine,
                    str(room / self._path.name),
                ],
                env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
                capture_output=True,
                text=True,
            )
        finally:
            shutil.rmtree(room, ignore_errors=True)
        said = json.loads(child.stdout.splitlines()[-1]) if child.stdout else {}
        if said.get("foreign"):
            raise ForeignFile(f"{self._path} {said['foreign']}")
        if child.returncode or said.get("damaged"):
            why = said.get("damaged") or f"reading it ended {self._engine} ({child.returncode})"
            raise DamagedStore(
                f"{self._path} cannot be read whole: {why}. Nothing was touched; bring it and the "
                f"files that begin with its name back from a copy"
            )

    def _leave(self, closed: str) -> None:
        """Release everything; from now on every call says why."""
        self._closed = closed
        session, self._session = self._session, None
        if session is not None:
            with contextlib.suppress(RuntimeError):
                session.close()
        self._lock.release()


_OWNS: Final = "MATCH (t:Topic {`id`: $p_topic}) MATCH (n:Field {`id`: $p_id}) CREATE (t)-[:HAS]->(n) RETURN n.`id`"  # fmt: skip


def _beside(path: Path, end: str) -> Path:
    return path.with_name(path.name + end)


def _clear(path: Path) -> None:
    """Remove a database that was not finished."""
    for end in ("", *_SIDE):
        _beside(path, end).unlink(missing_ok=True)


def _batches(items: Iterable[_T], size: int) -> Iterator[list[_T]]:
    left = iter(items)
    while batch := list(itertools.islice(left, size)):
        yield batch


def _named(record: Record) -> set[str]:
    """The topics and fields that a record is, or speaks of."""
    match record:
        case Edge():
            return {record.source, record.target}
        case Evidence():
            return {record.subject, record.other}
        case Alias():
            return {record.scope, record.target}
        case Topic() | Field():
            return {record.id}
    return set()


def _place(record: Record) -> tuple[Any, ...]:
    """Where a record is loaded: by tenant and number, or where it has none by id."""
    if isinstance(record, PolicyText):
        return "", record.place, record.id
    tenant = getattr(record, "tenant", "")
    number = record.id[len(tenant) + 2 :]  # type: ignore[union-attr]
    return tenant, int(number) if number.isdecimal() else 0, record.id  # type: ignore[union-attr]


def _parameters(row: dict[str, Any]) -> dict[str, Any]:
    """A row as parameters; some attributes are words of Cypher, so all have a prefix."""
    return {f"p_{name}": value for name, value in row.items()}


def _recognise(path: Path, engine: str) -> None:
    """Refuse what is plainly not a file of this engine.

    A file of ours that has lost its beginning is damaged, and its seal tells that it is ours.
    """
    if path.is_dir():
        raise ForeignFile(f"{path} is a folder; name a file for the store")
    with path.open("rb") as file:
        head = file.read(4)
    if head == _MAGIC[engine]:
        return
    note = Seal(path, path, engine).note
    if note is not None and note.engine != engine:
        raise ForeignFile(
            f"{path} is a store of {note.engine}; open it as such, or name another file"
        )
    if note is not None:
        raise DamagedStore(
            f"{path} is not as it was written: it does not begin as a file of {engine} does. "
            f"Nothing was touched; bring it back from a copy"
        )
    other = next((name for name, magic in _MAGIC.items() if magic == head), None)
    what = f"is a file of {other}, and {engine} cannot read it" if other else f"is not a file of {engine}"  # fmt: skip
    raise ForeignFile(f"{path} {what}; name another file, or the engine that wrote it")


def _explain(path: Path, error: RuntimeError) -> None:
    """Raise what an engine says of a file that is not damaged."""
    if "version" in str(error):
        raise ForeignFile(f"{path} is of another version of the engine: {error}") from error
    if "lock" in str(error):
        raise StoreInUse(f"{path} is open in another program: {error}") from error


def _make(path: Path, engine: Engine, buffer_bytes: int, records: Iterator[Record]) -> None:
    """Make a database of some records."""
    session = _Session(path, engine, buffer_bytes)
    try:
        for statement in SCHEMA:
            session.run(statement)
        session.run(
            "CREATE (:Store {`id`: 'steeltrap', `version`: $version, `engine`: $engine, `package`: $package})",
            version=_VERSION,
            engine=engine,
            package=importlib.metadata.version(engine),
        )
        for rows, group in itertools.groupby(records, rows_of):
            for batch in _batches(group, _BATCH):
                session.run(rows.fill, rows=[_parameters(rows.row(record)) for record in batch])
        session.run("CHECKPOINT")
    finally:
        session.close()


def _survey() -> None:
    """Read through a database, and print what is wrong with it; run in a process of its own."""
    engine, path = sys.argv[1:]
    print(json.dumps(_faults(Path(path), engine)))  # type: ignore[arg-type] # noqa: T201


def _faults(path: Path, engine: Engine) -> dict[str, str]:
    try:
        session = _Session(path, engine, 512 << 20)
    except RuntimeError as error:
        if "version" in str(error):
            return {"foreign": f"is of another version of the engine: {error}"}
        return {"damaged": str(error)}
    try:
        header = session.run(_HEADER)
    except RuntimeError:
        return {"foreign": f"is a {engine} database of another program; name another file"}
    if [row[0] for row in header] != [_VERSION]:
        said = " and ".join(str(row[0]) for row in header)
        return {"foreign": f"is a store of version {said}, and this reads version {_VERSION}"}
    try:
        for rows in (*_PRESENT, ENTRY):
            session.scan(rows)
        session.run("MATCH (t:Topic)-[:HAS]->(f:Field) RETURN t.`id`, f.`id`")
    except (RuntimeError, ValueError) as error:
        return {"damaged": str(error)}
    return {}
