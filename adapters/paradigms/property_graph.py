"""A property graph: entities and their fields are nodes, edges are typed; the engine is Ladybug.

```cypher
(:Entity {tenant, title})-[:HAS]->(:Field {name, value, turns, ...})
(:Entity)-[:DEPENDS_ON {turn}]->(:Entity)
(:Entity)-[:RELATED_TO {turn}]->(:Entity)
```

The engine wants the attributes of a node declared, and nobody knows the fields of a memory
beforehand, so a field is a node of its own. Every statement is prepared once and takes parameters;
keys are strings, since the engine scans for integers. What a turn states is one transaction.
"""

from __future__ import annotations

import shutil
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from itertools import groupby
from pathlib import Path
from typing import Any, Final

import msgspec

from steeltrap.adapters.paradigms.base import Held, Schema, Write, key
from steeltrap.adapters.paradigms.entities import EntityGraph
from steeltrap.reference_system.rules import Rule
from steeltrap.reference_system.statements import Place

__all__ = ["PropertyGraph"]

_FILE: Final = "graph.db"
_BUFFER_BYTES: Final = 256 << 20
_CHECKPOINT_TURNS: Final = 400
"""The engine keeps versions of what was changed until then; see the reference system's store."""
_REACH: Final = 30
"""Edges that a path may have at most, by the engine's own limit."""

_TABLES: Final = (
    "CREATE NODE TABLE Entity(id STRING PRIMARY KEY, tenant STRING, title STRING, names STRING[],"
    " number INT64, review INT64)",
    "CREATE NODE TABLE Field(id STRING PRIMARY KEY, name STRING, value STRING, said_by STRING,"
    " turns STRING[], at STRING, valid_from STRING, until STRING, number INT64)",
    "CREATE REL TABLE HAS(FROM Entity TO Field, ONE_MANY)",
    "CREATE REL TABLE DEPENDS_ON(FROM Entity TO Entity, turn STRING)",
    "CREATE REL TABLE RELATED_TO(FROM Entity TO Entity, turn STRING)",
)
_NAMED: Final = """
MERGE (e:Entity {id: $entity})
ON CREATE SET e.tenant = $tenant, e.title = $title, e.names = [], e.number = $number, e.review = 0
"""
_FOUND: Final = "MATCH (f:Field {id: $field}) RETURN f.value, f.valid_from"
_PUT: Final = """
MATCH (e:Entity {id: $entity}) MERGE (e)-[:HAS]->(f:Field {id: $field})
SET f.name = $name, f.value = $value, f.said_by = $said_by, f.turns = [$turn], f.at = $at,
    f.valid_from = $valid_from, f.until = $until, f.number = $number
"""
_CONFIRM: Final = """
MATCH (f:Field {id: $field})
SET f.turns = list_append(f.turns, $turn), f.said_by = $said_by, f.number = $number,
    f.until = CASE WHEN $until = '' THEN f.until ELSE $until END
"""
_REMOVE: Final = "MATCH (f:Field {id: $field}) DETACH DELETE f"
_MARK: Final = (
    "MATCH (:Entity {id: $entity})<-[:DEPENDS_ON]-(a:Entity) SET a.review = $number",
    f"MATCH (:Entity {{id: $entity}})<-[:DEPENDS_ON]-(a:Entity)<-[:DEPENDS_ON* SHORTEST 1..{_REACH}]-"
    "(b:Entity) SET b.review = $number",
)
"""Shortest paths never lead back to where they begin; with the first step apart a cycle does."""
_EDGE: Final = """
MATCH (a:Entity {{id: $one}}), (b:Entity {{id: $other}}) MERGE (a)-[:{kind} {{turn: $turn}}]->(b)
"""
_ALIAS: Final = "MATCH (e:Entity {id: $entity}) SET e.names = list_append(e.names, $name)"
_LEFT_BARE: Final = """
MATCH (e:Entity {id: $entity}) WHERE NOT EXISTS { MATCH (e)-[:HAS]->(:Field) } DETACH DELETE e
"""
_DROP: Final = (
    "MATCH (e:Entity {tenant: $tenant})-[:HAS]->(f:Field) DETACH DELETE f",
    "MATCH (e:Entity {tenant: $tenant}) DETACH DELETE e",
)
_REMAINS: Final = {
    "Entity": "MATCH (n:Entity) RETURN n.*",
    "Field": "MATCH (n:Field) RETURN n.*",
    "HAS": "MATCH (a:Entity)-[:HAS]->(b:Field) RETURN a.id, b.id",
    "DEPENDS_ON": "MATCH (a:Entity)-[e:DEPENDS_ON]->(b:Entity) RETURN a.id, b.id, e.turn",
    "RELATED_TO": "MATCH (a:Entity)-[e:RELATED_TO]->(b:Entity) RETURN a.id, b.id, e.turn",
}
"""Everything by its table. The engine's own export breaks on a path with a backslash."""
_SCHEMA: Final = """
MATCH (e:Entity {tenant: $tenant}) OPTIONAL MATCH (e)-[:HAS]->(f:Field)
RETURN e.title, e.names, f.name, e.number ORDER BY e.number, f.name
"""
_HELD: Final = (
    " RETURN e.title, f.name, f.value, f.said_by, f.turns, f.valid_from, f.until,"
    " f.number < e.review, e.number ORDER BY e.number, f.name"
)
_CURRENT: Final = "MATCH (e:Entity)-[:HAS]->(f:Field {id: $field})" + _HELD
_LISTING: Final = "MATCH (e:Entity {tenant: $tenant})-[:HAS]->(f:Field)" + _HELD
_NEAR: Final = """
MATCH (o:Entity {{id: $entity}})-[:DEPENDS_ON|:RELATED_TO* SHORTEST 1..{hops}]-(e:Entity),
      (e)-[:HAS]->(f:Field)
"""


class _Session:
    """A connection to a database file, with the statements that were prepared on it."""

    def __init__(self, path: Path) -> None:
        ladybug: Any = import_module("ladybug")
        self._database = ladybug.Database(
            str(path), buffer_pool_size=_BUFFER_BYTES, max_num_threads=1, max_db_size=1 << 36,
            auto_checkpoint=False,
        )  # fmt: skip
        self._connection = ladybug.Connection(self._database)
        self._prepared: dict[str, Any] = {}

    def run(self, statement: str, **parameters: Any) -> list[list[Any]]:
        """Run one statement, and give its rows."""
        if statement not in self._prepared:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)
                self._prepared[statement] = self._connection.prepare(statement)
        result = self._connection.execute(self._prepared[statement], parameters)
        rows: list[list[Any]] = result.get_all()
        result.close()
        return rows

    def close(self) -> None:
        """Let go of the file."""
        self._prepared.clear()
        self._connection.close()
        self._database.close()


class PropertyGraph(EntityGraph):
    """Facts in nodes, updated in place by Cypher; see the module and `EntityGraph`."""

    name = "property-graph"

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self._folder = Path()
        self._session: _Session | None = None
        self._turns = 0
        """Transactions since the last checkpoint."""
        self._near = _NEAR.format(hops=self._hops) + _HELD

    # ------------------------------------------------------------ life

    def create(self, folder: Path) -> None:
        """Begin an empty store in `folder`/ladybug."""
        self._folder = folder / "ladybug"
        shutil.rmtree(self._folder, ignore_errors=True)
        self._folder.mkdir()
        self._said = self._turns = 0
        self._make(self._folder)

    def release(self) -> None:
        """Close the file; the log stays beside it."""
        session, self._session = self._session, None
        if session is not None:
            session.close()

    def size_bytes(self) -> int:
        """Bytes of the database and its log."""
        self._opened()
        return sum(path.stat().st_size for path in self._folder.iterdir() if path.is_file())

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """A transaction of the engine."""
        self._run("BEGIN TRANSACTION")
        try:
            yield
        except BaseException:
            with suppress(RuntimeError):
                self._run("ROLLBACK")  # raises if an error of the engine has done it already
            raise
        self._run("COMMIT")
        self._turns += 1
        if self._turns >= _CHECKPOINT_TURNS:
            self._run("CHECKPOINT")
            self._turns = 0

    def _run(self, statement: str, **parameters: Any) -> list[list[Any]]:
        assert self._session is not None
        return self._session.run(statement, **parameters)

    # ------------------------------------------------------------ writing

    def replace(self, write: Write) -> bool:
        """See `EntityGraph`."""
        field = _id(write.tenant, write.topic, write.field)
        found = self._run(_FOUND, field=field)
        if found and found[0][1] > write.valid_from:
            return False
        self._name(write.tenant, write.topic)
        self._run(
            _PUT, entity=_id(write.tenant, write.topic), field=field, name=write.field,
            value=write.value, said_by=write.said_by, turn=write.turn, at=write.at,
            valid_from=write.valid_from, until=write.until or "", number=self.number(),
        )  # fmt: skip
        return bool(found) and found[0][0] != write.value

    def confirm(self, write: Write) -> None:
        """See `EntityGraph`."""
        self._run(
            _CONFIRM, field=_id(write.tenant, write.topic, write.field), turn=write.turn,
            said_by=write.said_by, until=write.until or "", number=self.number(),
        )  # fmt: skip

    def remove(self, tenant: str, place: Place) -> None:
        """See `EntityGraph`."""
        self._run(_REMOVE, field=_id(tenant, place.topic, place.field))

    def mark(self, tenant: str, topic: str) -> None:
        """See `EntityGraph`."""
        for statement in _MARK:
            self._run(statement, entity=_id(tenant, topic), number=self._said)

    def depend(
        self, tenant: str, source: Place, target: Place, rule: Rule | None, turn: str, at: str  # noqa: ARG002
    ) -> None:  # fmt: skip
        """An edge between the two entities: what the rule says of their fields has no place in it."""
        self._edge(tenant, target.topic, "DEPENDS_ON", source.topic, turn)

    def relate(self, tenant: str, topic: str, other: str, turn: str) -> None:
        """An edge that no mark crosses."""
        self._edge(tenant, topic, "RELATED_TO", other, turn)

    def alias(self, tenant: str, topic: str, name: str) -> None:
        """A name beside the title."""
        self._run(_ALIAS, entity=_id(tenant, topic), name=name)

    def drop(self, tenant: str, place: Place | None) -> None:
        """Remove a field's node, and its entity with the last; or all nodes of a tenant."""
        if place is None:
            for statement in _DROP:
                self._run(statement, tenant=tenant)
            return
        self.remove(tenant, place)
        self._run(_LEFT_BARE, entity=_id(tenant, place.topic))

    def erase(self, tenant: str, subject: Any) -> None:
        """Remove a field or a tenant for good; what is not there needs no removal.

        The engine leaves the bytes of what is deleted in its file, so what remains is written to
        a new one.
        """
        super().erase(tenant, subject)
        old, new = self._folder, self._folder.with_name("ladybug.new")
        shutil.rmtree(new, ignore_errors=True)
        new.mkdir()
        files = {table: new / f"{table}.parquet" for table in _REMAINS}
        for table, rows in _REMAINS.items():
            self._run(f"COPY ({rows}) TO {_quoted(files[table])}")
        self.release()
        self._make(new)
        for table, file in files.items():
            self._run(f"COPY {table} FROM {_quoted(file)}")
            file.unlink()
        self._run("CHECKPOINT")
        self.release()
        shutil.rmtree(old)
        new.rename(old)
        self._session = _Session(old / _FILE)

    def _make(self, folder: Path) -> None:
        self._session = _Session(folder / _FILE)
        for statement in _TABLES:
            self._run(statement)

    def _edge(self, tenant: str, one: str, kind: str, other: str, turn: str) -> None:
        for topic in (one, other):
            self._name(tenant, topic)
        self._run(
            _EDGE.format(kind=kind), one=_id(tenant, one), other=_id(tenant, other), turn=turn
        )

    def _name(self, tenant: str, topic: str) -> None:
        self._run(
            _NAMED, entity=_id(tenant, topic), tenant=tenant, title=topic, number=self.number()
        )

    # ------------------------------------------------------------ reading

    def schema(self, tenant: str) -> Sequence[Schema]:
        """Entities in the order in which they came, with their fields."""
        rows = self._run(_SCHEMA, tenant=tenant)
        found = []
        for (title, names), fields in groupby(rows, lambda row: (row[0], row[1])):
            found.append(Schema(title, tuple(row[2] for row in fields if row[2]), tuple(names)))
        return found

    def current(self, tenant: str, place: Place, at: str) -> Held | None:
        """The value of the field's node."""
        found = self._held(_CURRENT, at, field=_id(tenant, place.topic, place.field))
        return found[0] if found else None

    def listing(self, tenant: str, at: str) -> Sequence[Held]:
        """Every field's node, by entities."""
        return self._held(_LISTING, at, tenant=tenant)

    def linked(self, tenant: str, place: Place, at: str) -> Sequence[Held]:
        """The values of the entities that lie within `hops` edges."""
        return self._held(self._near, at, entity=_id(tenant, place.topic)) if self._hops else ()

    def _held(self, query: str, at: str, **parameters: Any) -> list[Held]:
        found = []
        for topic, field, value, said_by, turns, since, until, review, _ in self._run(query, **parameters):  # fmt: skip
            found.append(
                Held(topic, field, value, said_by, tuple(turns), since, until or None, review)
            )
        return [held for held in found if held.valid_to is None or held.valid_to > at]


def _id(tenant: str, topic: str, field: str | None = None) -> str:
    """The key of an entity, or of one of its fields; no name can pass for another one's."""
    path = [tenant, key(topic)] if field is None else [tenant, key(topic), key(field)]
    return msgspec.json.encode(path).decode()


def _quoted(path: Path) -> str:
    """A path as a literal of Cypher: COPY takes no parameters."""
    return "'" + str(path).replace("\\", "\\\\").replace("'", "\\'") + "'"
