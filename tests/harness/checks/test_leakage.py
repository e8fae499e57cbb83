"""Leaks between tenants: what a twin shows of them, and what it must not be taken for."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steeltrap.adapters.ideal import Ideal
from steeltrap.adapters.mutants import MUTANTS
from steeltrap.harness.checks.leakage import compare
from steeltrap.harness.checks.sighting import Compared, Comparison
from steeltrap.harness.drive import drive
from steeltrap.harness.memory import Item, MemoryFault, Query, Utterance
from steeltrap.harness.record import Effect
from steeltrap.harness.script import Probe, Script
from steeltrap.harness.stats import advantage_interval, order_distance, sign_flip
from steeltrap.harness.twins import compare as of_runs
from steeltrap.harness.twins import twin_script
from steeltrap.harness.validate import examine
from steeltrap.workloads.compose import ScriptSettings, compose


@cache
def script(family: str, turns: int = 80, seed: int = 0) -> Script:
    return compose(ScriptSettings(name=family, turns=turns, families={family: 1.0}), seed)


class Moody(Ideal):
    """The ideal memory with chance of its own; each run has another."""

    def __init__(self, run: int) -> None:
        self.chance = random.Random(run)

    def foreign(self, name: str) -> float:
        """What others have read of the unit of this name."""
        rest = name.split("/", 1)[1]
        return sum(self.saliences.get(f"{t}/{rest}", 0.0) for t in self.world.by_tenant)


class Jitters(Moody):
    """Of equal salience, any may come first."""

    def ranked(self, names: Sequence[str]) -> list[Item]:
        return sorted(super().ranked(names), key=lambda _: self.chance.random())


class Noisy(Moody):
    """Scores that tremble."""

    def ranked(self, names: Sequence[str]) -> list[Item]:
        items = super().ranked(names)
        return [msgspec.structs.replace(i, score=self.chance.random() / 10) for i in items]


class Moods(Moody):
    """Runs as wholes differ: some go by name forwards, some backwards, some serve one thing only."""

    def __init__(self, run: int) -> None:
        super().__init__(run)
        self.mood = self.chance.choice(("forwards", "backwards", "brief"))

    def ranked(self, names: Sequence[str]) -> list[Item]:
        items = [i for name in sorted(names, reverse=self.mood == "backwards") for i in self.present(name)]  # fmt: skip
        return items[:1] if self.mood == "brief" else items


class LeaksAtTimes(Moody):
    """Any may come first, and more often than not what others read."""

    def ranked(self, names: Sequence[str]) -> list[Item]:
        key = self.foreign if self.chance.random() < 0.9 else lambda _: self.chance.random()
        return [
            item for name in sorted(names, key=key, reverse=True) for item in self.present(name)
        ]


class LeaksInNoisyScores(Moody):
    """Scores that tremble, and are higher for what others read."""

    def item(self, *given: object, **more: object) -> Item:
        item = super().item(*given, **more)  # type: ignore[arg-type]
        name = str(item.id).split("#")[0]
        return msgspec.structs.replace(item, score=self.foreign(name) + self.chance.random())

    def ranked(self, names: Sequence[str]) -> list[Item]:
        return [item for name in sorted(names) for item in self.present(name)]


def compared(
    make: Callable[[int], Ideal], script: Script, folder: Path, *, first: int = 0, repeats: int = 1
) -> Compared:
    """Run a script, its twin and repeats, each on a memory of its own, and compare."""
    spec = script.header.twins[0]
    scripts = [script, twin_script(script, spec), *[script] * repeats]
    name = script.header.name
    paths = [folder / f"{name}-{first + number}.jsonl" for number in range(len(scripts))]
    for number, (one, path) in enumerate(zip(scripts, paths, strict=True)):
        memory = make(first + number)
        memory.told(one)
        memory.open(folder)
        drive(memory, one, path, limit=10)
    comparison = of_runs(script, spec, paths[0], paths[1], paths[2:])
    assert isinstance(comparison, Comparison)
    return compare(comparison)


def effect(found: Compared, what: str) -> Effect:
    return next(one for one in found.effects if one.what == what)


# ---------------------------------------------------------------- what is a leak


@pytest.mark.parametrize("make", [Jitters, Noisy, Moods])
def test_what_varies_by_itself_is_not_accused(make: type[Moody], tmp_path: Path) -> None:
    """However much a system differs from its twin: chance does not follow the coin."""
    varied = 0
    for first in range(0, 15, 3):
        found = compared(make, script("leak-asking"), tmp_path, first=first)
        if any(one.null for one in found.effects):
            varied += 1
            assert found.violations == []
    assert varied >= 3


def test_a_distinguisher_of_chance_has_no_advantage(tmp_path: Path) -> None:
    """It is tried on other trials than it was chosen on, so it cannot overfit to any."""
    for first in range(0, 15, 3):
        told = effect(compared(Noisy, script("leak-asking"), tmp_path, first=first), "distinguisher")  # fmt: skip
        assert told.differing > 0
        assert (told.low or 0.0) < 0 < (told.high or 0.0)


@pytest.mark.parametrize("make", [LeaksAtTimes, LeaksInNoisyScores])
def test_what_varies_and_leaks_is_found(make: type[Moody], tmp_path: Path) -> None:
    """A leak shows through a system's own chance, and counts only trials that moved with it."""
    for first in range(0, 9, 3):
        found = compared(make, script("leak-asking", 120), tmp_path, first=first)
        assert 0 < len(found.violations) <= found.opportunities
        assert {violation.name for violation in found.violations} == {"leak"}
        assert (effect(found, "distinguisher").low or 0.0) > 0


def test_without_chance_any_difference_is_a_leak(tmp_path: Path) -> None:
    """One answer that differs by a thousandth in one score is enough where repeats agree."""

    class Once(Ideal):
        def retrieve(self, query: Query) -> Sequence[Item]:
            items = super().retrieve(query)
            leaked = query.id == last and any(k.startswith(mine) for k in self.saliences)
            return [msgspec.structs.replace(i, score=0.001) for i in items] if leaked else items

    one = script("leak-asking")
    trials = one.header.twins[0].trials
    last, favoured = list(trials.items())[-1]
    mine = "acme/" + favoured.split("/", 1)[1]
    found = compared(lambda _: Once(), one, tmp_path)
    assert [violation.unit for violation in found.violations] == [favoured]
    assert (1, 0) == (effect(found, "scores").differing, effect(found, "scores").null)
    assert found.opportunities >= len(trials)


def test_the_ideal_memory_is_as_deaf_as_can_be(tmp_path: Path) -> None:
    """Nothing differs, and the distinguisher is left with guessing."""
    for family in ("leak-asking", "leak-telling", "leak-names"):
        found = compared(lambda _: Ideal(), script(family), tmp_path)
        assert found.violations == []
        assert not any(one.differing for one in found.effects)
        told = effect(found, "distinguisher")
        assert told.value == 0 and (told.low or 0.0) < 0 < (told.high or 0.0)


def test_what_is_served_of_another_tenant_is_counted_where_it_is_served(tmp_path: Path) -> None:
    """Words of another tenant have their name already: the twin does not name them again."""
    found = compared(lambda _: MUTANTS["serves-look-alikes"](), script("leak-names"), tmp_path)
    assert effect(found, "direct").differing > 0
    shown = {violation.unit for violation in found.violations}
    assert not shown
    deaf = compared(lambda _: Ideal(), script("leak-names"), tmp_path, first=9)
    assert found.opportunities < deaf.opportunities


# ---------------------------------------------------------------- how large it is


def test_a_shared_salience_tells_all(tmp_path: Path) -> None:
    """Where reading lifts the namesake, the order tells each time which of two was read."""
    found = compared(lambda _: MUTANTS["shares-salience"](), script("leak-asking"), tmp_path)
    told, order = effect(found, "distinguisher"), effect(found, "order")
    assert told.value == 1.0 and (told.low or 0.0) > 0.5
    assert (order.value, order.null_value) == (1.0, 0.0)
    assert (effect(found, "scores").value or 0.0) > 0
    assert len(found.violations) == told.n == len(script("leak-asking").header.twins[0].trials)


def test_the_number_of_items_tells_as_well(tmp_path: Path) -> None:
    """What is not in the order may be in the count."""
    found = compared(lambda _: MUTANTS["cuts-before-it-filters"](), script("leak-telling"), tmp_path)  # fmt: skip
    assert effect(found, "served").differing == len(found.violations)
    assert (effect(found, "distinguisher").value or 0.0) > 0.5


def test_a_step_that_failed_is_not_compared(tmp_path: Path) -> None:
    """What was not answered in one of the runs shows nothing."""

    class Fails(Ideal):
        def __init__(self, run: int) -> None:
            self.run = run

        def retrieve(self, query: Query) -> Sequence[Item]:
            question = self._questions[query.id]
            if self.run == 1 and isinstance(question, Probe) and question.ask == "rank":
                raise MemoryFault("out of order")
            return super().retrieve(query)

    found = compared(Fails, script("leak-asking"), tmp_path)
    assert found.violations == []
    assert all(one.what != "distinguisher" for one in found.effects)


# ---------------------------------------------------------------- scopes


def test_refusing_an_empty_scope_is_right(tmp_path: Path) -> None:
    """Who may not speak or ask without a scope is no fault, and the others are listed all the same."""

    class Strict(Ideal):
        def ingest(self, turn: Utterance) -> None:
            if not turn.tenant:
                raise MemoryFault("no scope")
            super().ingest(turn)

        def retrieve(self, query: Query) -> Sequence[Item]:
            if not query.tenant:
                raise MemoryFault("no scope")
            return super().retrieve(query)

        def active(self, tenant: str) -> Sequence[Item]:
            if not tenant:
                raise MemoryFault("no scope")
            return super().active(tenant)

    one = script("leak-scope")
    violations, failed = examine(Strict, one)
    assert violations == set()
    refused = sum(step.step in ("turn", "probe") and not step.tenant for step in map(_plain, one.steps))  # fmt: skip
    assert failed == refused > 0


class _Plain(msgspec.Struct):
    step: str
    tenant: str = ""


def _plain(step: object) -> _Plain:
    return msgspec.json.decode(msgspec.json.encode(step), type=_Plain)


def test_what_is_told_without_a_tenant_is_everybodys(tmp_path: Path) -> None:
    """Serving it to any tenant is no leak."""

    class Public(Ideal):
        def present(self, name: str) -> list[Item]:
            return [*super().present(name), *super().present("/" + name.split("/", 1)[1])]

        def listed(self, name: str) -> list[Item]:
            return super().present(name)

    assert examine(Public, script("leak-scope"))[0] == set()


# ---------------------------------------------------------------- rules of the statistics


@given(st.permutations(list("abcdefg")), st.permutations(list("abcdefg")))
def test_the_distance_of_orders_is_one(one: list[str], two: list[str]) -> None:
    """From 0 for the same to 1 for the reverse, and the same from either side."""
    distance = order_distance(one, two)
    assert order_distance(two, one) == pytest.approx(distance)
    assert order_distance(one, two[::-1]) == pytest.approx(1 - distance)
    assert (distance == 0) == (one == two)


@given(st.lists(st.sampled_from("abc")), st.lists(st.sampled_from("xyz")))
def test_orders_of_nothing_in_common_are_not_apart(one: list[str], two: list[str]) -> None:
    """What only one of them holds has no place in the other."""
    assert order_distance(one, two) == 0
    assert order_distance([*one, "m"], ["m", *two]) == 0


@settings(max_examples=25)
@given(st.integers(0, 40), st.integers(0, 40), st.integers(1, 40))
def test_an_advantage_lies_within_its_interval(right: int, wrong: int, more: int) -> None:
    """So it does, and changing sides mirrors it; more trials make it narrower."""
    n = right + wrong + more
    low, high = advantage_interval(right, wrong, n)
    assert -1 <= low <= (right - wrong) / n <= high <= 1
    assert advantage_interval(wrong, right, n) == pytest.approx((-high, -low))
    wide = high - low
    low, high = advantage_interval(4 * right, 4 * wrong, 4 * n)
    assert high - low < wide


@settings(max_examples=25)
@given(st.lists(st.integers(-2, 2), max_size=12))
def test_signs_that_all_agree_are_as_improbable_as_can_be(values: list[int]) -> None:
    """The test of a coin: p is symmetric, and least where all that differs is of one sign."""
    p = sign_flip(values)
    assert sign_flip([-v for v in values]) == pytest.approx(p)
    differing = sum(v != 0 for v in values)
    assert p >= sign_flip([abs(v) for v in values]) >= min(1.0, 2 / 2**differing) - 1e-9
