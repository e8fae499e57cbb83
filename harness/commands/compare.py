"""`steeltrap compare` and `steeltrap baseline`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from steeltrap.harness import compare as comparing
from steeltrap.harness.settings import SettingsError
from steeltrap.harness.store import write
from steeltrap.reports import comparison as shown
from steeltrap.reports.junit import junit_xml

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["baseline", "compare"]


def compare(
    base: Path, new: Path, out: Console, *, fail_on: str, markdown: Path | None,
    junit: Path | None, json: Path | None, github: bool,
) -> int:  # fmt: skip
    """Say whether new runs are worse than old ones: 0 no, 1 yes, 2 nobody can tell.

    Args:
        base: run folders or a baseline.
        new: the same, to be judged.
        out: gets the tables, and the annotations.
        fail_on: rules of what counts as worse; empty for those that always hold.
        markdown: gets a comment for a pull request.
        junit: gets a case for each condition and family.
        json: gets every number.
        github: also print annotations.

    Raises:
        SettingsError: the rules do not read, or a side holds runs that cannot be told apart.
        RecordError: a side cannot be read.
    """
    try:
        rules = comparing.read_rules(fail_on)
        found = comparing.compare(comparing.read_side(base), comparing.read_side(new), rules)
    except (comparing.RuleError, comparing.CompareError) as error:
        raise SettingsError(str(error)) from None
    if markdown:
        _write(markdown, shown.markdown(found).encode())
    if junit:
        _write(junit, junit_xml(found))
    if json:
        text = msgspec.json.encode(found, order="deterministic")
        _write(json, msgspec.json.format(text, indent=1) + b"\n")
    shown.show(found, out)
    if github:
        for line in shown.workflow_commands(found):
            out.out(line, highlight=False)
    return found.exit_code


def baseline(runs: Sequence[Path], to: Path, out: Console) -> None:
    """Write runs into a small file that can be committed.

    Args:
        runs: run folders, folders of them, or baselines.
        to: the file.
        out: is told what was written.

    Raises:
        RecordError: a run cannot be read.
    """
    found = [run for path in _once(runs) for run in comparing.read_side(path)]
    text = comparing.baseline(found)
    _write(to, text)
    many = f"{len(found)} run{'s' if len(found) != 1 else ''}"
    out.print(f"{to}: {many}, {len(text) / 1000:.0f} KB", markup=False, soft_wrap=True)


def _once(paths: Sequence[Path]) -> Iterator[Path]:
    """Each run folder once, however often it is named or held: twice it would look like a repeat."""
    seen: set[Path] = set()
    for path in paths:
        held = [record.parent for record in sorted(path.rglob("record.json"))]
        for one in held or [path]:
            if one.resolve() not in seen:
                seen.add(one.resolve())
                yield one


def _write(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    write(path, data)
