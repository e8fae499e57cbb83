"""Is a new run worse than an old one?

Two questions are answered, and kept apart.

**What changed on these very scripts?** A steady system does the same on the same script each time,
so a violation that only NEW shows was caused by what differs between the two: no test is needed, and
more violations at a higher rate are worse. A system counts as steady unless repeats show that it varies; where
there are no repeats that is said.

**Does it hold beyond them?** Probes of one run hang together: a wrong value shows at every probe of
its unit, so McNemar's test over probes would take one fault for dozens (Eliasziw and Donner 1991,
Durkalski and others 2003, on pairs in clusters). What is independent is a run. Therefore runs are
dealt out to the two sides anew within each script (a permutation test within strata; with one run a
side these are the sign flips of Fisher 1935), wherever that can be done in 200 ways or more: with 8
seeds, with 2 runs a side on 3 seeds, or with 5 runs a side on one. It takes runs of different
scripts for independent. Below that, units are tested, each once however often it was asked about:
those that NEW violates more often against those it violates less often (McNemar 1947, the exact
sign test). That takes units for independent, which those on one rule are not quite.

A system that **varies by itself** is judged by that test alone: its several runs are averaged, and
what they differ in is the noise. It is never judged by a margin. Recall has no units, so with too few
runs nobody can tell whether it fell, and that is said.

**A step that failed** shows nothing: neither a violation nor that there is none. A memory that fails
more often is asked less, so where NEW fails at more steps the two cannot be judged.

All tests of one comparison are corrected together (Holm 1979). Counted are those that could have
come out at all: whose least possible p, given the sizes that were seen, is not above the level
(Tarone 1990). Rows in which nothing differs cost nothing. The level is 0.01, since a gate looks at
every change: at 0.05 it would be red once in 40 harmless changes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from steeltrap.harness.compare.comparison import Comparison, Measure, Versus
from steeltrap.harness.compare.judging import LEVEL, UNTOLD, adjust, settle, versus
from steeltrap.harness.compare.pairing import CompareError, paired
from steeltrap.harness.compare.rules import Rule, RuleError, follow, read_rules
from steeltrap.harness.compare.samples import Run, baseline, read_side
from steeltrap.harness.verdict import CONDITION_OF

_NAMES_TOLD = 3

__all__ = [
    "CompareError",
    "Comparison",
    "RuleError",
    "baseline",
    "compare",
    "read_rules",
    "read_side",
]


def compare(base: Sequence[Run], new: Sequence[Run], rules: Sequence[Rule] = ()) -> Comparison:
    """Whether NEW is worse than BASE.

    Args:
        base: the runs to compare with.
        new: the runs to judge.
        rules: what counts as worse. Without any: a condition or recall that is worse, and, of a
            steady system, any name of which there are more.

    Raises:
        CompareError: a side holds runs that are no repeats of each other.
    """
    pairing = paired(base, new)
    found = [versus(names, pairs) for names, pairs in pairing.pairs.items()]
    tests = adjust(found)
    for one in found:
        settle(one, _decides if not rules else lambda _: False)
    ruled = [follow(rule, one) for one in found for rule in rules]
    worse = [line for one in found for line in _worse(one)]
    worse += [one.words for one in ruled if one.state == "broken"]
    unjudged = [
        line for one in found for line in _unseen(one, None if not rules else _unruled(rules))
    ]
    unjudged += [one.words for one in ruled if one.state == "unmeasured"]
    unjudged += [
        f"{one.system}, {one.script}, seed {one.seed}: {one.why}"
        for one in pairing.apart
        if one.needed
    ]
    if not found:
        unjudged.append("the two sides have no run in common")
    return Comparison(
        exit_code=1 if worse else 2 if unjudged else 0,
        worse=worse, unjudged=unjudged, tests=tests, level=LEVEL, rules=ruled, versus=found,
        apart=pairing.apart,
    )  # fmt: skip


def _decides(measure: Measure) -> bool:
    """Silence would pay if recall did not count: a memory that answers nothing is never wrong."""
    return (
        measure.name in CONDITION_OF.values()
        or measure.name in CONDITION_OF
        or measure.name == "recall"
    )


def _worse(found: Versus) -> Iterator[str]:
    """A line of what is worse, most first; names stand for themselves where their condition is not."""
    red = [m for m in (*found.conditions, *found.violations, *found.metrics) if m.red]
    conditions = {measure.name for measure in red}
    told = [m for m in red if CONDITION_OF.get(m.name) not in conditions]
    if told:
        words = ", ".join(_named(one, found) for one in sorted(told, key=_rise, reverse=True))
        yield f"{found.new}: worse in {words}"


def _rise(measure: Measure) -> float:
    """Violations more than before; 0 for what is no count."""
    if measure.base_counts and measure.new_counts:
        return measure.new_counts[0] - measure.base_counts[0]
    if measure.name in CONDITION_OF:
        return (measure.new or 0.0) - (measure.base or 0.0)
    return 0.0


def _named(measure: Measure, found: Versus) -> str:
    """A condition with the names that rose most; a name with its counts."""
    if measure.name in CONDITION_OF:
        return _moved(measure)
    under = [v for v in found.violations if not v.family and CONDITION_OF[v.name] == measure.name]
    risen = sorted((v for v in under if _rise(v) > 0), key=_rise, reverse=True)
    names = [_moved(one) for one in risen[:_NAMES_TOLD]]
    names += ["…"] if len(risen) > _NAMES_TOLD else []
    return f"{measure.name} ({', '.join(names)})" if names else measure.name


def _moved(measure: Measure) -> str:
    """`resurrection 0 -> 3`; what was put to no test has no number."""
    base, new = ("untested" if n is None else f"{n:g}" for n in (measure.base, measure.new))
    return f"{measure.name} {base} -> {new}"


def _unruled(rules: Sequence[Rule]) -> set[str]:
    """What counts though no rule names it: without the steps that failed no rule means anything."""
    return {"failed"} - {rule.name for rule in rules}


def _unseen(found: Versus, among: set[str] | None) -> Iterator[str]:
    """A line of what cannot be judged, of all measures or among some."""
    for measure in (*found.conditions, *found.metrics):
        if measure.lost and (among is None or measure.name in among):
            yield f"{found.new}: {_unjudged(measure)}"


def _unjudged(measure: Measure) -> str:
    if measure.name == "failed":
        return measure.lost
    can = "cannot" if measure.why == UNTOLD else "can no longer"
    return f"{measure.name} {can} be judged ({measure.lost})"
