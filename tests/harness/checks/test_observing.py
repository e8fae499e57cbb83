"""Observing must not count: a run that is measured and one that is not come to the same state."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest

from steeltrap.adapters.embedders import HashEmbedder
from steeltrap.adapters.gem import ToldGem
from steeltrap.adapters.ideal import Ideal
from steeltrap.adapters.mutants import MUTANTS, Mutant
from steeltrap.harness.checks import score
from steeltrap.harness.checks.observing import NAME
from steeltrap.harness.checks.sighting import Comparison
from steeltrap.harness.drive import drive
from steeltrap.harness.history import read_events, read_header
from steeltrap.harness.memory import Item, Memory, Query, Told, Utterance
from steeltrap.harness.readers import Oracle
from steeltrap.harness.record import Effect
from steeltrap.harness.script import (
    UNOBSERVED,
    Audit,
    Gauge,
    Probe,
    Script,
    Turn,
    measures,
)
from steeltrap.harness.settings import SettingsError, cells
from steeltrap.harness.twins import compare, twin_script, with_unobserved
from steeltrap.harness.verdict import Violation
from steeltrap.workloads.compose import ScriptSettings, compose

OBSERVERS = ("look-ups-count", "exports-count", "shares-with-copies")


@cache
def script(name: str, turns: int, seed: int = 0) -> Script:
    families = {} if name == "adversarial" else {name: 1.0}
    return with_unobserved(compose(ScriptSettings(name=name, turns=turns, families=families), seed))


def told_gem() -> ToldGem:
    return ToldGem(store="plain", embedder=HashEmbedder())


def live(make: Callable[[], Memory], script: Script, history: Path) -> Path:
    memory = make()
    assert isinstance(memory, Told)
    memory.told(script)
    memory.open(history.parent)
    drive(memory, script, history, limit=10)
    memory.close()
    return history


def observed(make: Callable[[], Memory], script: Script, folder: Path, repeats: int = 0) -> Comparison:  # fmt: skip
    """A run beside the same run without measuring."""
    here = live(make, script, folder / "here.jsonl")
    there = live(make, twin_script(script, UNOBSERVED), folder / "there.jsonl")
    again = [live(make, script, folder / f"again-{n}.jsonl") for n in range(repeats)]
    found = compare(script, UNOBSERVED, here, there, again)
    assert isinstance(found, Comparison)
    return found


def judged(of: Comparison, folder: Path) -> tuple[list[Violation], dict[str, Effect]]:
    """The observer effects of a run, and what differed."""
    history = folder / "here.jsonl"
    scored = score(
        of.script,
        read_events(history),
        capabilities=read_header(history).capabilities,
        reader=Oracle(),
        twins=[of],
    )
    found = [violation for violation in scored.violations if violation.name == NAME]
    return found, {effect.what: effect for effect in scored.outcome.effects}


def state_hash(of: Comparison, *, measured: bool) -> str:
    """Hash of the state at the end: what is listed, served and had back, histories, saliences."""
    run = of.here if measured else of.there
    last = max(i for i, step in enumerate(of.script.steps) if isinstance(step, Turn))
    final = [seen for step, seen in run.items() if step in of.there and of.here[step].i > last]
    assert any(isinstance(seen.step, Gauge) and seen.step.full for seen in final)
    assert any(isinstance(seen.step, Audit) for seen in final)
    state = [(s.served, s.scores, s.given, s.recovered, s.salience) for s in final]
    return hashlib.sha256(msgspec.json.encode(state)).hexdigest()


# ---------------------------------------------------------------- the twin


@pytest.mark.parametrize("name", ["dose", "adversarial"])
def test_the_twin_lacks_what_measures_before_the_last_turn_and_nothing_else(name: str) -> None:
    """Turns, reads, pauses and erasures stay in order; what looks at the end stays too."""
    whole = script(name, 120)
    twin = twin_script(whole, UNOBSERVED)
    last = max(i for i, step in enumerate(whole.steps) if isinstance(step, Turn))
    due = [s for i, s in enumerate(whole.steps) if i > last or not measures(s)]
    assert due == [s for s in twin.steps if not (isinstance(s, Gauge) and s.blind)]
    assert any(isinstance(s, Gauge) and s.full for s in due)


def test_where_something_was_measured_the_memory_is_still_waited_for() -> None:
    """Background work is done at the same points, and nothing is looked at there."""
    whole = script("adversarial", 60)
    twin = twin_script(whole, UNOBSERVED)
    stops = [s for s in twin.steps if isinstance(s, Gauge) and s.blind]
    last = max(i for i, step in enumerate(whole.steps) if isinstance(step, Turn))
    measuring = [measures(step) for step in whole.steps[:last]]
    assert len(stops) == sum(now and not before for before, now in pairwise(measuring))


def test_the_steps_of_a_script_are_left_alone() -> None:
    """The twin is named in the header of a run; the script that others run keeps its bytes."""
    plain = compose(ScriptSettings(name="adversarial", turns=30), 0)
    before = plain.sha256()
    also = with_unobserved(plain)
    assert before == plain.sha256() and plain.steps == also.steps
    assert [*plain.header.twins, UNOBSERVED] == also.header.twins
    assert also is with_unobserved(also)


def test_any_script_can_be_run_unobserved() -> None:
    """`observing=true` adds the twin, whatever the script; it is off by default."""
    asked = ["script=flip-flop", "script.turns=10"]
    (plain,), (both,) = cells(asked), cells([*asked, "observing=true"])
    assert [UNOBSERVED] == both.script().header.twins != plain.script().header.twins
    with pytest.raises(SettingsError, match="write true or false"):
        cells([*asked, "observing=2"])


# ---------------------------------------------------------------- who is not disturbed


@pytest.mark.parametrize("name", ["dose", "adversarial"])
@pytest.mark.parametrize("make", [Ideal, told_gem])
def test_the_state_is_the_same_whether_or_not_it_was_measured(
    make: Callable[[], Memory], name: str, tmp_path: Path
) -> None:
    """Same state hash, and the same served to users, for memories that reading changes."""
    of = observed(make, script(name, 200), tmp_path)
    assert state_hash(of, measured=True) == state_hash(of, measured=False)
    found, effects = judged(of, tmp_path)
    assert [] == found
    assert {"trajectory", "final state"} == set(effects)
    assert all(effect.n > 10 and effect.differing == 0 for effect in effects.values())


@pytest.mark.parametrize("name", sorted(set(MUTANTS) - set(OBSERVERS)))
def test_no_other_defect_is_taken_for_one_of_measuring(name: str, tmp_path: Path) -> None:
    """Whatever else is wrong with a memory that can be copied, being looked at leaves no mark."""
    mutant = MUTANTS[name]
    of = observed(mutant, script(mutant.families[0], 40), tmp_path)
    assert state_hash(of, measured=True) == state_hash(of, measured=False)
    assert [] == judged(of, tmp_path)[0]


# ---------------------------------------------------------------- who is


@pytest.mark.parametrize("name", OBSERVERS)
def test_looking_that_leaves_a_mark_is_caught(name: str, tmp_path: Path) -> None:
    """Look-ups or exports that count as reads, and copies that write to their original."""
    of = observed(MUTANTS[name], script("dose", 150), tmp_path)
    assert state_hash(of, measured=True) != state_hash(of, measured=False)
    found, effects = judged(of, tmp_path)
    differing = sum(effect.differing for effect in effects.values())
    assert found and len(found) == differing
    assert effects["final state"].differing


class Uncopied(Ideal):
    """Reading counts, and there is no way to ask without reading."""

    fork = None  # type: ignore[assignment]


def test_who_cannot_be_copied_is_not_blamed(tmp_path: Path) -> None:
    """There measuring questions are reads, and count as they should: an effect and no violation."""
    found, effects = judged(observed(Uncopied, script("dose", 150), tmp_path), tmp_path)
    assert [] == found
    assert effects["final state"].differing and effects["final state"].measure


class Varies(Mutant):
    """Serves something else in every run, measured or not."""

    runs = 0

    def begin(self) -> None:
        Varies.runs += 1

    def present(self, name: str) -> list[Item]:
        found = super().present(name)
        return [msgspec.structs.replace(item, id=f"{self.runs}") for item in found]


def test_who_varies_from_run_to_run_is_held_against_that(tmp_path: Path) -> None:
    """Where runs of one script differ as much, a difference was not caused by measuring."""
    of = observed(Varies, script("flip-flop", 60), tmp_path, repeats=1)
    found, effects = judged(of, tmp_path)
    assert [] == found
    assert effects["final state"].null == effects["final state"].differing > 0


class Lazy(Ideal):
    """Takes turns in when it is waited for; each belief notes when that was."""

    def open(self, folder: Path) -> None:
        super().open(folder)
        self.queue: list[Utterance] = []

    def ingest(self, turn: Utterance) -> None:
        self.queue = [*self.queue, turn]

    def settle(self) -> None:
        for turn in self.queue:
            super().ingest(msgspec.structs.replace(turn, at=self.queue[-1].at))
        self.queue = []

    def retrieve(self, query: Query) -> Sequence[Item]:
        self.settle()
        return super().retrieve(query)


def test_background_work_is_no_matter_of_measuring(tmp_path: Path) -> None:
    """A memory that notes when its work was done comes to the same, since it is waited for alike."""
    assert [] == judged(observed(Lazy, script("adversarial", 80), tmp_path), tmp_path)[0]


def test_the_questions_of_users_are_compared(tmp_path: Path) -> None:
    """The trajectory is what was asked as part of it, all of it and nothing else."""
    whole = script("dose", 150)
    _, effects = judged(observed(Ideal, whole, tmp_path), tmp_path)
    asked = sum(isinstance(s, Probe) and s.observe == "in-script" for s in whole.steps)
    assert asked == effects["trajectory"].n
