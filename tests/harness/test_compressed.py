"""Commands on stored runs whose histories are compressed: they give what they gave before."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from steeltrap.adapters.flat import Flat
from steeltrap.harness import store
from steeltrap.harness.cli import main
from steeltrap.harness.commands import report as reporting
from steeltrap.harness.commands.serve import Site
from steeltrap.harness.readers import Oracle
from steeltrap.harness.record import read_record
from steeltrap.harness.run import run_cell
from steeltrap.harness.script import Script
from steeltrap.harness.store import read_cell


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A system on scripts with twins, of reading and of asking, and one of them run again."""
    folder = tmp_path_factory.mktemp("ran")
    for script in ("script=leak-asking script.turns=40", "script=reinforcement script.turns=90"):
        assert 0 == main(["run", "system=flat", *script.split(), "repeats=2", f"runs={folder}"])
    assert list(folder.rglob("again-1.history.jsonl"))
    assert list(folder.rglob("twin0001.history.jsonl"))
    return folder


@pytest.fixture
def runs(ran: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(ran, tmp_path / "runs"))


def compressed(runs: Path) -> None:
    """All histories, by a command, as if they were long."""
    assert 0 == main(["score", str(runs)])
    assert not list(runs.rglob("*history.jsonl"))


def files(folder: Path, *patterns: str) -> dict[str, bytes]:
    found = (path for pattern in patterns for path in folder.rglob(pattern))
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in sorted(found)}


def test_every_command_gives_the_same_bytes(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Scoring, tables, pages, comparisons, columns: nobody can tell from them how a history lies."""
    monkeypatch.setattr(reporting, "_figures", lambda *_: ({}, {}))
    (one, *_) = sorted(path.parent.relative_to(runs) for path in runs.rglob("spec.json"))
    commands: list[list[str | Path]] = [
        ["score", runs],
        ["report", runs],
        ["report", runs, "--to", tmp_path / "made" / "report"],
        ["report", runs, "--html", tmp_path / "made" / "page.html"],
        ["baseline", runs, "--to", tmp_path / "made" / "baseline.json"],
        ["compare", runs, runs, "--json", tmp_path / "made" / "compare.json"],
        ["columns", runs, "--to", tmp_path / "made" / "columns.csv"],
    ]

    def given() -> list[object]:
        shutil.rmtree(tmp_path / "made", ignore_errors=True)
        (tmp_path / "made").mkdir()
        found: list[object] = []
        for words in commands:
            found += [words[0], main([str(word) for word in words])]
        page = Site(runs).page([one.as_posix()])
        told = capsys.readouterr()
        return [*found, page, told.out, told.err, files(tmp_path / "made", "*.*"),
                files(runs, "record.json", "violations.jsonl", "report.md")]  # fmt: skip

    before = given()
    monkeypatch.setattr(store, "COMPRESSED_FROM_BYTES", 1)
    compressed(runs)
    capsys.readouterr()
    assert before == given()


def test_a_run_that_goes_on_has_a_plain_history(
    runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a cell that is no longer finished the histories are written on, and end as they were."""
    monkeypatch.setattr(store, "COMPRESSED_FROM_BYTES", 1)
    compressed(runs)
    folder = next(path.parent for path in runs.rglob("spec.json") if "flat-leak" in str(path))
    cell = read_cell(folder)
    before = read_record(cell.record).outcome
    cell.record.unlink()
    monkeypatch.setattr(store, "COMPRESSED_FROM_BYTES", 1 << 30)
    assert before == run_cell(cell, Flat, Script.read(cell.script), Oracle()).outcome
    assert cell.history.name == "history.jsonl"


def test_a_cell_that_was_finished_before_is_compressed_by_the_next_run(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Whoever was stopped between the record and the compressing leaves it to the next command."""
    asked = ["system=flat", "script=leak-asking", "script.turns=40", f"runs={tmp_path}"]
    assert 0 == main(["run", *asked])
    assert list(tmp_path.rglob("history.jsonl"))
    monkeypatch.setattr(store, "COMPRESSED_FROM_BYTES", 1)
    assert 0 == main(["run", *asked])
    assert not list(tmp_path.rglob("history.jsonl"))
    assert list(tmp_path.rglob("history.jsonl.zst"))
