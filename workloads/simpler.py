"""Ways to say a script more simply without leaving anything out.

Each takes a script apart into what could be simpler (`parts`) and makes the simpler one of some
of them (`apply`), with its truth. Whether that still shows what it should is for others to see.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterator, Sequence
from datetime import datetime, timedelta
from itertools import count
from typing import Any, Final, Protocol

import msgspec

from steeltrap.harness import values
from steeltrap.harness.script import (
    Audit,
    Erasure,
    Header,
    Op,
    Probe,
    Rule,
    Script,
    Step,
    Turn,
    field_of,
    tenant_of,
    topic_of,
    unit_id,
)
from steeltrap.workloads.domains import field_named
from steeltrap.workloads.retell import ALL, retold

__all__ = ["SIMPLER", "Simpler", "numbered"]

START: Final = datetime(2026, 1, 5, 8, 30)
LONG_CHARS: Final = 200
"""A text that cannot be said plainly is cut while it is longer."""
TENANTS: Final = ("acme", "globex", "initech", "hooli")
TOPICS: Final = (
    "Atlas", "Borealis", "Cygnus", "Delphi", "Electra", "Fornax", "Gemini", "Helios", "Indus",
    "Juno", "Kepler", "Lyra", "Mira", "Nova", "Orion", "Pavo",
)  # fmt: skip
FIELDS: Final[dict[str, tuple[str, ...]]] = {
    "date": ("deadline", "kick-off", "review day", "launch day", "closing day", "audit day"),
    "time": ("meeting time", "opening time", "closing time", "call time"),
    "money": ("budget", "fee", "deposit", "reserve"),
    "measure": ("size", "length", "width", "depth"),
    "count": ("head count", "seat count", "box count", "key count"),
    "code": ("badge number", "ticket number", "room code", "gate code"),
    "name": ("lead", "deputy", "contact", "sponsor"),
    "text": ("colour", "motto", "menu", "badge"),
}
NAMES: Final = (
    "Ann Baker", "Ben Carter", "Cleo Davis", "Dan Evans", "Eva Fisher", "Finn Gray", "Gus Hall",
    "Ida Irving", "Jon Keller", "Kim Larsen",
)  # fmt: skip
TEXTS: Final = ("red", "green", "blue", "yellow", "purple", "orange", "black", "white")


class Simpler(Protocol):
    """One way to say a script more simply."""

    def parts(self, script: Script) -> list[Hashable]:
        """What could be simpler; none where nothing can."""

    def apply(self, script: Script, parts: Sequence[Any]) -> Script | None:
        """The script with these parts made simpler; None where that is no true one."""


class _Wording:
    """Steps in their plainest words: parts are their ids."""

    def parts(self, script: Script) -> list[Hashable]:
        return list(_coloured(script))

    def apply(self, script: Script, parts: Sequence[Any]) -> Script | None:
        return retold(script.header, script.steps, plain=set(parts))


class _Shorter:
    """Long pastes cut in half: parts are ids of steps."""

    def parts(self, script: Script) -> list[Hashable]:
        return [s.id for s in script.steps if isinstance(s, Turn) and len(s.text) > LONG_CHARS]

    def apply(self, script: Script, parts: Sequence[Any]) -> Script | None:
        steps = [_halved(s) if isinstance(s, Turn) and s.id in parts else s for s in script.steps]
        return retold(script.header, steps)


def _halved(turn: Turn) -> Step:
    if any(op.op != "noise" for op in turn.ops):
        return turn
    half = turn.text[: len(turn.text) // 2].rpartition(" ")[0]
    return msgspec.structs.replace(turn, text=f"{half}.")


class _Moments:
    """Whatever happens at another time happens on a day of its own."""

    def parts(self, script: Script) -> list[Hashable]:
        old = _instants(script)
        days = {at: _day(n) for n, at in enumerate(old)}
        return ["days"] if any(at != day for at, day in days.items()) else []

    def apply(self, script: Script, parts: Sequence[Any]) -> Script | None:  # noqa: ARG002
        new = {at: _day(n) for n, at in enumerate(_instants(script))}
        return _mapped(script, instant=new.__getitem__)


def _instants(script: Script) -> list[str]:
    """Every time that a script names, the earliest first."""
    found = set()
    for step in script.steps:
        found.add(step.at)
        if isinstance(step, Probe) and step.of:
            found.add(step.of)
        if isinstance(step, Turn):
            found.update(at for op in step.ops for at in (op.valid_at, op.until) if at)
    return sorted(found)


def _day(number: int) -> str:
    return (START + timedelta(days=number)).isoformat(timespec="minutes")


class _Names:
    """Short names for tenants, topics and fields: parts are (what, old, new)."""

    def parts(self, script: Script) -> list[Hashable]:
        units = _units(script)
        fixed = _fixed(script)
        tenants = _renamed(list(script.header.tenants), lambda _: TENANTS, fixed)
        topics = _renamed([topic_of(u) for u in units], lambda _: TOPICS, fixed)
        fields = _renamed([field_of(u) for u in units], _fields_of(script), fixed)
        return [
            *(("tenant", old, new) for old, new in tenants),
            *(("topic", old, new) for old, new in topics),
            *(("field", old, new) for old, new in fields),
        ]

    def apply(self, script: Script, parts: Sequence[Any]) -> Script | None:
        maps: dict[str, dict[str, str]] = {"tenant": {}, "topic": {}, "field": {}}
        for what, old, new in parts:
            maps[what][old] = new
        return _mapped(script, **{key: _through(found) for key, found in maps.items()})


def _fields_of(script: Script) -> Callable[[str], Sequence[str]]:
    """The short names that a field may have: those of its kind."""
    kinds = {
        field_of(op.unit): values.kind_of(op.value)
        for op in _ops(script)
        if op.unit and op.value and op.op != "associate"
    }

    def options(field: str) -> Sequence[str]:
        kind = kinds.get(field, "text")
        fit = []
        for name in FIELDS[kind]:
            known = field_named(name)
            if known is None or known[1].kind == kind:
                fit.append(name)
        return fit

    return options


def _renamed(
    old: Sequence[str], options: Callable[[str], Sequence[str]], fixed: Collection[str]
) -> Iterator[tuple[str, str]]:
    """The first short name that is free for each name, in order of appearance."""
    names = list(dict.fromkeys(old))
    taken = set(names)
    for name in names:
        known = options(name)
        if name in known or name in fixed:
            continue
        new = next((one for one in known if one not in taken), None)
        if new is not None:
            taken.add(new)
            yield name, new


class _Values:
    """The first values of each kind: parts are (old, new)."""

    def parts(self, script: Script) -> list[Hashable]:
        old = dict.fromkeys(op.value for op in _ops(script) if op.value)
        taken, fixed = set(old), _fixed(script)
        found: list[Hashable] = []
        for value in old:
            for new in _simplest(value):
                if new == value or value in fixed:
                    break
                if new not in taken:
                    taken.add(new)
                    found.append((value, new))
                    break
        return found

    def apply(self, script: Script, parts: Sequence[Any]) -> Script | None:
        mapped = _mapped(script, value=_through(dict(parts)))
        # a derived value may come to be one that somebody else was told
        return mapped if mapped and _distinct(mapped) == _distinct(script) else None


def _simplest(value: str) -> Iterator[str]:
    """Values of the same kind, the simplest first."""
    kind, payload = values.kind_of(value), values.payload_of(value)
    for number in count(1):
        match kind:
            case "date":
                year, month = 2026 + (number + 1) // 12, (number + 1) % 12 + 1
                made = f"{year}-{month:02d}-01"
            case "time":
                made = f"{9 + number:02d}:00" if number < 15 else payload
            case "money":
                made = f"{payload[:3]} {100 * number}"
            case "measure":
                made = f"{100 * number} {payload.rpartition(' ')[2]}"
            case "count":
                made = str(10 * number)
            case "code":
                made = f"AB-{100 * number}"
            case "name" | "text":
                words = NAMES if kind == "name" else TEXTS
                made = words[number - 1] if number <= len(words) else payload
        yield f"{kind}:{made}"


def _distinct(script: Script) -> int:
    """How many values there are, told and derived."""
    told = {op.value for op in _ops(script) if op.value}
    return len(told | {c.value for step in script.steps for c in step.changes if c.value})


class _Rules:
    """The simplest rule of each kind: parts are ids of turns."""

    def parts(self, script: Script) -> list[Hashable]:
        turns = [s for s in script.steps if isinstance(s, Turn)]
        return [t.id for t in turns if any(op.rule != _rule(op.rule) for op in t.ops)]

    def apply(self, script: Script, parts: Sequence[Any]) -> Script | None:
        steps = [
            msgspec.structs.replace(
                s, ops=[msgspec.structs.replace(op, rule=_rule(op.rule)) for op in s.ops]
            )
            if isinstance(s, Turn) and s.id in parts
            else s
            for s in script.steps
        ]
        made = retold(script.header, steps, plain=set(parts))
        return made if made and _distinct(made) == _distinct(script) else None


def _rule(rule: Rule | None) -> Rule | None:
    if rule is None:
        return None
    match rule.kind:
        case "offset":
            return Rule("offset", days=1)
        case "scaled":
            return Rule("scaled", times=2)
        case _:
            return rule


class _Trimmings:
    """What seldom matters: importance, sessions, families, other words for fields."""

    PARTS = ("importance", "session", "family", "words", "settings", "role", "controls")

    def parts(self, script: Script) -> list[Hashable]:
        plain = msgspec.json.encode([script.header, *script.steps])
        made = self.apply(script, self.PARTS)
        same = made is None or msgspec.json.encode([made.header, *made.steps]) == plain
        return [] if same else list(self.PARTS)

    def apply(self, script: Script, parts: Sequence[Any]) -> Script | None:
        header = msgspec.structs.replace(script.header)
        if "words" in parts:
            header.words = {}
        if "settings" in parts:
            header.settings = {}
        changed = [s.id for s in script.steps if isinstance(s, Turn) and "importance" in parts
                   and any(op.importance != "normal" for op in s.ops)]  # fmt: skip
        return retold(header, [_trimmed(s, parts) for s in script.steps], plain=set(changed))


def _trimmed(step: Step, parts: Collection[str]) -> Step:
    step = msgspec.structs.replace(step)
    if "family" in parts:
        step.family = ""
    if isinstance(step, Turn):
        if "session" in parts:
            step.session = f"{step.tenant}-s1"
        if "role" in parts:
            step.role = "user"
        if "importance" in parts:
            step.ops = [msgspec.structs.replace(op, importance="normal") for op in step.ops]
    if isinstance(step, Probe) and "controls" in parts:
        step.control = None
    return step


SIMPLER: Final[tuple[Simpler, ...]] = (
    _Wording(), _Shorter(), _Trimmings(), _Moments(), _Names(), _Rules(), _Values(),
)  # fmt: skip
"""In the order in which they are worth trying."""


def numbered(script: Script) -> Script:
    """The script with its steps and groups numbered through."""
    letters = {"Turn": "t", "Probe": "p", "Gauge": "g", "Audit": "a", "Pause": "m", "Erasure": "e"}
    counts: dict[str, int] = {}
    ids: dict[str, str] = {}
    groups: dict[str, str] = {}
    for step in script.steps:
        letter = letters[type(step).__name__]
        counts[letter] = number = counts.get(letter, 0) + 1
        ids[step.id] = f"{letter}{number:04d}"
    steps = []
    for step in script.steps:
        step = msgspec.structs.replace(step, id=ids[step.id])
        if isinstance(step, Probe | Audit):
            step.group = groups.setdefault(step.group, f"q{len(groups) + 1:04d}")
        if isinstance(step, Probe):
            step.evidence = tuple(ids[turn] for turn in step.evidence)
        steps.append(step)
    twins = [
        msgspec.structs.replace(
            twin,
            until=ids.get(twin.until, ""),
            trials={ids[probe]: unit for probe, unit in twin.trials.items()},
        )
        for twin in script.header.twins
    ]
    made = retold(msgspec.structs.replace(script.header, twins=twins), steps)
    assert made is not None
    return made


# ---------------------------------------------------------------- looking and rewriting


def _ops(script: Script) -> Iterator[Op]:
    for step in script.steps:
        if isinstance(step, Turn):
            yield from step.ops


def _units(script: Script) -> list[str]:
    """Every unit that is spoken of, in order."""
    found: dict[str, None] = {}
    for op in _ops(script):
        if op.op != "associate":
            found |= dict.fromkeys(unit for unit in (op.unit, op.target) if unit)
    return list(found)


def _coloured(script: Script) -> dict[str, Step]:
    """Steps that are not said in their plainest words, by id."""
    plain = retold(script.header, script.steps, plain=ALL)
    if plain is None:
        return {}
    texts = {step.id: _texts(step) for step in plain.steps}
    return {step.id: step for step in script.steps if texts.get(step.id) != _texts(step)}


def _texts(step: Step) -> tuple[str, str]:
    swap = getattr(step, "swap", None)
    return getattr(step, "text", ""), swap.text if swap else ""


def _fixed(script: Script) -> set[str]:
    """Names and values in texts that are not plain: they stay as they are."""
    fixed: set[str] = set()
    for step in _coloured(script).values():
        units = [getattr(step, "unit", None), *getattr(step, "units", ())]
        for op in step.ops if isinstance(step, Turn) else ():
            units += [op.unit, op.target]
            fixed |= {op.value} if op.value else set()
        for unit in filter(None, units):
            fixed |= set(unit.split("/"))
    return fixed


def _through(found: dict[str, str]) -> Callable[[str], str]:
    return lambda old: found.get(old, old)


def _same(old: str) -> str:
    return old


def _mapped(
    script: Script,
    *,
    tenant: Callable[[str], str] = _same,
    topic: Callable[[str], str] = _same,
    field: Callable[[str], str] = _same,
    value: Callable[[str], str] = _same,
    instant: Callable[[str], str] = _same,
) -> Script | None:
    """A script with other names, values and times, said plainly where it was said plainly."""
    coloured = _coloured(script)

    def unit(old: str | None) -> str | None:
        if not old or "/" not in old:
            return tenant(old) if old else old
        if old.count("/") == 1:
            return f"{tenant(tenant_of(old))}/{topic(topic_of(old))}"
        return unit_id(tenant(tenant_of(old)), topic(topic_of(old)), field(field_of(old)))

    def op(old: Op) -> Op:
        return msgspec.structs.replace(
            old, unit=unit(old.unit), target=unit(old.target),
            value=value(old.value) if old.value else old.value,
            valid_at=instant(old.valid_at) if old.valid_at else None,
            until=instant(old.until) if old.until else None,
        )  # fmt: skip

    def step(old: Step) -> Step:
        new = msgspec.structs.replace(old, at=instant(old.at), tenant=tenant(old.tenant))
        if isinstance(new, Turn):
            new.ops = [op(one) for one in new.ops]
            new.session = new.session.replace(old.tenant, new.tenant, 1)
        elif isinstance(new, Probe):
            new.unit, new.control = unit(new.unit), unit(new.control)
            new.units = tuple(sorted(unit(one) or "" for one in new.units))
            new.of = instant(new.of) if new.of else None
            if new.swap:
                new.swap = msgspec.structs.replace(new.swap, unit=unit(new.swap.unit))
        elif isinstance(new, Audit):
            new.unit = unit(new.unit) or ""
        elif isinstance(new, Erasure):
            new.unit = unit(new.unit)
        return new

    header = _header_mapped(script.header, tenant, unit)
    plain = {one.id for one in script.steps if one.id not in coloured}
    return retold(header, [step(one) for one in script.steps], plain=plain)


def _header_mapped(
    header: Header, tenant: Callable[[str], str], unit: Callable[[str | None], str | None]
) -> Header:
    twins = [
        msgspec.structs.replace(
            twin, a=unit(twin.a) or "", b=unit(twin.b) or "", gone=unit(twin.gone) or "",
            tenant=tenant(twin.tenant),
            trials={probe: unit(one) or "" for probe, one in twin.trials.items()},
        )
        for twin in header.twins
    ]  # fmt: skip
    return msgspec.structs.replace(header, tenants=[tenant(n) for n in header.tenants], twins=twins)
