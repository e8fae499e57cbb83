"""`steeltrap report`: figures, tables and a page of stored runs."""

from __future__ import annotations

import hashlib
import importlib.resources
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec
from msgspec.structs import replace

from steeltrap.harness.history import read_events
from steeltrap.harness.record import Record
from steeltrap.harness.script import Header, read_steps
from steeltrap.harness.store import Cell, StoreError, read_cell, write

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["Found", "report", "show", "stored", "summary", "write_folder"]

MANIFEST: Final = "manifest.json"
FORMAT: Final = "steeltrap-report"
VERSION: Final = 1


class Found(NamedTuple):
    """A finished run."""

    cell: Cell
    record: Record


class _Manifest(msgspec.Struct, kw_only=True):
    """What a folder of a report was made of, and what it holds."""

    format: str = FORMAT
    version: int = VERSION
    runs: list[dict[str, Any]]
    files: dict[str, str]
    """Path and sha256."""


def report(
    runs: Sequence[Path], out: Console, aside: Console, *, to: Path | None, html: Path | None
) -> None:
    """Print tables of stored runs, or write figures, tables and a page of them.

    Args:
        runs: run folders, or folders of them.
        out: gets the tables, or a line for what was written.
        aside: gets the bar.
        to: where tables, figures and numbers go.
        html: where the page goes.

    Raises:
        StoreError: there is no finished run, or something in the way.
        RecordError, ScriptError, HistoryError: a run cannot be read.
    """
    found = stored(runs)
    if to is None and html is None:
        show(found, out)
    if to is not None:
        write_folder(found, to, out, aside)
    if html is not None:
        write_page(found, html, out, aside)


# ---------------------------------------------------------------- runs


def stored(folders: Sequence[Path]) -> list[Found]:
    """The finished runs in and below folders, each once, in the order of their paths.

    Raises:
        StoreError: a folder does not exist, or there is no finished run.
        RecordError: a record cannot be read.
    """
    paths: dict[Path, Path] = {}
    for folder in folders:
        if not folder.exists():
            raise StoreError(f"{folder}: does not exist; give run folders, or folders of them")
        for path in sorted(folder.rglob("record.json")):
            paths.setdefault(path.parent.resolve(), path.parent)
    if not paths:
        where = ", ".join(map(str, folders))
        raise StoreError(f"{where}: holds no finished run (record.json), so there is nothing to report")  # fmt: skip
    cells = [read_cell(path) for path in paths.values()]
    return [Found(cell, record) for cell in cells if (record := cell.finished())]


def newest(done: Sequence[Found]) -> list[Found]:
    """Without runs that ask what a later one asked again, as after a change of the code.

    The later one is that whose history was written last: scoring leaves histories alone.
    """
    found: dict[bytes, Found] = {}
    written = {one.cell.folder: one.cell.history.stat().st_mtime_ns for one in done}
    for one in sorted(done, key=lambda one: (written[one.cell.folder], one.cell.folder.name)):
        spec = one.cell.spec
        asked = [
            spec.system, spec.settings, spec.embedder, spec.model, spec.script,
            _header(one.cell).settings, one.record.outcome.turns, spec.seed, spec.reader, spec.limit,
        ]  # fmt: skip
        found[msgspec.json.encode(asked, order="sorted")] = one
    kept = {one.cell.folder for one in found.values()}
    return [one for one in done if one.cell.folder in kept]


def records(kept: Sequence[Found]) -> list[Record]:
    """Their records. Scripts of one name and seed that were made with other settings are other
    scripts, so what they differ in becomes part of their names, and nobody pools them."""
    made = [(one.record, _flat(_header(one.cell).settings)) for one in kept]
    by_seed: dict[tuple[str, int], list[dict[str, Any]]] = {}
    for record, settings in made:
        by_seed.setdefault((record.spec.script, record.spec.seed), []).append(settings)
    unlike: dict[str, list[str]] = {}
    for (script, _), several in by_seed.items():
        for key in dict.fromkeys(key for settings in several for key in settings):
            if any(settings.get(key) != several[0].get(key) for settings in several):
                unlike.setdefault(script, []).append(key)
    return [
        _named(record, settings, unlike.get(record.spec.script, [])) for record, settings in made
    ]


def _named(record: Record, settings: dict[str, Any], keys: Sequence[str]) -> Record:
    if not keys:
        return record
    script = " ".join(
        [record.spec.script, *(f"{key}={settings.get(key)}" for key in dict.fromkeys(keys))]
    )
    return replace(record, spec=replace(record.spec, script=script))


def _flat(settings: dict[str, Any], above: str = "") -> dict[str, Any]:
    """Settings by dotted keys, without the length: lengths are told apart by turns."""
    flat: dict[str, Any] = {}
    for key, value in settings.items():
        if isinstance(value, dict):
            flat |= _flat(value, f"{above}{key}.")
        elif above or key != "turns":
            flat[f"{above}{key}"] = value
    return flat


def _header(cell: Cell) -> Header:
    header = next(read_steps(cell.script))
    assert isinstance(header, Header)
    return header


def _told(done: Sequence[Found], kept: Sequence[Found]) -> list[str]:
    """What scripts say about themselves, and what was left out."""
    from steeltrap.reports.facts import notes

    scripts = {one.cell.spec.script_sha256: one.cell for one in kept}
    told = notes(map(_header, scripts.values()))
    if older := len(done) - len(kept):
        told.append(f"left out: {older} older runs of the same system, script and seed")
    return told


# ---------------------------------------------------------------- on the console


def show(done: Sequence[Found], out: Console, *, families: bool = False) -> None:
    """Print the tables of finished runs, and the first failure of each system."""
    from steeltrap.reports import layout
    from steeltrap.reports.words import spelled

    kept = newest(done)
    layout.show(records(kept), out, notes=_told(done, kept), families=families)
    for line in _first_failures(kept):
        out.print(spelled(line), highlight=False, markup=False)


def summary(done: Sequence[Found], folder: Path, out: Console, *, families: bool = False) -> None:
    """Print the tables of finished runs, and write them and more as `report.md` in a folder.

    Args:
        done: the runs.
        folder: of the report.
        out: where they are printed.
        families: end with the paper's Table 1.
    """
    from steeltrap.reports import layout

    show(done, out, families=families)
    kept = newest(done)
    path = folder / "report.md"
    text = layout.page(records(kept), notes=_told(done, kept), families=families)
    write(path, text.encode())
    out.print(f"\nReport: {path}", markup=False)


def _first_failures(done: Sequence[Found]) -> Iterator[str]:
    """A line for each system that failed, with its own words for the first failure."""
    failing: dict[str, list[Found]] = {}
    for one in done:
        if one.record.outcome.failed:
            failing.setdefault(one.cell.spec.system, []).append(one)
    for system, own in failing.items():
        failed = sum(one.record.outcome.failed for one in own)
        steps = sum(one.record.outcome.steps for one in own)
        events = read_events(own[0].cell.history)
        words = next((event.error for event in events if event.type != "ok"), "")
        yield f"{system}: {failed} of {steps} steps failed; first: {words or 'no words'}"


# ---------------------------------------------------------------- in a folder


def write_folder(done: Sequence[Found], folder: Path, out: Console, aside: Console) -> None:
    """Write tables, figures, numbers and a paper that shows how to include them.

    What an earlier report wrote there is replaced, or removed where it is not made any more;
    nothing else is touched. The order of the runs given makes no difference.

    Raises:
        StoreError: a file is in the way that no report wrote, or the folder cannot be written.
    """
    from steeltrap.reports import paper

    kept = sorted(newest(done), key=_place)
    found = records(kept)
    files, captions = _figures(found, aside)
    files |= paper.documents(found, notes=_told(done, kept), figures=captions)
    _replace(folder, files, [_run(one) for one in kept])
    out.print(f"Report: {folder} ({len(files)} files)", markup=False)


def _place(one: Found) -> tuple[object, ...]:
    """By script and seed; systems in the order of the paper's Table 1."""
    from steeltrap.reports.table1 import FAMILIES, family_of

    spec = one.record.spec
    family = family_of(spec.system)
    rank = FAMILIES.index(family) if family in FAMILIES else -1
    model = msgspec.json.encode([spec.model, spec.settings, spec.embedder], order="sorted")
    return (
        spec.script, one.record.outcome.turns, spec.reader, spec.limit, rank, spec.system, spec.seed,
        model, spec.script_sha256, spec.revision, one.record.outcome.fingerprint,
    )  # fmt: skip


def _figures(records: Sequence[Record], aside: Console) -> tuple[dict[str, bytes], dict[str, str]]:
    """The files of all figures, and the captions of those that a paper includes."""
    from steeltrap.reports.claims import read_claims
    from steeltrap.reports.figures import figures, files
    from steeltrap.reports.table1 import figure_1

    claims = importlib.resources.files("steeltrap.adapters") / "claims.toml"
    drawn = figures(records, read_claims(claims.read_text(encoding="utf-8")))
    if table := figure_1(records):
        drawn.insert(0, table)
    made: dict[str, bytes] = {}
    for figure in _watched(drawn, "figures", aside):
        made |= {f"figures/{name}": data for name, data in files(figure).items()}
    return made, {f"figures/{figure.name}.pdf": figure.caption for figure in drawn}


def _watched(items: Sequence[Any], what: str, aside: Console) -> Iterator[Any]:
    """The items one by one, with a bar on a terminal."""
    from rich.progress import track

    yield from track(
        items, what, console=aside, transient=True, disable=not aside.is_terminal
    )  # fmt: skip


def _run(one: Found) -> dict[str, Any]:
    spec = one.record.spec
    return {
        "system": spec.system, "script": spec.script, "script_sha256": spec.script_sha256,
        "seed": spec.seed, "revision": spec.revision, "fingerprint": one.record.outcome.fingerprint,
    }  # fmt: skip


def _replace(folder: Path, files: dict[str, bytes], runs: list[dict[str, Any]]) -> None:
    before = _earlier(folder)
    for path, data in files.items():
        there = folder / path
        if not there.exists():
            continue
        own = there.is_file() and (there.read_bytes() == data or _sha256(there) == before.get(path))
        if not own:
            raise StoreError(
                f"{there}: was not written by a report, or changed since; move it away, or choose"
                " another folder with --to DIR"
            )
    for path, digest in before.items():
        there = folder / path
        if path not in files and there.is_file() and _sha256(there) == digest:
            there.unlink()
    for path, data in files.items():
        _make((folder / path).parent)
        write(folder / path, data)
    made = {path: hashlib.sha256(data).hexdigest() for path, data in sorted(files.items())}
    text = msgspec.json.encode(_Manifest(runs=runs, files=made))
    write(folder / MANIFEST, msgspec.json.format(text, indent=1) + b"\n")


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(
            f"{folder}: cannot be made ({error.strerror}); choose another place"
        ) from None


def _earlier(folder: Path) -> dict[str, str]:
    """What an earlier report wrote into a folder; nothing where there was none."""
    path = folder / MANIFEST
    if not path.exists():
        return {}
    try:
        found = msgspec.json.decode(path.read_bytes(), type=_Manifest)
    except (msgspec.DecodeError, RecursionError) as error:
        raise StoreError(
            f"{path}: not the manifest of a report ({error}); choose another folder with --to DIR"
        ) from None
    if found.format != FORMAT or found.version != VERSION:
        raise StoreError(f"{path}: not the manifest of a report; choose another folder with --to DIR")  # fmt: skip
    inside = folder.resolve()
    return {
        path: digest
        for path, digest in found.files.items()
        if (folder / path).resolve().is_relative_to(inside)
    }


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


# ---------------------------------------------------------------- as a page


def write_page(done: Sequence[Found], path: Path, out: Console, aside: Console) -> None:
    """Write one page to look at, without server or network.

    Raises:
        StoreError: it cannot be written.
        RecordError, ScriptError, HistoryError: a run cannot be read.
    """
    from steeltrap.harness.retrace import looked_at
    from steeltrap.reports.page import render

    if path.is_dir():
        raise StoreError(f"{path}: is a folder; give the page a name, as {path / 'page.html'}")
    # of one script the longest life first, since that is what one comes to look at
    longest = sorted(newest(done), key=lambda one: (-one.record.outcome.turns, _place(one)))
    text = render(*looked_at(one.cell for one in _watched(longest, "runs", aside)))
    _make(path.parent)
    write(path, text.encode())
    out.print(f"Page: {path}", markup=False)
