"""What decides what is put away, and which rules are followed, is told apart."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path
from typing import ClassVar

import msgspec
import pytest

from steeltrap.adapters.ideal import Ideal
from steeltrap.adapters.mutants.dependency import IgnoresReviewRules, NeverPropagates, ScalesWrongly
from steeltrap.harness.checks import score
from steeltrap.harness.drive import drive
from steeltrap.harness.history import read_events, read_header
from steeltrap.harness.memory import Item, Subject
from steeltrap.harness.readers import Oracle
from steeltrap.harness.record import Kept, Outcome
from steeltrap.harness.script import Gauge, Script
from steeltrap.workloads.compose import ScriptSettings, compose

QUIET = 100_000
"""No audit comes between: it would read what is to be left alone."""


@cache
def script(family: str, turns: int) -> Script:
    settings = ScriptSettings(name=family, turns=turns, families={family: 1}, audit_every=QUIET)
    return compose(settings, 0)


@cache
def run(make: Callable[[], Ideal], family: str, turns: int = 170) -> Outcome:
    memory = make()
    memory.told(script(family, turns))
    with tempfile.TemporaryDirectory() as folder:
        memory.open(Path(folder))
        history = Path(folder) / "history.jsonl"
        drive(memory, script(family, turns), history, limit=10)
        return score(
            script(family, turns), read_events(history),
            capabilities=read_header(history).capabilities, reader=Oracle(),
        ).outcome  # fmt: skip


class Chooses(Ideal):
    """Lists so many units: the first by what it goes by, the latest of those that are equal."""

    room: ClassVar[int] = 22

    def by(self, name: str) -> float:
        """The higher the safer."""
        raise NotImplementedError(name)

    def active(self, tenant: str) -> Sequence[Item]:
        known = [*self.world.by_tenant.get(tenant, {})][::-1]
        names = sorted(known, key=self.by, reverse=True)
        return [item for name in names[: self.room] for item in self.listed(name)]


class ByAge(Chooses):
    def by(self, name: str) -> float:
        return self.world.units[name].entries[0].arrival


class ByImportance(Chooses):
    room: ClassVar[int] = 16

    def by(self, name: str) -> float:
        return {"vital": 2.0, "normal": 1.0, "trivial": 0.0}[self.world.units[name].importance]


class ByUse(Chooses):
    room: ClassVar[int] = 16

    def by(self, name: str) -> float:
        return self.saliences.get(name, 0.0)


class ByTime(Ideal):
    """Lists what was told within 60 days before the last maintenance."""

    since = ""

    def maintain(self, at: str) -> None:
        super().maintain(at)
        self.since = (datetime.fromisoformat(at) - timedelta(days=60)).isoformat()

    def active(self, tenant: str) -> Sequence[Item]:
        return [item for item in super().active(tenant) if (item.valid_from or "") >= self.since]


def share(kept: list[Kept], when: str, **kind: bool) -> float:
    rows = [row for row in kept if row.when == when and all(getattr(row, k) == v for k, v in kind.items())]  # fmt: skip
    return sum(row.left for row in rows) / sum(row.n for row in rows)


def effects(kept: list[Kept], when: str) -> dict[str, float]:
    return {
        factor: share(kept, when, **{factor: True}) - share(kept, when, **{factor: False})
        for factor in ("late", "vital", "read")
    }


def test_every_combination_is_tried_alike() -> None:
    """Eight kinds, each as often as every other, looked at twice, and nothing is gone by itself."""
    kept = run(Ideal, "retention").retention
    assert len(kept) == 16
    assert {row.n for row in kept} == {kept[0].n} and kept[0].n >= 3
    assert all(row.left == row.n for row in kept)


@pytest.mark.parametrize(
    ("make", "factor"), [(ByAge, "late"), (ByImportance, "vital"), (ByUse, "read")]
)
def test_what_decides_is_what_the_survivors_share(make: type[Ideal], factor: str) -> None:
    """A memory that goes by one thing shows an effect of that, and of nothing else."""
    found = effects(run(make, "retention").retention, "told")
    assert found.pop(factor) > 0.6
    assert max(map(abs, found.values())) < 0.4


def test_time_is_told_from_room() -> None:
    """What runs out by itself is there after the pressure and gone after the silence."""
    kept = run(ByTime, "retention").retention
    assert share(kept, "told") == 1.0
    assert share(kept, "waited") == 0.0


def test_what_is_had_back_is_counted() -> None:
    """Of what is gone after the silence, that which an explicit recovery gives; before it, nobody looked."""
    kept = run(ByUse, "retention").retention
    assert {None} == {row.back for row in kept if row.when == "told"}
    waited = [row for row in kept if row.when == "waited"]
    assert sum(row.n - row.left for row in waited) == sum(row.back or 0 for row in waited) > 0


class ForGood(ByUse):
    def recover(self, subject: Subject) -> Sequence[Item]:
        return super().recover(subject)[:0]


def test_what_is_lost_for_good_is_not_had_back() -> None:
    """A recovery that gives nothing counts nothing."""
    assert {0} == {row.back for row in run(ForGood, "retention").retention if row.when == "waited"}


def test_a_look_that_failed_leaves_its_group_out() -> None:
    """Another group's look stands in for none that failed."""
    made, memory = script("retention", 170), ByAge()
    memory.told(made)
    with tempfile.TemporaryDirectory() as folder:
        memory.open(Path(folder))
        history = Path(folder) / "history.jsonl"
        drive(memory, made, history, limit=10)
        events = list(read_events(history))
        capabilities = read_header(history).capabilities
    looks = [i for i, step in enumerate(made.steps) if isinstance(step, Gauge) and step.family == "retention"]  # fmt: skip
    at = next(n for n, event in enumerate(events) if event.i == looks[3])
    events[at] = msgspec.structs.replace(events[at], type="fail", error="no answer")
    kept = score(made, events, capabilities=capabilities, reader=Oracle()).outcome.retention
    whole = run(ByAge, "retention").retention
    assert {row.n for row in kept} == {whole[0].n - 1}
    lost = [row.left - less.left for row, less in zip(whole, kept, strict=True)]
    assert set(lost) <= {0, 1}, "the other groups stand as they stood"


class TakesInWhatMatters(Ideal):
    """What is trivial is never active."""

    def active(self, tenant: str) -> Sequence[Item]:
        names = self.world.by_tenant.get(tenant, {})
        kept = [name for name in names if self.world.units[name].importance != "trivial"]
        return [item for name in kept for item in self.listed(name)]


def test_what_was_never_taken_in_was_not_put_away() -> None:
    """A memory that leaves trivial things out puts nothing away, and importance keeps nothing there."""
    kept = run(TakesInWhatMatters, "retention").retention
    assert {True} == {row.vital for row in kept}
    assert all(row.left == row.n for row in kept)


class Mute(ByUse):
    """Nothing can be recovered; a question is answered all the same."""

    recover = None  # type: ignore[assignment]


def test_without_recovery_the_question_tells() -> None:
    """What is not listed any more and still answered was had back."""
    waited = [row for row in run(Mute, "retention").retention if row.when == "waited"]
    assert sum(row.n - row.left for row in waited) == sum(row.back or 0 for row in waited) > 0


def test_nothing_else_is_counted() -> None:
    """Other scripts try nothing of it."""
    assert run(Ideal, "dependency-cascade").retention == []


def missed(outcome: Outcome) -> dict[str, tuple[bool, bool]]:
    """By rule, whether any was missed, and whether all were."""
    return {kind: (row[0] > 0, row[0] == row[3]) for kind, row in outcome.by_rule.items()}


def test_rules_are_counted_apart() -> None:
    """Each kind of rule has its own count, and a defect shows in its own kind alone."""
    kinds = {"offset", "same", "scaled", "review"}
    sound = run(Ideal, "dependency-cascade").by_rule
    assert set(sound) == kinds
    assert all(not row[0] and not row[1] and row[3] for row in sound.values())
    assert sound["review"][2] == sound["review"][3]
    assert all(any_ for any_, _ in missed(run(NeverPropagates, "dependency-cascade")).values())
    ignoring = missed(run(IgnoresReviewRules, "dependency-cascade"))
    assert {kind for kind, (any_, _) in ignoring.items() if any_} == {"review"}
    scaling = run(ScalesWrongly, "dependency-cascade").by_rule
    assert {kind for kind, row in scaling.items() if row[1]} == {"scaled"}
