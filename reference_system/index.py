"""Finding by meaning and by words: which topics and notes a text is about."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

__all__ = ["Vectors", "grams"]

Vector = NDArray[np.float32]


class Vectors:
    """Unit vectors by id, one matrix a tenant: one product finds the nearest."""

    def __init__(self) -> None:
        self._rows: dict[str, dict[str, int]] = {}
        self._ids: dict[str, list[str]] = {}
        self._matrix: dict[str, Vector] = {}

    def fork(self) -> Vectors:
        """A copy."""
        twin = Vectors()
        twin._rows = {tenant: dict(rows) for tenant, rows in self._rows.items()}
        twin._ids = {tenant: list(ids) for tenant, ids in self._ids.items()}
        twin._matrix = {tenant: matrix.copy() for tenant, matrix in self._matrix.items()}
        return twin

    def put(self, tenant: str, name: str, vector: Vector) -> None:
        """Add or replace a vector."""
        rows = self._rows.setdefault(tenant, {})
        ids = self._ids.setdefault(tenant, [])
        row = rows.get(name)
        if row is None:
            row = rows[name] = len(ids)
            ids.append(name)
        matrix = self._matrix.get(tenant)
        if matrix is None or row >= len(matrix):
            grown = np.zeros((max(16, 2 * row), len(vector)), dtype=np.float32)
            if matrix is not None:
                grown[: len(matrix)] = matrix
            matrix = self._matrix[tenant] = grown
        matrix[row] = vector

    def drop(self, tenant: str, name: str) -> None:
        """Remove a vector; the last one takes its place."""
        rows, ids = self._rows.get(tenant, {}), self._ids.get(tenant, [])
        row = rows.pop(name, None)
        if row is None:
            return
        last = ids.pop()
        matrix = self._matrix[tenant]
        if last != name:
            matrix[row] = matrix[len(ids)]
            ids[row] = last
            rows[last] = row
        matrix[len(ids)] = 0
        if not ids:
            del self._rows[tenant], self._ids[tenant], self._matrix[tenant]

    def nearest(self, tenant: str, vector: Vector, limit: int) -> list[tuple[str, float]]:
        """The nearest ids with their cosines, best first; equal ones in order of arrival."""
        ids = self._ids.get(tenant)
        if not ids:
            return []
        cosines = self._matrix[tenant][: len(ids)] @ vector
        few = limit < len(ids)
        top = np.argpartition(-cosines, limit)[:limit] if few else np.arange(len(ids))
        order = sorted(top.tolist(), key=lambda row: (-float(cosines[row]), row))
        return [(ids[row], float(cosines[row])) for row in order]


def grams(text: str, longest: int = 8) -> Iterator[str]:
    """Runs of words of a text as name keys, the longest first."""
    words = [(match.start(), match.end()) for match in re.finditer(r"[^\s,;:!?\"()]+", text)]
    for length in range(min(longest, len(words)), 0, -1):
        for first in range(len(words) - length + 1):
            run = text[words[first][0] : words[first + length - 1][1]]
            for spelled in dict.fromkeys((run, run.removesuffix("."), re.sub(r"['’]s?$", "", run))):
                yield " ".join(spelled.split()).casefold()
