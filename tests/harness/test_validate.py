"""The checks themselves: the ideal memory passes, every mutant is caught under exactly its names."""

from __future__ import annotations

import pytest

from steeltrap.adapters.ideal import Ideal
from steeltrap.adapters.mutants import MUTANTS
from steeltrap.harness.commands.validate import suspects, try_seed
from steeltrap.harness.validate import Suspect, Trial, names_without
from steeltrap.harness.verdict import CONDITION_OF, NAMES


@pytest.mark.parametrize("seed", [0, *(pytest.param(n, marks=pytest.mark.slow) for n in (1, 2))])
def test_every_suspect_is_as_declared(seed: int) -> None:
    """The ideal memory raises nothing; each mutant all that it declares, and nothing else."""
    findings = try_seed(seed)
    for suspect in suspects():
        trial = Trial(suspect)
        trial.add(seed, *findings[suspect.name])
        assert trial.ok, (suspect.name, trial.amiss)


def test_every_violation_has_mutants() -> None:
    """A check that no mutant needs has not shown that it works: at least two for each name."""
    for name in CONDITION_OF:
        raising = [mutant.name for mutant in MUTANTS.values() if name in mutant.raises]
        assert len(raising) >= 2, name
    assert [] == names_without(suspects())
    assert len(MUTANTS) >= 40


def test_mutants_say_what_they_are() -> None:
    """Each mutant has a name, a sentence, families, and declares known violations."""
    for mutant in MUTANTS.values():
        assert mutant.__doc__ and mutant.families
        assert mutant.raises and set(mutant.raises) <= set(CONDITION_OF)


def test_an_escape_and_a_false_accusation_are_both_told() -> None:
    """A trial says which name escaped, and which was raised without need."""
    trial = Trial(Suspect("x", Ideal, frozenset({"stale-read"})))
    trial.add(7, set(), {"leak"}, False)
    assert {"stale-read escaped": 7, "accused of leak": 7} == trial.amiss
    assert not trial.ok


def test_names_belong_to_one_condition() -> None:
    """A violation name stands under one condition only."""
    assert len(CONDITION_OF) == sum(len(names) for names in NAMES.values())
