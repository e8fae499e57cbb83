"""`steeltrap new`: the beginning of a package that adapts a memory."""

from __future__ import annotations

import importlib.resources
import importlib.util
import keyword
import re
import sys
from collections.abc import Iterator
from importlib.resources.abc import Traversable
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Final

from steeltrap.harness.settings import SettingsError, options

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["new"]

_TEMPLATE: Final = importlib.resources.files("steeltrap.adapters") / "template"
_SUFFIX: Final = ".template"
"""So that no tool takes the files of the template for code of this package."""
_DOT: Final = "dot-"
"""Stands for the dot of a hidden file, which builders of wheels may leave out."""


def new(name: str, to: Path | None, out: Console) -> None:
    """Write a package that installs, registers a memory and passes the contract tests.

    Args:
        name: of the memory, as my-memory; its package is my_memory, its class MyMemory.
        to: the folder, new or empty; by default one of that name.
        out: is told what was written, and what to do next.

    Raises:
        SettingsError: the name cannot be had, or the folder holds something.
        OSError: it cannot be written.
    """
    package = name.replace("-", "_")
    _must_be_free(name, package)
    folder = to or Path(name)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise SettingsError(f"{folder}: is there already; --to FOLDER chooses another one")
    for path, text in _files(name, package):
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
        out.print(str(target), markup=False, highlight=False, soft_wrap=True)
    out.print(
        f"\nNext: cd {folder}; pip install -e '.[test]'; pytest",
        markup=False, highlight=False, soft_wrap=True,
    )  # fmt: skip


def _must_be_free(name: str, package: str) -> None:
    """Refuse a name that cannot be one of a package, a module and a system, or that is taken."""
    if not re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", name):
        raise SettingsError(
            f"'{name}' cannot name a package: write lower-case letters, digits and single dashes,"
            " as my-memory"
        )
    if name in options("system"):
        raise SettingsError(f"there is a system '{name}' already; choose another name")
    if keyword.iskeyword(package) or package in sys.stdlib_module_names:
        raise SettingsError(f"'{package}' is a word of Python's own; choose another name")
    if re.match(r"tests?(_|$)", package):
        raise SettingsError(f"pytest would take '{package}' for tests; choose another name")
    if importlib.util.find_spec(package) is not None:
        raise SettingsError(
            f"a module '{package}' can be imported here already; choose another name"
        )


def _files(name: str, package: str) -> Iterator[tuple[PurePosixPath, str]]:
    """Each file of the template, by its path, in the words of the new package."""
    kind = "".join(word.capitalize() for word in name.split("-"))
    words = {"my-memory": name, "my_memory": package, "MyMemory": kind}
    for path, text in _below(_TEMPLATE, PurePosixPath()):
        parts = [part.replace(_DOT, ".", 1) if part.startswith(_DOT) else part for part in path.parts]  # fmt: skip
        place = "/".join(parts).removesuffix(_SUFFIX)
        for old, new in words.items():
            place, text = place.replace(old, new), text.replace(old, new)
        yield PurePosixPath(place), text


def _below(folder: Traversable, path: PurePosixPath) -> Iterator[tuple[PurePosixPath, str]]:
    for entry in sorted(folder.iterdir(), key=lambda one: one.name):
        if entry.is_dir():
            yield from _below(entry, path / entry.name)
        elif entry.name.endswith(_SUFFIX):
            yield path / entry.name, entry.read_text(encoding="utf-8")
