"""Composition: every family, the same bytes everywhere, truth inside."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter

import pytest

from steeltrap.harness.script import Audit, Gauge, Probe, Script, ScriptError, Turn
from steeltrap.workloads.check import check
from steeltrap.workloads.compose import ScriptSettings, compose
from steeltrap.workloads.families import FAMILIES
from steeltrap.workloads.figure1 import figure_1

PRINT_HASH = """
from steeltrap.workloads.compose import ScriptSettings, compose
print(compose(ScriptSettings(name="adversarial", turns=120), 7).sha256())
"""


@pytest.fixture(scope="module")
def adversarial() -> Script:
    return compose(ScriptSettings(name="adversarial"), 3)


@pytest.mark.parametrize("hash_seed", ["0", "4711"])
def test_a_seed_gives_the_same_bytes_in_every_process(hash_seed: str) -> None:
    """The identity of a script does not depend on the process or its hash seed."""
    done = subprocess.run(
        [sys.executable, "-c", PRINT_HASH],
        env=os.environ | {"PYTHONHASHSEED": hash_seed},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    here = compose(ScriptSettings(name="adversarial", turns=120), 7).sha256()
    assert here == done.stdout.strip()


def test_the_bytes_of_a_seed_are_pinned() -> None:
    """What a seed gives is a format: changing it needs a new version of the generator, on purpose."""
    script = compose(ScriptSettings(name="adversarial", turns=60), 1)
    assert PINNED == script.sha256()


PINNED = "4efee93c2f662a6defdbb5f75f23a7b8180bb13401e705f60a4f0de84770569e"


def test_a_script_has_the_turns_that_were_asked_for(adversarial: Script) -> None:
    """A script of 500 turns has 500 turns."""
    assert 500 == adversarial.turns


def test_every_family_has_its_part(adversarial: Script) -> None:
    """In a script of 500 turns every family with a weight is heard."""
    heard = {step.family for step in adversarial.steps if isinstance(step, Turn)}
    assert set(FAMILIES) <= heard


def test_every_change_is_probed_at_once(adversarial: Script) -> None:
    """A changed unit is asked for before the next turn, so that a memory that was right is known to."""
    steps = adversarial.steps
    for place, step in enumerate(steps):
        if not isinstance(step, Turn):
            continue
        until = next(
            (i for i in range(place + 1, len(steps)) if isinstance(steps[i], Turn)), len(steps)
        )
        asked = {s.unit for s in steps[place:until] if isinstance(s, Probe)}
        told = [change.unit for change in step.changes if change.hop == 0]
        assert set(told) <= asked


def test_a_dependent_is_probed_together_with_its_sources(adversarial: Script) -> None:
    """Where a derived value is asked for, the unit it follows from was asked for in the same group."""
    asked: dict[str, list[str | None]] = {}
    for step in adversarial.steps:
        if isinstance(step, Probe) and step.ask == "current":
            if step.via is not None and step.observe == "fork":
                assert step.via in asked[step.group]
            asked.setdefault(step.group, []).append(step.unit)


def test_every_fifty_turns_every_unit_is_audited(adversarial: Script) -> None:
    """An audit asks for each unit that was told of, and looks its history up."""
    turns, told, audits = 0, set(), Counter[int]()
    for step in adversarial.steps:
        turns += isinstance(step, Turn)
        if isinstance(step, Turn):
            told |= {change.unit for change in step.changes}
        elif isinstance(step, Audit):
            audits[turns] += 1
    assert [50, 100, 150, 200, 250, 300, 350, 400, 450, 500] == sorted(audits)
    assert len(told) == audits[500]


def test_gauges_come_every_ten_turns(adversarial: Script) -> None:
    """C5 is gauged every 10 turns."""
    turns, gauged = 0, []
    for step in adversarial.steps:
        turns += isinstance(step, Turn)
        if isinstance(step, Gauge):
            gauged.append(turns)
    assert list(range(10, 501, 10)) == gauged


def test_values_are_unique_where_no_family_needs_them_twice(adversarial: Script) -> None:
    """A value names the write it came from: two units share one only over a 'same' rule."""
    owners: dict[str, set[str]] = {}
    same = {
        frozenset((op.unit, op.target))
        for step in adversarial.steps if isinstance(step, Turn)
        for op in step.ops if op.rule and op.rule.kind == "same"
    }  # fmt: skip
    for step in adversarial.steps:
        for change in step.changes:
            if change.value:
                owners.setdefault(change.value, set()).add(change.unit)
    shared = {frozenset(units) for units in owners.values() if len(units) > 1}
    assert shared <= same


def test_the_truth_in_a_script_agrees_with_a_replay(adversarial: Script, tmp_path: object) -> None:
    """Reading a script back and replaying its ops gives the truth that stands in it."""
    path = tmp_path / "script.jsonl"  # type: ignore[operator]
    sha = adversarial.write(path)
    assert sha == check(path).sha256()


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_runs_alone(family: str) -> None:
    """Each family makes a script of its own, with twins where reading matters."""
    script = compose(ScriptSettings(name=family, turns=150, families={family: 1.0}), 5)
    assert 150 == script.turns
    assert {family, "noise"} >= {s.family for s in script.steps if isinstance(s, Turn)}
    assert (family == "reinforcement") == bool(script.header.twins)


def test_a_longer_script_costs_no_more_steps_a_turn() -> None:
    """Audits thin out, so that the number of steps grows with the turns and not faster."""
    steps = [len(compose(ScriptSettings(name="long", turns=n), 0).steps) / n for n in (500, 4000)]
    assert steps[1] <= 1.2 * steps[0]


def test_structure_and_surface_are_separate_dials() -> None:
    """Saying things otherwise changes no op, no value and no truth."""
    plain = {"paraphrase": 0.0, "spelling": 0.0, "ellipsis": 0.0, "decoration": 0.0, "paste": 0.0}
    one = compose(ScriptSettings(name="same", turns=150, surface=plain), 2)
    other = compose(ScriptSettings(name="same", turns=150, surface={"languages": 0.5}), 2)
    meant = [[s.ops for s in script.steps if isinstance(s, Turn)] for script in (one, other)]
    said = [[s.text for s in script.steps if isinstance(s, Turn)] for script in (one, other)]
    assert meant[0] == meant[1]
    assert said[0] != said[1]


def test_nonsense_is_refused_by_name() -> None:
    """Unknown families and dials are named, with those that are known."""
    with pytest.raises(ScriptError, match=r"unknown family 'flip-flap'; known: .*flip-flop"):
        compose(ScriptSettings(name="x", families={"flip-flap": 1}), 0)
    with pytest.raises(ScriptError, match=r"unknown surface dial 'shouting'; known: .*paraphrase"):
        compose(ScriptSettings(name="x", surface={"shouting": 1}), 0)
    with pytest.raises(ScriptError, match="at least one turn"):
        compose(ScriptSettings(name="x", turns=0), 0)


def test_figure_1_says_what_the_paper_says() -> None:
    """The script holds the figure's own words, and the deadline is asked for every week."""
    script = figure_1()
    texts = [step.text for step in script.steps if isinstance(step, Turn)]
    assert "Website Redesign | Deadline: March 15" in texts
    assert "Deadline UPDATED: April 20" in texts
    reads = [s for s in script.steps if isinstance(s, Probe) and s.observe == "in-script"]
    assert ["2026-03-02", "2026-03-09", "2026-03-16"] == sorted({s.at[:10] for s in reads})
