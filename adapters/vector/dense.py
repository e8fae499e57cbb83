"""One tenant's turns by their vectors: a Qdrant collection."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from steeltrap.adapters.embedders.base import Vectors
from steeltrap.adapters.vector.ranking import Ranking, ranked

if TYPE_CHECKING:
    from qdrant_client.local.qdrant_local import QdrantLocal

__all__ = ["Dense"]

_SPARE: Final = 16
_NEAR: Final = 1e-5


class Dense:
    """Exact cosine search in a collection of Qdrant's local mode.

    Qdrant leaves the order of ties open and its scores differ in the last bit with a vector's
    place in the matrix. So a few more than asked for are fetched, up to a clear gap in the
    scores, and their scores computed again one by one.

    Args:
        client: open, on a folder.
        name: the collection, which is made here.
        dimension: length of the vectors.
    """

    def __init__(self, client: QdrantLocal, name: str, dimension: int) -> None:
        from qdrant_client import models

        self._client = client
        self._name = name
        # the vectors have length 1, so that their product is the cosine
        params = models.VectorParams(size=dimension, distance=models.Distance.DOT)
        client.create_collection(name, vectors_config=params)
        # a run that is cut short begins anew: no turn need wait until it is safely on disk
        storage = client.collections[name].storage
        assert storage is not None
        storage.storage.execute("PRAGMA synchronous=OFF")
        self._point: dict[int, int] = {}
        self._number: dict[int, int] = {}
        self._free: list[int] = []

    def add(self, number: int, vector: Vectors, payload: dict[str, Any]) -> None:
        """Take in a turn."""
        from qdrant_client import models

        # local mode never gives back the place of a deleted point, only of an overwritten one
        point = self._free.pop() if self._free else len(self._point)
        stored = models.PointStruct(id=point, vector=vector.tolist(), payload=payload)
        self._client.upsert(self._name, [stored])
        self._point[number], self._number[point] = point, number

    def remove(self, number: int) -> None:
        """Take a turn out."""
        point = self._point.pop(number)
        self._client.delete(self._name, [point])
        self._free.append(point)

    def drop(self) -> None:
        """Delete the collection with its files."""
        self._client.delete_collection(self._name)

    def search(self, vector: Vectors, limit: int) -> Ranking:
        """The turns whose vectors are nearest."""
        found = self._nearest(vector, min(limit, len(self._point)))
        if not found:
            return []
        rows = np.array([point.vector for point in found], dtype=np.float64)
        scores = (rows * vector.astype(np.float64)).sum(axis=1)
        numbers = [self._number[int(point.id)] for point in found]
        return ranked(numbers, scores, limit)

    def _nearest(self, vector: Vectors, limit: int) -> list[Any]:
        """At least `limit` points, and all others whose scores are too near to leave out."""
        count = limit + _SPARE
        while limit > 0:
            found: list[Any] = self._client.query_points(
                self._name, query=vector.tolist(), limit=count, with_payload=False,
                with_vectors=True,
            ).points  # fmt: skip
            if len(found) < count or found[limit - 1].score - found[-1].score > _NEAR:
                return found
            count *= 2
        return []
