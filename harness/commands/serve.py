"""`steeltrap serve`: stored runs in a browser."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["serve"]


def serve(folder: Path, out: Console, *, port: int) -> None:
    """Show a folder of runs on this machine until interrupted."""
    raise NotImplementedError
