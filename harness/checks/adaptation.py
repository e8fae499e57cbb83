"""C6 (retrieval-induced adaptation): every read moves the salience of what it read, strictly up.

Two instruments. Where salience is visible, each retrieval that is part of the trajectory is
looked at: the unit read against itself before, and against a control that was not read. And
always the twins (section 4): in one run unit a is read, in the other its equal b; whatever
differs in how the two stand was caused by reading.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from steeltrap.harness.checks.sheet import Sheet, View
from steeltrap.harness.history import Event, Salience
from steeltrap.harness.memory import Item
from steeltrap.harness.readers import Catalogue
from steeltrap.harness.script import Probe, Script, Turn, TwinSpec
from steeltrap.harness.verdict import NAMES, Violation

__all__ = ["Adaptation", "Standing", "standings"]


def _name(read_gain: float, unread_gain: float) -> str:
    """The violation that two gains show, or '' if reading did what it should.

    Args:
        read_gain: how far the unit that was read rose.
        unread_gain: how far one that was not read rose at the same time.
    """
    if read_gain < 0:
        return "wrong-direction"
    if unread_gain > read_gain:
        return "unread-favoured"
    return "inert-retrieval" if read_gain == 0 else ""


def _gain(salience: Salience) -> float:
    """How far a unit rose; one of which nothing was known stood at 0."""
    return (salience.after or 0.0) - (salience.before or 0.0)


@dataclass(slots=True)
class Standing:
    """How the two units of a twin stood, at each point where it can be seen."""

    ranks: dict[str, dict[str, tuple[int | None, float | None]]] = field(default_factory=dict)
    """Each neutral question, by its step: unit -> (place among the items served, score)."""
    there: dict[str, dict[str, bool]] = field(default_factory=dict)
    """Each direct question, by its step: whether the unit asked for was served."""

    @property
    def seen(self) -> bool:
        """Whether either unit was served at all."""
        placed = (place for rank in self.ranks.values() for place, _ in rank.values())
        served = (there for asked in self.there.values() for there in asked.values())
        return any(place is not None for place in placed) or any(served)


def standings(script: Script, events: Iterable[Event], spec: TwinSpec) -> Standing:
    """How the units of a twin stood in one run.

    Args:
        script: this run's script.
        events: its history.
        spec: the pair.
    """
    catalogue, items, standing = Catalogue(script.header), [], Standing()
    pair = (spec.a, spec.b)
    values: dict[str, str | None] = {}
    for event in events:
        step = script.steps[event.i]
        items += event.new
        if isinstance(step, Turn):
            catalogue.hear(step, {op.unit: values.get(op.unit) for op in step.ops if op.unit})
        for change in step.changes:
            values[change.unit] = change.value
            if change.value:
                catalogue.know(change.unit, change.value)
        if isinstance(step, Probe) and event.type == "ok":
            if step.ask == "rank" and sorted(step.units) == sorted(pair):
                standing.ranks[step.id] = _ranks(step, event, items, catalogue, pair)
            elif step.unit in pair and step.observe == "fork" and step.lag is None:
                served = _units(step, event, items, catalogue)
                standing.there[step.id] = {step.unit: any(step.unit in units for units in served)}
        if step.id == spec.until:
            break
    return standing


def _units(step: Probe, event: Event, items: list[Item], catalogue: Catalogue) -> list[set[str]]:
    """The units that each item served speaks of."""
    return [
        {claim.unit for claim in catalogue.claims(items[number], step.tenant)}
        for number in event.served
    ]


def _ranks(
    step: Probe, event: Event, items: list[Item], catalogue: Catalogue, pair: tuple[str, str]
) -> dict[str, tuple[int | None, float | None]]:
    served = _units(step, event, items, catalogue)
    ranks: dict[str, tuple[int | None, float | None]] = {}
    for unit in pair:
        place = next((place for place, units in enumerate(served) if unit in units), None)
        score = event.scores[place] if place is not None and event.scores else None
        ranks[unit] = (place, score)
    return ranks


class Adaptation:
    """C6."""

    def __init__(self) -> None:
        self.sheet = Sheet("C6")

    def probe(self, view: View) -> None:
        """One retrieval of the trajectory, where salience is visible."""
        probe = view.step
        assert isinstance(probe, Probe)
        if not view.event.salience or probe.unit is None:
            return
        if not view.about:
            return
        read, *others = view.event.salience
        if read.before is None and read.after is None:
            return
        unread = max((_gain(other) for other in others), default=0.0)
        name = _name(_gain(read), unread)
        found = [view.violation(name, "C6", probe.unit, "salience rises strictly", f"{read.before} -> {read.after}, unread by {unread:+g}")] if name else []  # fmt: skip
        self.sheet.test(NAMES["C6"], view.ledger.turns, *found)

    def twin(self, spec: TwinSpec, a_read: Standing, b_read: Standing, turns: int, i: int) -> None:
        """Compare two runs that differ in which of two units was read.

        Args:
            spec: the pair.
            a_read: how both stood where `a` was read.
            b_read: how both stood where `b` was read.
            turns: turns until the comparison.
            i: the step at which it is made.
        """
        effects = [
            *self._effects(spec.a, a_read, b_read),
            *self._effects(spec.b, b_read, a_read),
        ]
        if not effects or not (a_read.seen or b_read.seen):
            return  # at no point could the two have differed, or neither was ever served
        name = ""
        if not any(effects):
            name = "inert-retrieval"
        elif min(effects) < 0:
            rose = _rise(spec.b, a_read) + _rise(spec.a, b_read)
            name = "unread-favoured" if rose > 0 else "wrong-direction"
        found = [Violation(
            name, "C6", i, "", spec.a, "what is read stands better than its equal",
            "nothing differs whichever is read" if name == "inert-retrieval" else f"effects {min(effects):+g} to {max(effects):+g}",
        )] if name else []  # fmt: skip
        self.sheet.test(NAMES["C6"], turns, *found)

    def _effects(self, unit: str, read: Standing, unread: Standing) -> list[float]:
        """How much better a unit stood where it was read, at every point of comparison."""
        effects: list[float] = []
        before = next(iter(read.ranks), "")
        for step in read.ranks:
            if step != before and step in unread.ranks:
                effects.append(_lead(read.ranks[step][unit], unread.ranks[step][unit]))
        for step, asked in read.there.items():
            if unit in asked and step in unread.there:
                effects.append(float(asked[unit]) - float(unread.there[step][unit]))
        return effects


def _lead(here: tuple[int | None, float | None], there: tuple[int | None, float | None]) -> float:
    """How much better a unit stood here than there: by score, or where those are equal by place."""
    (place, score), (other_place, other_score) = here, there
    if score is not None and other_score is not None and score != other_score:
        return score - other_score
    return _behind(other_place) - _behind(place)


def _behind(place: int | None) -> int:
    """How far behind a unit stood; one that was not served stood behind all that were."""
    return 1 << 20 if place is None else place


def _rise(unit: str, standing: Standing) -> float:
    """How far a unit's score rose from the first neutral question to the second."""
    if len(standing.ranks) < 2:
        return 0.0
    first, second, *_ = standing.ranks.values()
    before, after = first[unit][1], second[unit][1]
    return after - before if before is not None and after is not None else 0.0
