"""Runs that are killed at any moment, and then asked for again by the same command.

Where it counts the moment is a number of the script of calls that change files, not of seconds:
every change of a file is a place to die before, in the middle of and after.
"""

from __future__ import annotations

import random
import re
import shutil
import signal
from pathlib import Path
from typing import Any

import msgspec
import pytest

from steeltrap.harness.history import HistoryError, fingerprint, read_events
from steeltrap.harness.record import read_record
from steeltrap.harness.script import Script, Turn

RUN = ("run", "system=memories:Noted", "script=flip-flop", "script.turns=2", "observing=true")
"""With a twin, and with a further run of the script."""
HOWS = ("before", "half", "after")


def recorded(path: Path) -> list[Any]:
    """The outcomes that a history holds, up to where it was cut short."""
    try:
        return list(read_events(path, torn="stop"))
    except HistoryError:  # not even its first line is whole
        return []


def turns_lost(commands: Any, folder: Path, notes: Path) -> int:
    """How many turns the memory was given in its last life that no history tells of."""
    lives = (
        [life.split() for life in notes.read_text().split("open\n")[1:]] if notes.exists() else []
    )
    if not lives:
        return 0
    paths = commands.histories(folder)
    script = Script.read(next(folder.rglob("script.jsonl")))
    turns = {i for i, step in enumerate(script.steps) if isinstance(step, Turn)}
    told = [
        sum(event.i in turns for event in recorded(path)) if path.stem.startswith("history") else 0
        for path in paths
    ]
    # only the main run is as long as the script: twins may lack turns
    return len(lives[0]) - told[0] if len(lives) == 1 and told else 0


def killed_and_run_again(commands: Any, whole: Any, folder: Path, *, name: str, **how: Any) -> None:
    """Kill a run, look at what is there, give the same command again, compare with the whole one."""
    folder.mkdir()
    notes = folder.parent / f"{folder.name}.notes"
    shims = [*whole.shims, ("environment", {"ADVERSITY_NOTES": str(notes)}), *how.pop("shims", [])]
    first = commands(folder, *whole.words, shims=shims, code=None, **how)
    assert first.code in (0, -signal.SIGKILL), (name, first)
    # what says that it is finished is whole, and right
    for path in folder.rglob("record.json"):
        done = msgspec.json.encode(read_record(path).outcome, order="sorted")
        assert done in whole.state["records"], name
    assert turns_lost(commands, folder, notes) <= 1, name
    before = {path.name: len(recorded(path)) for path in commands.histories(folder)}
    again = commands(folder, *whole.words, shims=whole.shims)
    assert whole.state == whole.of(folder), (name, again)
    for path in commands.histories(folder):
        events = list(read_events(path))
        assert list(range(len(events))) == [event.i for event in events], name
        assert before.get(path.name, 0) <= len(events), name


# ---------------------------------------------------------------- runs


@pytest.mark.parametrize("compressed", [False, True])
def test_a_run_killed_at_a_change_of_a_file_ends_as_if_nothing_had_been(
    commands: Any, wholes: Any, tmp_path: Path, compressed: bool
) -> None:
    """Killed before, in the middle of or after a change of each kind to each file, a run goes on to
    the same result, and at most one turn has to be done anew."""
    whole = wholes(*RUN, compressed=compressed)
    numbers = [
        number
        for number in commands.kinds(whole.calls)
        if not compressed or re.search(r"\.zst|(unlink|utime) .*history", whole.calls[number - 1])
    ]
    assert len(numbers) > 10
    for count, number in enumerate(numbers[::2]):
        how = HOWS[count % 3]
        folder = tmp_path / f"{number}-{how}"
        name = f"{how} call {number}, {whole.calls[number - 1]}"
        killed_and_run_again(
            commands, whole, folder, name=name, shims=[commands.harm(folder, number, how)]
        )


@pytest.mark.slow
@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("how", HOWS)
def test_a_run_killed_at_every_change_of_a_file_ends_as_if_nothing_had_been(
    commands: Any, wholes: Any, tmp_path: Path, how: str, compressed: bool
) -> None:
    """There is no change of a file in a small run at which a kill alters its result."""
    whole = wholes(*RUN, compressed=compressed)
    for number, call in enumerate(whole.calls, 1):
        folder = tmp_path / str(number)
        name = f"{how} call {number}, {call}"
        killed_and_run_again(
            commands, whole, folder, name=name, shims=[commands.harm(folder, number, how)]
        )


def at_random(commands: Any, whole: Any, tmp_path: Path, count: int) -> None:
    dice = random.Random(9)
    for number in range(count):
        after_s = dice.uniform(0.0, 1.1 * whole.seconds)
        folder = tmp_path / f"random-{number}"
        killed_and_run_again(
            commands, whole, folder, name=f"after {after_s:.3f} s", kill_after_s=after_s
        )


def test_a_run_killed_at_random_ends_as_if_nothing_had_been(
    commands: Any, wholes: Any, tmp_path: Path
) -> None:
    """Killed by the clock, a run goes on to the same result."""
    at_random(commands, wholes(*RUN), tmp_path, 12)


@pytest.mark.slow
def test_200_runs_killed_at_random_end_as_if_nothing_had_been(
    commands: Any, wholes: Any, tmp_path: Path
) -> None:
    """Of 200 runs that are killed by the clock none ends in another result."""
    at_random(commands, wholes("run", "system=memories:Noted", "script=figure-1"), tmp_path, 200)


def test_a_run_that_is_killed_again_and_again_gets_there(
    commands: Any, wholes: Any, tmp_path: Path
) -> None:
    """Killed at each attempt a little later, a run loses nothing of what an attempt has added."""
    whole = wholes(*RUN)
    folder = tmp_path / "work"
    folder.mkdir()
    held = 0
    for attempt in range(200):
        shim = commands.harm(folder, 12 + attempt, HOWS[attempt % 3])
        if commands(folder, *RUN, shims=[shim], code=None).code == 0:
            break
        now = sum(len(recorded(path)) for path in commands.histories(folder))
        assert now >= held
        held = now
    assert whole.state == whole.of(folder)


# ---------------------------------------------------------------- other commands


@pytest.mark.parametrize(
    "words",
    [
        ("score", "runs"),
        pytest.param(("report", "runs", "--to", "paper"), marks=pytest.mark.slow),
        pytest.param(("report", "runs", "--html", "page.html"), marks=pytest.mark.slow),
        ("baseline", "runs", "--to", "baseline.json"),
        ("script", "make", "script=flip-flop", "script.turns=30", "out=made.jsonl"),
    ],
)
def test_a_command_that_is_killed_leaves_no_half_file(
    commands: Any, wholes: Any, tmp_path: Path, words: tuple[str, ...]
) -> None:
    """Whatever is killed while it writes can be given again, and leaves what it would have left."""
    start, whole = tmp_path / "start", tmp_path / "whole"
    start.mkdir()
    commands(start, *RUN)
    shutil.copytree(start, whole)
    commands(whole, *words, shims=[commands.harm(whole, 0, "")])
    calls, due = (tmp_path / "whole.calls").read_text().splitlines(), files(whole)
    for count, number in enumerate(commands.kinds(calls)):
        folder = tmp_path / str(number)
        shutil.copytree(start, folder)
        before = files(folder)
        how = HOWS[count % 3]
        commands(folder, *words, shims=[commands.harm(folder, number, how)], code=-signal.SIGKILL)
        for name, data in files(folder).items():
            # a file that people or commands look for is as it was, or as it will be
            if not name.endswith(".part"):
                assert data in (before.get(name), due.get(name)), (how, number, name)
        commands(folder, *words)
        assert due == files(folder), (how, calls[number - 1])


def files(folder: Path) -> dict[str, bytes]:
    """Every file with what it holds, wall times apart."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            data = path.read_bytes()
            if path.name == "record.json":
                data = msgspec.json.encode(read_record(path).outcome)
            elif path.name == "history.jsonl" or path.name.endswith(".history.jsonl"):
                data = fingerprint(path).encode()
            found[str(path.relative_to(folder))] = data
    return found
