"""Dose and response: who answers doses as it should passes, whatever can be seen of it."""

from __future__ import annotations

import hashlib
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache
from itertools import permutations, product
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steeltrap.adapters.ideal import Ideal
from steeltrap.adapters.mutants import MUTANTS, Mutant
from steeltrap.adapters.mutants.adaptation import (
    CountsFirstReadOnly,
    ForgetsRegardless,
    ReadOnly,
    Saturates,
)
from steeltrap.adapters.mutants.bound import Forgets
from steeltrap.harness.checks import Scored, score
from steeltrap.harness.checks.dose import LEVEL, Trend
from steeltrap.harness.drive import drive
from steeltrap.harness.history import read_events, read_header
from steeltrap.harness.memory import Item, Memory, Told
from steeltrap.harness.readers import Oracle
from steeltrap.harness.record import Dose
from steeltrap.harness.script import Probe, Script
from steeltrap.workloads.compose import ScriptSettings, compose
from steeltrap.workloads.families.dose import DOSES

TURNS = 350


@cache
def doses(seed: int, turns: int = TURNS) -> Script:
    return compose(ScriptSettings(name="dose", turns=turns, families={"dose": 1}), seed)


@cache
def run(make: Callable[[], Memory], script: Script) -> Scored:
    """What is found on a memory, without twins."""
    memory = make()
    assert isinstance(memory, Told)
    memory.told(script)
    with tempfile.TemporaryDirectory() as folder:
        memory.open(Path(folder))
        history = Path(folder) / "history.jsonl"
        drive(memory, script, history, limit=10)
        capabilities = read_header(history).capabilities
        return score(script, read_events(history), capabilities=capabilities, reader=Oracle())


def names(scored: Scored) -> set[str]:
    return {violation.name for violation in scored.violations}


def by_dose(scored: Scored) -> dict[int, Dose]:
    assert scored.outcome.dose
    return {dose.reads: dose for dose in scored.outcome.dose.doses}


# ---------------------------------------------------------------- memories


class BehindGlass(Ideal):
    """Salience cannot be seen, scores can."""

    salience = None  # type: ignore[assignment]


class _Opaque:
    """Neither salience nor scores can be seen: only the order."""

    salience = None

    def item(self, *arguments: object, **named: object) -> Item:
        return msgspec.structs.replace(super().item(*arguments, **named), score=None)  # type: ignore[misc]

    def ranked(self, names: Sequence[str]) -> list[Item]:
        by_salience = sorted(names, key=lambda name: -self.saliences.get(name, 0.0))  # type: ignore[attr-defined]
        return [item for name in by_salience for item in self.present(name)]  # type: ignore[attr-defined]


class Opaque(_Opaque, Ideal):  # type: ignore[misc]
    pass


class OpaqueReadOnly(_Opaque, ReadOnly):  # type: ignore[misc]
    pass


class OpaqueCountsFirst(_Opaque, CountsFirstReadOnly):  # type: ignore[misc]
    def maintain(self, at: str) -> None:
        self.world.advance(at)


class OpaqueSaturates(_Opaque, Saturates):  # type: ignore[misc]
    pass


class GoesByLatest(_Opaque, Mutant):  # type: ignore[misc]
    """Least recently used: the latest read alone counts, and nothing shows it but the order."""

    def begin(self) -> None:
        self.reads = 0

    def touch(self, name: str) -> None:
        self.reads += 1
        self.saliences[name] = float(self.reads)

    def maintain(self, at: str) -> None:
        self.world.advance(at)


class Whimsical(_Opaque, ReadOnly):  # type: ignore[misc]
    """Ranks anew each time, for no reason that has to do with reading."""

    def ranked(self, names: Sequence[str]) -> list[Item]:
        self.asked = getattr(self, "asked", 0) + 1
        return sorted(
            (item for name in names for item in self.present(name)),
            key=lambda item: hashlib.sha256(f"{self.turn_number} {item.id}".encode()).digest(),
        )


class ForgetsLeastRead(Forgets):
    """What is trivial and was not read often enough is archived a while after it was last read."""

    def gone(self, name: str) -> bool:
        silent, salience = self.silent_for(name), self.saliences.get(name, 0.0)
        return self.importance(name) == "trivial" and silent > 20 and salience < 3.0


class ForgetsLeastReadBehindGlass(ForgetsLeastRead):
    salience = None  # type: ignore[assignment]


# ---------------------------------------------------------------- who passes


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("make", [Ideal, BehindGlass, Opaque, ForgetsLeastRead, GoesByLatest])
def test_who_lets_reading_count_passes(make: type[Ideal], seed: int) -> None:
    """Seen by salience, by score or by order alone, forgetting or not: reads that count are enough."""
    scored = run(make, doses(seed))
    assert set() == names(scored)
    assert scored.outcome.verdicts["C6"].opportunities


def test_the_answer_is_what_was_seen() -> None:
    """More reads, higher salience, better place: the ideal memory answers each dose strictly."""
    found = by_dose(run(Ideal, doses(0)))
    assert list(DOSES) == list(found)
    assert [5, 4, 3, 2, 1] == [dose.place for dose in found.values()]
    rises = [dose.rise or 0.0 for dose in found.values()]
    assert 0.0 == rises[0] and sorted(set(rises)) == rises
    assert all(dose.left == dose.recovered == dose.n for dose in found.values())


@pytest.mark.parametrize("make", [ForgetsLeastRead, ForgetsLeastReadBehindGlass])
def test_survival_follows_the_dose(make: type[Ideal]) -> None:
    """Where the least read goes first, what is left rises with the dose and can all be had back."""
    scored = run(make, doses(1))
    found = by_dose(scored)
    left = [dose.left or 0 for dose in found.values()]
    assert sorted(left) == left and left[0] == 0 and left[-1] == found[20].n
    assert all(dose.recovered == dose.n for dose in found.values())
    assert scored.outcome.dose and min(scored.outcome.dose.trends["survival"]) > 0


# ---------------------------------------------------------------- who does not


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("make", [OpaqueReadOnly, OpaqueCountsFirst, Whimsical, ForgetsRegardless])
def test_reads_that_do_not_count_are_inert(make: type[Ideal], seed: int) -> None:
    """Nothing moves, only the first read moves anything, or what moves does not mind reading."""
    scored = run(make, doses(seed))
    assert {"inert-retrieval"} == names(scored)
    assert scored.outcome.dose
    groups = scored.outcome.dose.groups
    assert {groups} == {scored.outcome.verdicts["C6"].violations} | {len(scored.violations)}


def test_an_order_alone_cannot_show_where_reading_stops_to_count() -> None:
    """That 20 reads stand no better than 5 takes scores to be proven: nobody is accused without."""
    assert set() == names(run(OpaqueSaturates, doses(0)))


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", sorted(m.name for m in MUTANTS.values() if set(m.families) & {"reinforcement", "dose"})
)
def test_every_defect_of_reading_has_one_name_here_too(name: str) -> None:
    """What the reinforcement family finds a memory guilty of is what doses find, and nothing else."""
    mutant = MUTANTS[name]
    found = names(run(mutant, doses(0)))
    assert set(mutant.raises) - {"observer-effect"} == found, found


def test_one_cause_is_counted_once() -> None:
    """Where salience shows each read to be inert, the groups are not accused of it again."""
    script = doses(0)
    scored = run(ReadOnly, script)
    reads = [i for i, s in enumerate(script.steps) if isinstance(s, Probe) and s.observe == "in-script"]  # fmt: skip
    assert Counter(reads) == Counter(violation.step for violation in scored.violations)


def test_too_few_groups_prove_nothing() -> None:
    """What one group shows could be chance, so that without scores it is not put to the test."""
    script = doses(0)
    asked = [(s.units, i) for i, s in enumerate(script.steps) if isinstance(s, Probe) and s.units]
    thirds = [
        i for n, (units, i) in enumerate(asked) if [u for u, _ in asked[:n]].count(units) == 2
    ]
    scored = run(Opaque, Script(script.header, script.steps[: thirds[0] + 1]))
    assert scored.outcome.dose and 1 == scored.outcome.dose.groups
    assert 0 == scored.outcome.verdicts["C6"].opportunities


def test_a_script_without_doses_has_no_response() -> None:
    """A neutral question about a pair makes no group."""
    settings = ScriptSettings(name="reinforcement", turns=100, families={"reinforcement": 1})
    assert run(Ideal, compose(settings, 0)).outcome.dose is None


# ---------------------------------------------------------------- chance

UNITS = ("a", "b", "c", "d")
PAIRS = [(one, two) for i, one in enumerate(UNITS) for two in UNITS[i + 1 :]]


def moves(signs: Sequence[int]) -> dict[tuple[str, str], int]:
    ahead = dict(zip(PAIRS, signs, strict=True))
    return ahead | {(two, one): -sign for (one, two), sign in ahead.items()}


@settings(max_examples=50, deadline=None)
@given(
    st.lists(st.lists(st.sampled_from((-1, 0, 1)), min_size=6, max_size=6), min_size=1, max_size=2)
)
def test_chance_is_what_exchanging_doses_would_do(signs: list[list[int]]) -> None:
    """Up, down and tried are by the shares of all exchanges within groups, counted one by one."""
    reads = dict(zip(UNITS, (0, 1, 2, 5), strict=True))
    groups = [moves(one) for one in signs]
    trend = Trend([(group, reads) for group in groups], chances=0)

    def total(orders: Sequence[Sequence[int]]) -> int:
        found = 0
        for group, order in zip(groups, orders, strict=True):
            given = dict(zip(UNITS, order, strict=True))
            found += sum(
                group[one, two] * (1 if given[two] > given[one] else -1) for one, two in PAIRS
            )
        return found

    totals = [total(orders) for orders in product(permutations(reads.values()), repeat=len(groups))]
    seen = total([tuple(reads.values())] * len(groups))
    assert seen == trend.total
    assert (sum(t >= seen for t in totals) / len(totals) <= LEVEL) == trend.up
    assert (sum(t <= seen for t in totals) / len(totals) <= LEVEL) == trend.down
    assert (totals.count(max(totals)) / len(totals) <= LEVEL) == trend.tried


def test_what_always_follows_the_dose_is_up_as_soon_as_that_can_be_told() -> None:
    """Three groups of four in perfect order: 1 in 24 each, together below the level."""
    reads = dict(zip(UNITS, (0, 1, 2, 5), strict=True))
    perfect = moves([1] * 6)
    for n in range(1, 5):
        trend = Trend([(perfect, reads)] * n, chances=6 * n)
        assert trend.up == trend.tried == (n >= 3)
        assert not trend.down and not trend.still
    assert Trend([(moves([0] * 6), reads)] * 2, chances=12).still
