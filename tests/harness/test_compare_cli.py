"""`steeltrap baseline` and `steeltrap compare`, as they are called."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from steeltrap.harness.cli import main


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`good` and `bad`, two finished runs of figure 1."""
    folder = tmp_path_factory.mktemp("runs")
    for name, system in (("good", "ideal"), ("bad", "flat")):
        assert main(["run", f"system={system}", "script=figure-1", f"runs={folder / name}"]) == 0
    return folder


def test_a_baseline_is_written_and_compared_with(runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:  # fmt: skip
    """A run is green against its own baseline, and a worse one is red, in every form."""
    file = tmp_path / "deep" / "baseline.json"
    assert main(["baseline", str(runs / "good"), "--to", str(file)]) == 0
    assert main(["compare", str(file), str(runs / "good")]) == 0
    assert "nothing is worse on 1 script" in capsys.readouterr().out
    to = {form: tmp_path / f"out.{form}" for form in ("markdown", "junit", "json")}
    files = [word for form, path in to.items() for word in (f"--{form}", str(path))]
    assert main(["compare", str(file), str(runs / "bad"), "--github", *files]) == 1
    out = capsys.readouterr().out
    assert "WORSE: flat: worse in C1" in out
    assert "::error title=flat%3A exposed-history is worse::" in out
    assert to["markdown"].read_text().startswith("### steeltrap: worse")
    assert int(ET.parse(to["junit"]).getroot().get("failures", "0")) > 0
    assert json.loads(to["json"].read_bytes())["exit_code"] == 1
    first = {form: path.read_bytes() for form, path in to.items()}
    assert main(["compare", str(file), str(runs / "bad"), *files]) == 1
    assert first == {form: path.read_bytes() for form, path in to.items()}


def test_a_run_is_written_once_however_often_it_is_named(runs: Path, tmp_path: Path) -> None:
    """A folder and a run in it are one run, and no repeat of it."""
    (run,) = (path.parent for path in (runs / "good").rglob("record.json"))
    once, twice = tmp_path / "once.json", tmp_path / "twice.json"
    assert main(["baseline", str(run), "--to", str(once)]) == 0
    assert main(["baseline", str(runs / "good"), str(run), str(run), "--to", str(twice)]) == 0
    assert once.read_bytes() == twice.read_bytes()


def test_a_name_is_printed_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What stands between two colons is no picture: m:M is a memory."""
    (tmp_path / "m.py").write_text("from steeltrap.adapters.flat import Flat as M")
    monkeypatch.syspath_prepend(tmp_path)
    assert main(["run", "system=m:M", "script=figure-1", f"runs={tmp_path / 'runs'}"]) == 0
    assert main(["compare", str(tmp_path / "runs"), str(tmp_path / "runs")]) == 0
    assert capsys.readouterr().out.count("m:M: figure-1, seed 0") == 1


def test_a_reader_that_has_gone_hears_no_verdict(runs: Path) -> None:
    """With pipefail a red comparison whose reader stops early must not end with 0."""
    command = [sys.executable, "-m", "steeltrap", "compare", str(runs / "good"), str(runs / "bad")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        process.stdout.close()
        assert process.wait() in (1, 2)


def test_a_reader_that_has_gone_is_nobodys_fault(runs: Path) -> None:
    """`head` ends a listing without a word, and no memory is blamed for it."""
    command = [sys.executable, "-m", "steeltrap", "report", str(runs / "good")]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.close()
        assert "" == process.stderr.read()
        assert 0 == process.wait()


def test_a_memory_that_ends_the_process_is_no_success(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """sys.exit(0) in somebody else's module is an error of the run."""
    (tmp_path / "ends_at_once.py").write_text("import sys\nsys.exit(0)\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert main(["run", "system=ends_at_once:M", "script=figure-1", f"runs={tmp_path}"]) == 1
    assert "called sys.exit(0)" in capsys.readouterr().err


def test_rules_decide_where_there_are_any(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What no rule names is no failure; what a rule names and nobody measured cannot be judged."""
    sides = ["compare", str(runs / "good"), str(runs / "bad"), "--fail-on"]
    assert main([*sides, "recall<0.1"]) == 0
    assert main([*sides, "C1>0.02, recall<0.1"]) == 1
    assert main([*sides, "cost_usd>1"]) == 2
    assert "unmeasured: flat: cost_usd>1: not measured in NEW" in capsys.readouterr().out
    assert main([*sides, "C9>1"]) == 2
    assert "'C9' is not known" in capsys.readouterr().err


@pytest.mark.parametrize("broken", ["nowhere", "empty", "text", "half"])
def test_what_cannot_be_read_cannot_be_judged(
    runs: Path, tmp_path: Path, broken: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The exit code is 2, the place is named, and there is no traceback."""
    side = tmp_path / broken
    if broken == "empty":
        side.mkdir()
    elif broken == "text":
        side.write_text("runs\n")
    elif broken == "half":
        side.mkdir()
        (folder,) = (path.parent for path in (runs / "good").rglob("record.json"))
        (side / "record.json").write_bytes((folder / "record.json").read_bytes())
    assert main(["compare", str(runs / "good"), str(side)]) == 2
    assert str(side) in capsys.readouterr().err


def test_files_that_cannot_be_written_are_no_verdict(runs: Path, tmp_path: Path) -> None:
    """1 says that something is worse, so trouble with a file is 2."""
    (tmp_path / "file").write_text("")
    side = str(runs / "good")
    assert main(["compare", side, side, "--json", str(tmp_path / "file" / "out.json")]) == 2
