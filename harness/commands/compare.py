"""`steeltrap compare` and `steeltrap baseline`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["baseline", "compare"]


def compare(
    base: Path, new: Path, out: Console, *, fail_on: str, markdown: Path | None,
    junit: Path | None, json: Path | None, github: bool,
) -> int:  # fmt: skip
    """Say whether new runs are worse than old ones: 0 no, 1 yes, 2 nobody can tell."""
    raise NotImplementedError


def baseline(runs: Sequence[Path], to: Path, out: Console) -> None:
    """Write runs into a small file."""
    raise NotImplementedError
