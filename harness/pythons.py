"""Pythons for environments whose packages need a newer one than this.

Which one packages need stands where it was decided: in the comment of a `requirements.txt` that
gives the command it was made by, `uv pip compile ... --python-version 3.12 ...`.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

__all__ = ["HERE", "NAMED", "NoPython", "Version", "fitting", "search"]

Version = tuple[int, int]
HERE: Final[Version] = sys.version_info[:2]
"""The version of this Python."""
NAMED: Final = "STEELTRAP_PYTHON"
"""The environment variable that names a Python for those environments that this one does not fit."""
_NEWEST: Final[Version] = (3, 13)
"""Of the Pythons that workers are tried on."""


class NoPython(RuntimeError):
    """No Python that fits; the message says what is needed and how to name one."""


def fitting(requirements: str) -> list[Version]:
    """The versions of Python that can hold what is pinned, the best first.

    Args:
        requirements: the pins' text. What does not say which Python it needs fits this one.
    """
    told = re.search(r"^#.*--python-version[ =](\d+)\.(\d+)", requirements, re.MULTILINE)
    needed = (int(told[1]), int(told[2])) if told else HERE
    if needed <= HERE:
        return [HERE]
    return [(needed[0], minor) for minor in range(needed[1], max(_NEWEST[1], needed[1]) + 1)]


def search(versions: Sequence[Version]) -> tuple[Path, Version]:
    """A Python of one of these versions, and which it is.

    This one; otherwise the one that `STEELTRAP_PYTHON` names; otherwise one that runs of those on
    the path, in pyenv's folder, or installed by uv. None is downloaded.

    Args:
        versions: those that fit, the best first.

    Raises:
        NoPython: there is none, or the one named does not fit.
    """
    if HERE in versions:
        return Path(sys.executable), HERE
    words = " or ".join(map(_written, versions))
    if named := os.environ.get(NAMED):
        version = _version(Path(named))
        if version is None or version not in versions:
            found = f"Python {_written(version)}" if version else "no Python that runs"
            raise NoPython(f"needs Python {words}, and {NAMED}={named} is {found}")
        return Path(named), version
    for version in versions:
        for python in _places(version):
            if _version(python) == version:
                return python, version
    raise NoPython(
        f"needs Python {words}; this is {_written(HERE)}, and no other that fits was found: install"
        f" one, or name it by {NAMED}=/path/to/python{_written(versions[0])}"
    )


def _places(version: Version) -> Iterator[Path]:
    """Where a Python of a version may be; not each of them is there, or runs."""
    name = f"python{_written(version)}"
    yield from (Path(folder, name) for folder in os.get_exec_path() if folder)
    pyenv = Path(os.environ.get("PYENV_ROOT") or "~/.pyenv").expanduser()
    yield from sorted(pyenv.glob(f"versions/{_written(version)}.*/bin/{name}"), reverse=True)
    yield from _of_uv(version)


def _of_uv(version: Version) -> Iterator[Path]:
    import uv

    asked = [uv.find_uv_bin(), "python", "find", "--managed-python", "--no-python-downloads"]
    found = subprocess.run(
        [*asked, "--no-project", _written(version)],
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
    )
    if not found.returncode:
        yield Path(found.stdout.strip())


def _version(python: Path) -> Version | None:
    """What a Python says it is; None where it does not run (pyenv's stand-ins may not)."""
    program = "import sys; print(*sys.version_info[:2])"
    try:
        told = subprocess.run(
            [python, "-I", "-c", program],
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            timeout=30,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    numbers = re.fullmatch(r"(\d+) (\d+)\n", told.stdout)
    return (int(numbers[1]), int(numbers[2])) if numbers else None


def _written(version: Version) -> str:
    return f"{version[0]}.{version[1]}"
