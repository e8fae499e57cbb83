"""Stored runs as columns: what the files say, and nothing else."""

from __future__ import annotations

import csv
from collections import Counter
from pathlib import Path

import msgspec
import pandas as pd
import pyarrow.parquet as pq
import pytest

from steeltrap.harness import columns
from steeltrap.harness.cli import main
from steeltrap.harness.columns import COLUMNS, USAGE, batches, finished, frame, schema, write
from steeltrap.harness.history import Event, read_events
from steeltrap.harness.metrics import PHASES
from steeltrap.harness.models import Usage
from steeltrap.harness.record import RecordError, read_record
from steeltrap.harness.script import Audit, Gauge, Probe, Script, Turn
from steeltrap.harness.store import Cell, StoreError
from steeltrap.harness.verdict import Violation


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A memory without models and one that asks them, on a script of all families."""
    folder = tmp_path_factory.mktemp("runs")
    assert 0 == main(["run", "system=flat,summary", "script.turns=40", "twins=0", f"runs={folder}"])
    return folder


@pytest.fixture
def cells(runs: Path) -> list[Cell]:
    found = finished([runs])
    assert ["flat", "summary"] == [cell.spec.system for cell in found]
    return found


def of(rows: pd.DataFrame, cell: Cell) -> list[dict[str, object]]:
    """The rows of one run, without what is null."""
    own = rows[rows["run"] == cell.folder.name].to_dict("records")
    return [{str(key): value for key, value in row.items() if not pd.isna(value)} for row in own]


def test_rows_say_what_script_and_history_say(runs: Path, cells: list[Cell]) -> None:
    """A row a step, in order; every field of step and event stands in its column, and null is none."""
    rows = frame(runs)
    kinds = set()
    for cell in cells:
        steps, turn = Script.read(cell.script).steps, 0
        found = of(rows, cell)
        events = list(read_events(cell.history))
        assert len(steps) == len(events) == len(found)
        for step, event, row in zip(steps, events, found, strict=True):
            turn += isinstance(step, Turn)
            kinds.add(type(step))
            assert (event.i, turn, step.id, event.type) == tuple(row[k] for k in ("i", "turn", "id", "type"))  # fmt: skip
            assert (type(step).__name__.lower(), PHASES[type(step)]) == (row["kind"], row["phase"])
            assert pd.Timestamp(step.at) == row["at"]
            assert (event.ms, event.settle_ms) == (row["ms"], row["settle_ms"])
            assert [step.tenant, step.family, event.error, event.worker, event.via] == [
                row.get(key, "") for key in ("tenant", "family", "error", "worker", "via")
            ]
            assert (step.ask, step.unit, step.lag, step.hop) == tuple(
                row.get(key) for key in ("ask", "unit", "lag_turns", "hop")
            ) if isinstance(step, Probe) else "ask" not in row  # fmt: skip
            assert _counts(step, event) == {
                key: row[key] for key in row if key in _COUNTS
            }  # fmt: skip
            assert _usage(event) == {
                key: value for key, value in row.items() if key.endswith(tuple(USAGE))
            }
    assert len(kinds) >= 5


_COUNTS = ("served_items", "served_tokens", "active_items", "active_tokens", "true_items", "true_tokens", "size_bytes")  # fmt: skip


def _counts(step: object, event: Event) -> dict[str, int]:
    """What the columns of counts should hold, said once more."""
    if isinstance(step, Probe):
        return {"served_items": len(event.served), "served_tokens": event.tokens}
    if isinstance(step, Audit):
        given = event.served if event.versions is None else event.versions
        return {"served_items": len(given), "served_tokens": event.tokens}
    if not isinstance(step, Gauge):
        return {}
    told = {"true_items": step.footprint[0], "true_tokens": step.footprint[1]}
    if event.via == "listing":
        told |= {"active_items": event.items, "active_tokens": event.tokens}
    return told | ({} if event.size_bytes is None else {"size_bytes": event.size_bytes})


def _usage(event: Event) -> dict[str, float]:
    return {
        f"{phase}_{end}": getattr(used, field)
        for phase, used in event.usage.items()
        for end, field in USAGE.items()
    }


def test_usage_adds_up_to_that_of_the_record(runs: Path, cells: list[Cell]) -> None:
    """There are columns for the phases in which models were asked, and none for others."""
    rows = frame(runs)
    asked: dict[str, Usage] = read_record(cells[1].record).outcome.usage
    assert asked
    assert {f"{phase}_{end}" for phase in asked for end in USAGE} == set(rows) - {c.name for c in COLUMNS}  # fmt: skip
    for phase, usage in asked.items():
        for end, field in USAGE.items():
            if field != "ms":
                assert getattr(usage, field) == rows[f"{phase}_{end}"].sum()
    assert {c.name for c in COLUMNS} == set(schema(cells[:1]).names)


def test_violations_stand_at_the_steps_that_showed_them(runs: Path, cells: list[Cell]) -> None:
    """All of them, by name, and each once."""
    rows = frame(runs)
    for cell in cells:
        lines = cell.violations.read_bytes().splitlines()
        stored = [msgspec.json.decode(line, type=Violation) for line in lines]
        shown = Counter(
            (row["i"], name) for row in of(rows, cell) for name in str(row.get("violations", "")).split()
        )  # fmt: skip
        assert Counter((one.step, one.name) for one in stored) == shown
        assert shown


def test_a_file_holds_the_same_rows_whatever_its_form(
    runs: Path, cells: list[Cell], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Parquet and CSV, in batches of any size; nothing is left beside them."""
    rows = frame(runs)
    seen: list[int] = []
    monkeypatch.setattr(columns, "ROWS", 100)
    parquet, text = tmp_path / "made" / "rows.parquet", tmp_path / "made" / "rows.csv"
    assert len(rows) == write(cells, parquet, on_rows=seen.append) == write(cells, text)
    assert sum(seen) == len(rows)
    assert max(seen) == 100
    table = pq.read_table(parquet)
    assert [row for batch in batches(cells) for row in batch.to_pylist()] == table.to_pylist()
    assert schema(cells).equals(table.schema)
    with text.open(newline="") as lines:
        read = list(csv.DictReader(lines))
    assert [str(i) for i in rows["i"]] == [row["i"] for row in read]
    assert list(rows) == list(read[0])
    assert ["rows.csv", "rows.parquet"] == sorted(path.name for path in parquet.parent.iterdir())


def test_the_command_writes_what_it_says(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A file by its name; one that cannot be made is said in a sentence, and one that is there stays."""
    file = tmp_path / "rows.parquet"
    assert 0 == main(["columns", str(runs), str(runs), "--to", str(file)])
    rows = pq.read_table(file).num_rows
    assert f"({rows} rows of 2 runs)" in capsys.readouterr().out.replace("\n", " ")
    assert rows == len(frame(runs))
    assert 2 == main(["columns", str(runs), "--to", str(tmp_path / "rows.xlsx")])
    assert "ends in .parquet or .csv" in capsys.readouterr().err
    assert 1 == main(["columns", str(tmp_path), "--to", str(file)])
    assert "holds no finished run" in capsys.readouterr().err
    assert 1 == main(["columns", str(runs), "--to", str(file / "rows.csv")])
    assert "cannot be written" in capsys.readouterr().err
    assert rows == pq.read_table(file).num_rows


def test_violations_of_something_else_are_refused(
    cells: list[Cell], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No violation is left out in silence: the message says how to make them again."""
    lines = cells[0].violations.read_bytes().splitlines(keepends=True)
    late = b'{"name":"stale-read","condition":"C1","step":99999,"began":"t1"}\n'
    for broken, why in (
        ([lines[-1], *lines], "not in the order"),
        ([*lines, late], "steps that the history does not have"),
        ([*lines, b"{"], "steeltrap score"),
    ):
        cells[0].violations = tmp_path / "violations.jsonl"
        cells[0].violations.write_bytes(b"".join(broken))
        with pytest.raises(RecordError, match=why):
            write(cells, tmp_path / "rows.csv")
        assert ["violations.jsonl"] == [path.name for path in tmp_path.iterdir()]


def test_what_is_not_there_is_said(tmp_path: Path) -> None:
    """A folder that does not exist is not one without runs."""
    with pytest.raises(StoreError, match="does not exist"):
        frame(tmp_path / "nowhere")
