"""`steeltrap report`: figures, tables and a page of stored runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["report"]


def report(runs: Sequence[Path], out: Console, *, to: Path | None, html: Path | None) -> None:
    """Print tables of stored runs, or write figures, tables and a page of them."""
    raise NotImplementedError
