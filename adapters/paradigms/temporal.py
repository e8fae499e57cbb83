"""Temporal: tables with a valid and a system period, read as of any time.

A new value ends the valid period of the one before and deletes nothing; late news takes its portion
of the past; what was never true leaves the table and stays in the history that the database keeps
of itself. Rules between fields are rows that nothing acts on: periods say when a row held, and not
what follows from it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from steeltrap.adapters.crowd import alone
from steeltrap.adapters.paradigms.base import Held, Write, item, moment
from steeltrap.adapters.paradigms.sqlite import SqliteParadigm
from steeltrap.harness.memory import Item, Subject
from steeltrap.reference_system.statements import Place, Question

__all__ = ["Temporal"]

_SELECT: Final = """
SELECT title, name, value, said_by, valid_from, {valid_to},
    (SELECT json_group_array(turn) FROM
        (SELECT turn FROM citation WHERE citation.fact = version.id ORDER BY rowid))
FROM {rows} AS version
JOIN field ON field.id = version.field JOIN topic ON topic.id = field.topic
WHERE {where} ORDER BY {order}
"""
_PLACE: Final = "title = :topic AND name = :name"
_THEN: Final = "valid_from <= :at AND (valid_to IS NULL OR valid_to > :at)"
_AS_OF_SYSTEM: Final = (
    "(SELECT * FROM fact_ever WHERE sys_from <= :by AND (sys_to IS NULL OR sys_to > :by))"
)
_LATEST_OF_EACH: Final = """(SELECT * FROM (SELECT *, row_number()
    OVER (PARTITION BY id ORDER BY sys_to IS NULL DESC, sys_to DESC, sys_from DESC) AS latest
    FROM fact_ever) WHERE latest = 1)"""


class Temporal(SqliteParadigm):
    """Versions in tables.

    Args:
        retention_days: `maintain` deletes versions that ended so long ago; None: never.
        settings: as for `Paradigm`.

    Raises:
        ValueError: `retention_days` is not positive.
    """

    name = "temporal"
    scripts = ("catalogue", "temporal")

    def __init__(self, *, retention_days: float | None = None, **settings: Any) -> None:
        super().__init__(**settings)
        if retention_days is not None and retention_days <= 0:
            raise ValueError(f"temporal: a window of {retention_days} days keeps no history")
        self._retention_days = retention_days

    # ------------------------------------------------------------ writing

    def put(self, write: Write) -> None:
        """Give a value its valid period; what held then holds until there."""
        tenant, place = write.tenant, Place(write.topic, write.field)
        field = self.field_of(tenant, place, write.about)
        self._clock(tenant, write.at)
        importance = next((tag for tag in write.tags if tag in ("vital", "trivial")), "normal")
        row = self._row(tenant, field, write.at)
        if row and write.repeats:
            self._again(write, row[0], importance)
            return
        begin, end = write.valid_from, write.until
        if row and write.corrects:
            begin = row[1]
            self.write(tenant, "DELETE FROM fact WHERE id = ?", row[0])
        elif covered := self._row(tenant, field, begin):
            if begin < write.at:
                end = _first(end, covered[2])
            self.write(tenant, "UPDATE fact SET valid_to = ? WHERE id = ?", begin, covered[0])
        for (later,) in self.rows(tenant, "SELECT min(valid_from) FROM fact WHERE field = ? AND valid_from > ?", field, begin):  # fmt: skip
            end = _first(end, later)
        self.write(
            tenant,
            "INSERT INTO fact (field, value, said_by, importance, valid_from, valid_to, sys_from)"
            " VALUES (?, ?, ?, ?, ?, ?, ?)",
            field, write.value, write.said_by, importance, begin, end, write.at,
        )  # fmt: skip
        self._cite(tenant, "last_insert_rowid()", field, write.turn)

    def _again(self, write: Write, row: int, importance: str) -> None:
        """The value that holds, said again: another source, and perhaps an end."""
        self.write(
            write.tenant, "UPDATE fact SET said_by = :said_by, valid_to = coalesce(:until, valid_to),"
            " importance = iif(:importance = 'normal', importance, :importance) WHERE id = :row",
            said_by=write.said_by, until=write.until, importance=importance, row=row,
        )  # fmt: skip
        field = self.field_of(write.tenant, Place(write.topic, write.field))
        self._cite(write.tenant, str(row), field, write.turn)

    def withdraw(self, tenant: str, place: Place, turn: str, at: str) -> None:  # noqa: ARG002
        """End the valid period; what was to hold later will not."""
        self._clock(tenant, at)
        field = self.field_of(tenant, place)
        if row := self._row(tenant, field, at):
            self.write(tenant, "UPDATE fact SET valid_to = ? WHERE id = ?", at, row[0])
        self.write(tenant, "DELETE FROM fact WHERE field = ? AND valid_from > ?", field, at)

    def forget(self, tenant: str, field: int) -> None:
        """Erasure is the one deletion that leaves no version: the last ones go to the history, and
        that goes with the field.
        """
        super().forget(tenant, field)
        self.write(tenant, "DELETE FROM words WHERE rowid = ?", field)
        self.write(tenant, "DELETE FROM fact WHERE field = ?", field)

    def maintain(self, at: str) -> None:
        """Delete versions that ended before the retention window."""
        self.passed(at)
        if self._retention_days is None:
            return
        ago = datetime.fromisoformat(self.now) - timedelta(days=self._retention_days)
        with self.transaction():
            for tenant in self._tenants:
                self._clock(tenant, self.now)
                for sql in (
                    "DELETE FROM fact WHERE valid_to < ?",
                    "DELETE FROM fact_history WHERE min(sys_to, coalesce(valid_to, sys_to)) < ?",
                ):
                    self.write(tenant, sql, ago.isoformat(timespec="minutes"))
                self.write(tenant, "DELETE FROM citation WHERE fact NOT IN (SELECT id FROM fact_ever)")  # fmt: skip

    def _clock(self, tenant: str, at: str) -> None:
        self.write(tenant, "UPDATE clock SET at = max(at, ?)", at)

    def _row(self, tenant: str, field: int, at: str) -> tuple[int, str, str | None] | None:
        """Id and valid period of the row that holds at an instant."""
        sql = f"SELECT id, valid_from, valid_to FROM fact WHERE field = :field AND {_THEN} ORDER BY valid_from DESC, id DESC"  # fmt: skip
        found = self.rows(tenant, sql, field=field, at=at)
        return found[0] if found else None

    def _cite(self, tenant: str, fact: str, field: int, turn: str) -> None:
        self.write(tenant, f"INSERT OR IGNORE INTO citation VALUES ({fact}, ?, ?)", field, turn)

    # ------------------------------------------------------------ reading

    def current(self, tenant: str, place: Place, at: str) -> Held | None:
        """FOR VALID_TIME AS OF now."""
        found = self._versions(tenant, f"{_PLACE} AND {_THEN}", place, at)
        return found[-1] if found else None

    def listing(self, tenant: str, at: str) -> Sequence[Held]:
        """The same of every field."""
        return self._versions(tenant, _THEN, Place("", ""), at, order="version.field")

    def past(self, tenant: str, place: Place, question: Question, at: str) -> Sequence[Held]:
        """As of an instant, or what held before, the latest first, and then what holds.

        With `recorded_by` the table is read as of that system time.
        """
        by = moment(question.recorded_by) if question.recorded_by else ""
        rows = _AS_OF_SYSTEM if by else "fact"
        if question.as_of:
            then = moment(question.as_of)
            return self._versions(tenant, f"{_PLACE} AND {_THEN}", place, then, by=by, rows=rows)[-1:]  # fmt: skip
        began = self._versions(tenant, f"{_PLACE} AND valid_from <= :at", place, at, by=by, rows=rows)  # fmt: skip
        ended = [held for held in began if held.valid_to and held.valid_to <= at]
        return [*reversed(ended), *(held for held in began if held not in ended)]

    @alone
    def history(self, subject: Subject) -> Sequence[Item]:
        """FOR SYSTEM_TIME ALL: every version, oldest first, also what was never true."""
        self._opened()
        place = self.place(subject.tenant, Place(subject.topic, subject.field))
        found = self._versions(
            subject.tenant, _PLACE, place, self.now, rows=_LATEST_OF_EACH,
            valid_to="CASE WHEN sys_to IS NULL THEN valid_to"
            " ELSE max(valid_from, min(sys_to, coalesce(valid_to, sys_to))) END",
        )  # fmt: skip
        return [item(held) for held in found]

    def _versions(
        self, tenant: str, where: str, place: Place, at: str, *, by: str = "", rows: str = "fact",
        valid_to: str = "valid_to", order: str = "valid_from, version.id",
    ) -> list[Held]:  # fmt: skip
        sql = _SELECT.format(where=where, rows=rows, valid_to=valid_to, order=order)
        found = self.rows(tenant, sql, topic=place.topic, name=place.field, at=at, by=by)
        return [
            Held(topic, field, value, said_by, tuple(json.loads(turns)), begin, end)
            for topic, field, value, said_by, begin, end, turns in found
        ]


def _first(one: str | None, other: str | None) -> str | None:
    """The earlier of two ends, either of which may be open."""
    return min(filter(None, (one, other)), default=None)
