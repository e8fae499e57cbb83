"""A stand-in for a model."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence

import numpy as np

from steeltrap.adapters.embedders.base import Vectors, unit

__all__ = ["HashEmbedder"]

_WORD = re.compile(r"\w+")


class HashEmbedder:
    """Counts words at places given by their hash: for unit tests, never for a result.

    Args:
        dimension: length of a vector.
    """

    name = "hash"
    version = "1"

    def __init__(self, dimension: int = 64) -> None:
        self.dimension = dimension

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Unit vectors in which texts are near when they share words."""
        rows = np.zeros((len(texts), self.dimension), dtype=np.float32)
        for row, text in zip(rows, texts, strict=True):
            for word in _WORD.findall(text.casefold()):
                digest = int.from_bytes(hashlib.sha256(word.encode()).digest()[:8], "big")
                row[digest // 2 % self.dimension] += 1 if digest % 2 else -1
        return unit(rows)
