"""Makes a true script again of what is left of one.

Where steps have been left out, what remains may make no sense any more: a value is revised that
was never told, a rule names somebody unknown. Such ops become what they now amount to, or go;
truth is computed anew, and a twin is kept while there is anything by which it differs.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

import msgspec

from steeltrap.harness.script import (
    Audit,
    Change,
    Erasure,
    Header,
    Op,
    Pause,
    Probe,
    Script,
    Step,
    Turn,
    TwinSpec,
)
from steeltrap.workloads.dice import Dice
from steeltrap.workloads.render import Renderer, Surface
from steeltrap.workloads.truth import Annotator
from steeltrap.workloads.world import WorldError

__all__ = ["ALL", "retold"]

PLAIN: Final = Surface(
    paraphrase=0.0, spelling=0.0, ellipsis=0.0, languages=0.0, decoration=0.0, paste=0.0
)
GROUP_UNITS_MAX: Final = 8
"""Of what one step changes so many units are asked for."""
T = TypeVar("T", bound=Step)
_VALUED: Final = ("tell", "revise", "revert", "correct", "restate")


class _All:
    def __contains__(self, step: object) -> bool:
        return True


ALL: Final = _All()
"""Every step."""


def retold(
    header: Header, steps: Iterable[Step], *, plain: Container[str] = (), probed: bool = False
) -> Script | None:
    """The script of these steps, or None where they make no true one.

    Args:
        header: of the script that they come from.
        steps: in order; they are left as they are.
        plain: ids of steps that are said in the plainest words, as all are that have become
            another op; `ALL`: every step.
        probed: ask for each unit at once when it changes, as a script does that is composed.
    """
    talk = _Talk(header, plain=plain)
    try:
        for segment in _segments(steps):
            talk.add(segment, probed=probed)
    except (WorldError, ValueError):
        return None
    return talk.script()


def _segments(steps: Iterable[Step]) -> Iterator[list[Step]]:
    """Each step at which something happens, with the measuring that follows it."""
    segment: list[Step] = []
    for step in steps:
        if isinstance(step, Turn | Pause | Erasure) and segment:
            yield segment
            segment = []
        segment.append(step)
    if segment:
        yield segment


@dataclass
class _Known:
    """A unit as it stands in the middle of a turn."""

    live: bool
    state: str
    value: str | None
    had: set[str]


class _Talk:
    """A script that is told step by step.

    Args:
        header: its twins are those that steps may belong to.
        plain: ids of steps that are said in the plainest words.
    """

    def __init__(self, header: Header, *, plain: Container[str] = ()) -> None:
        self._header = header
        self._plain = plain
        self._renderer = Renderer(PLAIN, Dice("plain"))
        self._annotator = Annotator(header)
        self.world = self._annotator.world
        self.steps: list[Step] = []
        self._names = {twin.name for twin in header.twins}
        self._told: set[str] = set()
        """Units, and the topics and fields of units without their tenants."""
        self._topics: set[str] = set()
        self._turn_ids: set[str] = set()
        self._asked: set[tuple[str, str]] = set()
        self._changed: dict[str, int] = {}
        self._turns = 0
        self._said_of: set[str] = set()
        """Units that exist, those included that the present turn begins with."""

    def add(self, segment: Sequence[Step], *, probed: bool = False) -> None:
        """A step at which something happens, and the measuring after it.

        Raises:
            WorldError: it makes no sense.
        """
        first, *rest = segment
        if isinstance(first, Turn | Pause | Erasure):
            self._asked.clear()
            happened = self._happens(first)
            if probed and happened is not None:
                self._probe_changes(happened, segment)
        else:
            self._measure(first)
        for step in rest:
            self._measure(step)

    # ------------------------------------------------------------ what happens

    def _copy(self, step: T) -> T:
        """The step, as far as it is marked for twins that there are."""
        step = msgspec.structs.replace(step)
        step.unless = tuple(name for name in step.unless if name in self._names)
        if isinstance(step, Probe) and step.swap and step.swap.twin not in self._names:
            step.swap = None
        return step

    def _happens(self, step: Turn | Pause | Erasure) -> Step | None:
        """Add a step if it still makes sense."""
        step = self._copy(step)
        match step:
            case Turn():
                ops = list(self._fitting(step))
                if not ops:
                    return None
                if step.id in self._plain or ops != step.ops or not step.text:
                    step.text = self._said(ops, step.at)
                step.ops = ops
                self._hear(step)
            case Erasure():
                step.gone = ()
                gone = [step.unit] if step.unit else self.world.by_tenant.get(step.tenant, ())
                if not gone or any(unit not in self.world.units for unit in gone):
                    return None
            case Pause():
                pass
        self._add(step)
        return step

    def _hear(self, turn: Turn) -> None:
        self._turns += 1
        self._turn_ids.add(turn.id)
        for op in turn.ops:
            if op.unit and op.op in ("tell", "expire"):
                self._told |= {op.unit, op.unit.partition("/")[2]}
                self._topics.add(op.unit.rpartition("/")[0])

    def _said(self, ops: Sequence[Op], at: str) -> str:
        previous = {op.unit: self.world.expect(op.unit).value for op in ops if op.unit}
        return self._renderer.turn(ops, at=at, previous=previous, last_unit=None)

    def _fitting(self, turn: Turn) -> Iterator[Op]:
        """The ops of a turn as what they amount to here, without those that make no sense."""
        known: dict[str, _Known] = {}
        self._said_of = set(self.world.units)
        for op in turn.ops:
            if op.op == "noise":
                yield op
            elif op.op == "associate":
                if {op.unit, op.target} <= self._topics:
                    yield op
            elif op.unit is not None:
                unit = known.setdefault(op.unit, self._known(op.unit, turn.at))
                fitting = self._amounts_to(op, unit)
                if fitting is not None:
                    self._said_of.add(op.unit)
                    yield fitting

    def _known(self, name: str, at: str) -> _Known:
        unit = self.world.units.get(name)
        if unit is None:
            return _Known(False, "", None, set())
        had = {entry.value for entry in unit.entries if entry.value}
        if unit.state == "set" and unit.now and (unit.now.until or "~") <= at:
            return _Known(False, "unset", None, had)  # its time is up when the turn is heard
        value = unit.now.value if unit.live and unit.now else None
        return _Known(unit.live, unit.state, value, had)

    def _amounts_to(self, op: Op, unit: _Known) -> Op | None:
        if op.op in _VALUED:
            return self._valued(op, unit)
        match op.op:
            case "retract":
                if not unit.live:
                    return None
                unit.live, unit.state, unit.value = False, "unset", None
            case "expire":
                unit.live, unit.state, unit.value = True, "set", op.value
            case "echo":
                if op.value not in unit.had or op.value == unit.value:
                    return None
            case "instruct" | "rumour":
                if not unit.had or op.value in unit.had or (op.op == "rumour" and not unit.live):
                    return None
            case "depend":
                if not {op.unit, op.target} <= self._said_of:
                    return None
        return op

    def _valued(self, op: Op, unit: _Known) -> Op | None:
        """An op that gives a value: tell comes first, restate repeats, revert returns."""
        name = op.op
        assert op.value is not None
        if unit.state == "set" and op.value == unit.value:
            if name == "correct":
                return None
            name = "restate"
        elif not unit.state or (not unit.live and name == "correct"):
            name = "tell"
        elif name == "restate" or (name == "revert" and op.value not in unit.had):
            name = "revise"
        if not op.valid_at:
            unit.live, unit.state, unit.value = True, "set", op.value
        unit.had.add(op.value)
        if name == op.op:
            return op
        restated = {"valid_at": None, "source": op.source} if name == "restate" else {}
        return msgspec.structs.replace(op, op=name, **restated)

    # ------------------------------------------------------------ what is measured

    def _measure(self, step: Step) -> None:
        """Add a step that asks or looks, if what it is about has been told."""
        step = self._copy(step)
        match step:
            case Probe():
                if not self._can_ask(step):
                    return
                if step.lag is not None and step.unit:
                    step.lag = self._turns - self._changed.get(step.unit, self._turns)
                if step.unit and step.ask == "current":
                    for source in self._sources(step.unit):
                        if (step.group, source) not in self._asked:
                            self._add(self._probe(source, step, f"{step.id}-{source}"))
                if step.id in self._plain:
                    step.text = self._question(step)
            case Audit():
                if step.unit not in self._told:
                    return
                if step.id in self._plain:
                    step.text = self._renderer.history_question(step.unit)
        self._add(step)

    def _can_ask(self, probe: Probe) -> bool:
        units = [*probe.units, *filter(None, [probe.unit])]
        if probe.swap:
            units.append(probe.swap.unit)
        if probe.control and probe.control not in self._told:
            probe.control = None
        if probe.ask == "previous" and probe.unit not in self.world.units:
            return False
        return all(map(self._is_told, units)) and self._turn_ids.issuperset(probe.evidence)

    def _is_told(self, unit: str) -> bool:
        """Whether a unit was told of, or one of that name elsewhere: then it must not be found."""
        return unit in self._told or unit.partition("/")[2] in self._told

    def _sources(self, unit: str) -> list[str]:
        """What a unit follows from, the first cause first."""
        chain = [unit]
        while (via := self.world.origin(chain[-1])[1]) is not None and via not in chain:
            chain.append(via)
        return list(reversed(chain[1:]))

    def _probe_changes(self, step: Step, segment: Sequence[Step]) -> None:
        """Ask for each unit that a step changed, where nobody does."""
        asked = {p.unit for p in segment if isinstance(p, Probe) and p.ask == "current"}
        units = list(dict.fromkeys(change.unit for change in step.changes))[:GROUP_UNITS_MAX]
        for unit in units:
            if unit not in asked:
                self._measure(self._probe(unit, step, f"{step.id}-{unit}"))

    def _probe(self, unit: str, beside: Step, name: str) -> Probe:
        group = beside.group if isinstance(beside, Probe) else f"{beside.id}-probes"
        lag = beside.lag if isinstance(beside, Probe) else 0
        probe = Probe(
            id=name, at=beside.at, tenant=unit.split("/", 1)[0], ask="current", text="", unit=unit,
            group=group, lag=lag, family=beside.family, unless=beside.unless,
        )  # fmt: skip
        probe.text = self._question(probe)
        return probe

    def _question(self, probe: Probe) -> str:
        if probe.ask == "evidence":
            return probe.text
        if probe.swap:
            text = self._renderer.question("current", probe.swap.unit, at=probe.at)
            probe.swap = msgspec.structs.replace(probe.swap, text=text)
        return self._renderer.question(
            probe.ask, probe.unit, at=probe.at, of=probe.of, units=probe.units
        )

    # ------------------------------------------------------------ the whole

    def _add(self, step: Step) -> None:
        changes = self._annotator.add(step)
        self.steps.append(step)
        self._note(changes)
        if isinstance(step, Probe) and step.ask == "current" and step.unit:
            self._asked.add((step.group, step.unit))

    def _note(self, changes: Sequence[Change]) -> None:
        for change in changes:
            self._changed[change.unit] = self._turns

    def script(self) -> Script | None:
        """The whole; None where nothing is said."""
        if not self._turns:
            return None
        header = msgspec.structs.replace(self._header, twins=list(self._twins()))
        used = {step.tenant for step in self.steps if step.tenant}
        header.tenants = [name for name in header.tenants if name in used]
        names = {twin.name for twin in header.twins}
        for step in self.steps:
            step.unless = tuple(name for name in step.unless if name in names)
        return Script(header, self.steps)

    def _all_erased(self, twin: str) -> bool:
        """Whether something is erased, and with it all that the twin is without.

        Whatever else it were without, that would show as a trace of what was erased.
        """
        gone = [s for s in self.steps if isinstance(s, Erasure) and twin in s.unless]
        units, tenants = {s.unit for s in gone}, {s.tenant for s in gone if s.unit is None}
        said = [s for s in self.steps if isinstance(s, Turn) and twin in s.unless]
        return bool(gone) and all(
            turn.tenant in tenants or (op.op != "noise" and bool(units & {op.unit, op.target}))
            for turn in said
            for op in turn.ops
        )

    def _twins(self) -> Iterator[TwinSpec]:
        """The twins that still differ in something, each compared up to where it can be."""
        there = {step.id for step in self.steps}
        marked = {name for step in self.steps for name in step.unless}
        marked |= {s.swap.twin for s in self.steps if isinstance(s, Probe) and s.swap}
        for twin in self._header.twins:
            if twin.about == "existing":
                if not self._all_erased(twin.name):
                    continue
            elif twin.name not in marked:
                if twin.about != "observing":
                    continue
            until = twin.until
            if until and until not in there:
                until = self.steps[-1].id
            trials = {probe: unit for probe, unit in twin.trials.items() if probe in there}
            yield msgspec.structs.replace(twin, until=until, trials=trials)
