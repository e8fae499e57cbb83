"""Recall at an equal context budget: what the first items that fit into it answer."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest

from steeltrap.adapters.ideal import Ideal
from steeltrap.harness.checks import score
from steeltrap.harness.drive import drive
from steeltrap.harness.history import read_events, read_header
from steeltrap.harness.memory import Item, Query
from steeltrap.harness.readers import Oracle
from steeltrap.harness.record import Outcome
from steeltrap.harness.tokens import count
from steeltrap.workloads.compose import ScriptSettings, compose

TALK = "Lunch was late again today, and nobody minded it very much at all. " * 10
SCRIPT = compose(ScriptSettings(name="stale-echo", turns=40, families={"stale-echo": 1}), 0)


class Talkative(Ideal):
    """Serves small talk before, or behind, what answers the question."""

    def __init__(self, before: int, behind: int = 0) -> None:
        self._before, self._behind = before, behind

    def retrieve(self, query: Query) -> Sequence[Item]:
        talk = [Item(TALK, f"talk-{n}") for n in range(self._before + self._behind)]
        return [*talk[: self._before], *super().retrieve(query), *talk[self._before :]]


def outcome(memory: Ideal) -> Outcome:
    memory.told(SCRIPT)
    with tempfile.TemporaryDirectory() as folder:
        memory.open(Path(folder))
        history = Path(folder) / "history.jsonl"
        drive(memory, SCRIPT, history, limit=10)
        able = read_header(history).capabilities
        return score(SCRIPT, read_events(history), capabilities=able, reader=Oracle()).outcome


@pytest.mark.parametrize(
    ("before", "behind", "missing"),
    [(0, 0, ()), (0, 5, ()), (1, 0, ("100",)), (3, 0, ("100", "250")), (9, 0, ("100", "250", "500", "1000"))],
)  # fmt: skip
def test_recall_within_a_budget_is_of_what_fits_into_it(
    before: int, behind: int, missing: Sequence[str]
) -> None:
    """What stands behind more tokens than there are is not read, what stands before them is."""
    assert 100 < count(TALK) < 160
    found = outcome(Talkative(before, behind))
    assert 1.0 == found.recall
    assert {"100", "250", "500", "1000"} == set(found.recall_within)
    for budget, recall in found.recall_within.items():
        assert (0.0 if budget in missing else 1.0) == recall, budget
