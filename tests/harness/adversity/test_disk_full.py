"""Disks that are full, and folders that cannot be written to."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from steeltrap.harness.record import read_record

RUN = ("run", "system=memories:Noted", "script=flip-flop", "script.turns=2", "observing=true")
FULL = "No space left on device"


def told(ended: Any, words: str) -> None:
    """One sentence on standard error says it, with a place."""
    (said,) = [line for line in ended.err.splitlines() if line.startswith("steeltrap: ")]
    everything = " ".join(ended.err.split())
    assert words in everything, ended
    assert "runs" in said, ended


def full_from(commands: Any, whole: Any, folder: Path, number: int) -> None:
    """Fill the disk at a change of a file, look, make room, and go on by the same command."""
    folder.mkdir()
    ended = commands(folder, *RUN, shims=[commands.harm(folder, number, "full")], code=None)
    name = f"call {number}, {whole.calls[number - 1]}"
    if ended.code:
        assert ended.code == 1, (name, ended)
        told(ended, FULL)
    for path in folder.rglob("record.json"):
        done = msgspec.json.encode(read_record(path).outcome, order="sorted")
        assert done in whole.state["records"], name
    assert not list(folder.rglob("*.part")), (name, ended)
    commands(folder, *RUN)
    assert whole.state == whole.of(folder), name


def test_a_disk_that_fills_up_loses_nothing(commands: Any, wholes: Any, tmp_path: Path) -> None:
    """From whatever write on there is no room, a sentence says so with the folder, exit code 1; no
    half file stays, and after room was made the same command ends as if there always had been."""
    whole = wholes(*RUN)
    for number in commands.kinds(whole.calls)[::3]:
        full_from(commands, whole, tmp_path / str(number), number)


@pytest.mark.slow
def test_a_disk_that_fills_up_at_any_write_loses_nothing(
    commands: Any, wholes: Any, tmp_path: Path
) -> None:
    """There is no change of a file in a small run at which a full disk alters its result."""
    whole = wholes(*RUN)
    for number in range(1, len(whole.calls) + 1):
        full_from(commands, whole, tmp_path / str(number), number)


@pytest.fixture
def mounted(tmp_path: Path) -> Iterator[Path]:
    """A file system of 40 kB."""
    folder = tmp_path / "small"
    folder.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=40k", "none", str(folder)], capture_output=True
    )
    if done.returncode:
        pytest.skip("only the superuser may mount a file system")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def test_a_small_file_system(commands: Any, wholes: Any, mounted: Path, work: Path) -> None:
    """On a real disk without room the run stops with a sentence; with room it goes on."""
    asked = (*RUN, "seed=0,1,2,3")
    (work / "runs").symlink_to(mounted)
    told(commands(work, *asked, code=1), FULL)
    finished = sorted(mounted.rglob("record.json"))
    assert 0 < len(finished) < 4
    before = [path.read_bytes() for path in finished]
    subprocess.run(["mount", "-o", "remount,size=4m", str(mounted)], check=True)
    commands(work, *asked)
    assert before == [path.read_bytes() for path in finished]
    assert 4 == len(list(mounted.rglob("record.json")))


def test_a_file_that_may_not_grow(commands: Any, wholes: Any, work: Path) -> None:
    """Where no file may be longer than so much, it is the same: a sentence, and on from there."""
    whole = wholes(*RUN)
    ended = commands(work, *RUN, shims=[("longest_file", {"size": 1500})], code=1)
    told(ended, "File too large")
    commands(work, *RUN)
    assert whole.state == whole.of(work)


# ---------------------------------------------------------------- read-only


@pytest.fixture
def readonly(tmp_path: Path) -> Iterator[Any]:
    """Makes a folder one that nobody may write to."""
    bound: list[Path] = []

    def make(folder: Path) -> Path:
        for options in (["--bind", str(folder)], ["-o", "remount,ro,bind"]):
            if subprocess.run(["mount", *options, str(folder)], capture_output=True).returncode:
                pytest.skip("only the superuser may mount a folder")
            bound.append(folder)
        return folder

    yield make
    for folder in dict.fromkeys(bound):
        subprocess.run(["umount", "-l", str(folder)], check=True)


def test_a_folder_that_may_not_be_written_to(commands: Any, work: Path, readonly: Any) -> None:
    """A sentence names the folder and the setting that chooses another; nothing is there."""
    runs = work / "runs"
    runs.mkdir()
    readonly(runs)
    told(commands(work, *RUN, code=1), "cannot be written (Read-only file system)")
    assert [] == list(runs.iterdir())
    commands(work, *RUN, "runs=elsewhere")


def test_results_that_may_only_be_read(commands: Any, work: Path, readonly: Any) -> None:
    """Finished runs in a folder that may only be read are still found, and tables made of them."""
    commands(work, *RUN)
    readonly(work / "runs")
    assert "flip-flop, 2 turns" in commands(work, "report", "runs").out
    ended = commands(work, "score", "runs", code=1)
    told(ended, "Read-only file system")
    commands(work, "baseline", "runs", "--to", "baseline.json")
    ended = commands(work, "baseline", "runs", "--to", "runs/baseline.json", code=1)
    told(ended, "Read-only file system")


def test_a_cache_that_may_not_be_written_to(
    commands: Any, work: Path, readonly: Any, tmp_path: Path, root: Path
) -> None:
    """What is unpacked once cannot be unpacked there: a sentence names the folder."""
    cache = tmp_path / "cache"
    cache.mkdir()
    readonly(cache)
    env = os.environ | {"STEELTRAP_CACHE": str(cache), "PYTHONPATH": str(root / ".src")}
    done = subprocess.run(
        [sys.executable, "-m", "steeltrap", "run", "system=flat", "script=flip-flop", "script.turns=2"],
        cwd=work, env=env, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 1, done
    assert "Traceback" not in done.stderr
    assert f"{cache}" in " ".join(done.stderr.split())
    assert "Read-only file system" in done.stderr
    assert not list(work.rglob("record.json"))
