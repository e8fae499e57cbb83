"""`steeltrap report` from stored runs: the same runs give the same files, and nobody's are touched."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from steeltrap.harness.cli import main
from steeltrap.harness.commands import report as reporting
from steeltrap.harness.commands import run as running
from steeltrap.harness.environments import EnvironmentMissing


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two systems on two seeds of a small script."""
    folder = tmp_path_factory.mktemp("runs")
    asked = ["system=flat,vector", "script=revision-chain", "script.turns=8", "seed=range(0,2)"]
    assert 0 == main(["run", *asked, f"runs={folder}"])
    return folder


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without figures, which take time and are all that these tests are not about."""
    monkeypatch.setattr(reporting, "_figures", lambda *_: ({}, {}))


def files(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*")) if path.is_file()
    }  # fmt: skip


def report(*words: object) -> int:
    return main(["report", *map(str, words)])


def test_without_a_target_tables_are_printed(
    runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The console shows what `run` shows, and nothing is written."""
    before = files(runs)
    assert 0 == report(runs)
    said = capsys.readouterr().out
    assert "The six conditions" in said
    assert "What it gives and what it costs" in said
    assert before == files(runs)


def test_a_folder_holds_all_that_a_paper_includes(runs: Path, tmp_path: Path) -> None:
    """Tables in three forms, figures in two with their numbers, quotable numbers, a paper, a manifest."""
    assert 0 == report(runs, "--to", tmp_path / "paper")
    made = files(tmp_path / "paper")
    for path in (
        "report.md", "numbers.tex", "paper.tex", "manifest.json",
        "tables/revision-chain-conditions.md", "tables/revision-chain-conditions.csv",
        "tables/revision-chain-conditions.tex", "tables/table-1.tex", "figures/table-1.pdf",
    ):  # fmt: skip
        assert path in made
    paper = made["paper.tex"].decode()
    for path in made:
        if path.endswith((".pdf", ".tex")) and "/" in path:
            assert path in paper
    assert all(f"{path[:-3]}{kind}" in made for path in made if path.endswith(".pdf") for kind in ("png", "csv"))  # fmt: skip
    found = json.loads(made["manifest.json"])
    assert {"flat", "vector"} == {run["system"] for run in found["runs"]}
    assert {"script_sha256", "seed", "revision", "fingerprint"} < set(found["runs"][0])
    del made["manifest.json"]
    assert {path: hashlib.sha256(data).hexdigest() for path, data in made.items()} == found["files"]


def test_the_same_runs_give_the_same_bytes(runs: Path, tmp_path: Path) -> None:
    """In another process, with another order of hashes and of runs, from another place: all files
    and the page."""
    moved = tmp_path / "elsewhere" / "runs"
    shutil.copytree(runs, moved, copy_function=shutil.copy2)
    folders = sorted(path.parent for path in moved.rglob("record.json"))
    told = []
    for number, given in (("1", [runs]), ("2", [*reversed(folders)])):
        target = tmp_path / number
        words = ["report", *map(str, given), "--to", str(target), "--html", str(target / "page.html")]  # fmt: skip
        environment = os.environ | {"PYTHONHASHSEED": number}
        done = subprocess.run([sys.executable, "-m", "steeltrap", *words], env=environment, capture_output=True)  # fmt: skip
        assert 0 == done.returncode, done.stderr
        told.append(files(target))
    assert told[0] == told[1]
    assert not [path for path, data in told[0].items() if str(tmp_path).encode() in data]


def test_what_is_not_made_any_more_goes_and_all_else_stays(
    runs: Path, tmp_path: Path, undrawn: None
) -> None:
    """A report replaces what an earlier one wrote, and touches nothing that it did not write."""
    target = tmp_path / "paper"
    assert 0 == report(runs, "--to", target)
    mine = target / "tables" / "mine.tex"
    mine.write_text("mine")
    changed = target / "tables" / "revision-chain-differences.tex"
    changed.write_text("changed by hand")
    (flat,) = [path for path in (runs / "revision-chain").iterdir() if path.name.startswith("flat-revision-chain-0")]  # fmt: skip
    assert 0 == report(flat, "--to", target)
    made = files(target)
    assert b"mine" == made["tables/mine.tex"]
    assert b"changed by hand" == made["tables/revision-chain-differences.tex"]
    assert "tables/revision-chain-differences.csv" not in made
    assert b"vector" not in made["tables/revision-chain-conditions.csv"]


def test_a_file_in_the_way_is_not_overwritten(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], undrawn: None
) -> None:
    """What no report wrote, or somebody changed, is named, and nothing is written."""
    (tmp_path / "paper.tex").write_text("my paper")
    assert 1 == report(runs, "--to", tmp_path)
    assert "paper.tex: was not written by a report, or changed since" in capsys.readouterr().err
    assert {"paper.tex": b"my paper"} == files(tmp_path)


def test_a_folder_in_the_way_is_named(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], undrawn: None
) -> None:
    """A folder where a file would go is somebody's too."""
    (tmp_path / "paper.tex").mkdir()
    assert 1 == report(runs, "--to", tmp_path)
    assert "paper.tex: was not written by a report" in capsys.readouterr().err
    assert {} == files(tmp_path)


def test_scripts_made_with_other_settings_are_never_pooled(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two scripts of one name and seed are two groups, named by what they differ in."""
    asked = ["system=flat", "script=revision-chain", "script.turns=8", f"runs={tmp_path}"]
    assert 0 == main(["run", *asked])
    alone = capsys.readouterr().out
    assert 0 == main(["run", *asked, "script.alpha=1.5"])
    capsys.readouterr()
    assert 0 == report(tmp_path)
    both = capsys.readouterr().out
    assert "revision-chain alpha=3.0, " in both
    assert "revision-chain alpha=1.5, " in both
    assert "NOT THE SAME" not in both
    (counted,) = (
        line for line in alone.splitlines() if line.startswith("        ") and "/" in line
    )
    assert counted in both


def test_a_manifest_is_not_believed_beyond_its_folder(
    runs: Path, tmp_path: Path, undrawn: None
) -> None:
    """A path that leads out of the folder is never removed."""
    outside = tmp_path / "outside.txt"
    outside.write_text("keep")
    target = tmp_path / "paper"
    target.mkdir()
    digest = hashlib.sha256(b"keep").hexdigest()
    told = {"runs": [], "files": {"../outside.txt": digest, str(outside): digest}}
    named = {"format": "steeltrap-report", "version": 1, **told}
    (target / "manifest.json").write_bytes(msgspec.json.encode(named))
    assert 0 == report(runs, "--to", target)
    assert "keep" == outside.read_text()


@pytest.mark.parametrize("text", ["no json", '{"runs": [], "files": {}, "format": "another"}'])
def test_a_manifest_of_something_else_stops_it(
    runs: Path, tmp_path: Path, text: str, capsys: pytest.CaptureFixture[str], undrawn: None
) -> None:
    """A folder whose manifest is no report's belongs to somebody else."""
    (tmp_path / "manifest.json").write_text(text)
    assert 1 == report(runs, "--to", tmp_path)
    assert "not the manifest of a report" in capsys.readouterr().err
    assert ["manifest.json"] == list(files(tmp_path))


def test_without_runs_it_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A folder that does not exist, and one that holds no finished run, are told apart."""
    assert 1 == report(tmp_path / "none")
    assert f"{tmp_path / 'none'}: does not exist" in capsys.readouterr().err
    assert 1 == report(tmp_path)
    assert f"{tmp_path}: holds no finished run" in capsys.readouterr().err


def test_an_experiment_ends_in_what_a_paper_includes(tmp_path: Path, undrawn: None) -> None:
    """`include` names the folder, the page lies beside it; a second run changes nothing."""
    asked = ["run", "system=flat", "script=revision-chain", "script.turns=6", "include=include"]
    assert 0 == main([*asked, f"runs={tmp_path}"])
    folder = tmp_path / "revision-chain"
    made = files(folder / "include")
    page = (folder / "index.html").read_bytes()
    assert "paper.tex" in made
    assert 0 == main(["report", str(folder), "--to", str(tmp_path / "again")])
    assert made == files(tmp_path / "again")
    assert 0 == main([*asked, f"runs={tmp_path}"])
    assert made == files(folder / "include")
    assert page == (folder / "index.html").read_bytes()


def test_missing_environments_are_said_first_and_the_others_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One sentence names the systems and the command; what can run does, and the exit code says so."""

    def missing(name: str) -> Path:
        raise EnvironmentMissing(name)

    monkeypatch.setattr(running, "find", missing)
    asked = ["system=mem0,flat,graphiti", "script=revision-chain", "script.turns=6", "seed=0,1"]
    assert 1 == main(["run", *asked, f"runs={tmp_path}"])
    said = capsys.readouterr()
    first, *rest = said.err.splitlines()
    sentence = " ".join([first, *rest])
    assert sentence.startswith("mem0, graphiti: not installed, so 4 of 6 runs are left out;")
    assert "`steeltrap systems install mem0 graphiti`" in sentence
    assert "The six conditions" in said.out
    assert 2 == len(list(tmp_path.rglob("record.json")))


def test_environments_are_made_where_that_is_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without an index an environment cannot be made: that is said, and the other systems run."""
    for name, value in {
        "STEELTRAP_CACHE": str(tmp_path / "cache"), "UV_CACHE_DIR": str(tmp_path / "uv"),
        "UV_OFFLINE": "1",
    }.items():  # fmt: skip
        monkeypatch.setenv(name, value)
    asked = ["system=mem0,flat", "script=revision-chain", "script.turns=6", "install=true"]
    assert 1 == main(["run", *asked, f"runs={tmp_path / 'runs'}"])
    said = " ".join(capsys.readouterr().err.split())
    assert said.index("mem0: ") < said.index("mem0: not installed, so 1 of 2 runs are left out;")
    assert "flat" == json.loads(next(tmp_path.rglob("record.json")).read_text())["spec"]["system"]


def test_install_is_true_or_false(capsys: pytest.CaptureFixture[str]) -> None:
    """Anything else is refused by name."""
    assert 2 == main(["run", "system=flat", "install=mem0"])
    assert "install=mem0: write true or false" in capsys.readouterr().err


def test_a_sweep_without_a_value_is_nothing_to_run(capsys: pytest.CaptureFixture[str]) -> None:
    """An empty range is said so."""
    assert 2 == main(["run", "system=flat", "seed=range(0,0)"])
    assert "nothing to run" in capsys.readouterr().err


def test_a_page_is_a_file(runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A folder in its place is refused with what to write."""
    assert 1 == main(["report", str(runs), "--html", str(tmp_path)])
    assert (
        f"is a folder; give the page a name, as {tmp_path / 'page.html'}" in capsys.readouterr().err
    )
