"""Made-up conversations find what mutants do, and nothing on the ideal memory."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from steeltrap.adapters.ideal import Ideal
from steeltrap.adapters.mutants import MUTANTS
from steeltrap.harness.bench import Bench
from steeltrap.harness.commands.hunt import seek
from steeltrap.harness.memory import Memory
from steeltrap.harness.readers import Oracle
from steeltrap.harness.script import Turn
from steeltrap.workloads.check import check
from steeltrap.workloads.wild import MOVES, conversation

HANDFUL = (
    "serves-history-unmarked", "serves-first", "never-propagates", "believes-rumours",
    "keeps-two-versions", "credits-latest-turn", "read-only", "ignores-tenant", "keeps-erased",
    "obeys-injection", "shares-salience", "appends-turns",
)  # fmt: skip


def on(memory: type[Memory], folder: Path) -> Bench:
    return Bench(memory, Oracle(), folder, limit=10)


@pytest.mark.parametrize("name", HANDFUL)
def test_what_a_mutant_declares_is_found(name: str, tmp_path: Path) -> None:
    """All names that a mutant declares, in a few hundred conversations."""
    with on(MUTANTS[name], tmp_path) as bench:
        found, tried = seek(bench, wanted=MUTANTS[name].raises, examples=500)
    assert set(found) == set(MUTANTS[name].raises)
    assert tried < 500


def test_nothing_is_found_on_the_ideal_memory(tmp_path: Path) -> None:
    """Whatever meets whatever, right answers are no violations."""
    with on(Ideal, tmp_path) as bench:
        found, tried = seek(bench, examples=150, seed=3)
    assert (found, tried) == ({}, 150)


@pytest.mark.slow
def test_nothing_is_found_on_the_ideal_memory_in_many_tries(tmp_path: Path) -> None:
    """The same, often."""
    with on(Ideal, tmp_path) as bench:
        found, _ = seek(bench, examples=5000, seed=4, budget_s=1000)
    assert found == {}


def test_the_same_seed_finds_the_same(tmp_path: Path) -> None:
    """Conversations depend on the seed alone; another seed makes up others."""
    seen = []
    for seed in (0, 0, 1):
        with on(MUTANTS["never-supersedes"], tmp_path) as bench:
            found, tried = seek(bench, wanted=["superseded-active"], examples=60, seed=seed)
        seen.append((tried, found["superseded-active"].script.sha256()))
    assert seen[0] == seen[1] != seen[2]


def test_no_time_is_no_conversation(tmp_path: Path) -> None:
    """The budget in seconds is kept."""
    with on(Ideal, tmp_path) as bench:
        assert seek(bench, budget_s=-1) == ({}, 0)


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])  # fmt: skip
@given(st.integers(0, 10**9))
def test_a_made_up_conversation_is_a_true_script(tmp_path: Path, seed: int) -> None:
    """Whatever is chosen, the script passes the check of scripts."""
    script = conversation(random.Random(seed).randrange, 16)
    script.write(tmp_path / "wild.jsonl")
    check(tmp_path / "wild.jsonl")


def test_every_move_is_made_at_some_time() -> None:
    """No move is never possible."""
    families: set[str] = set()
    for seed in range(300):
        script = conversation(random.Random(seed).randrange, 16)
        families |= {step.family for step in script.steps}
        assert any(isinstance(step, Turn) for step in script.steps)
    assert families >= {name.replace("_", "-") for name in MOVES}
