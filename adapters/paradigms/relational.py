"""Relational: normalised tables with constraints, values updated in place.

What was is not kept: one row holds the present of a field. A table of audits beside it would be
the history table of `temporal`, which is a paradigm of its own.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from steeltrap.adapters.paradigms.base import Held, Write
from steeltrap.adapters.paradigms.spelled import day_in, number_in, with_day, with_number
from steeltrap.adapters.paradigms.sqlite import SqliteParadigm
from steeltrap.reference_system.rules import Rule
from steeltrap.reference_system.statements import Place

__all__ = ["Relational"]

_PUT: Final = """
INSERT INTO fact (field, value, said_by, valid_from, until, importance, written_at)
VALUES (:field, :value, :said_by, :valid_from, :until, :importance, :at)
ON CONFLICT (field) DO UPDATE SET
    value = excluded.value, said_by = excluded.said_by, until = excluded.until, follows = NULL,
    valid_from = iif(:corrects, valid_from, excluded.valid_from),
    importance = iif(excluded.importance = 'normal', importance, excluded.importance),
    written_at = excluded.written_at
"""
_AGAIN: Final = """
UPDATE fact SET said_by = :said_by, until = coalesce(:until, until), written_at = :at,
    importance = iif(:importance = 'normal', importance, :importance)
WHERE field = :field
"""
_HELD: Final = """
SELECT title, name, value, said_by, valid_from, until, {review},
    (SELECT json_group_array(turn) FROM
        (SELECT turn FROM citation WHERE citation.field = fact.field ORDER BY rowid))
FROM fact JOIN field ON field.id = fact.field JOIN topic ON topic.id = field.topic
WHERE (until IS NULL OR until > ?) {where} ORDER BY fact.field
"""


class Relational(SqliteParadigm):
    """The present in tables.

    Args:
        active_rules: what follows from a change is worked out by triggers over the table of rules,
            as in an active database (section 2.2 of the paper). Without, a rule `same` is a foreign
            key with ON UPDATE CASCADE, and any other rule is a row that nothing acts on.
        ttl_days: a fact that was not written for so long is deleted by `maintain`; None: never.
        settings: as for `Paradigm`.

    Raises:
        ValueError: `ttl_days` is not positive.
    """

    name = "relational"

    def __init__(
        self, *, active_rules: bool = False, ttl_days: float | None = None, **settings: Any
    ) -> None:
        super().__init__(**settings)
        if ttl_days is not None and ttl_days <= 0:
            raise ValueError(f"relational: a time to live of {ttl_days} days keeps nothing")
        self._active = active_rules
        self._ttl_days = ttl_days
        self.scripts = ("catalogue", "active" if active_rules else "relational", "words")
        review = "fact.field IN (SELECT field FROM review)" if active_rules else "FALSE"
        self._held = _HELD.replace("{review}", review)

    def connect_to(self, file: str) -> sqlite3.Connection:
        """A connection, with what the triggers need."""
        db = super().connect_to(file)
        db.execute("PRAGMA recursive_triggers = ON")
        for function in (day_in, number_in):
            db.create_function(function.__name__, 1, function, deterministic=True)
        for respell in (with_day, with_number):
            db.create_function(respell.__name__, 2, respell, deterministic=True)
        return db

    # ------------------------------------------------------------ writing

    def put(self, write: Write) -> None:
        """Update the field's row, or insert it; news about an earlier time has no place."""
        place = Place(write.topic, write.field)
        held = self.current(write.tenant, place, write.at)
        late = held and held.valid_from and held.valid_from > write.valid_from
        if late and not write.corrects:
            return
        field = self.field_of(write.tenant, place, write.about)
        again = write.repeats and not (held and held.review)
        importance = next((tag for tag in write.tags if tag in ("vital", "trivial")), "normal")
        self._cite(write.tenant, field, write.turn, anew=not again)
        self._begin(write.tenant)
        self.write(
            write.tenant, _AGAIN if again else _PUT, field=field, value=write.value,
            said_by=write.said_by, valid_from=write.valid_from, until=write.until,
            importance=importance, at=write.at, corrects=write.corrects,
        )  # fmt: skip

    def withdraw(self, tenant: str, place: Place, turn: str, at: str) -> None:  # noqa: ARG002
        """Delete the field's row; what refers to it goes with it, or is marked by the rules."""
        self._begin(tenant)
        field = self.field_of(tenant, place)
        self.write(tenant, "DELETE FROM citation WHERE field = ?", field)
        self.write(tenant, "DELETE FROM fact WHERE field = ?", field)

    def depend(self, tenant: str, source: Place, target: Place, rule: Rule | None, turn: str, at: str) -> None:  # fmt: skip
        """A row; without active rules the target of a rule `same` refers to its source's value."""
        super().depend(tenant, source, target, rule, turn, at)
        if rule is not None and rule.kind == "same" and not self._active:
            self.write(
                tenant, "UPDATE fact SET follows = source.field, value = source.value FROM"
                " (SELECT field, value FROM fact WHERE field = ?) AS source WHERE fact.field = ?",
                self.field_of(tenant, source), self.field_of(tenant, target),
            )  # fmt: skip

    def _cite(self, tenant: str, field: int, turn: str, *, anew: bool) -> None:
        """A turn is where a value comes from: `anew` in place of those before, or else beside them."""
        if anew:
            self.write(tenant, "DELETE FROM citation WHERE field = ?", field)
        self.write(tenant, "INSERT OR IGNORE INTO citation VALUES (?, ?)", field, turn)

    def _begin(self, tenant: str) -> None:
        """An update begins: it has come to no field yet."""
        if self._active:
            self.write(tenant, "DELETE FROM reached")

    def forget(self, tenant: str, field: int) -> None:
        """A field that is erased takes nothing along that referred to it."""
        super().forget(tenant, field)
        self.write(tenant, "UPDATE fact SET follows = NULL WHERE follows = ?", field)

    def maintain(self, at: str) -> None:
        """Delete what was not written for the time to live."""
        self.passed(at)
        if self._ttl_days is None:
            return
        ago = datetime.fromisoformat(self.now) - timedelta(days=self._ttl_days)
        old = "(SELECT field FROM fact WHERE written_at < ?)"
        with self.transaction():
            for tenant in self._tenants:
                self._begin(tenant)
                for sql in (
                    f"UPDATE fact SET follows = NULL WHERE follows IN {old}",
                    f"DELETE FROM citation WHERE field IN {old}",
                    f"DELETE FROM fact WHERE field IN {old}",
                ):
                    self.write(tenant, sql, ago.isoformat(timespec="minutes"))

    # ------------------------------------------------------------ reading

    def current(self, tenant: str, place: Place, at: str) -> Held | None:
        """The field's row, unless its time is up."""
        found = self._select(tenant, "AND title = ? AND name = ?", at, place.topic, place.field)
        return found[0] if found else None

    def listing(self, tenant: str, at: str) -> Sequence[Held]:
        """Every row whose time is not up."""
        return self._select(tenant, "", at)

    def _select(self, tenant: str, where: str, *values: str) -> list[Held]:
        return [
            Held(
                topic, field, value, said_by, tuple(json.loads(turns)), valid_from, until,
                bool(review),
            )
            for topic, field, value, said_by, valid_from, until, review, turns in self.rows(
                tenant, self._held.replace("{where}", where), *values
            )
        ]  # fmt: skip
