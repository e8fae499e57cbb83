"""The reference system against a plain model of M: it lives as the model does, on every store."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest


def beside(name: str) -> ModuleType:
    """A module of this folder."""
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name(f"{name}.py"))
        assert spec is not None and spec.loader is not None
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]


beside("model")


@pytest.mark.parametrize(("kind", "examples"), [("plain", 100), ("native", 30), ("ladybug", 3)])
def test_memory_lives_as_the_model_does(kind: str, examples: int) -> None:
    """Whatever is said, asked, forgotten and erased: memory and model hold and answer the same."""
    beside("lives").live(kind, examples, 25, seed=1)


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "examples"), [("plain", 1500), ("native", 400), ("ladybug", 40)])
def test_memory_lives_as_the_model_does_for_long(kind: str, examples: int) -> None:
    """The same for many and longer lives, other ones each time."""
    beside("lives").live(kind, examples, 40)


@pytest.mark.slow
def test_what_kuzu_makes_of_it_is_told() -> None:
    """Kuzu lives too; how its lives end is printed, not judged.

    In processes of their own: it must not share one with Ladybug, and may end it.
    """
    call = [sys.executable, str(Path(__file__).with_name("lives.py")), "kuzu", "6", "25"]
    path = os.pathsep.join(filter(None, sys.path))
    told = subprocess.run(call, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True)  # fmt: skip
    print(told.stdout)
    assert "" == told.stderr
    assert 0 == told.returncode
    assert 6 == len(told.stdout.splitlines())
