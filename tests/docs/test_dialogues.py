"""The dialogues are true: each shows its violation on its mutant, and nothing on the ideal memory."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

from steeltrap.adapters.ideal import Ideal
from steeltrap.adapters.mutants import MUTANTS
from steeltrap.harness.script import Script
from steeltrap.harness.verdict import CONDITION_OF
from steeltrap.workloads.check import check

STEMS = sorted(
    path.stem for path in (Path(__file__).parents[2] / "docs" / "dialogues").glob("*.jsonl")
)


@pytest.mark.parametrize("stem", STEMS)
def test_a_dialogue_shows_its_violation_and_no_other(stem: str, dialogue: ModuleType) -> None:
    """On its mutant it shows exactly the name that it explains; on the ideal memory, nothing."""
    path = dialogue.FOLDER / f"{stem}.jsonl"
    script, chosen = Script.read(path), dialogue.CHOSEN[stem]
    check(path)
    shown = {found.name for found in dialogue.examined(MUTANTS[chosen.mutant], script)}
    assert {chosen.name} == shown
    assert [] == dialogue.examined(Ideal, script)


def test_every_violation_has_a_dialogue(dialogue: ModuleType) -> None:
    """Each name has a file of that name; each file is chosen."""
    assert set(CONDITION_OF) <= set(STEMS)
    assert set(STEMS) == set(dialogue.CHOSEN)


def test_dialogues_are_as_short_as_they_get(dialogue: ModuleType) -> None:
    """Most are four turns or fewer; none is a long script."""
    turns = {stem: Script.read(dialogue.FOLDER / f"{stem}.jsonl").turns for stem in STEMS}
    assert {"unrecoverable", "runaway"} == {stem for stem, n in turns.items() if n > 4}
    assert max(turns.values()) < 20


@pytest.mark.parametrize("stem", ["stale-read", "inert-retrieval-by-twin"])
def test_shrinking_gives_the_same_dialogue_again(stem: str, dialogue: ModuleType) -> None:
    """What lies in the folder is what shrinking the mutant's script gives."""
    stored = Script.read(dialogue.FOLDER / f"{stem}.jsonl")
    assert stored.sha256() == dialogue.shrunk(dialogue.CHOSEN[stem]).sha256()


def test_what_is_said_is_shown_and_never_interpreted(dialogue: ModuleType) -> None:
    """Text of a script is escaped where a dialogue is shown."""
    script = Script.read(dialogue.FOLDER / "obeyed-injection.jsonl")
    hostile = "<script>alert(1)</script> [link](javascript:alert(1))"
    for step in script.steps:
        if hasattr(step, "ops"):
            step.text = hostile
    shown = dialogue.html(dialogue.play(MUTANTS["obeys-injection"], script))
    assert "<script>" not in shown
    assert "&lt;script&gt;" in shown
