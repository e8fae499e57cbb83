"""The shortest conversation that still shows a violation.

A violation in a long script helps nobody; what a maker needs is the few sentences that show it.
The search guesses first (the turns that the violation names), then leaves out whatever it can
(delta debugging: Zeller and Hildebrandt, 2002), turns first, then ops, then what only measures,
and says the rest more simply. Each candidate is a true script: its truth is made anew, and what
makes no true script is passed over.

Verdicts are kept in a journal, so that a search that was stopped goes on where it was. For the
same seed the same candidates are tried in the same order.
"""

from __future__ import annotations

import contextlib
import math
import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Final, Protocol

import msgspec

from steeltrap.harness.bench import LIMIT, Bench, NotOpened, limit_of
from steeltrap.harness.drive import RunStopped
from steeltrap.harness.script import (
    Audit,
    Erasure,
    Gauge,
    Header,
    Pause,
    Probe,
    Script,
    Step,
    Turn,
    TwinSpec,
    tenant_of,
)
from steeltrap.harness.verdict import Violation

__all__ = ["Journal", "Means", "Search", "ShrinkError", "Shrunk", "Simplification", "Target"]

FEW_TURNS: Final = 4
"""So short a conversation is short enough to leave room and bound as they are."""
MANY_TURNS: Final = 8
"""A guess that is longer is tried with less room first."""
ROOMS: Final = (1, 2, 3, 5)
"""How few items a query may be served instead, where a violation is a matter of room."""

Watch = Callable[["Search", str], None]


class ShrinkError(ValueError):
    """There is nothing to shrink; the message says why and what to do."""


class Simplification(Protocol):
    """A way to say a script more simply, part by part."""

    def parts(self, script: Script) -> list[Any]:
        """What could be simpler; none where nothing can."""

    def apply(self, script: Script, parts: Sequence[Any]) -> Script | None:
        """The script with these parts made simpler; None where that is no true one."""


@dataclass(frozen=True)
class Means:
    """What makes true scripts; the harness knows no script maker."""

    retold: Callable[[Header, Sequence[Step]], Script | None]
    """The true script of what is left of one."""
    probed: Callable[[Header, Sequence[Step]], Script | None]
    """The same, with a question after every change."""
    plain: Callable[[Header, Sequence[Step]], Script | None]
    """The same as `probed`, all of it in the plainest words."""
    simpler: Sequence[Simplification]
    """In the order in which they are tried."""
    numbered: Callable[[Script], Script]
    """The same script with its steps numbered through."""


# ---------------------------------------------------------------- what is looked for


@dataclass(frozen=True)
class Target:
    """A violation by its name and by what showed it; any unit will do."""

    name: str
    shown_by: str
    """The kind of step; empty for a violation that twins show."""
    derived: bool = False
    """Whether the value in question follows from another."""

    @classmethod
    def of(cls, script: Script, violation: Violation, *, twinned: bool = False) -> Target:
        """What a violation of a script is recognized by."""
        step = script.steps[violation.step]
        kind = "" if twinned else type(step).__name__
        return cls(violation.name, kind, bool(violation.hop))

    def among(self, script: Script, violations: Sequence[Violation]) -> Violation | None:
        """The first of them that is such a violation."""
        for found in violations:
            if found.name != self.name:
                continue
            step = script.steps[found.step]
            if isinstance(step, Gauge) and not (step.footprint[0] or script.header.constant_tokens):
                continue  # where nothing is worth keeping and nothing allowed, all is too much
            same = type(step).__name__ == self.shown_by and bool(found.hop) == self.derived
            if same or not self.shown_by:
                return found
        return None


class Journal:
    """Verdicts on candidates, by the sha256 of their scripts; kept in a file.

    Args:
        path: the file; None: nothing is kept.
        of: what decides the verdicts; a journal of something else is begun anew.
    """

    def __init__(self, path: Path | None, of: dict[str, Any]) -> None:
        self.verdicts: dict[str, bool] = {}
        self._stream: IO[bytes] | None = None
        if path is None:
            return
        head = msgspec.json.encode({"of": of}, order="sorted")
        lines = path.read_bytes().split(b"\n") if path.exists() else []
        if lines[:1] == [head]:
            for line in lines[1:]:
                with contextlib.suppress(msgspec.DecodeError, KeyError, TypeError):
                    entry = msgspec.json.decode(line)
                    self.verdicts[entry["script"]] = entry["shows"]
        self._stream = path.open("wb")
        self._write(head)
        for sha256, shows in self.verdicts.items():
            self._write(msgspec.json.encode({"script": sha256, "shows": shows}))

    def add(self, sha256: str, *, shows: bool) -> None:
        """Keep a verdict."""
        self.verdicts[sha256] = shows
        self._write(msgspec.json.encode({"script": sha256, "shows": shows}))

    def _write(self, line: bytes) -> None:
        if self._stream:
            self._stream.write(line + b"\n")
            self._stream.flush()

    def close(self) -> None:
        """Close the file."""
        if self._stream:
            self._stream.close()


class _Spent(Exception):
    """The budget is used up."""


@dataclass
class Shrunk:
    """What a search came to."""

    script: Script
    violation: Violation
    """As the script shows it."""
    finished: bool
    """Whether there was nothing left to try."""
    confirmed: bool
    """Whether a memory that was made anew shows it too."""
    tried: int
    seconds: float


@dataclass
class Search:
    """Looks for the shortest conversation that shows a violation.

    Args:
        bench: runs candidates.
        means: makes candidates.
        target: what they must show.
        journal: keeps verdicts.
        limit: items that a query may be served.
        seed: orders what is tried; 0: the latest first.
        repeats: so often each candidate is run.
        share: of these runs must show the violation.
        budget_s: no candidate is begun after so long.
        budget_runs: so many candidates are tried at most, those in the journal included.
        watch: told of every verdict.
    """

    bench: Bench
    means: Means
    target: Target
    journal: Journal
    limit: int
    seed: int = 0
    repeats: int = 1
    share: float = 1.0
    budget_s: float = math.inf
    budget_runs: int | None = None
    watch: Watch = lambda _search, _doing: None
    best: Script | None = None
    tried: int = 0
    _guessed: Script | None = None
    """What was found first; there is more in it than in what it was shortened to."""
    _seen: dict[str, bool] = field(default_factory=dict)
    _doing: str = ""
    _began: float = field(default_factory=time.monotonic)

    # ------------------------------------------------------------ the whole

    def run(self, script: Script, violation: Violation) -> Shrunk:
        """Shrink a script that showed a violation.

        Raises:
            ShrinkError: it does not show it again.
            RunStopped: a model cannot be asked any more.
        """
        finished = True
        try:
            self._guess(script, violation)
            if self.best is not None:
                self._shorten()
        except _Spent:
            finished = False
        if self.best is None:
            raise ShrinkError(self._no_luck(finished))
        return self._confirmed(finished)

    def _shorten(self) -> None:
        """Leave out and simplify, until nothing gets any smaller."""
        self._guessed = self.best
        make = self.means.plain if self._is_plain() else self.means.probed
        self._leave_out("turns", _turns, make)
        self._take_room(make)
        self._leave_out_ops(make)
        self._strip()
        self._give_room()
        size = None
        while size != self._size():
            size = self._size()
            self._leave_out("what else happens", _others, self.means.retold)
            for way in self.means.simpler:
                self._simplify(way)
            self._leave_out("turns", _turns, self.means.retold)
            self._leave_out_ops(self.means.retold)
            self._leave_out_twins()

    def _no_luck(self, finished: bool) -> str:
        again = (
            "it did not show when the script was run again; a system that varies from run to run"
            " needs repeats=5 share=0.6"
        )
        spent = "the budget was used up before it showed; give a larger one with budget_s"
        return f"{self.target.name}: {again if finished else spent}"

    def _confirmed(self, finished: bool) -> Shrunk:
        """The result, looked at once more on a memory that is made anew."""
        assert self.best is not None
        script = self.means.numbered(self.best)
        self.bench.renew()
        found = self._found(script)
        confirmed = found is not None
        self._tell("looking once more")
        if found is None:
            where = next(i for i, step in enumerate(script.steps) if isinstance(step, Turn))
            found = Violation(self.target.name, "", where, "")
        seconds = time.monotonic() - self._began
        return Shrunk(script, found, finished, confirmed, self.tried, seconds)

    # ------------------------------------------------------------ trying

    def _shows(self, candidate: Script) -> bool:
        """Whether a candidate shows the violation; known from the journal, or tried.

        Raises:
            _Spent: the budget is used up.
        """
        # beside twins a violation is known by its name alone
        sha256 = candidate.sha256() + ("" if self.target.shown_by else "+twins")
        if sha256 in self._seen:
            return self._seen[sha256]
        if self.budget_runs is not None and self.tried >= self.budget_runs:
            raise _Spent
        verdict = self.journal.verdicts.get(sha256)
        if verdict is None:
            if time.monotonic() - self._began > self.budget_s:
                raise _Spent
            verdict = self._tried_often(candidate)
            self.journal.add(sha256, shows=verdict)
        self.tried += 1
        self._seen[sha256] = verdict
        return verdict

    def _tried_often(self, candidate: Script) -> bool:
        """Whether enough of the repeats show it; no more are run than decide that."""
        need = max(1, math.ceil(self.share * self.repeats - 1e-9))
        shown = 0
        for left in range(self.repeats, 0, -1):
            if shown + left < need:
                return False
            shown += self._found(candidate) is not None
            if shown >= need:
                return True
        return False

    def _found(self, candidate: Script) -> Violation | None:
        twins = () if self.target.shown_by else [twin.name for twin in candidate.header.twins]
        try:
            scored = self.bench.run(candidate, twins)
        except RunStopped as stopped:
            if not self.bench.ideal or isinstance(stopped, NotOpened):
                raise
            return None  # the ideal model cannot answer what a system makes of such a script
        return self.target.among(candidate, scored.violations)

    def _take(self, candidate: Script | None) -> bool:
        """Go on from a candidate, if it shows the violation."""
        taken = candidate is not None and self._shows(candidate)
        if taken:
            self.best = candidate
        self._tell(self._doing)
        return taken

    def _smaller(self, candidate: Script | None) -> bool:
        """Go on from a candidate, if it is smaller and shows the violation."""
        if candidate is None or _size(candidate) >= self._size():
            return False
        return self._take(candidate)

    def _size(self) -> tuple[int, ...]:
        assert self.best is not None
        return _size(self.best)

    def _tell(self, doing: str) -> None:
        self._doing = doing
        self.watch(self, doing)

    # ------------------------------------------------------------ guessing

    def _guess(self, script: Script, violation: Violation) -> None:
        """Find a part of the script that shows the violation, the smallest guesses first."""
        self._tell("guessing")
        small: list[Script] = []
        cramped = False
        twins = [] if self.target.shown_by else _twins(script, violation)
        notes = {key: value for key, value in script.header.notes.items() if key == LIMIT}
        header = msgspec.structs.replace(script.header, twins=twins, notes=notes)
        for steps in _guesses(script, violation, twinned=not self.target.shown_by):
            made = [make(header, steps) for make in (self.means.plain, self.means.probed)]
            guesses = [one for one in made if one is not None]
            if any(one.turns > MANY_TURNS for one in guesses) and not cramped:
                cramped = True
                if any(self._take(one) for guess in small for one in self._cramped(guess)):
                    return
            if any(self._take(guess) for guess in guesses):
                return
            small += guesses
        self._take(self.means.retold(header, script.steps))

    def _is_plain(self) -> bool:
        """Whether all is said in the plainest words."""
        assert self.best is not None
        plain = self.means.plain(self.best.header, self.best.steps)
        return plain is not None and _texts(plain) == _texts(self.best)

    # ------------------------------------------------------------ leaving out

    def _leave_out(
        self,
        what: str,
        which: Callable[[Script], list[str]],
        make: Callable[[Header, Sequence[Step]], Script | None],
    ) -> None:
        """Leave out steps, in large parts first, until each one that is left is needed.

        Args:
            what: in words.
            which: the ids of the steps that may go.
            make: makes a script of the rest.
        """
        self._tell(f"leaving out {what}")
        assert self.best is not None
        size = max(1, len(which(self.best)) // 2)
        while True:
            progress = False
            for chunk in self._chunks(which(self.best), size):
                there = {step.id for step in self.best.steps}.intersection(chunk)
                rest = [step for step in self.best.steps if step.id not in there]
                if there and self._smaller(make(self.best.header, rest)):
                    progress = True
            if size > 1:
                size //= 2
            elif not progress:
                return

    def _chunks(self, ids: list[str], size: int) -> list[list[str]]:
        ids = ids[::-1]
        chunks = [ids[start : start + size] for start in range(0, len(ids), size)]
        if self.seed:
            random.Random(f"{self.seed} {size} {len(ids)}").shuffle(chunks)
        return chunks

    def _leave_out_ops(self, make: Callable[[Header, Sequence[Step]], Script | None]) -> None:
        """Leave out single ops of turns that say several things."""
        self._tell("leaving out ops")
        assert self.best is not None
        for turn in _turns(self.best):
            place = 0
            while (step := _step(self.best, turn)) is not None and place < len(step.ops):
                if len(step.ops) == 1 or not self._smaller(
                    make(self.best.header, _without_op(self.best, step, place))
                ):
                    place += 1

    def _strip(self) -> None:
        """Leave out all measuring but that which shows the violation."""
        self._tell("leaving out measuring")
        assert self.best is not None
        last = self.best.steps[-1]
        happens = [s for s in self.best.steps if isinstance(s, Turn | Pause | Erasure) or s is last]
        if not self._smaller(self.means.retold(self.best.header, happens)):
            self._leave_out("measuring", _measuring, self.means.retold)

    def _leave_out_twins(self) -> None:
        assert self.best is not None
        for twin in list(self.best.header.twins):
            rest = [one for one in self.best.header.twins if one.name != twin.name]
            header = msgspec.structs.replace(self.best.header, twins=rest)
            self._smaller(self.means.retold(header, self.best.steps))

    # ------------------------------------------------------------ room

    def _take_room(self, make: Callable[[Header, Sequence[Step]], Script | None]) -> None:
        """Where many turns are needed because there is much room, give less of it."""
        assert self.best is not None
        before = self.best
        if before.turns <= FEW_TURNS:
            return
        self._tell("giving less room")
        for one in (*self._cramped(before), *self._cramped(self._guessed or before)):
            if self._take(one):
                self._leave_out("turns", _turns, make)
                if self.best.turns < before.turns:
                    break
                self.best = before
        if self.best.turns > FEW_TURNS and self.target.name != "over-bound":
            self._narrow(make)

    def _narrow(self, make: Callable[[Header, Sequence[Step]], Script | None]) -> None:
        """Leave out turns, and serve as many items less: those that were in the way go together."""
        assert self.best is not None
        size = max(1, limit_of(self.best, self.limit) // 2)
        while size:
            progress = False
            for chunk in self._chunks(_turns(self.best), size):
                limit = limit_of(self.best, self.limit) - len(chunk)
                if limit < 1 or not set(chunk) <= set(_turns(self.best)):
                    continue
                rest = [step for step in self.best.steps if step.id not in chunk]
                notes = self.best.header.notes | {LIMIT: limit}
                header = msgspec.structs.replace(self.best.header, notes=notes)
                progress = self._smaller(make(header, rest)) or progress
            size = size if progress else size // 2
        self._leave_out("turns", _turns, make)

    def _give_room(self) -> None:
        """Let as much be served as the system is set to, where that does no harm."""
        assert self.best is not None
        header = self.best.header
        if LIMIT in header.notes:
            notes = {key: value for key, value in header.notes.items() if key != LIMIT}
            self._take(Script(msgspec.structs.replace(header, notes=notes), self.best.steps))

    def _cramped(self, script: Script) -> Iterator[Script]:
        """The same script where less may be served, or kept."""
        header = script.header
        if self.target.name == "over-bound":
            if header.constant_tokens:
                bound = msgspec.structs.replace(header, constant_tokens=0)
                yield Script(bound, script.steps)
            return
        for limit in ROOMS:
            if limit < limit_of(script, self.limit):
                notes = header.notes | {LIMIT: limit}
                yield Script(msgspec.structs.replace(header, notes=notes), script.steps)

    # ------------------------------------------------------------ simplifying

    def _simplify(self, way: Simplification) -> None:
        """Make as many parts simpler as can be: all at once, else by halves."""
        self._tell("simplifying")
        assert self.best is not None
        offered = way.parts(self.best)
        while offered:
            progress = False
            waiting = [offered]
            while waiting:
                parts = waiting.pop(0)
                candidate = way.apply(self.best, parts)
                if candidate is None or candidate.sha256() == self.best.sha256():
                    continue
                if _size(candidate) <= self._size() and self._take(candidate):
                    progress = True
                elif len(parts) > 1:
                    half = len(parts) // 2
                    waiting += [parts[:half], parts[half:]]
            offered = way.parts(self.best) if progress else []


# ---------------------------------------------------------------- parts of scripts


def _size(script: Script) -> tuple[int, ...]:
    ops = sum(len(step.ops) for step in script.steps if isinstance(step, Turn))
    return script.turns, ops, len(script.steps), len(script.header.twins)


def _texts(script: Script) -> list[str]:
    return [getattr(step, "text", "") for step in script.steps]


def _turns(script: Script) -> list[str]:
    return [step.id for step in script.steps if isinstance(step, Turn)]


def _others(script: Script) -> list[str]:
    return [step.id for step in script.steps if not isinstance(step, Turn)]


def _measuring(script: Script) -> list[str]:
    return [step.id for step in script.steps if isinstance(step, Probe | Audit | Gauge)]


def _step(script: Script, turn: str) -> Turn | None:
    return next((s for s in script.steps if s.id == turn and isinstance(s, Turn)), None)


def _without_op(script: Script, turn: Turn, place: int) -> list[Step]:
    ops = turn.ops[:place] + turn.ops[place + 1 :]
    # what is left is said anew: an op that says what it cannot mean here is put into plain words
    told = msgspec.structs.replace(turn, ops=ops, text="")
    return [told if step is turn else step for step in script.steps]


# ---------------------------------------------------------------- guesses


def _twins(script: Script, violation: Violation) -> list[TwinSpec]:
    """The twins that may have shown a violation."""
    shown_at = script.steps[violation.step].id
    fit = [t for t in script.header.twins if t.until == shown_at and violation.unit in (t.a, t.b)]
    return fit or [t for t in script.header.twins if t.about != "reading"] or script.header.twins


def _guesses(script: Script, violation: Violation, *, twinned: bool) -> Iterator[Sequence[Step]]:
    """Parts of a script that may show a violation: ever more of it, in the end all."""
    upto = script.steps[: violation.step + 1]
    if twinned and violation.step + 1 < len(script.steps):
        fit = _twins(script, violation)
        if not any(twin.until == upto[-1].id for twin in fit):
            upto = script.steps
    units = _in_play(upto, violation)
    if twinned:
        for twin in _twins(script, violation):
            units |= dict.fromkeys(filter(None, (twin.a, twin.b)))
    named = {turn for turn in (*violation.witness, violation.began) if turn}
    if named and not twinned:
        yield list(_witnessed(upto, units, named))
    spoken = {s.id for s in upto if isinstance(s, Turn) and _speaks_of(s, units)}
    if units:
        yield list(_about(upto, units, named | spoken, pauses=False))
    turns = [step.id for step in upto if isinstance(step, Turn)]
    last = 1
    while True:
        recent = set(turns[-last:])
        yield list(_about(upto, units, named | spoken | recent, pauses=True))
        if last >= len(turns):
            break
        last *= 2
    yield upto


def _in_play(upto: Sequence[Step], violation: Violation) -> dict[str, None]:
    """The units that a violation is about, and those that they follow from."""
    shown_by = upto[-1]
    found = [violation.unit, getattr(shown_by, "unit", ""), getattr(shown_by, "via", "")]
    units = dict.fromkeys(unit for unit in (*found, *getattr(shown_by, "units", ())) if unit)
    rules = [op for s in upto if isinstance(s, Turn) for op in s.ops if op.op == "depend"]
    grown = True
    while grown:
        sources = {op.unit: None for op in rules if op.target in units and op.unit not in units}
        grown = bool(sources)
        units |= {unit: None for unit in sources if unit}
    return units


def _speaks_of(turn: Turn, units: dict[str, None]) -> bool:
    return any(op.unit in units or op.target in units for op in turn.ops)


def _witnessed(upto: Sequence[Step], units: dict[str, None], named: set[str]) -> Iterator[Step]:
    """The turns that a violation names, and the moment that shows it."""
    happens = [i for i, s in enumerate(upto) if isinstance(s, Turn | Pause | Erasure)]
    moment = happens[-1] if happens else 0
    for i, step in enumerate(upto):
        if isinstance(step, Turn):
            if step.id in named:
                yield step
        elif isinstance(step, Erasure):
            if _erases(step, units):
                yield step
        elif step is upto[-1] or (i > moment and _looks_at(step, units)):
            yield step


def _about(
    upto: Sequence[Step], units: dict[str, None], turns: set[str], *, pauses: bool
) -> Iterator[Step]:
    """Some turns, and all measuring of the units in play."""
    for step in upto:
        match step:
            case Turn():
                keep = step.id in turns
            case Erasure():
                keep = _erases(step, units)
            case Pause():
                keep = pauses
            case _:
                keep = _looks_at(step, units)
        if keep or step is upto[-1]:
            yield step


def _erases(step: Erasure, units: dict[str, None]) -> bool:
    return step.unit in units or (not step.unit and step.tenant in map(tenant_of, units))


def _looks_at(step: Step, units: dict[str, None]) -> bool:
    if isinstance(step, Probe):
        asked = {step.unit, *step.units, step.swap.unit if step.swap else None}
        return not asked.isdisjoint(units)
    if isinstance(step, Gauge):
        return step.full
    return isinstance(step, Audit) and step.unit in units
