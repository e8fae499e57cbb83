"""Commands of steeltrap under conditions that nobody wishes for."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pytest

from steeltrap.harness import history
from steeltrap.harness.history import fingerprint
from steeltrap.harness.record import read_record

HERE = Path(__file__).parent


@dataclass
class Ended:
    """How a command ended."""

    code: int
    """Its exit code; of one that was killed, the signal as a negative number."""
    out: str
    err: str
    seconds: float
    mb: float
    """Resident memory at its peak."""
    left: bool
    """Something that it had started was still there."""

    def __str__(self) -> str:
        return f"{self.code}: {self.out}{self.err}"


class Commands:
    """Runs commands in processes that need not import anything: in milliseconds, not seconds."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def __call__(
        self,
        folder: Path,
        *words: str,
        shims: list[tuple[str, dict[str, Any]]] | None = None,
        kill_after_s: float | None = None,
        timeout_s: float = 60.0,
        code: int | None = 0,
    ) -> Ended:
        """Run a command in a folder.

        Args:
            folder: its working directory.
            words: of the command line.
            shims: names of functions of `shims.py`, with what they are given.
            kill_after_s: SIGKILL then.
            timeout_s: a command that takes longer fails the test.
            code: the exit code that is due; None: any.
        """
        assert self._process.stdin is not None and self._process.stdout is not None
        out, err = (folder.parent / f".{folder.name}.{name}" for name in ("out", "err"))
        for path in (out, err):
            path.write_bytes(b"")  # it may be killed before it has made them
        asked = {
            "folder": str(folder), "words": words, "shims": shims or [], "out": str(out),
            "err": str(err), "kill_after_s": kill_after_s, "timeout_s": timeout_s,
        }  # fmt: skip
        self._process.stdin.write(json.dumps(asked) + "\n")
        self._process.stdin.flush()
        told = json.loads(self._process.stdout.readline())
        said = [path.read_bytes().decode(errors="replace") for path in (out, err)]
        ended = Ended(told["code"], *said, told["seconds"], told["mb"], told["left"])
        assert not told["late"], f"{words} took more than {timeout_s} s\n{ended}"
        assert code is None or ended.code == code, ended
        assert "Traceback" not in ended.err, ended
        return ended

    @staticmethod
    def harm(folder: Path, number: int, how: str) -> tuple[str, dict[str, Any]]:
        """The shim that does harm at the call of a number that changes a file of the folder."""
        log = str(folder.parent / f"{folder.name}.calls")
        return ("files", {"below": str(folder), "at": number, "how": how, "log": log})

    @staticmethod
    def histories(folder: Path) -> list[Path]:
        """The histories of a run, in the order in which they are written."""
        found: list[Path] = []
        for cell in sorted({path.parent for path in folder.rglob("spec.json")}):
            found += history.find(cell, "history.jsonl")
            found += history.find(cell / "twins", "*.history.jsonl")
        return found

    @staticmethod
    def kinds(calls: list[str]) -> list[int]:
        """The number of the first call of each kind on each file."""
        places: dict[str, int] = {}
        for number, call in enumerate(calls, 1):
            places.setdefault(call, number)
        return sorted(places.values())


class Whole:
    """A run that nobody disturbed: what it has left, and the changes of files that it took."""

    def __init__(
        self, commands: Commands, folder: Path, words: tuple[str, ...], shims: Any
    ) -> None:
        self.words, self.shims = words, shims
        self.seconds = commands(
            folder, *words, shims=[*shims, commands.harm(folder, 0, "")]
        ).seconds
        self.calls = (folder.parent / f"{folder.name}.calls").read_text().splitlines()
        self.state = self.of(folder)
        assert self.state["records"]

    @staticmethod
    def of(folder: Path) -> dict[str, Any]:
        """All that a run leaves, without what differs from run to run: wall times."""
        paths = sorted(path for path in folder.rglob("*") if path.is_file())
        return {
            "files": [str(path.relative_to(folder)) for path in paths],
            "records": [
                msgspec.json.encode(read_record(path).outcome, order="sorted")
                for path in paths if path.name == "record.json"
            ],
            "violations": [path.read_bytes() for path in paths if path.name == "violations.jsonl"],
            "histories": [fingerprint(path) for path in Commands.histories(folder)],
        }  # fmt: skip


@pytest.fixture(scope="session")
def commands(root: Path) -> Iterator[Commands]:
    """Runs commands of steeltrap; memories are found in `memories.py`."""
    process = subprocess.Popen(
        [sys.executable, str(HERE / "zygote.py")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": f"{root / '.src'}{os.pathsep}{HERE}"},
    )
    assert process.stdout is not None
    assert "ready\n" == process.stdout.readline()
    yield Commands(process)
    process.communicate(timeout=30)


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """An empty folder to start commands in."""
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


@pytest.fixture(scope="session")
def wholes(commands: Commands, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Undisturbed runs by what was asked, each made once; or with histories that are compressed."""
    made: dict[tuple[tuple[str, ...], bool], Whole] = {}

    def whole(*words: str, compressed: bool = False) -> Whole:
        if (words, compressed) not in made:
            folder = tmp_path_factory.mktemp("whole") / "work"
            folder.mkdir()
            shims = [("whole", {"value": 1})] if compressed else []
            made[words, compressed] = Whole(commands, folder, words, shims)
        return made[words, compressed]

    return whole
