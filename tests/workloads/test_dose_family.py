"""The design of the dose family: what could be taken for an effect of the dose is balanced."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise
from statistics import fmean

import pytest

from steeltrap.harness.script import (
    UNOBSERVED,
    Gauge,
    Pause,
    Probe,
    Script,
    Turn,
    field_of,
    tenant_of,
    topic_of,
)
from steeltrap.workloads.check import check
from steeltrap.workloads.compose import ScriptSettings, compose
from steeltrap.workloads.domains import field_named
from steeltrap.workloads.families.dose import DOSES


@dataclass
class Planned:
    """What a script does to the units of one group, by steps."""

    units: tuple[str, ...]
    told: list[int] = field(default_factory=list)
    ranked: list[int] = field(default_factory=list)
    read: list[tuple[int, str]] = field(default_factory=list)

    @property
    def doses(self) -> Counter[str]:
        return Counter(unit for _, unit in self.read)


def groups(script: Script) -> list[Planned]:
    """The groups that the script has time for, in the order in which they were told."""
    asked = dict.fromkeys(s.units for s in script.steps if isinstance(s, Probe) and s.units)
    found = [_planned(script, units) for units in asked]
    return sorted((g for g in found if len(g.ranked) == 3), key=lambda group: group.told)


def _planned(script: Script, units: tuple[str, ...]) -> Planned:
    group = Planned(units)
    for i, step in enumerate(script.steps):
        if isinstance(step, Turn) and any(op.unit in units for op in step.ops):
            group.told.append(i)
        elif isinstance(step, Probe) and step.units == units:
            group.ranked.append(i)
        elif isinstance(step, Probe) and step.unit in units and step.observe == "in-script":
            group.read.append((i, step.unit))
    return group


@pytest.fixture(scope="module", params=[0, 5])
def script(request: pytest.FixtureRequest) -> Script:
    return compose(ScriptSettings(name="dose", turns=500, families={"dose": 1}), request.param)


def at(script: Script, i: int) -> datetime:
    return datetime.fromisoformat(script.steps[i].at)


def test_each_group_has_one_unit_of_each_dose(script: Script) -> None:
    """Of each group one unit is read 0, 1, 2, 5 and 20 times, all of them between two questions."""
    assert len(groups(script)) >= 15
    for group in groups(script):
        assert list(DOSES) == sorted(group.doses[unit] for unit in group.units)
        first, second, _ = group.ranked
        assert all(first < i < second for i, _ in group.read)


def test_units_of_a_group_are_exchangeable(script: Script) -> None:
    """One tenant, one field of trivial importance, topics of their own, told once and in a row."""
    for group in groups(script):
        fields = {field_of(unit) for unit in group.units}
        named = field_named(next(iter(fields)))
        assert 1 == len(fields) == len({tenant_of(unit) for unit in group.units})
        assert named and "trivial" == named[1].importance
        assert len(group.units) == len({topic_of(unit) for unit in group.units})
        turns = [i for i, step in enumerate(script.steps) if isinstance(step, Turn)]
        first = turns.index(group.told[0])
        assert group.told == turns[first : first + len(group.units)]


def test_the_last_reads_fall_on_one_instant(script: Script) -> None:
    """Whatever was read was last read at one time, just before the question: the count differs alone."""
    for group in groups(script):
        last = {unit: i for i, unit in group.read}
        assert 1 == len({at(script, i) for i in last.values()})
        assert {i for i, _ in group.read[-len(last) :]} == set(last.values())
        assert {at(script, group.ranked[1])} == {at(script, i) for i in last.values()}


def test_orders_are_turned_round(script: Script) -> None:
    """Over two groups each dose stands at the middle place on average, in telling and last reads."""
    found = groups(script)
    told = [_told(script, group) for group in found]
    last = [[group.doses[unit] for _, unit in group.read[-(len(DOSES) - 1) :]] for group in found]
    by_reads = [o for _, o in sorted(zip((g.read[0] for g in found), last, strict=True))]
    for orders in (told, by_reads):
        pairs = [(one, two) for one, two in pairwise(orders) if one == two[::-1]]
        assert len(pairs) >= 0.4 * len(orders)
        assert len({tuple(order) for order in orders}) > len(orders) / 2
    for dose in DOSES:
        assert abs(fmean(order.index(dose) for order in told) - 2) < 0.5


def _told(script: Script, group: Planned) -> list[int]:
    turns = [script.steps[i] for i in group.told]
    return [group.doses[turn.ops[0].unit or ""] for turn in turns if isinstance(turn, Turn)]


def test_nothing_else_is_asked_of_the_units(script: Script) -> None:
    """A system that cannot be copied reads whatever is probed, so that no update here is probed."""
    units = {unit for group in groups(script) for unit in group.units}
    assert not any(isinstance(s, Probe) and s.unit in units and s.lag is not None for s in script.steps)  # fmt: skip


def test_pressure_stands_between_reads_and_survival(script: Script) -> None:
    """Before what is left is looked at, trivial units are told, time passes, and maintenance runs."""
    for group in groups(script):
        _, start, end = group.ranked
        between = script.steps[start:end]
        tells = [s for s in between if isinstance(s, Turn) and s.ops[0].op == "tell"]
        assert len(tells) >= 6 and sum(isinstance(s, Pause) for s in between) >= 3
        assert (at(script, end) - at(script, start)).days >= 60
        look = max(i for i, s in enumerate(script.steps[:end]) if isinstance(s, Gauge) and s.full)
        assert not any(isinstance(s, Turn | Pause) for s in script.steps[look:end])


def test_who_is_first_named_has_no_dose_of_its_own(script: Script) -> None:
    """The neutral question names units in the order of their names, which says nothing of doses."""
    first = Counter(group.doses[min(group.units)] for group in groups(script))
    assert len(first) >= 4


def test_the_script_is_a_true_one(script: Script, tmp_path: object) -> None:
    """Its truth is the world's, and its header names the twin that is not measured, once."""
    path = tmp_path / "dose.jsonl"  # type: ignore[operator]
    script.write(path)
    assert [UNOBSERVED] == check(path).header.twins
