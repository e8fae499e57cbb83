from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from steeltrap.harness.limits import Limits
from steeltrap.harness.memory import (
    Memory,
    MemoryFault,
    Query,
    Utterance,
    capabilities,
    claims_concurrency,
)
from steeltrap.harness.process import WorkerDied, WorkerFault, WorkerGone
from steeltrap.harness.remote import Remote

WORKERS = Path(__file__).parent / "workers"
Opened = Callable[..., Remote]


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Opened]:
    """Makes and opens memories of `workers/crowd.py`."""
    monkeypatch.setenv("PYTHONPATH", str(WORKERS))
    made: list[Remote] = []

    def memory(name: str = "Crowd", threads: int = 8, step_s: float = 30) -> Remote:
        remote = Remote(
            {"_target_": f"crowd.{name}"}, passes=("PYTHONPATH",), threads=threads,
            limits=Limits(step_s=step_s),
        )  # fmt: skip
        made.append(remote)
        remote.open(tmp_path / str(len(made)))
        return remote

    yield memory
    for remote in made:
        remote.close()


def turn(text: str) -> Utterance:
    return Utterance("t1", "2026-03-02T10:00", "acme", "s1", "user", text)


def query(text: str, times: int) -> Query:
    return Query("p1", "2026-03-02T11:00", "acme", text, times)


def test_several_requests_are_under_way_at_once(opened: Opened) -> None:
    """Eight that take half a second each take less than two together, where the system claims it."""
    memory = opened()
    assert claims_concurrency(memory)
    with ThreadPoolExecutor(8) as pool:
        start = time.monotonic()
        list(pool.map(memory.ingest, [turn("sleep 0.5")] * 8))
        assert time.monotonic() - start < 2


def test_each_is_given_its_own_answer(opened: Opened) -> None:
    """Whatever the order of answers and however long they are, nobody gets another's."""
    memory = opened()
    asked = [query(chr(97 + n % 26), 1 + 5000 * (n % 7)) for n in range(120)]
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(memory.retrieve, asked))
    for one, (item,) in zip(asked, answers, strict=True):
        assert item.text == one.text * one.limit


def test_what_does_not_claim_it_is_asked_one_after_the_other(opened: Opened) -> None:
    """Threads that were asked for change nothing for a system that cannot have them."""
    memory = opened("Alone")
    assert not claims_concurrency(memory)
    memory.ingest(turn("kept"))
    assert "concurrent" not in capabilities(memory)
    assert isinstance(memory, Memory)


def test_faults_and_errors_reach_who_asked(opened: Opened) -> None:
    """What the system says of an operation is said to the one who wanted it, and nobody else."""
    memory = opened()
    with ThreadPoolExecutor(3) as pool:
        fine = pool.submit(memory.ingest, turn("sleep 0.2"))
        fault = pool.submit(memory.ingest, turn("fault no"))
        error = pool.submit(memory.ingest, turn("error what"))
        with pytest.raises(MemoryFault, match=r"^no$"):
            fault.result()
        with pytest.raises(WorkerFault, match="what"):
            error.result()
        fine.result()


def test_a_death_is_told_to_all_who_wait(opened: Opened) -> None:
    """Nobody waits for a worker that is gone; what is asked later did not happen."""
    memory = opened()
    with ThreadPoolExecutor(4) as pool:
        waiting = [pool.submit(memory.ingest, turn("sleep 20")) for _ in range(3)]
        time.sleep(0.3)
        dying = pool.submit(memory.ingest, turn("die"))
        start = time.monotonic()
        for one in (*waiting, dying):
            with pytest.raises(WorkerDied, match="exit code 7"):
                one.result()
        assert time.monotonic() - start < 10
    with pytest.raises(WorkerGone):
        memory.ingest(turn("more"))
    memory.close()


def test_one_that_hangs_ends_the_worker(opened: Opened) -> None:
    """The limit of a step holds for each of several that are under way."""
    memory = opened(step_s=1)
    with pytest.raises(WorkerDied, match=r"gave no answer in 1 s"):
        memory.ingest(turn("sleep 30"))
    memory.close()


def test_it_can_begin_again(opened: Opened, tmp_path: Path) -> None:
    """After `close` an empty memory begins in the same worker, and is asked as before."""
    memory = opened()
    memory.ingest(turn("one"))
    memory.reopen(tmp_path / "1")
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(memory.ingest, [turn("sleep 0.01")] * 8))
