"""Twins: two scripts that differ in one thing."""

from __future__ import annotations

from pathlib import Path

from steeltrap.harness.script import Probe, Script
from steeltrap.harness.twins import twin_script, with_unobserved
from steeltrap.workloads.check import check
from steeltrap.workloads.compose import ScriptSettings, compose
from steeltrap.workloads.figure1 import figure_1


def test_a_twin_differs_in_the_reads_and_in_nothing_else() -> None:
    """Every step up to the comparison is the same, but for the unit that is read."""
    script = compose(
        ScriptSettings(name="reinforcement", turns=150, families={"reinforcement": 1}), 4
    )
    for spec in script.header.twins:
        twin = twin_script(script, spec)
        changed = [
            (here.unit, there.unit)
            for here, there in zip(script.steps, twin.steps, strict=False)
            if here != there and isinstance(here, Probe) and isinstance(there, Probe) and here.swap and here.swap.twin == spec.name
        ]  # fmt: skip
        same = sum(here == there for here, there in zip(script.steps, twin.steps, strict=False))
        assert {(spec.a, spec.b)} == set(changed)
        assert len(twin.steps) == same + len(changed)
        assert spec.until == twin.steps[-1].id


def test_a_twin_of_a_script_in_a_file_is_read_from_it(tmp_path: Path) -> None:
    """Step for step it is the twin of the same script in memory, in a pass and by number."""
    script = with_unobserved(figure_1())
    script.write(tmp_path / "script.jsonl")
    stored = Script.stored(tmp_path / "script.jsonl")
    for spec in script.header.twins:
        here, there = twin_script(script, spec), twin_script(stored, spec)
        assert not isinstance(there.steps, list)
        assert [here.sha256(), here.turns, here.steps[-1], here.steps[4:9]] == [
            there.sha256(), there.turns, there.steps[-1], there.steps[4:9]
        ]  # fmt: skip


def test_a_twin_is_a_true_script(tmp_path: object) -> None:
    """The truth of the swapped questions is what the world says."""
    script = figure_1()
    path = tmp_path / "twin.jsonl"  # type: ignore[operator]
    twin_script(script, script.header.twins[0]).write(path)
    check(path)
