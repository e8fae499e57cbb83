"""Books that outgrow memory: a mapping and a list by keys whose older part lies in a file.

Scoring keeps books on every unit and every sentence, and a life of a million turns has more of
them than memory should hold. What was used lately stays in memory, where it costs what a dict
costs; the rest lies in a temporary SQLite file and comes back when it is asked for. A short life
never touches the file.

The file has no name: it is unlinked as soon as it is open, so that nothing is left of it however
the process ends.
"""

from __future__ import annotations

import os
import sqlite3
import tempfile
from collections.abc import Iterable, Iterator, MutableMapping, Sequence
from pathlib import Path
from typing import Any, Final, Generic, TypeVar, overload

import msgspec

from steeltrap.harness.tokens import cache_folder

__all__ = ["ROOM", "Attic", "Pile", "Shelf"]

K = TypeVar("K", str, int)
V = TypeVar("V")

ROOM = 1 << 15
"""Entries of a shelf that stay in memory after they were last used, and as many more."""
_CACHE_KB: Final = 16_000
"""Pages of the file that SQLite keeps."""


class Attic:
    """The file behind the shelves and piles of one scoring; made when the first of them is full.

    Args:
        room: how many entries of each stay in memory; by default `ROOM`.
    """

    def __init__(self, room: int | None = None) -> None:
        self.room = ROOM if room is None else room
        self._db: sqlite3.Connection | None = None
        self._tables = 0

    def table(self, columns: str, form: str = "") -> str:
        """Make a table, and return its name.

        Raises:
            OSError: there is no room.
        """
        self._tables += 1
        name = f"shelf{self._tables}"
        self.all(f"CREATE TABLE {name} ({columns}) {form}")
        return name

    def all(self, statement: str, values: Iterable[Any] = ()) -> list[tuple[Any, ...]]:
        """Run one statement and give what it finds.

        Raises:
            OSError: there is no room.
        """
        try:
            return self._opened().execute(statement, tuple(values)).fetchall()
        except sqlite3.OperationalError as error:
            raise _full(error) from None

    def many(self, statement: str, rows: Iterable[tuple[Any, ...]]) -> None:
        """Run a statement for each row.

        Raises:
            OSError: there is no room.
        """
        try:
            self._opened().executemany(statement, rows)
        except sqlite3.OperationalError as error:
            raise _full(error) from None

    def stream(self, statement: str) -> Iterator[tuple[Any, ...]]:
        """What a statement finds, a row at a time."""
        yield from self._opened().execute(statement)

    def _opened(self) -> sqlite3.Connection:
        if self._db is None:
            self._db = _unnamed()
        return self._db


def _unnamed() -> sqlite3.Connection:
    """An open SQLite file that nobody else can find."""
    folder = cache_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle, path = tempfile.mkstemp(".shelf", dir=folder)
    except OSError:
        handle, path = tempfile.mkstemp(".shelf")
    os.close(handle)
    try:
        db = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        # Nobody reads it after this process, so that nothing has to be safe on disk: there is no
        # journal, and one transaction that never ends.
        for pragma in ("journal_mode=OFF", "synchronous=OFF", "locking_mode=EXCLUSIVE"):
            db.execute(f"PRAGMA {pragma}")
        db.execute(f"PRAGMA cache_size=-{_CACHE_KB}")
        db.execute("PRAGMA temp_store=MEMORY")
        db.execute("BEGIN EXCLUSIVE")
    finally:
        Path(path).unlink()
    return db


def _full(error: sqlite3.OperationalError) -> OSError:
    return OSError(
        f"{cache_folder()}: what scoring sets aside cannot be written ({error}); make room, or set"
        " STEELTRAP_CACHE to a folder that has some"
    )


class Shelf(MutableMapping[K, V], Generic[K, V]):
    """A mapping whose entries leave memory when they have not been used for long.

    An entry that is got, or set, stays in memory at least until as many others have been as the
    attic has room for, and what is kept is whatever it has become by then: an object that was got
    may be changed, at once; who comes back to it later gets it again. `None` is no value.

    Args:
        attic: where the rest lies.
        of: the type of the values, as msgspec writes and reads it.
    """

    def __init__(self, attic: Attic, of: Any) -> None:
        self._attic = attic
        self._room = attic.room
        self._new: dict[K, V] = {}
        self._old: dict[K, V] = {}
        self._table = ""
        self._encode = msgspec.msgpack.Encoder().encode
        self._decode = msgspec.msgpack.Decoder(of).decode

    def get(self, key: K, default: Any = None) -> Any:
        """The value of a key, or the default."""
        found = self._new.get(key)
        if found is not None:
            return found
        found = self._old.pop(key, None)
        if found is None:
            if not self._table:
                return default
            found = self._fetched(key)
            if found is None:
                return default
        self._new[key] = found
        if len(self._new) > self._room:
            self._turn_over()
        return found

    def __getitem__(self, key: K) -> V:
        found: V | None = self.get(key)
        if found is None:
            raise KeyError(key)
        return found

    def __setitem__(self, key: K, value: V) -> None:
        if self._old:
            self._old.pop(key, None)
        self._new[key] = value
        if len(self._new) > self._room:
            self._turn_over()

    def __delitem__(self, key: K) -> None:
        found = self.get(key)
        if found is None:
            raise KeyError(key)
        self._new.pop(key, None)
        self._old.pop(key, None)
        if self._table:
            self._attic.all(f"DELETE FROM {self._table} WHERE key = ?", (key,))

    def __contains__(self, key: object) -> bool:
        return self.get(key) is not None  # type: ignore[arg-type]

    def __iter__(self) -> Iterator[K]:
        """The keys, in no order; while nothing is got, set or removed."""
        yield from self._old
        yield from self._new
        if self._table:
            for (key,) in self._attic.stream(f"SELECT key FROM {self._table}"):
                if key not in self._new and key not in self._old:
                    yield key

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def items(self) -> Iterator[tuple[K, V]]:  # type: ignore[override]
        """Keys and values, in no order; while nothing is got, set or removed."""
        yield from self._old.items()
        yield from self._new.items()
        if self._table:
            for key, value in self._attic.stream(f"SELECT key, value FROM {self._table}"):
                if key not in self._new and key not in self._old:
                    yield key, self._decode(value)

    def values(self) -> Iterator[V]:  # type: ignore[override]
        """The values, in no order; while nothing is got, set or removed."""
        return (value for _, value in self.items())

    def clear(self) -> None:
        """Remove everything."""
        self._old, self._new = {}, {}
        if self._table:
            self._attic.all(f"DELETE FROM {self._table}")

    def _turn_over(self) -> None:
        """Put away what has not been used since the last time."""
        old, self._old, self._new = self._old, self._new, {}
        if old:
            if not self._table:
                self._table = self._attic.table("key PRIMARY KEY, value BLOB", "WITHOUT ROWID")
            self._attic.many(
                f"INSERT OR REPLACE INTO {self._table} VALUES (?, ?)",
                ((key, self._encode(old[key])) for key in sorted(old)),
            )

    def _fetched(self, key: K) -> V | None:
        rows = self._attic.all(f"SELECT value FROM {self._table} WHERE key = ?", (key,))
        return self._decode(rows[0][0]) if rows else None


class Pile(Generic[V]):
    """Lists by keys, to which things are added and from which nothing is taken.

    Args:
        attic: where the rest lies.
        of: the type of the things, as msgspec writes and reads it.
    """

    def __init__(self, attic: Attic, of: Any) -> None:
        self._attic = attic
        self._room = attic.room
        self._recent: list[tuple[str, V]] = []
        self._by_key: dict[str, list[V]] = {}
        self._sorted_in = 0
        """How many of the recent things stand in `_by_key`: all, whenever somebody asks."""
        self._put_away = 0
        self._table = ""
        self._encode = msgspec.msgpack.Encoder().encode
        self._decode = msgspec.msgpack.Decoder(of).decode

    def add(self, key: str, thing: V) -> None:
        """Put a thing on top of the list of a key."""
        self._recent.append((key, thing))
        if len(self._recent) >= self._room:
            self._turn_over()

    def get(self, key: str) -> list[V]:
        """What was added under a key, in order; not to be changed."""
        for other, thing in self._recent[self._sorted_in :]:
            self._by_key.setdefault(other, []).append(thing)
        self._sorted_in = len(self._recent)
        recent = self._by_key.get(key, [])
        if not self._table:
            return recent
        rows = self._attic.all(f"SELECT thing FROM {self._table} WHERE key = ? ORDER BY n", (key,))
        return [self._decode(row[0]) for row in rows] + recent

    def __len__(self) -> int:
        return self._put_away + len(self._recent)

    def pairs(self) -> Iterator[tuple[str, V]]:
        """Everything with its key, in the order in which it was added."""
        yield from self._stored("n")
        yield from self._recent

    def sorted(self) -> Sequence[V]:
        """Everything in order of the keys, under one key as it was added; call when all is there."""
        if not self._table:
            return [thing for _, thing in sorted(self._recent, key=lambda pair: pair[0])]
        self._turn_over()
        return _Sorted(self)

    def _stored(self, order: str) -> Iterator[tuple[str, V]]:
        if self._table:
            for key, thing in self._attic.stream(
                f"SELECT key, thing FROM {self._table} ORDER BY {order}"
            ):
                yield key, self._decode(thing)

    def _turn_over(self) -> None:
        if not self._table:
            self._table = self._attic.table("key TEXT, n INTEGER PRIMARY KEY, thing BLOB")
            self._attic.all(f"CREATE INDEX {self._table}_key ON {self._table} (key)")
        self._attic.many(
            f"INSERT INTO {self._table} (key, n, thing) VALUES (?, ?, ?)",
            (
                (key, n, self._encode(thing))
                for n, (key, thing) in enumerate(self._recent, self._put_away)
            ),
        )
        self._put_away += len(self._recent)
        self._recent, self._by_key, self._sorted_in = [], {}, 0


class _Sorted(Sequence[V]):
    """A pile in order of its keys, read from the file each time."""

    def __init__(self, pile: Pile[V]) -> None:
        self._pile = pile

    def __len__(self) -> int:
        return len(self._pile)

    def __iter__(self) -> Iterator[V]:
        return (thing for _, thing in self._pile._stored("key, n"))

    @overload
    def __getitem__(self, place: int) -> V: ...
    @overload
    def __getitem__(self, place: slice) -> list[V]: ...
    def __getitem__(self, place: int | slice) -> V | list[V]:
        if isinstance(place, slice):
            return list(self)[place]
        place = range(len(self))[place]
        return next(thing for _, thing in self._pile._stored(f"key, n LIMIT 1 OFFSET {place}"))
