"""Oracle Agent Memory: the package's client on a store of ours, or on its own database."""

from __future__ import annotations

from steeltrap.adapters.oracle.database import OracleDatabase
from steeltrap.adapters.oracle.local import Oracle

__all__ = ["Oracle", "OracleDatabase"]
