"""Observing: measuring on the way must leave the trajectory as it is."""

from __future__ import annotations

from steeltrap.harness.checks.sighting import Compared, Comparison, Sighting
from steeltrap.harness.record import Effect

__all__ = ["compare"]


def compare(of: Comparison) -> Compared:
    """Compare what users were served, and what is listed at the end, with and without measuring."""
    common = [step for step in of.here if step in of.there]
    differing = [step for step in common if _shown(of.here[step]) != _shown(of.there[step])]
    null = [sum(s in run and _shown(of.here[s]) != _shown(run[s]) for s in common) for run in of.again]  # fmt: skip
    effect = Effect(
        twin=of.spec.name, about=of.spec.about, what="trajectory", n=len(common),
        differing=len(differing), null=max(null, default=None),
    )  # fmt: skip
    return Compared("", effects=[effect])


def _shown(seen: Sighting) -> object:
    return seen.served, seen.scores, seen.given, seen.recovered, seen.salience
