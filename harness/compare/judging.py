"""What became better or worse between two sides, and whether that is more than chance."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from steeltrap.harness.compare.comparison import Class, Measure, Paired, Steadiness, Versus, Witness
from steeltrap.harness.compare.pairing import Pair, differing
from steeltrap.harness.compare.samples import METRICS, Run, Sample, Seen
from steeltrap.harness.stats import holm, label_permutation, sign_test
from steeltrap.harness.verdict import BEYOND, CONDITION_OF, CONDITIONS, NAMES

__all__ = ["LABELINGS", "LEVEL", "UNTOLD", "adjust", "settle", "versus"]

LEVEL: Final = 0.01
"""At which a test counts. A gate that looks at every change must be wrong ever so rarely."""
LABELINGS: Final = math.ceil(2 / LEVEL)
"""Ways to deal out runs below which no permutation can give a two-sided p of LEVEL."""
UNTOLD: Final = "it varies by itself, and so few runs cannot tell"
_ENOUGH: Final = (
    "8 seeds can, or 5 runs a side on one; a limit needs no test, as --fail-on 'recall<-0.05'"
)
WALL_TIMES: Final = frozenset(name for name in METRICS if name.endswith("_ms"))
_NEAR: Final = 1e-9
_LIVE: Final = ("upstream", "record")
"""Models that answer anew each time."""
_ONE_SEED: Final = (
    "the model fails by chance, with one seed alone: what differs may be other luck; run several,"
    " as model.seed=0,1,2"
)
_CODE: Final = "the checks may have changed with the code; `steeltrap score` judges stored runs by those of now"


class _Tested(NamedTuple):
    """A test before Holm's correction."""

    name: str
    p: float
    least: float
    sign: int
    """+1 where NEW lies above BASE."""


def versus(names: tuple[str, str], pairs: Sequence[Pair]) -> Versus:
    """Measure one system against itself or another; tests are adjusted afterwards (`adjust`).

    Args:
        names: of the system of BASE, and of NEW.
        pairs: at least one.
    """
    steadiness = _steadiness(pairs)
    exact = steadiness != "varies"
    labelings = math.prod(
        math.comb(len(pair.base) + len(pair.new), len(pair.base)) for pair in pairs
    )
    found = Versus(
        base=names[0],
        new=names[1],
        pairs=[_told(pair) for pair in pairs],
        steadiness=steadiness,
        labelings=labelings,
        conditions=[_condition(name, pairs, exact) for name in (*CONDITIONS, BEYOND)],
        families=[
            _condition(name, pairs, exact, family)
            for family in _families(pairs)
            for name in (*CONDITIONS, BEYOND)
            if any(_counts(run.sample, name, family) for pair in pairs for run in _both(pair))
        ],
        violations=[
            _violation(name, pairs, exact, family)
            for name in _names(pairs)
            for family in ("", *_showing(name, pairs))
        ],
        metrics=[_metric(name, pairs, exact) for name in METRICS],
        notes=_notes(pairs, names),
    )
    by_runs = labelings >= LABELINGS
    for measure in (*found.conditions, *found.metrics):
        if measure.verdict != "not comparable":
            _test(measure, pairs, by_runs)
    return found


def _told(pair: Pair) -> Paired:
    spec = pair.spec
    return Paired(
        script=spec.script, seed=spec.seed, sha256=spec.script_sha256,
        base_runs=len(pair.base), new_runs=len(pair.new),
    )  # fmt: skip


def _both(pair: Pair) -> Iterator[Run]:
    yield from pair.base
    yield from pair.new


def _families(pairs: Sequence[Pair]) -> list[str]:
    return sorted({f for pair in pairs for run in _both(pair) for f in run.sample.families if f})


def _names(pairs: Sequence[Pair]) -> list[str]:
    """Violation names that were put to the test anywhere, in the order of their conditions."""
    tested = {name for pair in pairs for run in _both(pair) for name in run.sample.names}
    return [name for name in CONDITION_OF if name in tested]


def _showing(name: str, pairs: Sequence[Pair]) -> list[str]:
    """Families that show a name."""
    runs = [run for pair in pairs for run in _both(pair)]
    shown = (one for run in runs for one in run.sample.violated())
    return sorted({family for seen, family, _, _ in shown if family and seen == name})


def _steadiness(pairs: Sequence[Pair]) -> Steadiness:
    """Whether runs of the same script, of either side, were alike.

    Where both sides behaved alike to the last byte, that is a repeat as well. Without any, a real
    model is taken to vary.
    """
    evidence = set()
    for pair in pairs:
        for side in (pair.base, pair.new):
            evidence |= {run.sample.steady for run in side}
            if len(side) > 1:
                evidence.add(len({run.sample.fingerprint for run in side}) == 1)
        if len({run.sample.fingerprint for run in _both(pair)}) == 1:
            evidence.add(True)
    if False in evidence:
        return "varies"
    if True in evidence:
        return "steady"
    live = any(run.sample.spec.model.get("name") in _LIVE for pair in pairs for run in _both(pair))
    return "varies" if live else "unknown"


def _notes(pairs: Sequence[Pair], names: tuple[str, str]) -> list[str]:
    """What differs between the sides, and may."""
    found: dict[str, None] = {}
    for pair in pairs:
        ours, theirs = pair.base[0].sample.spec, pair.new[0].sample.spec
        for what, base, new in differing(ours, theirs):
            # two systems have their own packages and settings
            if names[0] == names[1] or not what.startswith(("package ", "setting ")):
                found[f"{what}: {base} -> {new}"] = None
        if names[0] != names[1] and bool(ours.model) != bool(theirs.model):
            found["model: only one of the two asks any"] = None
    if any(note.startswith(("revision: ", "steeltrap: ")) for note in found):
        found[_CODE] = None
    if any(_fails_by_chance(run.sample.spec.model) for run in _both(pairs[0])):
        if len({_dice(run.sample.spec.model) for pair in pairs for run in _both(pair)}) == 1:
            found[_ONE_SEED] = None
    return list(found)


def _fails_by_chance(model: Mapping[str, Any]) -> bool:
    dials = any(model.get(dial) for dial in ("missed", "wrong_host", "overlooked", "invented"))
    return dials or model.get("faults", {}).get("name", "none") != "none"


def _dice(model: Mapping[str, Any]) -> tuple[Any, Any]:
    return model.get("seed"), model.get("faults", {}).get("seed")


# ---------------------------------------------------------------- what was measured


def _condition(name: str, pairs: Sequence[Pair], exact: bool, family: str = "") -> Measure:
    """A rate, over the pairs in which both sides were put to the test."""
    rows = [
        (_mean_counts(pair.base, name, family), _mean_counts(pair.new, name, family))
        for pair in pairs
    ]
    both = [(base, new) for base, new in rows if base and new]
    measure = Measure(name=name, family=family)
    if not family:
        measure.lost = _lost(name, pairs, exact)
    # where only one side was put to the test, its rate can still be shown
    measure.base_counts = _summed([b for b, _ in both] or [b for b, _ in rows if b])
    measure.new_counts = _summed([n for _, n in both] or [n for _, n in rows if n])
    measure.base, measure.new = map(_rate, (measure.base_counts, measure.new_counts))
    if measure.base is None or measure.new is None or not both:
        measure.why = _untested(name, pairs, family)
    elif exact:
        measure.appeared, measure.gone, measure.witness = _changed(pairs, NAMES[name], family)
        measure.verdict = _agreed(measure)
    else:
        measure.verdict = "same"
    return measure


def _agreed(measure: Measure) -> Class:
    """What rate and count both say: with a test fewer the same violations are a higher rate."""
    assert measure.base is not None and measure.new is not None
    rate = _class(measure.new - measure.base, -1)
    count = _class(measure.new_counts[0] - measure.base_counts[0], -1)
    return rate if rate == count else "same"


def _violation(name: str, pairs: Sequence[Pair], exact: bool, family: str = "") -> Measure:
    """How often a name showed, over the pairs in which both sides were put to that test."""
    measure = Measure(name=name, family=family)
    counts = [
        [[_shown(run.sample, name, family) for run in side if name in run.sample.names]
         for side in (pair.base, pair.new)]
        for pair in pairs
    ]  # fmt: skip
    both = [(base, new) for base, new in counts if base and new]
    ours = [b for b, _ in both] or [b for b, _ in counts if b]
    theirs = [n for _, n in both] or [n for _, n in counts if n]
    measure.base = math.fsum(map(_mean, ours)) if ours else None
    measure.new = math.fsum(map(_mean, theirs)) if theirs else None
    if measure.base is None or measure.new is None or not both:
        measure.why = f"{'NEW' if measure.new is None else 'BASE'} was never put to the test"
    elif exact:
        measure.appeared, measure.gone, measure.witness = _changed(pairs, (name,), family)
        measure.verdict = _class(measure.new - measure.base, -1)
    else:
        measure.why = "the system varies by itself; its condition is tested"
    return measure


def _shown(sample: Sample, name: str, family: str) -> int:
    """How often a name showed."""
    if not family:
        return sample.names[name][0]
    units = sample.points.get(family, {}).values()
    return sum(len(names.get(name, ())) for names in units)


def _metric(name: str, pairs: Sequence[Pair], exact: bool) -> Measure:
    """A value, over the pairs in which both sides have it; failed steps and dollars are added up."""
    measure = Measure(name=name)
    rows = [[_known(side, name) for side in (pair.base, pair.new)] for pair in pairs]
    both = [(base, new) for base, new in rows if base and new]
    ours = [b for b, _ in both] or [b for b, _ in rows if b]
    theirs = [n for _, n in both] or [n for _, n in rows if n]
    total = math.fsum if name in ("failed", "cost_usd") else _mean
    measure.base = total([_mean(base) for base in ours]) if ours else None
    measure.new = total([_mean(new) for new in theirs]) if theirs else None
    if measure.base is None or measure.new is None or not both:
        measure.why = f"not measured in {'NEW' if measure.new is None else 'BASE'}"
        if name == "recall" and measure.new is None and measure.base is not None:
            measure.lost = measure.why
    elif name in WALL_TIMES:
        measure.why = "wall times depend on the machine; only --fail-on judges them"
    else:
        measure.verdict = _class(measure.new - measure.base, METRICS[name])
    if name == "failed":
        measure.lost = _failing(both, exact)
    return measure


def _failing(failed: Sequence[Sequence[list[float]]], exact: bool) -> str:
    """Where NEW fails at more steps of a script, what they would have shown is unknown.

    Of a system that varies, where each of its runs fails at more than any of BASE, on every script.
    """
    if exact:
        more = any(_mean(new) > _mean(base) for base, new in failed)
    else:
        more = bool(failed) and all(min(new) > max(base) for base, new in failed)
    if not more:
        return ""
    base, new = (math.fsum(_mean(pair[side]) for pair in failed) for side in (0, 1))
    return f"steps failed: {base:g} -> {new:g}; what they would have shown is unknown"


def _counts(sample: Sample, name: str, family: str = "") -> list[int] | None:
    """[violations, opportunities], where there was an opportunity."""
    if family:
        row = sample.families.get(family, {}).get(name)
    else:
        row = sample.conditions[name].counts if name in sample.conditions else None
    return row if row and row[1] else None


def _mean_counts(runs: Sequence[Run], name: str, family: str) -> list[float] | None:
    rows = [row for run in runs if (row := _counts(run.sample, name, family))]
    return [_mean(row[0] for row in rows), _mean(row[1] for row in rows)] if rows else None


def _known(runs: Sequence[Run], name: str) -> list[float]:
    """A condition's rate or a metric, of the runs that have it."""

    def of(sample: Sample) -> float | None:
        return sample.metrics.get(name) if name in METRICS else _rate(_counts(sample, name) or ())

    return [value for run in runs if (value := of(run.sample)) is not None]


def _rate(counts: Sequence[float]) -> float | None:
    return counts[0] / counts[1] if counts else None


def _mean(values: Iterable[float]) -> float:
    known = list(values)
    return math.fsum(known) / len(known)


def _summed(rows: Iterable[list[float]]) -> list[float]:
    return [math.fsum(column) for column in zip(*rows, strict=True)]


def _class(rise: float, more_is: int) -> Class:
    if abs(rise) <= _NEAR:
        return "same"
    return "better" if rise * more_is > 0 else "worse"


def _untested(name: str, pairs: Sequence[Pair], family: str) -> str:
    """Why there is no rate on both sides."""
    for side in ("base", "new"):
        runs = [run for pair in pairs for run in getattr(pair, side)]
        if not any(_counts(run.sample, name, family) for run in runs):
            notes = [
                run.sample.conditions[name].note for run in runs if name in run.sample.conditions
            ]
            why = next((note for note in notes if note and not family), "never put to the test")
            return f"{side.upper()}: {why}"
    return "no script on which both were put to the test"


def _lost(name: str, pairs: Sequence[Pair], exact: bool) -> str:
    """Why NEW can no longer be judged where BASE could.

    Of a steady system on any one script; of one that varies in every run of all of them, since
    what is put to the test in a run is a part of what varies.
    """
    groups = [(f"seed {pair.spec.seed}: ", pair.base, pair.new) for pair in pairs]
    if not exact:
        groups = [("", [r for p in pairs for r in p.base], [r for p in pairs for r in p.new])]
    for where, *sides in groups:
        base, new = ([run.sample.conditions.get(name) for run in side] for side in sides)
        if why := _lost_between([one for one in base if one], [one for one in new if one]):
            return where + why
    return ""


def _lost_between(base: Sequence[Seen], new: Sequence[Seen]) -> str:
    """Why none of some verdicts says what all of others said."""
    if not base:
        return ""
    known = all(one.validity != "unknown" for one in base)
    if known and all(one.validity == "unknown" for one in new):
        return next((one.note for one in new if one.note), "it was never put to the test")
    for name, why in new[0].unseen.items() if new else ():
        if all(name in one.unseen for one in new) and not any(name in one.unseen for one in base):
            return f"{name}: {why}"
    return ""


# ---------------------------------------------------------------- where it changed


def _points(sample: Sample, names: Sequence[str], family: str) -> Counter[tuple[str, int]]:
    """The points, (unit, step), at which any of some names showed."""
    return Counter({
        (unit, step)
        for name, of, unit, step in sample.violated()
        if name in names and (not family or of == family)
    })  # fmt: skip


def _changed(
    pairs: Sequence[Pair], names: Sequence[str], family: str = ""
) -> tuple[int, int, Witness | None]:
    """How many points only NEW violates and only BASE, and the first of NEW's alone.

    All runs of a side are alike, so one of them speaks for it.
    """
    appeared = gone = 0
    witness = None
    for pair in pairs:
        base = _points(pair.base[0].sample, names, family)
        new = _points(pair.new[0].sample, names, family)
        appeared += (new - base).total()
        gone += (base - new).total()
        if witness is None and new - base:
            witness = _witness(pair, set(new - base), names)
    return appeared, gone, witness


def _witness(pair: Pair, points: set[tuple[str, int]], names: Sequence[str]) -> Witness:
    """The first of some points; in words where NEW is a run folder and no baseline."""
    run, seed = pair.new[0], pair.spec.seed
    for one in sorted(run.violations, key=lambda one: one.step):
        if one.name in names and (one.unit, one.step) in points:
            return Witness(
                name=one.name, seed=seed, step=one.step, unit=one.unit, expected=one.expected,
                observed=one.observed, turns=list(one.witness),
            )  # fmt: skip
    name, _, unit, step = min(
        (one for one in run.sample.violated() if one[0] in names and (one[2], one[3]) in points),
        key=lambda one: (one[3], one[2], one[0]),
    )
    return Witness(name=name, seed=seed, step=step, unit=unit)


# ---------------------------------------------------------------- tests


def _test(measure: Measure, pairs: Sequence[Pair], by_runs: bool) -> None:
    """Enter the p of a measure before correction, with the sign and least p it stands on."""
    tested = _by_runs(measure.name, pairs) if by_runs else _by_units(measure.name, pairs)
    if tested is None:
        return
    measure.test = tested.name
    measure.general = "same"
    if tested.least <= LEVEL:
        measure.p = tested.p
        measure.general = _class(tested.sign, METRICS.get(measure.name, -1))


def _by_runs(name: str, pairs: Sequence[Pair]) -> _Tested:
    values = [(_known(pair.base, name), _known(pair.new, name)) for pair in pairs]
    found = label_permutation([(base, new) for base, new in values if base and new])
    return _Tested("permutation", found.p, found.least, (found.mean > 0) - (found.mean < 0))


def _by_units(name: str, pairs: Sequence[Pair]) -> _Tested | None:
    """The units that a condition was violated at more often in NEW, against those less often."""
    if name in METRICS:
        return None
    more = fewer = 0
    for pair in pairs:
        base, new = (_shares(side, NAMES[name]) for side in (pair.base, pair.new))
        for unit in {*base, *new}:
            rise = new.get(unit, 0.0) - base.get(unit, 0.0)
            more += rise > _NEAR
            fewer += rise < -_NEAR
    return _Tested(
        "units", sign_test(more, fewer), sign_test(more + fewer, 0), (more > fewer) - (more < fewer)
    )


def _shares(runs: Sequence[Run], names: Sequence[str]) -> dict[str, float]:
    """By unit, the share of runs in which it was violated anywhere."""
    units: Counter[str] = Counter()
    for run in runs:
        units.update({unit for name, _, unit, _ in run.sample.violated() if name in names})
    return {unit: count / len(runs) for unit, count in units.items()}


def adjust(found: Sequence[Versus]) -> int:
    """Correct the tests of a whole comparison (Holm), and judge what stands on them.

    Returns:
        How many tests there are: those that could have reached the level at all (Tarone).
    """
    tested = [m for one in found for m in (*one.conditions, *one.metrics) if m.p is not None]
    for measure, p in zip(tested, holm([m.p or 0.0 for m in tested]), strict=True):
        measure.p = p
        if p > LEVEL:
            measure.general = "same"
    for one in found:
        if one.steadiness == "varies":
            _by_chance(one)
    return len(tested)


def _by_chance(found: Versus) -> None:
    """Where a system varies by itself, only what the test shows is a difference."""
    for measure in (*found.conditions, *found.metrics):
        if measure.verdict == "not comparable":
            continue
        if measure.test:
            measure.verdict = measure.general
        elif measure.verdict != "same":
            measure.verdict, measure.why = "not comparable", UNTOLD
            if measure.name == "recall":
                measure.lost = f"{UNTOLD}: {_ENOUGH}"
    verdicts = {measure.name: measure.verdict for measure in found.conditions}
    for measure in found.families:
        if measure.base is not None and measure.new is not None:
            moved = _class(measure.new - measure.base, -1)
            measure.verdict = moved if moved == verdicts[measure.name] else "same"


def settle(found: Versus, decides: Callable[[Measure], bool]) -> None:
    """Mark what makes NEW count as worse.

    Args:
        found: judged.
        decides: whether a measure may.
    """
    red = set()
    for measure in (*found.conditions, *found.violations, *found.metrics):
        measure.red = measure.verdict == "worse" and not measure.family and decides(measure)
        if measure.red:
            red.add(CONDITION_OF.get(measure.name, measure.name))
    for measure in found.families:
        measure.red = measure.verdict == "worse" and measure.name in red
