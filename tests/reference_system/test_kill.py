"""Kill tests: a store that is killed at any moment is what it was before or after a transition."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

KILLS = 200


def beside(name: str) -> ModuleType:
    """A module of this folder."""
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name(f"{name}.py"))
        assert spec is not None and spec.loader is not None
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["ladybug", "native"])
def test_a_kill_leaves_the_state_before_or_after(tmp_path: Path, kind: str) -> None:
    """After each kill, inside checkpoints and erasures too, the store holds whole transitions."""
    tally = beside("kill").kill_often(kind, tmp_path, KILLS)
    print(kind, tally)
    assert [] == tally.failed
    assert KILLS == tally.before + tally.after
    assert tally.inside >= KILLS // 4
    assert tally.after


def test_a_few_kills(tmp_path: Path) -> None:
    """The same in little, so that every run of the tests tries it."""
    tally = beside("kill").kill_often("ladybug", tmp_path, 4, seed=1)
    assert [] == tally.failed


@pytest.mark.slow
@pytest.mark.parametrize("trial", [("kill.py", "kuzu", "60"), ("against_plain.py", "kuzu", "4", "100")])  # fmt: skip
def test_what_kuzu_fails_is_told(trial: tuple[str, ...]) -> None:
    """Kuzu goes through the kills and the long lives too; what it fails is printed, not judged.

    In a process of its own: it must not share one with Ladybug, and may end it.
    """
    script, *words = trial
    call = [sys.executable, str(Path(__file__).with_name(script)), *words]
    path = os.pathsep.join(filter(None, sys.path))
    told = subprocess.run(call, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True)  # fmt: skip
    print(told.stdout)
    assert "" == told.stderr
    assert 0 == told.returncode
