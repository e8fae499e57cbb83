"""Settings."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Settings:
    """Where the graph lies."""

    kuzu_path: str = "memstate.kuzu"
    _env_file: str | None = ".env"
