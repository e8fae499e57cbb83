"""What every embedder gives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

__all__ = ["Embedder", "Vectors", "unit"]

Vectors = NDArray[np.float32]
"""One row a text."""


class Embedder(Protocol):
    """Turns texts into unit vectors, the same vector for a text whatever stands beside it."""

    @property
    def name(self) -> str:
        """The model."""

    @property
    def version(self) -> str:
        """Changes whenever the vectors may."""

    @property
    def dimension(self) -> int:
        """Length of a vector."""

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Vectors of shape (texts, dimension), each of length 1; zeros for a text of no words."""


def unit(rows: Vectors) -> Vectors:
    """The rows scaled to length 1; a row of zeros stays as it is."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return (rows / np.where(lengths > 0, lengths, 1)).astype(np.float32)
