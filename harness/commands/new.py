"""`steeltrap new`: the beginning of a package that adapts a memory."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["new"]


def new(name: str, to: Path | None, out: Console) -> None:
    """Write a package that installs, registers a memory and passes the contract tests."""
    raise NotImplementedError
