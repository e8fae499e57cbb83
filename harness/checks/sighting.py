"""What was seen in two runs whose scripts differ in one thing, step by step."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from steeltrap.harness.history import Salience
from steeltrap.harness.memory import Item
from steeltrap.harness.record import Effect
from steeltrap.harness.script import Audit, Gauge, Probe, Script, TwinSpec
from steeltrap.harness.verdict import Violation

__all__ = ["Compared", "Comparison", "Sighting"]


@dataclass(frozen=True, slots=True)
class Sighting:
    """What one step showed of a memory."""

    step: Probe | Gauge | Audit
    i: int
    """Position of the step in the script of its run."""
    served: list[Item]
    """Served in this order; by a full gauge, listed."""
    scores: list[float]
    """Beside `served`, where the system gives them."""
    given: list[Item]
    """audit: the history, oldest first."""
    recovered: list[Item]
    """audit: what recovery gave."""
    salience: list[Salience]
    """in-script probe: around the reading; audit: as it stands."""
    via: str = ""
    """How it was observed: `history.Event.via`."""
    size: tuple[int, int] = (0, 0)
    """gauge: items and tokens that were listed."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two runs, and runs that differ in nothing, by the ids of their steps."""

    spec: TwinSpec
    script: Script
    here: dict[str, Sighting]
    there: dict[str, Sighting]
    again: list[dict[str, Sighting]]
    """The null: the same script as `here`."""


@dataclass(slots=True)
class Compared:
    """What a comparison came to."""

    name: str
    """The violation for which the two were compared; empty where there is none."""
    opportunities: int = 0
    """How often it could have shown: at least as often as it did."""
    violations: list[Violation] = field(default_factory=list)
    effects: list[Effect] = field(default_factory=list)

    def leave_out(self, steps: Collection[int]) -> None:
        """Do not count again what was found at these steps."""
        kept = [violation for violation in self.violations if violation.step not in steps]
        self.opportunities -= len(self.violations) - len(kept)
        self.violations = kept
