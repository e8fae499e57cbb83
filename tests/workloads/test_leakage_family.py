"""Leakage families: what differs between twins, and that nothing else could tell them apart."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from steeltrap.harness.script import (
    Audit,
    Gauge,
    Pause,
    Probe,
    Script,
    Turn,
    TwinSpec,
    field_of,
    tenant_of,
    topic_of,
)
from steeltrap.harness.twins import twin_script
from steeltrap.workloads.check import check
from steeltrap.workloads.compose import ScriptSettings, compose
from steeltrap.workloads.families.leakage import OBSERVER, SCOPES

FAMILIES = ("leak-asking", "leak-telling", "leak-names", "leak-scope")
WITH_TWINS = FAMILIES[:3]


@cache
def script(family: str, seed: int = 0, turns: int = 200) -> Script:
    return compose(ScriptSettings(name=family, turns=turns, families={family: 1.0}), seed)


def only_twin(script: Script) -> TwinSpec:
    (twin,) = script.header.twins
    return twin


@pytest.mark.parametrize("family", FAMILIES)
def test_the_truth_is_what_the_world_says(family: str, tmp_path: Path) -> None:
    """A written script is read back and holds, units without a tenant and wrong scopes included."""
    sha = script(family).write(tmp_path / "script.jsonl")
    assert sha == check(tmp_path / "script.jsonl").sha256()


@pytest.mark.parametrize("family", WITH_TWINS)
def test_a_script_of_200_turns_holds_twenty_trials(family: str) -> None:
    """All trials of a script belong to one twin, and each is a question of the observer's."""
    for seed in range(3):
        one = script(family, seed)
        twin = only_twin(one)
        assert twin.tenant == OBSERVER and len(twin.trials) >= 20
        probes = {step.id: step for step in one.steps if isinstance(step, Probe)}
        for trial, favoured in twin.trials.items():
            probe = probes[trial]
            assert (probe.ask, probe.tenant) == ("rank", OBSERVER)
            assert favoured in probe.units and len(probe.units) == 2
            assert {OBSERVER} == {tenant_of(unit) for unit in probe.units}
            assert 1 == len({field_of(unit) for unit in probe.units})


@pytest.mark.parametrize("family", WITH_TWINS)
def test_nothing_of_the_observer_differs(family: str) -> None:
    """The observer says and asks the same in both twins, and maintenance and listings are the same."""
    one = script(family)
    other = twin_script(one, only_twin(one))
    for steps in (lambda s: s.tenant == OBSERVER, lambda s: isinstance(s, Gauge | Pause)):
        assert list(filter(steps, one.steps)) == list(filter(steps, other.steps))
    assert one.steps != other.steps


def test_of_asking_the_reads_alone_differ() -> None:
    """The same number of questions at the same points, each about the other of the pair."""
    one = script("leak-asking")
    twin = only_twin(one)
    other = twin_script(one, twin)
    assert len(one.steps) == len(other.steps)
    changed = [pair for pair in zip(one.steps, other.steps, strict=True) if pair[0] != pair[1]]
    assert all(isinstance(step, Probe) and step.observe == "in-script" for pair in changed for step in pair)  # fmt: skip
    assert {tenant_of(step.unit) for pair in changed for step in pair} == {one.header.tenants[0]}


def test_of_asking_every_coin_falls_the_other_way() -> None:
    """Before each trial the favoured one's namesake was read several times here, the other's there."""
    one = script("leak-asking")
    twin = only_twin(one)
    for steps, of_favoured in ((one.steps, True), (twin_script(one, twin).steps, False)):
        reads: dict[str, int] = {}
        for step in steps:
            if not isinstance(step, Probe):
                continue
            if step.id in twin.trials:
                favoured = twin.trials[step.id]
                (other,) = set(step.units) - {favoured}
                read, unread = (favoured, other) if of_favoured else (other, favoured)
                assert reads[_rest(read)] >= 3 and not reads.get(_rest(unread))
            elif step.observe == "in-script" and step.unit and step.tenant != OBSERVER:
                reads[_rest(step.unit)] = reads.get(_rest(step.unit), 0) + 1


@pytest.mark.parametrize("family", ["leak-telling", "leak-names"])
def test_of_telling_one_thing_is_never_spoken_of(family: str) -> None:
    """What is not told in the other twin is not asked for there either; the tenant still speaks."""
    one = script(family)
    twin = only_twin(one)
    other = twin_script(one, twin)
    left_out = [step for step in one.steps if twin.name in step.unless]
    assert all(isinstance(step, Turn | Probe | Audit) for step in left_out)
    silent = {c.unit for step in left_out for c in step.changes}
    spoken = {c.unit for step in other.steps for c in step.changes}
    assert silent and not silent & spoken
    asked = {step.unit for step in other.steps if isinstance(step, Probe | Audit)}
    assert not silent & asked
    assert {tenant_of(unit) for unit in spoken} == {OBSERVER, one.header.tenants[0]}


def test_names_are_the_same_or_nearly() -> None:
    """In one family the two tenants' topics have one name, in the other no two have."""
    for family, same in (("leak-telling", True), ("leak-names", False)):
        one = script(family)
        told = {c.unit for step in one.steps for c in step.changes}
        silent = {c.unit for s in one.steps if s.unless for c in s.changes}
        favoured = set(only_twin(one).trials.values())
        namesakes = {_rest(unit) for unit in told if tenant_of(unit) == OBSERVER}
        for unit in silent:
            assert (_rest(unit) in namesakes) == same
        alike = {topic_of(unit)[:3] for unit in silent}
        assert all(topic_of(unit)[:3] in alike for unit in favoured)


@pytest.mark.parametrize("family", WITH_TWINS)
def test_the_coin_is_fair_and_follows_nothing(family: str) -> None:
    """Neither what comes first by name nor what was told first is favoured more often."""
    by_name, by_telling, n = 0, 0, 0
    for seed in range(6):
        one = script(family, seed)
        told = list(dict.fromkeys(c.unit for step in one.steps for c in step.changes))
        probes = {step.id: step for step in one.steps if isinstance(step, Probe)}
        for trial, favoured in only_twin(one).trials.items():
            first, second = probes[trial].units
            earlier = min(first, second, key=told.index)
            by_name += favoured == first
            by_telling += favoured == earlier
            n += 1
    # Four standard deviations of a fair coin.
    assert abs(by_name - n / 2) < 2 * n**0.5
    assert abs(by_telling - n / 2) < 2 * n**0.5


def test_in_wrong_scopes_nothing_is_due() -> None:
    """Nobody speaks in a scope that is no tenant's, all of them are asked in, and nothing is right."""
    one = script("leak-scope")
    speakers = {step.tenant for step in one.steps if isinstance(step, Turn)}
    assert speakers == {one.header.tenants[0], ""}
    asked = [step for step in one.steps if isinstance(step, Probe)]
    assert {probe.tenant for probe in asked} == {*speakers, *SCOPES, OBSERVER}
    for probe in asked:
        assert probe.unit and tenant_of(probe.unit) == probe.tenant
        if probe.tenant not in speakers:
            assert probe.expect and probe.expect.state == "unset"


def test_a_unit_that_nobody_told_of_is_still_refused(tmp_path: Path) -> None:
    """Asking in another scope is allowed for what somebody told of, and for nothing else."""
    from steeltrap.harness.script import ScriptError

    one = script("leak-scope", turns=20)
    probe = next(s for s in one.steps if isinstance(s, Probe) and s.tenant == OBSERVER)
    before, probe.unit = probe.unit, f"{OBSERVER}/Nowhere/deadline"
    try:
        one.write(tmp_path / "script.jsonl")
        with pytest.raises(ScriptError, match="was never told before this line"):
            check(tmp_path / "script.jsonl")
    finally:
        probe.unit = before


def _rest(unit: str) -> str:
    return unit.split("/", 1)[1]
