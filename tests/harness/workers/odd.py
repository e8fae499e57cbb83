"""A memory that does what it is told in the texts of turns and questions, however odd."""

# ruff: noqa: ARG002

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import steeltrap
from steeltrap.harness.memory import Item, MemoryFault, Query, Subject, Utterance


class Plain:
    """The least that a memory is: keeps texts and serves them all."""

    def __init__(self, **settings: Any) -> None:
        self.settings = settings
        self.texts: list[str] = []

    def open(self, folder: Path) -> None:
        self.folder = folder

    def close(self) -> None:
        pass

    def settle(self) -> None:
        pass

    def ingest(self, turn: Utterance) -> None:
        self.texts.append(turn.text)

    def retrieve(self, query: Query) -> Sequence[Item]:
        return [Item(text) for text in self.texts]


HELD: list[bytearray] = []


def hold(megabytes: str) -> None:
    """Take memory bit by bit, up to so much, and stay a while."""
    for _ in range(int(megabytes) // 10):
        HELD.append(bytearray(b"x" * 10_000_000))
    time.sleep(1 if int(megabytes) > 200 else 0)


class Name:
    name, version = "words", "3"


class Odd(Plain):
    """Carries out `command argument` from the text of a turn; anything else is kept."""

    @property
    def identity(self) -> dict[str, Any]:
        return {
            "settings": {key: repr(value) for key, value in self.settings.items()},
            "path": sys.path,
            "package": list(steeltrap.__path__),
            "foreign": sorted(
                {name.split(".")[0] for name in sys.modules} - set(sys.stdlib_module_names)
            ),
        }

    embedder = Name()

    def close(self) -> None:
        if "close" in self.texts:
            os._exit(5)

    def ingest(self, turn: Utterance) -> None:
        command, _, argument = turn.text.partition(" ")
        match command:
            case "exit":
                os._exit(int(argument))
            case "leave":
                sys.exit(int(argument))
            case "signal":
                os.kill(os.getpid(), signal.Signals[f"SIG{argument}"])
            case "hang":
                time.sleep(float(argument))
            case "hold" if argument.startswith("later "):
                threading.Timer(0.3, hold, [argument.removeprefix("later ")]).start()
            case "hold":
                hold(argument)
            case "child" if argument.startswith("holds "):
                script = (
                    f"import time; held = bytearray({argument.split()[1]}_000_000); time.sleep(9)"
                )
                subprocess.run([sys.executable, "-c", script], check=True)
            case "fork":
                if (pid := os.fork()) == 0:
                    time.sleep(float(argument))
                    os._exit(0)
                os.waitpid(pid, 0)
            case "say":
                print(argument, file=sys.stderr)
            case "print":
                print(argument)
                os.write(1, b"raw\n")
                subprocess.run(["/bin/sh", "-c", "echo from a child"], check=True)
                self.texts.append(f"stdin: {sys.stdin.read()!r}")
            case "child":
                child = subprocess.Popen(["sleep", argument])
                self.texts.append(str(child.pid))
            case "orphan":
                if os.fork() == 0:
                    time.sleep(100)
                os._exit(int(argument))
            case "fault":
                raise MemoryFault(argument)
            case "raise":
                raise ValueError(argument)
            case "write":
                Path(argument).write_text("written")
            case _:
                super().ingest(turn)

    def retrieve(self, query: Query) -> Any:
        if query.text in REPLIES:
            return REPLIES[query.text]
        if query.text == "environment":
            return [Item(f"{key}={value}") for key, value in sorted(os.environ.items())]
        if query.text == "where":
            return [Item(str(self.folder)), Item(str(Path.cwd())), Item(str(os.getpid()))]
        if query.text.startswith("big "):
            return [Item("ä" * int(query.text[4:]))]
        return super().retrieve(query)


class Narrow:
    """A number as numpy has them: known as a float only when asked."""

    def __float__(self) -> float:
        return 0.5


class Derived(Item, frozen=True):
    more: int = 3


REPLIES: dict[str, Any] = {
    "nothing": None,
    "dict": {"text": "one"},
    "generator": (text for text in "ab"),
    "texts": ["one"],
    "tuple": (Item("one"), Derived("two", id="t2")),
    "nan": [Item("one", score=float("nan"))],
    "infinite": [Item("one"), Item("two", score=float("inf"))],
    "narrow": [Item("one", score=Narrow())],  # type: ignore[arg-type]
    "word as score": [Item("one", score="high")],  # type: ignore[arg-type]
    "number": [Item(5)],  # type: ignore[arg-type]
    "bytes": [Item(b"one")],  # type: ignore[arg-type]
    "time": [Item("one", valid_from=datetime(2026, 3, 1))],  # type: ignore[arg-type]
    "bad time": [Item("one", valid_from="last week")],
    "list of sources": [Item("one", sources=["t1"])],  # type: ignore[arg-type]
    "numbers as sources": [Item("one", sources=(1, 2))],  # type: ignore[arg-type]
    "yes as review": [Item("one", review="yes")],  # type: ignore[arg-type]
    "half a letter": [Item("\ud83d")],
    "letters": [Item('zażółć 🦀 \x00 \u2028 \n "', id="ü", sources=("ä", "ö"), score=0.1 + 0.2)],
    "zone": [Item("one", valid_to="2026-03-01T10:00:30+02:00", review=True, score=1)],
}
"""What is given to a question, in and out of order."""


class Able(Plain):
    """Every capability, and a copy that is one of its own."""

    made = 0

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.models: Any = None

    def connect(self, models: Any) -> None:
        self.models = models

    def told(self, script: Any) -> None:
        self.script = script

    def active(self, tenant: str) -> Sequence[Item]:
        return [Item(text, id=tenant) for text in self.texts]

    def history(self, subject: Subject) -> Sequence[Item]:
        return [Item(f"{subject.topic} {subject.field} {self.script.sha256()}")]

    def salience(self, subject: Subject) -> Any:
        known = {"none": None, "nan": float("nan"), "word": "high", "narrow": Narrow()}
        return known.get(subject.topic, float(len(self.texts)))

    def maintain(self, at: str) -> None:
        self.texts.append(at)

    def recover(self, subject: Subject) -> Sequence[Item]:
        return [Item(repr(self.models))]

    def erase(self, tenant: str, subject: Subject | None) -> None:
        self.texts = [] if subject is None else [t for t in self.texts if subject.topic not in t]

    def size_bytes(self) -> int:
        return sum(map(len, self.texts))

    def fork(self) -> Able:
        twin = Able(**self.settings)
        twin.texts = list(self.texts)
        type(self).made += 1
        return twin

    def __del__(self) -> None:
        type(self).made -= 1


class Closed(Plain):
    """Cannot be opened."""

    def open(self, folder: Path) -> None:
        raise OSError("the disk is full")


class Slow(Plain):
    """Takes its time to open."""

    def open(self, folder: Path) -> None:
        time.sleep(0.8)
        self.texts = []


class Telling(Plain):
    """Has a switch of telemetry, which it sets when it is opened."""

    def open(self, folder: Path) -> None:
        os.environ["ODD_TELEMETRY"] = str(self.settings["telemetry"])


class NoMemory:
    """Says nothing."""


def loud(**settings: Any) -> Plain:
    print("a word before anything else")
    return Plain(**settings)


def leaving() -> Plain:
    print("no key", file=sys.stderr)
    raise SystemExit(4)


class Fresh(Plain):
    """Begins empty each time it is opened, unless it was told to refuse."""

    def open(self, folder: Path) -> None:
        if "refuse" in self.texts:
            raise RuntimeError("once is enough")
        (folder / "new").mkdir()
        self.texts = []

    def ingest(self, turn: Utterance) -> None:
        if turn.text == "exit":
            os._exit(3)
        super().ingest(turn)

    def retrieve(self, query: Query) -> Sequence[Item]:
        return [Item(str(os.getpid()))] if query.text == "pid" else super().retrieve(query)
