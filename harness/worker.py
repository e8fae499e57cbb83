"""The child's end of a memory in a process of its own; a program that is run by its path.

    ENVIRONMENT/bin/python -P .../steeltrap/harness/worker.py

The environment holds what the system needs, and msgspec; steeltrap is found from where this file
lies. Nothing but answers is written to the pipe that was standard output: whatever a system prints
goes to standard error. Both ends speak the protocol of `worker-protocol.md`.
"""

from __future__ import annotations

import atexit
import faulthandler
import importlib
import importlib.metadata
import importlib.util
import math
import os
import platform
import resource
import select
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO, Any, Final

if __name__ == "__main__":
    # Only the package itself: what lies beside it belongs to another environment.
    _package = Path(__file__).absolute().parents[1]
    _spec = importlib.util.spec_from_file_location(
        "steeltrap", _package / "__init__.py", submodule_search_locations=[str(_package)]
    )
    assert _spec is not None
    assert _spec.loader is not None
    sys.modules["steeltrap"] = importlib.util.module_from_spec(_spec)
    _spec.loader.exec_module(sys.modules["steeltrap"])

import msgspec

from steeltrap.harness.memory import (
    Item,
    Memory,
    MemoryFault,
    Query,
    Subject,
    Utterance,
    capabilities,
    claims_concurrency,
)
from steeltrap.harness.models import Models
from steeltrap.harness.replies import Items, number, sound, words
from steeltrap.harness.script import Header, Script, Step

__all__ = ["OPERATIONS", "VERSION", "Hello", "Named", "Welcome", "as_memory", "make", "serve"]

VERSION: Final = 1
OPERATIONS: Final[dict[str, dict[str, Any]]] = {
    "connect": {"models": Models},
    "told": {"lines": list[msgspec.Raw]},
    "open": {"folder": str},
    "close": {},
    "ingest": {"turn": Utterance},
    "retrieve": {"query": Query},
    "settle": {},
    "active": {"tenant": str},
    "history": {"subject": Subject},
    "salience": {"subject": Subject},
    "maintain": {"at": str},
    "recover": {"subject": Subject},
    "erase": {"tenant": str, "subject": Subject | None},
    "size_bytes": {},
    "fork": {},
    "drop": {},
}
"""What can be asked for, with what."""

BESIDE: Final = ("ingest", "retrieve", "settle", "active", "history", "salience", "recover", "size_bytes")  # fmt: skip
"""What may be under way beside others; everything else comes alone."""

_WORDS_MAX: Final = 10_000
_GRACE_S: Final = 2.0
"""What a worker whose parent has gone may still need to end by itself."""


class Hello(msgspec.Struct):
    """The first line that a worker reads."""

    steeltrap: int
    """Version of the protocol."""
    make: dict[str, Any]
    """The system's settings; `_target_` names the class."""
    packages: list[str] = []
    """Whose versions are asked for."""
    threads: int = 1
    """So many requests may be under way at once, where the system says that it can have that."""


class Named(msgspec.Struct):
    """Name and version of an embedder."""

    name: str
    version: str


class Welcome(msgspec.Struct, omit_defaults=True):
    """The first line that a worker writes."""

    steeltrap: int
    error: str = ""
    """Why the system cannot be made; empty where it was."""
    capabilities: list[str] = []
    """Names of `steeltrap.harness.memory.CAPABILITIES`."""
    identity: dict[str, Any] = {}
    """What besides its settings decides what the system does."""
    embedder: Named | None = None
    versions: dict[str, str] = {}
    """Of the language and of the packages asked for, those that are there."""
    concurrent: bool = False
    """Several requests may be under way at once, and are answered as they are done."""


class _Request(msgspec.Struct, rename={"given": "with"}):
    id: int
    do: str
    on: int = 0
    given: msgspec.Raw = msgspec.Raw(b"{}")


# ---------------------------------------------------------------- making the system


def make(node: Any) -> Any:
    """What a settings node describes; nodes with a `_target_` become what it names, inner first.

    Raises:
        ValueError: the node asks for something else of Hydra's grammar.
        Exception: whatever the target raises.
    """
    if isinstance(node, list):
        return [make(one) for one in node]
    if not isinstance(node, dict):
        return node
    made = {key: make(value) for key, value in node.items() if key != "_target_"}
    if "_target_" not in node:
        return made
    if special := [key for key in made if key.startswith("_")]:
        raise ValueError(f"{', '.join(special)}: in a worker only _target_ is understood")
    module, _, name = node["_target_"].rpartition(".")
    return getattr(importlib.import_module(module), name)(**made)


def as_memory(made: Any) -> Memory:
    """What was made, if it is a memory.

    Raises:
        TypeError: it is none.
    """
    if not isinstance(made, Memory):
        needs = "it needs open, close, ingest, retrieve and settle"
        raise TypeError(f"{type(made).__name__} is no memory; {needs}")
    return made


def _welcome(memory: Memory, packages: Iterable[str]) -> Welcome:
    embedder = getattr(memory, "embedder", None)
    return Welcome(
        VERSION,
        capabilities=capabilities(memory),
        identity=getattr(memory, "identity", {}),
        embedder=Named(embedder.name, embedder.version) if embedder else None,
        versions=_versions(packages),
        concurrent=claims_concurrency(memory),
    )


def _versions(packages: Iterable[str]) -> dict[str, str]:
    found = {"python": platform.python_version()}
    for name in packages:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


# ---------------------------------------------------------------- serving


def serve(requests: IO[bytes], answers: IO[bytes]) -> None:
    """Answer line by line until there are no more.

    Args:
        requests: the first is the hello.
        answers: one line for each, flushed.
    """
    system, crew = None, None
    writing, process = threading.Lock(), os.getpid()

    def answered(line: bytes) -> None:
        if os.getpid() != process:
            os._exit(1)  # a copy that the system has made of its process: only one answers
        with writing:
            answers.write(line + b"\n")
            answers.flush()

    for line in requests:
        if system is None:
            welcome, memory, threads = _greet(line)
            system = _System(memory) if memory is not None else None
            crew = ThreadPoolExecutor(threads) if threads > 1 else None
            answered(msgspec.json.encode(welcome))
        elif crew is not None and _comes_beside(line):
            crew.submit(_answer, system, line, answered)
        else:
            answered(system.answer(line))


def _answer(system: _System, line: bytes, answered: Callable[[bytes], None]) -> None:
    answered(system.answer(line))


def _comes_beside(line: bytes) -> bool:
    """Whether a request may be under way beside others."""
    try:
        return _REQUEST.decode(line).do in BESIDE
    except msgspec.DecodeError:
        return False


def _greet(line: bytes) -> tuple[Welcome, Memory | None, int]:
    """The welcome, the memory, and how many requests may be under way at once."""
    try:
        version = msgspec.json.decode(line).get("steeltrap")
        if version != VERSION:
            raise ValueError(f"this worker speaks version {VERSION} of the protocol, not {version}")
        hello = msgspec.json.decode(line, type=Hello)
        memory = as_memory(make(hello.make))
        welcome = _welcome(memory, hello.packages)
        msgspec.json.encode(welcome)
    except Exception as error:
        return Welcome(VERSION, error=words(error)), None, 1
    return welcome, memory, hello.threads if welcome.concurrent else 1


class _System:
    """The memory and its forks, by handle."""

    def __init__(self, memory: Memory) -> None:
        self._memories = {0: memory}
        self._made = 0

    def answer(self, line: bytes) -> bytes:
        """One line for one line, whatever happens."""
        id_ = None
        try:
            request = _REQUEST.decode(line)
            id_ = request.id
            return msgspec.json.encode({"id": id_, "ok": self._do(request)})
        except MemoryFault as fault:
            fault_words = words(fault, _WORDS_MAX).partition(": ")[2]
            return msgspec.json.encode({"id": id_, "fault": fault_words})
        except Exception as error:
            return msgspec.json.encode({"id": id_, "error": words(error, _WORDS_MAX)})

    def _do(self, request: _Request) -> Any:
        if request.do not in OPERATIONS:
            raise ValueError(f"'{request.do}' is no operation; known: {', '.join(OPERATIONS)}")
        given = msgspec.structs.astuple(_GIVEN[request.do].decode(request.given))
        if request.on not in self._memories:
            raise ValueError(f"{request.on} is no handle of a memory or of a copy of it")
        memory: Any = self._memories[request.on]
        match request.do:
            case "open":
                memory.open(Path(*given))
            case "told":
                memory.told(_script(*given))
            case "fork":
                self._made += 1
                self._memories[self._made] = memory.fork()
                return self._made
            case "drop":
                del self._memories[request.on]
            case "retrieve" | "active" | "history" | "recover" as do:
                return _items(getattr(memory, do)(*given), do)
            case "salience" | "size_bytes" as do:
                reply = getattr(memory, do)(*given)
                return None if reply is None else number(reply, f"{do} returned")
            case do:
                getattr(memory, do)(*given)
        return None


_REQUEST = msgspec.json.Decoder(_Request)
_GIVEN = {
    do: msgspec.json.Decoder(msgspec.defstruct(do, list(given.items())))
    for do, given in OPERATIONS.items()
}


def _script(lines: list[msgspec.Raw]) -> Script:
    header, *steps = lines
    return Script(_HEADER.decode(header), [_STEP.decode(step) for step in steps])


_HEADER = msgspec.json.Decoder(Header)
_STEP: msgspec.json.Decoder[Step] = msgspec.json.Decoder(Step)


# ---------------------------------------------------------------- replies


def _items(reply: Any, call: str) -> list[Item]:
    """The items of a reply as they may be written.

    Most of what is wrong with a reply can be seen at the other end. What JSON would hide (a number
    that is none becomes null, a time or bytes become text) is told here, in the same words.
    """
    if not isinstance(reply, list | tuple):
        Items().intern(reply, call)
    items = []
    for item in reply:
        if not _sound(item):
            if not isinstance(item, Item):
                Items().intern([item], call)
            item = msgspec.structs.replace(sound(item, call), score=item.score)
        if item.score is not None and not (type(item.score) is float and math.isfinite(item.score)):
            score = number(item.score, f"{call} returned an Item with score")
            item = msgspec.structs.replace(item, score=score)
        items.append(item)
    return items


def _sound(item: Any) -> bool:
    """Whether all but the score of an item survives being written as JSON."""
    if not isinstance(item, Item):
        return False
    sources: Any = () if item.sources is None else item.sources
    if type(sources) is not tuple or not isinstance(item.review, bool):
        return False
    rest = [one for one in (item.id, item.valid_from, item.valid_to) if one is not None]
    return all(map(_writable, (item.text, *sources, *rest)))


def _writable(text: Any) -> bool:
    try:
        return type(text) is str and (text.isascii() or bool(text.encode()))
    except UnicodeEncodeError:
        return False


# ---------------------------------------------------------------- the process


def _pipes() -> tuple[IO[bytes], IO[bytes]]:
    """The pipes to the parent, out of the way of whatever reads standard input or prints."""
    requests, answers = os.fdopen(os.dup(0), "rb", 1 << 16), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    return requests, answers


def _end_with(pipe: int) -> None:
    """Wait until the parent has closed its end, then see to it that this process ends."""
    poll = select.poll()
    poll.register(pipe, 0)  # a hang-up is always told
    poll.poll()
    time.sleep(_GRACE_S)
    os.killpg(0, signal.SIGKILL) if _leads() else os._exit(1)


def _end_group() -> None:
    """End what the system has started and left running."""
    if _leads():
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        os.killpg(0, signal.SIGTERM)


def _leads() -> bool:
    """Whether the process group is this worker's own."""
    return os.getpgrp() == os.getpid()


def main() -> None:
    """Serve on the standard pipes."""
    atexit.register(_end_group)  # registered first, so done last
    faulthandler.enable(all_threads=False)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    requests, answers = _pipes()
    threading.Thread(target=_end_with, args=(requests.fileno(),), daemon=True).start()
    serve(requests, answers)


if __name__ == "__main__":
    main()
