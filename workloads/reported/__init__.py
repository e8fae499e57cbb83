"""Small conversations after public bug reports on memory systems: `script=reported`.

`cases.toml` holds what is said and asked; the world says what is true. Each case has a tenant of
its own (some have two) and times of its own, so that one run judges all of them side by side and
a case alone reads as it does among the others. The family of a case's steps is its kind.

Beside what a case asks itself, every change is asked for at once, and at its end the state of
its tenants is listed and every unit is asked for and looked up.

| key of a step | meaning |
|---|---|
| on | the day, or the minute; without it five minutes after the step before |
| who | added to the name of the tenant; without it the case's own |
| say, role | a turn; without ops it is small talk |
| tell, revise, … | ops: `{ unit = value }`; with importance, until, source for all of them |
| retract, depend | `[unit]`; `{ from, to, rule }` |
| paste, at_end | the sentence stands within, or at the end of, a paste of so many characters |
| times, at_once | again and again, the value restated; all at one minute, a session each |
| ask, instead | a question as a user asks it; the one that the other twin asks in its place |
| check, previous, as_of (of) | questions that only measure; text: in other words than usual |
| rank | a neutral question about two units |
| gauge, pause | a full look at the tenant's state; a round of maintenance |
| erase | units, or everything |
"""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Iterator, Sequence
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Final, Literal

import msgspec

from steeltrap.harness.script import (
    Ask,
    Audit,
    Erasure,
    Gauge,
    Header,
    Op,
    OpName,
    Pause,
    Probe,
    Rule,
    Script,
    ScriptError,
    Step,
    Swap,
    Turn,
    TwinSpec,
)
from steeltrap.workloads.dice import Dice
from steeltrap.workloads.render.noise import paste
from steeltrap.workloads.truth import Annotator, annotate

__all__ = ["Case", "cases", "script"]

START: Final = "2026-01-05T09:00"
ALPHA, CONSTANT_TOKENS = 3.0, 48
"""The bound of a tenant with one fact or two: loose for any wording of them, tight for copies."""
VALUED: Final[tuple[OpName, ...]] = (
    "tell", "expire", "revise", "revert", "correct", "restate", "echo", "rumour",
)  # fmt: skip


class _Tie(msgspec.Struct, forbid_unknown_fields=True):
    """A rule between two units."""

    source: str = msgspec.field(name="from")
    target: str = msgspec.field(name="to")
    rule: Rule


class _Act(msgspec.Struct, forbid_unknown_fields=True):
    """One entry of `steps`; see the table above."""

    on: str = ""
    who: str = ""
    say: str = ""
    role: Literal["user", "assistant"] = "user"
    tell: dict[str, str] = {}
    expire: dict[str, str] = {}
    revise: dict[str, str] = {}
    revert: dict[str, str] = {}
    correct: dict[str, str] = {}
    restate: dict[str, str] = {}
    echo: dict[str, str] = {}
    rumour: dict[str, str] = {}
    retract: list[str] = []
    depend: _Tie | None = None
    importance: Literal["vital", "normal", "trivial"] = "normal"
    until: str | None = None
    source: str = "owner"
    paste: int = 0
    at_end: bool = False
    times: int = 1
    at_once: bool = False
    ask: str = ""
    instead: str = ""
    check: str = ""
    previous: str = ""
    as_of: str = ""
    of: str | None = None
    text: str = ""
    rank: list[str] = []
    gauge: bool = False
    pause: bool = False
    erase: str | list[str] = ""


class Case(msgspec.Struct, forbid_unknown_fields=True):
    """One reported case; the fields are explained at the head of `cases.toml`."""

    id: str
    kind: str
    condition: list[str]
    symptom: str
    units: dict[str, str]
    asks: dict[str, str]
    steps: list[_Act]
    shows: list[str] = []
    note: str = ""

    @property
    def tenant(self) -> str:
        """The tenant that a step belongs to where it names no other."""
        return self.id.lower()

    @property
    def tenants(self) -> list[str]:
        """Every tenant that says anything."""
        return list(dict.fromkeys(self.tenant + act.who for act in self.steps if act.say))

    @property
    def tests(self) -> list[str]:
        """The conditions that the case is there to test, and further names that show its fault.

        What the state wrongly holds (C2) shows in answers too (C1), also where nothing is listed.
        """
        found = list(self.condition)
        if "C2" in found and "C1" not in found:
            found.append("C1")
        found += self.shows
        if any(act.importance == "vital" for act in self.steps):
            found += ["inverted-retention", "unrecoverable"]
        return list(dict.fromkeys(found))


@cache
def cases() -> tuple[Case, ...]:
    """All cases, in the order of the file."""
    with Path(__file__).with_name("cases.toml").open("rb") as stream:
        return tuple(msgspec.convert(tomllib.load(stream)["case"], list[Case]))


def script(case: str | None = None, kinds: Collection[str] = ()) -> Script:
    """One script of all cases, of some kinds, or of one case alone.

    Args:
        case: its id, such as BUG-005.
        kinds: the kinds to keep; none: all.

    Raises:
        ScriptError: there is no such case or kind.
    """
    chosen = _chosen(case, kinds)
    tests: dict[str, dict[str, None]] = {}
    for one in chosen:
        tests.setdefault(one.kind, {}).update(dict.fromkeys(one.tests))
    header = Header(
        name="reported",
        settings={
            "cases": [one.id for one in chosen],
            "conditions": {kind: list(names) for kind, names in tests.items()},
        },
        tenants=[tenant for one in chosen for tenant in one.tenants],
        alpha=ALPHA,
        constant_tokens=CONSTANT_TOKENS,
        notes={"cases": len(chosen), "kinds": len(tests)},
    )
    scenes = [_Scene(one) for one in chosen]
    placed = [(step.at, place, step) for place, scene in enumerate(scenes) for step in scene.steps]
    placed.sort(key=lambda one: one[:2])
    header.twins = [scene.twin for scene in scenes if scene.twin]
    return annotate(Script(header, [step for _, _, step in placed]))


def _chosen(case: str | None, kinds: Collection[str]) -> list[Case]:
    known = {one.id: one for one in cases()}
    if case is not None and case.upper() not in known:
        raise ScriptError(f"case '{case}' is not known; known: {', '.join(known)}")
    by_kind = dict.fromkeys(one.kind for one in cases())
    for kind in kinds:
        if kind not in by_kind:
            raise ScriptError(f"kind '{kind}' is not known; known: {', '.join(sorted(by_kind))}")
    chosen = [known[case.upper()]] if case else list(known.values())
    chosen = [one for one in chosen if not kinds or one.kind in kinds]
    if not chosen:
        raise ScriptError(f"{case} is of the kind {known[str(case).upper()].kind}, which is left out")  # fmt: skip
    return chosen


class _Scene:
    """Plays one case: its steps in order, with the probes that follow every change."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.steps: list[Step] = []
        self.twin: TwinSpec | None = None
        self._annotator = Annotator(Header(name=case.id, tenants=case.tenants))
        self._now = datetime.fromisoformat(START) - timedelta(minutes=5)
        self._counts: dict[str, int] = {}
        self._told: dict[str, None] = {}
        for act in case.steps:
            self._play(act, case.tenant + act.who)
        for tenant in case.tenants:
            self._look(tenant)

    @property
    def at(self) -> str:
        return self._now.isoformat(timespec="minutes")

    def _play(self, act: _Act, tenant: str) -> None:
        on = datetime.fromisoformat(act.on if "T" in act.on else f"{act.on}T09:00") if act.on else None  # fmt: skip
        for n in range(act.times):
            step = timedelta(0) if act.at_once and n else timedelta(minutes=5)
            self._now = max(on or self._now, self._now + step)
            self._once(act, tenant, n)

    def _once(self, act: _Act, tenant: str, n: int) -> None:
        """A step, for the `n`th time."""
        if act.pause:
            self._add(Pause(id=self._id("m"), at=self.at))
        if act.gauge:
            self._add(Gauge(id=self._id("g"), at=self.at, tenant=tenant, full=True))
        for alias in [act.erase] if isinstance(act.erase, str) else act.erase:
            if alias:
                unit = None if alias == "everything" else self._unit(tenant, alias)
                self._add(Erasure(id=self._id("e"), at=self.at, tenant=tenant, unit=unit))
        if act.ask:
            self._asked(act, tenant)
        for ask, alias in (
            ("current", act.check),
            ("previous", act.previous),
            ("as-of", act.as_of),
        ):
            if alias:
                self._measured(ask, alias, act, tenant)  # type: ignore[arg-type]
        if act.rank:
            self._ranked(act, tenant)
        if act.say:
            self._said(act, tenant, n)

    def _said(self, act: _Act, tenant: str, n: int) -> None:
        day = f"{self._now:%m%d}"
        self._add(Turn(
            id=self._id("t"), at=self.at, tenant=tenant, role=act.role, text=self._text(act),
            session=f"{tenant}-{day}" + (f"-{n + 1}" if act.at_once else ""),
            ops=list(self._ops(act, tenant, again=n > 0)) or [Op("noise")],
        ))  # fmt: skip

    def _ops(self, act: _Act, tenant: str, *, again: bool) -> Iterator[Op]:
        for name in VALUED:
            for alias, value in getattr(act, name).items():
                unit = self._unit(tenant, alias)
                if again and name != "restate":
                    yield Op("restate", unit, value, source=act.source)
                    continue
                yield Op(
                    name, unit, value, source=act.source, importance=act.importance,
                    until=act.until if name == "expire" else None,
                )  # fmt: skip
        for alias in act.retract:
            yield Op("retract", self._unit(tenant, alias), source=act.source)
        if act.depend:
            tie = act.depend
            source, target = (self._unit(tenant, alias) for alias in (tie.source, tie.target))
            yield Op("depend", source, target=target, rule=tie.rule)

    def _text(self, act: _Act) -> str:
        """What is said, within a paste where one is asked for."""
        if not act.paste:
            return act.say
        parts = paste(Dice("reported", self.case.id), act.paste).split("\n")
        place = len(parts) if act.at_end else len(parts) // 2
        return "\n".join([*parts[:place], act.say, *parts[place:]])

    # ------------------------------------------------------------ questions

    def _asked(self, act: _Act, tenant: str) -> None:
        """A question that is part of the trajectory; in the other twin it may be another one."""
        swap = control = None
        if act.instead:
            control = self._unit(tenant, act.instead)
            swap = Swap(self.case.tenant, control, self.case.asks[act.instead])
        self._add(Probe(
            id=self._id("p"), at=self.at, tenant=tenant, ask="current", group=self._id("q"),
            text=act.text or self.case.asks[act.ask], unit=self._unit(tenant, act.ask),
            observe="in-script", swap=swap, control=control,
        ))  # fmt: skip

    def _measured(self, ask: Ask, alias: str, act: _Act, tenant: str) -> None:
        if ask == "current":
            self._group([self._unit(tenant, alias)], tenant)
            return
        when = f"On {act.of[:10]} at {act.of[11:]}" if act.of else "Before the last change"
        self._add(Probe(
            id=self._id("p"), at=self.at, tenant=tenant, ask=ask, group=self._id("q"), of=act.of,
            text=f"{when}: {self.case.asks[alias]}", unit=self._unit(tenant, alias),
        ))  # fmt: skip

    def _ranked(self, act: _Act, tenant: str) -> None:
        units = tuple(sorted(self._unit(tenant, alias) for alias in act.rank))
        step = Probe(
            id=self._id("p"), at=self.at, tenant=tenant, ask="rank", group=self._id("q"),
            text=act.text, units=units,
        )  # fmt: skip
        self._add(step)
        a, b = (self._unit(tenant, alias) for alias in act.rank)
        self.twin = TwinSpec(self.case.tenant, a, b, step.id)

    def _group(self, units: Sequence[str], tenant: str, lag: int | None = None) -> None:
        """Ask for units together, each after whatever it follows from."""
        group, world = self._id("q"), self._annotator.world
        ordered: dict[str, None] = {}
        for unit in units:
            chain = [unit]
            while (via := world.origin(chain[-1])[1]) is not None and via not in chain:
                chain.append(via)
            ordered |= dict.fromkeys(reversed(chain))
        for unit in ordered:
            self._add(Probe(
                id=self._id("p"), at=self.at, tenant=tenant, ask="current", unit=unit, lag=lag,
                text=self._question(unit), group=group,
            ))  # fmt: skip

    def _look(self, tenant: str) -> None:
        """The end of a case: what is listed, what is answered, and what can be looked up."""
        units = [unit for unit in self._told if unit.startswith(tenant + "/")]
        known = self._annotator.world.units
        # Trivial units first: where a vital one is missing it is known what stayed.
        units.sort(key=lambda unit: unit not in known or known[unit].importance != "trivial")
        self._add(Gauge(id=self._id("g"), at=self.at, tenant=tenant, full=True))
        self._group(units, tenant)
        group = self._id("q")
        for unit in units:
            self._add(Audit(
                id=self._id("a"), at=self.at, tenant=tenant, unit=unit, group=group,
                text=f"List every answer there ever was to: {self._question(unit)}",
            ))  # fmt: skip

    # ------------------------------------------------------------ inner workings

    def _unit(self, tenant: str, alias: str) -> str:
        return f"{tenant}/{self.case.units[alias]}"

    def _question(self, unit: str) -> str:
        name = unit.split("/", 1)[1]
        return next(self.case.asks[alias] for alias, of in self.case.units.items() if of == name)

    def _id(self, prefix: str) -> str:
        self._counts[prefix] = number = self._counts.get(prefix, 0) + 1
        return f"{self.case.tenant}-{prefix}{number}"

    def _add(self, step: Step) -> None:
        """Take a step, and ask at once for whatever it changed."""
        step.family = self.case.kind
        self.steps.append(step)
        changed = [change.unit for change in self._annotator.add(step)]
        self._told |= dict.fromkeys(changed)
        if changed and not isinstance(step, Probe | Gauge | Audit):
            self._group(list(dict.fromkeys(changed)), changed[0].split("/", 1)[0], lag=0)
