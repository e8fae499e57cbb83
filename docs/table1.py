"""What `pages/table1.md` shows: the tables of `experiment=table1`, from stored runs.

    python docs/table1.py runs/table1

The run takes the better part of an hour and environments of its own, so the site does not make it when it is
built: the tables lie in `docs/table1/`, a file each, and the command above writes them anew.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from steeltrap.harness.record import Record
from steeltrap.harness.store import find_records
from steeltrap.reports.layout import markdown
from steeltrap.reports.paper import placed
from steeltrap.reports.table import Table

__all__ = ["FOLDER", "stored", "tables"]

FOLDER: Final = Path(__file__).parent / "table1"
_SHOWN: Final = ("table-1", "retention", "propagation", "conditions", "costs", "models")
"""Tables by their names; those of a script are of the one below."""
_SCRIPT: Final = "adversarial"


def stored(name: str) -> str:
    """A table, as it was written."""
    return (FOLDER / f"{name}.md").read_text()


def tables(records: Sequence[Record]) -> Iterator[Table]:
    """The tables that the page shows, of all runs or of the adversarial script.

    Raises:
        SystemExit: a table cannot be made of these runs.
    """
    found = {(one.place, one.table.name): one.table for one in placed(records)}
    for name in _SHOWN:
        table = found.get(("", name)) or found.get((_SCRIPT, name))
        if table is None:
            raise SystemExit(
                f"no table '{name}' can be made of these runs: are they those of table1?"
            )
        yield table


def _place(record: Record) -> tuple[str, str, int]:
    return record.spec.script, record.spec.system, record.spec.seed


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    (folder,) = map(Path, sys.argv[1:])
    for made in tables(sorted(find_records(folder), key=_place)):
        (FOLDER / f"{made.name}.md").write_text(f"{markdown(made)}\n")
