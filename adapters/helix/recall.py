"""The read path: scope, lifecycle, both searches within, expansion, fusion, assembly."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

import msgspec

from steeltrap.adapters.helix.graph import (
    FIELDS,
    Row,
    Store,
    dsl,
    every,
    keyed,
    live,
    visible,
    walk,
)
from steeltrap.adapters.helix.settings import Settings
from steeltrap.harness.memory import Item

__all__ = ["Reader", "asks_for_history", "current", "item", "within_budget"]

_MINUTES_A_DAY: Final = 24 * 60
_CHARS_A_TOKEN: Final = 4
_DIGITS: Final = 9
"""Digits of a score that count; what lies beyond is the noise of floating point."""
_HISTORY: Final = re.compile(
    r"\b(histor(?:y|ical\w*)|previous(?:ly)?|prior|before|earlier|former(?:ly)?|original(?:ly)?"
    r"|used to|was|were|had been|did|chang(?:e|ed|es)|replaced?|superseded|as of|at the time"
    r"|back (?:then|on|in)|over time|trace|timeline|one step back)\b",
    re.IGNORECASE,
)


def asks_for_history(question: str) -> bool:
    """Whether a question asks for how things were; told by its words, as the recipe leaves open how."""
    return _HISTORY.search(question) is not None


def current(tenant: str, at: str) -> Any:
    """The candidate set: what the user may see and what holds."""
    return every("Memory", *live(tenant, tenant, at))


def item(row: Row, sources: Sequence[str], *, score: float | None = None) -> Item:
    """A memory as it is served: from when it was so, where that is known, or else was written."""
    since = row.event_at or row.valid_from
    ends = [end for end in (row.valid_to, row.deleted_at, row.expires_at) if end and end >= since]
    return Item(
        row.text, id=f"memory-{row.number}", sources=tuple(sources), valid_from=since,
        valid_to=min(ends, default=None), score=score,
    )  # fmt: skip


class Reader:
    """Recall over one store.

    Args:
        store: is read and never written.
        settings: numbers.
    """

    def __init__(self, store: Store, settings: Settings) -> None:
        self._store, self._settings = store, settings

    def found(self, tenant: str, text: str, vector: Sequence[float] | None, at: str, *, limit: int) -> list[Row]:  # fmt: skip
        """Current memories by meaning, then further ones by words: so many of each."""
        found = self._store.searched(current(tenant, at), tenant=tenant, text=text, vector=vector, limit=limit)  # fmt: skip
        rows = [
            msgspec.convert(one, Row) for name in ("near", "worded") for one in found.get(name, ())
        ]
        return list({row.key: row for row in rows}.values())

    def recalled(
        self, tenant: str, text: str, vector: Sequence[float] | None, at: str
    ) -> list[tuple[Row, float]]:
        """Memories with their scores, best first."""
        settings = self._settings
        found = self._store.searched(
            current(tenant, at), tenant=tenant, text=text, vector=vector, limit=settings.depth
        )
        rows = {
            one["key"]: msgspec.convert(one, Row) for ranked in found.values() for one in ranked
        }
        scores = self._fused(found)
        hits = sorted(rows, key=lambda key: (-scores[key], rows[key].number))[
            : settings.expand_from
        ]
        gained: dict[str, float] = {}
        for row, share in self._expanded(tenant, hits, scores, at, history=asks_for_history(text)):
            rows.setdefault(row.key, row)
            gained[row.key] = max(share, gained.get(row.key, 0.0))
        total = {key: scores.get(key, 0.0) + gained.get(key, 0.0) for key in rows}
        adjusted = [
            (row, round(total[key] * self._factor(row, at), _DIGITS)) for key, row in rows.items()
        ]
        return sorted(adjusted, key=lambda pair: (-pair[1], pair[0].number))

    def _expanded(
        self,
        tenant: str,
        hits: Sequence[str],
        scores: Mapping[str, float],
        at: str,
        *,
        history: bool,
    ) -> Iterable[tuple[Row, float]]:
        """What edges of the hits lead to, under the same filters, with its share of their scores."""
        settings, start, keep = self._settings, keyed("Memory", hits), live(tenant, tenant, at)
        shares = {
            "extends": settings.extends_weight, "extended": settings.extends_weight,
            "beside": settings.mentions_weight,
        }  # fmt: skip
        found = self._store.followed(
            extends=walk(start, ("out", "EXTENDS"), keep=keep, end=FIELDS),
            extended=walk(start, ("in_", "EXTENDS"), keep=keep, end=FIELDS),
            beside=walk(start, ("out", "MENTIONS"), ("in_", "MENTIONS"), keep=keep, end=FIELDS),
        )
        for name, pairs in found.items():
            for key, row in pairs:
                if row["key"] != key:
                    yield msgspec.convert(row, Row), shares[name] * scores[key]
        if history:
            yield from self._earlier(tenant, {key: scores[key] for key in hits})

    def _earlier(self, tenant: str, scores: dict[str, float]) -> Iterable[tuple[Row, float]]:
        """What memories replaced, one edge back after another, within the bound."""
        level, keep = list(scores), _was(tenant)
        for _ in range(self._settings.versions):
            back = walk(keyed("Memory", level), ("out", "UPDATES"), keep=keep, end=FIELDS)
            older = self._store.followed(older=back)["older"] if level else []
            for key, row in older:
                scores[row["key"]] = self._settings.updates_weight * scores[key]
                yield msgspec.convert(row, Row), scores[row["key"]]
            level = [row["key"] for _, row in older]

    def _factor(self, row: Row, at: str) -> float:
        """How salience and recency raise a score."""
        settings = self._settings
        age = datetime.fromisoformat(at) - datetime.fromisoformat(row.valid_from)
        days = max(0.0, age.total_seconds() / 60 / _MINUTES_A_DAY)
        recent: float = 0.5 ** (days / settings.half_life_days)
        return 1 + settings.salience_weight * row.salience + settings.recency_weight * recent

    # ------------------------------------------------------------ what belongs to memories

    def sources(self, keys: Iterable[str]) -> dict[str, list[str]]:
        """The turns that memories were derived from, oldest first."""
        found: dict[str, list[tuple[str, str, str]]] = {}
        start = keyed("Memory", keys)
        for key, row in self._store.reached(
            start, ("out", "DERIVED_FROM"), end=("turn", "at", "$id")
        ):
            found.setdefault(key, []).append((row["at"], f"{row['$id']:012}", row["turn"]))
        return {key: [turn for *_, turn in sorted(turns)] for key, turns in found.items()}

    def supporting(
        self,
        tenant: str,
        keys: Iterable[str],
        text: str,
        vector: Sequence[float] | None,
        limit: int,
    ) -> list[Item]:
        """Pieces of the raw text that memories came from, those that fit the question best first."""
        keep = dsl().Predicate.and_(visible(tenant, tenant))
        within = keyed("Memory", keys).out("DERIVED_FROM").out("HAS_CHUNK").where(keep).dedup()
        found = self._store.searched(
            within, tenant=tenant, text=text, vector=vector, limit=limit, label="Chunk"
        )
        chunks = {one["key"]: one for ranked in found.values() for one in ranked}
        best = sorted(self._fused(found).items(), key=lambda pair: (-pair[1], pair[0]))[:limit]
        return [_raw(chunks[key]) for key, _ in best]

    def reachable(self, tenant: str, at: str) -> list[Item]:
        """Every piece that a current memory was derived from, oldest first."""
        walk = current(tenant, at).out("DERIVED_FROM").out("HAS_CHUNK").dedup()
        rows = self._store.read(chunks=walk.value_map(["turn", "at", "number", "text"]))["chunks"]
        return [
            _raw(row)
            for row in sorted(rows, key=lambda row: (row["at"], row["turn"], row["number"]))
        ]

    def _fused(self, found: Mapping[str, Sequence[Mapping[str, Any]]]) -> dict[str, float]:
        """Reciprocal rank fusion of rankings, by keys."""
        scores: dict[str, float] = {}
        for ranked in found.values():
            for rank, one in enumerate(ranked, 1):
                scores[one["key"]] = scores.get(one["key"], 0.0) + 1 / (
                    self._settings.rank_constant + rank
                )
        return scores


def within_budget(found: Iterable[Item], limit: int, budget_tokens: int) -> list[Item]:
    """The first items that fit; the first of all always does."""
    served: list[Item] = []
    for one in found:
        budget_tokens -= max(1, len(one.text) // _CHARS_A_TOKEN)
        if len(served) == limit or (served and budget_tokens < 0):
            break
        served.append(one)
    return served


def _raw(chunk: Mapping[str, Any]) -> Item:
    turn = chunk["turn"]
    return Item(
        chunk["text"], id=f"chunk-{turn}-{chunk['number']}", sources=(turn,), valid_from=chunk["at"]
    )


def _was(tenant: str) -> list[Any]:
    """What a user may see of the past: nothing that was removed or has faded."""
    is_ = dsl().Predicate
    return [*visible(tenant, tenant), is_.is_null("deletedAt"), is_.is_null("hiddenAt")]
