"""MIRIX's service through its maker's client."""

from __future__ import annotations

from steeltrap.adapters.mirix_client.client import MirixClient

__all__ = ["MirixClient"]
