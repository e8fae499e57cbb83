"""The recorded run: one `invoke` and one outcome a step, written as it happens.

An item is written in full where it is first seen (`new`) and by its number afterwards, so that
a memory that serves its whole transcript each time does not make the history quadratic.
Scoring reads a history and its script, never a live system. `ms` and `settle_ms`
and the models' `ms` are wall times, and like the files on disk they are left out of everything
that is compared (`fingerprint`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Final, Literal

import msgspec

from steeltrap.harness.memory import Item
from steeltrap.harness.models import Usage
from steeltrap.harness.script import Script, Step

__all__ = [
    "Event",
    "HistoryError",
    "HistoryHeader",
    "HistoryWriter",
    "Left",
    "Remains",
    "Salience",
    "fingerprint",
    "joined",
    "read_events",
    "read_header",
    "read_marked",
]

FORMAT: Final = "steeltrap-history"
VERSION: Final = 1

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


_ENCODER = msgspec.json.Encoder()
_EVENT = msgspec.json.Decoder(Event)
_HEADER = msgspec.json.Decoder(HistoryHeader)


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

    def outcome(self, event: Event) -> None:
        """Say what became of it."""
        self._write(event)

    def _write(self, line: HistoryHeader | Event) -> None:
        self._stream.write(_ENCODER.encode(line) + b"\n")
        self._stream.flush()


def read_header(path: Path) -> HistoryHeader:
    """The first line of a history.

    Raises:
        HistoryError: not a history, or one of another version.
    """
    try:
        with path.open("rb") as stream:
            line = stream.readline()
    except OSError as error:
        raise HistoryError(f"{path}: cannot be read ({error.strerror})") from None
    try:
        header = _HEADER.decode(line)
    except msgspec.DecodeError as error:
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
    """Each outcome with the length of the file, in bytes, up to and with its line."""
    read_header(path)
    with path.open("rb") as stream:
        end = len(stream.readline())
        for number, line in enumerate(stream, 2):
            whole = line.endswith(b"\n")
            if not whole and torn == "stop":
                return
            try:
                event = _EVENT.decode(line)
            except msgspec.DecodeError as error:
                cut = "" if whole else "; the run was cut short here: run it again to go on"
                raise HistoryError(f"{path}:{number}: malformed event ({error}){cut}") from None
            end += len(line)
            if event.type != "invoke":
                yield event, end


def joined(script: Script, events: Iterable[Event]) -> Iterator[tuple[Step, Event]]:
    """Each outcome with the step that it is of."""
    for event in events:
        yield script.steps[event.i], event


def fingerprint(path: Path) -> str:
    """sha256 of a history without its wall times: equal for equal behaviour."""
    digest = hashlib.sha256(_ENCODER.encode(read_header(path)))
    for event in read_events(path):
        event.ms, event.settle_ms, event.size_bytes, event.remains = 0.0, 0.0, None, None
        event.usage = {p: msgspec.structs.replace(u, ms=0.0) for p, u in event.usage.items()}
        digest.update(_ENCODER.encode(event))
    return digest.hexdigest()
