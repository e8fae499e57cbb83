"""Runs commands of steeltrap, each in a process of its own that has everything imported already.

Reads a request a line from standard input, and says how the command ended in a line of standard
output. The command's own output goes into files.
"""

from __future__ import annotations

import contextlib
import functools
import io
import json
import os
import re
import resource
import signal
import sys
import tempfile
import time
import traceback
from pathlib import Path
from typing import Any

import shims


def warm() -> None:
    """Import all that a run, its table and its report need, by making one."""
    from steeltrap.harness.cli import main

    with tempfile.TemporaryDirectory() as folder:
        said = io.StringIO()
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            code = main(["run", "system=flat,ideal", "script=figure-1", f"runs={folder}"])
    assert code == 0, said.getvalue()


def composed_once() -> None:
    """Compose the settings of the same words once for all children: it takes longer than their runs."""
    from steeltrap.harness.commands import run as command

    cells = functools.cache(lambda words: command_cells(list(words)))
    command_cells = command.cells
    command.cells = lambda asked: list(cells(tuple(asked)))


def become(asked: dict[str, Any]) -> None:
    """What the child does; does not return."""
    code = 99
    try:
        os.setpgid(0, 0)
        os.chdir(asked["folder"])
        for name, number in (("out", 1), ("err", 2)):
            made = os.open(asked[name], os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND)
            os.dup2(made, number)
            os.close(made)
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        sys.stdout = io.TextIOWrapper(io.FileIO(1, "w", closefd=False), write_through=True)
        sys.stderr = io.TextIOWrapper(io.FileIO(2, "w", closefd=False), write_through=True)
        os.environ |= {"COLUMNS": "80"}
        for name, given in asked["shims"]:
            getattr(shims, name)(**given)
        from steeltrap.harness.cli import main

        code = main(asked["words"])
        sys.stdout.flush()
    except BaseException:
        traceback.print_exc()
        raise
    finally:
        os._exit(code)


def peak_mb(process: int) -> float:
    """The most that a process itself has had in memory; what is told at its end is also of its own
    children."""
    try:
        told = Path(f"/proc/{process}/status").read_text()
    except OSError:
        return 0.0
    found = re.search(r"VmHWM:\s+(\d+) kB", told)
    return int(found[1]) / 1024 if found else 0.0


def ended(asked: dict[str, Any]) -> dict[str, Any]:
    """Run a command; says how it ended: its code, or the signal as a negative number."""
    sys.stdout.flush()
    if asked["words"][0] == "run":
        from steeltrap.harness.commands import run as command

        with contextlib.suppress(Exception):  # what is wrong with them is said by the child
            command.cells(asked["words"][1:])
    began = time.monotonic()
    child = os.fork()
    if not child:
        become(asked)
    status = 0
    kill_at = began + asked["kill_after_s"] if asked["kill_after_s"] is not None else None
    deadline = began + asked["timeout_s"]
    late, mb, looks = False, 0.0, 0
    while True:
        looks += 1
        if looks % 20 == 0:
            mb = peak_mb(child) or mb
        done, status, used = os.wait4(child, os.WNOHANG)
        if done:
            break
        now = time.monotonic()
        if (kill_at is not None and now >= kill_at) or now > deadline:
            late = now > deadline
            os.kill(child, signal.SIGKILL)
            _, status, used = os.wait4(child, 0)
            break
        time.sleep(0.0005)
    try:
        os.killpg(child, signal.SIGKILL)  # what it has left behind
        left = True
    except ProcessLookupError:
        left = False
    return {
        "code": os.waitstatus_to_exitcode(status), "late": late, "left": left,
        "seconds": time.monotonic() - began, "mb": mb or used.ru_maxrss / 1024,
    }  # fmt: skip


def main() -> None:
    sys.path.insert(0, str(Path(__file__).parent))
    warm()
    composed_once()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    print("ready", flush=True)
    for line in sys.stdin:
        print(json.dumps(ended(json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
