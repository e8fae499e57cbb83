"""Drives a memory through a script and records what happens.

Every step is written as `invoke` before it is tried and with its outcome afterwards, flushed
each time. A run that was killed is taken up by doing the recorded steps over without recording
them (the memory is rebuilt, its clock is simulated, so it comes to the same state) and going on
from there. A memory whose process died is brought back in the same way. The clock is the script's;
wall time is measured around the adapter's calls alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

from steeltrap.harness.driver import Driver, Meter, NotOpened, RunStopped, Unlike
from steeltrap.harness.history import (
    End,
    Event,
    HistoryError,
    HistoryHeader,
    HistoryWriter,
    joined,
    read_events,
    read_header,
    read_marked,
)
from steeltrap.harness.limits import Limits, amount
from steeltrap.harness.memory import Memory, capabilities
from steeltrap.harness.remains import Search
from steeltrap.harness.script import Script, Step, Turn

__all__ = ["NotOpened", "OnEvent", "RunStopped", "drive"]

OnEvent = Callable[[Step, Event], None]
_NONE = Limits()


def drive(
    memory: Memory,
    script: Script,
    history: Path,
    *,
    limit: int,
    meter: Meter | None = None,
    search: Search | None = None,
    on_event: OnEvent | None = None,
    begin: Callable[[], None] | None = None,
    limits: Limits = _NONE,
) -> None:
    """Run an opened memory through a script, recording into `history`.

    Args:
        memory: opened and empty; it is not closed here.
        script: with its truth, which the memory does not see.
        history: written anew, or continued where it holds the beginning of this run.
        limit: items that a query may be served.
        meter: counts the memory's model calls, where it makes any.
        search: looks in the memory's files for what must be gone.
        on_event: called with every step and its outcome, those already recorded included.
        begin: opens the memory again, empty, when its process has died; raises `NotOpened`.
            Without it nothing more is tried then.
        limits: how often it may be begun again, and how long the run may take.

    Raises:
        HistoryError: `history` belongs to another script, system or budget.
        RunStopped: no further model call can be answered.
    """
    header = HistoryHeader(
        script_sha256=script.sha256(), capabilities=capabilities(memory), limit=limit
    )
    past = _recorded(history, header, script)
    driver = Driver(memory, limit, meter)
    for step, event in past.pairs(script, history):
        if not past.worker:  # else there is no memory to be brought to this state, or not yet
            _again(driver, step, event)
        if on_event:
            on_event(step, event)
    life = _Life(driver, script, history, past, begin, limits.restarts)
    with history.open("r+b" if past.end else "wb") as stream:
        stream.truncate(past.end)
        stream.seek(past.end)
        writer = HistoryWriter(stream)
        if not past.end:
            writer.header(header)
        for i, step in islice(enumerate(script.steps), past.steps, None):
            if limits.run_s is not None and past.ms >= 1000 * limits.run_s:
                writer.outcome(_end(limits.run_s, past.turns, script))
                return
            writer.invoke(i)
            event = life.do(i, step)
            if search and not event.worker:
                event.remains = search.after(i, driver.shown)
            writer.outcome(event)
            past.take(event, step)
            if on_event:
                on_event(step, event)


def _again(driver: Driver, step: Step, event: Event) -> None:
    try:
        driver.again(step, event)
    except Unlike as unlike:
        raise HistoryError(
            f"{unlike}, so the memory cannot be brought back to where the run stopped; run with"
            " fresh=true"
        ) from None


def _end(run_s: float, turns: int, script: Script) -> End:
    every = sum(isinstance(step, Turn) for step in script.steps)
    return End(
        end=f"after {amount(run_s)} s (limits.run_s), at turn {amount(turns)} of {amount(every)}",
        run_s=run_s,
    )


# ---------------------------------------------------------------- what is recorded already


class _Past:
    """What has been recorded of a run, added up."""

    def __init__(self) -> None:
        self.end = 0
        """Length in bytes of what an earlier attempt wrote."""
        self.steps = self.turns = 0
        self.ms = 0.0
        """Wall time of the memory's operations, in which it waits for models too. It is recorded,
        so that an interruption does not count."""
        self.deaths = 0
        self.words = ""
        """The memory's last, when it died last."""
        self.worker = ""
        """As of the last step: `Event.worker`."""
        self.given_up = -1
        """The first step that was not tried."""

    def take(self, event: Event, step: Step) -> None:
        """Add one outcome."""
        self.steps += 1
        self.turns += isinstance(step, Turn)
        self.ms += event.ms + event.settle_ms
        self.worker = event.worker
        if event.worker == "died":
            self.deaths, self.words = self.deaths + 1, event.error
        if event.worker == "gone" and self.given_up < 0:
            self.given_up = event.i

    def pairs(self, script: Script, history: Path) -> Iterator[tuple[Step, Event]]:
        """The steps that are recorded, with their outcomes, from the file."""
        if self.steps:
            yield from islice(joined(script, read_events(history, torn="stop")), self.steps)


def _recorded(history: Path, header: HistoryHeader, script: Script) -> _Past:
    """What an earlier attempt has recorded."""
    past = _Past()
    if not _begun(history):
        return past
    found = read_header(history)
    if found != header:
        raise HistoryError(
            f"{history}: recorded for another script, budget or set of capabilities;"
            " use another run folder, or fresh=true to run anew"
        )
    with history.open("rb") as stream:
        past.end = len(stream.readline())
    for event, position in read_marked(history, torn="stop"):
        past.take(event, script.steps[event.i])
        past.end = position
    return past


def _begun(history: Path) -> bool:
    """Whether the first line of a history was written whole."""
    if not history.exists():
        return False
    with history.open("rb") as stream:
        return stream.readline().endswith(b"\n")


# ---------------------------------------------------------------- a memory that may die


class _Life:
    """Does steps on a memory that is begun again when its process has died.

    It is rebuilt as a resumed run is, by the recorded steps; the one at which it died is left out,
    for it was never answered. What it shows must be what it showed, or the rest of the run would be
    that of another memory. A run that is resumed just after a death, or after it was given up,
    goes on in the same way.
    """

    def __init__(
        self,
        driver: Driver,
        script: Script,
        history: Path,
        past: _Past,
        begin: Callable[[], None] | None,
        restarts: int,
    ) -> None:
        self._driver = driver
        self._script = script
        self._history = history
        self._past = past
        self._begin = begin
        self._restarts = restarts

    def do(self, i: int, step: Step) -> Event:
        """Do one step, on a memory that is brought back before, where it has to be."""
        if self._past.worker == "gone":
            return _untried(i, f"at step {self._past.given_up}")
        if self._past.worker == "died" and (why := self._lost()):
            return _untried(i, why)
        return self._driver.do(i, step)

    def _lost(self) -> str:
        """Bring the memory back; says why it cannot be had."""
        restarts = self._past.deaths - 1
        if self._begin is None or restarts >= self._restarts:
            return f"after {restarts} restart{'' if restarts == 1 else 's'}; {self._past.words}"
        try:
            self._begin()
            self._driver.forget()
            for step, event in self._past.pairs(self._script, self._history):
                self._driver.again(step, event, alike=True)
        except (NotOpened, Unlike) as error:
            return f"as it cannot be brought back: {error}"
        return ""


def _untried(i: int, why: str) -> Event:
    return Event(i=i, type="fail", worker="gone", error=f"not tried: given up {why}"[:500])
