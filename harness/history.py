"""The recorded run: one `invoke` and one outcome a step, written as it happens.

An item is written in full where it is first seen (`new`) and by its number afterwards, so that
a memory that serves its whole transcript each time does not make the history quadratic.
Scoring reads a history and its script, never a live system. `ms` and `settle_ms`
and the models' `ms` are wall times, and like the files on disk they are left out of everything
that is compared (`fingerprint`).

The history of a finished run may be compressed (`compress`), and is read like a plain one: whoever
reads gives the path of either. It is written plain, so `expand` comes before a run that goes on.
"""

from __future__ import annotations

import hashlib
import io
import os
import shutil
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final, Literal, Protocol

import msgspec

from steeltrap.harness.memory import Item
from steeltrap.harness.models import Usage
from steeltrap.harness.script import Script, Step

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

__all__ = [
    "End",
    "Event",
    "HistoryError",
    "HistoryHeader",
    "HistoryWriter",
    "Left",
    "Observer",
    "Reading",
    "Remains",
    "Salience",
    "compress",
    "ending",
    "expand",
    "find",
    "fingerprint",
    "joined",
    "read_events",
    "read_header",
    "read_marked",
    "stored",
]

FORMAT: Final = "steeltrap-history"
VERSION: Final = 1
COMPRESSED: Final = ".zst"
"""Ends the name of a compressed history."""
LONGEST_BYTES: Final = 1 << 28
"""Of one line: what is longer is refused before it fills the memory."""
_END: Final = b'{"end":'
"""Begins the last line of a run that ended early."""
_BLOCK_BYTES: Final = 2048
"""Read at once of a compressed file: the most that zstd makes of it is 64 MB."""

Outcome = Literal["invoke", "ok", "fail", "info"]


class HistoryError(ValueError):
    """A history cannot be read; the message names file and line and says what to do."""


class HistoryHeader(msgspec.Struct, kw_only=True):
    """The first line of a history."""

    format: str = FORMAT
    version: int = VERSION
    script_sha256: str
    capabilities: list[str]
    limit: int
    """Items that a query may be served."""


class Salience(msgspec.Struct, frozen=True, array_like=True):
    """The salience of one unit before and after a retrieval."""

    unit: str
    before: float | None
    after: float | None


class Left(msgspec.Struct, frozen=True, array_like=True):
    """Something that was erased and was found in a file."""

    file: str
    """Its path below the memory's folder."""
    what: str
    """The text or value."""
    how: str
    """How it was written: `UTF-8`, `UTF-16`, `JSON`, or as a vector: `float32`, ..."""
    vector: bool = False
    """It is the vector of the text."""


class Remains(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """What a memory's files hold of what was erased, byte by byte."""

    files: int
    """Files that were searched; without any, nothing could be seen."""
    things: int
    """Texts, values and vectors that were searched for."""
    left: list[Left] = []


class Event(msgspec.Struct, omit_defaults=True, kw_only=True):
    """What became of one step."""

    i: int
    """Position of the step in the script, from 0."""
    type: Outcome
    """ok: done; fail: certainly not done; info: nobody knows."""
    worker: Literal["", "died", "gone"] = ""
    """died: the memory's process ended here, and whatever lives on does so without this step; gone:
    it had ended for good, so the step was not tried."""
    via: Literal["", "fork", "in-script", "listing"] = ""
    """How a probe was observed (section 4 of the benchmark contract)."""
    ms: float = 0.0
    """Wall time of the adapter's own work; not compared."""
    settle_ms: float = 0.0
    """Wall time of waiting for background work before it; not compared."""
    new: list[Item] = []
    """Items seen for the first time, without scores; numbered on from the last one."""
    served: list[int] = []
    """Numbers of the items served, in order; for a full gauge, of those listed."""
    scores: list[float] = []
    """Scores beside `served`, where the system gives them."""
    items: int = 0
    """gauge: how many items are active."""
    by_tenant: list[int] = []
    """full gauge: how many of `served` belong to each tenant, in order of first turns."""
    tokens: int = 0
    """probe: tokens served; gauge: tokens of the active items (o200k_base)."""
    versions: list[int] | None = None
    """audit: the history given, oldest first; None without that capability."""
    recovered: list[int] | None = None
    """audit: what recovery gave; None without that capability."""
    salience: list[Salience] = []
    """in-script probe: the probed unit, then the control; audit: the unit, as it stands."""
    error: str = ""
    """fail and info: the system's words."""
    usage: dict[str, Usage] = {}
    """What models were asked, by phase as in `Timing`; its `ms` are not compared."""
    size_bytes: int | None = None
    """full gauge: size on disk, where the system tells; not compared."""
    remains: Remains | None = None
    """erasure, and the last step: what was found in the files; not compared."""


class End(msgspec.Struct, kw_only=True):
    """The last line of a run that ended before its script did; a run that goes on replaces it."""

    end: str
    """Why, and where."""
    run_s: float
    """The limit that ended it: with a larger one the run goes on."""


_ENCODER = msgspec.json.Encoder()
_EVENT = msgspec.json.Decoder(Event)
_HEADER = msgspec.json.Decoder(HistoryHeader)
_ENDING = msgspec.json.Decoder(End)


class HistoryWriter:
    """Appends events to a file and flushes each, so that a killed run keeps its prefix."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream

    def header(self, header: HistoryHeader) -> None:
        """Write the first line of a new history."""
        self._write(header)

    def invoke(self, i: int) -> None:
        """Say that step `i` is about to be done."""
        self._stream.write(b'{"i":%d,"type":"invoke"}\n' % i)
        self._stream.flush()

    def outcome(self, event: Event | End) -> None:
        """Say what became of it, or that the run ends before it."""
        self._write(event)

    def _write(self, line: HistoryHeader | Event | End) -> None:
        self._stream.write(_ENCODER.encode(line) + b"\n")
        self._stream.flush()


def read_header(path: Path) -> HistoryHeader:
    """The first line of a history.

    Raises:
        HistoryError: not a history, or one of another version.
    """
    return _header(path, next(_lines(path), b""))


def _header(path: Path, line: bytes) -> HistoryHeader:
    try:
        header = _HEADER.decode(line)
    except (msgspec.DecodeError, RecursionError) as error:
        raise HistoryError(f"{path}:1: not a history ({error})") from None
    if header.format != FORMAT or header.version != VERSION:
        raise HistoryError(
            f"{path}:1: format {header.format} version {header.version}; this steeltrap reads"
            f" {FORMAT} version {VERSION}. Run again, or score with a matching steeltrap."
        )
    return header


def read_events(path: Path, *, torn: Literal["error", "stop"] = "error") -> Iterator[Event]:
    """The outcomes of a history in order, invokes left out.

    Args:
        path: the history file.
        torn: what to do at a line that a killed run left unfinished at the end of the file.

    Raises:
        HistoryError: a line is malformed.
    """
    for event, _ in read_marked(path, torn=torn):
        yield event


def read_marked(
    path: Path, *, torn: Literal["error", "stop"] = "error"
) -> Iterator[tuple[Event, int]]:
    """Each outcome with the length of the history, in bytes, up to and with its line."""
    lines = _lines(path)
    first = next(lines, b"")
    _header(path, first)
    end = len(first)
    for number, line in enumerate(lines, 2):
        whole = line.endswith(b"\n")
        if not whole and torn == "stop":
            return
        if line.startswith(_END):
            if next(lines, b""):
                raise HistoryError(f"{path}:{number}: goes on behind its end")
            return
        try:
            event = _EVENT.decode(line)
        except (msgspec.DecodeError, RecursionError) as error:
            cut = "" if whole else "; the run was cut short here: run it again to go on"
            raise HistoryError(f"{path}:{number}: malformed event ({error}){cut}") from None
        end += len(line)
        if event.type != "invoke":
            yield event, end


def ending(path: Path) -> End | None:
    """How a run ended before its script did; None where it did not, or was cut short.

    Raises:
        HistoryError: the history cannot be read.
    """
    last = next(iter(deque(_lines(path), maxlen=1)), b"")
    if not (last.startswith(_END) and last.endswith(b"\n")):
        return None
    try:
        return _ENDING.decode(last)
    except (msgspec.DecodeError, RecursionError) as error:
        raise HistoryError(f"{path}: malformed last line ({error})") from None


def _lines(path: Path) -> Iterator[bytes]:
    try:
        with _opened(path) as stream:
            for number, line in enumerate(iter(partial(stream.readline, LONGEST_BYTES), b""), 1):
                if len(line) == LONGEST_BYTES:
                    raise HistoryError(
                        f"{path}:{number}: longer than {LONGEST_BYTES >> 20} MB, and no line of a"
                        " history; run again with fresh=true"
                    )
                yield line
    except OSError as error:
        raise HistoryError(f"{path}: cannot be read ({error.strerror})") from None


class Observer(Protocol):
    """Takes the events of a run in order, and keeps of them what it needs."""

    def observe(self, step: Step, event: Event) -> None:
        """Take in what became of one step."""


def joined(script: Script, events: Iterable[Event]) -> Iterator[tuple[Step, Event]]:
    """Each outcome with the step that it is of."""
    steps = enumerate(script.steps)
    for event in events:
        for i, step in steps:
            if i == event.i:
                yield step, event
                break
        else:
            raise HistoryError(
                f"step {event.i} of the history does not come in the order of the script's"
                f" {len(script.steps)} steps: it is of another script, or was changed"
            )


class Reading:
    """One pass over a history that also counts its steps and works out its fingerprint.

    Iterating gives the outcomes in order; once they have been given they do not come again.

    Args:
        path: the history file.

    Raises:
        HistoryError: it cannot be read.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.header = read_header(path)
        self.steps = 0
        self.lost: list[int] = []
        """Steps at which the memory's process had gone: `Event.worker`."""
        self._digest = hashlib.sha256(_ENCODER.encode(self.header))
        self._events = read_events(path)

    def __iter__(self) -> Iterator[Event]:
        for event in self._events:
            self.steps += 1
            if event.worker:
                self.lost.append(event.i)
            self._digest.update(_ENCODER.encode(_timeless(event)))
            yield event

    def fingerprint(self) -> str:
        """Of the whole history; what nobody has read yet is read now."""
        for _ in self:
            pass
        return self._digest.hexdigest()


def _timeless(event: Event) -> Event:
    """The same without what is not compared."""
    usage = {phase: msgspec.structs.replace(used, ms=0.0) for phase, used in event.usage.items()}
    return msgspec.structs.replace(
        event, ms=0.0, settle_ms=0.0, size_bytes=None, remains=None, usage=usage
    )


def fingerprint(path: Path) -> str:
    """sha256 of a history without its wall times: equal for equal behaviour."""
    return Reading(path).fingerprint()


# ---------------------------------------------------------------- compressed


def stored(path: Path) -> Path:
    """Where the history lies that belongs at `path`: there, or compressed beside it.

    The plain one counts where both are there. It is never older: whoever was stopped while
    changing one into the other had not yet removed the one that was whole before.
    """
    packed = _packed(path)
    return packed if packed.exists() and not path.exists() else path


def find(folder: Path, name: str) -> list[Path]:
    """The histories of a folder whose plain names match a pattern, each once and as it is stored."""
    plain = {path.with_name(path.name.removesuffix(COMPRESSED)) for path in folder.glob(f"{name}*")}
    return [stored(path) for path in sorted(plain) if path.match(name)]


def compress(path: Path) -> None:
    """Put a compressed history in the place of a plain one.

    It is written beside the plain one, read back and compared with it, and only then is the plain
    one removed: whenever this is stopped, one of the two is whole, and doing it again ends it. The
    time of the last change stays that of the run.

    Raises:
        HistoryError: what was written reads otherwise.
        OSError: there is no room; the plain one is as it was.
    """
    import zstandard

    told, packed = path.stat(), _packed(path)
    with _beside(packed) as part, path.open("rb") as plain:
        digest = hashlib.sha256()
        with part.open("wb") as out:
            packer = zstandard.ZstdCompressor(write_checksum=True)
            with packer.stream_writer(out, size=told.st_size, closefd=False) as into:
                while block := plain.read(1 << 20):
                    digest.update(block)
                    into.write(block)
            _to_disk(out)
        with _unpacked(part) as back:
            if hashlib.file_digest(back, "sha256").digest() != digest.digest():
                raise HistoryError(f"{packed}: reads otherwise than it was written; {path} stays")
        os.utime(part, ns=(told.st_atime_ns, told.st_mtime_ns))
    path.unlink()


def expand(path: Path) -> None:
    """Put a plain history in the place of a compressed one; harmless where it is plain.

    Args:
        path: of either.

    Raises:
        HistoryError: the compressed one is broken.
        OSError: there is no room; the compressed one is as it was.
    """
    plain = path.with_name(path.name.removesuffix(COMPRESSED))
    packed = _packed(plain)
    if packed.exists() and not plain.exists():
        with _beside(plain) as part, _unpacked(packed) as stream, part.open("wb") as out:
            shutil.copyfileobj(stream, out, 1 << 20)
            _to_disk(out)
    packed.unlink(missing_ok=True)


def _packed(path: Path) -> Path:
    return path.with_name(path.name + COMPRESSED)


@contextmanager
def _beside(path: Path) -> Iterator[Path]:
    """A file to be written that takes the place of `path` when it is whole, or leaves nothing."""
    part = path.with_name(path.name + ".part")
    try:
        yield part
        os.replace(part, path)
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)  # the new name is on disk before the old file goes
        finally:
            os.close(folder)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def _to_disk(stream: IO[bytes]) -> None:
    stream.flush()
    os.fsync(stream.fileno())


def _opened(path: Path) -> io.BufferedReader:
    return _unpacked(path) if path.suffix == COMPRESSED else path.open("rb")


def _unpacked(path: Path) -> io.BufferedReader:
    return io.BufferedReader(_Unpacked(path), 1 << 17)


class _Unpacked(io.RawIOBase):
    """What a compressed file holds; that it is cut short is an error, not its end."""

    def __init__(self, path: Path) -> None:
        import zstandard

        self._path, self._broken = path, zstandard.ZstdError
        self._unpacker = zstandard.ZstdDecompressor().decompressobj()
        self._stream = path.open("rb")
        self._rest = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        into = memoryview(buffer)
        while not self._rest and (block := self._stream.read(_BLOCK_BYTES)):
            self._rest = memoryview(self._unpack(block))
        if not self._rest and not self._unpacker.eof:
            raise self._refused("is cut short")
        count = min(len(into), len(self._rest))
        into[:count] = self._rest[:count]
        self._rest = self._rest[count:]
        return count

    def _unpack(self, block: bytes) -> bytes:
        if self._unpacker.eof:
            raise self._refused("goes on behind its end")
        try:
            found = self._unpacker.decompress(block)
        except self._broken as error:
            raise self._refused(f"is broken ({error})") from None
        if self._unpacker.unused_data:
            raise self._refused("goes on behind its end")
        return found

    def _refused(self, why: str) -> HistoryError:
        return HistoryError(
            f"{self._path}: {why}; put back the file as it was, or run again with fresh=true"
        )

    def close(self) -> None:
        self._stream.close()
        super().close()
