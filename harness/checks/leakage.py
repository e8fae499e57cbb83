"""Leakage: what a tenant is served must not depend on what another one asked or said.

Two runs differ in what another tenant did, and the observer's answers are held against each other
question by question. A trial is a neutral question about two of its units, of which a coin has
chosen the one whose namesake the other tenant asks or speaks of (`TwinSpec.trials`), with the
questions about either; a question outside any pair is a trial of its own. Each trial is one
opportunity.

**When a difference is a leak.** What another tenant said and the observer is served (`direct`)
needs no comparison: it is named where it is served, and such a trial is not counted again. For
the rest:

- A system whose repeated runs agree everywhere, or of which there are none, differs for no other
  reason: each trial with any difference in items, order or scores is a leak.
- A system that varies differs from its twin in any case, and runs of it as wholes, so that
  counting differences proves nothing. What proves something is the coin: it was tossed when the
  script was made, and no system's own chance can follow it. The leads of the favoured units in one
  run over those in the other, by place and by score, are put to a test that tosses all coins again
  (sign flips); a p below `SURE` after Holm is a leak, and the trials that moved with the effect are
  those that show it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from steeltrap.harness import tokens
from steeltrap.harness.checks.sighting import Compared, Comparison, Sighting
from steeltrap.harness.memory import Item
from steeltrap.harness.readers import Catalogue
from steeltrap.harness.record import Effect
from steeltrap.harness.script import Probe, Turn, tenant_of
from steeltrap.harness.stats import (
    advantage_interval,
    holm,
    mean_interval,
    order_distance,
    sign_flip,
)
from steeltrap.harness.verdict import Violation

__all__ = ["SURE", "compare"]

SURE: Final = 0.01
"""How improbable chance must be before a system that varies is said to leak."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What the observer saw at one question of one run."""

    texts: list[str]
    scores: list[float]
    units: list[frozenset[str]]
    """Of which units each item speaks."""
    tokens: int

    def place(self, unit: str) -> int | None:
        """Where the first item on a unit stands, from 0."""
        return next((place for place, units in enumerate(self.units) if unit in units), None)

    def score(self, unit: str) -> float | None:
        """Its score."""
        place = self.place(unit)
        return self.scores[place] if place is not None and self.scores else None

    def foreign(self, tenant: str) -> bool:
        """Whether anything here was said by another tenant."""
        return any(tenant_of(u) not in (tenant, "") for units in self.units for u in units)


Answers = dict[str, Answer]
"""Of one run, by the ids of the questions."""


@dataclass(slots=True)
class Trial:
    """The questions that one difference may have changed."""

    ids: list[str] = field(default_factory=list)
    neutral: str = ""
    """The question about both units of a pair."""
    favoured: str = ""
    other: str = ""

    def lead(self, answer: Answer) -> int:
        """1 where the favoured unit stands before the other, -1 where behind it, 0 without both."""
        favoured, other = (_behind(answer.place(unit)) for unit in (self.favoured, self.other))
        return (favoured < other) - (favoured > other)

    def score_lead(self, answer: Answer) -> float:
        """By how much its score is above the other's; 0 where one is not known."""
        favoured, other = (answer.score(unit) for unit in (self.favoured, self.other))
        return 0.0 if favoured is None or other is None else favoured - other


def compare(of: Comparison) -> Compared:
    """Compare what `of.spec.tenant` was served in both runs, with order and scores."""
    here, there, *again = _answers(of)
    asked = [s.step for s in of.here.values() if isinstance(s.step, Probe) and s.step.id in here]
    asked = [step for step in asked if step.id in there]
    trials = _trials(of, asked)
    seen = _Seen([step.id for step in asked], here, there, again)
    effects = [_direct(seen, of.spec.tenant), _served(seen), _order(seen)]
    paired = [trial for trial in trials if trial.neutral]
    if any(answer.scores for answer in here.values()):
        effects.append(_scores(seen, paired))
    if paired:
        effects.append(_distinguisher(seen, paired))
    for effect in effects:
        effect.twin, effect.about = of.spec.name, of.spec.about
    plain = [t for t in trials if not any(here[i].foreign(of.spec.tenant) for i in t.ids)]
    told = _varying(seen, plain) if _varies(of) else _differing(seen, plain)
    found = [_violation(of, step, trial, why) for step, trial, why in told]
    return Compared("leak", len(plain), found, effects)


# ---------------------------------------------------------------- what was seen


@dataclass(frozen=True, slots=True)
class _Seen:
    """The observer's answers to the questions that were answered in both runs."""

    ids: list[str]
    here: Answers
    there: Answers
    again: list[Answers]

    def effect(self, what: str, differ: Callable[[Answer, Answer], bool]) -> Effect:
        """At how many questions the answers differ, and at how many in a repeat."""

        def count(run: Answers) -> int:
            return sum(differ(self.here[i], run[i]) for i in self.ids if i in run)

        null = max(map(count, self.again), default=None)
        return Effect(
            twin="", about="", what=what, n=len(self.ids), differing=count(self.there), null=null
        )

    def null_value(self, value: Callable[[Answers], float]) -> float | None:
        """A size of an effect between runs of the same script, at most."""
        return max(map(value, self.again), key=abs, default=None)


def _answers(of: Comparison) -> list[Answers]:
    """The observer's answers in each run, every item with the units of which it speaks."""
    runs = [of.here, of.there, *of.again]
    found: list[Answers] = [{} for _ in runs]
    catalogue = Catalogue(of.script.header)
    values: dict[str, str | None] = {}
    known: dict[Item, frozenset[str]] = {}
    for step in of.script.steps:
        if isinstance(step, Turn):
            catalogue.hear(step, {op.unit: values.get(op.unit) for op in step.ops if op.unit})
        for change in step.changes:
            values[change.unit] = change.value
            if change.value is not None and change.cause == "derived":
                catalogue.know(change.unit, change.value)
        if not isinstance(step, Probe) or step.tenant != of.spec.tenant:
            continue
        for run, answers in zip(runs, found, strict=True):
            if step.id in run:
                answers[step.id] = _answer(run[step.id], catalogue, of.spec.tenant, known)
    return found


def _answer(
    seen: Sighting, catalogue: Catalogue, tenant: str, known: dict[Item, frozenset[str]]
) -> Answer:
    for item in seen.served:
        if item not in known:
            known[item] = frozenset(claim.unit for claim in catalogue.claims(item, tenant))
    texts = [item.text for item in seen.served]
    units = [known[item] for item in seen.served]
    return Answer(texts, seen.scores, units, sum(map(tokens.count, texts)))


def _trials(of: Comparison, asked: Sequence[Probe]) -> list[Trial]:
    """The questions by what may have changed them: those about a pair or one of it together."""
    found: dict[str, Trial] = {}
    for step in asked:
        favoured = of.spec.trials.get(step.id)
        if favoured is not None:
            other = next(unit for unit in step.units if unit != favoured)
            found[favoured] = found[other] = Trial([], step.id, favoured, other)
    for step in asked:
        unit = step.unit or next(iter(step.units), "")
        found.setdefault(unit, Trial()).ids.append(step.id)
    return list({id(trial): trial for trial in found.values()}.values())


def _behind(place: int | None) -> float:
    return math.inf if place is None else place


# ---------------------------------------------------------------- what is a leak


def _varies(of: Comparison) -> bool:
    """Whether runs of the same script differ anywhere, also in what others than the observer see."""
    return any(
        run.keys() != of.here.keys()
        or any(_other_items(seen, run[i]) or _other_scores(seen, run[i]) for i, seen in of.here.items())
        for run in of.again
    )  # fmt: skip


_Told = Iterator[tuple[str, Trial, str]]
"""The question that shows it, the trial that it belongs to, and what was seen."""


def _differing(seen: _Seen, trials: Sequence[Trial]) -> _Told:
    """Of a system that does not vary: every trial with a difference, at its first one."""
    for trial in trials:
        for i in trial.ids:
            here, there = seen.here[i], seen.there[i]
            if sorted(here.texts) != sorted(there.texts):
                yield i, trial, f"{len(here.texts)} items, not the same {len(there.texts)}"
            elif here.texts != there.texts:
                yield i, trial, "the same items in another order"
            elif _scores_differ(here, there):
                yield i, trial, "the same items with other scores"
            else:
                continue
            break


def _varying(seen: _Seen, trials: Sequence[Trial]) -> _Told:
    """Of a system that varies: the trials that moved as the coin fell, where that is no chance."""
    paired = [trial for trial in trials if trial.neutral]
    if not paired:
        return
    moved = {"place": _gains(seen, paired, Trial.lead), "score": _gains(seen, paired, Trial.score_lead)}  # fmt: skip
    sure = holm([sign_flip(gains) for gains in moved.values()])
    shown: dict[str, tuple[str, Trial, str]] = {}
    for (what, gains), p in zip(moved.items(), sure, strict=True):
        if p < SURE:
            towards = math.copysign(1.0, math.fsum(gains))
            for trial, gain in zip(paired, gains, strict=True):
                if gain * towards > 0:
                    observed = f"the {what} moved with the other tenant's choice (p {p:.2g})"
                    shown.setdefault(trial.neutral, (trial.neutral, trial, observed))
    yield from shown.values()


def _gains(
    seen: _Seen, trials: Sequence[Trial], lead: Callable[[Trial, Answer], float],
    run: Answers | None = None,
) -> list[float]:  # fmt: skip
    """By how much the favoured unit's lead here is above that in another run, trial by trial."""
    other = seen.there if run is None else run
    return [
        lead(t, seen.here[t.neutral]) - lead(t, other[t.neutral])
        for t in trials
        if t.neutral in other
    ]


def _violation(of: Comparison, step: str, trial: Trial, observed: str) -> Violation:
    here = of.here[step]
    probe = here.step
    assert isinstance(probe, Probe)
    return Violation(
        "leak", "beyond", here.i, "", trial.favoured or probe.unit or "",
        f"the same whatever others do ({of.spec.about})", observed, family=probe.family,
    )  # fmt: skip


# ---------------------------------------------------------------- effects


def _direct(seen: _Seen, tenant: str) -> Effect:
    """Another tenant's words among what was served."""
    foreign = sum(seen.here[i].foreign(tenant) for i in seen.ids)
    return Effect(twin="", about="", what="direct", n=len(seen.ids), differing=foreign)


def _served(seen: _Seen) -> Effect:
    """Other items, or another number of them."""
    return seen.effect("served", lambda one, two: sorted(one.texts) != sorted(two.texts))


def _order(seen: _Seen) -> Effect:
    """The items that both runs served, in another order."""
    effect = seen.effect("order", lambda one, two: order_distance(one.texts, two.texts) > 0)

    def distances(run: Answers) -> list[float]:
        pairs = ((seen.here[i].texts, run[i].texts) for i in seen.ids if i in run)
        return [order_distance(one, two) for one, two in pairs if len({*one} & {*two}) > 1]

    found = distances(seen.there)
    effect.n = len(found)
    effect.measure = "mean Kendall distance of orders, 0 to 1"
    _sized(effect, found)
    effect.null_value = seen.null_value(lambda run: _mean(distances(run)))
    return effect


def _scores(seen: _Seen, trials: Sequence[Trial]) -> Effect:
    """Other scores of the same items; and how far they moved with the other tenant's choice."""
    effect = seen.effect("scores", _scores_differ)
    effect.measure = "mean gain in score of what the other tenant dealt with"
    _sized(effect, _gains(seen, trials, Trial.score_lead))
    effect.null_value = seen.null_value(
        lambda run: _mean(_gains(seen, trials, Trial.score_lead, run))
    )
    return effect


def _sized(effect: Effect, values: Sequence[float]) -> None:
    """Enter the mean and its interval over questions or trials."""
    if values:
        effect.value = _mean(values)
        if interval := mean_interval(values):
            effect.low, effect.high = interval


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values) if values else 0.0


def _scores_differ(one: Answer, two: Answer) -> bool:
    return _apart(dict(zip(one.texts, one.scores)), dict(zip(two.texts, two.scores)))  # noqa: B905


def _apart(one: dict[str, float], two: dict[str, float]) -> bool:
    """Whether any item has another score, beyond what sums in another order may differ by."""
    return any(
        not math.isclose(one[text], two[text], rel_tol=1e-6, abs_tol=1e-9)
        for text in one.keys() & two.keys()
    )


def _other_items(one: Sighting, two: Sighting) -> bool:
    shown = [
        [[item.text for item in items] for items in (seen.served, seen.given, seen.recovered)]
        for seen in (one, two)
    ]
    return shown[0] != shown[1]


def _other_scores(one: Sighting, two: Sighting) -> bool:
    texts = [item.text for item in one.served]
    return _apart(dict(zip(texts, one.scores)), dict(zip(texts, two.scores)))  # noqa: B905


# ---------------------------------------------------------------- the distinguisher


_FEATURES: Final[tuple[Callable[[Trial, Answer], float], ...]] = (
    Trial.lead,
    lambda t, a: min(_behind(a.place(t.other)), len(a.texts)) - min(_behind(a.place(t.favoured)), len(a.texts)),
    Trial.score_lead,
    lambda _, a: len(a.texts),
    lambda _, a: a.tokens,
)  # fmt: skip
"""What a distinguisher may look at: which of the pair stands first, by how many places, by how
much score, how many items there are, and how many tokens."""

_Rule = tuple[int, float, int]
"""Feature, threshold, and 1 where a higher value speaks for this script, -1 where a lower one."""


def _distinguisher(seen: _Seen, trials: Sequence[Trial]) -> Effect:
    """How well the best simple rule tells by the observer's answers which of two scripts was run.

    The advantage is the share of answers of this script that the rule takes for this script's,
    less that of the other's: 0 is guessing, 1 certainty. Every trial is judged by a rule that was
    chosen on the other half of the trials. Where runs of one script differ as wholes, a rule tells
    them apart as well: an advantage says something only beyond its null.
    """
    right, wrong = _guesses(seen, trials, seen.there)
    n = len(trials)
    low, high = advantage_interval(right, wrong, n)
    nulls = [_guesses(seen, trials, run) for run in seen.again]
    return Effect(
        twin="", about="", what="distinguisher", n=n, differing=right + wrong,
        null=max((sum(guesses) for guesses in nulls), default=None),
        value=(right - wrong) / n, low=low, high=high,
        null_value=max(((r - w) / n for r, w in nulls), key=abs, default=None),
        measure="advantage of the best simple distinguisher",
    )  # fmt: skip


def _guesses(seen: _Seen, trials: Sequence[Trial], run: Answers) -> tuple[int, int]:
    """In how many trials the rule tells the two answers apart, rightly and the wrong way round."""
    pairs = [
        [[f(t, answers[t.neutral]) for f in _FEATURES] for answers in (seen.here, run)]
        for t in trials
        if t.neutral in run
    ]
    told = []
    for half in (0, 1):
        rule = _best_rule(pairs[1 - half :: 2])
        told += [_says(rule, here) - _says(rule, there) for here, there in pairs[half::2]]
    return told.count(1), told.count(-1)


def _best_rule(pairs: Sequence[Sequence[Sequence[float]]]) -> _Rule | None:
    """The rule with the greatest advantage on some trials, the simplest feature first."""
    best, greatest = None, 0
    for number in range(len(_FEATURES)):
        for threshold in sorted({answer[number] for pair in pairs for answer in pair}):
            for sense in (1, -1):
                rule = number, threshold, sense
                advantage = sum(_says(rule, here) - _says(rule, there) for here, there in pairs)
                if advantage > greatest:
                    best, greatest = rule, advantage
    return best


def _says(rule: _Rule | None, features: Sequence[float]) -> int:
    """1 where a rule takes an answer for one of this script."""
    if rule is None:
        return 0
    number, threshold, sense = rule
    return int(sense * features[number] >= sense * threshold)
