"""The experiments of requests, policies and windows: what they run, and one of each on real data."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from omegaconf import OmegaConf
from rich.console import Console

from steeltrap.harness.commands.run import run
from steeltrap.harness.record import Evidence, Record, read_record
from steeltrap.harness.settings import Settings, cells
from steeltrap.reports.table1 import FAMILIES

QUIET = Console(quiet=True)


def planned(*asked: str) -> list[Settings]:
    return cells([*asked, "runs=r"])


@pytest.mark.parametrize(
    ("name", "turns", "runs"),
    [("token-growth", 80, 5), ("prompt-cache", 200, 5), ("summarisation-sweep", 200, 7)],
)
def test_requests_are_asked_for_with_every_turn(name: str, turns: int, runs: int) -> None:
    """Their scripts have as many turns as they say, each with its request, and no twins."""
    found = planned(f"experiment={name}", "seed=0")
    assert runs == len(found)
    assert {(turns, True, 0, name)} == {
        (c.config.script.turns, c.config.script.requests, c.config.twins, c.config.name)
        for c in found
    }
    script = found[0].script()
    assert turns == script.turns and "requests" in script.header.settings


def test_a_sweep_has_flat_history_beside_it() -> None:
    """Each trigger is a system of its own; flat has none."""
    found = planned("experiment=summarisation-sweep", "seed=0")
    triggers = ("300", "600", "1200", "2400", "4800", "9600")
    assert ["flat", *(f"summary trigger_tokens={t}" for t in triggers)] == [c.system for c in found]


def test_turns_can_be_asked_for() -> None:
    """500 turns are the same experiment."""
    asked = ("system=flat", "script.turns=500", "seed=0")
    assert 500 == planned("experiment=token-growth", *asked)[0].script().turns


# ---------------------------------------------------------------- real data


def ran(folder: Path, *asked: str) -> dict[str, Record]:
    run([*asked, f"runs={folder}"], QUIET, QUIET)
    records = [read_record(path) for path in folder.rglob("record.json")]
    return {record.spec.system: record for record in records}


def found(record: Record, k: int, window: int = 0) -> Evidence:
    """The row of all questions."""
    (row,) = [
        row for row in record.outcome.evidence
        if (row.category, row.grain, row.k, row.window, row.left_out, row.budget_tokens)
        == ("all", "turn", k, window, "", 0)
    ]  # fmt: skip
    return row


def test_policies_on_a_real_conversation(data: Path, tmp_path: Path) -> None:
    """Without a model gem reads a conversation as notes, so nothing supersedes anything: the newest
    wins as little as everything is kept. A bound is kept to, and costs evidence."""
    if not (data / "locomo").exists():
        pytest.skip("no LoCoMo here")
    asked = ["experiment=policies-locomo", f"script.path={data / 'locomo'}", "seed=0"]
    records = ran(tmp_path, *asked)
    kept, newest, bounded = (
        records[f"gem-words policies={name}"]
        for name in ("keep-everything", "newest-wins", "authority-and-retention")
    )
    assert found(kept, 10) == found(newest, 10)
    assert found(bounded, 10).recall < found(kept, 10).recall
    ((_, _, active, _, _),) = bounded.outcome.footprint
    ((_, items, everything, _, _),) = kept.outcome.footprint
    assert active <= 4000 < everything
    # every turn is one note: its speaker and words are all there
    assert kept.outcome.turns == items


def test_neighbours_raise_recall_on_a_real_conversation(data: Path, tmp_path: Path) -> None:
    """Prompt recall is never below top-k recall, and costs tokens."""
    if not (data / "locomo").exists():
        pytest.skip("no LoCoMo here")
    asked = ["experiment=topk", f"script.path={data / 'locomo'}", "seed=0", "system=bm25"]
    (record,) = ran(tmp_path, *asked).values()
    rows = [found(record, 25, window) for window in (0, 1, 2)]
    assert sorted(row.recall for row in rows) == [row.recall for row in rows]
    assert rows[0].recall + 0.1 < rows[1].recall and rows[0].tokens < rows[1].tokens


def test_table_1_runs_a_system_of_every_row(root: Path) -> None:
    """Every row of the paper's table, and both other seeds, have a system in the experiment, five seeds each."""
    asked = OmegaConf.load(root / "configs" / "experiment" / "table1.yaml")
    parts = [" ".join(part).replace("\n", " ") for part in asked.parts]
    assert {"range(0,5)"} == {re.search(r"seed=(\S+)", part)[1] for part in parts}  # type: ignore[index]
    for part in parts[:3]:
        listed = re.search(r"system=([\w, -]+?) (?:seed=|$)", part)
        assert listed
        systems = {name.strip() for name in listed[1].split(",")}
        missing = [family.name for family in FAMILIES if not systems & set(family.systems)]
        assert missing == []
