"""The driver: what is asked, in which order, what is written, and what survives a kill."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from steeltrap.adapters.flat import Flat
from steeltrap.adapters.ideal import Ideal
from steeltrap.harness.drive import drive
from steeltrap.harness.history import HistoryError, fingerprint, read_events
from steeltrap.harness.memory import Item, Memory, MemoryFault, Query, Subject, Utterance
from steeltrap.harness.script import Gauge, Probe, Script, Turn
from steeltrap.workloads.compose import ScriptSettings, compose


@pytest.fixture(scope="module")
def script() -> Script:
    return compose(ScriptSettings(name="adversarial", turns=60), 11)


def run(memory: Memory, script: Script, folder: Path, name: str = "history.jsonl") -> Path:
    """Drive a memory through a script; returns the history."""
    if isinstance(memory, Ideal):
        memory.told(script)
    memory.open(folder)
    history = folder / name
    drive(memory, script, history, limit=10)
    memory.close()
    return history


class Recorder(Flat):
    """A transcript that notes every call."""

    def open(self, folder: Path) -> None:
        super().open(folder)
        self.calls: list[str] = []

    def ingest(self, turn: Utterance) -> None:
        self.calls.append("ingest")
        super().ingest(turn)

    def settle(self) -> None:
        self.calls.append("settle")

    def retrieve(self, query: Query) -> Sequence[Item]:
        self.calls.append("retrieve")
        return super().retrieve(query)


def test_every_step_has_one_outcome_in_order(script: Script, tmp_path: Path) -> None:
    """A whole history has an outcome for each step of the script, in the script's order."""
    events = list(read_events(run(Flat(), script, tmp_path)))
    assert list(range(len(script.steps))) == [event.i for event in events]


def test_background_work_is_awaited_before_a_question(script: Script, tmp_path: Path) -> None:
    """Between a turn and the next question the memory is told to settle, once."""
    memory = Recorder()
    run(memory, script, tmp_path)
    for before, after in zip(memory.calls, memory.calls[1:], strict=False):
        assert (before, after) != ("ingest", "retrieve")
        assert (before, after) != ("settle", "settle")


def test_measuring_questions_go_to_a_copy_where_there_is_one(
    script: Script, tmp_path: Path
) -> None:
    """A memory that forks is measured on the copy; reads of the trajectory stay in the script."""
    events = read_events(run(Ideal(), script, tmp_path))
    for event in events:
        step = script.steps[event.i]
        if isinstance(step, Probe):
            assert step.observe == event.via


def test_gauges_count_what_is_listed(script: Script, tmp_path: Path) -> None:
    """The ideal memory lists exactly the true footprint, in units and in tokens."""
    for event in read_events(run(Ideal(), script, tmp_path)):
        step = script.steps[event.i]
        if isinstance(step, Gauge):
            assert step.footprint == (event.items, event.tokens)


def test_an_item_is_written_once(script: Script, tmp_path: Path) -> None:
    """A transcript served a hundred times does not make the history quadratic."""
    written = [item for event in read_events(run(Flat(), script, tmp_path)) for item in event.new]
    assert len(written) == len(set(written)) == script.turns


class Failing(Flat):
    """Refuses every third turn, and breaks at every fifth."""

    count = 0

    def ingest(self, turn: Utterance) -> None:
        self.count += 1
        if self.count % 3 == 0:
            raise MemoryFault("too busy, nothing was stored")
        if self.count % 5 == 0:
            raise ConnectionError("the line went dead")
        super().ingest(turn)


def test_a_failure_is_an_outcome_and_not_the_end(script: Script, tmp_path: Path) -> None:
    """fail: certainly not done; info: nobody knows; the run goes on and keeps the words."""
    events = [e for e in read_events(run(Failing(), script, tmp_path)) if isinstance(script.steps[e.i], Turn)]  # fmt: skip
    assert ["ok", "ok", "fail", "ok", "info", "fail"] == [event.type for event in events[:6]]
    assert "ConnectionError: the line went dead" == events[4].error


class Garbage(Flat):
    """Serves what is not an item."""

    def __init__(self, reply: object) -> None:
        super().__init__()
        self.reply = reply

    def retrieve(self, query: Query) -> Sequence[Item]:
        super().retrieve(query)
        return self.reply  # type: ignore[return-value]


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        ("text", "retrieve returned str, not a list of Item"),
        (None, "retrieve returned NoneType, not a list of Item"),
        (["text"], "retrieve returned a list with str in it, not Item"),
        ([Item(text=3)], "retrieve returned an Item whose text is int"),  # type: ignore[arg-type]
        ([Item("a", sources=["t1"])], "a list as sources; give a tuple of turn ids"),  # type: ignore[arg-type]
        ([Item("a", score=float("nan"))], "an Item with score nan, not a finite number"),
        ([Item("a", score=float("-inf"))], "an Item with score -inf, not a finite number"),
        ([Item("\ud800")], "an Item whose text is not valid Unicode"),
        ([Item("a", valid_to="2 Jan 2026")], "an Item with the time '2 Jan 2026'; write ISO 8601"),
        ([Item("a", valid_from=3)], "an Item whose valid_from is int, not text"),  # type: ignore[arg-type]
    ],
)
def test_a_reply_of_the_wrong_shape_is_named(
    script: Script, tmp_path: Path, reply: object, said: str
) -> None:
    """Whatever an adapter returns, the run goes on and says what was wrong with it."""
    events = list(read_events(run(Garbage(reply), script, tmp_path)))
    asked = [event for event in events if isinstance(script.steps[event.i], Probe)]
    assert all(event.type == "info" and said in event.error for event in asked)


@pytest.mark.parametrize("share", [0.0, 0.01, 0.3, 0.77, 0.999])
@pytest.mark.parametrize("make", [Ideal, Flat])
def test_a_run_cut_anywhere_goes_on_as_if_nothing_had_been(
    script: Script, tmp_path: Path, make: type[Ideal | Flat], share: float
) -> None:
    """Cut at any byte, in the middle of a line too, a history is completed to the same behaviour."""
    whole = run(make(), script, tmp_path)
    cut = tmp_path / "cut.jsonl"
    data = whole.read_bytes()
    cut.write_bytes(data[: int(len(data) * share)])
    assert fingerprint(whole) == fingerprint(run(make(), script, tmp_path, "cut.jsonl"))


def test_a_history_of_something_else_is_left_alone(script: Script, tmp_path: Path) -> None:
    """A run never writes into the history of another script or budget."""
    history = run(Flat(), script, tmp_path)
    before = history.read_bytes()
    other = compose(ScriptSettings(name="adversarial", turns=60), 12)
    with pytest.raises(HistoryError, match="recorded for another script"):
        run(Flat(), other, tmp_path)
    assert before == history.read_bytes()


SLOW_RUN = """
import sys, time
from pathlib import Path
from steeltrap.adapters.flat import Flat
from steeltrap.harness.drive import drive
from steeltrap.harness.script import Script

class Slow(Flat):
    def ingest(self, turn):
        time.sleep(0.01)
        super().ingest(turn)

memory = Slow()
memory.open(Path(sys.argv[2]).parent)
drive(memory, Script.read(Path(sys.argv[1])), Path(sys.argv[2]), limit=10)
"""


def test_kill_9_loses_nothing_that_was_done(script: Script, tmp_path: Path) -> None:
    """A process killed by the system leaves every finished step behind, and the run is completed."""
    path, history = tmp_path / "script.jsonl", tmp_path / "killed.jsonl"
    script.write(path)
    whole = fingerprint(run(Flat(), script, tmp_path))
    for _ in range(3):
        process = subprocess.Popen([sys.executable, "-c", SLOW_RUN, str(path), str(history)])
        before = history.stat().st_size if history.exists() else 0
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and process.poll() is None:
            if history.exists() and history.stat().st_size > before + 2000:
                break
            time.sleep(0.005)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    assert 0 < len(list(read_events(history, torn="stop"))) < len(script.steps)
    assert whole == fingerprint(run(Flat(), script, tmp_path, "killed.jsonl"))


def test_a_truncated_history_says_what_to_do(script: Script, tmp_path: Path) -> None:
    """A history that ends in half a line cannot be scored, and the error says how to go on."""
    history = run(Flat(), script, tmp_path)
    history.write_bytes(history.read_bytes()[:-20])
    with pytest.raises(HistoryError, match="cut short here: run it again to go on"):
        list(read_events(history))


class Flaky(Ideal):
    """Breaks in the middle of a step, after some of its items have been numbered."""

    count = 0

    def recover(self, subject: Subject) -> Sequence[Item]:
        self.count += 1
        if self.count % 2:
            raise ConnectionError("the archive does not answer")
        return super().recover(subject)


def test_a_step_that_breaks_half_way_leaves_the_history_readable(
    script: Script, tmp_path: Path
) -> None:
    """Every item that got a number is written, so that later numbers mean what they meant."""
    seen = 0
    for event in read_events(run(Flaky(), script, tmp_path)):
        seen += len(event.new)
        numbers = [*event.served, *(event.versions or ()), *(event.recovered or ())]
        assert all(number < seen for number in numbers)


class SecondLife(Flat):
    """Takes a turn in at the first attempt and refuses it at the second."""

    refuse = False

    def ingest(self, turn: Utterance) -> None:
        if self.refuse and turn.id == "t0003":
            raise MemoryFault("not this time")
        super().ingest(turn)


def test_a_run_that_cannot_be_taken_up_says_so(script: Script, tmp_path: Path) -> None:
    """If a recorded step ends otherwise when it is done over, the run does not go on in silence."""
    history = run(SecondLife(), script, tmp_path)
    history.write_bytes(history.read_bytes()[:-20])
    second = SecondLife()
    second.refuse = True
    with pytest.raises(HistoryError, match="cannot be brought back to where the run stopped"):
        run(second, script, tmp_path)
