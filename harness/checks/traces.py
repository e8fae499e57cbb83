"""Traces: after an erasure nothing may tell that what is gone ever was."""

from __future__ import annotations

from steeltrap.harness.checks.sighting import Compared, Comparison, Sighting
from steeltrap.harness.record import Effect
from steeltrap.harness.script import Erasure
from steeltrap.harness.verdict import Violation

__all__ = ["compare"]


def compare(of: Comparison) -> Compared:
    """Compare what was shown after the erasure with what is shown where nothing was to erase."""
    erased = next(
        i for i, step in enumerate(of.script.steps)
        if isinstance(step, Erasure) and of.spec.name in step.unless
    )  # fmt: skip
    common = [step for step, seen in of.here.items() if seen.i > erased and step in of.there]
    telling = [step for step in common if _texts(of.here[step]) - _texts(of.there[step])]
    null = [sum(s in run and _texts(of.here[s]) != _texts(run[s]) for s in common) for run in of.again]  # fmt: skip
    found = Compared("trace", opportunities=len(common))
    found.effects.append(Effect(
        twin=of.spec.name, about=of.spec.about, what="shown", n=len(common),
        differing=len(telling), null=max(null, default=None),
    ))  # fmt: skip
    if len(telling) > max(null, default=0):
        found.violations = [
            Violation("trace", "beyond", of.here[s].i, "", of.spec.gone, "as if it had never been", "more is shown")
            for s in telling
        ]  # fmt: skip
    return found


def _texts(seen: Sighting) -> set[str]:
    return {item.text for item in (*seen.served, *seen.given, *seen.recovered)}
