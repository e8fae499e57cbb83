"""The command line as a person uses it: real processes, small scripts, messages word by word."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from steeltrap.harness.record import read_record
from steeltrap.workloads.families import FAMILIES

SLOW = """
import os, signal, time
from steeltrap.harness.memory import Item

class Slow:
    def __init__(self, keep=5, pause_s=0.0):
        self.keep, self.pause_s = keep, pause_s
    def open(self, folder):
        self.turns = []
    def close(self):
        pass
    def ingest(self, turn):
        time.sleep(self.pause_s)
        self.turns.append(turn)
    def retrieve(self, query):
        return [Item(text=turn.text, sources=(turn.id,)) for turn in self.turns[-self.keep:]]
    def settle(self):
        pass

class Bad(Slow):
    'Fails at every question.'
    def retrieve(self, query):
        raise KeyError("oops")

class Shut(Slow):
    'Cannot be opened.'
    def open(self, folder):
        raise RuntimeError("no key to it")

class Dies(Slow):
    'Takes its process with it.'
    def ingest(self, turn):
        os.kill(os.getpid(), signal.SIGKILL)

class Leaves(Slow):
    'Ends its process as if all were well.'
    def ingest(self, turn):
        os._exit(0)

class Quits(Slow):
    'Wants to end its process.'
    def open(self, folder):
        raise SystemExit(3)

class Nothing:
    pass

def lacking():
    import no_such_package
"""

POINTS = """[steeltrap.systems]
slow = slowmemory:Slow
bad = slowmemory:Bad
nothing = slowmemory:Nothing
shut = slowmemory:Shut
dies = slowmemory:Dies
leaves = slowmemory:Leaves
quits = slowmemory:Quits
lacking = slowmemory:lacking
gone = no_such_module:Memory
"""


@pytest.fixture(scope="session")
def plugin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder on the path with an installed package that offers memories."""
    folder = tmp_path_factory.mktemp("site")
    (folder / "slowmemory.py").write_text(SLOW)
    about = folder / "slowmemory-1.2.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: slowmemory\nVersion: 1.2\n")
    (about / "entry_points.txt").write_text(POINTS)
    return folder


class Shell:
    """Runs `steeltrap` in a folder of its own."""

    def __init__(self, folder: Path, path: str) -> None:
        self.folder = folder
        self.env = os.environ | {"PYTHONPATH": path, "COLUMNS": "80"}

    def start(self, *words: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "steeltrap", *words],
            cwd=self.folder,
            env=self.env,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def __call__(self, *words: str, code: int = 0) -> str:
        """What was printed, of both streams; the exit code must be `code`."""
        process = self.start(*words)
        out, err = process.communicate(timeout=120)
        assert code == process.returncode, out + err
        assert "Traceback" not in err
        return out + err


@pytest.fixture
def shell(tmp_path: Path, plugin: Path, root: Path) -> Shell:
    return Shell(tmp_path, f"{root / '.src'}{os.pathsep}{plugin}")


# ---------------------------------------------------------------- run


def test_run_prints_the_table_and_keeps_everything(shell: Shell) -> None:
    """One command runs each cell, prints a row a system, and leaves run folders and a report."""
    said = shell("run", "system=flat,ideal", "script=figure-1", "-m")
    assert "The six conditions" in said
    for system in ("flat", "ideal"):
        (cell,) = (shell.folder / "runs" / "figure-1").glob(f"{system}-figure-1-0-*")
        assert {
            "history.jsonl",
            "record.json",
            "script.jsonl",
            "spec.json",
            "violations.jsonl",
        } <= {path.name for path in cell.iterdir()}
        assert any(line.startswith(system) for line in said.splitlines())
    assert "Report: runs/figure-1/report.md" in said
    assert "| ideal | held" in (shell.folder / "runs/figure-1/report.md").read_text()
    assert [path.name for path in shell.folder.iterdir()] == ["runs"]


def test_several_processes_find_the_same(shell: Shell) -> None:
    """Cells that run at once give the same histories, and one that cannot be run fails alone."""
    found = []
    for processes in (1, 2):
        said = shell(
            "run", "system=flat,shut,bm25", "script=figure-1", "seed=0,1", f"name=p{processes}",
            f"processes={processes}", code=1,
        )  # fmt: skip
        assert "shut, seed 1: " in said and "no key to it" in said
        records = [
            *map(read_record, (shell.folder / "runs" / f"p{processes}").glob("*/record.json"))
        ]
        found.append({(r.spec.system, r.spec.seed): r.outcome.fingerprint for r in records})
    assert found[0] == found[1]
    assert len(found[0]) == 4
    said = shell("run", "system=flat", "seed=0,1", "processes=2", "model=upstream", "model.budget_usd=1", code=2)  # fmt: skip
    assert "model.budget_usd is kept by one process: write execution=local processes=1" in said


def test_a_process_that_dies_fails_its_cell_alone(shell: Shell) -> None:
    """It is named with how it died, the others go on, and the same command finds what was done."""
    asked = ("run", "script=figure-1", "processes=2", "seed=0,1")
    said = shell(*asked, "system=dies,leaves,flat,quits", code=1)
    for seed in (0, 1):
        assert f"dies, seed {seed}: its process was killed by SIGKILL" in said
        assert f"leaves, seed {seed}: its process ended with exit code 0" in said
        assert f"quits, seed {seed}: it cannot be opened: SystemExit: 3" in said
    assert len(list(shell.folder.rglob("record.json"))) == 2
    assert "finished before" in shell(*asked, "system=flat")


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_processes_of_a_sweep_end_with_it(shell: Shell, how: signal.Signals) -> None:
    """Whoever is killed leaves nobody behind, and the same command goes on from there."""
    asked = ("run", "system=slow", "+system.pause_s=0.05", "script=stale-echo", "script.turns=40", "seed=0,1", "processes=2")  # fmt: skip
    process = shell.start(*asked)
    _until(lambda: len([*shell.folder.rglob("history.jsonl")]) == 2)
    own = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    children = own.read_text().split()
    assert len(children) >= 2
    process.send_signal(how)
    process.communicate(timeout=30)
    _until(lambda: not any(map(_runs, children)))
    said = shell(*asked)
    assert "stale-echo, 40 turns" in said


def _runs(child: str) -> bool:
    """Whether a process is there; one that has ended may wait to be collected."""
    try:
        return Path(f"/proc/{child}/stat").read_text().rpartition(") ")[2][0] != "Z"
    except FileNotFoundError:
        return False


def _until(done: Callable[[], bool]) -> None:
    """Wait for something, half a minute at most."""
    end = time.monotonic() + 30
    while not done():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_run_makes_scripts_and_sweeps_seeds(shell: Shell) -> None:
    """A sweep runs every combination; seeds of one system share a row."""
    said = shell("run", "system=flat", "script=stale-echo", "script.turns=30", "seed=range(0,2)")
    assert "Script stale-echo, 30 turns; seed (sha256): 0 (" in said
    assert len(list((shell.folder / "runs" / "stale-echo").glob("*/record.json"))) == 2


def test_a_finished_cell_is_not_run_again_unless_fresh(shell: Shell) -> None:
    """The same question finds its answer; `fresh=true` asks anew."""
    asked = ("run", "system=flat", "script=figure-1")
    shell(*asked)
    (record,) = shell.folder.rglob("record.json")
    before = record.stat().st_mtime_ns
    assert "finished before; fresh=true runs it anew" in shell(*asked)
    assert before == record.stat().st_mtime_ns
    assert "finished before" not in shell(*asked, "fresh=true")
    assert before != record.stat().st_mtime_ns


def test_a_memory_that_was_edited_is_run_anew(shell: Shell) -> None:
    """A spec holds no line of somebody else's memory, so a run of older code is not taken over."""
    module = shell.folder / "mine.py"
    module.write_text(SLOW)
    asked = ("run", "system=mine:Slow", "script=figure-1")
    shell(*asked)
    assert "finished before" in shell(*asked)
    module.write_text(SLOW.replace("turn.text,", "'nothing',"))
    assert "mine.py was edited since; run anew" in shell(*asked)
    (record,) = shell.folder.rglob("record.json")
    assert read_record(record).outcome.recall == 0.0
    assert "finished before" in shell(*asked)


def test_a_stopped_run_goes_on(shell: Shell) -> None:
    """A run that is interrupted says how to go on, and ends with the record it would have had."""
    asked = ("run", "system=slow", "script=figure-1", "+system.pause_s=0.1")
    process = shell.start(*asked)
    deadline = time.monotonic() + 60
    while not _recorded(shell.folder) and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "stopped; give the same command again to go on from here" in err
    assert not list(shell.folder.rglob("record.json"))
    begun = _recorded(shell.folder)
    shell(*asked)
    assert begun == _recorded(shell.folder)[: len(begun)]
    (stopped,) = shell.folder.rglob("record.json")
    shell(*asked, "runs=undisturbed")
    (whole,) = (shell.folder / "undisturbed").rglob("record.json")
    assert read_record(whole).outcome == read_record(stopped).outcome


def _recorded(folder: Path) -> bytes:
    """The history so far, once it holds a few steps, up to its last whole line."""
    found = b"".join(path.read_bytes() for path in folder.rglob("history.jsonl"))
    return found[: found.rfind(b"\n") + 1] if found.count(b"\n") > 8 else b""


def test_somebody_elses_memory_runs_by_its_entry_point(shell: Shell) -> None:
    """A package that is installed beside steeltrap is a system; its settings and version count."""
    assert {"flat", "ideal", "slow", "vector"} <= set(shell("systems").split())
    shell("run", "system=slow", "+system.keep=2", "script=figure-1")
    (spec,) = shell.folder.rglob("spec.json")
    told = json.loads(spec.read_text())
    assert told["system"] == "slow keep=2"
    assert told["settings"]["keep"] == 2
    assert told["packages"]["slowmemory"] == "1.2"


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("system=foo", "unknown system 'foo'; known: "),
        ("script=foo", "unknown script 'foo'; known: adversarial, authority, "),
        ("reader=foo", "unknown reader 'foo'; known: oracle, top1"),
        ("embedder=hash", "unknown embedder 'hash'; known: minilm, wordllama"),
        (
            "experiment=foo",
            "unknown experiment 'foo'; known: beam, dials, ",
        ),
        ("foo=1", "unknown setting 'foo'; `steeltrap run --help` lists them all"),
        ("system.foo=1", "setting 'system.foo'; system=flat takes: window_turns, window_tokens, "),
        ("system=slow system.keep=5", "takes: keep, pause_s; write +system.keep=5 for a memory of"),
        ("system=slow +system.kep=5", "it takes: keep, pause_s"),
        ("flat", "'flat' is not understood; write KEY=VALUE, as system=flat"),
        ("--system flat", "--system: settings have no dashes; write system=flat"),
        ("--system=flat", "write system=flat"),
        ("name=../x", "name=../x: write the name of one folder; runs=FOLDER"),
        ("name=..", "name=..: write the name of one folder"),
        ("script.turns=0", "script.turns=0: a script needs at least one turn"),
        ("foo", "'foo' is not understood; write KEY=VALUE"),
        ("seed=x", "seed=x: write a whole number, at least 0"),
        ("limit=0", "limit=0: write a whole number, at least 1"),
        ("twins=-1", "twins=-1: write a whole number, at least 0"),
        ("seed=interval(0,1)", "list the values, or use range(start,stop)"),
        ("script.turns=x", "script: Expected int, got str - at $.turns"),
        ("script=file", "script.path must be given: script.path=VALUE"),
        ("script=locomo", "script.path must be given: script.path=VALUE"),
        ("system=flat system.window_turns=0", "a window of 0 keeps nothing; set at least 1"),
        ("system=nothing", "system=nothing: Nothing is no memory; it needs open, close, "),
        ("system=lacking", "needs the package 'no_such_package', which is not installed"),
        ("system=gone", "Error loading 'no_such_module.Memory'"),
    ],
)
def test_a_wrong_request_says_what_would_be_right(shell: Shell, asked: str, said: str) -> None:
    """What does not exist is named together with what does, and nothing is left behind."""
    assert said in shell("run", *asked.split(), code=2)
    assert list(shell.folder.iterdir()) == []


def test_an_unwritable_folder_is_one_sentence(shell: Shell) -> None:
    """A run folder that cannot be made is an error of exit code 1."""
    (shell.folder / "taken").write_text("a file")
    said = shell("run", "script=figure-1", "runs=taken", code=1)
    assert "cannot be written (Not a directory); choose another folder with runs=FOLDER" in said
    assert (shell.folder / "taken").read_text() == "a file"


def test_a_missing_extra_is_named(shell: Shell, plugin: Path, tmp_path: Path) -> None:
    """An embedder whose packages are not installed names the extra that brings them."""
    hidden = tmp_path / "hidden"
    hidden.mkdir()
    (hidden / "sitecustomize.py").write_text(
        "import importlib.util as util\nfound = util.find_spec\n"
        "util.find_spec = lambda name, *a: None if name == 'onnxruntime' else found(name, *a)\n"
    )
    shell.env["PYTHONPATH"] += os.pathsep + str(hidden)
    said = shell("run", "system=vector", "embedder=minilm", "script=figure-1", code=2)
    assert "pip install 'steeltrap[minilm]'" in said


def test_help_is_in_plain_words(shell: Shell) -> None:
    """`--help` shows the settings with what they are for, and fits a narrow terminal."""
    said = shell("run", "--help")
    for key in ("system=NAME", "script.turns=N", "reader=NAME", "runs=FOLDER", "fresh=true"):
        assert key in said
    assert max(len(line) for line in said.splitlines()) <= 100


def test_help_names_every_family_and_systems_are_described(shell: Shell) -> None:
    """What can be chosen is listed, with a line on each memory, also those of other packages."""
    listed = shell("run", "--help").replace(",", "").split()
    assert [] == [family for family in FAMILIES if family not in listed]
    systems = dict(line.split(None, 1) for line in shell("systems").splitlines())
    assert systems["flat"].endswith("in process       The full transcript, newest turn first.")
    assert systems["bad"].endswith("in process       Fails at every question.")
    assert "cannot be loaded: No module named 'no_such_module'" in systems["gone"]
    assert "own environment" in systems["mem0"]


def test_a_memory_that_always_fails_says_how(shell: Shell) -> None:
    """The table stands, all unknown, and below it the memory's own words."""
    said = shell("run", "system=bad", "script=figure-1")
    assert "The six conditions\n" in said
    assert "steps failed; first: KeyError: 'oops'" in said


# ---------------------------------------------------------------- script


def test_script_make_show_check(shell: Shell) -> None:
    """A script is written, the same each time, shown side by side, and found in order."""
    made = shell("script", "make", "script=flip-flop", "seed=7", "script.turns=25", "out=a.jsonl")
    shell("script", "make", "script=flip-flop", "seed=7", "script.turns=25", "out=b.jsonl")
    first, second = (shell.folder / name for name in ("a.jsonl", "b.jsonl"))
    assert first.read_bytes() == second.read_bytes()
    assert "a.jsonl: flip-flop, seed 7: 25 turns, " in made
    shown = shell("script", "show", "a.jsonl")
    assert max(len(line) for line in shown.splitlines()) <= 80
    assert {"step", "op", "sentence", "truth"} <= set(shown.split())
    assert "nothing is wrong" in shell("script", "check", "a.jsonl")


def test_script_errors_name_line_and_field(shell: Shell) -> None:
    """A script that is wrong says where; one of a newer version says so; nothing is lost."""
    shell("script", "make", "script=flip-flop", "script.turns=5", "out=a.jsonl")
    path = shell.folder / "a.jsonl"
    good = path.read_text()
    path.write_text(good.replace('"role":"user"', '"rule":"user"').replace('"text":', '"txt":', 1))
    assert "a.jsonl:2: " in shell("script", "check", "a.jsonl", code=1)
    path.write_text(good.replace('"version":1', '"version":99', 1))
    for verb in ("check", "show"):
        assert "version 99 of the script format" in shell("script", verb, "a.jsonl", code=1)
    assert "cannot be read (No such file or directory)" in shell("script", "show", "n", code=1)
    assert "script make needs out=FILE" in shell("script", "make", "script=flip-flop", code=2)
    said = shell("script", "make", "script=flip-flop", "script.turns=5", "out=no/x", code=1)
    assert "no/x: cannot be written" in said


def test_a_script_by_hand_is_checked_completed_and_run(shell: Shell) -> None:
    """Ops and sentences are enough: truth is filled in, and the file runs like any other."""
    lines = [
        {"format": "steeltrap-script", "version": 1, "name": "by-hand", "tenants": ["acme"]},
        {"step": "turn", "id": "t1", "at": "2026-01-05T09:00", "tenant": "acme", "session": "s1",
         "text": "The deadline of Website Redesign is 12 March 2026.",
         "ops": [{"op": "tell", "unit": "acme/Website Redesign/deadline",
                  "value": "date:2026-03-12"}]},
        {"step": "probe", "id": "p1", "at": "2026-01-05T10:00", "tenant": "acme",
         "ask": "current", "text": "When is the deadline of Website Redesign?",
         "unit": "acme/Website Redesign/deadline", "group": "g1"},
    ]  # fmt: skip
    path = shell.folder / "hand.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    shell("script", "check", "hand.jsonl", "out=full.jsonl")
    assert "expected: 12 March" in " ".join(shell("script", "show", "full.jsonl").split())
    said = shell("run", "script=file", "script.path=full.jsonl", "system=flat,ideal")
    assert "Script by-hand, 1 turns" in said


# ---------------------------------------------------------------- score


def test_score_gives_the_record_again(shell: Shell) -> None:
    """A stored run is scored from its files alone, to the same outcome."""
    shell("run", "system=flat,ideal", "script=figure-1")
    paths = sorted(shell.folder.rglob("record.json"))
    before = [read_record(path).outcome for path in paths]
    for path in paths:
        path.unlink()
    assert "The six conditions" in shell("score", "runs")
    assert before == [read_record(path).outcome for path in paths]


def test_only_the_newest_of_equal_runs_is_counted(shell: Shell) -> None:
    """A run of older code is left out of the table, which says so; other settings are not."""
    shell("run", "system=slow", "script=figure-1")
    shell("run", "system=slow", "+system.keep=2", "script=figure-1")
    assert "left out" not in shell("score", "runs")
    (new,) = (shell.folder / "runs" / "figure-1").glob("slow-figure-1-*")
    old = new.with_name("slow-figure-1-0-before")
    shutil.copytree(new, old)
    spec = old / "spec.json"
    told = json.loads(spec.read_text()) | {"revision": "b" * 40}
    spec.write_text(json.dumps(told))
    os.utime(old / "history.jsonl", (1, 1))
    said = shell("score", "runs")
    assert "left out: 1 older runs of the same system, script and seed" in said
    assert "b" * 12 not in said


def test_score_says_what_is_wrong_with_a_run(shell: Shell) -> None:
    """A truncated history, a spec that is gone and an empty folder each say so, losing nothing."""
    assert "there is no run to score" in shell("score", ".", code=1)
    shell("run", "system=flat", "script=figure-1")
    (history,) = shell.folder.rglob("history.jsonl")
    history.write_bytes(history.read_bytes()[:-20])
    said = shell("score", "runs", code=1)
    assert "malformed event" in said
    assert "run it again to go on" in said
    history.with_name("spec.json").unlink()
    assert "spec.json: cannot be read" in shell("score", "runs", code=1)


def test_validate_needs_a_seed(shell: Shell) -> None:
    """Nothing tried is nothing proven: fewer than one seed is refused."""
    for seeds in ("0", "-1"):
        assert f"--seeds {seeds}: write a whole number" in shell(
            "validate", f"--seeds={seeds}", code=2
        )


def test_the_program_says_its_version(shell: Shell) -> None:
    """`--version` and an unknown command answer as any program does."""
    assert shell("--version").startswith("steeltrap 0.")
    assert "invalid choice: 'foo'" in shell("foo", code=2)


def test_reading_less_than_all_is_no_error(shell: Shell) -> None:
    """Piped into `head`, `script show` ends quietly."""
    shell("script", "make", "script=flip-flop", "script.turns=400", "out=a.jsonl")
    show: Callable[..., subprocess.Popen[str]] = shell.start
    process = show("script", "show", "a.jsonl")
    assert process.stdout is not None
    process.stdout.readline()
    process.stdout.close()
    assert process.stderr is not None
    assert "Traceback" not in process.stderr.read()
    process.wait(timeout=60)


# ---------------------------------------------------------------- shrink, hunt, check


@pytest.fixture
def stored(shell: Shell) -> Path:
    """A run folder of a small script on the transcript."""
    shell("run", "system=flat", "script=revision-chain", "script.turns=40")
    (cell,) = (shell.folder / "runs" / "revision-chain").glob("flat-*")
    return cell


def test_shrink_prints_and_keeps_the_shortest_conversation(shell: Shell, stored: Path) -> None:
    """A dialogue of two turns with its truth, a script that `check` fails, and how to run it."""
    said = shell("shrink", str(stored), "exposed-history")
    assert "The deadline of Atlas" in said or "of Atlas is" in said
    assert "exposed-history; due: " in said
    assert "40 turns to 2, " in said
    small = stored / "shrunk" / "exposed-history.jsonl"
    assert f"steeltrap check {small} system=flat" in said
    again = shell("shrink", str(stored), "exposed-history", "out=again.jsonl", "seed=0")
    assert "40 turns to 2, " in again
    assert small.read_bytes() == (shell.folder / "again.jsonl").read_bytes()
    assert "nothing is wrong" in shell("script", "check", str(small))
    assert "1/1" in shell("run", "system=flat", "script=file", f"script.path={small}")


def test_check_ends_with_1_when_it_shows(shell: Shell, stored: Path) -> None:
    """A script is a regression test: 1 where the violation shows or was not tested, 0 where not."""
    shell("shrink", str(stored), "superseded-active", "out=small.jsonl")
    said = shell("check", "small.jsonl", "system=flat", code=1)
    assert said.startswith("small.jsonl: superseded-active at g0001; due: ")
    held = shell("check", "small.jsonl", "system=ideal")
    assert "small.jsonl: held: no superseded-active" in held
    assert "held" in shell("check", "small.jsonl", "system=flat", "fail_on=stale-read")
    blind = shell("check", "small.jsonl", "system=flat", "fail_on=wrong-order", code=1)
    assert "unknown: wrong-order was not put to the test" in blind
    broken = shell("check", "small.jsonl", "system=bad", "fail_on=stale-read", code=1)
    assert "steps failed" in broken
    wrong = shell("check", "small.jsonl", "system=flat", "fail_on=nothing", code=2)
    assert "fail_on=nothing: known: stale-read" in wrong
    assert "give system=NAME" in shell("check", "small.jsonl", code=2)
    assert "name a script file" in shell("check", "system=flat", code=2)


def test_shrink_takes_a_script_a_number_or_a_unit(shell: Shell, stored: Path) -> None:
    """A violation is found by name, by unit, by its line, and in a script that is run for it."""
    second = json.loads((stored / "violations.jsonl").read_text().splitlines()[1])
    assert second["name"] in shell("shrink", str(stored), "2", "out=two.jsonl")
    by_unit = f"{second['name']}@{second['unit']}"
    shell("shrink", str(stored), by_unit, "out=unit.jsonl")
    small = shell("shrink", "two.jsonl", second["name"], "system=flat", "out=three.jsonl")
    assert "2 turns to 2" in small
    none = shell("shrink", str(stored), "runaway", code=1)
    assert "does not show runaway; it shows: " in none
    assert "'nonsense' is no violation" in shell("shrink", str(stored), "nonsense", code=1)
    assert "no number 99999" in shell("shrink", str(stored), "99999", code=1)
    assert "give system=NAME" in shell("shrink", "two.jsonl", "stale-read", code=2)
    assert "says itself how it was run" in shell("shrink", str(stored), "1", "system=flat", code=2)
    empty = shell.folder / "empty"
    empty.mkdir()
    assert "spec.json: cannot be read" in shell("shrink", "empty", "stale-read", code=1)
    several = shell("shrink", str(stored.parent), second["name"], code=1)
    assert f"holds several runs; give one of them, as {stored}" in " ".join(several.split())
    assert "shrunk" in shell("shrink", stored.name, second["name"])
    shutil.copytree(stored, shell.folder / "runs" / "other" / stored.name)
    assert "there are several, give one" in shell("shrink", stored.name, "1", code=1)
    assert "no file and no folder" in shell("shrink", "nowhere", "stale-read", code=1)


def test_shrink_goes_on_where_its_budget_stopped_it(shell: Shell, stored: Path) -> None:
    """A small budget ends with the shortest so far, and the same command goes on from there."""
    asked = ("shrink", str(stored), "exposed-history", "out=small.jsonl")
    first = shell(*asked, "budget_runs=4")
    assert "stopped by the budget" in first
    assert (shell.folder / "small.journal").exists()
    assert "stopped by the budget" not in shell(*asked)
    small = (shell.folder / "small.jsonl").read_bytes()
    shell("shrink", str(stored), "exposed-history", "out=other.jsonl")
    assert small == (shell.folder / "other.jsonl").read_bytes()
    for wrong in ("share=2", "repeats=0", "budget_s=soon"):
        assert wrong.partition("=")[0] in shell(*asked, wrong, code=2)


def test_an_interrupted_shrink_keeps_the_shortest_so_far(shell: Shell) -> None:
    """Ctrl-C leaves a script that shows it, and the same command goes on."""
    slow = ("system=slow", "+system.keep=50", "+system.pause_s=0.03")
    shell("run", *slow, "script=revision-chain", "script.turns=20")
    (cell,) = (shell.folder / "runs" / "revision-chain").glob("slow-*")
    asked = ("shrink", str(cell), "ambiguous-read", "out=small.jsonl")
    process = shell.start(*asked)
    journal, deadline = shell.folder / "small.journal", time.monotonic() + 60
    while not _showed(journal) and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, out + err
    assert "small.jsonl: the shortest so far, " in err
    assert "give the same command again to go on" in err
    shell("check", "small.jsonl", *slow, code=1)
    assert "20 turns to 2, " in shell(*asked)


def _showed(journal: Path) -> bool:
    return journal.exists() and b'"shows":true' in journal.read_bytes()


def test_hunt_finds_and_shrinks(shell: Shell) -> None:
    """Each name that is found is shrunk and kept once; nothing is found on the ideal memory."""
    asked = ("hunt", "system=flat", "name=exposed-history,superseded-active", "examples=60")
    said = shell(*asked)
    for name in ("exposed-history", "superseded-active"):
        kept = Path("hunted") / "flat" / f"{name}.jsonl"
        assert f"steeltrap check {kept} system=flat" in said
        assert (shell.folder / kept).exists()
        shell("check", str(kept), "system=flat", code=1)
    assert {path.name for path in shell.folder.iterdir()} == {"hunted"}
    assert "40 conversations on ideal: nothing" in shell("hunt", "system=ideal", "examples=40")
    assert "name=nothing: known: " in shell("hunt", "system=flat", "name=nothing", code=2)
    assert "turns and examples are at least 1" in shell("hunt", "system=flat", "turns=0", code=2)
    assert "give system=NAME" in shell("hunt", "seed=1", code=2)
