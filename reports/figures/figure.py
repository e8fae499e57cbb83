"""What a figure is, and how it becomes files."""

from __future__ import annotations

from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from steeltrap.reports.figures.style import house

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib import figure as drawn

__all__ = ["Figure", "files", "save"]


class Figure(NamedTuple):
    """One figure: what is drawn, what it says, and how it is drawn."""

    name: str
    """File stem."""
    title: str
    caption: str
    """As in a paper: what is shown, what the intervals are, over how many seeds."""
    data: pd.DataFrame
    """What is drawn and nothing else, a row a point; shares are from 0 to 1."""
    draw: Callable[[pd.DataFrame], drawn.Figure]


def save(figure: Figure, folder: Path) -> list[Path]:
    """Write a figure as PDF and PNG, and its data as CSV; the same bytes for the same records.

    Returns:
        The three files.
    """
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for name, data in files(figure).items():
        paths.append(folder / name)
        paths[-1].write_bytes(data)
    return paths


def files(figure: Figure) -> dict[str, bytes]:
    """The files of a figure by their names: NAME.pdf, NAME.png (300 dpi) and NAME.csv."""
    with house():
        made = figure.draw(figure.data)
        pictures = {kind: _saved(made, kind, figure.title) for kind in _METADATA}
    held = {**pictures, "csv": _csv(figure.data).encode()}
    return {f"{figure.name}.{kind}": data for kind, data in held.items()}


_METADATA: Final[dict[str, dict[str, Any]]] = {
    "pdf": {"Creator": "steeltrap", "Producer": None, "CreationDate": None},
    "png": {"Software": None},
}
"""Without dates and versions, which would make two files of one figure differ."""


def _saved(made: drawn.Figure, kind: str, title: str) -> bytes:
    held = BytesIO()
    made.savefig(held, format=kind, metadata={"Title": title, **_METADATA[kind]})
    return held.getvalue()


def _csv(data: pd.DataFrame) -> str:
    """Six significant digits, which are the same on every machine."""
    shown = data.map(_plain)
    return str(shown.to_csv(index=False, float_format="%.6g", lineterminator="\n"))


def _plain(cell: Any) -> Any:
    """Text on one line, that a spreadsheet does not take for a formula."""
    if not isinstance(cell, str):
        return cell
    text = " ".join(cell.splitlines())
    return f"'{text}" if text.lstrip().startswith(("=", "+", "-", "@")) else text
