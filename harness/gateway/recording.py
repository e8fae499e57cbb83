"""Answers kept on disk: recorded once, replayed as often as wanted.

One file a folder, `recordings.jsonl`, to which lines are added and in which none is changed:

    {"format":"steeltrap-recordings","version":1}
    {"key":…,"nth":0,"model":"openai:gpt-4o-mini","begins":"You are …","reply":{…}}
    {"key":…,"nth":0,"model":"…","begins":"…","vectors":["<base64 of float32>",…]}

`key` says what was asked (`Call`), `nth` how often it had been answered before in that life of a
memory, `begins` is for people. Nothing else is kept: no
prompts, headers, addresses, paths or times of day. Files are merged by writing one after the
other; of two answers to the same call the first one counts. A line that was cut off by a kill is
skipped, and its call counts as not recorded.
"""

from __future__ import annotations

import asyncio
import base64
import fcntl
import os
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Final

import msgspec
import numpy as np

from steeltrap.harness.gateway.backend import Backend, BackendError, Call, Vectors
from steeltrap.harness.models import Reply

__all__ = ["Recorded", "RecordingError", "Replay"]

FORMAT: Final = "steeltrap-recordings"
VERSION: Final = 1
_FILE: Final = "recordings.jsonl"
_BEGINS_CHARS: Final = 80
_SECRET: Final = re.compile(r".+_(API_KEY|TOKEN|SECRET|PASSWORD)")
_SECRET_CHARS: Final = 12
"""Shorter values are placeholders: clients insist on a key where none is needed."""


class RecordingError(ValueError):
    """Recordings cannot be used; the message says which, why and what to do."""


class _Header(msgspec.Struct, frozen=True):
    format: str
    version: int


class _Recording(msgspec.Struct, frozen=True, omit_defaults=True):
    """One line: one answer."""

    key: str
    nth: int
    model: str
    """The back end that answered, by its name."""
    begins: str = ""
    reply: Reply | None = None
    vectors: list[str] | None = None
    """For each text, base64 of little-endian float32."""


class _Place(msgspec.Struct, frozen=True):
    """A line, as far as it is looked at until it is needed."""

    key: str = ""
    nth: int = 0
    model: str = ""
    format: str = ""
    version: int = 0


class Recorded:
    """Asks another back end for what is not recorded yet, and records it.

    So a run that was stopped goes on without asking anything twice. Only whole answers are
    recorded; an error passes through, and the call that is asked again after it counts as the
    one that was not answered: a replay has no errors. An answer that comes after its client has
    gone is recorded too, and given to the client when it asks again.

    Args:
        inner: the back end; its name says whose answers are served and recorded.
        folder: where the recordings are; several processes may use it at once.

    Raises:
        RecordingError: the folder holds something else, or cannot be written.
    """

    def __init__(self, inner: Backend, folder: Path) -> None:
        self._inner = inner
        self.name = inner.name
        self._file = _File(folder)
        self._file.make()
        self._secrets = _secrets()
        self._failed: Counter[str] = Counter()
        """How many calls of a key were not answered in this life."""
        self._asking: dict[tuple[str, int], asyncio.Task[_Recording]] = {}

    def begin(self) -> None:
        """A new life of a memory begins."""
        self._failed.clear()
        self._inner.begin()

    async def chat(self, call: Call) -> Reply:
        """The recorded answer, or a new one, which is recorded.

        Raises:
            BackendError: the other back end's, or the answer holds a key.
        """
        return _reply(await self._found(call))

    async def embed(self, call: Call) -> Vectors:
        """The recorded vectors, or new ones, which are recorded; float32 either way.

        Raises:
            BackendError: as `chat`.
        """
        return _vectors(await self._found(call))

    async def _found(self, call: Call) -> _Recording:
        call = msgspec.structs.replace(call, nth=max(0, call.nth - self._failed[call.key]))
        found = self._file.get(self.name, call)
        if found is not None:
            return found
        name = (call.key, call.nth)
        asking = self._asking.get(name)
        if asking is None:
            asking = self._asking[name] = asyncio.create_task(self._asked(call))
            asking.add_done_callback(lambda task: self._forget(name, task))
        try:
            return await asyncio.shield(asking)
        except (BackendError, asyncio.CancelledError):
            self._failed[call.key] += 1
            raise

    def _forget(self, name: tuple[str, int], task: asyncio.Task[_Recording]) -> None:
        del self._asking[name]
        if not task.cancelled():
            task.exception()  # whoever waited has it; if nobody did, it is not worth a warning

    async def _asked(self, call: Call) -> _Recording:
        made = _Recording(call.key, call.nth, self.name, _begins(call))
        if call.ask is not None:
            made = msgspec.structs.replace(made, reply=await self._inner.chat(call))
        else:
            rows = np.asarray(await self._inner.embed(call), dtype="<f4")
            packed = [base64.b64encode(row.tobytes()).decode() for row in rows]
            made = msgspec.structs.replace(made, vectors=packed)
        line = msgspec.json.encode(made)
        for name, value in self._secrets.items():
            if value in line:
                raise BackendError(
                    f"an answer of {self.name} repeats the value of {name} and is not recorded:"
                    " take the key out of what the system is told"
                )
        return self._file.add(call, made, line)


class Replay:
    """Serves recorded answers, and nothing else.

    Args:
        folder: where the recordings are.
        model: whose answers are served, by the name under which they were recorded; it can be
            left out where there is but one.

    Attributes:
        model: whose answers are served.

    Raises:
        RecordingError: there are none, or those of several models and none is chosen.
    """

    def __init__(self, folder: Path, model: str = "") -> None:
        self._file = _File(folder)
        self.model = model or self._only_model()
        self.name = "replay"
        if not self._file.models[self.model]:
            raise RecordingError(
                f"{self._file.path}: nothing of {self.model} is recorded there, only of"
                f" {', '.join(sorted(self._file.models))}"
            )

    def begin(self) -> None:
        """A new life of a memory begins; the gateway counts."""

    async def chat(self, call: Call) -> Reply:
        """The recorded answer, with the usage and the time that it had.

        Raises:
            BackendError: unknown-prompt: there is none.
        """
        return _reply(self._found(call))

    async def embed(self, call: Call) -> Vectors:
        """The recorded vectors.

        Raises:
            BackendError: unknown-prompt: there are none.
        """
        return _vectors(self._found(call))

    def _only_model(self) -> str:
        models = sorted(self._file.models)
        if not models:
            raise RecordingError(
                f"{self._file.path}: nothing is recorded there; run once with model=record"
            )
        if len(models) > 1:
            raise RecordingError(
                f"{self._file.path}: holds answers of {', '.join(models)}; say whose are wanted"
            )
        return models[0]

    def _found(self, call: Call) -> _Recording:
        found = self._file.get(self.model, call)
        if found is not None:
            return found
        times = self._file.times(self.model, call)
        asked = (
            f"it was recorded {times}x, and asked once more"
            if times
            else "nothing recorded matches"
        )
        damaged = self._file.damaged
        kind = "a request for vectors" if call.ask is None else f"a {call.dialect} call"
        raise BackendError(
            f"{kind} that begins {_begins(call)!r}: {asked}"
            f" (among {self._file.models[self.model]} answers of {self.model}"
            + (f"; {damaged} lines cannot be read" if damaged else "")
            + "). Ask the model itself once, with the same recordings, to have the missing answers"
            " added (in a run: model=record)",
            status=400,
            kind="unknown-prompt",
        )


class _File:
    """The recordings of a folder; what other processes add is seen when something is missing.

    Attributes:
        path: of the file.
        models: how many answers of each.
        damaged: lines that cannot be read.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / _FILE
        self.models: Counter[str] = Counter()
        self.damaged = 0
        self._places: dict[tuple[str, str, int], tuple[int, int]] = {}
        self._end = 0
        self._headed = False
        self._refresh()

    def make(self) -> None:
        """Begin the file where there is none.

        Raises:
            RecordingError: it cannot be written.
        """
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self._locked() as stream:
                self._refresh()
                if not self._headed:
                    self._append(stream, msgspec.json.encode(_Header(FORMAT, VERSION)))
        except OSError as error:
            raise RecordingError(f"{self.path}: cannot be written ({error.strerror})") from None

    def get(self, model: str, call: Call) -> _Recording | None:
        """The answer to a call."""
        name = (model, call.key, call.nth)
        if name not in self._places:
            self._refresh()
        place = self._places.get(name)
        return None if place is None else self._read(*place)

    def times(self, model: str, call: Call) -> int:
        """How often the same was asked, for which there are answers."""
        return sum(key == call.key and of == model for of, key, _ in self._places)

    def add(self, call: Call, made: _Recording, line: bytes) -> _Recording:
        """Write an answer down; the one that another process has written meanwhile stands."""
        with self._locked() as stream:
            found = self.get(made.model, call)
            if found is None:
                self._append(stream, line)
                found = self.get(made.model, call)
        assert found is not None
        return found

    def _read(self, start: int, length: int) -> _Recording:
        with self.path.open("rb") as stream:
            stream.seek(start)
            line = stream.read(length)
        try:
            return msgspec.json.decode(line, type=_Recording)
        except (msgspec.DecodeError, RecursionError) as error:
            raise RecordingError(
                f"{self.path}: the line at byte {start} was changed ({error}); remove the line"
            ) from None

    @contextmanager
    def _locked(self) -> Iterator[BinaryIO]:
        with self.path.open("ab+") as stream:
            fcntl.flock(stream, fcntl.LOCK_EX)
            yield stream

    def _append(self, stream: BinaryIO, line: bytes) -> None:
        """Add a line in one piece; one that was cut off before it is ended first."""
        size = stream.seek(0, os.SEEK_END)
        if size:
            stream.seek(size - 1)
            line = line if stream.read(1) == b"\n" else b"\n" + line
        stream.write(line + b"\n")
        stream.flush()
        self._refresh()

    def _refresh(self) -> None:
        """Take in the lines that are new."""
        if not self.path.exists() or self.path.stat().st_size == self._end:
            return
        with self.path.open("rb") as stream:
            stream.seek(self._end)
            for line in stream:
                if not line.endswith(b"\n"):
                    break  # being written, or cut off
                self._take(line)
                self._end += len(line)

    def _take(self, line: bytes) -> None:
        try:
            place = msgspec.json.decode(line, type=_Place)
        except (msgspec.DecodeError, RecursionError):
            self.damaged += bool(line.strip())
            return
        if place.format:
            self._check(place)
        elif not self._headed:
            raise RecordingError(
                f"{self.path}: does not begin as recordings do; use another folder"
            )
        else:
            name = (place.model, place.key, place.nth)
            if name not in self._places:
                self._places[name] = (self._end, len(line))
                self.models[place.model] += 1

    def _check(self, header: _Place) -> None:
        if header.format != FORMAT or header.version > VERSION:
            raise RecordingError(
                f"{self.path}: written as {header.format} {header.version}, and this version reads"
                f" {FORMAT} up to {VERSION}; use the version that wrote it, or another folder"
            )
        self._headed = True


def _reply(found: _Recording) -> Reply:
    if found.reply is None:
        raise BackendError(f"the recording of {found.key[:12]} holds vectors, not an answer")
    return found.reply


def _vectors(found: _Recording) -> Vectors:
    if found.vectors is None:
        raise BackendError(f"the recording of {found.key[:12]} holds an answer, not vectors")
    rows: Any = [np.frombuffer(base64.b64decode(row), dtype="<f4") for row in found.vectors]
    return np.array(rows, dtype=np.float32)


def _begins(call: Call) -> str:
    """How a prompt begins, for people: the system's, or what there is."""
    if call.ask is None:
        text = call.texts[0] if call.texts else ""
    else:
        text = call.ask.said("system") or call.ask.text
    return " ".join(text[: 4 * _BEGINS_CHARS].split())[:_BEGINS_CHARS]


def _secrets() -> dict[str, bytes]:
    """Environment variables that hold keys, with their values as they would stand in JSON."""
    return {
        name: msgspec.json.encode(value)[1:-1]
        for name, value in os.environ.items()
        if _SECRET.fullmatch(name) and len(value) >= _SECRET_CHARS
    }
