"""A stored run as it can be looked at agrees with its script, its history and its violations."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from steeltrap.harness.cli import main
from steeltrap.harness.history import HistoryError, read_events
from steeltrap.harness.record import RecordError
from steeltrap.harness.retrace import ITEMS, played, story
from steeltrap.harness.script import Audit, Probe, Script, Turn, topic_of
from steeltrap.harness.store import Cell, read_cell
from steeltrap.harness.trajectory import LONGEST, Played, Story
from steeltrap.harness.verdict import Violation


@pytest.fixture(scope="module")
def cell(tmp_path_factory: pytest.TempPathFactory) -> Cell:
    """A finished run of a memory that supersedes nothing, with a shrunk conversation beside it."""
    runs = tmp_path_factory.mktemp("runs")
    asked = ["system=vector", "script=adversarial", "script.turns=120", "script.surface.paste=0.2"]
    assert main(["run", *asked, f"runs={runs}"]) == 0
    (folder,) = (path.parent for path in runs.rglob("record.json"))
    shown = ["shrink", str(folder), "exposed-history", "budget_runs=40", "budget_s=0"]
    assert main(shown) == 0
    return read_cell(folder)


@pytest.fixture(scope="module")
def script(cell: Cell) -> Script:
    return Script.read(cell.script)


@pytest.fixture(scope="module")
def told(script: Script) -> Story:
    return story(script)


@pytest.fixture(scope="module")
def run(cell: Cell, script: Script, told: Story) -> Played:
    return played(cell, script, told)


def marked(cell: Cell) -> Iterator[Violation]:
    for line in cell.violations.read_bytes().splitlines():
        yield msgspec.json.decode(line, type=Violation)


def test_a_story_has_a_line_for_each_step(script: Script, told: Story) -> None:
    """Lines are the steps in order, and count the turns up to each."""
    assert [step.id for step in script.steps] == [line.id for line in told.lines]
    assert script.turns == told.turns == told.lines[-1].turn
    assert script.sha256() == told.sha256
    spoken = [line.turn for line in told.lines if line.kind == "turn"]
    assert list(range(1, script.turns + 1)) == spoken


def test_units_are_numbered_as_they_are_first_spoken_of(script: Script, told: Story) -> None:
    """Every unit that changes has one lane, and lanes stand in order of first sight."""
    changed = {change.unit for step in script.steps for change in step.changes}
    assert changed <= {unit.id for unit in told.units}
    assert len(told.units) == len({unit.id for unit in told.units})
    assert [unit.first for unit in told.units] == sorted(unit.first for unit in told.units)
    for step, line in zip(script.steps, told.lines, strict=True):
        assert [c.unit for c in step.changes] == [told.units[c.unit].id for c in line.changes]
        if isinstance(step, Probe) and step.unit:
            assert step.unit == told.units[line.unit or 0].id


def test_long_texts_are_cut_and_say_so(script: Script, told: Story) -> None:
    """A paste is kept up to `LONGEST` characters, with its whole length beside it."""
    cut = [(s, line) for s, line in zip(script.steps, told.lines, strict=True) if line.chars]
    assert cut
    for step, line in cut:
        assert isinstance(step, Turn)
        assert (len(step.text), step.text[:LONGEST]) == (line.chars, line.text)


def test_each_step_has_what_became_of_it(cell: Cell, run: Played) -> None:
    """Outcomes stand in the order of the history, with what was served and how it was seen."""
    events = list(read_events(cell.history))
    assert [(e.i, e.type, e.via, e.tokens) for e in events] == [
        (s.i, s.type, s.via, s.tokens) for s in run.shown
    ]
    for shown in run.shown:
        assert len(shown.items) == len(shown.places) <= min(ITEMS, shown.given)
        assert all(0 <= number < len(run.items) for number in shown.items)


def test_what_speaks_of_the_unit_stands_first(script: Script, told: Story, run: Played) -> None:
    """Of what a look-up gave, items on the unit are kept before others, in the order given."""
    audits = [s for s in run.shown if told.lines[s.i].kind == "audit" and len(s.items) > 1]
    assert audits
    moved = 0
    for shown in audits:
        step = script.steps[shown.i]
        assert isinstance(step, Audit)
        on_it = [topic_of(step.unit) in run.items[number].text for number in shown.items]
        first, *_, last = shown.places
        moved += shown.places != sorted(shown.places)
        assert shown.places[on_it.count(True) :] == sorted(shown.places[on_it.count(True) :])
        assert first and last
    assert moved


def test_verdicts_are_those_that_the_run_was_scored_with(cell: Cell, run: Played) -> None:
    """What each probe was judged adds up to the record's answers."""
    record = cell.finished()
    assert record is not None
    counts: dict[str, int] = {}
    told = story(Script.read(cell.script))
    for shown in run.shown:
        if shown.verdict and told.lines[shown.i].ask == "current":
            counts[shown.verdict] = counts.get(shown.verdict, 0) + 1
    assert record.outcome.answers == counts
    for name, verdict in record.outcome.verdicts.items():
        assert verdict.violations == run.verdicts[name]["violations"]


def test_an_answer_names_the_turn_that_wrote_it(told: Story, run: Played) -> None:
    """The turns behind an answer told its unit that very value."""
    by_id = {line.id: line for line in told.lines}
    answered = [shown for shown in run.shown if shown.by]
    assert answered
    for shown in answered:
        unit = told.lines[shown.i].unit
        for turn in shown.by:
            values = [done.value for done in by_id[turn].ops if done.unit == unit]
            assert any(value in shown.answer for value in values)


def test_marks_are_the_violations_of_the_run(cell: Cell, told: Story, run: Played) -> None:
    """Every violation that was found is there, at its step and in its lane."""
    found = [(v.step, v.name, v.unit, v.expected, v.observed) for v in marked(cell)]
    assert found
    lanes = [told.units[m.unit].id if m.unit is not None else "" for m in run.violations]
    assert found == [
        (m.i, m.name, unit, m.expected, m.observed)
        for m, unit in zip(run.violations, lanes, strict=True)
    ]


@pytest.mark.parametrize(
    "broken",
    [None, b"", b"[]\n", b'{"name": "stale-re', b'{"a": 1}\n', b"\x00"],
    ids=["missing", "empty", "list", "torn", "foreign", "binary"],
)
def test_violations_that_are_not_those_of_the_record_are_refused(
    cell: Cell, script: Script, told: Story, tmp_path: Path, broken: bytes | None
) -> None:
    """A run never looks better than its record says because a file is gone or torn."""
    folder = tmp_path / "run"
    shutil.copytree(cell.folder, folder)
    (folder / "violations.jsonl").unlink()
    if broken is not None:
        (folder / "violations.jsonl").write_bytes(broken)
    with pytest.raises(RecordError, match=r"violations\.jsonl: .*`steeltrap score "):
        played(read_cell(folder), script, told)


@pytest.mark.parametrize("swapped", ["script.jsonl", "history.jsonl"])
def test_files_of_another_run_are_refused(cell: Cell, tmp_path: Path, swapped: str) -> None:
    """Nobody's answers are drawn over the truth of another script."""
    asked = ["system=flat", "script=revision-chain", "script.turns=8", f"runs={tmp_path / 'other'}"]
    assert main(["run", *asked]) == 0
    (other,) = (tmp_path / "other").rglob(swapped)
    shutil.copytree(cell.folder, tmp_path / "run")
    shutil.copy(other, tmp_path / "run" / swapped)
    mixed = read_cell(tmp_path / "run")
    script = Script.read(mixed.script)
    with pytest.raises(HistoryError, match="the history of another script"):
        played(mixed, script, story(script))


def test_an_unknown_reader_is_named(cell: Cell, script: Script, told: Story) -> None:
    """A run that another version's reader read is refused by name."""
    other = Cell(cell.folder, msgspec.structs.replace(cell.spec, reader="nobody"))
    with pytest.raises(RecordError, match="read by 'nobody'; this steeltrap has: oracle"):
        played(other, script, told)


def test_a_shrunk_conversation_stands_beside_its_run(run: Played) -> None:
    """What `shrink` left below a run is told with it."""
    (witness,) = run.witnesses
    assert ("exposed-history", "shrunk/exposed-history.jsonl") == (witness.name, witness.file)
    assert witness.story.turns <= 4
    assert witness.limit is None


def test_is_the_same_each_time(cell: Cell, script: Script, told: Story, run: Played) -> None:
    """The same files give the same bytes."""
    again = played(cell, script, story(script))
    assert msgspec.json.encode(run) == msgspec.json.encode(again)
    assert msgspec.json.encode(told) == msgspec.json.encode(story(script))


def test_a_run_without_a_script_of_its_own_is_none(tmp_path: Path) -> None:
    """A folder that holds no run is refused by name."""
    from steeltrap.harness.store import StoreError

    with pytest.raises(StoreError, match="cannot be read"):
        read_cell(tmp_path)
