"""Observing: measuring on the way must leave the trajectory as it is.

One run is measured as usual. Its twin says and asks the same of the memory as a user would, and is
measured only at the very end. Compared are everything that users were served, and the final state:
what is listed, served and had back, every history and every salience.

Measuring counts where it is a read: a memory that cannot be copied answers the measuring questions
itself, and in one that lets reading count they leave their mark, as they should. So a difference is
a violation only where every measuring question went to a copy. What then differs comes from a copy
that writes to its original, or from a listing, a look-up or a salience that is not to change
anything and does; whatever else is measured on such a memory is in doubt, C6 first.
"""

from __future__ import annotations

from collections.abc import Sequence

from steeltrap.harness.checks.sighting import Compared, Comparison, Sighting
from steeltrap.harness.record import Effect
from steeltrap.harness.script import Probe, measures
from steeltrap.harness.verdict import Violation

__all__ = ["NAME", "compare"]

NAME = "observer-effect"


def compare(of: Comparison) -> Compared:
    """Compare what users were served, and the final state, with and without measuring."""
    measuring = [seen for seen in of.here.values() if measures(seen.step)]
    copied = all(seen.via == "fork" for seen in measuring if isinstance(seen.step, Probe))
    common = [step for step in of.here if step in of.there]
    served = [step for step in common if not measures(of.here[step].step)]
    final = [step for step in common if measures(of.here[step].step)]
    found = Compared(NAME if copied else "", opportunities=len(common) if copied else 0)
    for what, steps in (("trajectory", served), ("final state", final)):
        differing, null = _differing(of.here, of.there, steps), _null(of, steps)
        found.effects.append(Effect(
            twin=of.spec.name, about=of.spec.about, what=what, n=len(steps),
            differing=len(differing), null=null,
            measure="" if copied else "where no copy can be had, measuring questions are reads",
        ))  # fmt: skip
        if copied and len(differing) > (null or 0):
            found.violations += [_violation(of.here[step], what) for step in differing]
    return found


def _differing(
    here: dict[str, Sighting], there: dict[str, Sighting], steps: Sequence[str]
) -> list[str]:
    """The steps that showed something else; one that was not done in one run shows nothing."""
    return [s for s in steps if s in there and _shown(here[s]) != _shown(there[s])]


def _null(of: Comparison, steps: Sequence[str]) -> int | None:
    """At how many steps runs of this very script differ from it, at most."""
    return max((len(_differing(of.here, run, steps)) for run in of.again), default=None)


def _shown(seen: Sighting) -> object:
    return seen.served, seen.scores, seen.given, seen.recovered, seen.salience


def _violation(seen: Sighting, what: str) -> Violation:
    return Violation(
        NAME, "beyond", seen.i, "", getattr(seen.step, "unit", None) or "",
        "the same whether or not anything was measured before", f"another {what}",
        family=seen.step.family,
    )  # fmt: skip
