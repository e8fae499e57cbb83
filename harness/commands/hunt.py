"""`steeltrap hunt`: makes up conversations, runs them, and shrinks what they show.

Hypothesis chooses what happens next, with the world as the model of what can. What it finds is
shrunk by `shrink`, which knows what a conversation is; Hypothesis' own shrinking is off.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from steeltrap.harness.bench import LIMIT, Bench, NotOpened
from steeltrap.harness.commands import shrink as shrinking
from steeltrap.harness.commands.progress import Progress
from steeltrap.harness.drive import RunStopped
from steeltrap.harness.script import Script
from steeltrap.harness.settings import SettingsError
from steeltrap.harness.shrink import ShrinkError
from steeltrap.harness.tokens import cache_folder
from steeltrap.harness.verdict import CONDITION_OF, Violation
from steeltrap.workloads.compose import ScriptSettings, compose
from steeltrap.workloads.families import EVERY
from steeltrap.workloads.wild import conversation

if TYPE_CHECKING:
    from hypothesis.strategies import DrawFn, SearchStrategy
    from rich.console import Console

__all__ = ["Prey", "hunt", "seek"]

BATCH: Final = 25
"""Conversations that Hypothesis makes up in one go."""
FAMILY_EVERY: Final = 6
"""One conversation of so many is a family's."""
FAMILY_TURNS: Final = 60
LIMITS: Final = (None, None, 3, 1)
"""How few items a query may be served; None: as the system's settings say."""


class Prey(NamedTuple):
    """A violation that was found."""

    violation: Violation
    script: Script
    """The first conversation that showed it."""


@dataclass
class Options:
    """Settings of `hunt` itself."""

    name: str = ""
    budget_s: float = 120.0
    examples: int = 1000
    seed: int = 0
    turns: int = 14
    out: str = ""


def hunt(asked: Sequence[str], out: Console, aside: Console) -> bool:
    """Look for violations of a system, and shrink each name that is found.

    Args:
        asked: `KEY=VALUE`: options, and whatever `run` takes for a system.
        out: gets the conversations.
        aside: gets the progress.

    Returns:
        True: it has looked.

    Raises:
        SettingsError: each says what to do.
    """
    options, rest = _options(asked)
    wanted = _wanted(options.name)
    settings = shrinking.one(rest)
    folder = Path(options.out or f"hunted/{settings.config.system.name}")
    first = conversation(lambda _: 0, 1)
    with shrinking.bench_of(settings, first) as bench, Progress("hunt", aside) as watch:
        found, tried = seek(
            bench, wanted=wanted, turns=options.turns, examples=options.examples,
            seed=options.seed, budget_s=options.budget_s, watch=watch.say,
        )  # fmt: skip
    names = ", ".join(found) or "nothing"
    _say(out, f"{tried} conversations on {settings.system}: {names}")
    if found:
        folder.mkdir(parents=True, exist_ok=True)
    for name, prey in found.items():
        target = folder / f"{name}.jsonl"
        origin = shrinking.found_here(prey.violation, prey.script, settings, target)
        half = shrinking.Options(budget_s=max(1.0, options.budget_s / 2))
        try:
            shrunk = shrinking.search(origin, half, target, aside)
        except ShrinkError as error:
            _say(out, f"\n{error}")
            continue
        script = shrinking.kept(shrunk.script, origin, shrunk.violation)
        script.write(target)
        _say(out, "")
        shrinking.told(script, shrunk, out)
        _say(out, shrinking.ending(shrunk, origin, half, target))
    return True


def _options(asked: Sequence[str]) -> tuple[Options, list[str]]:
    known = {field.name for field in fields(Options)}
    own = dict(word.split("=", 1) for word in asked if word.split("=", 1)[0] in known)
    rest = [word for word in asked if word.split("=", 1)[0] not in known]
    try:
        options = msgspec.convert(own, Options, strict=False)
    except msgspec.ValidationError as error:
        raise SettingsError(f"hunt: {error}".replace("`", "'")) from None
    if options.turns < 1 or options.examples < 1:
        raise SettingsError("turns and examples are at least 1")
    return options, rest


def _wanted(names: str) -> list[str]:
    wanted = [name for name in names.split(",") if name]
    if unknown := [name for name in wanted if name not in CONDITION_OF]:
        raise SettingsError(f"name={unknown[0]}: known: {', '.join(CONDITION_OF)}")
    return wanted


def _say(console: Console, words: str) -> None:
    console.print(words, highlight=False, markup=False, soft_wrap=True)


# ---------------------------------------------------------------- seeking


def seek(
    bench: Bench,
    *,
    wanted: Collection[str] = (),
    turns: int = 14,
    examples: int = 1000,
    seed: int = 0,
    budget_s: float = 120.0,
    watch: Callable[[str], None] = lambda _: None,
) -> tuple[dict[str, Prey], int]:
    """Run made-up conversations until enough is found, or they or the time are used up.

    Args:
        bench: runs them.
        wanted: the names to be found; none: as many as there are.
        turns: of a conversation at most.
        examples: so many conversations.
        seed: makes up others; for the same seed they are the same.
        budget_s: no conversation is begun after so long.
        watch: told how it goes.

    Returns:
        The first violation of each name, in the order found, and how many conversations were run.
    """
    from hypothesis import HealthCheck, Phase, given
    from hypothesis import seed as seeded
    from hypothesis import settings as profile
    from hypothesis.configuration import set_hypothesis_home_dir

    # it keeps files, by itself in the folder that it is called in
    set_hypothesis_home_dir(str(cache_folder() / "hypothesis"))
    found: dict[str, Prey] = {}
    tried = 0
    until = time.monotonic() + budget_s

    def over() -> bool:
        done = bool(wanted) and found.keys() >= set(wanted)
        return done or tried >= examples or time.monotonic() > until

    def look(script: Script) -> None:
        nonlocal tried
        if over():
            return
        tried += 1
        for violation in _shown(bench, script):
            if not wanted or violation.name in wanted:
                found.setdefault(violation.name, Prey(violation, script))
        watch(f"{tried} conversations; found: {', '.join(found) or 'nothing'}")

    for batch in itertools.count():
        if over():
            return found, tried
        run = given(_conversations(turns))(look)
        quietly = profile(
            database=None, deadline=None, max_examples=BATCH, phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )  # fmt: skip
        seeded(f"{seed} {batch}")(quietly(run))()
    raise AssertionError("counting does not end")


def _conversations(turns: int) -> SearchStrategy[Script]:
    """A strategy for conversations; the choices are integers, which Hypothesis makes well.

    Now and then it is a family's: some defects show only beside twins that are made for them.
    """
    from hypothesis import strategies

    @strategies.composite
    def made(draw: DrawFn) -> Script:
        def choose(n: int) -> int:
            return draw(strategies.integers(0, n - 1))

        if choose(FAMILY_EVERY) == FAMILY_EVERY - 1:
            family = list(EVERY)[choose(len(EVERY))]
            alone = ScriptSettings(name=family, turns=FAMILY_TURNS, families={family: 1.0})
            return compose(alone, choose(1 << 16))
        limit = LIMITS[choose(len(LIMITS))]
        script = conversation(choose, turns)
        if limit is not None:
            script.header.notes[LIMIT] = limit
        return script

    return made()


def _shown(bench: Bench, script: Script) -> Sequence[Violation]:
    try:
        return bench.run(script, [twin.name for twin in script.header.twins]).violations
    except RunStopped as stopped:
        if not bench.ideal or isinstance(stopped, NotOpened):
            raise
        return []  # the ideal model cannot answer what the system makes of this
