"""Links between memories; that one puts another out of force is a trigger of the tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from sqlite3 import Connection, Row
from typing import Any, Final

from oracleagentmemory.core._metadata_filter import matches_nullable_metadata_filter

from steeltrap.adapters.oracle.rows import (
    MEMORIES,
    UNSET,
    as_json,
    as_link,
    condition,
    marks,
    spread,
)

__all__ = ["LISTED", "Links"]

LISTED: Final = 1000
"""A listing without a number stops here."""
OPPOSITES: Final = {
    "supersedes": "is_superseded_by", "refines": "is_refined_by", "supports": "is_supported_by",
}  # fmt: skip
"""What a link is called from the other end; others have one name."""


class Links:
    """The part of a store that keeps links; the rest gives it the tables."""

    _new: Callable[[], str]
    """Gives an id that nothing has yet."""
    _time: Callable[[], str]
    """Gives the time as ISO 8601."""

    def _transaction(self) -> AbstractContextManager[Connection]:
        raise NotImplementedError

    def _rows(self, sql: str, given: Sequence[Any] = ()) -> list[Row]:
        raise NotImplementedError

    def _seq(self, kind: str, name: str) -> int | None:
        raise NotImplementedError

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
    ) -> list[str]:
        """See the package; what a link says of its target's status follows by itself."""
        sources = [source_record_ids] if isinstance(source_record_ids, str) else source_record_ids
        columns = [
            spread(given, len(sources))
            for given in (
                source_record_types, target_record_ids, target_record_types, relation_types,
                opposite_relation_types, relation_ids, timestamps, metadata,
            )
        ]  # fmt: skip
        names = []
        with self._transaction() as db:
            for source, kind, target, of_kind, label, opposite, name, at, about in zip(
                sources, *columns, strict=True
            ):
                ends = self._seq(kind, source), self._seq(of_kind, target)
                if None in ends or {kind, of_kind} - set(MEMORIES):
                    raise ValueError(f"no two memories to link: {source} and {target}")
                names.append(name or self._new())
                db.execute(
                    "INSERT INTO link (id, source, target, type, opposite, timestamp, metadata,"
                    " created_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                    [
                        names[-1], *ends, label, opposite or OPPOSITES.get(label, label), at,
                        as_json(about), self._time(),
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
    ) -> list[str]:
        """See the package."""
        names = [relation_ids] if isinstance(relation_ids, str) else relation_ids
        columns = {
            "type": relation_types, "opposite": opposite_relation_types, "timestamp": timestamps,
            "metadata": metadata,
        }  # fmt: skip
        with self._transaction() as db:
            for column, given in columns.items():
                if given is not UNSET:
                    for name, value in zip(names, spread(given, len(names)), strict=True):
                        value = as_json(value) if column == "metadata" else value
                        db.execute(f"UPDATE link SET {column} = ? WHERE id = ?", [value, name])
        return [name for name in names if self.list_relations(relation_id=name)]

    def delete_relations(self, relation_ids: Any) -> int:
        """See the package."""
        names = [relation_ids] if isinstance(relation_ids, str) else relation_ids
        with self._transaction() as db:
            done = db.execute(f"DELETE FROM link WHERE id IN ({marks(names)})", names)
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
    ) -> list[Any]:
        """See the package."""
        where, given = condition(
            {
                "link.type": relation_type, "link.id": relation_id,
                "source.id": source_record_id, "source.kind": source_record_type,
                "target.id": target_record_id, "target.kind": target_record_type,
            }
        )  # fmt: skip
        found = [
            as_link(row)
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
