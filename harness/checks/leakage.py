"""Leakage: what a tenant is served must not depend on what another one asked or said."""

from __future__ import annotations

from steeltrap.harness.checks.sighting import Compared, Comparison, Sighting
from steeltrap.harness.record import Effect
from steeltrap.harness.script import Probe
from steeltrap.harness.verdict import Violation

__all__ = ["compare"]


def compare(of: Comparison) -> Compared:
    """Compare what `of.spec.tenant` was served in both runs, with its order."""
    common = [
        step
        for step, seen in of.here.items()
        if isinstance(seen.step, Probe) and seen.step.tenant == of.spec.tenant and step in of.there
    ]
    differing = [s for s in common if _served(of.here[s]) != _served(of.there[s])]
    null = [sum(s in run and _served(of.here[s]) != _served(run[s]) for s in common) for run in of.again]  # fmt: skip
    found = Compared("leak", opportunities=len(common))
    found.effects.append(Effect(
        twin=of.spec.name, about=of.spec.about, what="served", n=len(common),
        differing=len(differing), null=max(null, default=None),
    ))  # fmt: skip
    if len(differing) > max(null, default=0):
        found.violations = [
            Violation("leak", "beyond", of.here[s].i, "", "", "the same whatever another tenant does", "another answer")
            for s in differing
        ]  # fmt: skip
    return found


def _served(seen: Sighting) -> list[str]:
    return [item.text for item in seen.served]
