"""Stores: a property graph (`graph`), a native layout on SQLite (`native`), plain dicts (`plain`)."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, get_args

from steeltrap.reference_system.stores.base import (
    DamagedStore,
    ForeignFile,
    Store,
    StoreError,
    StoreInUse,
)

__all__ = [
    "KINDS",
    "DamagedStore",
    "ForeignFile",
    "Kind",
    "Store",
    "StoreError",
    "StoreInUse",
    "open_store",
]

Kind = Literal["native", "ladybug", "kuzu", "plain"]
KINDS: tuple[Kind, ...] = get_args(Kind)


def open_store(path: Path, kind: Kind) -> Store:
    """Open a store, or begin one where there is none.

    Args:
        path: the store's main file; `plain` writes none.
        kind: `native` (SQLite), `ladybug` or `kuzu` (property graphs; never both in one
            process), or `plain` (in memory).

    Raises:
        StoreError: the file is foreign, damaged or in use; it is left as it is.
    """
    if kind in KINDS and kind != "plain" and not path.parent.is_dir():
        raise StoreError(f"{path.parent} is no folder; make it before {path.name} is opened there")
    match kind:
        case "native":
            from steeltrap.reference_system.stores.native import NativeStore

            return NativeStore(path)
        case "ladybug" | "kuzu":
            from steeltrap.reference_system.stores.graph import GraphStore

            return GraphStore(path, kind)
        case "plain":
            from steeltrap.reference_system.stores.plain import PlainStore

            return PlainStore()
    raise StoreError(f"unknown kind of store '{kind}'; known: {', '.join(KINDS)}")
