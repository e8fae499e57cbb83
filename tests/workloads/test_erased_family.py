"""Families of erasure: what the twin lacks, and that the truth afterwards is the same in both."""

from __future__ import annotations

import copy
from functools import cache
from pathlib import Path

import pytest

from steeltrap.harness import values
from steeltrap.harness.script import (
    Audit,
    Erasure,
    Gauge,
    Pause,
    Probe,
    Script,
    Step,
    Turn,
    TwinSpec,
    tenant_of,
)
from steeltrap.harness.twins import twin_script
from steeltrap.workloads.check import check
from steeltrap.workloads.compose import ScriptSettings, compose
from steeltrap.workloads.families import ALONE, FAMILIES
from steeltrap.workloads.truth import Annotator

NAMES = ("erase-unit", "erase-tenant")
CASES = [(name, seed) for name in NAMES for seed in (0, 1)]


@cache
def script(name: str, seed: int = 0, turns: int = 150) -> Script:
    return compose(ScriptSettings(name=name, turns=turns, families={name: 1.0}), seed)


def erasures(script: Script, spec: TwinSpec) -> list[int]:
    """Where the script erases what the twin lacks."""
    steps = enumerate(script.steps)
    return [i for i, s in steps if isinstance(s, Erasure) and spec.name in s.unless]


def named(step: Step) -> set[str]:
    """The units that a step speaks of or asks for."""
    if isinstance(step, Turn):
        return {unit for op in step.ops for unit in (op.unit, op.target) if unit}
    return {unit} if (unit := getattr(step, "unit", None)) else set()


def gone(script: Script, spec: TwinSpec) -> set[str]:
    """The units that are erased."""
    changes = (c for i in erasures(script, spec) for c in script.steps[i].changes)
    return {change.unit for change in changes if change.cause == "erased"}


@pytest.mark.parametrize(("name", "seed"), CASES)
def test_the_twin_says_nothing_of_what_is_erased(name: str, seed: int) -> None:
    """Until the erasure no step of the twin speaks of it; afterwards both ask the same."""
    made = script(name, seed)
    assert len(made.header.twins) >= 2
    for spec in made.header.twins:
        first, last, units = min(erasures(made, spec)), max(erasures(made, spec)), gone(made, spec)
        assert spec.about == "existing"
        assert spec.gone in units or spec.gone in {tenant_of(unit) for unit in units}
        for step in made.steps[:first]:
            if isinstance(step, Pause | Gauge):  # time passes, and is measured, for all
                assert not step.unless
                continue
            about = bool(named(step) & units) or step.tenant == spec.gone
            assert about == (spec.name in step.unless)
        assert not any(spec.name in step.unless for step in made.steps[last + 1 :])
        assert not any(isinstance(s, Turn) and named(s) & units for s in twin_script(made, spec).steps)  # fmt: skip


@pytest.mark.parametrize(("name", "seed"), CASES)
def test_after_the_erasure_the_truth_is_that_of_the_twin(name: str, seed: int) -> None:
    """The world of the twin, replayed, expects the same answers, histories and footprint."""
    made = script(name, seed)
    for spec in made.header.twins[:2]:
        after = {step.id: step for step in made.steps[max(erasures(made, spec)) + 1 :]}
        other = twin_script(made, spec)
        annotator = Annotator(other.header)
        seen = 0
        for step in copy.deepcopy(other.steps):
            annotator.add(step)
            if (here := after.get(step.id)) is None:
                continue
            assert here.footprint == step.footprint
            if isinstance(step, Probe) and isinstance(here, Probe):
                assert (step.expect, step.via) == (here.expect, here.via)
                seen += 1
            if isinstance(step, Audit) and isinstance(here, Audit):
                assert step.history == here.history
        assert seen > 50


@pytest.mark.parametrize("name", NAMES)
def test_what_must_be_gone_was_said_of_it_alone(name: str) -> None:
    """Texts are those of turns that the twin lacks; every value of the erased is among the rest."""
    made = script(name)
    for spec in made.header.twins:
        lacking = {s.text for s in made.steps if isinstance(s, Turn) and spec.name in s.unless}
        things = {g for i in erasures(made, spec) for g in made.steps[i].gone}  # type: ignore[union-attr]
        assert lacking <= things
        held = {c.value for s in made.steps for c in s.changes if c.unit in gone(made, spec)}
        assert {values.display(value) for value in held if value} <= things


@pytest.mark.parametrize("name", NAMES)
def test_all_is_listed_before_and_after(name: str) -> None:
    """There is a full gauge right before the erasure and right after it, and one after each pause."""
    made = script(name)
    for spec in made.header.twins:
        first, last = min(erasures(made, spec)), max(erasures(made, spec))
        before = [s for s in made.steps[:first] if isinstance(s, Gauge) and s.full]
        after = [s for s in made.steps[last:] if isinstance(s, Gauge) and s.full]
        assert before
        assert after
        turns = [s for s in made.steps[last : made.steps.index(after[0])] if isinstance(s, Turn)]
        assert not turns


def test_a_derived_value_stands_until_it_is_erased_itself() -> None:
    """What followed from the erased unit is asked for, and still expected, before it goes too."""
    made = script("erase-unit")
    for spec in made.header.twins:
        first, last = erasures(made, spec)
        follower = made.steps[last].unit  # type: ignore[union-attr]
        asked = [s for s in made.steps[first:last] if isinstance(s, Probe) and s.unit == follower]
        assert asked
        assert all(probe.expect and probe.expect.state == "set" for probe in asked)


@pytest.mark.parametrize("name", NAMES)
def test_the_script_checks(name: str, tmp_path: Path) -> None:
    """A script of erasure is a true script, what must be gone included."""
    script(name).write(tmp_path / "made.jsonl")
    check(tmp_path / "made.jsonl")


def test_other_families_ask_for_no_search() -> None:
    """An erasure that no twin is without says nothing of files, so that old scripts stay as they are."""
    assert set(NAMES) <= set(ALONE)
    assert not set(NAMES) & set(FAMILIES)
    made = script("erasure")
    assert not any(s.gone for s in made.steps if isinstance(s, Erasure))


def test_a_twin_that_the_curtain_cut_off_leaves_no_mark() -> None:
    """Steps name only twins that the header has."""
    for turns in (40, 60, 90):
        made = script("erase-unit", 0, turns)
        names = {spec.name for spec in made.header.twins}
        assert all(set(step.unless) <= names for step in made.steps)
