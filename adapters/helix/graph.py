"""The memory store: HelixDB in this process, its labels, indexes and searches.

Everything that comes from outside (names, texts, questions) goes in as a value of the query tree and
never as part of a query's text, so no name can change what a query does.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import msgspec

from steeltrap.harness.memory import MemoryFault

__all__ = [
    "FIELDS",
    "LABELS",
    "Row",
    "Store",
    "dsl",
    "entity_key",
    "every",
    "keyed",
    "live",
    "named",
    "visible",
    "walk",
]

LABELS: Final = ("User", "Memory", "Source", "Chunk", "Profile", "Entity", "Category")
_DATABASE: Final = "memories"
_PASSING: Final = ("transaction conflict", "unsupported cascades plan")
"""Refusals that pass: a write that collided with the engine's upkeep of its indexes is rolled back,
and a planner that is short of time finds no plan."""
_TRIES: Final = 30
_WAIT_S: Final = 0.002
"""Before the second try; doubled up to a quarter of a second."""
_START: Final = "start.key"
_INDEX_S: Final = 60.0
"""An index that is not built by then will not be."""


class Row(msgspec.Struct, rename="camel"):
    """One memory, without its embedding. Times are the script's, ISO 8601 to the minute."""

    key: str
    number: int
    """Of its tenant, by age."""
    text: str
    kind: str
    confidence: float
    salience: float
    access_count: float
    created_at: str
    is_latest: bool
    valid_from: str
    valid_to: str | None = None
    expires_at: str | None = None
    deleted_at: str | None = None
    hidden_at: str | None = None
    hidden_by: str | None = None
    """expiry or decay."""
    event_at: str | None = None
    """When it was so in the world; `valid_from` is when it became current in the store."""
    score: float | None = None
    distance: float | None = None


FIELDS: Final = tuple(
    name for name in Row.__struct_encode_fields__ if name not in ("score", "distance")
)
_SHOWN: Final = {"Memory": FIELDS, "Chunk": ("key", "number", "turn", "at", "text")}
"""What a search gives of each; embeddings never leave the store."""


@cache
def dsl() -> Any:
    """The package's query language."""
    return import_module("helixdb")


def named(*parts: str) -> str:
    """A name made of parts of any form: different parts never give the same name."""
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:32]


def entity_key(tenant: str, name: str) -> str:
    """The key of an entity; case and white space do not tell entities apart."""
    return named("entity", tenant, " ".join(name.casefold().split()))


# ---------------------------------------------------------------- which records are meant


def every(label: str, *conditions: Any) -> Any:
    """The nodes of a label for which all conditions hold."""
    return dsl().g().n_with_label_where(label, dsl().Predicate.and_(list(conditions)))


def keyed(label: str, keys: Iterable[str]) -> Any:
    """The nodes of a label with these keys."""
    return every(label, dsl().Predicate.is_in("key", list(keys)))


def visible(tenant: str, user: str) -> list[Any]:
    """What a user may see: their own records of the tenant, and those marked as shared."""
    is_ = dsl().Predicate
    return [is_.eq("tenant", tenant), is_.or_([is_.eq("user", user), is_.eq("scope", "shared")])]


def live(tenant: str, user: str, at: str) -> list[Any]:
    """What is visible and current."""
    is_ = dsl().Predicate
    return [
        *visible(tenant, user),
        is_.eq("isLatest", True),
        *(is_.is_null(name) for name in ("validTo", "deletedAt", "hiddenAt")),
        is_.or_([is_.is_null("expiresAt"), is_.gt("expiresAt", at)]),
    ]


class Store:
    """One database, of all tenants.

    Args:
        folder: where it is; None keeps it in memory. What is there already is opened as it is.
        dimension: of the embeddings.
    """

    def __init__(self, folder: Path | None, dimension: int) -> None:
        h = dsl()
        self.commits = 0
        """Batches that were written; what was read before the last one may be out of date."""
        where = h.InMemory(_DATABASE) if folder is None else h.Disk(str(folder), _DATABASE)
        self._client = h.Client.embedded(where)
        self._index(dimension)

    def _index(self, dimension: int) -> None:
        """Make the indexes and wait until they answer."""
        h = dsl()
        spec = h.IndexSpec
        wanted = [spec.node_unique_equality(label, "key") for label in LABELS]
        same = ("tenant", "user", "contentHash", "isLatest")
        wanted += [spec.node_equality("Memory", name) for name in same]
        wanted += [spec.node_range("Memory", name) for name in ("expiresAt", "createdAt")]
        cosine = h.VectorDistanceMetric.COSINE
        for label in ("Memory", "Chunk"):
            wanted.append(spec.node_vector(label, "embedding", dimension, cosine, "tenant"))
            wanted.append(spec.node_text(label, "text", "tenant"))
        made = [h.g().create_index_if_not_exists(one) for one in wanted]
        receipts = [
            self.commit(h.write_batch().var_as("made", one).returning(["made"])) for one in made
        ]
        for receipt in receipts:
            if operation := receipt["made"].get("operation_id"):
                self._await(operation)

    def _await(self, operation: str) -> None:
        end = time.monotonic() + _INDEX_S
        while time.monotonic() < end:
            state = self.read(state=dsl().g().get_index_operation(operation))["state"]["status"]
            if state == "succeeded":
                return
            time.sleep(_WAIT_S)
        raise RuntimeError(f"helix-recipe: an index was not built within {_INDEX_S:g} s ({state})")

    def close(self) -> None:
        """Release the database; its files stay."""
        self._client.close()

    # ------------------------------------------------------------ requests

    def commit(self, batch: Any, **vectors: Sequence[float]) -> dict[str, Any]:
        """Write a batch, all of it or nothing.

        Args:
            batch: as the package builds it, with what it returns.
            vectors: its parameters.

        Raises:
            MemoryFault: nothing was written.
            HelixError: it is not known.
        """
        reply = self._asked(_request(batch, vectors))
        self.commits += 1
        return reply

    def read(self, vector: Sequence[float] | None = None, /, **traversals: Any) -> dict[str, Any]:
        """Read at one moment.

        Args:
            vector: the parameter `vector` of the traversals, where they have it.
            traversals: each with a terminal step, by the names of their results.
        """
        batch = dsl().read_batch()
        for name, traversal in traversals.items():
            batch = batch.var_as(name, traversal)
        vectors = {} if vector is None else {"vector": vector}
        return self._asked(_request(batch.returning(list(traversals)), vectors))

    def _asked(self, request: Any) -> dict[str, Any]:
        """Have the engine do it; again where it refused for a reason that passes.

        A refused request did nothing. Of a storage error nobody knows, and it is raised as it is.
        """
        wait_s = _WAIT_S
        for _ in range(_TRIES):
            try:
                reply: dict[str, Any] = self._client.query(request)
            except dsl().HelixError as error:
                said = str(error)
                if not any(words in said for words in _PASSING):
                    if "Storage error" in said:
                        raise
                    raise MemoryFault(f"helix-recipe: {said}") from error
                time.sleep(wait_s)
                wait_s = min(0.25, 2 * wait_s)
            else:
                return reply
        raise MemoryFault(f"helix-recipe: refused {_TRIES} times: {said}")

    def rows(self, **traversals: Any) -> dict[str, list[Row]]:
        """Memories, each list by number."""
        found = self.read(**{name: one.value_map(FIELDS) for name, one in traversals.items()})
        return {
            name: sorted(msgspec.convert(rows, list[Row]), key=lambda row: row.number)
            for name, rows in found.items()
        }

    def searched(
        self,
        within: Any,
        *,
        tenant: str,
        text: str,
        vector: Sequence[float] | None,
        limit: int,
        label: str = "Memory",
    ) -> dict[str, list[dict[str, Any]]]:
        """Both searches among given records alone: `near` by meaning and `worded` by words.

        Equal ones stand by age, whatever the engine's order is.
        """
        asked = {}
        if vector is not None:
            given = dsl().Expr.param("vector")
            asked["near"] = within.vector_search_with(label, "embedding", given, limit, tenant)
        if text.strip():
            asked["worded"] = within.text_search(label, "text", text, limit, tenant)
        if not asked:
            return {}
        names = (*_SHOWN[label], "$score", "$distance")
        shown = [dsl().PropertyProjection.renamed(name, name.lstrip("$")) for name in names]
        found = self.read(vector, **{name: one.project(shown) for name, one in asked.items()})
        return {name: sorted(rows, key=_best_first) for name, rows in found.items()}

    def followed(self, **walks: Any) -> dict[str, list[tuple[str, dict[str, Any]]]]:
        """What each walk leads to, with the key of where it began; see `walk`."""
        followed = {}
        for name, found in self.read(**walks).items():
            rows = sorted(found, key=lambda row: json.dumps(row, sort_keys=True))
            followed[name] = [(row.pop(_START), row) for row in rows]
        return followed

    def reached(
        self, start: Any, *steps: tuple[str, str], end: Sequence[str] = ("key",)
    ) -> list[tuple[str, dict[str, Any]]]:
        """The same of one walk."""
        return self.followed(found=walk(start, *steps, end=end))["found"]


def walk(
    start: Any, *steps: tuple[str, str], keep: Sequence[Any] = (), end: Sequence[str] = ("key",)
) -> Any:
    """A traversal that knows where it began.

    Args:
        start: nodes.
        steps: `out` or `in_`, and the label of the edge.
        keep: conditions on the end.
        end: properties of it that are wanted.
    """
    h = dsl()
    way = start.bind("start")
    for direction, label in steps:
        way = getattr(way, direction)(label)
    if keep:
        way = way.where(h.Predicate.and_(list(keep)))
    shown = [h.BindingProjection.binding("start", "key", _START)]
    shown += [h.BindingProjection.binding("end", name, name) for name in end]
    return way.bind("end").project_distinct_bindings(shown)


def _request(batch: Any, vectors: Mapping[str, Sequence[float]]) -> Any:
    """A request with its vectors beside the query, where they cost much less than within it."""
    request, kind = batch.to_query_request(), dsl().QueryParamType
    for name, vector in vectors.items():
        request.insert_typed_parameter(name, kind.array(kind.f32()), list(vector))
    return request


def _best_first(row: Mapping[str, Any]) -> tuple[float, int]:
    """Digits beyond the ninth are the noise of floating point."""
    score = row.get("score")
    value = -score if score is not None else row.get("distance") or 0.0
    return round(value, 9), row["number"]
