"""Vectors kept on disk by what was embedded and by what."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

import numpy as np

from steeltrap.adapters.embedders.base import Embedder, Vectors
from steeltrap.harness.tokens import cache_folder

__all__ = ["Cached"]

_BATCH = 500  # SQLite's oldest limit is 999 parameters a statement


class Cached:
    """An embedder that embeds each text once, on this machine.

    The key is the embedder's name and version, and the sha256 of the text. Several processes
    may share the file.

    Args:
        embedder: does the work where the cache has nothing.
        path: the SQLite file; by default `vectors.sqlite` in the cache folder.
    """

    def __init__(self, embedder: Embedder, path: Path | None = None) -> None:
        self._embedder = embedder
        self._path = cache_folder() / "vectors.sqlite" if path is None else Path(path)

    @property
    def name(self) -> str:
        """That of the embedder."""
        return self._embedder.name

    @property
    def version(self) -> str:
        """That of the embedder."""
        return self._embedder.version

    @property
    def dimension(self) -> int:
        """That of the embedder."""
        return self._embedder.dimension

    def embed(self, texts: Sequence[str]) -> Vectors:
        """The embedder's vectors, from the cache where it has them."""
        keys = [self._key(text) for text in texts]
        rows = np.zeros((len(texts), self.dimension), dtype=np.float32)
        with self._database() as database:
            known = _look_up(database, keys)
            new = {key: text for key, text in zip(keys, texts, strict=True) if key not in known}
            if new:
                made = self._embedder.embed(list(new.values()))
                fresh = {key: row.tobytes() for key, row in zip(new, made, strict=True)}
                database.executemany("INSERT OR IGNORE INTO vectors VALUES (?, ?)", fresh.items())
                database.commit()
                known |= fresh
        for row, key in zip(rows, keys, strict=True):
            row[:] = np.frombuffer(known[key], dtype=np.float32)
        return rows

    def _key(self, text: str) -> bytes:
        model = f"{self.name}\0{self.version}\0{self.dimension}\0"
        return hashlib.sha256(model.encode() + hashlib.sha256(text.encode()).digest()).digest()

    @contextmanager
    def _database(self) -> Iterator[sqlite3.Connection]:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with closing(sqlite3.connect(self._path, timeout=60)) as database:
            database.execute(
                "CREATE TABLE IF NOT EXISTS vectors (key BLOB PRIMARY KEY, vector BLOB NOT NULL)"
                " WITHOUT ROWID"
            )
            yield database


def _look_up(database: sqlite3.Connection, keys: Sequence[bytes]) -> dict[bytes, bytes]:
    found: dict[bytes, bytes] = {}
    for start in range(0, len(keys), _BATCH):
        some = keys[start : start + _BATCH]
        marks = ",".join("?" * len(some))
        found |= database.execute(f"SELECT key, vector FROM vectors WHERE key IN ({marks})", some)
    return found
