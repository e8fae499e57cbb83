"""`pytest --steeltrap`, run for real in folders of its own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import NamedTuple

import pytest

MINE = '''
from steeltrap.adapters.flat import Flat


class Mine(Flat):
    """A window that serves no more than it may."""

    def retrieve(self, query):
        return list(super().retrieve(query))[: query.limit]


class Worse(Mine):
    """The oldest first: what was replaced stands before what holds."""

    def retrieve(self, query):
        return self.active(query.tenant)[: query.limit]


class Raises(Mine):
    """Cannot erase what it was not told by name."""

    def erase(self, tenant, subject):
        if subject is not None:
            raise KeyError("\\x1b[31mno such subject\\n::error::red")
        super().erase(tenant, subject)


class Shut(Mine):
    """Cannot be opened."""

    def open(self, folder):
        raise OSError("no such database")
'''
QUICK = ("--steeltrap-turns=60", "--steeltrap-seeds=1", "-p", "no:randomly")


class Ran(NamedTuple):
    code: int
    said: str
    cases: dict[str, ET.Element]
    """By node id."""

    def outcome(self, node: str) -> str:
        children = [child.tag for child in self.cases[node]]
        return children[0] if children else "passed"

    def words(self, node: str) -> str:
        return "".join(child.text or "" for child in self.cases[node])


def run(folder: Path, *words: str, text: str = MINE) -> Ran:
    """pytest in a folder with a module `mine`."""
    folder.mkdir(exist_ok=True)
    (folder / "mine.py").write_text(text)
    path = folder / "junit.xml"
    path.unlink(missing_ok=True)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "--junitxml=junit.xml", "-rsx", *words],
        cwd=folder, capture_output=True, text=True, check=False, timeout=300,
        env={key: value for key, value in os.environ.items() if not key.startswith("PYTEST")},
    )  # fmt: skip
    cases = {}
    if path.exists():
        for case in ET.parse(path).iter("testcase"):
            names = [*str(case.get("classname")).split("."), str(case.get("name"))]
            cases["::".join(names)] = case
    return Ran(done.returncode, done.stdout + done.stderr, cases)


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Ran]:
    """A memory on trial in a folder without any test, once for several tests."""
    folder = tmp_path_factory.mktemp("judged")
    return folder, run(folder, "--steeltrap", "mine:Mine", *QUICK)


def test_is_silent_and_light_where_it_is_not_asked_for() -> None:
    """Loading the plugin imports nothing of ours but itself, and nothing that pytest has not."""
    asked = (
        "import sys, pytest, uuid; before = set(sys.modules); import steeltrap.harness.pytest_plugin;"
        "print(sorted(set(sys.modules) - before))"
    )
    said = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == str(
        ["steeltrap", "steeltrap.harness", "steeltrap.harness.pytest_plugin"]
    )


def test_there_is_an_item_for_every_rule_and_every_name(judged: tuple[Path, Ran]) -> None:
    """Nothing of the contract and no violation is left out, and no test file is needed."""
    from steeltrap.harness.conformance import CHECKS
    from steeltrap.harness.verdict import NAMES

    ran = judged[1]
    due = [f"steeltrap::contract::{name}" for name in CHECKS] + ["steeltrap::run::every-step"]
    due += [
        f"steeltrap::{condition}::{name}" for condition, names in NAMES.items() for name in names
    ]
    assert due == list(ran.cases)
    assert ran.code == 1
    assert f"collected {len(due)} items" in ran.said


def test_a_failure_shows_the_witness_and_how_to_keep_it(judged: tuple[Path, Ran]) -> None:
    """Four lines of a conversation, how many more there are, and a command that works."""
    folder, ran = judged
    assert ran.outcome("steeltrap::C1::exposed-history") == "failure"
    words = ran.words("steeltrap::C1::exposed-history")
    found = re.search(
        r"exposed-history: \d+ of \d+ opportunities\n.*\n\n"
        r"user: .*\nuser: .*\nasked: .*\ndue: .*\nanswered: also .*\n\n"
        r"and \d+ more like it; found in a script of 60 turns \(seed 0\), cut down to 2\n"
        r"to keep it: steeltrap (shrink \S+ exposed-history out=(\S+))$",
        words,
    )
    assert found, repr(words)
    assert found[0] in ran.said
    kept = subprocess.run(
        [sys.executable, "-m", "steeltrap", *found[1].split(), "budget_s=20"],
        cwd=folder, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert kept.returncode == 0, kept.stderr
    assert (folder / found[2]).is_file()


def test_what_was_not_seen_is_skipped_with_the_reason(judged: tuple[Path, Ran]) -> None:
    """Not observable, not put to the test, no such capability: never a pass."""
    ran = judged[1]
    for node, why in {
        "steeltrap::C4::wrong-order": "not observable: there is no history to look up",
        "steeltrap::C2::half-applied": "not put to the test in 60 turns",
        "steeltrap::contract::forks-leave-alone": "the memory has no fork",
    }.items():
        assert ran.outcome(node) == "skipped"
        assert why in ran.words(node)
        assert f"{node}: {why}" in ran.said


def test_the_rest_passes(judged: tuple[Path, Ran]) -> None:
    """What was put to the test and not violated is a pass, the contract among it."""
    ran = judged[1]
    for node in ("contract::begins-empty", "run::every-step", "C1::stale-read", "C2::resurrection"):
        assert ran.outcome(f"steeltrap::{node}") == "passed"
    assert {ran.outcome(node) for node in ran.cases if "::contract::" in node} == {
        "passed",
        "skipped",
    }


def test_what_is_allowed_does_not_fail(tmp_path: Path) -> None:
    """An allowed violation is an expected failure; ini files hold all options, beside own tests."""
    (tmp_path / "pyproject.toml").write_text(
        '[tool.pytest.ini_options]\nsteeltrap = "mine:Mine"\nsteeltrap_turns = "60"\n'
        'steeltrap_seeds = "1"\nsteeltrap_shrink = "0"\n'
        'steeltrap_allow = ["exposed-history", "history-denied", "superseded-active"]\n'
    )
    (tmp_path / "test_own.py").write_text("def test_own():\n    pass\n")
    ran = run(tmp_path, "-k", "C1 or C2 or own")
    assert ran.code == 0, ran.said
    assert ran.outcome("test_own::test_own") == "passed"
    assert ran.outcome("steeltrap::C1::exposed-history") == "skipped"
    assert "XFAIL steeltrap::C1::exposed-history - allowed: exposed-history: " in ran.said


def test_a_baseline_knows_what_was_there_and_fails_on_more(judged: tuple[Path, Ran]) -> None:
    """As before: known. Worse: a failure of the name, and of the comparison."""
    folder = judged[0]
    runs = ".pytest_cache/d/steeltrap"
    subprocess.run(
        [sys.executable, "-m", "steeltrap", "baseline", runs, "--to", "base.json"],
        cwd=folder, capture_output=True, check=True,
    )  # fmt: skip
    words = (
        "--steeltrap-baseline=base.json",
        "--steeltrap-shrink=0",
        *QUICK,
        "-k",
        "run or C1 or C2",
    )
    same = run(folder, "--steeltrap", "mine:Mine", *words)
    assert same.code == 0, same.said
    assert "XFAIL steeltrap::C1::exposed-history" in same.said
    assert same.outcome("steeltrap::run::no-worse-than-baseline") == "passed"
    worse = MINE.replace("class Mine(Flat)", "class Base(Flat)").replace("(Mine)", "(Base)")
    ran = run(folder, "--steeltrap", "mine:Mine", *words, text=worse.replace("Worse", "Mine"))
    assert ran.code == 1
    assert "failure" in {ran.outcome(node) for node in ran.cases if "::C1::" in node}
    assert "worse: mine:Mine: worse in" in ran.words("steeltrap::run::no-worse-than-baseline")


def test_errors_of_the_memory_are_findings(tmp_path: Path) -> None:
    """Its own words and line are shown, as plain text, and what it hid is unknown and no pass."""
    ran = run(
        tmp_path, "--steeltrap", "mine:Raises", "--steeltrap-seeds=1", "--steeltrap-shrink=0",
        "--steeltrap-script=erasure", "--steeltrap-turns=40",
    )  # fmt: skip
    words = ran.words("steeltrap::run::every-step")
    assert re.match(r"\d+ of \d+ steps failed, so what they should have shown is unknown", words)
    assert "\nerase raised KeyError: '\\x1b[31mno such subject\\n::error::red'" in words
    assert "  mine.py:" in words
    assert "\x1b" not in ran.said
    assert not re.search("^::error::", ran.said, re.MULTILINE)
    assert ran.outcome("steeltrap::C1::stale-read") == "skipped"
    assert "unknown: " in ran.words("steeltrap::C1::stale-read")
    assert ran.outcome("steeltrap::contract::erases-a-subject") == "failure"


def test_a_memory_that_cannot_be_opened_fails_once(tmp_path: Path) -> None:
    """The run says why, and the names point there."""
    ran = run(tmp_path, "--steeltrap", "mine:Shut", *QUICK, "-k", "run or C1")
    assert "it cannot be opened: OSError: no such database" in ran.words(
        "steeltrap::run::every-step"
    )
    assert {ran.outcome(node) for node in ran.cases if "::C1::" in node} == {"skipped"}


def test_workers_of_xdist_share_the_runs(tmp_path: Path) -> None:
    """With -n 2 each seed is run once, and every item is judged."""
    ran = run(tmp_path, "--steeltrap", "mine:Mine", *QUICK, "--steeltrap-shrink=0", "-n2", "-k", "not contract")  # fmt: skip
    assert ran.outcome("steeltrap::C1::exposed-history") == "failure"
    kept = tmp_path / ".pytest_cache" / "d" / "steeltrap"
    assert len(list(kept.glob("*/record.json"))) == 1


def test_one_item_can_be_run_again_by_its_name(judged: tuple[Path, Ran]) -> None:
    """The id that pytest prints for a failure names it, and nothing is run to collect."""
    folder = judged[0]
    node = "steeltrap::C1::stale-read"
    ran = run(folder, node, "--steeltrap", "mine:Mine", *QUICK)
    assert [node] == list(ran.cases)
    before = sorted(folder.rglob("record.json"))
    stamps = [path.stat().st_mtime_ns for path in before]
    ran = run(folder, "--collect-only", "-q", "--steeltrap", "mine:Mine", *QUICK)
    assert node in ran.said
    assert stamps == [path.stat().st_mtime_ns for path in sorted(folder.rglob("record.json"))]


def test_a_test_of_ones_own_asked_for_by_name_is_run_alone(tmp_path: Path) -> None:
    """Whoever has the memory in the ini file and asks for one test gets that one."""
    (tmp_path / "test_own.py").write_text("def test_it():\n    pass\n")
    ini = '[tool.pytest.ini_options]\nsteeltrap = "mine:Mine"\n'
    (tmp_path / "pyproject.toml").write_text(ini)
    ran = run(tmp_path, "test_own.py::test_it")
    assert (0, ["test_own::test_it"]) == (ran.code, list(ran.cases))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--steeltrap", "nowhere.at:All"], "there is no module 'nowhere' here; install its package"),
        (["--steeltrap", "mine:Mine", "--steeltrap-seeds", "two"], "--steeltrap-seeds two: write a number"),
        (["steeltrap::C1"], "steeltrap::C1: needs --steeltrap MEMORY"),
        (["--steeltrap", "ends:Mine"], "--steeltrap: the memory, or what it imports, called sys.exit(0)"),
    ],
)  # fmt: skip
def test_slips_are_said_in_a_line(words: list[str], said: str, tmp_path: Path) -> None:
    """What cannot be put on trial ends the run at once, with what to do and without a traceback."""
    (tmp_path / "ends.py").write_text("import sys\n\nsys.exit(0)\n")
    ran = run(tmp_path, *words)
    assert ran.code == 4
    assert said in ran.said
    assert "Traceback" not in ran.said
