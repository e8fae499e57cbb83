"""Forgetting: what hides memories, what shows them again, and what removes them for good."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from steeltrap.adapters.helix.graph import LABELS, Row, Store, dsl, every, keyed
from steeltrap.adapters.helix.settings import Settings

__all__ = [
    "Gone",
    "everything_gone",
    "hard_delete",
    "remove",
    "restore",
    "source_gone",
    "sweep",
    "versions",
]


def sweep(store: Store, at: str, settings: Settings) -> None:
    """Hide what has expired, and what has faded: old, of low salience and rarely recalled."""
    is_ = dsl().Predicate
    shown = [is_.is_null("hiddenAt"), is_.is_null("deletedAt")]
    expired = every("Memory", is_.lte("expiresAt", at), *shown)
    old = datetime.fromisoformat(at) - timedelta(days=settings.decay_days)
    faded = every(
        "Memory", is_.is_in("kind", list(settings.decay_kinds)), is_.eq("isLatest", True),
        is_.lte("createdAt", old.isoformat(timespec="minutes")),
        is_.lt("salience", settings.decay_salience), is_.lt("accessCount", float(settings.decay_recalls)),
        *shown,
    )  # fmt: skip
    batch = dsl().write_batch().var_as("expired", _hidden(expired, at, "expiry"))
    if settings.decay_kinds:
        batch = batch.var_as("faded", _hidden(faded, at, "decay"))
    store.commit(batch.returning([]))


def _hidden(memories: Any, at: str, why: str) -> Any:
    return memories.set_property("hiddenAt", at).set_property("hiddenBy", why)


def remove(store: Store, rows: Iterable[Row], at: str) -> None:
    """Soft deletion: recall leaves them out, and it can be undone."""
    step = keyed("Memory", [row.key for row in rows]).set_property("deletedAt", at)
    store.commit(dsl().write_batch().var_as("removed", step).returning([]))


def restore(store: Store, rows: Iterable[Row]) -> None:
    """Undo soft deletion, and hiding by decay; what has expired stays hidden."""
    keys = [row.key for row in rows]
    is_ = dsl().Predicate
    back = keyed("Memory", keys).remove_property("deletedAt")
    faded = every("Memory", is_.is_in("key", keys), is_.eq("hiddenBy", "decay"))
    shown = faded.remove_property("hiddenAt").remove_property("hiddenBy")
    store.commit(dsl().write_batch().var_as("back", back).var_as("shown", shown).returning([]))


# ---------------------------------------------------------------- for good


class Gone(NamedTuple):
    """What hard deletion took along."""

    turns: set[str]
    """Those whose raw text is gone."""
    profile: bool
    """Whether a profile was built from something of it."""


def versions(
    store: Store, keys: Iterable[str], *, ways: Sequence[str] = ("out", "in_")
) -> list[str]:
    """The keys with those of all versions that UPDATES joins them to, however many there are."""
    known = list(dict.fromkeys(keys))
    news = known
    while news:
        ends = [
            row["key"]
            for way in ways
            for _, row in store.reached(keyed("Memory", news), (way, "UPDATES"))
        ]
        news = [key for key in dict.fromkeys(ends) if key not in known]
        known += news
    return known


def hard_delete(store: Store, keys: Iterable[str]) -> Gone:
    """Remove memories, all their versions, and every raw text that they were derived from.

    A source of which nothing else is left goes whole; of another one the id stays, so that what
    else was derived from it can still cite it. So do entities that something else mentions. A
    profile that was built from any of them goes.

    """
    keys = versions(store, keys)
    memories = keyed("Memory", keys)
    ends = {
        label: sorted({row["key"] for _, row in store.reached(memories, (way, edge))})
        for label, way, edge in (
            ("Source", "out", "DERIVED_FROM"), ("Entity", "out", "MENTIONS"),
            ("Category", "out", "IN_CATEGORY"), ("Profile", "in_", "BUILT_FROM"),
        )
    }  # fmt: skip
    sources = store.reached(keyed("Source", ends["Source"]), end=("key", "turn"))
    chunks = [row["key"] for _, row in store.reached(keyed("Source", ends["Source"]), ("out", "HAS_CHUNK"))]  # fmt: skip
    gone = {
        "Memory": keys, "Chunk": chunks, "Profile": ends["Profile"],
        "Source": _orphans(store, "Source", ends["Source"], "DERIVED_FROM", keys),
        "Entity": _orphans(store, "Entity", ends["Entity"], "MENTIONS", keys),
        "Category": _orphans(store, "Category", ends["Category"], "IN_CATEGORY", keys),
    }  # fmt: skip
    _drop(store, {label: keyed(label, found) for label, found in gone.items() if found})
    return Gone({row["turn"] for _, row in sources}, bool(ends["Profile"]))


def _orphans(
    store: Store, label: str, keys: Sequence[str], edge: str, without: Iterable[str]
) -> list[str]:
    """Those that no memory but the given ones leads to."""
    gone = set(without)
    held = {
        start for start, row in store.reached(keyed(label, keys), ("in_", edge)) if row["key"] not in gone
    }  # fmt: skip
    return [key for key in keys if key not in held]


def source_gone(store: Store, key: str) -> Gone:
    """Remove a source: its chunks, every memory derived from it, and what they bring along."""
    derived = [
        row["key"] for _, row in store.reached(keyed("Source", [key]), ("in_", "DERIVED_FROM"))
    ]
    gone = hard_delete(store, derived)
    chunks = keyed("Source", [key]).out("HAS_CHUNK")
    _drop(store, {"Chunk": chunks, "Source": keyed("Source", [key])})
    return gone


def everything_gone(store: Store, tenant: str) -> None:
    """Remove every record of a tenant."""
    is_ = dsl().Predicate
    _drop(store, {label: every(label, is_.eq("tenant", tenant)) for label in LABELS})


def _drop(store: Store, steps: dict[str, Any]) -> None:
    batch = dsl().write_batch()
    for name, step in steps.items():
        batch = batch.var_as(name, step.drop())
    store.commit(batch.returning([]))
