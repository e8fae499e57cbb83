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

import pytest

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
