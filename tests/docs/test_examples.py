"""The code in the documentation is run: a system, a family, a check with its mutant."""

from __future__ import annotations

import os
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from steeltrap.adapters.ideal import Ideal
from steeltrap.harness import verdict
from steeltrap.harness.checks import Scorer
from steeltrap.harness.conformance import CHECKS, NotApplicable, put
from steeltrap.harness.driver import Driver
from steeltrap.harness.memory import Memory, capabilities
from steeltrap.harness.readers import Oracle
from steeltrap.harness.script import Probe, Script
from steeltrap.harness.validate import examine
from steeltrap.workloads.compose import ScriptSettings, compose
from steeltrap.workloads.families import EVERY


def example(docs: Path, name: str) -> dict[str, Any]:
    return runpy.run_path(str(docs / "examples" / f"{name}.py"))


@pytest.fixture(scope="module")
def installed(docs: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder into which the example's package is installed."""
    folder = tmp_path_factory.mktemp("installed")
    subprocess.run(
        [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index",
         "--no-build-isolation", "--target", str(folder), str(docs / "examples" / "notebook")],
        check=True, capture_output=True,
    )  # fmt: skip
    return folder


@pytest.mark.parametrize("more", [[], ["+system.keep=5"]])
def test_the_notebook_runs_by_its_name(installed: Path, tmp_path: Path, more: list[str]) -> None:
    """Installed beside steeltrap it is a system by its entry point, its arguments are settings."""
    done = subprocess.run(
        [sys.executable, "-m", "steeltrap", "run", "system=notebook", "script=figure-1", *more],
        cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(installed), "COLUMNS": "120"},
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "notebook" in done.stdout
    assert list(tmp_path.glob("runs/figure-1/notebook*/record.json"))


@pytest.mark.parametrize("name", CHECKS)
def test_the_notebook_keeps_to_the_contract(docs: Path, tmp_path: Path, name: str) -> None:
    """It passes every check of the contract that it has anything for."""
    make = example(docs, "notebook/notebook")["Notebook"]
    try:
        put(CHECKS[name], make, tmp_path / "memory")
    except NotApplicable as reason:
        pytest.skip(str(reason))


def test_the_family_is_one(docs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The family makes true scripts, comes back to a value, and the ideal memory holds on it."""
    monkeypatch.setitem(EVERY, "second-thoughts", example(docs, "family")["second_thoughts"])
    chosen = ScriptSettings(name="second-thoughts", turns=40, families={"second-thoughts": 1.0})
    script = compose(chosen, seed=1)
    ops = [op.op for step in script.steps for op in getattr(step, "ops", ())]
    assert {"tell", "revise", "revert"} <= set(ops)
    assert (set(), 0) == examine(Ideal, script)


def test_the_check_sees_its_mutant_alone(docs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The example's check names the example's mutant, and not the ideal memory."""
    beyond = verdict.NAMES["beyond"]
    monkeypatch.setitem(verdict.NAMES, "beyond", (*beyond, "repeated-item"))
    repetition = example(docs, "check")["Repetition"]
    mutant = example(docs, "mutant")["SaysItTwice"]
    family = mutant.families[0]
    script = compose(ScriptSettings(name=family, turns=60, families={family: 1.0}), seed=0)
    for make, names in ((mutant, {"repeated-item"}), (Ideal, set())):
        sheet = looked_at(make(), script, repetition())
        assert sheet.verdict().opportunities > 20
        assert names == {violation.name for violation in sheet.violations}


def looked_at(memory: Memory, script: Script, check: Any) -> Any:
    """The sheet of a check that has seen a run."""
    memory.told(script)  # type: ignore[attr-defined]
    memory.open(Path())
    driver = Driver(memory, 10, None)
    scorer = Scorer(script.header, capabilities(memory), Oracle())
    for i, step in enumerate(script.steps):
        scorer.observe(step, driver.do(i, step))
        if isinstance(step, Probe) and scorer.view is not None:
            check.probe(scorer.view)
    return check.sheet
