"""The same cells under every execution, as commands; slow, since Ray needs seconds to begin.

python -m pytest -m slow tests/harness/execution
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from steeltrap.harness.history import fingerprint
from steeltrap.harness.record import read_record

pytestmark = pytest.mark.slow

DIES = """
import os, signal, time
from steeltrap.harness.memory import Item

class Slow:
    def __init__(self, pause_s=0.0):
        self.pause_s = pause_s
    def open(self, folder):
        self.turns = []
    def close(self):
        pass
    def ingest(self, turn):
        time.sleep(self.pause_s)
        self.turns.append(turn)
    def retrieve(self, query):
        return [Item(text=turn.text) for turn in self.turns[-5:]]
    def settle(self):
        pass

class Dies(Slow):
    def ingest(self, turn):
        os.kill(os.getpid(), signal.SIGKILL)
"""
SLURM = ("execution=slurm", "execution.cluster=local")


@pytest.fixture
def cache() -> Iterator[Path]:
    """A cache folder with a path that is short enough for sockets."""
    folder = Path(tempfile.mkdtemp(prefix="st"))
    yield folder
    shutil.rmtree(folder)


Command = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def command(tmp_path: Path, root: Path, cache: Path) -> Command:
    """Begins `steeltrap run` in a folder of its own, with a memory in it."""
    (tmp_path / "mine.py").write_text(DIES)
    env = os.environ | {
        "PYTHONPATH": str(root / ".src"),
        "STEELTRAP_CACHE": str(cache),
        "COLUMNS": "200",
    }

    def begin(*words: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "steeltrap", "run", *words],
            cwd=tmp_path, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip

    return begin


def ran(process: subprocess.Popen[str], code: int = 0) -> str:
    out, err = process.communicate(timeout=600)
    assert code == process.returncode, out + err
    assert "Traceback" not in err
    return out + err


def found(folder: Path) -> dict[str, Any]:
    """What each cell found, by its name: histories, records and violations."""
    return {
        path.parent.name: (
            fingerprint(path),
            read_record(path.parent / "record.json").outcome,
            (path.parent / "violations.jsonl").read_bytes(),
            sorted(one.name for one in path.parent.rglob("*")),
        )
        for path in folder.glob("*/history.jsonl*")
    }


@pytest.mark.parametrize(
    "asked",
    [
        ["system=flat,vector,gem", "script.turns=40"],
        ["system=bm25", "+system.worker=true", "script=erasure", "script.turns=30"],
    ],
)
def test_every_execution_finds_the_same(command: Command, tmp_path: Path, asked: list[str]) -> None:
    """One process, two, Ray and jobs give the same bytes, of systems here, in workers, and with models."""
    pytest.importorskip("ray")
    everywhere = {
        "one": ["processes=1"],
        "two": ["processes=2"],
        "ray": ["execution=ray", "processes=2"],
        "job": [*SLURM, "processes=2"],
    }
    for name, how in everywhere.items():
        ran(command(*asked, "seed=0,1", f"runs={name}", "name=same", *how))
    one, *others = (found(tmp_path / name / "same") for name in everywhere)
    assert len(one) in (2, 6)
    for other in others:
        assert one == other
    assert not (tmp_path / "job" / "same" / "slurm").exists()


@pytest.mark.parametrize("how", [["execution=ray"], [*SLURM]], ids=["ray", "slurm"])
def test_a_cell_whose_process_dies_fails_alone(command: Command, how: list[str]) -> None:
    """It is named with what is known of its death; what is finished is not run again."""
    pytest.importorskip("ray")
    asked = [*how, "script=figure-1", "processes=2", "name=n"]
    said = ran(command(*asked, "system=flat,mine:Dies"), 1)
    assert "mine:Dies, seed 0: its " in said
    assert "finished before" in ran(command(*asked, "system=flat"))


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_ray_of_this_machine_ends_with_the_sweep(
    command: Command, tmp_path: Path, cache: Path, how: signal.Signals
) -> None:
    """It listens on loopback alone, nothing of it is left behind, and the cells can go on."""
    pytest.importorskip("ray")
    asked = [
        "system=mine:Slow", "+system.pause_s=0.1", "script=stale-echo", "script.turns=40",
        "seed=0,1", "execution=ray", "processes=2",
    ]  # fmt: skip
    process = command(*asked)
    _until(lambda: len([*tmp_path.rglob("history.jsonl")]) == 2)
    began = psutil.Process(process.pid).children(recursive=True)
    listening = {
        one.laddr.ip.removeprefix("::ffff:")
        for each in began
        for one in each.net_connections()
        if one.status == psutil.CONN_LISTEN
    }
    assert {"127.0.0.1"} == listening
    process.send_signal(how)
    process.communicate(timeout=120)
    _until(lambda: not any(each.is_running() and each.status() != "zombie" for each in began))
    if how is not signal.SIGKILL:
        assert 130 == process.returncode
        assert [] == [*(cache / "ray").iterdir()]
    ran(command(*asked))
    assert [] == [*(cache / "ray").iterdir()]
    assert 2 == len([*tmp_path.rglob("record.json")])


def _until(done: Callable[[], bool]) -> None:
    """Wait for something, two minutes at most."""
    end = time.monotonic() + 120
    while not done():
        assert time.monotonic() < end
        time.sleep(0.1)


@pytest.mark.parametrize(("package", "extra"), [("ray", "ray"), ("submitit", "slurm")])
def test_an_execution_that_is_not_installed_names_its_extra(
    command: Command, tmp_path: Path, package: str, extra: str
) -> None:
    """One sentence says what to install."""
    (tmp_path / f"{package}.py").write_text("raise ModuleNotFoundError('no such module')")
    said = ran(
        command("system=flat", f"execution={extra}", *(SLURM[1:] if extra == "slurm" else ())), 2
    )
    assert f"needs the package '{package}'" in said and f"pip install 'steeltrap[{extra}]'" in said


def test_slurm_needs_a_cluster(command: Command) -> None:
    """Without sbatch nothing is begun."""
    if shutil.which("sbatch"):
        pytest.skip("this machine has Slurm")
    assert "there is no command sbatch here" in ran(command("system=flat", "execution=slurm"), 2)


def test_nothing_is_kept_of_what_a_job_was_told(command: Command, tmp_path: Path) -> None:
    """Of a job that failed the log stays, and no settings."""
    ran(command(*SLURM, "system=mine:Dies", "script=figure-1", "name=n"), 1)
    left = [path.name for path in (tmp_path / "runs" / "n" / "slurm").iterdir()]
    assert left
    assert {".out"} == {Path(name).suffix for name in left}
