"""Long lives: they end, are looked at rarely, and are the same in memory and in a file."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from pathlib import Path

import msgspec
import pytest

from steeltrap.adapters.ideal import Ideal
from steeltrap.adapters.mutants import MUTANTS
from steeltrap.harness import settings as settings_module
from steeltrap.harness.checks import Scored, score
from steeltrap.harness.drive import drive
from steeltrap.harness.history import read_events, read_header
from steeltrap.harness.memory import Memory, Told
from steeltrap.harness.readers import Oracle
from steeltrap.harness.script import Audit, Gauge, Probe, Script, ScriptError, StoredSteps, Turn
from steeltrap.harness.settings import cells
from steeltrap.harness.tokens import count
from steeltrap.workloads.check import check
from steeltrap.workloads.compose import ScriptSettings, compose, compose_file
from steeltrap.workloads.dice import Dice
from steeltrap.workloads.families import FAMILIES
from steeltrap.workloads.life import Life, Sample

FAMILIES_OF_A_LIFE = {name: 1.0 for name in FAMILIES if name != "reinforcement"}
SHORT = Life(watched_until=100, withdrawn_after=200, sample=16)


def settings(turns: int, life: Life = SHORT) -> ScriptSettings:
    return ScriptSettings(
        name="life", turns=turns, families=FAMILIES_OF_A_LIFE, surface={"paste": 0.0}, life=life
    )


@pytest.fixture(scope="module")
def life() -> Script:
    return compose(settings(3000), 0)


def days(earlier: str, later: str) -> int:
    return (date.fromisoformat(later[:10]) - date.fromisoformat(earlier[:10])).days


def looks(script: Script, low: int, high: int) -> int:
    """Probes and audits between two turns."""
    turn = found = 0
    for step in script.steps:
        turn += isinstance(step, Turn)
        found += isinstance(step, Probe | Audit) and low < turn <= high
    return found


def judged(make: Callable[[], Memory], script: Script, folder: Path) -> Scored:
    memory, history = make(), folder / "history.jsonl"
    if isinstance(memory, Told):
        memory.told(script)
    memory.open(folder)
    drive(memory, script, history, limit=10)
    memory.close()
    return score(
        script,
        read_events(history),
        capabilities=read_header(history).capabilities,
        reader=Oracle(),
    )


def test_a_shorter_life_is_the_beginning_of_a_longer_one(life: Script) -> None:
    """Turns, questions and truth are the same up to the last turn of the shorter one."""
    short = compose(settings(1200), 0)
    last = max(i for i, step in enumerate(short.steps) if isinstance(step, Turn))
    assert short.steps[: last + 1] == life.steps[: last + 1]


def test_looks_grow_with_the_logarithm_of_the_turns() -> None:
    """As many come in each tenfold of a life, once it is past its first turns, and not ten times more."""
    script = compose(settings(12_000), 0)
    first, second = looks(script, 120, 1200), looks(script, 1200, 12_000)
    assert 0.4 < second / first < 1.6, (first, second)


def test_what_is_true_levels_off(life: Script) -> None:
    """The footprint of the last third is no larger than that of the second, give or take a fifth."""
    sizes = [step.footprint[1] for step in life.steps if isinstance(step, Turn)]
    second, last = sum(sizes[1000:2000]) / 1000, sum(sizes[2000:]) / 1000
    assert last < 1.2 * second
    never = compose(settings(3000, Life(watched_until=100, withdrawn_after=10**6, sample=16)), 0)
    assert never.steps[-1].footprint[1] > 2 * sizes[-1]


def test_a_life_in_a_file_is_the_same(life: Script, tmp_path: Path) -> None:
    """Its bytes, its length, its turns and any of its steps, passes at the same time included."""
    stored = compose_file(settings(3000), 0, tmp_path / "life.jsonl")
    assert isinstance(stored.steps, StoredSteps)
    assert [life.sha256(), life.turns, len(life.steps)] == [stored.sha256(), stored.turns, len(stored.steps)]  # fmt: skip
    assert [life.steps[i] for i in (0, 1700, 3, 3, -1)] == [stored.steps[i] for i in (0, 1700, 3, 3, -1)]  # fmt: skip
    assert life.steps[70:75] == stored.steps[70:75]
    one, other = iter(stored.steps), iter(stored.steps)
    assert [next(one), next(one), next(other), next(one)] == [*life.steps[:2], life.steps[0], life.steps[2]]  # fmt: skip
    assert list(life.lines()) == list(stored.lines())
    assert stored.write(tmp_path / "copy.jsonl") == Script.read(tmp_path / "copy.jsonl").sha256()
    assert [path.name for path in tmp_path.iterdir() if "part" in path.name] == []


def test_a_life_that_cannot_be_composed_leaves_no_file(tmp_path: Path) -> None:
    """Nothing that looks like a script is there when composing was broken off."""
    wrong = msgspec.structs.replace(settings(100), families={"reinforcement": 1.0})
    with pytest.raises(ScriptError, match="its twins lie in the script"):
        compose_file(wrong, 0, tmp_path / "life.jsonl")
    assert list(tmp_path.iterdir()) == []


def test_tokens_of_each_turn_are_written_down(life: Script) -> None:
    """They are those of its text."""
    turns = [step for step in life.steps[:400] if isinstance(step, Turn)]
    assert [count(turn.text) for turn in turns] == [turn.tokens for turn in turns]


def test_the_truth_of_a_life_is_that_of_the_world(life: Script, tmp_path: Path) -> None:
    """Replayed by a world that forgets nothing it comes out the same."""
    life.write(tmp_path / "life.jsonl")
    assert check(tmp_path / "life.jsonl").turns == 3000


@pytest.fixture
def in_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Every script is a long one, and much is let go while one is replayed."""
    monkeypatch.setattr("steeltrap.harness.script.LONG_BYTES", 0)
    monkeypatch.setattr("steeltrap.workloads.check.FORGET_EVERY", 50)
    monkeypatch.setenv("STEELTRAP_CACHE", str(tmp_path / "cache"))
    return tmp_path


def test_a_life_in_a_file_is_checked_there(life: Script, in_files: Path) -> None:
    """What nobody can touch any more is let go, and everything else comes out as it is stated."""
    life.write(in_files / "life.jsonl")
    assert isinstance(check(in_files / "life.jsonl").steps, StoredSteps)


def test_a_wrong_truth_late_in_a_life_is_found(life: Script, in_files: Path) -> None:
    """A question about the distant past whose stated answer is another value is named with its line."""
    steps = list(life.steps)
    place, probe = next(
        (i, step)
        for i, step in reversed([*enumerate(steps)])
        if isinstance(step, Probe) and step.ask == "as-of" and step.expect and step.expect.value
    )
    kind, _, _ = probe.expect.value.partition(":")  # type: ignore[union-attr]
    steps[place] = msgspec.structs.replace(probe, expect=None)
    Script(life.header, steps).write(in_files / "life.jsonl")
    with pytest.raises(ScriptError, match=rf":{place + 2}: field expect: states null, .*{kind}:"):
        check(in_files / "life.jsonl")


def test_a_long_script_without_truth_gets_it_in_a_file(life: Script, in_files: Path) -> None:
    """The truth that is filled in is that with which the life was composed."""
    bare = [msgspec.structs.replace(step, changes=[], footprint=(0, 0)) for step in life.steps]
    for step in bare:
        if isinstance(step, Probe):
            step.expect, step.via, step.hop = None, None, 0
        if isinstance(step, Audit):
            step.history, step.live = [], True
    Script(life.header, bare).write(in_files / "bare.jsonl")
    assert check(in_files / "bare.jsonl").sha256() == life.sha256()


def test_the_ideal_memory_holds_every_condition_through_a_life(
    life: Script, tmp_path: Path
) -> None:
    """Nothing is violated, and C1 to C5 are put to the test."""
    found = judged(Ideal, life, tmp_path)
    assert found.violations == []
    assert {f"C{n}": "held" for n in range(1, 6)} == {
        key: verdict.validity for key, verdict in found.outcome.verdicts.items() if key in {f"C{n}" for n in range(1, 6)}
    }  # fmt: skip


def test_the_ideal_memory_holds_every_condition_through_years(tmp_path: Path) -> None:
    """So it is with the settings of `script=decade`, of which 5 000 turns are a whole year."""
    year = cells(["script=decade", "script.turns=5000", "seed=1"])[0].script()
    assert days(year.steps[0].at, year.steps[-1].at) > 300
    assert judged(Ideal, year, tmp_path).violations == []


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_the_ideal_memory_holds_every_condition_through_ten_years(
    seed: int, tmp_path: Path
) -> None:
    """All 50 000 turns of `script=decade`, which are nine years at least."""
    decade = cells(["script=decade", f"seed={seed}"])[0].script()
    assert days(decade.steps[0].at, decade.steps[-1].at) > 9 * 365
    assert judged(Ideal, decade, tmp_path).violations == []


def test_a_long_life_is_composed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It lies in the cache folder, and whoever asks for the same settings and seed finds it there."""
    monkeypatch.setenv("STEELTRAP_CACHE", str(tmp_path))
    monkeypatch.setattr("steeltrap.harness.settings.LONG_TURNS", 100)
    asked = ["script=decade", "script.turns=150", "seed=7"]
    first = cells(asked)[0].script()
    settings_module._script.cache_clear()
    monkeypatch.setattr("steeltrap.harness.settings.compose_file", None)
    again = cells(asked)[0].script()
    assert isinstance(again.steps, StoredSteps)
    assert [first.sha256(), first.turns] == [again.sha256(), again.turns]
    assert len([*(tmp_path / "scripts").iterdir()]) == 1
    settings_module._script.cache_clear()


def test_the_past_is_asked_for_at_checkpoints(life: Script) -> None:
    """What was before, and as of a day, of units whose last change may be long ago."""
    later = life.steps[len(life.steps) // 2 :]
    asked = {step.ask for step in later if isinstance(step, Probe) and step.family == "audit"}
    assert {"current", "previous", "as-of"} <= asked
    assert sum(isinstance(step, Gauge) and step.full for step in life.steps) >= 5


def test_a_sample_is_fair() -> None:
    """Beside the latest units each that was ever told is as likely as any other."""
    counts = [0] * 100
    for seed in range(600):
        sample = Sample(20, Dice("fair", seed))
        for number in range(100):
            sample.add(str(number))
        for unit in sample.units():
            counts[int(unit)] += 1
    assert counts[-10:] == [600] * 10
    assert 30 < min(counts[:90]) <= max(counts[:90]) < 95  # 60 are due


@pytest.mark.parametrize("name", ["one-turn-behind", "never-propagates", "resurrects-on-echo"])
def test_mutants_are_caught_in_a_life(name: str, life: Script, tmp_path: Path) -> None:
    """A defect shows under its name though most episodes are not watched."""
    found = judged(MUTANTS[name], life, tmp_path)
    assert set(MUTANTS[name].raises) <= {violation.name for violation in found.violations}
