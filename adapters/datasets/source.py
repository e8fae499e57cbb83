"""What all loaders share: cards, where data comes from, and reading it with care.

No data set is part of this package. Its **card** (a JSON file beside the loader) says what it is,
under which licence, where it is from, by which sha256 its files are known, and which of its
questions have been found defective. Data comes from a file or a folder of one's own, from a
mirror of one's own (`https://...`), or from the hub (`hub`), both of these through the package
`datasets`. Wherever it comes from, it is checked by size, sha256 and schema.
"""

from __future__ import annotations

import gzip
import hashlib
import mmap
import os
import re
import zlib
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Final, NamedTuple, TypeVar, get_args, overload
from urllib.parse import urlsplit

import msgspec

from steeltrap.harness.script import Script, ScriptError

__all__ = [
    "HUB",
    "Card",
    "Data",
    "DatasetError",
    "Defect",
    "KnownFile",
    "Name",
    "Scripts",
    "card",
    "checked",
    "chosen",
    "decoded",
    "find",
    "no_later",
    "option",
    "read",
    "record",
    "records",
    "unchecked",
]

HUB: Final = "hub"
"""The `path` that stands for the hub."""
_FORCED_BYTES: Final = 1 << 30
"""How large, unzipped, a file may be that is taken unchecked and that the card does not know."""

Name = Annotated[str, msgspec.Meta(pattern=r"^[\w.:+-]{1,100}$")]
"""A name in a record that may reach terminals and pages: one printable word."""

T = TypeVar("T")


class DatasetError(ScriptError):
    """A data set cannot be used; the message says which file, why, and what to do."""


# ---------------------------------------------------------------- cards


class _Frozen(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    pass


class KnownFile(_Frozen, frozen=True):
    """A file of a data set as it is known."""

    variant: str
    bytes: int
    """Its size, unzipped; where there is no sha256, more than it can have."""
    sha256: dict[str, str] = {}
    """Hash of the unzipped bytes -> whose copy that is. Copies of one file hold equal records."""
    hub: str = ""
    """Where it lies in the card's repository on the hub; empty: not there in this form."""


class Defect(_Frozen, frozen=True):
    """Questions that have the same thing wrong with them."""

    kind: str
    """Becomes a flag of the question."""
    questions: list[str]
    about: str
    """What is wrong."""
    reported: str = ""
    """Where; empty: it can be seen in the data, and the loader finds it."""
    variant: str = ""
    """In which variant; empty: in all."""


class Card(_Frozen, frozen=True):
    """What is known about a data set."""

    name: str
    paper: str
    source: str
    """Where a copy can be had."""
    licence: str
    files: dict[str, KnownFile]
    """By the name under which a file is looked for in a folder, as it is or gzipped."""
    counts: dict[str, Any] = {}
    defects: list[Defect] = []
    hub: str = ""
    """Repository on the hub."""
    categories: dict[str, str] = {}
    """Where categories are numbers: their names."""

    def reported(self, variant: str = "") -> Iterator[tuple[str, Defect]]:
        """Each question with a defect that somebody has reported."""
        for defect in self.defects:
            if defect.reported and defect.variant in ("", variant):
                for question in defect.questions:
                    yield question, defect


def card(name: str) -> Card:
    """The card `name`.json beside this module."""
    return msgspec.json.decode(Path(__file__).with_name(f"{name}.json").read_bytes(), type=Card)


# ---------------------------------------------------------------- scripts, one at a time


class Scripts(Sequence[Script]):
    """Scripts that are made when they are asked for, so that one at a time is in memory.

    Args:
        count: how many there are.
        make: makes that of a number; the same one each time.
    """

    def __init__(self, count: int, make: Callable[[int], Script]) -> None:
        self._count = count
        self._make = make

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, index: int) -> Script: ...
    @overload
    def __getitem__(self, index: slice) -> Scripts: ...
    def __getitem__(self, index: int | slice) -> Script | Scripts:
        places = range(self._count)[index]
        if isinstance(places, range):
            return Scripts(len(places), lambda number: self._make(places[number]))
        return self._make(places)


# ---------------------------------------------------------------- settings


def option(data: str, name: str, value: Any, allowed: Any) -> Any:
    """`value`, if it is one of a `Literal`'s.

    Raises:
        DatasetError: it is not.
    """
    known = get_args(allowed)
    if value not in known:
        raise DatasetError(f"{data}: {name}={value} is not known; known: {', '.join(known)}")
    return value


def chosen(data: str, name: str, asked: Sequence[str] | None, known: Sequence[str]) -> list[str]:
    """What was asked for, in the order in which it is known; everything by default.

    Raises:
        DatasetError: one of them does not exist, or none was asked for.
    """
    wanted = list(known) if asked is None else [str(one) for one in asked]
    if unknown := [one for one in wanted if one not in known]:
        raise DatasetError(f"{data}: no {name} '{unknown[0]}'; known: {', '.join(known)}")
    if not wanted:
        raise DatasetError(f"{data}: {name}=[] leaves nothing; known: {', '.join(known)}")
    return [one for one in known if one in wanted]


def no_later(time: datetime, *bounds: datetime | None) -> datetime:
    """`time`, or a bound that is earlier."""
    return min([time, *(bound for bound in bounds if bound is not None)])


# ---------------------------------------------------------------- where data comes from


def find(path: str | Path, about: Card, ways: Sequence[Sequence[str]]) -> list[Path]:
    """The files of a data set.

    Args:
        path: a file, a folder, a mirror's address of a file or (ending in `/`) a folder, or `hub`.
        about: the data set.
        ways: the names of the files that together hold what is wanted, best way first. A file
            that is named itself is taken for the only one.

    Raises:
        DatasetError: there is no such file, or it cannot be fetched.
    """
    place = str(path)
    if place == HUB:
        for names in ways:
            if all(about.files[name].hub for name in names):
                return [_fetched(_on_hub(about, name), about) for name in names]
        raise DatasetError(
            f"{about.name}: {' or '.join(name for names in ways for name in names)} is not on the"
            f" hub in the form that is read here. Get {about.source}"
        )
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]*://", place):
        return _mirrored(place, about, ways)
    folder = Path(path)
    if not folder.is_dir():
        return [folder]
    for names in ways:
        found = [_in_folder(folder, name) for name in names]
        if all(found):
            return [file for file in found if file]
    wanted = " or ".join(" with ".join(names) for names in ways)
    raise DatasetError(f"{folder}: does not hold {wanted}, gzipped or not. Get {about.source}")


def _in_folder(folder: Path, name: str) -> Path | None:
    for file in (folder / name, folder / f"{name}.gz"):
        if file.is_file():
            return file
    return None


def _on_hub(about: Card, name: str) -> str:
    return f"hf://datasets/{about.hub}/{about.files[name].hub}"


def _mirrored(address: str, about: Card, ways: Sequence[Sequence[str]]) -> list[Path]:
    parts = urlsplit(address)
    local = parts.hostname in ("127.0.0.1", "localhost", "::1")
    if parts.scheme != "https" and not (parts.scheme == "http" and local):
        raise DatasetError(
            f"{_shown(address)}: a mirror is reached by https, or on this machine by http"
        )
    if not address.endswith("/"):
        return [_fetched(address, about)]
    for names in ways:
        for ending in ("", ".gz"):
            try:
                return [_fetched(f"{address}{name}{ending}", about) for name in names]
            except DatasetError as error:
                if "needs the package" in str(error):
                    raise
                last = error
    raise last


def _fetched(address: str, about: Card) -> Path:
    """A file from elsewhere, in the cache of `datasets` (`HF_HOME` says where that is)."""
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
    os.environ.setdefault("HF_UPDATE_DOWNLOAD_COUNTS", "0")
    try:
        import datasets
    except ModuleNotFoundError:
        raise DatasetError(
            f"{_shown(address)}: needs the package 'datasets' (pip install 'steeltrap[data]');"
            f" or set script.path to a copy of your own. Get {about.source}"
        ) from None
    datasets.disable_progress_bars()
    try:
        return Path(datasets.DownloadManager().download(address))
    except Exception as error:  # each way of fetching has errors of its own
        raise DatasetError(
            f"{_shown(address)}: cannot be fetched ({_words(error)}). Without a network, set"
            f" script.path to a copy of your own. Get {about.source}"
        ) from None


def _shown(address: str) -> str:
    """An address without a user's name and password."""
    return re.sub(r"//[^/@]*@", "//", address)


def _words(error: BaseException) -> str:
    return _shown(f"{type(error).__name__}: {error}".split("\n", 1)[0])


# ---------------------------------------------------------------- reading


class Data(NamedTuple):
    """A file that was read."""

    path: Path
    raw: bytes | mmap.mmap
    """Its unzipped bytes."""
    name: str
    """The card's name for it; empty where the card does not know it."""
    identity: str
    """The sha256 of its unzipped bytes, or, for one of several copies with equal records, that of
    the first on the card: scripts made of either are the same."""


def read(path: Path, about: Card, names: Sequence[str], *, check: bool) -> Data:
    """The bytes of a file.

    Args:
        path: as it is, or gzipped.
        about: the data set.
        names: which of its files this may be.
        check: take none but a known one.

    Raises:
        DatasetError: it cannot be read, is larger than it could be, or is not a known one.
    """
    most = max(about.files[name].bytes for name in names)
    raw = _raw(path, about, most if check else max(2 * most, _FORCED_BYTES))
    return checked(path, raw, about, names, check=check)


def checked(
    path: Path, raw: bytes | mmap.mmap, about: Card, names: Sequence[str], *, check: bool
) -> Data:
    """What was read, if it is known or need not be; see `read`.

    Raises:
        DatasetError: it is not a known file.
    """
    files = {name: about.files[name] for name in names}
    sha256 = hashlib.sha256(raw).hexdigest()
    for name, file in files.items():
        if sha256 in file.sha256:
            return Data(path, raw, name, next(iter(file.sha256)))
    if not check:
        return Data(path, raw, "", sha256)
    known = [listed for file in files.values() for listed in file.sha256]
    expected = f"expected {' or '.join(known[:4])}" if known else "and none is known"
    raise DatasetError(
        f"{path}: not the known file (sha256 {sha256}, {expected}). Get {about.source}, or"
        " set script.check=false to take this one, whose results compare with no others"
    )


def unchecked(path: Path, about: Card) -> Data:
    """A part of a data set that is checked when it is put together.

    Raises:
        DatasetError: it cannot be read.
    """
    return Data(path, _raw(path, about, _FORCED_BYTES), "", "")


def _raw(path: Path, about: Card, most: int) -> bytes | mmap.mmap:
    """The unzipped bytes: read where they are zipped, else mapped, so that they take no memory."""
    try:
        if not path.is_file():
            raise FileNotFoundError(None, "no such file" if not path.exists() else "not a file")
        with path.open("rb") as stream:
            if stream.read(2) == b"\x1f\x8b":
                stream.seek(0)
                raw: bytes | mmap.mmap = gzip.GzipFile(fileobj=stream).read(most + 1)
            elif path.stat().st_size:
                raw = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
            else:
                raw = b""
    except (OSError, EOFError, ValueError, MemoryError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or error
        if isinstance(error, MemoryError):
            reason = "there is not enough memory to unzip it"
        raise DatasetError(
            f"{path}: cannot be read ({reason}). The data is not part of steeltrap; get"
            f" {about.source}"
        ) from None
    if len(raw) > most:
        raise DatasetError(
            f"{path}: more than {most} bytes unzipped, and the known file is no larger."
            f" Get {about.source}"
        )
    return raw


def decoded(data: Data, kind: Any, raw: Any = None, where: str = "") -> Any:
    """What a file, or `raw`, a part of it, holds, as `kind`.

    Raises:
        DatasetError: it has another form; the message says where.
    """
    try:
        return msgspec.json.decode(data.raw if raw is None else raw, type=kind)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise DatasetError(
            f"{data.path}: {where}not in the form of the data set: {error}"
        ) from None


def records(data: Data) -> list[msgspec.Raw]:
    """The records of a file, one JSON array or one JSON object a line, not yet decoded.

    Raises:
        DatasetError: it is neither.
    """
    if data.raw[:64].lstrip()[:1] == b"[":
        found = decoded(data, list[msgspec.Raw])
    else:
        try:
            found = _LINES.decode_lines(data.raw)
        except (msgspec.DecodeError, RecursionError) as error:
            raise DatasetError(f"{data.path}: not in the form of the data set: {error}") from None
    if not found:
        raise DatasetError(f"{data.path}: holds no records")
    return list(found)


_LINES: Final = msgspec.json.Decoder(msgspec.Raw)


def record(data: Data, number: int, raw: msgspec.Raw, kind: type[T]) -> T:
    """One record, decoded.

    Raises:
        DatasetError: it has another form; the message names file, record (from 1) and field.
    """
    made: T = decoded(data, kind, raw, f"record {number + 1}: ")
    return made
