"""Questions put to a model outside a run: by readers and by judges.

No server stands in between, but what the gateway promises holds: back ends are put around each
other as behind it, so that a budget is shared, answers are recorded and replayed, failed calls
are tried again and keys are written nowhere. Recordings are found by what was asked and by who
answered, so they are the cache as well: the same prompt is paid once, in whatever run it occurs.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from itertools import count
from pathlib import Path
from typing import Annotated, Any, Final, Generic, Literal, NamedTuple, Protocol, TypeVar

import msgspec

from steeltrap.harness.gateway.backend import BackendError, Call
from steeltrap.harness.gateway.budget import Purse, counted
from steeltrap.harness.gateway.dialects import chat
from steeltrap.harness.gateway.dialects.shared import key
from steeltrap.harness.gateway.setup import recorded
from steeltrap.harness.models import Reply, Usage
from steeltrap.harness.store import Cell, StoreError, write
from steeltrap.harness.tokens import cache_folder

__all__ = [
    "Asker",
    "ModelSettings",
    "Prompt",
    "Sheet",
    "Stopped",
    "fence",
    "in_order",
    "over_cells",
]

_FINAL: Final = ("budget", "unknown-prompt")
"""Kinds of error after which asking on is of no use."""

Result = TypeVar("Result")
AtLeastOne = Annotated[int, msgspec.Meta(ge=1)]


class ModelSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Which model is asked, and how; as on the command line."""

    model: str = ""
    """Name of the model; `replay`: only what was recorded."""
    of: str = ""
    """replay: whose answers, as they were recorded, such as `openai:gpt-4o-mini`; can be left out
    where there are those of one model alone."""
    provider: Literal["openai", "anthropic", "compatible"] = "openai"
    base_url: str = ""
    """Instead of OPENAI_BASE_URL or ANTHROPIC_BASE_URL."""
    recordings: str = ""
    """Folder of recordings; by default `recordings` in the cache folder."""
    concurrency: AtLeastOne = 8
    """Calls at a time."""
    retries: Annotated[int, msgspec.Meta(ge=0)] = 5
    """After 429, 5xx, a time-out or a broken connection."""
    timeout_s: Annotated[float, msgspec.Meta(gt=0)] = 120.0
    spend_tokens: AtLeastOne | None = None
    """The command stops cleanly when they are spent."""
    spend_usd: Annotated[float, msgspec.Meta(gt=0)] | None = None


class Prompt(NamedTuple):
    """What is asked."""

    system: str
    user: str
    max_tokens: int
    json: bool = False
    """The answer has to be a JSON object."""

    @property
    def body(self) -> dict[str, Any]:
        """As a request in the dialect of OpenAI; who answers is not part of it."""
        asked: dict[str, Any] = {
            "model": "chat",
            "messages": [
                {"role": role, "content": text}
                for role, text in (("system", self.system), ("user", self.user))
                if text
            ],
            "temperature": 0,
            "max_tokens": self.max_tokens,
        }
        return asked | ({"response_format": {"type": "json_object"}} if self.json else {})

    @property
    def sha256(self) -> str:
        """The identity of what is asked; recordings are found by it."""
        return key("chat", self.body)


class Stopped(RuntimeError):
    """No further question can be answered; what was answered is kept."""


class Asker:
    """A model that can be asked.

    Args:
        settings: which one.
        purse: from which it is paid, where several share a budget.

    Attributes:
        name: provider, model and a hash of the address where it is not the maker's.
        stopped: why nothing more is asked; empty as long as it is.

    Raises:
        ValueError: a setting is missing or wrong; the message says what to do.
    """

    def __init__(self, settings: ModelSettings, purse: Purse | None = None) -> None:
        if settings.model in ("", "ideal", "record", "upstream"):
            raise ValueError(
                f"model={settings.model or '???'}: name a real model, as model=gpt-4o-mini, or"
                " model=replay; an ideal one knows nothing of public data"
            )
        given = msgspec.to_builtins(settings)
        replays = settings.model == "replay"
        given |= {
            "name": "replay" if replays else "record",
            "model": settings.of if replays else settings.model,
            "recordings": settings.recordings or str(cache_folder() / "recordings"),
            "embedding_model": "",
            "budget_tokens": settings.spend_tokens,
            "budget_usd": settings.spend_usd,
        }
        self._backend = recorded(given, purse)
        self.name: str = getattr(self._backend, "model", self._backend.name)
        self.at_once = settings.concurrency
        self.stopped = ""
        # what waits has not passed the budget yet
        self._places = asyncio.Semaphore(settings.concurrency)

    async def ask(self, prompt: Prompt, nth: int = 0) -> Reply:
        """The model's answer, its tokens counted here where the provider does not say.

        Args:
            prompt: what is asked.
            nth: how many whole answers to the same prompt were of no use.

        Raises:
            BackendError: it was not answered; asking again may help.
            Stopped: nothing more can be asked.
        """
        body = prompt.body
        call = Call("chat", body, key("chat", body), nth, chat.ask(body))
        async with self._places:
            if self.stopped:
                raise Stopped(self.stopped)
            try:
                reply = await self._backend.chat(call)
            except BackendError as error:
                if error.kind in _FINAL:
                    self.stopped = error.message
                    raise Stopped(self.stopped) from None
                raise
        said = counted(call, reply)
        # times are not compared, so lines go without
        usage = Usage(
            calls=1, prompt_tokens=said.prompt_tokens, completion_tokens=said.completion_tokens,
            cached_tokens=said.cached_tokens,
        )  # fmt: skip
        return msgspec.structs.replace(reply, usage=usage)


def fence(*texts: str) -> str:
    """A mark that stands in none of the texts, so that none can end the block it stands in.

    It is nearly always the same, so that prompts begin alike and providers have read them before.
    """
    return next(mark for n in count() if not any((mark := f"mark-{n}") in text for text in texts))


# ---------------------------------------------------------------- many questions


async def in_order(
    jobs: Iterable[Callable[[], Awaitable[Result]]], at_once: int
) -> AsyncIterator[Result]:
    """What the jobs give, in their order, while so many of them run at a time."""
    running: deque[asyncio.Task[Result]] = deque()
    try:
        for job in jobs:
            running.append(asyncio.ensure_future(job()))
            if len(running) >= at_once:
                yield await running.popleft()
        while running:
            yield await running.popleft()
    finally:
        for task in running:
            task.cancel()


def over_cells(
    cells: Sequence[Cell], work: Callable[[Cell], Awaitable[Result]], at_once: int
) -> list[Result]:
    """Do the same for every cell, some at a time, each of them held meanwhile.

    Raises:
        CellBusy: another process works on one of them.
    """

    async def everywhere() -> list[Result]:
        places = asyncio.Semaphore(at_once)

        async def held(cell: Cell) -> Result:
            async with places:
                cell.hold()
                try:
                    return await work(cell)
                finally:
                    cell.release()

        return list(await asyncio.gather(*map(held, cells)))

    return asyncio.run(everywhere())


# ---------------------------------------------------------------- files


class _OfStep(Protocol):
    @property
    def step(self) -> int: ...


Line = TypeVar("Line", bound=_OfStep)
Header = TypeVar("Header", bound=msgspec.Struct)


class Sheet(Generic[Header, Line]):
    """A file with a header and one line a question, written line by line.

    A killed command keeps its lines; of two lines of one step the later counts. A file with
    another header is begun anew.

    Args:
        path: of the file.
        header: what decides the lines.
        kind: of the lines.

    Attributes:
        lines: by step.

    Raises:
        StoreError: the file cannot be read or written.
    """

    def __init__(self, path: Path, header: Header, kind: type[Line]) -> None:
        self.path = path
        self.header = header
        self.lines: dict[int, Line] = {}
        head = msgspec.json.encode(header) + b"\n"
        there = _read(path)
        if there.startswith(head):
            whole, _, torn = there[len(head) :].rpartition(b"\n")
            self.lines = {line.step: line for line in _decoded(path, whole, kind)}
            if torn:
                self.finish()
        else:
            _folder(path)
            write(path, head)

    def add(self, line: Line) -> None:
        """Write a line down."""
        self.lines[line.step] = line
        with self.path.open("ab") as stream:
            stream.write(msgspec.json.encode(line) + b"\n")

    def finish(self) -> None:
        """Bring the lines into the order of their steps."""
        parts = [self.header, *(self.lines[step] for step in sorted(self.lines))]
        write(self.path, b"".join(msgspec.json.encode(part) + b"\n" for part in parts))


def read_sheet(
    path: Path, header: type[Header], kind: type[Line], missing: str
) -> Sheet[Header, Line]:
    """A sheet that somebody wrote.

    Args:
        path: of the file.
        header: kind of its header.
        kind: of its lines.
        missing: what to do where there is none.

    Raises:
        StoreError: there is none, or it cannot be read.
    """
    if not path.exists():
        raise StoreError(f"{path}: is not there; {missing}")
    head = _read(path).partition(b"\n")[0]
    try:
        found = msgspec.json.decode(head, type=header)
    except (msgspec.DecodeError, RecursionError) as error:
        raise StoreError(f"{path}:1: cannot be read ({error}); {missing}") from None
    if msgspec.json.encode(found) != head:
        raise StoreError(f"{path}:1: written by another version of steeltrap; {missing}")
    return Sheet(path, found, kind)


def _folder(path: Path) -> None:
    try:
        path.parent.mkdir(exist_ok=True)
    except OSError as error:
        raise StoreError(f"{path.parent}: cannot be made ({error.strerror})") from None


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes() if path.exists() else b""
    except OSError as error:
        raise StoreError(f"{path}: cannot be read ({error.strerror})") from None


def _decoded(path: Path, lines: bytes, kind: type[Line]) -> Iterable[Line]:
    for number, line in enumerate(lines.splitlines(), 2):
        try:
            yield msgspec.json.decode(line, type=kind)
        except (msgspec.DecodeError, RecursionError) as error:
            raise StoreError(
                f"{path}:{number}: cannot be read ({error}); remove the line"
            ) from None
