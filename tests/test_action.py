"""The GitHub Action: its inputs, its shell, and its steps run for real."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

FOLDER = Path(".github") / "actions" / "judge"


@pytest.fixture(scope="module")
def action(root: Path) -> dict[str, Any]:
    return yaml.safe_load((root / FOLDER / "action.yml").read_text())


def test_no_input_reaches_the_shell_but_as_a_variable(action: dict[str, Any]) -> None:
    """Shell text is constant: a title or a branch cannot become a command."""
    used = set()
    for step in action["runs"]["steps"]:
        if "run" in step:
            assert "${{" not in step["run"]
            assert step["shell"] == "bash"
            variables = set(re.findall(r"\$\{?([A-Z_]+)", step["run"]))
            assert variables <= set(step.get("env", {})) | {"GITHUB_STEP_SUMMARY"}
            for variable in variables - {"GITHUB_STEP_SUMMARY"}:
                assert re.search(rf'"(\S*=)?\${variable}"', step["run"]), (
                    f"{variable} is not quoted"
                )
        else:
            assert re.fullmatch(r"actions/[\w-]+@v\d+", step["uses"])
        for value in (*step.get("env", {}).values(), *step.get("with", {}).values()):
            used |= set(re.findall(r"\$\{\{ inputs\.([\w-]+) \}\}", str(value)))
    assert used == set(action["inputs"])


def test_all_inputs_are_described(root: Path, action: dict[str, Any]) -> None:
    """In the action and in its page, with the same defaults; the example uses no others."""
    page = (root / FOLDER / "README.md").read_text()
    for name, given in action["inputs"].items():
        assert given["description"].endswith(".")
        default = given.get("default", "")
        assert re.search(rf"^\| `{name}` \| {re.escape(f'`{default}`' if default else '')} ?\|", page, re.MULTILINE), name  # fmt: skip
    example = yaml.safe_load((root / FOLDER / "example.yml").read_text())
    (with_,) = (step["with"] for job in example["jobs"].values() for step in job["steps"] if "with" in step)  # fmt: skip
    assert set(with_) <= set(action["inputs"])


def test_the_rules_of_the_example_read(root: Path) -> None:
    """What the example writes under fail-on is what `compare` understands."""
    from steeltrap.harness.compare import read_rules

    example = yaml.safe_load((root / FOLDER / "example.yml").read_text())
    assert len(read_rules(example["jobs"]["judge"]["steps"][1]["with"]["fail-on"])) == 3


class Runner:
    """Runs the shell steps of a composite action as GitHub does."""

    def __init__(self, action: dict[str, Any], folder: Path, **inputs: str) -> None:
        self.steps = [step for step in action["runs"]["steps"] if "run" in step]
        defaults = {name: given.get("default", "") for name, given in action["inputs"].items()}
        self.inputs = defaults | inputs
        self.folder = folder
        self.said = ""

    def run(self) -> int:
        """The exit code of the first step that fails; later ones run where they say `always()`."""
        code = 0
        for step in self.steps:
            if code and step.get("if") != "always()":
                continue
            code = self._step(step) or code
        return code

    def _step(self, step: dict[str, Any]) -> int:
        given = {
            key: re.sub(r"\$\{\{ inputs\.([\w-]+) \}\}", lambda m: self.inputs[m[1]], value)
            for key, value in step.get("env", {}).items()
        }
        kept = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST")}
        path = os.pathsep.join([str(Path(sys.executable).parent), kept["PATH"]])
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
            cwd=self.folder, capture_output=True, text=True, check=False,
            env=kept | given | {"PATH": path, "GITHUB_STEP_SUMMARY": str(self.summary)},
        )  # fmt: skip
        self.said += done.stdout + done.stderr
        return done.returncode

    @property
    def summary(self) -> Path:
        return self.folder / "summary.md"


def test_its_steps_judge_a_memory(action: dict[str, Any], tmp_path: Path) -> None:
    """No baseline: red, with one to commit. The same memory: green. A worse one: red, and says so."""
    inputs = {
        "system": "mine:Mine", "settings": "script=flip-flop script.turns=30 seed=range(0,2)",
        "install": "echo installed $((1+1)) > installed.txt",
    }  # fmt: skip
    mine = tmp_path / "mine.py"
    mine.write_text("from steeltrap.adapters.flat import Flat as Mine\n")
    first = Runner(action, tmp_path, **inputs)
    assert first.run() == 2
    assert (tmp_path / "installed.txt").read_text() == "installed 2\n"
    assert re.search("^::error title=steeltrap::There is no baseline yet", first.said, re.MULTILINE)
    out = tmp_path / "steeltrap-out"
    (out / "steeltrap-baseline.json").rename(tmp_path / "steeltrap-baseline.json")
    same = Runner(action, tmp_path, **inputs)
    assert same.run() == 0, same.said
    assert {"page.html", "junit.xml", "comparison.json", "comparison.md"} <= {p.name for p in out.iterdir()}  # fmt: skip
    mine.write_text(
        "from steeltrap.adapters.flat import Flat\n"
        "class Mine(Flat):\n"
        "    def retrieve(self, query):\n"
        "        return self.active(query.tenant)[:1]\n"
    )
    worse = Runner(action, tmp_path, **inputs)
    assert worse.run() == 1, worse.said
    assert re.search("^::error ", worse.said, re.MULTILINE)
    assert "worse" in same.summary.read_text()


def test_the_summary_says_that_nothing_was_judged(action: dict[str, Any], tmp_path: Path) -> None:
    """A run that cannot be made, and rules that do not read, are red and say so in the summary."""
    inputs = {"system": "flat", "settings": "script=figure-1", "install": "true"}
    (tmp_path / "steeltrap-baseline.json").write_text("{}")
    for wrong, said in (
        ({"system": ""}, "could not run"),
        ({"fail-on": "C9"}, "could not compare"),
    ):
        judged = Runner(action, tmp_path, **inputs | wrong)
        assert judged.run() in (1, 2)
        assert said in judged.summary.read_text()


def test_what_is_given_is_never_a_command(action: dict[str, Any], tmp_path: Path) -> None:
    """A system, a setting or a rule with shell in it is a word that nobody understands."""
    for name in ("system", "settings"):
        evil = Runner(action, tmp_path, **{"system": "flat", "install": "true", name: "$(touch pwned) `touch pwned`; touch pwned"})  # fmt: skip
        assert evil.run() != 0
        assert not list(tmp_path.rglob("pwned"))
