"""Violations and three-valued verdicts.

A verdict is `held`, `violated` or `unknown`. No opportunity is never `held`; a crash or a
missing capability is `unknown`, never a pass or a fail. Names and conditions are those of the
benchmark contract, section 7.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Literal

import msgspec

__all__ = [
    "BEYOND",
    "CONDITIONS",
    "CONDITION_OF",
    "NAMES",
    "ConditionVerdict",
    "Tally",
    "Validity",
    "Violation",
    "judge",
    "merge",
]

Validity = Literal["held", "violated", "unknown"]
CONDITIONS: Final = ("C1", "C2", "C3", "C4", "C5", "C6")
BEYOND: Final = "beyond"

NAMES: Final[dict[str, tuple[str, ...]]] = {
    "C1": ("stale-read", "ambiguous-read", "wrong-read", "exposed-history", "history-denied"),
    "C2": ("superseded-active", "resurrection", "policy-breach", "half-applied"),
    "C3": ("missed-propagation", "wrong-propagation", "spurious-propagation", "runaway"),
    "C4": ("lost-history", "lost-source", "wrong-order", "invented-source"),
    "C5": ("over-bound", "unrecoverable", "inverted-retention"),
    "C6": ("inert-retrieval", "wrong-direction", "unread-favoured"),
    BEYOND: ("leak", "trace", "obeyed-injection", "observer-effect"),
}
CONDITION_OF: Final = {name: condition for condition, names in NAMES.items() for name in names}


class Violation(msgspec.Struct, frozen=True, omit_defaults=True):
    """One named violation, with what is needed to look at it."""

    name: str
    condition: str
    step: int
    """Position in the script of the step that showed it."""
    began: str
    """Id of the turn at which it began: the last that changed the unit, where one is known."""
    unit: str = ""
    expected: str = ""
    observed: str = ""
    witness: tuple[str, ...] = ()
    """Ids of the turns that show it, as few as are known."""
    family: str = ""
    hop: int = 0
    lag: int | None = None


class Tally(msgspec.Struct):
    """How often a violation could have shown, and how often it did."""

    opportunities: int = 0
    violations: int = 0
    blocked: str = ""
    """Why it could not be observed at all; empty when it could."""


class ConditionVerdict(msgspec.Struct):
    """The verdict on one condition of one run."""

    condition: str
    validity: Validity
    opportunities: int
    """Points at which the condition was put to the test."""
    violations: int
    """Those of them at which it was violated; the rate is violations / opportunities."""
    names: dict[str, Tally]
    first_turn: int | None = None
    """How many turns had been taken in when it was first violated."""
    note: str = ""

    @property
    def rate(self) -> float | None:
        """Violations over opportunities; None without an opportunity."""
        return self.violations / self.opportunities if self.opportunities else None


def judge(opportunities: int, violations: int, names: dict[str, Tally]) -> Validity:
    """The validity that follows from the tallies of a condition.

    A name that could not be observed keeps a condition from being `held`.
    """
    if violations:
        return "violated"
    if not opportunities or any(tally.blocked for tally in names.values()):
        return "unknown"
    return "held"


def merge(validities: Iterable[Validity]) -> Validity:
    """The validity of several together: a violation outweighs doubt, doubt outweighs success."""
    seen = set(validities)
    if "violated" in seen:
        return "violated"
    return "unknown" if "unknown" in seen or not seen else "held"
