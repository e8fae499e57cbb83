"""What becomes of a run whose system hangs, takes too much, or dies; and of one that has no more time."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from rich.console import Console

from steeltrap.adapters.ideal import Ideal
from steeltrap.harness.commands.run import run
from steeltrap.harness.history import Event, HistoryError, ending, fingerprint, read_events
from steeltrap.harness.limits import Limits
from steeltrap.harness.memory import (
    Item,
    Memory,
    MemoryDied,
    MemoryFault,
    Query,
    Subject,
    Utterance,
)
from steeltrap.harness.readers import Oracle
from steeltrap.harness.record import Record, read_record
from steeltrap.harness.remote import Remote
from steeltrap.harness.run import run_cell, score_cell
from steeltrap.harness.script import Pause, Probe, Script, Turn
from steeltrap.harness.settings import cells
from steeltrap.harness.store import Cell, open_cell, run_spec
from steeltrap.workloads.compose import ScriptSettings, compose
from steeltrap.workloads.families import EVERY

WORKERS = Path(__file__).parent / "workers"


@pytest.fixture(scope="module")
def script() -> Script:
    """Everything that an ideal memory can show, and twins."""
    families = {"reinforcement": 1.0, "revision-chain": 1.0, "dependency-cascade": 1.0}
    return compose(ScriptSettings(name="mixed", turns=80, families=families), 5)


def cell(folder: Path, script: Script, twins: int = 1) -> Cell:
    spec = run_spec(
        script, system="mortal", settings={}, reader="oracle", limit=10, twins=twins, repeats=1
    )
    return open_cell(folder, spec, script)


def turns(script: Script) -> list[str]:
    return [step.id for step in script.steps if isinstance(step, Turn)]


def ends(folder: Cell) -> str:
    """A letter for each step: o(k), f(ailed), d(ied) or g(one)."""
    return "".join((event.worker or event.type)[0] for event in read_events(folder.history))


# ---------------------------------------------------------------- in workers


@pytest.fixture
def mortal(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., Remote]:
    """Makes memories of `workers/mortal.py` that die once at the places given."""
    monkeypatch.setenv("PYTHONPATH", str(WORKERS))

    def made(at: dict[str, str], limits: Limits, **settings: Any) -> Remote:
        node = {
            "_target_": "mortal.Mortal", "at": at, "notes": str(tmp_path / "notes"), **settings,
        }  # fmt: skip
        return Remote(node, passes=("PYTHONPATH",), limits=limits)

    return made


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ("KILL", "was killed by SIGKILL during ingest"),
        ("hang", "gave no answer in 2 s (limits.step_s) and was stopped during ingest; its last"),
        ("hog", "MB, more than limits.memory_mb=300, and was stopped during ingest"),
    ],
)
def test_who_died_once_is_right_again(
    mortal: Callable[..., Remote], script: Script, tmp_path: Path, how: str, words: str
) -> None:
    """The step says how it ended; every later one is done, and nothing is held against the memory."""
    limits = Limits(step_s=2, memory_mb=300)
    at = {turns(script)[30]: how}
    folder = cell(tmp_path, script, twins=0)
    record = run_cell(folder, lambda: mortal(at, limits), script, Oracle(), limits=limits)
    assert re.fullmatch("o{30,}do{30,}", ends(folder))
    (died,) = (event for event in read_events(folder.history) if event.worker)
    assert "info" == died.type
    assert died.error.startswith("WorkerDied: the worker of Mortal ")
    assert words in died.error
    assert {turns(script)[30]: f"info: {died.error}"} == record.outcome.lost
    assert 1 == record.outcome.failed
    assert 0 == sum(verdict.violations for verdict in record.outcome.verdicts.values())
    assert "held" == record.outcome.verdicts["C1"].validity
    assert 1.0 == record.outcome.recall


def test_who_dies_at_questions_and_pauses_goes_on_too(
    mortal: Callable[..., Remote], tmp_path: Path
) -> None:
    """Whatever the step, the memory is brought back without it, forks and all."""
    script = compose(ScriptSettings(name="expiry", turns=60, families={"expiry": 1.0}), 1)
    pauses = [step.at for step in script.steps if isinstance(step, Pause)]
    probes = [step.id for step in script.steps if isinstance(step, Probe)]
    at = {pauses[len(pauses) // 2]: "SEGV", probes[9]: "leave", probes[-9]: "TERM"}
    folder = cell(tmp_path, script, twins=0)
    record = run_cell(folder, lambda: mortal(at, Limits()), script, Oracle())
    assert 3 == ends(folder).count("d")
    assert 3 == record.outcome.failed
    assert 0 == sum(verdict.violations for verdict in record.outcome.verdicts.values())


def test_who_dies_again_and_again_is_given_up(
    mortal: Callable[..., Remote], script: Script, tmp_path: Path
) -> None:
    """After so many restarts the rest is not tried, and what was not seen is unknown in the record."""
    at = dict.fromkeys(turns(script)[2:8], "KILL")
    limits = Limits(restarts=1)
    folder = cell(tmp_path, script, twins=0)
    record = run_cell(folder, lambda: mortal(at, limits), script, Oracle(), limits=limits)
    assert re.fullmatch("o+do+dg+", ends(folder))
    _, second, first_gone, *_, last = (e.error for e in read_events(folder.history) if e.worker)
    assert first_gone == f"not tried: given up after 1 restart; {second}"
    assert last == f"not tried: given up at step {ends(folder).index('g')}"
    assert len(script.steps) == record.outcome.steps
    verdicts = record.outcome.verdicts.values()
    assert 0 == sum(verdict.violations for verdict in verdicts)
    assert {"unknown"} == {one.validity for one in verdicts if not one.opportunities}
    assert "unknown" == record.outcome.verdicts["C6"].validity


@pytest.mark.parametrize(
    ("how", "words"),
    [
        (
            {"ages": 5},
            "and ends 'info' when it is done over (WorkerDied: the worker of Mortal ended",
        ),
        ({"forgets": True}, "shows other items when it is done over"),
    ],
)
def test_who_cannot_be_brought_back_is_given_up(
    mortal: Callable[..., Remote], script: Script, tmp_path: Path, how: dict[str, Any], words: str
) -> None:
    """A memory that dies on the way, or comes to another state, is not taken for the one that was."""
    folder = cell(tmp_path, script, twins=0)
    at = {turns(script)[20]: "KILL"}
    run_cell(folder, lambda: mortal(at, Limits(), **how), script, Oracle())
    assert re.fullmatch("o+dg+", ends(folder))
    first = next(event for event in read_events(folder.history) if event.worker == "gone")
    assert re.match(r"not tried: given up as it cannot be brought back: step \d+ ", first.error)
    assert words in first.error


def test_a_run_with_deaths_that_was_killed_ends_in_the_same_history(
    mortal: Callable[..., Remote], script: Script, tmp_path: Path
) -> None:
    """Cut before, at and after a death, and where it was given up, it is taken up to the same end."""
    at = {turns(script)[n]: "KILL" for n in (10, 20)}
    limits = Limits(restarts=1)
    folder = cell(tmp_path, script, twins=0)

    def gone_on() -> str:
        run_cell(folder, lambda: mortal(at, limits), script, Oracle(), limits=limits)
        return fingerprint(folder.history)

    whole = gone_on()
    data, letters = folder.history.read_bytes(), ends(folder)
    lines = data.splitlines(keepends=True)
    first, second = letters.index("d"), letters.rindex("d")
    for steps in (first, first + 1, first + 4, second, second + 1, second + 5):
        places = [e.i for e in read_events(folder.history) if e.worker == "died" and e.i < steps]
        notes = "\n".join(script.steps[i].id for i in places)
        (tmp_path / "notes").write_text(f"{notes}\n")
        folder.history.write_bytes(b"".join(lines[: 1 + 2 * steps]))
        assert whole == gone_on(), steps
        assert letters == ends(folder), steps


# ---------------------------------------------------------------- scored fairly


class Frail(Ideal):
    """Dies at its operations of given numbers, counted over all its lives and copies."""

    def __init__(self, at: Sequence[int]) -> None:
        self.at = set(at)
        self.shared = {"count": 0, "dead": 0}

    def open(self, folder: Path) -> None:
        super().open(folder)
        self.shared["dead"] = 0

    def _meet(self, text: str) -> None:
        self.shared["count"] += 1
        self.shared["dead"] |= self.shared["count"] in self.at
        if self.shared["dead"]:
            raise MemoryDied(f"at {text}")

    def ingest(self, turn: Utterance) -> None:
        self._meet(turn.text)
        super().ingest(turn)

    def retrieve(self, query: Query) -> Sequence[Item]:
        self._meet(query.text)
        return super().retrieve(query)

    def maintain(self, at: str) -> None:
        self._meet(at)
        super().maintain(at)

    def erase(self, tenant: str, subject: Subject | None) -> None:
        self._meet(tenant)
        super().erase(tenant, subject)


@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(n, marks=pytest.mark.slow) for n in range(1, 6))]
)
@pytest.mark.parametrize("family", EVERY)
def test_no_death_is_a_violation(family: str, seed: int, tmp_path: Path) -> None:
    """Wherever the ideal memory dies, in its run and its twins', nothing is held against it."""
    script = compose(ScriptSettings(name=family, turns=60, families={family: 1.0}), seed)
    luck = random.Random(f"{family} {seed}")

    def frail() -> Memory:
        return Frail([luck.randrange(1, n * len(script.steps) // 2) for n in (1, 3, 4)])

    folder = cell(tmp_path, script)
    record = run_cell(folder, frail, script, Oracle(), limits=Limits(restarts=luck.randrange(3)))
    assert "" == folder.violations.read_text()
    assert len(script.steps) == record.outcome.steps
    assert record.outcome.failed


def test_calls_made_while_it_is_brought_back_are_nobodys(tmp_path: Path) -> None:
    """A death leaves the history of a run that lacks the step: the same calls, and each once."""
    faults = ["faults=some", "faults.status_500=0.3", "faults.retries=0"]
    faults += [f"faults.{kind}=0" for kind in ("status_429", "timeout", "cut", "malformed", "empty", "wrong_schema")]  # fmt: skip
    asked = ["system=gem", "script=flip-flop", "script.turns=12", "twins=0"]
    (settings,) = cells([*asked, *faults])
    script = settings.script()
    lost = turns(script)[4]

    def lived(error: type[Exception], folder: Path) -> list[Event]:
        places = [lost]

        def made() -> Memory:
            memory = settings.memory()
            ingest, opened = memory.ingest, memory.open

            def met(turn: Utterance) -> None:
                if turn.id in places:
                    places.remove(turn.id)
                    raise error("so")
                ingest(turn)

            def again(folder: Path) -> None:
                memory.close()
                opened(folder)

            memory.ingest, memory.open = met, again  # type: ignore[method-assign]
            return memory

        ran = cell(folder, script, twins=0)
        with settings.gateway(script) as gateway:
            run_cell(ran, made, script, Oracle(), gateway=gateway)
        return events(ran.record)

    died, refused = lived(MemoryDied, tmp_path / "died"), lived(MemoryFault, tmp_path / "refused")
    differ = [n for n, (a, b) in enumerate(zip(died, refused, strict=True)) if a != b]
    assert [lost] == [script.steps[n].id for n in differ]
    assert 1 < sum(event.type != "ok" for event in died) < len(died) / 2


# ---------------------------------------------------------------- a run that has no more time


@pytest.fixture
def clocked(monkeypatch: pytest.MonkeyPatch) -> type[Memory]:
    """A memory whose every turn takes a second, and nothing else any time."""
    now = 0.0

    class Clocked(Ideal):
        def ingest(self, turn: Utterance) -> None:
            nonlocal now
            now += 1.0
            super().ingest(turn)

    monkeypatch.setattr("steeltrap.harness.driver.perf_counter", lambda: now)
    return Clocked


def test_a_run_that_has_no_more_time_is_scored_as_far_as_it_came(
    script: Script, tmp_path: Path, clocked: type[Memory]
) -> None:
    """It ends between two steps, says so, has no twins, and what was not tested is unknown."""
    folder = cell(tmp_path, script)
    record = run_cell(folder, clocked, script, Oracle(), limits=Limits(run_s=20))
    assert "after 20 s (limits.run_s), at turn 20 of 80" == record.outcome.stopped
    assert 20 == record.outcome.turns
    assert 20.0 == record.timing.run_s
    assert [] == list(folder.twins.glob("*")) == list(record.outcome.twins)
    untested = [v for v in record.outcome.verdicts.values() if not v.opportunities]
    assert {"unknown"} == {verdict.validity for verdict in untested}
    assert record == score_cell(folder, script)


def test_with_more_time_it_goes_on_to_the_same_end(
    script: Script, tmp_path: Path, clocked: type[Memory]
) -> None:
    """In several pieces the run and its twins come to the outcome of one that was never stopped."""
    whole = run_cell(cell(tmp_path / "whole", script), clocked, script, Oracle())
    assert whole.outcome.twins
    folder = cell(tmp_path / "pieces", script)
    found = [
        run_cell(folder, clocked, script, Oracle(), limits=Limits(run_s=run_s)).outcome.turns
        for run_s in (10, 11, 11, 60.5)
    ]
    assert [10, 11, 11, 61] == found
    last = run_cell(folder, clocked, script, Oracle())
    assert msgspec.json.encode(whole.outcome) == msgspec.json.encode(last.outcome)
    assert last.timing.run_s is None


def test_time_counts_over_interruptions(
    script: Script, tmp_path: Path, clocked: type[Memory]
) -> None:
    """What was recorded before a kill counts, however long doing it over takes."""
    folder = cell(tmp_path, script)
    limits = Limits(run_s=40)
    run_cell(folder, clocked, script, Oracle(), limits=limits)
    whole = folder.history.read_bytes()
    lines = whole.splitlines(keepends=True)
    for cut in (1, 31, len(lines) - 2, len(lines) - 1):
        folder.history.write_bytes(b"".join(lines[:cut]) + lines[cut][:5])
        if cut == len(lines) - 1:
            with pytest.raises(HistoryError, match="run it again to go on"):
                score_cell(folder, script)
        run_cell(folder, clocked, script, Oracle(), limits=limits)
        assert whole == folder.history.read_bytes()


def test_a_twin_that_has_no_more_time_is_not_compared(
    script: Script, tmp_path: Path, clocked: type[Memory]
) -> None:
    """The run is whole and has its verdicts; the record says that something beside it was not."""
    folder = cell(tmp_path, script)
    run_cell(folder, clocked, script, Oracle())
    (twin, *_) = sorted(folder.twins.glob("*.history.jsonl"))
    twin.unlink()
    record = run_cell(folder, clocked, script, Oracle(), limits=Limits(run_s=80.5))
    assert record.outcome.twins
    twin.unlink()
    for limited in folder.twins.glob("*.history.jsonl"):
        limited.unlink()
    record = run_cell(folder, clocked, script, Oracle(), limits=Limits(run_s=30))
    assert ("", 30.0, {}) == (record.outcome.stopped, record.timing.run_s, record.outcome.twins)
    assert ending(twin) is not None


def test_an_end_is_the_end(script: Script, tmp_path: Path, clocked: type[Memory]) -> None:
    """A history that goes on behind its end is refused."""
    folder = cell(tmp_path, script)
    run_cell(folder, clocked, script, Oracle(), limits=Limits(run_s=5))
    with folder.history.open("ab") as history:
        history.write(b'{"i":60,"type":"ok"}\n')
    with pytest.raises(HistoryError, match="goes on behind its end"):
        list(read_events(folder.history))


def test_the_same_command_with_more_time_goes_on(tmp_path: Path) -> None:
    """A run that ended early is finished for as much time, and taken up for more."""
    asked = ["system=flat", "script.turns=30", f"runs={tmp_path}", "twins=0"]

    def ran(*more: str) -> Record:
        run([*asked, *more], Console(quiet=True), Console(quiet=True))
        (path,) = tmp_path.rglob("record.json")
        return read_record(path)

    early = ran("limits.run_s=1e-9")
    assert "after 1e-09 s (limits.run_s), at turn 1 of 30" == early.outcome.stopped
    (path,) = tmp_path.rglob("record.json")
    stamp = path.stat().st_mtime_ns
    assert early == ran("limits.run_s=1e-9") == ran("limits.run_s=1e-10")
    assert stamp == path.stat().st_mtime_ns
    whole = ran()
    assert (30, "") == (whole.outcome.turns, whole.outcome.stopped)


# ---------------------------------------------------------------- in process and in a worker


@pytest.mark.slow
@pytest.mark.parametrize("system", ["gem", "vector", "relational"])
def test_a_limit_changes_nothing_but_where_it_runs(system: str, tmp_path: Path) -> None:
    """A limit of a step puts a system into a worker, and its run has the same bytes but for times."""
    asked = [f"system={system}", "script.turns=40", "twins=0"]
    for where, more in (("here", []), ("there", ["limits.step_s=60"])):
        runs = f"runs={tmp_path / where}"
        run([*asked, runs, *more], Console(quiet=True), Console(quiet=True))
    here, there = ((tmp_path / where) for where in ("here", "there"))
    (a,), (b,) = here.rglob("record.json"), there.rglob("record.json")
    assert a.relative_to(here) == b.relative_to(there)
    assert read_record(a).outcome == read_record(b).outcome
    pairs = zip(events(a), events(b), strict=True)
    assert all(one == other for one, other in pairs)


def events(record: Path) -> list[Event]:
    found = list(read_events(record.parent / "history.jsonl"))
    for event in found:
        event.ms = event.settle_ms = 0.0
        event.size_bytes = event.remains = None
        event.error = re.sub(r"127\.0\.0\.1:\d+", "127.0.0.1", event.error)
        event.usage = {k: msgspec.structs.replace(used, ms=0.0) for k, used in event.usage.items()}
    return found
