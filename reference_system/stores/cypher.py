"""The records of M as nodes and edges of a property graph, and the Cypher that writes them.

Columns are named as the attributes of the records. What Cypher has no plain type for is text:
tuples and rules as JSON, vectors as base64 of their bytes. Ids are strings, since the engines
look up only those by their index whatever the value.

To change one value the engines copy a vector of 2048 and keep it until the next checkpoint, so
what a field's every update changes is one column, `rest`: JSON of its times, its provenance and
its counts. The entry that `seq` names has the former two in columns of their own.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import Any, Final

import msgspec

from steeltrap.reference_system.rules import Rule
from steeltrap.reference_system.state import (
    Alias,
    Edge,
    Entry,
    Evidence,
    Field,
    PolicyText,
    Record,
    Topic,
)

__all__ = ["ALIAS", "ASSOC", "ENTRY", "EVIDENCE", "EXT", "FIELD", "POLICY", "SCHEMA", "TOPIC", "Rows", "entry_id", "rows_of"]  # fmt: skip

_JSON: Final[dict[Any, Any]] = {tuple[str, ...]: tuple[str, ...], Rule | None: Rule}
_TYPES: Final[dict[Any, str]] = {int: "INT64", float: "DOUBLE", bool: "BOOL"}
_REST: Final = ("valid_from", "until", "turn", "said_by", "sources", "via", "cause", "entries", "mentions", "order", "tokens")  # fmt: skip
_OWNER: Final = "MATCH (t:Topic {`id`: %s}) CREATE (t)-[:HAS]->"


def entry_id(field: str, seq: int) -> str:
    """Key of an entry: by it alone is a history found, so that it needs no edges."""
    return f"{field}#{seq:06d}"


class Rows:
    """One table: how its records are written and read.

    Args:
        record: their type.
        table: its name in the graph.
        ends: of a table of edges, the table of the nodes that they join.
        fixed: attributes that all records of the table share.
        rest: attributes that are kept in one column.
    """

    def __init__(
        self,
        record: type[Record],
        table: str,
        ends: str = "",
        fixed: dict[str, Any] | None = None,
        rest: tuple[str, ...] = (),
    ) -> None:
        self.record = record
        self.table = table
        self.ends = ends
        self._fixed = fixed or {}
        types = {
            f.name: f.type for f in msgspec.structs.fields(record) if f.name not in self._fixed
        }
        self._rest = rest
        self._unpack = msgspec.json.Decoder(tuple[tuple(types.pop(name) for name in rest)]).decode  # type: ignore[misc]
        self._coded = {name: codec for name, kind in types.items() if (codec := _codec(kind))}
        self.names = (*types, "rest") if rest else tuple(types)
        """The columns that make a record."""
        key = () if "id" in types else ("id",)
        self.columns = tuple(n for n in (*key, *self.names) if not ends or n not in ("source", "target"))  # fmt: skip
        listed = ", ".join(f"`{n}` {_TYPES.get(types.get(n), 'STRING')}" for n in self.columns)
        self.schema = (
            f"CREATE REL TABLE {table}(FROM {ends} TO {ends}, {listed})"
            if ends
            else f"CREATE NODE TABLE {table}({listed}, PRIMARY KEY(`id`))"
        )

    # ------------------------------------------------------------ records and rows

    def row(self, record: Record) -> dict[str, Any]:
        """What a record is in the table."""
        row = {name: getattr(record, name) for name in self.names if name != "rest"}
        for name, (write, _) in self._coded.items():
            row[name] = write(row[name])
        if self._rest:
            packed = msgspec.json.encode([getattr(record, name) for name in self._rest])
            row["rest"] = packed.decode()
        if isinstance(record, Entry):
            row["id"] = entry_id(record.field, record.seq)
        return row

    def records(self, rows: Iterable[Sequence[Any]]) -> list[Any]:
        """What rows (their values in the order of `names`) are as records."""
        made = []
        for row in rows:
            values = dict(zip(self.names, row, strict=True))
            for name, (_, read) in self._coded.items():
                values[name] = read(values[name])
            if self._rest:
                values |= zip(self._rest, self._unpack(values.pop("rest")), strict=True)
            made.append(self.record(**values, **self._fixed))
        return made

    # ------------------------------------------------------------ statements

    @cached_property
    def _node(self) -> str:
        """The pattern that finds one record, as `n`."""
        if not self.ends:
            return f"(n:{self.table} {{`id`: $p_id}})"
        return (
            f"(a:{self.ends} {{`id`: $p_source}})-[n:{self.table} {{`id`: $p_id}}]->"
            f"(b:{self.ends} {{`id`: $p_target}})"
        )

    @cached_property
    def listed(self) -> str:
        """What makes a record, as it is returned."""
        ends = {"source": "a.`id`", "target": "b.`id`"} if self.ends else {}
        return ", ".join(ends.get(name, f"n.`{name}`") for name in self.names)

    @cached_property
    def all(self) -> str:
        """Gives the whole table."""
        edge = f"(a:{self.ends})-[n:{self.table}]->(b:{self.ends})"
        return f"MATCH {edge if self.ends else f'(n:{self.table})'} RETURN {self.listed}"

    @cached_property
    def one(self) -> str:
        """Gives one record by id, and of an edge by its ends as well."""
        return f"MATCH {self._node} RETURN {self.listed}"

    @cached_property
    def some(self) -> str:
        """Gives records by a list of keys."""
        return f"UNWIND $keys AS x MATCH (n:{self.table} {{`id`: x.id}}) RETURN {self.listed}"

    @cached_property
    def add(self) -> str:
        """Adds one record; gives a row if what it belongs to is there."""
        return f"{self._made('$p_')} RETURN n.`id`"

    @cached_property
    def fill(self) -> str:
        """Adds many records."""
        return f"UNWIND $rows AS x {self._made('x.p_')}"

    def change(self, names: Iterable[str]) -> str:
        """Changes some columns of a record."""
        return f"MATCH {self._node} SET " + ", ".join(f"n.`{n}` = $p_{n}" for n in names)

    @cached_property
    def remove(self) -> str:
        """Removes a record."""
        return f"MATCH {self._node} DELETE n"

    def _made(self, value: str) -> str:
        listed = ", ".join(f"`{name}`: {value}{name}" for name in self.columns)
        if self.ends:
            return (
                f"MATCH (a:{self.ends} {{`id`: {value}source}}) "
                f"MATCH (b:{self.ends} {{`id`: {value}target}}) "
                f"CREATE (a)-[n:{self.table} {{{listed}}}]->(b)"
            )
        owner = _OWNER % f"{value}topic" if self.record is Field else "CREATE "
        return f"{owner}(n:{self.table} {{{listed}}})"


def _codec(kind: Any) -> tuple[Callable[[Any], Any], Callable[[Any], Any]] | None:
    """How an attribute is written as text and read back; None: as it is."""
    if kind is bytes:
        return lambda held: base64.b64encode(held).decode(), base64.b64decode
    if kind not in _JSON:
        return None
    decode = msgspec.json.Decoder(_JSON[kind]).decode
    return (
        lambda held: None if held is None else msgspec.json.encode(held).decode(),
        lambda text: None if text is None else decode(text),
    )


TOPIC = Rows(Topic, "Topic")
FIELD = Rows(Field, "Field", rest=_REST)
ENTRY = Rows(Entry, "Entry")
EXT = Rows(Edge, "EXT", "Field", {"kind": "extension"})
ASSOC = Rows(Edge, "ASSOC", "Topic", {"kind": "association"})
EVIDENCE = Rows(Evidence, "Evidence")
ALIAS = Rows(Alias, "Alias")
POLICY = Rows(PolicyText, "Policy")

SCHEMA: Final = (
    TOPIC.schema,
    FIELD.schema,
    ENTRY.schema,
    EVIDENCE.schema,
    ALIAS.schema,
    POLICY.schema,
    "CREATE REL TABLE HAS(FROM Topic TO Field, ONE_MANY)",
    EXT.schema,
    ASSOC.schema,
    "CREATE NODE TABLE Store(`id` STRING PRIMARY KEY, `version` INT64, `engine` STRING, `package` STRING)",
)


def rows_of(record: Record) -> Rows:
    """The table that a record belongs to."""
    if isinstance(record, Edge):
        return EXT if record.kind == "extension" else ASSOC
    return _TABLES[type(record)]


_TABLES: Final = {rows.record: rows for rows in (TOPIC, FIELD, ENTRY, EVIDENCE, ALIAS, POLICY)}
