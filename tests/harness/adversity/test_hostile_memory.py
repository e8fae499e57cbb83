"""Memories that mean no good, in this process and in a worker."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steeltrap.adapters.flat import Flat
from steeltrap.harness.drive import drive
from steeltrap.harness.history import Event, HistoryWriter, fingerprint, read_events
from steeltrap.harness.memory import Item, Query
from steeltrap.harness.record import Record, read_record
from steeltrap.harness.replies import Items
from steeltrap.harness.script import Probe, Script
from steeltrap.workloads.compose import ScriptSettings, compose

SMALL = ("script=flip-flop", "script.turns=3")
IN_WORKER = ("+system.worker=true", "+system.passes=[PYTHONPATH]", "limits.step_s=3", "limits.restarts=0")  # fmt: skip
REFUSED = {
    "none": "retrieve returned NoneType, not a list of Item",
    "text": "retrieve returned str",
    "number": "retrieve returned int",
    "object": "retrieve returned object",
    "class": "a list with StructMeta in it",
    "generator": "retrieve returned generator",
    "nan": "score nan, not a finite number",
    "minus infinity": "score -inf, not a finite number",
    "huge number": "not a finite number",
    "half a letter": "text is not valid Unicode",
    "half a letter in sources": "sources are not valid Unicode",
    "error": "KeyError: 'oops'",
    "stop": "StopIteration",
    "deep": "RecursionError",
    "no memory": "MemoryError",
    "half a letter in words": "ValueError: \\ud800",
    "10 MB of words": "ValueError: xxx",
    "speechless": "Speechless",
    "year 1": "OverflowError",
}
"""Each is told in the same words, in this process as in a worker."""
ONLY_HERE = {
    "liar": "Evil: half-way",
    "base": "Evil: no exception",
    "cancelled": "CancelledError",
    "closing": "GeneratorExit",
    "exit": "SystemExit: 3",
    "words": "ValueError",
    "shy": "ValueError: no hash",
}
"""What ends a worker, or is not noticed there."""
HARMLESS = (
    "nul", "changes", "environment", "says", "recursion", "thread", "record", "chdir", "closes",
    "forks",
)  # fmt: skip
"""What is done beside an answer that is well-formed; the run goes on as if it were not done."""


def asked(how: str, *more: str) -> tuple[str, ...]:
    return ("run", "system=memories:Hostile", f'+system.how="{how}"', *SMALL, *more)


def found(folder: Path) -> tuple[Record, list[Event], Script]:
    (path,) = folder.rglob("record.json")
    events = list(read_events(path.with_name("history.jsonl")))
    return read_record(path), events, Script.read(path.with_name("script.jsonl"))


def refused(folder: Path, words: str) -> None:
    """Every question has its outcome and the words, and nothing is held that was not seen."""
    record, events, script = found(folder)
    assert len(script.steps) == len(events)
    for event in events:
        if isinstance(script.steps[event.i], Probe):
            assert event.type in ("info", "fail"), event
            assert words in event.error or event.worker == "gone", event
    verdicts = record.outcome.verdicts
    assert {"unknown"} == {verdicts[name].validity for name in ("C1", "C3", "C4", "C6")}


@pytest.mark.parametrize(("how", "words"), {**REFUSED, **ONLY_HERE}.items())
def test_whatever_is_given_is_an_outcome_of_its_step(
    commands: Any, work: Path, how: str, words: str
) -> None:
    """A reply that is none, and an error of any kind, is told at each question; the run goes on."""
    commands(work, *asked(how))
    refused(work, words)


@pytest.mark.slow
@pytest.mark.parametrize(("how", "words"), REFUSED.items())
def test_a_worker_tells_the_same(commands: Any, work: Path, how: str, words: str) -> None:
    """What a memory gives is told in the same words where it is in a worker."""
    commands(work, *asked(how, *IN_WORKER))
    refused(work, words)


@pytest.mark.parametrize("how", HARMLESS)
def test_what_is_done_beside_an_answer_changes_no_result(
    commands: Any, work: Path, how: str
) -> None:
    """A memory that changes what it was given, its directory, variables or streams, or that starts
    threads and copies of the process, is recorded as one that does none of it; the cell after it too."""
    commands(work, *asked(how))
    commands(work, *asked("well"))
    mine, plain = (fingerprints(work, f"how-{name.replace(' ', '-')}-") for name in (how, "well"))
    assert 1 == len(mine) == len(plain)
    if how != "nul":
        assert mine == plain
    assert ["runs"] == [path.name for path in work.iterdir()]


def fingerprints(folder: Path, name: str) -> list[str]:
    return [fingerprint(path) for path in folder.rglob("history.jsonl") if name in path.parent.name]


def test_a_hostile_memory_is_no_affair_of_others(commands: Any, work: Path) -> None:
    """Beside a memory that breaks everything it can, others have the results that they have alone."""
    commands(work, "run", "system=flat,bm25", *SMALL, "name=alone")
    commands(work, "run", "system=memories:Worst,flat,bm25", *SMALL, "name=beside")
    for name in ("flat-", "bm25-"):
        one, other = (fingerprints(work / "runs" / where, name) for where in ("alone", "beside"))
        assert one == other
        assert 1 == len(one)
    assert 3 == len(list((work / "runs" / "beside").rglob("record.json")))


@pytest.mark.parametrize("file", ["spec", "script", "history", "removes"])
def test_a_memory_that_writes_into_the_run_folder_has_no_result(
    commands: Any, work: Path, file: str
) -> None:
    """Who overwrites what its result is made from is told so; nothing looks finished, and it can be
    run anew."""
    ended = commands(work, *asked(file), code=1)
    assert 1 == len([line for line in ended.err.splitlines() if line.startswith("steeltrap: ")])
    assert not list(work.rglob("record.json"))
    ended = commands(work, *asked(file), "fresh=true", code=1)
    assert not list(work.rglob("record.json"))


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ("kills", "was killed by SIGKILL"),
        ("closes all", "ended with exit code"),
        pytest.param("interrupts", "was killed by SIGINT", marks=pytest.mark.slow),
        pytest.param("exit", "ended with exit code 3", marks=pytest.mark.slow),
        pytest.param("never", "gave no answer in 3 s", marks=pytest.mark.slow),
        pytest.param("endless", "gave no answer in 3 s", marks=pytest.mark.slow),
    ],
)  # fmt: skip
def test_a_worker_is_ended_by_what_would_end_a_run(
    commands: Any, work: Path, how: str, words: str
) -> None:
    """What cannot be survived in this process is survived in a worker, and told with its cause."""
    ended = commands(work, *asked(how, *IN_WORKER))
    refused(work, words)
    assert not ended.left


@pytest.mark.slow
@pytest.mark.parametrize("how", ["300 MB", "2 GB", "endless"])
def test_gigabytes_from_a_worker_do_not_fill_this_process(
    commands: Any, work: Path, how: str
) -> None:
    """A worker that answers without end is stopped before the run has no memory left."""
    more = ("+system.worker=true", "+system.passes=[PYTHONPATH]", "limits.step_s=20", "limits.memory_mb=4000", "limits.restarts=0")  # fmt: skip
    ended = commands(work, *asked(how, *more), timeout_s=300)
    assert ended.mb < 1500
    refused(work, "")


# ---------------------------------------------------------------- replies of any kind

_TEXT = st.text(st.characters(exclude_categories=()), max_size=8)
_ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.just(10**400) | st.floats() | _TEXT
    | st.binary(max_size=4) | st.just(object()) | st.just(Item) | st.datetimes(),
    lambda inner: st.lists(inner, max_size=3) | st.tuples(inner, inner)
    | st.dictionaries(_TEXT, inner, max_size=3) | st.sets(st.integers(), max_size=2)
    | st.builds(Item, inner, inner, inner, inner, inner, inner, inner),
    max_leaves=8,
)  # fmt: skip
_ITEMS = st.builds(
    Item,
    _TEXT | _ANYTHING,
    st.none() | _TEXT,
    st.none() | st.tuples(_TEXT) | _ANYTHING,
    st.none() | st.just("2026-03-01T10:00") | _TEXT,
    st.none() | _ANYTHING,
    st.booleans() | _ANYTHING,
    st.none() | st.floats() | _ANYTHING,
)


@settings(max_examples=100, deadline=None)
@given(st.lists(_ITEMS, max_size=3) | _ANYTHING)
def test_any_reply_is_recorded_or_refused(reply: Any) -> None:
    """What a memory returns is either written and read back as it was, or refused by an error; there
    is nothing that breaks the history."""
    items = Items()
    try:
        served, scores = items.intern(reply, "retrieve")
    except Exception:
        served, scores = [], []
    event = Event(i=0, type="ok", new=items.all, served=served, scores=scores)
    written = io.BytesIO()
    HistoryWriter(written).outcome(event)
    assert event == msgspec.json.decode(written.getvalue(), type=Event)


class Replies(Flat):
    """Gives one reply after the other."""

    def __init__(self, replies: list[Any]) -> None:
        super().__init__()
        self.replies = replies

    def retrieve(self, query: Query) -> Sequence[Item]:
        return self.replies[int(query.id[1:]) % len(self.replies)]  # type: ignore[no-any-return]

    def active(self, tenant: str) -> Sequence[Item]:  # noqa: ARG002
        return self.replies[-1]  # type: ignore[no-any-return]


_SCRIPT = compose(ScriptSettings(name="flip-flop", turns=3, families={"flip-flop": 1.0}), 0)


@settings(max_examples=25, deadline=None)
@given(st.lists(_ANYTHING | st.lists(_ITEMS, max_size=2), min_size=1, max_size=4))
def test_any_memory_is_driven_to_the_end(tmp_path_factory: Any, replies: list[Any]) -> None:
    """Whatever is returned, every step has one outcome, and the history can be read."""
    path = tmp_path_factory.mktemp("any") / "history.jsonl"
    memory = Replies(replies)
    memory.open(path.parent)
    drive(memory, _SCRIPT, path, limit=10)
    assert list(range(len(_SCRIPT.steps))) == [event.i for event in read_events(path)]
