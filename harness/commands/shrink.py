"""`steeltrap shrink` and `steeltrap check`: the shortest conversation that shows a violation."""

from __future__ import annotations

import math
import re
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from steeltrap.harness import store
from steeltrap.harness.bench import LIMIT, Bench
from steeltrap.harness.commands.scripts import table
from steeltrap.harness.drive import RunStopped
from steeltrap.harness.record import RunSpec
from steeltrap.harness.script import Script, TwinSpec, tenant_of
from steeltrap.harness.settings import Settings, SettingsError, cells, rebuilt
from steeltrap.harness.shrink import Journal, Means, Search, ShrinkError, Shrunk, Target
from steeltrap.harness.verdict import CONDITION_OF, ConditionVerdict, Violation
from steeltrap.workloads.retell import ALL, retold
from steeltrap.workloads.simpler import SIMPLER, numbered

if TYPE_CHECKING:
    from rich.console import Console

__all__ = [
    "MEANS",
    "SHOWS",
    "Found",
    "Options",
    "bench_of",
    "check",
    "ending",
    "found_here",
    "kept",
    "one",
    "search",
    "shrink",
    "told",
]

SHOWS: Final = "shows"
"""Note of a script: the violation that it was made to show."""
MEANS: Final = Means(
    retold=retold,
    probed=partial(retold, probed=True),
    plain=partial(retold, probed=True, plain=ALL),
    simpler=SIMPLER,
    numbered=numbered,
)


@dataclass
class Options:
    """Settings of `shrink` itself."""

    out: str = ""
    budget_s: float = 60.0
    budget_runs: int | None = None
    seed: int = 0
    repeats: int = 1
    share: float = 1.0
    fresh: bool = False


class Found(NamedTuple):
    """A violation, and where it came from."""

    violation: Violation
    script: Script
    settings: Settings
    spec: RunSpec
    """Of a run of it here and now."""
    origin: str
    """The run or the file."""
    out: Path


def shrink(run: Path, wanted: str, asked: Sequence[str], out: Console, aside: Console) -> bool:
    """Shrink a violation of a stored run, or of a script that is run for this.

    Args:
        run: a run folder, or a script file (then `asked` must name a system).
        wanted: a name, `name@unit`, or the number of a line of violations.jsonl.
        asked: `KEY=VALUE`: options, and for a script file whatever `run` takes.
        out: gets the conversation.
        aside: gets the progress.

    Returns:
        Whether a memory that was made anew shows it.

    Raises:
        ShrinkError, SettingsError, StoreError, ScriptError: each says what to do.
    """
    options, rest = _options(asked)
    run = _there(run)
    found = _of_run(run, wanted, rest, aside) if run.is_dir() else _of_file(run, wanted, rest)
    target = Path(options.out) if options.out else found.out
    target.parent.mkdir(parents=True, exist_ok=True)
    shrunk = search(found, options, target, aside)
    script = kept(shrunk.script, found, shrunk.violation)
    script.write(target)
    told(script, shrunk, out)
    _say(out, ending(shrunk, found, options, target))
    return shrunk.confirmed


def _there(run: Path) -> Path:
    """The run folder or file; a name alone, as pages print it, is looked for below `runs`.

    Raises:
        ShrinkError: there is none, or several of that name.
    """
    if run.exists():
        if run.is_dir() and not (run / "spec.json").exists() and any(run.rglob("spec.json")):
            first = min(path.parent for path in run.rglob("spec.json"))
            raise ShrinkError(f"{run}: holds several runs; give one of them, as {first}")
        return run
    named = sorted(Path("runs").glob(f"*/{run}")) if len(run.parts) == 1 else []
    if not named:
        raise ShrinkError(f"{run}: no file and no folder; give a run folder or a script file")
    if len(named) > 1:
        raise ShrinkError(f"{run}: there are several, give one: {', '.join(map(str, named))}")
    return named[0]


def _options(asked: Sequence[str]) -> tuple[Options, list[str]]:
    """What is meant for `shrink`, and the rest."""
    known = {field.name for field in fields(Options)}
    own = dict(word.split("=", 1) for word in asked if word.split("=", 1)[0] in known)
    rest = [word for word in asked if word.split("=", 1)[0] not in known]
    try:
        options = msgspec.convert(own, Options, strict=False)
    except msgspec.ValidationError as error:
        raise SettingsError(f"shrink: {error}".replace("`", "'")) from None
    if not 0 < options.share <= 1 or options.repeats < 1:
        raise SettingsError("share lies above 0 and is at most 1; repeats is at least 1")
    return options, rest


# ---------------------------------------------------------------- where a violation is


def _stored(path: Path) -> list[Violation]:
    found = []
    for number, line in enumerate(path.read_bytes().splitlines(), 1):
        try:
            found.append(msgspec.json.decode(line, type=Violation))
        except (msgspec.DecodeError, RecursionError) as error:
            raise store.StoreError(
                f"{path}:{number}: not a violation ({error}); score the run again"
            ) from None
    return found


def _of_run(folder: Path, wanted: str, rest: Sequence[str], aside: Console) -> Found:
    """A violation of a run folder, which alone says how it is run again."""
    if rest:
        raise SettingsError(f"{rest[0]}: a run folder says itself how it was run")
    cell = store.read_cell(folder)
    if not cell.violations.exists():
        raise store.StoreError(f"{cell.violations}: not there; `steeltrap score {folder}` makes it")
    violations = _stored(cell.violations)
    violation = _chosen(violations, wanted, str(folder))
    script, settings = Script.read(cell.script), rebuilt(cell.spec)
    with closing(settings.memory()) as memory:
        now = settings.spec(script, memory)
    if differs := _differing(cell.spec, now):
        _say(aside, f"not as it was run: {differs}")
    now.system = cell.spec.system
    number = f"-{wanted}" if wanted.isdigit() else ""
    out = folder / "shrunk" / f"{violation.name}{number}.jsonl"
    return Found(violation, script, settings, now, folder.resolve().name, out)


def _differing(then: RunSpec, now: RunSpec) -> str:
    """What of a system is not any more what it was, in words."""
    found = [
        f"{key} was {was} and is {there}"
        for key in ("settings", "embedder", "model", "reader", "limit")
        if (was := getattr(then, key)) != (there := getattr(now, key))
    ]
    found += [
        f"{name} was {was} and is {now.packages.get(name, 'not there')}"
        for name, was in then.packages.items()
        if now.packages.get(name) != was
    ]
    return "; ".join(found)


def _of_file(path: Path, wanted: str, rest: Sequence[str]) -> Found:
    """A violation that a script shows when it is run now."""
    from steeltrap.workloads.check import check as checked

    settings, script = one(rest), checked(path)
    with bench_of(settings, script) as bench:
        scored = bench.run(script, [twin.name for twin in script.header.twins])
    violation = _chosen(scored.violations, wanted, f"{path} on {settings.system}")
    out = path.with_name(f"{path.stem}-{violation.name}.jsonl")
    return found_here(violation, script, settings, out, path.name)


def found_here(
    violation: Violation, script: Script, settings: Settings, out: Path, origin: str = "hunt"
) -> Found:
    """A violation that has just been found."""
    with closing(settings.memory()) as memory:
        return Found(violation, script, settings, settings.spec(script, memory), origin, out)


def one(asked: Sequence[str]) -> Settings:
    """The settings of one system.

    Raises:
        SettingsError: none is named, or several are.
    """
    if not any(word.startswith("system=") for word in asked):
        raise SettingsError("a script does not say on what it is run: give system=NAME")
    planned = cells(asked)
    if len(planned) > 1:
        raise SettingsError("give one system, not several")
    return planned[0]


def _chosen(violations: Sequence[Violation], wanted: str, where: str) -> Violation:
    if wanted.isdigit():
        if not 1 <= int(wanted) <= len(violations):
            raise ShrinkError(f"{where}: has {len(violations)} violations, and no number {wanted}")
        return violations[int(wanted) - 1]
    name, _, unit = wanted.partition("@")
    for violation in violations:
        if violation.name == name and unit in ("", violation.unit):
            return violation
    there = ", ".join(dict.fromkeys(v.name for v in violations if v.name == name or not unit))
    if name not in CONDITION_OF:
        raise ShrinkError(f"'{name}' is no violation; known: {', '.join(CONDITION_OF)}")
    units = [v.unit for v in violations if v.name == name][:5]
    shown = f"{name} at {', '.join(units)}" if unit and units else there or "no violation"
    raise ShrinkError(f"{where}: does not show {wanted}; it shows: {shown}")


# ---------------------------------------------------------------- searching


@contextmanager
def bench_of(settings: Settings, script: Script) -> Iterator[Bench]:
    """A bench for a system, with its gateway."""
    with (
        tempfile.TemporaryDirectory(prefix="steeltrap-") as folder,
        settings.gateway(script) as gateway,
        Bench(
            settings.memory, settings.reader(), Path(folder), limit=settings.config.limit,
            gateway=gateway, repeats=settings.config.repeats, vectors=settings.vectors,
        ) as bench,
    ):  # fmt: skip
        yield bench


def search(found: Found, options: Options, out: Path | None, aside: Console) -> Shrunk:
    """Look for the shortest conversation; what was found so far is kept when this is stopped.

    Args:
        found: the violation.
        options: budget, seed, repeats.
        out: the file that the conversation will go to; the journal lies beside it.
        aside: gets the progress.
    """
    from steeltrap.harness.commands.progress import Progress

    violation, script, spec = found.violation, found.script, found.spec
    kept_in = out.with_suffix(".journal") if out else None
    with (
        closing(Journal(kept_in, _identity(spec, violation, options))) as journal,
        bench_of(found.settings, script) as bench,
        Progress(violation.name, aside) as watch,
    ):
        bench.fresh = options.fresh
        first = _shown_by_twins(violation, script)
        until = time.monotonic() + options.budget_s if options.budget_s else math.inf
        for by_twins in (first, not first) if script.header.twins else (first,):
            trying = Search(
                bench, MEANS, Target.of(script, violation, twinned=by_twins), journal,
                limit=spec.limit, seed=options.seed, repeats=options.repeats, share=options.share,
                budget_s=until - time.monotonic(), budget_runs=options.budget_runs, watch=watch,
            )  # fmt: skip
            try:
                return trying.run(script, violation)
            except ShrinkError as error:
                failed = error
            except (KeyboardInterrupt, RunStopped):
                _keep_so_far(trying, found, out, aside)
                raise
        raise failed


def _keep_so_far(trying: Search, found: Found, out: Path | None, aside: Console) -> None:
    if trying.best is not None and out is not None:
        kept(numbered(trying.best), found, None).write(out)
        _say(aside, f"{out}: the shortest so far, {trying.best.turns} turns")


def _identity(spec: RunSpec, violation: Violation, options: Options) -> dict[str, Any]:
    """What decides the verdicts of a journal."""
    run = msgspec.to_builtins(spec)
    decides = ("settings", "packages", "embedder", "model", "reader", "limit", "script_sha256")
    return {
        "run": {key: run[key] for key in decides},
        "revision": store.revision(),
        "violation": msgspec.to_builtins(violation),
        "repeats": options.repeats,
        "share": options.share,
    }


def _shown_by_twins(violation: Violation, script: Script) -> bool:
    """Whether a violation seems to show only beside a twin; where not, it is looked for with them."""
    step, unit = script.steps[violation.step].id, violation.unit
    return any(_may_show(twin, violation, step, unit) for twin in script.header.twins)


def _may_show(twin: TwinSpec, violation: Violation, step: str, unit: str) -> bool:
    match twin.about:
        case "reading":
            compared = twin.until == step and unit in (twin.a, twin.b)
            return violation.condition == "C6" and compared
        case "asking" | "telling":
            return violation.name == "leak" and not violation.began
        case "existing":
            return violation.name == "trace" and twin.gone in (unit, tenant_of(unit))
        case "observing":
            return violation.name == "observer-effect"


# ---------------------------------------------------------------- telling


def kept(script: Script, found: Found, shown: Violation | None) -> Script:
    """The script with a name, and with notes that say where it came from."""
    violation = found.violation
    notes = {
        SHOWS: violation.name,
        "system": found.spec.system,
        "versions": found.spec.packages,
        "from": found.origin,
        "there": {"turns": found.script.turns, "step": violation.step, "unit": violation.unit},
    }
    if shown is not None:
        notes |= {"expected": shown.expected, "observed": shown.observed}
    if LIMIT in script.header.notes:
        notes[LIMIT] = script.header.notes[LIMIT]
    header = msgspec.structs.replace(script.header, name=violation.name, notes=notes)
    return Script(header, script.steps)


def told(script: Script, shrunk: Shrunk, console: Console) -> None:
    """Print a conversation with its truth beside it, and what is wrong with it."""
    table(script.steps, console, header=True)
    violation = shrunk.violation
    step = script.steps[violation.step].id
    room = script.header.notes.get(LIMIT)
    served = f" (at most {room} item{'s' if room != 1 else ''} a query)" if room else ""
    if violation.name == "over-bound":
        header = script.header
        served = f" (bound: {header.alpha:g} x true tokens + {header.constant_tokens})"
    _say(console, f"{step}: {violation.name}{served}{_due(violation)}")


def _due(violation: Violation) -> str:
    due = f"; due: {violation.expected}" if violation.expected else ""
    return f"{due}; it gave: {violation.observed}" if violation.observed else due


def ending(shrunk: Shrunk, found: Found, options: Options, out: Path) -> str:
    """How it went, and how the conversation is run again."""
    turns = f"{found.script.turns} turns to {shrunk.script.turns}"
    lines = [f"{turns}, {shrunk.tried} candidates, {shrunk.seconds:.1f} s"]
    if not shrunk.finished:
        lines.append(
            "stopped by the budget; the same command with a larger budget_s or budget_runs goes on"
        )
    if not shrunk.confirmed:
        again = "it varies from run to run: give repeats=5 share=0.6"
        kept_open = "a memory made anew does not show it: run this again with fresh=true"
        lines.append(again if options.fresh else f"{kept_open}, or {again}")
    lines.append(f"{out}")
    lines.append(f"steeltrap check {out} {' '.join(_as_asked(found.spec))}")
    return "\n".join(lines)


def _as_asked(spec: RunSpec) -> list[str]:
    """The words by which a system is asked for."""
    name, *overridden = re.split(r" (?=[\w.@]+=)", spec.system)
    elsewhere = ("window=", "model.", "model=", "faults.", "faults=")
    words = [f"system={name}"]
    words += [word if word.startswith(elsewhere) else f"system.{word}" for word in overridden]
    if (model := spec.model.get("name", "ideal")) != "ideal" and f"model={model}" not in words:
        words.append(f"model={model}")
    return [f"'{word}'" if " " in word else word for word in words]


def _say(console: Console, words: str) -> None:
    console.print(words, highlight=False, markup=False, soft_wrap=True)


# ---------------------------------------------------------------- checking


def check(paths: Sequence[Path], asked: Sequence[str], out: Console) -> bool:
    """Run scripts and say whether they show what they must not.

    Args:
        paths: script files.
        asked: `fail_on=NAME[,NAME]` and whatever `run` takes. Without `fail_on` a script fails
            on what its notes name, and where they name nothing, on any violation.
        out: gets a line for each script.

    Returns:
        Whether every one was put to the test and held.

    Raises:
        SettingsError, ScriptError: each says what to do.
    """
    from steeltrap.workloads.check import check as checked

    names = [word.partition("=")[2] for word in asked if word.startswith("fail_on=")]
    settings = one([word for word in asked if not word.startswith("fail_on=")])
    fail_on = [name for word in names for name in word.split(",") if name]
    if unknown := [name for name in fail_on if name not in CONDITION_OF]:
        raise SettingsError(f"fail_on={unknown[0]}: known: {', '.join(CONDITION_OF)}")
    if not paths:
        raise SettingsError("name a script file: steeltrap check FILE system=NAME")
    scripts = [checked(path) for path in paths]
    good = True
    with bench_of(settings, scripts[0]) as bench:
        for path, script in zip(paths, scripts, strict=True):
            held, words = _checked(bench, script, fail_on)
            _say(out, f"{path}: {words}")
            good = good and held
    return good


def _checked(bench: Bench, script: Script, fail_on: Sequence[str]) -> tuple[bool, str]:
    """Whether a script held, and in words what came of it."""
    noted = script.header.notes.get(SHOWS)
    wanted = list(fail_on) or ([noted] if noted in CONDITION_OF else [])
    scored = bench.run(script, [twin.name for twin in script.header.twins])
    against = [v for v in scored.violations if not wanted or v.name in wanted]
    if against:
        first = against[0]
        step = script.steps[first.step].id
        more = f"; and {len(against) - 1} more" if len(against) > 1 else ""
        return False, f"{first.name} at {step}{_due(first)}{more}"
    if scored.outcome.failed:
        return False, f"unknown: {scored.outcome.failed} of {len(script.steps)} steps failed"
    if untried := [name for name in wanted if not _tried(scored.outcome.verdicts, name)]:
        return False, f"unknown: {', '.join(untried)} was not put to the test"
    return True, f"held: no {', '.join(wanted)}" if wanted else "held"


def _tried(verdicts: dict[str, ConditionVerdict], name: str) -> bool:
    tally = verdicts[CONDITION_OF[name]].names[name]
    return tally.opportunities > 0
