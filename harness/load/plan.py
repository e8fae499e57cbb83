"""What is asked under load, and when: fixed beforehand, from the settings and the seed alone.

The load is **open**: an operation has a time at which it is meant to start, whether or not the ones
before it have been answered. A user does not wait with a question until the system has dealt with
everybody else's.

Everything that is told is one sentence that gives one unit one value, and no value is given twice,
so whatever is served later names the operation that wrote it. Tenants share no unit, though their
topics have the same names: an answer from the wrong tenant shows by its value.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Final, Literal, NamedTuple

import msgspec

from steeltrap.harness.script import (
    Header,
    Op,
    Probe,
    Script,
    Step,
    Turn,
    canonical,
    field_of,
    tenant_of,
    topic_of,
    unit_id,
)

__all__ = ["Kind", "LoadSettings", "Operation", "Plan", "planned"]

Kind = Literal["write", "read", "poll"]
"""poll: a read that looks whether a certain write can be read yet."""

START: Final = datetime(2026, 1, 5, 9, 0)
POLLED_S: Final = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
"""After its intended start a traced write is looked for at these times, until it is found."""
HOT: Final = 8
"""Half of what revises and reads is about the latest so many units of a tenant."""
_FIELDS: Final = ("access code", "order code", "licence code")
_FIRST: Final = (
    "Amber", "Birch", "Cedar", "Delta", "Ember", "Fjord", "Garnet", "Harbour", "Indigo", "Juniper",
    "Kestrel", "Linden", "Meadow", "Nimbus", "Orchid", "Pepper", "Quartz", "Raven", "Saffron",
    "Tundra", "Umber", "Velvet", "Willow", "Yarrow", "Zephyr",
)  # fmt: skip
_SECOND: Final = (
    "Bridge", "Canal", "Depot", "Engine", "Forge", "Gallery", "Hangar", "Island", "Junction", "Kiln",
    "Ledger", "Mill", "Nursery", "Office", "Pier", "Quarry", "Relay", "Station", "Tunnel", "Vault",
    "Wharf", "Yard",
)  # fmt: skip
_WARM: Final = "warm-up"
_CODES: Final = 10**6
_STRIDE: Final = 387_421
"""Coprime to `_CODES`: the next code looks unlike the last, and none comes twice."""


class LoadSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a load is made of; with a rate and a seed it decides every operation."""

    seconds: float = 10.0
    """How long operations keep coming."""
    tenants: int = 8
    writes: float = 0.5
    """Share of what is asked that tells something; the rest asks for it."""
    arrivals: Literal["poisson", "constant"] = "poisson"
    """poisson: as of many users who know nothing of each other; constant: at equal distances."""
    traced: float = 0.2
    """Share of the writes that are looked for until they can be read. These looks come on top of
    the rate."""
    seed: int = 0

    def wrong(self) -> str:
        """What makes no load, and what would; empty where all is well."""
        if not self.seconds > 0:
            return f"seconds={self.seconds}: write more than 0"
        if self.tenants < 1:
            return f"tenants={self.tenants}: write a whole number, at least 1"
        for name in ("writes", "traced"):
            if not 0 <= getattr(self, name) <= 1:
                return f"{name}={getattr(self, name)}: write a share from 0 to 1"
        return "" if self.writes else "writes=0: nothing would be told, and nothing could be asked"


class Operation(NamedTuple):
    """One thing that is asked of the memory."""

    at_s: float
    """When it is meant to start, from the beginning of the load."""
    kind: Kind
    step: int
    """Which step of the script it is."""
    client: str
    """What one client asks comes one after the other; a tenant has one for each kind."""
    of: int = -1
    """poll: the step of the write that it looks for."""


class Plan(NamedTuple):
    """A load at one rate."""

    script: Script
    """Turns and questions in the order of their intended starts, then a question for every unit.
    There is no truth in it: that depends on what happens at once; see `judging`."""
    operations: list[Operation]
    """In order of their intended starts."""
    finals: dict[str, int]
    """Unit -> the step that asks for it when all is quiet."""
    warm: tuple[int, ...] = ()
    """Steps of a tenant who has no part in it, done before the clock runs: a first operation may
    take seconds, as it loads what all others find there."""


class _Tenant:
    """What one tenant has spoken of so far."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.units: list[str] = []

    def new(self) -> str:
        """A unit of which nobody has spoken."""
        number, field = divmod(len(self.units), len(_FIELDS))
        again, place = divmod(number, len(_FIRST) * len(_SECOND))
        topic = f"{_FIRST[place % len(_FIRST)]} {_SECOND[place // len(_FIRST)]}"
        unit = unit_id(self.name, f"{topic} {again + 1}" if again else topic, _FIELDS[field])
        self.units.append(unit)
        return unit

    def known(self, dice: random.Random) -> str:
        """A unit of which somebody has."""
        hot = self.units[-HOT:] if dice.random() < 0.5 else self.units
        return hot[int(dice.random() * len(hot))]


def planned(settings: LoadSettings, rate: float) -> Plan:
    """The load at a rate, in operations a second: the same for the same settings, everywhere.

    Raises:
        ValueError: the rate or the settings make no load, or more values would be needed than there are.
    """
    if not rate > 0:
        raise ValueError(f"rate={rate:g}: write more than 0")
    if wrong := settings.wrong():
        raise ValueError(wrong)
    dice = random.Random(f"steeltrap load {settings.seed} {rate:g}")
    tenants = [_Tenant(f"tenant-{n + 1}") for n in range(settings.tenants)]
    drafts = sorted(_drafts(settings, rate, dice, tenants), key=lambda draft: draft.at_s)
    drafts = list(_looked_for_in_vain_left_out(drafts))
    return _written(settings, rate, drafts, [unit for one in tenants for unit in one.units])


class _Draft(NamedTuple):
    at_s: float
    kind: Kind
    unit: str
    value: str = ""
    """Of a write, or of the write that is polled for."""
    first: bool = False


def _drafts(
    settings: LoadSettings, rate: float, dice: random.Random, tenants: Sequence[_Tenant]
) -> Iterator[_Draft]:
    codes = _codes(dice)
    for at_s in _arrivals(settings, rate, dice):
        tenant = tenants[int(dice.random() * len(tenants))]
        if dice.random() >= settings.writes and tenant.units:
            yield _Draft(at_s, "read", tenant.known(dice))
            continue
        first = not tenant.units or dice.random() < 0.5
        unit = tenant.new() if first else tenant.known(dice)
        value = next(codes)
        yield _Draft(at_s, "write", unit, value, first)
        if dice.random() < settings.traced:
            yield from (_Draft(at_s + after, "poll", unit, value) for after in POLLED_S)


def _looked_for_in_vain_left_out(drafts: Sequence[_Draft]) -> Iterator[_Draft]:
    """Without looks for a value once another is meant to have taken its place."""
    latest: dict[str, str] = {}
    for draft in drafts:
        if draft.kind == "write":
            latest[draft.unit] = draft.value
        if draft.kind != "poll" or latest[draft.unit] == draft.value:
            yield draft


def _arrivals(settings: LoadSettings, rate: float, dice: random.Random) -> Iterator[float]:
    """Times from 0 up to the end of the load."""
    at = 0.0
    while at < settings.seconds:
        yield round(at, 6)
        at += 1 / rate if settings.arrivals == "constant" else dice.expovariate(rate)


def _codes(dice: random.Random) -> Iterator[str]:
    start = int(dice.random() * _CODES)
    for n in range(_CODES):
        yield f"code:LD-{(start + n * _STRIDE) % _CODES:06d}"
    raise ValueError(f"more than {_CODES} writes; lower rate or seconds")


def _written(
    settings: LoadSettings, rate: float, drafts: Sequence[_Draft], units: Sequence[str]
) -> Plan:
    """The drafts as steps of a script, in their order."""
    header = Header(
        name="load", seed=settings.seed,
        settings=msgspec.to_builtins(settings) | {"rate": rate},
        tenants=[f"tenant-{n + 1}" for n in range(settings.tenants)],
    )  # fmt: skip
    unit = unit_id(_WARM, f"{_FIRST[0]} {_SECOND[0]}", _FIELDS[0])
    steps: list[Step] = [
        _turn(0, _minute(0), _Draft(0.0, "write", unit, "code:WU-000000", first=True)),
        _question(1, _minute(1), unit),
    ]
    operations: list[Operation] = []
    wrote: dict[str, int] = {}
    for draft in drafts:
        number, at = len(steps), _minute(len(steps))
        tenant = tenant_of(draft.unit)
        client = f"{tenant} {draft.kind}"
        if draft.kind == "write":
            wrote[draft.value] = number
            steps.append(_turn(number, at, draft))
            operations.append(Operation(draft.at_s, "write", number, client))
        else:
            steps.append(_question(number, at, draft.unit))
            operations.append(
                Operation(draft.at_s, draft.kind, number, client, wrote.get(draft.value, -1))
            )
    finals = {unit: len(steps) + n for n, unit in enumerate(units)}
    steps += [_question(number, _minute(number), unit) for unit, number in finals.items()]
    return Plan(Script(header, steps), operations, finals, (0, 1))


def _turn(number: int, at: str, draft: _Draft) -> Turn:
    tenant = tenant_of(draft.unit)
    op = Op("tell" if draft.first else "revise", draft.unit, draft.value)
    return Turn(
        at=at, tenant=tenant, family="load", id=f"t{number}", session=f"{tenant}-1",
        text=canonical(draft.unit, draft.value), ops=[op],
    )  # fmt: skip


def _question(number: int, at: str, unit: str) -> Probe:
    return Probe(
        at=at, tenant=tenant_of(unit), family="load", id=f"q{number}", ask="current", unit=unit,
        text=f"What is the {field_of(unit)} of {topic_of(unit)}?", observe="in-script",
    )  # fmt: skip


def _minute(number: int) -> str:
    """Each step has a minute of its own, so that a memory can tell which of two came later."""
    return (START + timedelta(minutes=number)).isoformat(timespec="minutes")
