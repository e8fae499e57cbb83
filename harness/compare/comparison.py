"""What a comparison of two sides found: plain data, for people and machines alike."""

from __future__ import annotations

from typing import Final, Literal

import msgspec

__all__ = [
    "FORMAT",
    "VERSION",
    "Apart",
    "Class",
    "Comparison",
    "Measure",
    "Paired",
    "Ruled",
    "Steadiness",
    "Versus",
    "Witness",
]

FORMAT: Final = "steeltrap-comparison"
VERSION: Final = 1

Class = Literal["better", "worse", "same", "not comparable"]
Steadiness = Literal["steady", "varies", "unknown"]


class _Plain(msgspec.Struct, kw_only=True, omit_defaults=True):
    pass


class Witness(_Plain, kw_only=True):
    """One violation that NEW has more of, to look at."""

    name: str
    seed: int
    step: int
    """Position in the script of the step that showed it."""
    unit: str = ""
    expected: str = ""
    observed: str = ""
    turns: list[str] = []
    """Ids of the turns that show it."""


class Measure(_Plain, kw_only=True):
    """One thing that was measured on both sides."""

    name: str
    """C1 to C6 and beyond: a rate; a violation's name: a count; recall, p95_ms, ...: its value."""
    family: str = ""
    """A condition on one family of scripts alone; empty: on all."""
    base: float | None = None
    """Means over repeats; rates are pooled over scripts, counts are added up, others are means."""
    new: float | None = None
    base_counts: list[float] = []
    """Of a rate: [violations, opportunities], means over repeats, added up over scripts."""
    new_counts: list[float] = []
    verdict: Class = "not comparable"
    why: str = ""
    """Why it is not comparable."""
    appeared: int | None = None
    """Points that only NEW violates; None where the system varies by itself."""
    gone: int | None = None
    """Points that only BASE violates."""
    test: str = ""
    """permutation (of runs within their scripts) or units (sign test); empty where nothing was tested."""
    p: float | None = None
    """Two-sided, after Holm; None where no outcome of the test could have reached the level."""
    general: Class = "not comparable"
    """What the test says beyond these scripts."""
    red: bool = False
    """It makes NEW count as worse."""
    lost: str = ""
    """Why NEW cannot be judged where BASE could; of `failed`, that more steps failed."""
    witness: Witness | None = None


class Paired(_Plain, kw_only=True):
    """A script that both sides ran."""

    script: str
    seed: int
    sha256: str
    base_runs: int
    new_runs: int


class Versus(_Plain, kw_only=True):
    """One system against itself, or against another one."""

    base: str
    new: str
    pairs: list[Paired]
    steadiness: Steadiness
    """steady: runs of the same script were all alike; varies: they were not; unknown: there are none."""
    labelings: int
    """In how many ways runs can be dealt out to the two sides within their scripts."""
    conditions: list[Measure]
    families: list[Measure]
    violations: list[Measure]
    metrics: list[Measure]
    notes: list[str] = []
    """Settings that differ and may."""

    @property
    def measures(self) -> list[Measure]:
        """All that was measured."""
        return [*self.conditions, *self.families, *self.violations, *self.metrics]


class Apart(_Plain, kw_only=True):
    """A run without a counterpart."""

    side: Literal["BASE", "NEW"]
    system: str
    script: str
    seed: int
    why: str
    needed: bool
    """NEW was asked to show the same, so nothing can be judged without it."""


class Ruled(_Plain, kw_only=True):
    """What became of one rule of `--fail-on`."""

    rule: str
    state: Literal["kept", "broken", "unmeasured"]
    words: str


class Comparison(msgspec.Struct, kw_only=True):
    """Whether NEW is worse than BASE, and all that was found."""

    format: str = FORMAT
    version: int = VERSION
    exit_code: Literal[0, 1, 2]
    """0: nothing is worse; 1: something is; 2: that cannot be judged. What is certainly worse
    outweighs what cannot be judged."""
    worse: list[str]
    """What makes it red, a line each."""
    unjudged: list[str]
    """What cannot be judged, a line each."""
    tests: int
    """Over which Holm's correction was made."""
    level: float
    """At which a test counts."""
    rules: list[Ruled] = []
    versus: list[Versus]
    apart: list[Apart] = []
