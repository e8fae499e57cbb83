"""Which Python an environment's packages need, and where one is found."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from steeltrap.harness import pythons
from steeltrap.harness.pythons import HERE, NoPython

FAR = (3, 97)
"""A version that no machine has."""


def stand_in(folder: Path, name: str, program: str) -> Path:
    """A program that may say that it is a Python."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\n{program}\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with no other Python than this; gives the one folder on its path."""
    monkeypatch.delenv("STEELTRAP_PYTHON", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path / "pyenv"))
    monkeypatch.setenv("UV_PYTHON_INSTALL_DIR", str(tmp_path / "uv"))
    return tmp_path / "bin"


def test_pins_say_which_python_they_need() -> None:
    """In the command that made them; without it, or for an older one, this Python fits."""
    command = "# What is installed: made by\n#   uv pip compile --universal --python-version {} -\n"
    assert [HERE] == pythons.fitting("odd==1.2\n")
    assert [HERE] == pythons.fitting(command.format("3.11"))
    assert [HERE] == pythons.fitting("odd==1.2 # --python-version 3.97\n")
    assert [FAR] == pythons.fitting(command.format("3.97") + "odd==1.2\n")
    if HERE == (3, 11):
        assert [(3, 12), (3, 13)] == pythons.fitting(command.format("3.12"))


def test_this_python_is_used_where_it_fits(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever else is named: an environment beside the others is made like the others."""
    monkeypatch.setenv("STEELTRAP_PYTHON", "/nowhere")
    assert (Path(sys.executable), HERE) == pythons.search([HERE])


@pytest.mark.parametrize("where", ["path", "pyenv"])
def test_one_of_the_machine_is_found(where: str, bare: Path, tmp_path: Path) -> None:
    """On the path or in pyenv's folder, where it runs and is what its name says."""
    stand_in(bare, "python3.97", "echo 3 95")
    folder = tmp_path / "more" if where == "path" else tmp_path / "pyenv/versions/3.97.2/bin"
    right = stand_in(folder, "python3.97", "echo 3 97")
    with pytest.MonkeyPatch.context() as set_:
        if where == "path":
            set_.setenv("PATH", f"{bare}::{folder}")
        assert (right, FAR) == pythons.search([FAR])
        stand_in(bare, "python3.96", "echo no such command >&2; exit 127")
        assert (right, FAR) == pythons.search([(3, 96), FAR])


def test_none_is_refused_in_one_sentence(bare: Path) -> None:
    """It says what is needed, what this is, and how to name one."""
    stand_in(bare, "python3.97", "exit 127")
    with pytest.raises(NoPython, match=r"^needs Python 3\.97 or 3\.98; this is 3\.") as refused:
        pythons.search([FAR, (3, 98)])
    assert str(refused.value).endswith("or name it by STEELTRAP_PYTHON=/path/to/python3.97")


def test_a_named_one_comes_first(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is taken before any that is found, and refused where it does not fit or does not run."""
    stand_in(bare, "python3.97", "echo 3 97")
    named = stand_in(bare, "mine", "echo 3 98")
    monkeypatch.setenv("STEELTRAP_PYTHON", str(named))
    assert (named, (3, 98)) == pythons.search([FAR, (3, 98)])
    with pytest.raises(NoPython, match=rf"^needs Python 3\.97, and .*={named} is Python 3\.98$"):
        pythons.search([FAR])
    monkeypatch.setenv("STEELTRAP_PYTHON", "/nowhere")
    with pytest.raises(NoPython, match=r"STEELTRAP_PYTHON=/nowhere is no Python that runs$"):
        pythons.search([FAR])
