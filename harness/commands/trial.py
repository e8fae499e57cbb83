"""A memory on trial in somebody else's tests: the contract, some runs, a verdict by name.

The runs of a session are made once, by whoever asks first. A run is never taken over from an
earlier session: a changed line of the memory does not show in a spec.
"""

from __future__ import annotations

import fcntl
import functools
import io
import shlex
import shutil
import traceback
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

import msgspec

from steeltrap.harness.commands import shrink
from steeltrap.harness.commands.dialogue import dialogue, spoken
from steeltrap.harness.compare import CompareError, compare, read_side
from steeltrap.harness.compare.comparison import Comparison, Measure
from steeltrap.harness.conformance import Check, put
from steeltrap.harness.conformance.said import SCRIPT
from steeltrap.harness.drive import RunStopped
from steeltrap.harness.memory import Memory, MemoryFault
from steeltrap.harness.models import UsesModels
from steeltrap.harness.record import Record, RecordError
from steeltrap.harness.run import run_cell
from steeltrap.harness.script import Script
from steeltrap.harness.settings import Settings, SettingsError, cells
from steeltrap.harness.shrink import ShrinkError
from steeltrap.harness.store import Cell, open_cell, read_cell, write
from steeltrap.harness.verdict import CONDITION_OF, Violation

__all__ = ["Finding", "Plan", "Trial", "trace"]

_RUNS_OWN: Final = ("limit", "window", "twins", "repeats", "embedder", "model", "faults")
"""Settings of `steeltrap run` that are none of the memory's."""
_METHODS: Final = (
    "ingest", "retrieve", "settle", "active", "history", "salience", "maintain", "recover",
    "erase", "fork", "size_bytes",
)  # fmt: skip
_FRAMES: Final = 3
"""So many frames of a memory's traceback are shown."""
_READABLE: Final = 10
"""A conversation of so many turns is shown whole."""
_KEPT: Final = 20
"""So many different failures of a run are kept."""


@dataclass(frozen=True)
class Plan:
    """What is tried."""

    system: str
    """A system's name, or module:Class."""
    folder: Path
    """The runs of the last session are kept here."""
    sets: tuple[str, ...] = ()
    """Settings of the memory, KEY=VALUE; and those of `steeltrap run` that have a dot or are in a
    short list."""
    script: str = "adversarial"
    """A script's name, or a file of one."""
    turns: int | None = None
    """Length of a script that is made; by default 150."""
    seeds: int = 2
    """So many scripts, from seed 0 on."""
    reader: str = "oracle"
    shrink_s: float = 3.0
    """So long a shorter conversation is looked for, for each name; 0: not at all."""
    baseline: Path | None = None
    """Runs, or a file of them, that these are compared with: what is no worse there is known."""
    session: str = ""
    """Processes of one session share its runs."""

    def words(self) -> list[str]:
        """The plan as `steeltrap run` takes it.

        Raises:
            SettingsError: a setting is not written KEY=VALUE.
        """
        sets = []
        for word in self.sets:
            key, equals, _ = word.partition("=")
            if not equals or not key:
                raise SettingsError(
                    f"'{word}' is not understood; write KEY=VALUE, as window_turns=20"
                )
            sets.append(word if "." in key or key in _RUNS_OWN else f"++system.{word}")
        script = [f"script={self.script}"]
        if self.script.endswith(".jsonl"):
            script = ["script=file", f"script.path={self.script}"]
        elif self.turns is not None or self._made():
            script.append(f"script.turns={self.turns or 150}")
        seeds = "0" if self.seeds == 1 else f"range(0,{self.seeds})"
        return [f"system={self.system}", *sets, *script, f"seed={seeds}", f"reader={self.reader}"]

    def _made(self) -> bool:
        from steeltrap.workloads.families import EVERY

        return self.script == "adversarial" or self.script in EVERY


class Finding(NamedTuple):
    """What is known of one named violation, over all seeds."""

    name: str
    state: Literal["held", "violated", "known", "unknown"]
    violations: int
    opportunities: int
    why: str = ""
    """Why it is unknown; how much of it is known."""


class _Failure(msgspec.Struct):
    """One kind of error that a memory raised while it was driven."""

    method: str
    words: str
    trace: list[str]
    """The last frames that are the memory's own."""
    certain: bool
    """A MemoryFault: the operation certainly did not happen."""
    times: int = 1


class _Log(msgspec.Struct):
    """What a record does not hold; written beside it when the run is over."""

    session: str
    folder: str = ""
    stopped: str = ""
    failures: list[_Failure] = []


@dataclass
class _Done:
    """One seed's run."""

    log: _Log
    cell: Cell | None
    record: Record | None

    @functools.cached_property
    def script(self) -> Script:
        assert self.cell is not None
        return Script.read(self.cell.script)

    @functools.cached_property
    def found(self) -> list[Violation]:
        if self.cell is None:
            return []
        lines = self.cell.violations.read_bytes().splitlines()
        return [msgspec.json.decode(line, type=Violation) for line in lines]


@dataclass
class Trial:
    """A memory, its contract and its runs.

    Raises:
        SettingsError: the system, a setting or the script does not exist.
    """

    plan: Plan
    settings: list[Settings] = field(init=False)

    def __post_init__(self) -> None:
        if self.plan.seeds < 1:
            raise SettingsError(f"{self.plan.seeds} seeds: at least 1")
        self.settings = cells(self.plan.words())
        if len(self.settings) != self.plan.seeds:
            raise SettingsError("one memory is tried at a time: give each setting one value")
        with closing(self.settings[0].memory()):
            pass
        if self.plan.baseline is not None:
            try:
                read_side(self.plan.baseline)
            except RecordError as error:
                raise SettingsError(str(error)) from None

    # ------------------------------------------------------------ the contract

    def check(self, check: Check, folder: Path) -> None:
        """Put the memory to one check of the contract.

        Raises:
            Broken, NotApplicable: as `conformance.put`.
        """
        settings = self.settings[0]
        with settings.gateway(SCRIPT) as gateway:

            def make() -> Memory:
                memory = settings.memory()
                if isinstance(memory, UsesModels) and gateway:
                    gateway.begin()
                    memory.connect(gateway.models)
                return memory

            put(check, make, folder)

    # ------------------------------------------------------------ the runs

    @functools.cached_property
    def runs(self) -> list[_Done]:
        """A run for each seed, made now or by another process of this session."""
        return [self._run(settings) for settings in self.settings]

    def _run(self, settings: Settings) -> _Done:
        folder, seed = self.plan.folder, settings.config.seed
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"seed-{seed}.json"
        with _held(folder / f"seed-{seed}.lock"):
            log = _read(path)
            if log is None or log.session != self.plan.session or not log.session:
                if log and log.folder:
                    shutil.rmtree(folder / Path(log.folder).name, ignore_errors=True)
                log = _run_now(settings, folder, self.plan.session)
                write(path, msgspec.json.format(msgspec.json.encode(log), indent=1) + b"\n")
        if log.stopped:
            return _Done(log, None, None)
        cell = read_cell(folder / log.folder)
        return _Done(log, cell, cell.finished())

    def failures(self) -> str:
        """What went wrong while the memory was driven, with its own words; empty: nothing."""
        stopped = [done.log.stopped for done in self.runs if done.log.stopped]
        failed = sum(done.record.outcome.failed for done in self.runs if done.record)
        if not stopped and not failed:
            return ""
        steps = sum(done.record.outcome.steps for done in self.runs if done.record)
        lines = list(dict.fromkeys(stopped))
        if failed:
            lines.append(
                f"{failed} of {steps} steps failed, so what they should have shown is unknown"
            )
        merged: dict[tuple[str, str], _Failure] = {}
        for failure in (each for done in self.runs for each in done.log.failures):
            key = failure.method, failure.words
            if key in merged:
                merged[key].times += failure.times
            else:
                merged[key] = msgspec.structs.replace(failure)
        for failure in merged.values():
            certain = "" if failure.certain else "; nobody knows whether it was done"
            lines += ["", f"{failure.method} raised {spoken(failure.words)}", *failure.trace]
            times = "once" if failure.times == 1 else f"{failure.times} times, twin runs included"
            lines.append(f"  {times}{certain}")
        return "\n".join(lines)

    def finding(self, name: str) -> Finding:
        """The verdict on one named violation."""
        done = [run.record for run in self.runs if run.record]
        tallies = [record.outcome.verdicts[CONDITION_OF[name]].names[name] for record in done]
        shown = sum(tally.violations for tally in tallies)
        could = sum(tally.opportunities for tally in tallies)
        failed = sum(record.outcome.failed for record in done)
        why = next((tally.blocked for tally in tallies if tally.blocked), "")
        if shown:
            before = self._before.get(name)
            if before is None or before.red or not _seen_by(before):
                return Finding(name, "violated", shown, could)
            known = (
                f"{before.new or 0:g} violations, no worse than the baseline's {before.base or 0:g}"
            )
            return Finding(name, "known", shown, could, known)
        if len(done) < len(self.runs):
            why = "the memory could not be run; see steeltrap::run::every-step"
        elif why:
            why = f"not observable: {why}"
        elif failed:
            why = f"unknown: {failed} steps failed; see steeltrap::run::every-step"
        elif not could:
            turns = sum(record.outcome.turns for record in done)
            why = f"not put to the test in {turns} turns; longer scripts, or other ones, may"
        return Finding(name, "unknown" if why else "held", shown, could, why)

    # ------------------------------------------------------------ the baseline

    @functools.cached_property
    def compared(self) -> Comparison | str:
        """The runs against the baseline, or why they cannot be compared."""
        folders = [run.cell.folder for run in self.runs if run.cell]
        if self.plan.baseline is None:
            return "there is no baseline"
        try:
            new = [run for folder in folders for run in read_side(folder)]
            return compare(read_side(self.plan.baseline), new)
        except CompareError as error:
            return str(error)

    @property
    def _before(self) -> dict[str, Measure]:
        """What the baseline says of each name."""
        found = [] if isinstance(self.compared, str) else self.compared.versus
        return {one.name: one for versus in found for one in versus.violations if not one.family}

    def worse(self) -> str:
        """What is worse than in the baseline, or cannot be judged; empty: nothing."""
        found = self.compared
        if isinstance(found, str):
            return f"cannot be judged: {found}"
        lines = [f"worse: {line}" for line in found.worse]
        lines += [f"cannot be judged: {line}" for line in found.unjudged]
        return "\n".join(lines) if found.exit_code else ""

    # ------------------------------------------------------------ the witness

    def told(self, finding: Finding, root: Path) -> str:
        """A violation as a failing test says it: how often, what it means, the witness.

        Args:
            finding: with violations.
            root: paths below it are shown relative to it.
        """
        from steeltrap.reports.explain import EXPLAINED

        often = f"{finding.violations} of {finding.opportunities} opportunities"
        witness = self._witness(finding.name, root)
        return f"{finding.name}: {often}\n{EXPLAINED[finding.name]}\n\n{witness}"

    def _witness(self, name: str, root: Path) -> str:
        """The shortest conversation that was found, in lines to be read, and how to keep it."""
        found = [(run, each) for run in self.runs for each in run.found if each.name == name]
        run, violation = found[0]
        assert run.cell is not None
        words, cut = self._shrunk(run, violation)
        where = run.cell.folder
        if where.is_relative_to(root):
            where = where.relative_to(root)
        more = f"and {len(found) - 1} more like it; " if len(found) > 1 else ""
        out = f"tests/memory/{name}.jsonl"
        keep = shlex.join(["steeltrap", "shrink", str(where), name, f"out={out}"])
        return f"{words}\n\n{more}{cut}\nto keep it: {keep}"

    def _shrunk(self, run: _Done, violation: Violation) -> tuple[str, str]:
        """A conversation, and how it was come by."""
        from rich.console import Console

        assert run.cell is not None
        long = f"found in a script of {run.script.turns} turns (seed {run.cell.spec.seed})"
        if self.plan.shrink_s > 0:
            settings = next(s for s in self.settings if s.config.seed == run.cell.spec.seed)
            out = run.cell.folder / "shrunk" / f"{violation.name}.jsonl"
            out.parent.mkdir(exist_ok=True)
            origin = run.cell.folder.name
            found = shrink.Found(violation, run.script, settings, run.cell.spec, origin, out)
            options = shrink.Options(budget_s=self.plan.shrink_s)
            try:
                shrunk = shrink.search(found, options, out, Console(file=io.StringIO()))
            except (ShrinkError, RunStopped):
                pass
            else:
                script = shrink.kept(shrunk.script, found, shrunk.violation)
                script.write(out)
                cut = f"{long}, cut down to {script.turns}"
                if script.turns <= _READABLE:
                    return dialogue(script, shrunk.violation), cut
                short = dialogue(script, shrunk.violation, only=_named(shrunk.violation))
                return short, f"{cut}, of which those that speak of it are shown"
        return dialogue(run.script, violation, only=_named(violation)), long


def _seen_by(before: Measure) -> bool:
    """Whether a baseline says anything of a name: it was tested, and shows on a script of both."""
    return before.base is not None and bool(before.base or before.new)


def _named(violation: Violation) -> list[str]:
    """The ids of the turns that a violation names."""
    return [violation.began, *violation.witness]


def _run_now(settings: Settings, folder: Path, session: str) -> _Log:
    """Run one seed; what cannot be run is told, not raised."""
    script = settings.script()
    kept: dict[tuple[str, str], _Failure] = {}

    def make() -> Memory:
        return _overheard(settings.memory(), kept)

    with closing(settings.memory()) as memory:
        spec = settings.spec(script, memory)
    cell = open_cell(folder, spec, script, fresh=True, alone=True)
    log = _Log(session, cell.folder.name)
    try:
        with settings.gateway(script) as gateway:
            run_cell(
                cell, make, script, settings.reader(), gateway=gateway, vectors=settings.vectors
            )
    except RunStopped as why:
        log.stopped = str(why)
    except (Exception, KeyboardInterrupt):
        raise
    except BaseException as why:  # pytest's skip, a plugin's timeout: told, and not run once more
        log.stopped = f"{type(why).__name__}: {why}, raised in the memory"
    finally:
        cell.release()
    log.failures = list(kept.values())
    return log


def _overheard(memory: Memory, kept: dict[tuple[str, str], _Failure]) -> Memory:
    """The same memory, of whose errors the traceback is kept: a history has only their words."""
    for name in _METHODS:
        method = getattr(memory, name, None)
        if callable(method):
            try:
                setattr(memory, name, _noting(name, method, kept))
            except AttributeError:
                return memory  # it has slots; the words in the history must do
    return memory


def _noting(
    name: str, method: Callable[..., Any], kept: dict[tuple[str, str], _Failure]
) -> Callable[..., Any]:
    @functools.wraps(method)
    def noting(*arguments: Any, **named: Any) -> Any:
        try:
            return method(*arguments, **named)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            words = f"{type(error).__name__}: {error}"[:500]
            if known := kept.get((name, words)):
                known.times += 1
            elif len(kept) < _KEPT:
                kept[name, words] = _Failure(
                    name, words, trace(error), isinstance(error, MemoryFault)
                )
            raise

    return noting


def trace(error: BaseException | None) -> list[str]:
    """The last frames of an error in lines, without that of whoever called the memory."""
    if error is None:
        return []
    frames = traceback.extract_tb(error.__traceback__)[1:][-_FRAMES:]
    lines = []
    for frame in frames:
        lines.append(f"  {Path(frame.filename).name}:{frame.lineno}: in {frame.name}")
        if frame.line:
            lines.append(f"    {frame.line}")
    return lines


def _read(path: Path) -> _Log | None:
    try:
        return msgspec.json.decode(path.read_bytes(), type=_Log)
    except (OSError, msgspec.DecodeError, RecursionError):
        return None


@contextmanager
def _held(path: Path) -> Iterator[None]:
    """Wait until no other process of this session holds it."""
    with path.open("wb") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        yield
