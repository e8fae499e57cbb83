"""What the paradigms on SQLite share: a file a tenant, topics and fields, words, forks, erasure."""

from __future__ import annotations

import re
import shutil
import sqlite3
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final, Self

from steeltrap.adapters.crowd import alone
from steeltrap.adapters.paradigms.base import Held, Paradigm, Schema
from steeltrap.reference_system.rules import Rule
from steeltrap.reference_system.statements import Place

__all__ = ["SqliteParadigm", "script"]

_FIELD: Final = "SELECT field.id FROM field JOIN topic ON topic.id = field.topic WHERE title = ? AND name = ?"  # fmt: skip


class SqliteParadigm(Paradigm):
    """A paradigm whose tables are in SQLite, in a file a tenant.

    So no tenant's rows, words or sizes are felt by another, and erasing a tenant deletes its file.
    A subclass names the scripts of its tables in `scripts`.
    """

    scripts: Sequence[str] = ("catalogue",)

    # ------------------------------------------------------------ life

    def create(self, folder: Path) -> None:
        """Begin without any tenant."""
        self._folder = folder / self.name
        shutil.rmtree(self._folder, ignore_errors=True)
        self._folder.mkdir()
        self._tenants: dict[str, sqlite3.Connection] = {}

    def release(self) -> None:
        """Close the files."""
        for db in self._tenants.values():
            db.close()

    def fork(self) -> Self:
        """A copy in memory."""
        twin = self.twin()
        twin._tenants = {}
        for tenant, db in self._tenants.items():
            copy = twin._tenants[tenant] = self.connect_to(":memory:")
            db.backup(copy)
            weakref.finalize(twin, copy.close)
        return twin

    def connect_to(self, file: str) -> sqlite3.Connection:
        """A connection; a run that is cut short begins anew, so no write waits for the disk."""
        db = sqlite3.connect(file, check_same_thread=False)
        db.executescript(
            "PRAGMA foreign_keys = ON; PRAGMA secure_delete = ON; PRAGMA synchronous = OFF;"
        )
        return db

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """What is written within it is stored whole or not at all."""
        try:
            yield
        except BaseException:
            for db in self._tenants.values():
                db.rollback()
            raise
        for db in self._tenants.values():
            db.commit()

    @alone
    def size_bytes(self) -> int:
        """Bytes of the files."""
        self._opened()
        return sum(
            pages * size
            for tenant in self._tenants
            for pages, size in self.rows(
                tenant, "SELECT page_count, page_size FROM pragma_page_count, pragma_page_size"
            )
        )

    def rows(self, tenant: str, sql: str, *values: Any, **named: Any) -> list[Any]:
        """The rows that a query gives; none of a tenant that never spoke."""
        db = self._tenants.get(tenant)
        return db.execute(sql, named or values).fetchall() if db else []

    def write(self, tenant: str, sql: str, *values: Any, **named: Any) -> None:
        """Change the tables of a tenant, which may be new; the values by place or by name."""
        if tenant not in self._tenants:
            self._tenants[tenant] = self.connect_to(str(self._file(tenant)))
            for name in self.scripts:
                self._tenants[tenant].executescript(script(name))
        self._tenants[tenant].execute(sql, named or values)

    def _file(self, tenant: str) -> Path:
        return self._folder / f"{blake2b(tenant.encode(), digest_size=16).hexdigest()}.db"

    # ------------------------------------------------------------ the catalogue

    def schema(self, tenant: str) -> list[Schema]:
        """Every topic with its fields, in order of arrival."""
        fields: dict[str, list[str]] = {}
        for title, name in self.rows(
            tenant,
            "SELECT title, name FROM topic LEFT JOIN field ON field.topic = topic.id"
            " ORDER BY topic.id, field.id",
        ):
            fields.setdefault(title, []).extend([name] if name else [])
        names: dict[str, tuple[str, ...]] = {}
        for title, name in self.rows(
            tenant, "SELECT title, name FROM alias JOIN topic ON topic.id = topic ORDER BY name"
        ):
            names[title] = (*names.get(title, ()), name)
        return [Schema(title, tuple(f), names.get(title, ())) for title, f in fields.items()]

    def topic_of(self, tenant: str, title: str) -> int:
        """The id of a topic, made where there is none."""
        self.write(tenant, "INSERT OR IGNORE INTO topic (title) VALUES (?)", title)
        return int(self.rows(tenant, "SELECT id FROM topic WHERE title = ?", title)[0][0])

    def field_of(self, tenant: str, place: Place, about: str = "") -> int:
        """The id of a field, made where there is none."""
        if found := self.rows(tenant, _FIELD, place.topic, place.field):
            return int(found[0][0])
        topic = self.topic_of(tenant, place.topic)
        self.write(
            tenant, "INSERT INTO field (topic, name, about) VALUES (?, ?, ?)", topic, place.field, about
        )  # fmt: skip
        return self.field_of(tenant, place)

    def alias(self, tenant: str, topic: str, name: str) -> None:
        """A topic goes by another name too."""
        self.write(tenant, "INSERT OR REPLACE INTO alias VALUES (?, ?)", name, self.topic_of(tenant, topic))  # fmt: skip

    def relate(self, tenant: str, topic: str, other: str, turn: str) -> None:
        """Two topics are related: a row, in the order in which they were first named."""
        pair = sorted((self.topic_of(tenant, topic), self.topic_of(tenant, other)))
        self.write(tenant, "INSERT OR IGNORE INTO relation VALUES (?, ?, ?)", *pair, turn)

    def depend(self, tenant: str, source: Place, target: Place, rule: Rule | None, turn: str, at: str) -> None:  # noqa: ARG002  # fmt: skip
        """A rule is a row; the latest between two fields stands."""
        said = rule or Rule("review")
        self.write(
            tenant, "INSERT OR REPLACE INTO dependency VALUES (?, ?, ?, ?, ?, ?, ?)",
            self.field_of(tenant, source), self.field_of(tenant, target), said.kind, said.days,
            said.times, said.over, turn,
        )  # fmt: skip

    # ------------------------------------------------------------ the rest

    def drop(self, tenant: str, place: Place | None) -> None:
        """Delete a field's rows, and its topic with its last field; or the file of a tenant."""
        if place is None:
            if tenant in self._tenants:
                self._tenants.pop(tenant).close()
                self._file(tenant).unlink(missing_ok=True)
            return
        for (field,) in self.rows(tenant, _FIELD, place.topic, place.field):
            self.forget(tenant, field)
            self.write(tenant, "DELETE FROM field WHERE id = ?", field)
            self.write(
                tenant,
                "DELETE FROM topic WHERE title = ? AND id NOT IN (SELECT topic FROM field)",
                place.topic,
            )
            # an index of words keeps what was deleted until it is built anew
            self.write(tenant, "INSERT INTO words (words) VALUES ('rebuild')")

    def forget(self, tenant: str, field: int) -> None:
        """What must be undone before a field is erased: rules that name it oblige nothing more."""
        self.write(tenant, "DELETE FROM dependency WHERE ? IN (source, target)", field)

    def search(self, tenant: str, text: str, limit: int, at: str) -> list[Held]:
        """The present values that share most words with a text (BM25 of FTS5)."""
        words = " OR ".join(f'"{word}"' for word in dict.fromkeys(re.findall(r"\w+", text)))
        if not words:
            return []
        found = self.rows(
            tenant, "SELECT title, name FROM words JOIN field ON field.id = words.rowid"
            " JOIN topic ON topic.id = field.topic WHERE words MATCH ? ORDER BY bm25(words), field.id",
            words,
        )  # fmt: skip
        held = (self.current(tenant, Place(*place), at) for place in found)
        return [one for one in held if one is not None][:limit]


def script(name: str) -> str:
    """A script of tables that stands beside this module."""
    return Path(__file__).with_name(f"{name}.sql").read_text("utf-8")
