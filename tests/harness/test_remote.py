"""A memory in a worker: the same history as in process, and whatever may go wrong with it."""

from __future__ import annotations

import gc
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from steeltrap.adapters.flat import Flat
from steeltrap.harness.drive import drive
from steeltrap.harness.history import fingerprint, read_events, read_header
from steeltrap.harness.limits import Limits
from steeltrap.harness.memory import (
    CAPABILITIES,
    Erases,
    Forks,
    Item,
    Lists,
    Maintains,
    Memory,
    MemoryFault,
    Query,
    Recalls,
    Recovers,
    Salient,
    Sized,
    Subject,
    Told,
    Utterance,
    capabilities,
)
from steeltrap.harness.models import Models, UsesModels
from steeltrap.harness.remote import Remote, WorkerDied, WorkerError, WorkerFault, WorkerGone
from steeltrap.harness.replies import BadReplyError, Items
from steeltrap.harness.script import Script
from steeltrap.harness.worker import OPERATIONS, make
from steeltrap.workloads.compose import ScriptSettings, compose
from steeltrap.workloads.figure1 import figure_1

WORKERS = Path(__file__).parent / "workers"
HASHED = {"_target_": "steeltrap.adapters.embedders.HashEmbedder"}
SYSTEMS: dict[str, dict[str, Any]] = {
    "flat": {"_target_": "steeltrap.adapters.flat.Flat"},
    "vector": {"_target_": "steeltrap.adapters.vector.Vector", "embedder": HASHED},
    "ideal": {"_target_": "steeltrap.adapters.ideal.Ideal"},
    "told gem": {"_target_": "steeltrap.adapters.gem.ToldGem", "embedder": HASHED},
}
SCRIPTS: dict[str, Callable[[], Script]] = {
    "figure-1": lambda: figure_1(0),
    "adversarial": lambda: compose(ScriptSettings(name="adversarial", turns=80), 7),
}


def turn(text: str, number: int = 1) -> Utterance:
    return Utterance(f"t{number}", "2026-03-02T10:00", "acme", "s1", "user", text)


def query(text: str) -> Query:
    return Query("p1", "2026-03-02T11:00", "acme", text, 10)


def subject(topic: str) -> Subject:
    return Subject("acme", topic, "deadline", f"When is the deadline of {topic}?")


@pytest.fixture
def odd(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Callable[..., Remote]]:
    """Makes and opens memories of `workers/odd.py`; all are closed afterwards."""
    monkeypatch.setenv("PYTHONPATH", str(WORKERS))
    made: list[Remote] = []

    def opened(name: str = "Odd", *, folder: Path | None = None, **settings: Any) -> Remote:
        passes = ("PYTHONPATH", *settings.pop("passes", ()))
        limits = settings.pop("limits", Limits(step_s=30))
        node = {"_target_": f"odd.{name}", **settings}
        remote = Remote(node, passes=passes, limits=limits)
        made.append(remote)
        remote.open(folder or tmp_path / str(len(made)))
        return remote

    yield opened
    for remote in made:
        remote.close()


@pytest.fixture
def raw(tmp_path: Path) -> Iterator[Callable[..., Remote]]:
    """Makes and opens workers that break the protocol in a given way."""
    made: list[Remote] = []

    def opened(how: str, step_s: float = 30.0) -> Remote:
        command = [sys.executable, str(WORKERS / "raw.py"), how]
        made.append(Remote({"command": command}, limits=Limits(step_s=step_s), name="raw"))
        made[-1].open(tmp_path / str(len(made)))
        return made[-1]

    yield opened
    for remote in made:
        remote.close()


def alive(pid: int) -> bool:
    """Whether a process is there and no zombie."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def gone(pid: int, within_s: float = 10.0) -> bool:
    deadline = time.monotonic() + within_s
    while alive(pid) and time.monotonic() < deadline:
        time.sleep(0.02)
    return not alive(pid)


# ---------------------------------------------------------------- the same as in process


def run(memory: Memory, script: Script, folder: Path) -> Path:
    """Drive a memory through a script; gives its history."""
    folder.mkdir()
    if isinstance(memory, Told):
        memory.told(script)
    memory.open(folder)
    drive(memory, script, folder / "history.jsonl", limit=10)
    memory.close()
    return folder / "history.jsonl"


@pytest.mark.parametrize("which", SCRIPTS)
@pytest.mark.parametrize("system", SYSTEMS)
def test_a_worker_gives_the_same_history(system: str, which: str, tmp_path: Path) -> None:
    """In process and through a worker a script leaves the same history, down to its hash."""
    script = SCRIPTS[which]()
    here = run(make(SYSTEMS[system]), script, tmp_path / "here")
    there = run(Remote(SYSTEMS[system]), script, tmp_path / "there")
    assert read_header(here) == read_header(there)
    for a, b in zip(read_events(here), read_events(there), strict=True):
        a.ms = a.settle_ms = b.ms = b.settle_ms = 0.0
        a.size_bytes = b.size_bytes = None
        assert a == b
    assert fingerprint(here) == fingerprint(there)


def odd_replies() -> dict[str, Any]:
    """What `Odd` gives to the questions that it knows."""
    room: dict[str, Any] = {"__name__": "odd"}
    exec(compile((WORKERS / "odd.py").read_text(), "odd.py", "exec"), room)
    return dict(room["REPLIES"])


def taken(reply: Callable[[], Any], call: str = "retrieve") -> Any:
    """What the driver makes of a reply: the items and scores, or its words."""
    items = Items()
    try:
        _, scores = items.intern(reply(), call)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return items.all, scores


def test_a_reply_out_of_order_is_told_in_the_same_words(odd: Callable[..., Remote]) -> None:
    """Whatever a system returns, the run records the same items or the same error."""
    remote = odd()
    replies = odd_replies()
    assert len(replies) > 15
    for name, reply in replies.items():
        here = taken(lambda reply=reply: reply)  # type: ignore[misc]
        there = taken(lambda name=name: remote.retrieve(query(name)))  # type: ignore[misc]
        assert here == there, name


def test_numbers_are_held_to_the_same(odd: Callable[..., Remote]) -> None:
    """Salience that is no finite number is an error in the words of the driver."""
    able = odd("Able")
    assert isinstance(able, Salient)
    assert able.salience(subject("none")) is None
    assert 0.0 == able.salience(subject("Atlas"))
    assert 0.5 == able.salience(subject("narrow"))
    for topic, words in (("nan", "salience returned nan"), ("word", "salience returned 'high'")):
        with pytest.raises(WorkerFault, match=words) as caught:
            able.salience(subject(topic))
        assert BadReplyError.__name__ == type(caught.value).__name__


# ---------------------------------------------------------------- capabilities and what it is


@pytest.mark.parametrize("system", SYSTEMS)
def test_it_has_the_capabilities_of_the_system_and_no_others(system: str) -> None:
    """The protocols that a memory fulfils are the same at both ends, before it is opened."""
    remote = Remote(SYSTEMS[system])
    assert capabilities(make(SYSTEMS[system])) == capabilities(remote)
    assert isinstance(remote, Memory)


def test_each_capability_reaches_the_system(odd: Callable[..., Remote], tmp_path: Path) -> None:
    """Every optional operation is carried out there, with what it was given."""
    script, models = figure_1(0), Models("http://127.0.0.1:1", "ü", "e", 3)
    able = odd("Able")
    assert list(CAPABILITIES) == capabilities(able)
    able.close()
    assert isinstance(able, Told)
    assert isinstance(able, UsesModels)
    able.told(script)
    able.connect(models)
    able.open(tmp_path / "again")
    able.ingest(turn("one"))
    assert isinstance(able, Lists)
    assert [Item("one", id="acme")] == able.active("acme")
    assert isinstance(able, Maintains)
    able.maintain("2026-03-09T10:00")
    assert isinstance(able, Recalls)
    assert [Item(f"Atlas deadline {script.sha256()}")] == able.history(subject("Atlas"))
    assert isinstance(able, Recovers)
    assert [Item(repr(models))] == able.recover(subject("Atlas"))
    assert isinstance(able, Sized)
    assert len("one2026-03-09T10:00") == able.size_bytes()
    assert isinstance(able, Erases)
    able.erase("acme", subject("2026"))
    assert ["one"] == [item.text for item in able.active("acme")]
    able.erase("acme", None)
    assert [] == able.active("acme")


def test_it_says_who_it_is(odd: Callable[..., Remote]) -> None:
    """Identity, embedder and versions are those of the worker."""
    remote = odd(keep=3)
    assert {"keep": "3"} == remote.identity["settings"]
    assert remote.embedder is not None
    assert ("words", "3") == (remote.embedder.name, remote.embedder.version)
    assert sys.version.split()[0] == remote.versions["python"]


def test_copies_are_apart_and_are_dropped(odd: Callable[..., Remote]) -> None:
    """A copy has every capability and a state of its own; there it ends when it does here."""
    able = odd("Able")
    assert isinstance(able, Forks)
    able.ingest(turn("one"))
    first, second = able.fork(), able.fork()
    assert capabilities(able) == capabilities(first)
    first.ingest(turn("two"))
    able.ingest(turn("three"))
    texts = [[item.text for item in one.retrieve(query("?"))] for one in (able, first, second)]
    assert [["one", "three"], ["one", "two"], ["one"]] == texts
    on = able._worker
    assert on is not None
    assert on.ask("settle", msgspec.json.decode, 1) is None
    del first
    gc.collect()
    able.settle()
    with pytest.raises(WorkerFault, match="1 is no handle"):
        on.ask("settle", msgspec.json.decode, 1)
    second.close()
    able.settle()


# ---------------------------------------------------------------- what goes through


def test_prints_do_not_garble(odd: Callable[..., Remote]) -> None:
    """What a system or its children print goes elsewhere, and nothing is there to be read."""
    remote = odd()
    remote.ingest(turn("print Hello"))
    remote.ingest(turn("and on"))
    assert ["stdin: ''", "and on"] == [item.text for item in remote.retrieve(query("?"))]


def test_a_print_before_the_memory_is_there(odd: Callable[..., Remote]) -> None:
    """A system that prints while it is made is welcome all the same."""
    assert [] == odd("loud").retrieve(query("?"))


def test_lines_may_be_huge(odd: Callable[..., Remote]) -> None:
    """What is said and served may be long, and pipes may be full on the way."""
    remote = odd()
    text = "🦀" * 2_000_000
    remote.ingest(turn(text))
    assert [text] == [item.text for item in remote.retrieve(query("?"))]
    (item,) = remote.retrieve(query("big 3000000"))
    assert "ä" * 3_000_000 == item.text


def test_half_lines_are_put_together(raw: Callable[..., Remote]) -> None:
    """An answer that comes letter by letter is an answer."""
    assert [] == raw("slowly").retrieve(query("?"))


def test_keys_that_are_not_known_are_passed_over(raw: Callable[..., Remote]) -> None:
    """A later worker may say more than is asked of it."""
    assert [Item("one")] == raw("unknown keys").retrieve(query("?"))


# ---------------------------------------------------------------- faults


def test_faults_and_errors_are_told_apart(odd: Callable[..., Remote]) -> None:
    """A fault is a `MemoryFault`; an error has the type and words of the system's; both go on."""
    remote = odd()
    with pytest.raises(MemoryFault, match=r"^not now$"):
        remote.ingest(turn("fault not now"))
    with pytest.raises(WorkerFault) as caught:
        remote.ingest(turn("raise a: b"))
    assert "ValueError: a: b" == f"{type(caught.value).__name__}: {caught.value}"
    assert [] == remote.retrieve(query("?"))


def test_before_and_after_its_life_it_says_that_it_is_not_open(tmp_path: Path) -> None:
    """An operation on a memory that is not open is a fault, and closing it twice is harmless."""
    flat = Remote(SYSTEMS["flat"])
    for _ in range(2):
        with pytest.raises(MemoryFault, match="Flat: not open; call open"):
            flat.settle()
        flat.open(tmp_path)
        flat.ingest(turn("one"))
        flat.close()
        flat.close()


@pytest.mark.parametrize(
    ("text", "how"),
    [
        ("exit 3", "the worker of Odd ended with exit code 3 during ingest"),
        ("leave 4", "the worker of Odd ended with exit code 4 during ingest"),
        ("signal KILL", "the worker of Odd was killed by SIGKILL during ingest"),
        ("signal SEGV", "was killed by SIGSEGV during ingest; its last words: Fatal Python error"),
    ],
)
def test_a_crash_is_told_once_and_ends_what_comes_after(
    odd: Callable[..., Remote], text: str, how: str
) -> None:
    """It is open what became of the step; every later one certainly fails, for the same cause."""
    remote = odd()
    remote.ingest(turn("say help me"))
    with pytest.raises(WorkerDied) as caught:
        remote.ingest(turn(text))
    assert how in str(caught.value)
    assert not isinstance(caught.value, MemoryFault)
    if "SEGV" not in text:
        assert ("help me",) == tuple(caught.value.last_words)
        assert str(caught.value).endswith("; its last words: help me")
    started = time.monotonic()
    for _ in range(3):
        with pytest.raises(WorkerGone, match=re.escape(str(caught.value))):
            remote.settle()
    remote.close()
    assert time.monotonic() - started < 1


def test_a_crash_is_seen_though_a_child_holds_the_pipes(odd: Callable[..., Remote]) -> None:
    """A process that was forked off and lives on does not make a crash look like a hang."""
    remote = odd()
    started = time.monotonic()
    with pytest.raises(WorkerDied, match="ended with exit code 6 during ingest"):
        remote.ingest(turn("orphan 6"))
    assert time.monotonic() - started < 10


def test_last_words_are_the_last_and_bounded(odd: Callable[..., Remote]) -> None:
    """Of much that was said the last 20 lines are kept, and the end of them is told."""
    remote = odd()
    for number in range(300):
        remote.ingest(turn(f"say {number} {'x' * 5000 if number == 290 else ''}"))
    with pytest.raises(WorkerDied) as caught:
        remote.ingest(turn("exit 1"))
    assert 20 == len(caught.value.last_words)
    assert "299" == caught.value.last_words[-1].strip()
    assert str(caught.value).endswith("297 | 298 | 299")
    assert len(str(caught.value)) < 500


def test_a_hang_is_ended_and_says_where(odd: Callable[..., Remote]) -> None:
    """A worker that gives no answer in time is stopped, with all that it started."""
    remote = odd(limits=Limits(step_s=1))
    remote.ingest(turn("child 100"))
    (item,) = remote.retrieve(query("?"))
    started = time.monotonic()
    with pytest.raises(WorkerDied) as caught:
        remote.ingest(turn("hang 100"))
    assert time.monotonic() - started < 4
    assert "gave no answer in 1 s (limits.step_s) and was stopped during ingest" in str(
        caught.value
    )
    assert any("odd.py" in line and "in ingest" in line for line in caught.value.last_words)
    assert gone(int(item.text))


def test_a_start_may_take_longer_than_a_step(odd: Callable[..., Remote], tmp_path: Path) -> None:
    """A system loads its models when it opens; a limit of a step is not one of that."""
    remote = odd("Slow", limits=Limits(step_s=0.5))
    assert [] == remote.retrieve(query("?"))
    remote.reopen(tmp_path / "1")
    assert [] == remote.retrieve(query("?"))


@pytest.mark.parametrize("how", ["hold", "child holds"])
def test_who_takes_too_much_memory_is_stopped(odd: Callable[..., Remote], how: str) -> None:
    """The worker and what it started count together, and the limit that was broken is named."""
    remote = odd(limits=Limits(step_s=30, memory_mb=200))
    remote.ingest(turn("one"))
    with pytest.raises(WorkerDied) as caught:
        remote.ingest(turn(f"{how} 300"))
    words = re.escape("more than limits.memory_mb=200, and was stopped during ingest")
    found = re.search(rf"worker of Odd used (\d+) MB, {words}", str(caught.value))
    assert found is not None, caught.value
    assert 200 < int(found[1]) < 450
    with pytest.raises(WorkerGone, match=r"limits\.memory_mb=200"):
        remote.settle()


def test_memory_is_watched_while_nothing_is_asked(odd: Callable[..., Remote]) -> None:
    """What a system takes on its own account between two steps is seen before the next one."""
    remote = odd(limits=Limits(step_s=30, memory_mb=200))
    (pid,) = children()
    remote.ingest(turn("hold later 300"))
    assert gone(pid)
    with pytest.raises(WorkerDied, match=r"limits\.memory_mb=200, and was stopped before settle"):
        remote.settle()


def test_shared_memory_counts_once(odd: Callable[..., Remote]) -> None:
    """A system that forks does not hold what parent and child share twice."""
    remote = odd(limits=Limits(step_s=30, memory_mb=350))
    remote.ingest(turn("hold 200"))
    remote.ingest(turn("fork 1"))
    remote.settle()


def test_a_giant_answer_is_not_taken_in(odd: Callable[..., Remote]) -> None:
    """Reading stops at the limit, the worker is ended, and what came is no part of any answer."""
    remote = odd(limits=Limits(answer_mb=5))
    before_mb = resident_mb()
    with pytest.raises(WorkerDied, match=r"answer of more than limits\.answer_mb=5 MB and was"):
        remote.retrieve(query("big 100000000"))
    assert resident_mb() - before_mb < 50
    assert [] == [pid for pid in children() if alive(pid)]


def resident_mb() -> float:
    """What this process holds."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def test_a_request_that_nobody_reads_ends_too(raw: Callable[..., Remote]) -> None:
    """A worker that reads no more is stopped, even where the pipe is full."""
    remote = raw("deaf", step_s=0.5)
    with pytest.raises(WorkerDied, match=r"gave no answer in 0\.5 s \(limits\.step_s\)"):
        remote.retrieve(query("?" * 1_000_000))


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ("garbage", "broke the protocol with 'I remember nothing'"),
        ("nan", "broke the protocol with"),
        ("bytes", "broke the protocol with"),
        ("deep", "broke the protocol with"),
        ("list", "broke the protocol with '[]'"),
        ("other id", "(id 2 is due)"),
        ("empty", "broke the protocol with '{\"id\":2}'"),
        ("half", "ended with exit code 3 in the middle of an answer ('{\"id\": 2,')"),
        ("closed", "closed its pipe and was stopped"),
    ],
)
def test_what_is_no_answer_ends_the_worker(
    raw: Callable[..., Remote], how: str, words: str
) -> None:
    """A line that breaks the protocol leaves open what the next one means, so nothing follows."""
    remote = raw(how)
    with pytest.raises(WorkerDied) as caught:
        remote.retrieve(query("?"))
    assert words in str(caught.value)
    assert str(caught.value).startswith("the worker of raw ")
    with pytest.raises(WorkerGone):
        remote.settle()


def test_what_was_not_asked_for_is_found(raw: Callable[..., Remote]) -> None:
    """A second answer to one request is not taken for the next one's."""
    remote = raw("twice")
    remote.retrieve(query("?"))
    with pytest.raises(WorkerDied, match="broke the protocol: said unasked"):
        remote.settle()


def test_malformed_items_are_left_to_whoever_checks_them(raw: Callable[..., Remote]) -> None:
    """An answer of the wrong shape reads as it would in process."""
    found = {how: taken(lambda how=how: raw(how).retrieve(query("?"))) for how in ("item", "text", "null")}  # type: ignore[misc]  # fmt: skip
    assert {
        "item": "BadReplyError: retrieve returned an Item whose sources are not a tuple of turn ids",
        "text": "BadReplyError: retrieve returned str, not a list of Item",
        "null": "BadReplyError: retrieve returned NoneType, not a list of Item",
    } == found


# ---------------------------------------------------------------- starting


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ("newer", "raw speaks version 2 of the worker protocol, and this steeltrap version 1"),
        ("unknown capability", "raw names the capability 'lists'; known: list, history"),
        ("greeting", "the worker of raw broke the protocol with 'Welcome!'"),
        ("silent", "the worker of raw gave no answer in 1 s and was stopped during its start"),
    ],
)
def test_a_worker_that_does_not_greet_is_no_worker(
    raw: Callable[..., Remote], how: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Version, capabilities and form of the first line are checked before anything is asked."""
    monkeypatch.setattr("steeltrap.harness.process.START_S", 1.0)
    with pytest.raises(WorkerError, match=re.escape(words)):
        raw(how, step_s=0.5)


def test_a_system_that_cannot_be_made_says_why(odd: Callable[..., Remote]) -> None:
    """The error is the system's own; a death while it is made has its last words."""
    with pytest.raises(WorkerFault, match="NoMemory is no memory; it needs open") as caught:
        odd("NoMemory")
    assert "TypeError" == type(caught.value).__name__
    with pytest.raises(WorkerFault, match="No module named 'absent'"):
        Remote({"_target_": "absent.Memory"})
    with pytest.raises(WorkerDied, match="exit code 4 during its start; its last words: no key"):
        odd("leaving")
    with pytest.raises(WorkerError, match=r"/no/such/python cannot be started \(No such file"):
        Remote(SYSTEMS["flat"], python="/no/such/python")
    with pytest.raises(WorkerError, match="needs either _target_ or command"):
        Remote({"keep": 3})


def test_a_memory_that_does_not_open_leaves_no_worker(
    odd: Callable[..., Remote], tmp_path: Path
) -> None:
    """The error of `open` is the system's, and nobody has to close what never opened."""
    before = children()
    with pytest.raises(WorkerFault, match="the disk is full") as caught:
        odd("Closed", folder=tmp_path)
    assert "OSError" == type(caught.value).__name__
    assert before == children()
    assert ["memory"] == [path.name for path in tmp_path.iterdir()]


def children() -> set[int]:
    """Processes that were started from here since the test began and have not been reaped."""
    return _children() - _BEFORE


def _children() -> set[int]:
    found = Path(f"/proc/self/task/{os.getpid()}/children").read_text()
    return set(map(int, found.split()))


_BEFORE: set[int] = set()
"""Those of other tests, which may last as long as all of them."""


@pytest.fixture(autouse=True)
def others() -> None:
    _BEFORE.clear()
    _BEFORE.update(_children())


# ---------------------------------------------------------------- nothing beside it


def test_a_worker_has_a_small_environment(
    odd: Callable[..., Remote], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """No key, proxy or switch of the user's gets in unless its name is listed."""
    for name in ("OPENAI_API_KEY", "HTTPS_PROXY", "MEM0_TELEMETRY", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, "mine")
    monkeypatch.setenv("ZEP_API_KEY", "this is a key")
    remote = odd(folder=tmp_path, passes=["ZEP_API_KEY", "UNSET"])
    got = dict(item.text.split("=", 1) for item in remote.retrieve(query("environment")))
    assert "this is a key" == got["ZEP_API_KEY"]
    assert "mine" not in got.values()
    assert (str(tmp_path / "home"), str(tmp_path / "tmp")) == (got["HOME"], got["TMPDIR"])
    assert {"127.0.0.1", "localhost", "::1"} == set(got["NO_PROXY"].split(","))
    assert got["PATH"] == os.environ["PATH"]


def test_keys_do_not_get_into_words(
    odd: Callable[..., Remote], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither an error nor last words show the value of a variable that was handed on."""
    monkeypatch.setenv("ZEP_API_KEY", "z_1234567890")
    remote = odd(passes=["ZEP_API_KEY"])
    with pytest.raises(WorkerFault, match=r"^\$ZEP_API_KEY is wrong$"):
        remote.ingest(turn("raise z_1234567890 is wrong"))
    remote.ingest(turn("say asked with z_1234567890"))
    with pytest.raises(WorkerDied) as caught:
        remote.ingest(turn("exit 1"))
    assert "asked with $ZEP_API_KEY" in str(caught.value)
    assert "z_1234567890" not in "".join(caught.value.last_words)


def test_what_is_written_stays_in_the_folder(odd: Callable[..., Remote], tmp_path: Path) -> None:
    """The memory has a folder of its own; home and the like are emptied away at the end."""
    remote = odd(folder=tmp_path / "run")
    memory, here, _ = (Path(item.text) for item in remote.retrieve(query("where")))
    assert (tmp_path / "run" / "memory", tmp_path / "run" / "home") == (memory, here)
    remote.ingest(turn("write left-over"))
    remote.ingest(turn(f"write {memory / 'kept'}"))
    assert (here / "left-over").exists()
    remote.close()
    assert ["memory"] == [path.name for path in (tmp_path / "run").iterdir()]
    assert (memory / "kept").exists()


def test_a_relative_folder_is_the_callers(
    odd: Callable[..., Remote], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker is elsewhere, and opens its memory where the caller meant it."""
    monkeypatch.chdir(tmp_path)
    remote = odd(folder=Path("run"))
    assert str(tmp_path / "run" / "memory") == remote.retrieve(query("where"))[0].text


# ---------------------------------------------------------------- nothing left behind


def test_closing_ends_the_worker_and_all_that_it_started(odd: Callable[..., Remote]) -> None:
    """After `close` neither the worker nor a process of its making is there."""
    remote = odd()
    worker = int(remote.retrieve(query("where"))[2].text)
    remote.ingest(turn("child 100"))
    (item,) = remote.retrieve(query("?"))
    assert alive(worker)
    assert alive(int(item.text))
    remote.close()
    assert not alive(worker)
    assert gone(int(item.text))


def test_a_crash_leaves_nothing_either(odd: Callable[..., Remote]) -> None:
    """What a worker had started ends when it crashes, not when the run ends."""
    remote = odd()
    remote.ingest(turn("child 100"))
    (item,) = remote.retrieve(query("?"))
    with pytest.raises(WorkerDied):
        remote.ingest(turn("signal KILL"))
    assert gone(int(item.text))


def test_a_death_at_the_end_is_no_failure(odd: Callable[..., Remote]) -> None:
    """A system that dies when it is closed has done all its work, and may be opened again."""
    remote = odd()
    remote.ingest(turn("close"))
    remote.close()


def test_a_memory_that_nobody_closes_ends(odd: Callable[..., Remote], tmp_path: Path) -> None:
    """A worker lives no longer than the memory that is in it."""
    remote = Remote(SYSTEMS["flat"])
    remote.open(tmp_path)
    (own,) = children()
    del remote
    gc.collect()
    assert gone(own)
    assert set() == children()


PARENT = """
import sys, time
from pathlib import Path
from steeltrap.harness.memory import Query, Utterance
from steeltrap.harness.remote import Remote
remote = Remote({"_target_": "odd.Odd"}, passes=["PYTHONPATH"])
remote.open(Path(sys.argv[1]))
say = lambda text: remote.ingest(Utterance("t1", "2026-03-02T10:00", "acme", "s1", "user", text))
ask = lambda text: remote.retrieve(Query("p1", "2026-03-02T10:00", "acme", text, 10))
say("child 100")
print(ask("where")[2].text, ask("?")[0].text, flush=True)
say(sys.argv[2])
time.sleep(100)
"""


@pytest.mark.parametrize("doing", ["nothing", "hang 100"])
def test_a_killed_parent_leaves_nothing(doing: str, root: Path, tmp_path: Path) -> None:
    """Kill the parent: the worker ends, busy or not, and with it what it had started."""
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, str(tmp_path), doing],
        env=os.environ | {"PYTHONPATH": f"{WORKERS}{os.pathsep}{root / '.src'}"},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert parent.stdout is not None
    with parent.stdout:
        worker, child = map(int, parent.stdout.readline().split())
        time.sleep(0.2)
        assert alive(worker)
        parent.kill()
        parent.wait()
    assert gone(worker)
    assert gone(child)


def test_an_interrupted_operation_is_the_last(odd: Callable[..., Remote]) -> None:
    """Ctrl-C comes through at once, and the answer that was under way is never taken for another."""
    remote = odd()
    threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        remote.ingest(turn("hang 100"))
    with pytest.raises(WorkerDied, match="was interrupted"):
        remote.settle()
    started = time.monotonic()
    remote.close()
    assert time.monotonic() - started < 2


# ---------------------------------------------------------------- in a run


class Doomed:
    """Says a fatal word to a remote memory at a given turn, as if the turn had held it."""

    def __init__(self, remote: Remote, word: str, at: int) -> None:
        self._remote = remote
        self._word = word
        self._left = at

    def __getattr__(self, name: str) -> Any:
        return getattr(self._remote, name)

    def ingest(self, said: Utterance) -> None:
        self._left -= 1
        self._remote.ingest(said if self._left else turn(self._word))


@pytest.mark.parametrize("word", ["exit 1", "signal SEGV"])
def test_a_run_outlives_its_system(odd: Callable[..., Remote], word: str, tmp_path: Path) -> None:
    """Every step has its outcome: done, then one that is open, then only steps not tried."""
    script = SCRIPTS["adversarial"]()
    drive(Doomed(odd(), word, 20), script, tmp_path / "history", limit=10)
    events = list(read_events(tmp_path / "history"))
    assert len(script.steps) == len(events)
    ends = "".join({"ok": "o", "info": "i", "fail": "f"}[event.type] for event in events)
    assert re.fullmatch("o{20,}if{20,}", ends)
    assert ["died", *["gone"] * ends.count("f")] == [e.worker for e in events if e.type != "ok"]
    died, first, *rest = (event.error for event in events if event.type != "ok")
    assert died.startswith("WorkerDied: the worker of Odd ")
    assert first == f"not tried: given up after 0 restarts; {died}"[:500]
    assert {f"not tried: given up at step {ends.index('f')}"} == set(rest)


def test_the_worker_of_the_page_is_a_flat_memory(root: Path, tmp_path: Path) -> None:
    """The program that the protocol's page shows, in another language, runs as `flat` does."""
    if shutil.which("perl") is None:
        pytest.skip("perl is not here: the page's worker is written in it")
    page = (root / "harness" / "worker-protocol.md").read_text()
    (program,) = re.findall(r"```perl\n(.*?)```", page, re.DOTALL)
    (tmp_path / "flat.pl").write_text(program)
    for which, script in SCRIPTS.items():
        here = run(Flat(), script(), tmp_path / f"here {which}")
        remote = Remote({"command": ["perl", str(tmp_path / "flat.pl")]})
        assert "perl" in remote.versions
        there = run(remote, script(), tmp_path / f"there {which}")
        assert fingerprint(here) == fingerprint(there)
    remote.open(tmp_path)
    with pytest.raises(WorkerFault, match="no operation fly"):
        remote._ask("fly", msgspec.json.decode)
    remote.close()


def test_the_page_names_every_operation(root: Path) -> None:
    """What the protocol's page lists is what the worker knows, each with its arguments."""
    page = (root / "harness" / "worker-protocol.md").read_text()
    rows = dict(re.findall(r"^\| `(\w+)` \| (.*?) \|", page, re.MULTILINE))
    for do, given in OPERATIONS.items():
        assert set(given) <= set(re.findall(r"\w+", rows[do])), do
    assert set(CAPABILITIES) <= set(re.findall(r"\| `(\w+)` \|$", page, re.MULTILINE))


# ---------------------------------------------------------------- beginning again


def test_a_memory_begins_again_in_the_same_worker(odd: Callable[..., Remote], tmp_path: Path) -> None:  # fmt: skip
    """`reopen` begins an empty memory, and starts no process."""
    memory = odd("Fresh", folder=tmp_path / "one")
    memory.ingest(turn("first"))
    (pid,) = (item.text for item in memory.retrieve(query("pid")))
    memory.reopen(tmp_path / "one")
    assert [item.text for item in memory.retrieve(query("all"))] == []
    assert [item.text for item in memory.retrieve(query("pid"))] == [pid]


def test_a_new_worker_takes_the_place_of_a_dead_one(odd: Callable[..., Remote], tmp_path: Path) -> None:  # fmt: skip
    """`reopen` after a death, or where the system will not begin again, is `open`."""
    memory = odd("Fresh", folder=tmp_path / "one")
    (pid,) = (item.text for item in memory.retrieve(query("pid")))
    with pytest.raises(WorkerDied):
        memory.ingest(turn("exit"))
    memory.reopen(tmp_path / "one")
    (second,) = (item.text for item in memory.retrieve(query("pid")))
    memory.ingest(turn("refuse"))
    memory.reopen(tmp_path / "one")
    (third,) = (item.text for item in memory.retrieve(query("pid")))
    assert len({pid, second, third}) == 3
