"""Is the benchmark itself right? The ideal memory and its mutants, held against the checks.

The ideal memory must have no violation on any script. Each mutant has one defect and declares
the violations that it must raise: all of them on the families that show it, and none else there
or in the adversarial mix (benchmark contract, section 8; Jepsen tests its checkers so, by
simulated databases of known anomalies).
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from steeltrap.harness.checks import score
from steeltrap.harness.drive import drive
from steeltrap.harness.history import read_events, read_header
from steeltrap.harness.memory import Memory, Told
from steeltrap.harness.readers import Oracle
from steeltrap.harness.remains import Search
from steeltrap.harness.script import Script
from steeltrap.harness.twins import chosen, compare, twin_script
from steeltrap.harness.verdict import CONDITION_OF

__all__ = ["Suspect", "Trial", "examine", "names_without", "trial"]

LIMIT = 10


@dataclass(frozen=True, slots=True)
class Suspect:
    """A memory of which it is known what must be found."""

    name: str
    make: Callable[[], Memory]
    raises: frozenset[str]
    """Exactly these violations; none for the ideal memory."""


@dataclass(slots=True)
class Trial:
    """What was found on one suspect, over all seeds."""

    suspect: Suspect
    seeds: int = 0
    seen: Counter[str] = field(default_factory=Counter)
    """Violation name -> seeds at which it was raised where it should be."""
    amiss: dict[str, int] = field(default_factory=dict)
    """What should not be -> the first seed at which it was."""

    @property
    def ok(self) -> bool:
        """Whether every seed raised all that is declared and nothing else."""
        return not self.amiss

    def add(self, seed: int, home: set[str], elsewhere: set[str], broke: bool) -> None:
        """Enter what one seed showed.

        Args:
            seed: the seed.
            home: names raised on the families that show the defect.
            elsewhere: names raised in the adversarial mix.
            broke: whether the memory failed at a step although tearing is not its defect.
        """
        self.seeds += 1
        self.seen.update(home)
        for name in sorted(self.suspect.raises - home):
            self.amiss.setdefault(f"{name} escaped", seed)
        for name in sorted((home | elsewhere) - self.suspect.raises):
            self.amiss.setdefault(f"accused of {name}", seed)
        if broke:
            self.amiss.setdefault("broke down", seed)


def trial(
    suspect: Suspect, home: Iterable[Script], elsewhere: Iterable[Script]
) -> tuple[set[str], set[str], bool]:
    """Run one suspect through the scripts of one seed: names at home, elsewhere, broke down."""
    at_home: set[str] = set()
    elsewhere_names: set[str] = set()
    failed = 0
    for scripts, names in ((home, at_home), (elsewhere, elsewhere_names)):
        for script in scripts:
            found, broken = examine(suspect.make, script)
            names |= found
            failed += broken
    return at_home, elsewhere_names, bool(failed) and "half-applied" not in suspect.raises


def examine(make: Callable[[], Memory], script: Script) -> tuple[set[str], int]:
    """Run a memory through a script and its twins; the violations found, and how many steps failed."""
    with tempfile.TemporaryDirectory() as folder:
        history = _drive(make(), script, Path(folder) / "history.jsonl")
        twins = []
        for spec in chosen(script, 1):
            other = _drive(make(), twin_script(script, spec), Path(folder) / "twin.jsonl")
            twins.append(compare(script, spec, history, other))
        scored = score(
            script,
            read_events(history),
            capabilities=read_header(history).capabilities,
            reader=Oracle(),
            twins=twins,
        )
    return {violation.name for violation in scored.violations}, scored.outcome.failed


def _drive(memory: Memory, script: Script, history: Path) -> Path:
    if isinstance(memory, Told):
        memory.told(script)
    folder = history.with_suffix(".memory")
    folder.mkdir(exist_ok=True)
    memory.open(folder)
    # of an embedder in a worker nothing but its name is here
    embed = getattr(getattr(memory, "embedder", None), "embed", None)
    search = Search(folder, script, embed)
    drive(memory, script, history, limit=LIMIT, search=search)
    memory.close()
    return history


def names_without(suspects: Sequence[Suspect]) -> list[str]:
    """Violation names that no suspect declares: checks that have not shown that they work."""
    declared = {name for suspect in suspects for name in suspect.raises}
    return [name for name in CONDITION_OF if name not in declared]
