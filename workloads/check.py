"""Validates a script that somebody wrote, and fills in its truth where there is none."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator, MutableMapping
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import msgspec

from steeltrap.harness import values
from steeltrap.harness.script import (
    Audit,
    Erasure,
    Op,
    Pause,
    Probe,
    Script,
    ScriptError,
    ScriptWriter,
    Step,
    StoredSteps,
    Turn,
    tenant_of,
)
from steeltrap.harness.shelf import Attic, Shelf
from steeltrap.harness.tokens import cache_folder
from steeltrap.workloads.truth import Annotator
from steeltrap.workloads.world import World, WorldError

__all__ = ["check"]

FORGET_EVERY: Final = 10_000
"""Lines after which what no later line can touch is let go."""
_INSTANT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d")
_NEEDS_VALUE = ("tell", "revise", "revert", "correct", "restate", "echo", "rumour", "expire", "instruct")  # fmt: skip
_TRUTH = ("changes", "footprint", "expect", "via", "hop", "history", "live", "gone")
_TRUTH_BY_DEFAULT: Final[dict[str, Any]] = {
    "expect": None,
    "via": None,
    "hop": 0,
    "history": [],
    "live": True,
    "gone": (),
}


def check(path: Path | str) -> Script:
    """Read a script, check it, and replay its ops.

    A script without any truth in it gets its truth; in one with truth every line must agree with
    the world. A long one stays in its file, or gets another in the cache folder, truth included.

    Raises:
        ScriptError: the first thing that is wrong, with file, line and field.
    """
    path = Path(path)
    script = Script.read(path)
    if not script.steps:
        raise ScriptError(f"{path}: has a header and no steps, so there is nothing to run")
    books = _Books()
    for number, problem in _problems(script, books):
        raise ScriptError(f"{path}:{number}: {problem}")
    replayed = _replayed(path, script, books)
    if any(_has_truth(step) for step in script.steps):
        for number, stated, step in replayed:
            _agree(path, number, stated, step)
        return script
    steps = (step for _, _, step in replayed)
    if isinstance(script.steps, StoredSteps):
        return _written(script, steps)
    return Script(script.header, list(steps))


class _Books:
    """What is known of a script beyond the line that is being read."""

    def __init__(self) -> None:
        attic = Attic()
        self.lines: Shelf[str, int] = Shelf(attic, int)
        """Line by id."""
        self.turns: Shelf[str, bool] = Shelf(attic, bool)
        """Ids of turns."""
        self.kinds: Shelf[str, str] = Shelf(attic, str)
        """Kind of value by unit."""
        self.told: Shelf[str, bool] = Shelf(attic, bool)
        """Units that were told, and their names without a tenant."""
        self.last: Shelf[str, int] = Shelf(attic, int)
        """The last line that names a unit."""
        self.erased: set[str] = set()
        """Tenants that are erased at some time."""


def _replayed(path: Path, script: Script, books: _Books) -> Iterator[tuple[int, Step, Step]]:
    """Every step: its line, as it stands there, and with its truth as the world says."""
    annotator = Annotator(script.header)
    asked: set[tuple[str, str]] = set()
    for number, step in enumerate(script.steps, 2):
        stated = msgspec.structs.replace(step)
        try:
            _blank(step)
            annotator.add(step)
        except (WorldError, values.ValueLiteralError) as error:
            raise ScriptError(f"{path}:{number}: {error}") from None
        yield number, stated, step
        if isinstance(step, Turn | Pause | Erasure):
            asked.clear()
        if isinstance(step, Probe) and step.ask == "current" and step.unit:
            if step.via is not None and (step.group, step.via) not in asked:
                raise ScriptError(
                    f"{path}:{number}: field group: {step.unit} follows from {step.via};"
                    " ask for that first, in the same group, so that it is known whose fault a"
                    " wrong answer is"
                )
            asked.add((step.group, step.unit))
        if number % FORGET_EVERY == 0:
            for unit in _over(annotator.world, number, books):
                annotator.world.forget(unit)


def _over(world: World, number: int, books: _Books) -> set[str]:
    """The units that no later line can touch: none names them, and no rule leads to them."""
    over = {
        name
        for name, unit in world.units.items()
        if not unit.live and books.last.get(name, 0) <= number and tenant_of(name) not in books.erased
    }  # fmt: skip
    staying = [name for name in world.units if name not in over]
    for name in staying:  # it grows on the way
        for edge in world.edges.get(name, ()):
            if edge.target in over:
                over.remove(edge.target)
                staying.append(edge.target)
    return over


def _written(script: Script, steps: Iterable[Step]) -> Script:
    """The script with these steps, in a file of its own."""
    path = cache_folder() / "scripts" / f"checked-{script.sha256()[:16]}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    writer, header = ScriptWriter(path), None
    try:
        for step in steps:
            writer.append(step)
        header = script.header
    finally:
        writer.close(header)
    return Script.stored(path)


# ---------------------------------------------------------------- form


def _problems(script: Script, books: _Books) -> Iterator[tuple[int, str]]:
    """What is wrong in form: (line, problem)."""
    seen, told, turns = books.lines, books.told, books.turns
    last = ""
    for number, step in enumerate(script.steps, 2):
        if step.id in seen:
            yield number, f"field id: '{step.id}' is already the id of line {seen[step.id]}"
        seen[step.id] = number
        if not _is_instant(step.at):
            yield number, f"field at: '{step.at}' is not a time; write it as 2026-03-15T09:30"
        if step.tenant and step.tenant not in script.header.tenants:
            known = ", ".join(script.header.tenants)
            yield (
                number,
                f"field tenant: '{step.tenant}' is not among the header's tenants ({known})",
            )
        if step.at < last:
            yield (
                number,
                f"field at: {step.at} is before the line above ({last}); time goes forward",
            )
        last = step.at
        match step:
            case Turn():
                turns[step.id] = True
                for place, op in enumerate(step.ops):
                    for problem in _op_problems(op, step, script.header.authority, books.kinds):
                        yield number, f"field ops[{place}].{problem}"
                    if op.unit and op.op in ("tell", "expire"):
                        told[op.unit] = told[_namesake(op.unit)] = True
            case Probe():
                for problem in _probe_problems(step, told, turns):
                    yield number, f"field {problem}"
            case Audit() | Erasure() if step.unit is not None and step.unit not in told:
                yield number, f"field unit: '{step.unit}' was never told"
            case Erasure(unit=None):
                books.erased.add(step.tenant)
            case _:
                pass
        for unit in _named(step):
            books.last[unit] = number
    for twin in script.header.twins:
        if twin.until and twin.until not in seen:
            yield 1, f"field twins: '{twin.name}' ends at '{twin.until}', which is no step"


def _named(step: Step) -> Iterator[str]:
    """The units, and topics, that a step names."""
    match step:
        case Turn():
            for op in step.ops:
                yield from filter(None, (op.unit, op.target))
        case Probe():
            yield from filter(None, (step.unit, *step.units, step.swap and step.swap.unit))
        case Audit() | Erasure():
            yield from filter(None, (step.unit,))


def _is_instant(spelled: str) -> bool:
    """Whether a time is a real one, in the form that is compared as text."""
    if not _INSTANT.fullmatch(spelled):
        return False
    try:
        datetime.fromisoformat(spelled)
    except ValueError:
        return False
    return True


def _op_problems(
    op: Op, turn: Turn, authority: list[str], kinds: MutableMapping[str, str]
) -> Iterator[str]:
    """What is wrong with one op: `field: problem`."""
    if op.source not in authority:
        yield f"source: unknown source '{op.source}'; the header's authority ranks {', '.join(authority)}"
    if op.op == "noise":
        return
    parts = 2 if op.op == "associate" else 3
    for name in ("unit", "target"):
        unit = getattr(op, name)
        if unit is None:
            if name == "unit" or op.op in ("depend", "associate"):
                yield f"{name}: {op.op} needs one"
        elif len(unit.split("/")) < parts or not all(unit.split("/")[1:]):
            form = "tenant/topic" if parts == 2 else "tenant/topic/field"
            yield f"{name}: '{unit}' is not a name of the form {form}"
        elif tenant_of(unit) != turn.tenant:
            yield f"{name}: '{unit}' belongs to another tenant than the turn ({turn.tenant})"
    if op.op in _NEEDS_VALUE and op.value is None:
        yield f"value: {op.op} needs one, written kind:payload"
    if op.value is not None and op.unit is not None:
        yield from _value_problems(op.unit, op.value, kinds)
    if op.op == "depend" and op.rule is None:
        yield "rule: depend needs one"
    for name in ("valid_at", "until"):
        instant = getattr(op, name)
        if instant is not None and not _is_instant(instant):
            yield f"{name}: '{instant}' is not a time; write it as 2026-03-15T09:30"


def _value_problems(unit: str, value: str, kinds: MutableMapping[str, str]) -> Iterator[str]:
    try:
        kind = values.kind_of(value)
    except values.ValueLiteralError as error:
        yield f"value: {error}"
        return
    if kinds.setdefault(unit, kind) != kind:
        yield f"value: '{value}' is a {kind}, but {unit} has held a {kinds[unit]}"


def _probe_problems(probe: Probe, told: Container[str], turns: Container[str]) -> Iterator[str]:
    """What is wrong with one probe: `field: problem`."""
    if probe.ask == "rank":
        asked = list(probe.units)
        if len(asked) < 2:
            yield "units: a rank probe needs at least two"
    elif probe.ask == "evidence":
        asked = []
        for turn in probe.evidence:
            if turn not in turns:
                yield f"evidence: '{turn}' is no turn before this line"
    else:
        asked = [probe.unit] if probe.unit else []
        if not asked:
            yield f"unit: a probe that asks {probe.ask} needs one"
    if probe.swap:
        asked.append(probe.swap.unit)
    for unit in asked:
        # Asked in another scope than it was told in, it must not be found.
        elsewhere = tenant_of(unit) == probe.tenant and _namesake(unit) in told
        if unit not in told and not elsewhere:
            yield f"unit: '{unit}' was never told before this line"
    if probe.ask == "as-of" and not (probe.of and _is_instant(probe.of)):
        yield "of: as-of needs an instant, written 2026-03-15T09:30"


def _namesake(unit: str) -> str:
    """What units of the same name have in common, whosever they are."""
    return unit.split("/", 1)[1]


# ---------------------------------------------------------------- truth


def _has_truth(step: Step) -> bool:
    return bool(
        step.changes
        or step.footprint != (0, 0)
        or getattr(step, "expect", None)
        or getattr(step, "history", None)
    )


def _blank(step: Step) -> None:
    step.changes, step.footprint = [], (0, 0)
    for name, value in _TRUTH_BY_DEFAULT.items():
        if hasattr(step, name):
            setattr(step, name, value if not isinstance(value, list) else [])
    if isinstance(step, Probe) and step.swap is not None:
        step.swap = msgspec.structs.replace(step.swap, expect=None, via=None)


def _agree(path: Path, number: int, given: Step, true: Step) -> None:
    """Hold the truth that a line states against what the world says."""
    for name in (*_TRUTH, "swap"):
        stated, due = getattr(given, name, None), getattr(true, name, None)
        if stated != due:
            raise ScriptError(
                f"{path}:{number}: field {name}: states {_words(stated)}, but the ops make it"
                f" {_words(due)}; leave all truth out to have it filled in"
            )


def _words(value: object) -> str:
    return msgspec.json.encode(value).decode()[:200]
