"""Puts a planned load to an opened memory, and records when everything began and ended.

Each client of a tenant asks one thing after the other, many clients at once; a pool of threads
does the asking. Nothing waits for an answer before it is due: what cannot start in time, because
its client or all threads are busy, starts late, and its latency counts from when it was meant to
start. A generator that waits would leave out just those users who waited longest (coordinated
omission).
"""

from __future__ import annotations

import sys
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from queue import SimpleQueue
from time import perf_counter, sleep
from typing import Final, Literal

from steeltrap.harness.load.plan import Operation, Plan
from steeltrap.harness.memory import Item, Lists, Memory, MemoryFault, Query, Utterance
from steeltrap.harness.script import Probe, Script, Step, Turn, tenant_of
from steeltrap.harness.values import display

__all__ = ["Done", "Quiet", "Trace", "apply"]

Outcome = Literal["ok", "fail", "info", "unserved", "skipped"]
"""fail: certainly not done; info: nobody knows; unserved: it never started; skipped: what it looks
for had been found."""

_SWITCH_S: Final = 0.0005
"""Threads take turns this often, so that the one which starts things comes to its turn in time."""
_LAST_WAIT_S: Final = 1.0
_MINUTE: Final = timedelta(minutes=1)
FINALS: Final = 200
"""So many units at least are asked for when all is quiet."""


@dataclass(slots=True)
class Done:
    """What became of one operation; times in seconds from the beginning of the load."""

    operation: Operation
    started_s: float
    ended_s: float
    type: Outcome
    error: str = ""
    served: Sequence[Item] = ()
    at: str = ""
    """The simulated time that it was given."""


@dataclass(slots=True)
class Quiet:
    """What was found when nothing was asked any more and the memory had settled."""

    settle_ms: float = 0.0
    error: str = ""
    """Why the memory could not be looked at; empty: it could."""
    listed: dict[str, Sequence[Item]] = field(default_factory=dict)
    """By tenant; empty where the memory gives no listing."""
    answers: list[Done] = field(default_factory=list)
    at: str = ""


@dataclass(slots=True)
class Trace:
    """All that happened at one rate."""

    done: list[Done]
    """In order of intended starts."""
    late_s: list[float]
    """How late each operation was handed to the threads: the generator's own fault, if any."""
    elapsed_s: float
    quiet: Quiet
    cut: bool = False
    """It was interrupted; what had not started is left out."""


def apply(
    memory: Memory,
    plan: Plan,
    *,
    limit: int,
    threads: int,
    patience_s: float = 30.0,
    in_turn: bool = False,
) -> Trace:
    """Put a load to a memory, which is open and empty; it is not closed here.

    Args:
        memory: asked by several threads at once, unless `threads` is 1.
        plan: what is asked, and when.
        limit: items that a question may be served.
        threads: that ask.
        patience_s: after the last intended start so long is waited for what is still to be done.
        in_turn: each operation as soon as the one before it is done, whatever its time.
    """
    crew = _Crew(memory, plan, limit)
    with suppress(Exception):  # what fails here fails later too, where it counts
        for number in plan.warm:
            step = plan.script.steps[number]
            ask(memory, step, step.at, limit)
        memory.settle()
    with _switching():
        if in_turn:
            crew.in_turn()
        else:
            crew.in_time(threads, patience_s)
    quiet = _quiet(memory, plan, crew, limit)
    return Trace(crew.results(), crew.late_s, crew.elapsed_s, quiet, crew.cut)


@contextmanager
def _switching() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(min(before, _SWITCH_S))
    try:
        yield
    finally:
        sys.setswitchinterval(before)


class _Client:
    """Asks one thing after the other."""

    def __init__(self) -> None:
        self.waiting: deque[Operation] = deque()


class _Crew:
    """The threads, and what they share."""

    def __init__(self, memory: Memory, plan: Plan, limit: int) -> None:
        self._memory = memory
        self._script = plan.script
        self._operations = plan.operations
        self._limit = limit
        self._lock = threading.Lock()
        self._ready: SimpleQueue[_Client | None] = SimpleQueue()
        self._clients = {op.client: _Client() for op in plan.operations}
        self._under_way: dict[int, float] = {}
        self._left = 0
        self._quitting = False
        self._found: set[int] = set()
        """Writes that were looked for and found."""
        self._clock: dict[str, datetime] = {}
        """The simulated time of each tenant: it never goes back, whatever is late."""
        self._done: dict[int, Done] = {}
        self.late_s: list[float] = []
        self.elapsed_s = 0.0
        self.cut = False
        self.hung = 0
        self._began = perf_counter()

    # ------------------------------------------------------------ two ways to ask

    def in_turn(self) -> None:
        """Everything one after the other, on this thread."""
        self._began = perf_counter()
        try:
            for operation in self._operations:
                self._record(operation, self.now())
        except KeyboardInterrupt:
            self.cut = True
        self.elapsed_s = self.now()

    def in_time(self, threads: int, patience_s: float) -> None:
        """Everything at its time, on so many threads."""
        crew = [threading.Thread(target=self._work, daemon=True) for _ in range(threads)]
        for thread in crew:
            thread.start()
        self._began = perf_counter()
        try:
            self._hand_out()
            self._wait(patience_s)
        except KeyboardInterrupt:
            self.cut = True
        self._quitting = True
        for _ in crew:
            self._ready.put(None)
        self.elapsed_s = self.now()
        deadline = perf_counter() + (_LAST_WAIT_S if self.cut else patience_s)
        for thread in crew:
            thread.join(max(0.0, deadline - perf_counter()))
        self.hung = sum(thread.is_alive() for thread in crew)

    def _hand_out(self) -> None:
        for operation in self._operations:
            if operation.of in self._found:
                self._skip(operation)
                continue
            wait = operation.at_s - self.now()
            if wait > 0:
                sleep(wait)
            self.late_s.append(max(0.0, self.now() - operation.at_s))
            client = self._clients[operation.client]
            with self._lock:
                self._left += 1
                client.waiting.append(operation)
                idle = len(client.waiting) == 1
            if idle:
                self._ready.put(client)

    def _wait(self, patience_s: float) -> None:
        deadline = perf_counter() + patience_s
        while self._left and perf_counter() < deadline:
            sleep(0.002)

    def _work(self) -> None:
        """Ask for one client after another, until there is nobody."""
        while (client := self._ready.get()) is not None and not self._quitting:
            self._record(client.waiting[0], self.now())
            with self._lock:
                client.waiting.popleft()
                self._left -= 1
                more = bool(client.waiting)
            if more:
                self._ready.put(client)

    # ------------------------------------------------------------ one operation

    def now(self) -> float:
        """Seconds since the load began."""
        return perf_counter() - self._began

    def _record(self, operation: Operation, started_s: float) -> None:
        if operation.of in self._found:
            self._skip(operation)
            return
        self._under_way[operation.step] = started_s
        done = Done(operation, started_s, started_s, "ok")
        try:
            done.served = self._ask(operation, done)
            if operation.kind == "poll" and self._shows(operation, done.served):
                self._found.add(operation.of)
        except MemoryFault as fault:
            done.type, done.error = "fail", _words(fault)
        except Exception as fault:
            done.type, done.error = "info", _words(fault)
        done.ended_s = self.now()
        self._done[operation.step] = done
        del self._under_way[operation.step]

    def _skip(self, poll: Operation) -> None:
        self._done[poll.step] = Done(poll, poll.at_s, poll.at_s, "skipped")

    def _ask(self, operation: Operation, done: Done) -> Sequence[Item]:
        step = self._script.steps[operation.step]
        done.at = self._time(step)
        return ask(self._memory, step, done.at, self._limit)

    def _time(self, step: Step) -> str:
        """When a step happens: what is told is told later than all that its tenant has heard of."""
        at, tell = datetime.fromisoformat(step.at), isinstance(step, Turn)
        with self._lock:
            heard = self._clock.get(step.tenant)
            if heard is not None:
                at = max(at, heard + _MINUTE if tell else heard)
            self._clock[step.tenant] = at
        return at.isoformat(timespec="minutes")

    def latest(self) -> str:
        """A simulated time after all others."""
        at = datetime.fromisoformat(self._script.steps[-1].at)
        return (max([at, *self._clock.values()]) + _MINUTE).isoformat(timespec="minutes")

    def _shows(self, poll: Operation, served: Sequence[Item]) -> bool:
        turn = self._script.steps[poll.of]
        assert isinstance(turn, Turn)
        code = display(turn.ops[0].value or "")
        return any(code in item.text for item in served)

    # ------------------------------------------------------------ afterwards

    def results(self) -> list[Done]:
        """What became of each operation; those that an interruption left out are not there."""
        return [done for op in self._operations if (done := self._result(op)) is not None]

    def _result(self, operation: Operation) -> Done | None:
        if operation.step in self._done:
            return self._done[operation.step]
        if operation.step in self._under_way:
            began = self._under_way[operation.step]
            return Done(operation, began, self.elapsed_s, "info", "gave no answer before the end")
        if self.cut:
            return None
        # it has waited since it was due, and how much longer it would have is not known
        return Done(operation, self.elapsed_s, self.elapsed_s, "unserved")


def ask(memory: Memory, step: Step, at: str, limit: int) -> Sequence[Item]:
    """Do a turn or a question of the script, as of a simulated time; what was served."""
    if isinstance(step, Turn):
        memory.ingest(Utterance(step.id, at, step.tenant, step.session, step.role, step.text))
        return ()
    assert isinstance(step, Probe)
    return memory.retrieve(Query(step.id, at, step.tenant, step.text, limit))


# ---------------------------------------------------------------- when all is quiet


def _quiet(memory: Memory, plan: Plan, crew: _Crew, limit: int) -> Quiet:
    """Settle, list what is active, and ask for units: those that were not listed first."""
    steps = plan.script.steps
    quiet = Quiet(at=crew.latest())
    if crew.hung:
        quiet.error = f"{crew.hung} operations gave no answer, and may still be under way"
        return quiet
    if crew.cut:
        quiet.error = "interrupted"
        return quiet
    began = perf_counter()
    try:
        memory.settle()
        quiet.settle_ms = 1000 * (perf_counter() - began)
        if isinstance(memory, Lists):
            for tenant in plan.script.header.tenants:
                quiet.listed[tenant] = memory.active(tenant)
        for unit in _asked_for(plan, crew, quiet):
            step = steps[plan.finals[unit]]
            began = crew.now()
            served = ask(memory, step, quiet.at, limit)
            operation = Operation(began, "read", plan.finals[unit], f"{tenant_of(unit)} read")
            quiet.answers.append(Done(operation, began, crew.now(), "ok", "", served, quiet.at))
    except Exception as fault:
        quiet.error = _words(fault)
    except KeyboardInterrupt:
        quiet.error, crew.cut = "interrupted", True
    return quiet


def _asked_for(plan: Plan, crew: _Crew, quiet: Quiet) -> list[str]:
    """Units whose latest value is in no listing, and some of the others, evenly chosen."""
    texts = {tenant: "\n".join(i.text for i in items) for tenant, items in quiet.listed.items()}
    last = _last_values(plan.script, crew.results())
    unlisted = [u for u in plan.finals if u in last and last[u] not in texts.get(tenant_of(u), "")]
    if len(unlisted) >= FINALS:
        return unlisted
    others = [unit for unit in plan.finals if unit not in set(unlisted)]
    room = FINALS - len(unlisted)
    return [*unlisted, *others[:: max(1, -(-len(others) // room))]]


def _last_values(script: Script, done: Sequence[Done]) -> dict[str, str]:
    """Unit -> the last value that was acknowledged, as it is spelled."""
    last = {}
    for one in done:
        step = script.steps[one.operation.step]
        if one.operation.kind == "write" and one.type == "ok" and isinstance(step, Turn):
            last[step.ops[0].unit or ""] = display(step.ops[0].value or "")
    return last


def _words(fault: BaseException) -> str:
    return f"{type(fault).__name__}: {fault}"[:300]
