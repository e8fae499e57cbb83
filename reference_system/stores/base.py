"""What a store gives: the narrow interface between the operators and what is on disk.

A store keeps records and knows nothing of policies. It commits a delta whole or not at all, and
one process writes to it at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

from steeltrap.reference_system.state import Delta, Entry, Field, PolicyText, Record

__all__ = ["DamagedStore", "ForeignFile", "Store", "StoreError", "StoreInUse"]


class StoreError(RuntimeError):
    """A store cannot do what was asked; the message says why and what would help."""


class ForeignFile(StoreError):
    """The file was not written by this kind of store, or by another version of it."""


class DamagedStore(StoreError):
    """The file is of this kind and cannot be read whole. It was left as it is."""


class StoreInUse(StoreError):
    """Another process, or another object of this one, has the store open."""


class Store(Protocol):
    """Keeps M."""

    def load(self) -> Iterator[Record]:
        """Everything but the histories: topics, fields, edges, evidence, aliases, policies."""

    def commit(self, delta: Delta) -> None:
        """Write a proposed change: all of it, or nothing if this raises."""

    def read(self, touched: dict[str, float]) -> list[Field]:
        """Write the new salience of some fields and give the fields as stored, as one transition.

        Args:
            touched: id of the field -> its new salience; the order is kept.
        """

    def entries(self, fields: Sequence[str]) -> list[Entry]:
        """The histories of some fields, each in the order in which it was written (`seq`)."""

    def entry(self, field: str, seq: int) -> Entry:
        """One line of a history.

        Raises:
            StoreError: there is no such line.
        """

    def set_policies(self, policies: Sequence[PolicyText]) -> None:
        """Replace P."""

    def erase(self, topics: Iterable[str], fields: Iterable[str]) -> None:
        """Remove topics and fields with histories, edges, evidence and aliases, for good.

        Afterwards no byte of them can be found in the files.
        """

    def checkpoint(self) -> None:
        """Fold the log into the main file, so that the size on disk is what is stored."""

    def size_bytes(self) -> int:
        """Bytes on disk now."""

    def close(self) -> None:
        """Release the files; the store cannot be used afterwards."""
