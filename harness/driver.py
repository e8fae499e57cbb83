"""Does the steps of a script on one memory, and says what became of each."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import Any, Final, Literal, Protocol

from steeltrap.harness.history import Event, Salience
from steeltrap.harness.memory import (
    Erases,
    Forks,
    Item,
    Lists,
    Maintains,
    Memory,
    MemoryDied,
    MemoryFault,
    Query,
    Recalls,
    Recovers,
    Salient,
    Sized,
    Subject,
    Utterance,
)
from steeltrap.harness.models import Usage
from steeltrap.harness.replies import Items, number, words
from steeltrap.harness.script import (
    Audit,
    Erasure,
    Gauge,
    Pause,
    Probe,
    Step,
    Turn,
    field_of,
    tenant_of,
    topic_of,
)
from steeltrap.harness.surroundings import Surroundings

__all__ = ["Driver", "Meter", "NotOpened", "RunStopped", "Unlike", "subject"]

_GATEWAY: Final = "the gateway"


class RunStopped(RuntimeError):
    """A run cannot go on, and nothing was recorded of the step at which it stopped.

    What was recorded before stands, so that the run goes on from there when it can.
    """


class NotOpened(RunStopped):
    """The memory cannot be opened, so that nothing can be run."""


class Unlike(RuntimeError):
    """A step that was done over became something else than what is recorded of it."""


class Meter(Protocol):
    """Counts the model calls of a run by the step and phase that caused them."""

    address: str
    """Where they are answered: another port in each run, so it is left out of a memory's words."""

    def at(self, step: int, phase: str) -> None:
        """From now on calls are caused by this."""

    def taken(self) -> dict[str, Usage]:
        """What was used since this was last asked, by phase."""

    def unrecovered(self) -> str:
        """A call of this step that failed and was not made good; empty: none."""

    def stopped(self) -> str:
        """Why no further call can be answered; empty: they can."""


def subject(unit: str, text: str = "") -> Subject:
    """A unit as adapters are asked for it by name."""
    return Subject(tenant_of(unit), topic_of(unit), field_of(unit), text)


class Driver:
    """Does steps on one memory.

    Args:
        memory: opened.
        limit: items that a query may be served.
        meter: counts the memory's model calls.
    """

    def __init__(self, memory: Memory, limit: int, meter: Meter | None = None) -> None:
        self._memory = memory
        self._limit = limit
        self._meter = meter
        self._step = 0
        self._items = Items()
        self._around = Surroundings()
        self._tenants: dict[str, None] = {}
        self._settled = True
        self._fork: tuple[str, Memory] | None = None
        self._ms = self._settle_ms = 0.0

    @property
    def shown(self) -> list[Item]:
        """Every item that was served or listed so far."""
        return self._items.all

    def forget(self) -> None:
        """The memory has been opened again, and is empty."""
        self._items = Items()
        self._tenants = {}
        self._settled = True
        self._fork = None

    def again(self, step: Step, recorded: Event, *, alike: bool = False) -> None:
        """Do a recorded step over, for its effect on the memory; the record stands as it is.

        A step at which the memory's process died, or that was not tried, is left out.

        Args:
            step: of the script.
            recorded: its outcome.
            alike: whether it must also show the same items, in the same order.

        Raises:
            Unlike: the step did not end as it had, or does not show what it showed.
        """
        kept, self._items = self._items, Items()
        done = recorded if recorded.worker else self.do(recorded.i, step)
        now, self._items = self._items, kept
        self._items.extend(recorded.new)
        if done is recorded:
            return
        if done.type != recorded.type or done.worker:
            raise Unlike(
                f"step {recorded.i} ended '{recorded.type}' and ends '{done.type}' when it is done"
                f" over ({done.error or 'no error'})"
            )
        if alike and _shown(done, now) != _shown(recorded, kept):
            raise Unlike(f"step {recorded.i} shows other items when it is done over")

    def do(self, i: int, step: Step) -> Event:
        """Do one step and say what became of it.

        Raises:
            RunStopped: a model call could not be answered, and no other will be.
        """
        event = Event(i=i, type="ok")
        self._step = i
        self._ms = self._settle_ms = 0.0
        seen = len(self._items.all)
        try:
            match step:
                case Turn():
                    self._ingest(step)
                case Probe():
                    self._ask(step, event)
                case Gauge():
                    self._gauge(step, event)
                case Audit():
                    self._audit(step, event)
                case Pause():
                    self._maintain(step)
                case Erasure():
                    self._erase(step)
        except MemoryFault as fault:
            event = Event(i=i, type="fail", via=event.via, error=words(fault))
        except MemoryDied as fault:
            event = Event(i=i, type="info", worker="died", via=event.via, error=words(fault))
        except KeyboardInterrupt:
            raise  # whoever sits before it wants it to end
        except BaseException as fault:
            event = Event(i=i, type="info", via=event.via, error=words(fault))
        self._around.restore()
        # Whatever was numbered is written, also where the step failed half-way.
        event.new = self._items.all[seen:]
        event.ms, event.settle_ms = round(self._ms, 4), round(self._settle_ms, 4)
        if self._meter:
            self._metered(event, self._meter)
        return event

    def _metered(self, event: Event, meter: Meter) -> None:
        """Add what models were asked; a failure that the memory kept to itself is no success."""
        if why := meter.stopped():
            raise RunStopped(why)
        event.usage = meter.taken()
        event.error = event.error.replace(meter.address or "\0", _GATEWAY)
        silent = meter.unrecovered()
        if silent and event.type == "ok":
            event.type, event.error = "info", f"said nothing of a failed model call: {silent}"[:500]

    # ------------------------------------------------------------ the kinds of step

    def _ingest(self, turn: Turn) -> None:
        self._changed()
        said = Utterance(turn.id, turn.at, turn.tenant, turn.session, turn.role, turn.text)
        known = turn.tenant in self._tenants
        self._tenants.setdefault(turn.tenant)
        try:
            self._timed("ingest", self._memory.ingest, said)
        except (MemoryFault, MemoryDied):
            if not known:  # who was refused has nothing that could be listed
                del self._tenants[turn.tenant]
            raise

    def _ask(self, probe: Probe, event: Event) -> None:
        self._settle()
        event.via, asked = self._asked(probe.group, in_script=probe.observe == "in-script")
        query = Query(probe.id, probe.at, probe.tenant, probe.text, self._limit)
        watched = self._watched(probe) if event.via == "in-script" else []
        before = [self._salience(unit) for unit in watched]
        reply = self._timed("retrieve", asked.retrieve, query)
        self._serve(event, reply, "retrieve")
        event.salience = [
            Salience(unit, old, self._salience(unit))
            for unit, old in zip(watched, before, strict=True)
        ]

    def _asked(self, group: str, *, in_script: bool) -> tuple[Literal["fork", "in-script"], Memory]:
        """The memory to be asked: a copy where one can be had and the question may not count.

        One copy serves a group of questions that are asked at one point.
        """
        if in_script or not isinstance(self._memory, Forks):
            self._fork = None
            return "in-script", self._memory
        if self._fork is None or self._fork[0] != group:
            self._fork = (group, self._memory.fork())
        return "fork", self._fork[1]

    def _watched(self, probe: Probe) -> list[str]:
        if not isinstance(self._memory, Salient) or probe.ask != "current":
            return []
        return [unit for unit in (probe.unit, probe.control) if unit is not None]

    def _salience(self, unit: str) -> float | None:
        assert isinstance(self._memory, Salient)
        given = self._memory.salience(subject(unit))
        return None if given is None else number(given, "salience returned")

    def _gauge(self, gauge: Gauge, event: Event) -> None:
        self._settle()
        if gauge.blind or not isinstance(self._memory, Lists):
            return
        event.via = "listing"
        listed: list[int] = []
        for tenant in [gauge.tenant] if gauge.tenant else self._tenants:
            numbers, _ = self._items.intern(
                self._timed("list", self._memory.active, tenant), "active"
            )
            listed += numbers
            if gauge.full:
                event.by_tenant.append(len(numbers))
        event.items = len(listed)
        event.tokens = sum(self._items.tokens[number] for number in listed)
        if gauge.full:
            event.served = listed
            if isinstance(self._memory, Sized):
                event.size_bytes = int(number(self._memory.size_bytes(), "size_bytes returned"))

    def _audit(self, audit: Audit, event: Event) -> None:
        self._settle()
        memory = self._memory
        about = subject(audit.unit, audit.text)
        if isinstance(memory, Salient):
            stands = self._salience(audit.unit)
            event.salience = [Salience(audit.unit, stands, stands)]
        if isinstance(memory, Recalls):
            event.versions, _ = self._items.intern(
                self._timed("audit", memory.history, about), "history"
            )
        else:
            event.via, asked = self._asked(audit.group, in_script=False)
            query = Query(audit.id, audit.at, audit.tenant, audit.text, self._limit)
            self._serve(event, self._timed("audit", asked.retrieve, query), "retrieve")
        if isinstance(memory, Recovers):
            event.recovered, _ = self._items.intern(
                self._timed("audit", memory.recover, about), "recover"
            )

    def _maintain(self, pause: Pause) -> None:
        self._settle()
        if isinstance(self._memory, Maintains):
            self._changed()
            self._timed("maintain", self._memory.maintain, pause.at)

    def _erase(self, step: Erasure) -> None:
        self._settle()
        if not isinstance(self._memory, Erases):
            return
        self._changed()
        self._timed(
            "erase", self._memory.erase, step.tenant, subject(step.unit) if step.unit else None
        )
        if step.gone:
            self._settle()

    # ------------------------------------------------------------ helpers

    def _serve(self, event: Event, reply: Any, call: str) -> None:
        event.served, event.scores = self._items.intern(reply, call)
        event.tokens = sum(self._items.tokens[number] for number in event.served)

    def _settle(self) -> None:
        if not self._settled:
            before, self._ms = self._ms, 0.0
            self._timed("settle", self._memory.settle)
            self._settle_ms, self._ms = self._ms, before
            self._settled = True

    def _changed(self) -> None:
        self._settled = False
        self._fork = None

    def _timed(self, phase: str, call: Callable[..., Any], *arguments: Any) -> Any:
        if self._meter:
            self._meter.at(self._step, phase)
        start = perf_counter()
        try:
            return call(*arguments)
        finally:
            self._ms += (perf_counter() - start) * 1000


def _shown(event: Event, items: Items) -> tuple[Any, ...]:
    """What a step showed, whatever the numbers of its items."""
    shown = (event.served, event.versions, event.recovered)
    texts = [None if numbers is None else [items.all[n] for n in numbers] for numbers in shown]
    return event.via, event.items, event.tokens, event.by_tenant, texts
