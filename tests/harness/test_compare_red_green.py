"""Red for a memory that was broken on purpose, green for one that was not."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from steeltrap.adapters.flat import Flat
from steeltrap.adapters.ideal import Ideal
from steeltrap.adapters.mutants import MUTANTS
from steeltrap.harness.compare import compare, read_side
from steeltrap.harness.compare.samples import Run
from steeltrap.harness.memory import Item, Memory
from steeltrap.harness.readers import Oracle
from steeltrap.harness.run import run_cell
from steeltrap.harness.script import Script
from steeltrap.harness.store import open_cell, run_spec
from steeltrap.harness.verdict import CONDITION_OF
from steeltrap.workloads.compose import ScriptSettings, compose

SUBTLE = (
    "stale-after-revert",
    "resurrects-on-echo",
    "propagates-three-hops",
    "credits-restatement",
    "forgets-by-age",
    "counts-at-maintenance",
    "lists-injection",
)
"""A mutant for each condition and one beyond them, none of which is wrong at once or everywhere."""
REPEATS = 3
"""Runs a side on each of three scripts: what is asked of a system that varies by itself."""


def ran(
    folder: Path, make: Callable[[], Memory], scripts: Iterable[Script], *, twins: int = 1
) -> list[Run]:
    """The runs of a memory, under the name `memory`, through scripts."""
    for script in scripts:
        asked = run_spec(
            script, system="memory", settings={}, reader="oracle", limit=10, twins=twins, repeats=0
        )
        run_cell(open_cell(folder, asked, script), make, script, Oracle())
    return read_side(folder)


class Renamed(Ideal):
    """A harmless change: what it serves has other ids and comes in another order."""

    def retrieve(self, query: Any) -> list[Item]:
        return [self._renamed(item) for item in super().retrieve(query)]

    def active(self, tenant: str) -> list[Item]:
        return [self._renamed(item) for item in reversed(super().active(tenant))]

    def _renamed(self, item: Item) -> Item:
        return replace(item, id=f"memory:{item.id}")


def flaky(make: type[Ideal], seed: object, share: float = 0.05) -> Callable[[], Memory]:
    """A memory that varies by itself: at some questions it serves the value before."""

    class Flaky(make):  # type: ignore[misc, valid-type]
        def open(self, folder: Path) -> None:
            super().open(folder)
            self.dice = random.Random(f"{seed} {self._header.seed}")

        def present(self, name: str) -> list[Item]:
            served: list[Item] = super().present(name)
            unit = self.world.units.get(name)
            if served and unit and len(unit.entries) > 1 and self.dice.random() < share:
                before = unit.entries[-2]
                if before.value is not None:
                    return [self.item(unit, before)]
            return served

    return Flaky


def script(family: str, turns: int, seed: int) -> Script:
    families = {} if family == "adversarial" else {family: 1.0}
    return compose(ScriptSettings(name=family, turns=turns, families=families), seed)


def home(mutant: str, seeds: Iterable[int] = (0,)) -> list[Script]:
    """The scripts on which a mutant shows what it is."""
    cls = MUTANTS[mutant]
    return [script(family, cls.turns, seed) for family in cls.families for seed in seeds]


def conditions(mutant: str) -> set[str]:
    return {CONDITION_OF[name] for name in MUTANTS[mutant].raises}


def red(base: Sequence[Run], new: Sequence[Run]) -> set[str]:
    """The conditions in which NEW is worse."""
    found = compare(base, new)
    assert found.exit_code == (1 if found.worse else 2 if found.unjudged else 0)
    return {m.name for one in found.versus for m in one.conditions if m.red}


# ---------------------------------------------------------------- broken on purpose


@pytest.mark.parametrize(
    "mutant",
    [*SUBTLE, *(pytest.param(name, marks=pytest.mark.slow) for name in MUTANTS if name not in SUBTLE)],
)  # fmt: skip
def test_a_broken_memory_is_red(mutant: str, tmp_path: Path) -> None:
    """One run a side on one script is enough: the condition that was broken is worse, no other."""
    scripts = home(mutant)
    base = ran(tmp_path / "base", Ideal, scripts)
    new = ran(tmp_path / "new", MUTANTS[mutant], scripts)
    assert conditions(mutant) == red(base, new)
    assert compare(base, new).exit_code == 1


@pytest.mark.parametrize(
    "mutant",
    [pytest.param(name, marks=pytest.mark.slow) if n else name for n, name in enumerate(SUBTLE[:4])],
)  # fmt: skip
def test_a_broken_memory_is_red_through_noise(mutant: str, tmp_path: Path) -> None:
    """Three runs a side on three scripts show a defect in a memory that varies by itself."""
    scripts = home(mutant, range(3))
    pools = [
        [r for n in range(REPEATS) for r in ran(tmp_path / f"{side}{n}", flaky(make, (side, n)), scripts, twins=0)]
        for side, make in (("base", Ideal), ("new", MUTANTS[mutant]))
    ]  # fmt: skip
    found = compare(*pools)
    assert found.versus[0].steadiness == "varies"
    assert conditions(mutant) == red(*pools)


def test_points_of_a_family_are_those_that_were_counted(tmp_path: Path) -> None:
    """What an audit shows of a unit belongs to the family of the unit, as its counts do."""
    (flat,) = ran(tmp_path, Flat, [script("adversarial", 100, 0)])
    points: dict[tuple[str, str], set[tuple[str, int]]] = {}
    for name, family, unit, step in flat.sample.violated():
        points.setdefault((family, CONDITION_OF[name]), set()).add((unit, step))
    told = {
        (family, condition): violations
        for family, rows in flat.sample.families.items()
        for condition, (violations, _) in rows.items()
        if violations and family
    }
    assert len(told) > 5
    assert told == {key: len(found) for key, found in points.items() if key[0]}


# ---------------------------------------------------------------- harmless


def test_a_harmless_change_is_green_twenty_times(tmp_path: Path) -> None:
    """Other ids and another order change the history, and nothing that counts."""
    for seed in range(20):
        scripts = [script("adversarial", 50, seed)]
        base = ran(tmp_path / f"base{seed}", Ideal, scripts)
        new = ran(tmp_path / f"new{seed}", Renamed, scripts)
        found = compare(base, new)
        assert base[0].sample.fingerprint != new[0].sample.fingerprint
        assert (found.exit_code, found.worse, found.unjudged) == (0, [], []), seed


def pool(folder: Path, size: int, turns: int = 60) -> list[list[Run]]:
    """Independent lives of one and the same memory, which varies by itself, on three scripts."""
    scripts = [script("adversarial", turns, seed) for seed in range(3)]
    return [ran(folder / str(n), flaky(Ideal, n), scripts, twins=0) for n in range(size)]


def together(lives: Iterable[list[Run]]) -> list[Run]:
    return [run for life in lives for run in life]


def test_an_unchanged_memory_that_varies_is_green_twenty_times(tmp_path: Path) -> None:
    """Samples of one distribution differ, and no difference is taken for a change."""
    lives = pool(tmp_path, 4 * REPEATS)
    dice = random.Random(0)
    rises = 0
    for _ in range(20):
        drawn = dice.sample(lives, 2 * REPEATS)
        found = compare(together(drawn[:REPEATS]), together(drawn[REPEATS:]))
        assert (found.exit_code, found.worse, found.unjudged) == (0, [], [])
        (c1,) = [m for m in found.versus[0].conditions if m.name == "C1"]
        rises += (c1.new or 0.0) > (c1.base or 0.0)
    assert 0 < rises < 20


@pytest.mark.slow
def test_false_alarms_are_as_rare_as_promised(tmp_path: Path) -> None:
    """Of 200 comparisons of independent samples, one in a hundred may be red at the level of 0.01."""
    lives = pool(tmp_path, 200 * 2 * REPEATS, turns=40)
    alarms = 0
    for n in range(0, len(lives), 2 * REPEATS):
        base, new = lives[n : n + REPEATS], lives[n + REPEATS : n + 2 * REPEATS]
        alarms += compare(together(base), together(new)).exit_code == 1
    assert alarms <= 4


def test_a_single_run_of_a_memory_that_varies_says_so(tmp_path: Path) -> None:
    """Without repeats differences are taken as real; what to do about it stands in the result."""
    scripts = [script("adversarial", 60, 0)]
    base, new = (ran(tmp_path / str(n), flaky(Ideal, n), scripts, twins=0) for n in range(2))
    assert compare(base, new).versus[0].steadiness == "unknown"
