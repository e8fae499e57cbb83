"""`steeltrap validate`: the ideal memory and every mutant, held against the checks."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import cache
from typing import TYPE_CHECKING

from steeltrap.adapters.ideal import Ideal
from steeltrap.adapters.mutants import MUTANTS
from steeltrap.harness.script import Script
from steeltrap.harness.validate import Suspect, Trial, names_without, trial
from steeltrap.harness.verdict import CONDITION_OF
from steeltrap.workloads.compose import ScriptSettings, compose
from steeltrap.workloads.families import EVERY
from steeltrap.workloads.figure1 import figure_1

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

__all__ = ["run", "suspects", "try_seed"]

IDEAL = "ideal"
HOME_TURNS = 150

Findings = dict[str, tuple[set[str], set[str], bool]]


def suspects() -> list[Suspect]:
    """The ideal memory, which must raise nothing, and the mutants, in the order of conditions."""
    mutants = [Suspect(m.name, m, frozenset(m.raises)) for m in MUTANTS.values()]
    return [Suspect(IDEAL, Ideal, frozenset()), *mutants]


def run(*, seeds: int, console: Console) -> bool:
    """Try every suspect on so many seeds, print the confusion table, and say whether all is well.

    Args:
        seeds: how many; each is a job of its own, one process a core.
        console: gets the table.
    """
    trials = {suspect.name: Trial(suspect) for suspect in suspects()}
    for seed, findings in _findings(seeds, console):
        for name, (home, elsewhere, broke) in findings.items():
            trials[name].add(seed, home, elsewhere, broke)
    console.print(_table(list(trials.values())))
    unproven = names_without(suspects())
    bad = [t for t in trials.values() if not t.ok]
    for name in unproven:
        console.print(f"no mutant raises {name}, so its check has not shown that it works")
    console.print(
        f"{len(MUTANTS)} mutants and the ideal memory on {seeds} seed{'s' if seeds != 1 else ''}: "
        + (f"{len(bad)} not as declared" if bad or unproven else "every one as declared")
    )
    return not bad and not unproven


def _findings(seeds: int, console: Console) -> Iterator[tuple[int, Findings]]:
    """What each seed shows, in order of seeds."""
    from rich.progress import track

    with ProcessPoolExecutor(os.cpu_count()) as pool:
        jobs = {pool.submit(try_seed, seed): seed for seed in range(seeds)}
        done = track(
            as_completed(jobs), "seeds", seeds, console=console, transient=True,
            disable=not console.is_terminal,
        )  # fmt: skip
        found = {jobs[job]: job.result() for job in done}
    yield from sorted(found.items())


def try_seed(seed: int) -> Findings:
    """Every suspect on one seed."""
    findings = {}
    for suspect in suspects():
        mix = [_script("adversarial", 500, seed)]
        findings[suspect.name] = trial(suspect, _home(suspect, seed), mix)
    _script.cache_clear()
    return findings


def _home(suspect: Suspect, seed: int) -> list[Script]:
    """The scripts on which a suspect shows what it is."""
    if suspect.name == IDEAL:
        return [figure_1(seed), *(_script(family, HOME_TURNS, seed) for family in EVERY)]
    mutant = MUTANTS[suspect.name]
    return [_script(family, mutant.turns, seed) for family in mutant.families]


@cache
def _script(name: str, turns: int, seed: int) -> Script:
    families = {name: 1.0} if name in EVERY else {}
    return compose(ScriptSettings(name=name, turns=turns, families=families), seed)


def _table(trials: list[Trial]) -> Table:
    """Mutant by violation name: at how many of the seeds each name was raised."""
    from rich.table import Table

    table = Table("", "mutant", "raised at (of seeds)", "amiss")
    for t in trials:
        names = sorted(set(t.seen) | t.suspect.raises, key=list(CONDITION_OF).index)
        raised = ", ".join(f"{name} {t.seen[name]}/{t.seeds}" for name in names)
        amiss = "; ".join(f"{what} (seed {seed})" for what, seed in t.amiss.items())
        condition = CONDITION_OF[names[0]] if names else ""
        table.add_row(condition, t.suspect.name, raised or "nothing", amiss or "-")
    return table
