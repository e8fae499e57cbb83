"""One cell from nothing to its record, and again from its files."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from steeltrap.adapters.flat import Flat
from steeltrap.adapters.ideal import Ideal
from steeltrap.harness.drive import RunStopped
from steeltrap.harness.history import HistoryError
from steeltrap.harness.memory import Memory, MemoryFault
from steeltrap.harness.readers import Oracle, Top1
from steeltrap.harness.record import read_record
from steeltrap.harness.remote import Remote
from steeltrap.harness.run import run_cell, score_cell
from steeltrap.harness.script import Script
from steeltrap.harness.store import Cell, open_cell, run_spec
from steeltrap.workloads.compose import ScriptSettings, compose
from steeltrap.workloads.figure1 import figure_1


@pytest.fixture(scope="module")
def script() -> Script:
    families = {"reinforcement": 1.0, "authority": 1.0}
    return compose(ScriptSettings(name="mixed", turns=150, families=families), 2)


def cell(folder: Path, script: Script, system: str = "flat") -> Cell:
    spec = run_spec(script, system=system, settings={}, reader="oracle", limit=10)
    return open_cell(folder, spec, script)


def outcome(folder: Cell) -> bytes:
    return msgspec.json.encode(read_record(folder.record).outcome)


@pytest.mark.parametrize("make", [Flat, Ideal])
@pytest.mark.parametrize("share", [0.1, 0.6, 0.95])
def test_a_run_that_was_killed_ends_in_the_same_record(
    script: Script, tmp_path: Path, make: type[Memory], share: float
) -> None:
    """Cut in the main history or in a twin's, the run is taken up to the same outcome."""
    assert script.header.twins
    whole, cut = cell(tmp_path / "whole", script), cell(tmp_path / "cut", script)
    run_cell(whole, make, script, Oracle())
    run_cell(cut, make, script, Oracle())
    for history in (cut.history, *sorted(cut.twins.glob("*.jsonl"))):
        data = history.read_bytes()
        history.write_bytes(data[: int(len(data) * share)])
        cut.record.unlink()
        run_cell(cut, make, script, Oracle())
        assert outcome(whole) == outcome(cut)


def test_scoring_again_gives_the_same_record(script: Script, tmp_path: Path) -> None:
    """A stored run is scored from its files alone, by whatever reader."""
    folder = cell(tmp_path, script)
    first = run_cell(folder, Flat, script, Oracle())
    violations = folder.violations.read_bytes()
    assert first.outcome == score_cell(folder, Script.read(folder.script)).outcome
    assert violations == folder.violations.read_bytes()
    assert first.outcome.recall != score_cell(folder, script, Top1()).outcome.recall


def test_a_truncated_history_is_not_scored(script: Script, tmp_path: Path) -> None:
    """Half a run has no record."""
    folder = cell(tmp_path, script)
    run_cell(folder, Flat, script, Oracle())
    folder.history.write_bytes(folder.history.read_bytes()[:-9])
    with pytest.raises(HistoryError, match="run it again to go on"):
        score_cell(folder, script)
    lines = folder.history.read_bytes().splitlines(keepends=True)
    folder.history.write_bytes(b"".join(lines[:99]))
    with pytest.raises(HistoryError, match=r"ends after 49 of \d+ steps; run it again to go on"):
        score_cell(folder, script)


def test_a_truncated_twin_is_not_scored(script: Script, tmp_path: Path) -> None:
    """Half a twin says nothing about reading, so it is refused like half a run."""
    folder = cell(tmp_path, script)
    run_cell(folder, Flat, script, Oracle())
    twin = next(folder.twins.glob("*.history.jsonl"))
    twin.write_bytes(b"".join(twin.read_bytes().splitlines(keepends=True)[:51]))
    with pytest.raises(HistoryError, match=r"ends after 25 of \d+ steps; run it again to go on"):
        score_cell(folder, script)


def test_nothing_of_the_memory_is_left_behind(script: Script, tmp_path: Path) -> None:
    """When a run is whole, its folder holds what results are made from and nothing else."""
    folder = cell(tmp_path, script)
    run_cell(folder, Flat, script, Oracle())
    left = sorted(path.name for path in folder.folder.iterdir())
    assert ["history.jsonl", "record.json", "script.jsonl", "spec.json", "twins", "violations.jsonl"] == left  # fmt: skip


def test_reading_is_inert_in_a_transcript_and_not_in_the_ideal_memory(tmp_path: Path) -> None:
    """The twins of figure 1 tell a read-only memory from one that adapts."""
    script = figure_1()
    flat = run_cell(cell(tmp_path, script), lambda: Flat(window_turns=12), script, Oracle())
    assert 1 == flat.outcome.verdicts["C6"].names["inert-retrieval"].violations
    ideal = run_cell(cell(tmp_path, script, "ideal"), Ideal, script, Oracle())
    assert "held" == ideal.outcome.verdicts["C6"].validity


def test_figure_1_shows_its_four_failures_on_a_window_and_none_on_the_ideal(tmp_path: Path) -> None:
    """Growth, missing revision, forgetting by age, read-only retrieval: each where it belongs."""
    script = figure_1()
    window = run_cell(cell(tmp_path, script), lambda: Flat(window_turns=12), script, Oracle())
    found = {
        name
        for verdict in window.outcome.verdicts.values()
        for name, tally in verdict.names.items()
        if tally.violations
    }
    failures = {"over-bound", "superseded-active", "missed-propagation", "inverted-retention", "inert-retrieval"}  # fmt: skip
    assert failures <= found
    ideal = run_cell(cell(tmp_path, script, "ideal"), Ideal, script, Oracle())
    verdicts = {c: v.validity for c, v in ideal.outcome.verdicts.items() if c != "beyond"}
    assert dict.fromkeys(("C1", "C2", "C3", "C4", "C5", "C6"), "held") == verdicts


def test_what_cannot_be_observed_is_unknown_and_never_held(tmp_path: Path) -> None:
    """A memory that shows nothing but answers is not credited with what was not seen."""

    class Closed(Ideal):
        active = history = salience = recover = None  # type: ignore[assignment]

    script = compose(ScriptSettings(name="revision-chain", turns=80, families={"revision-chain": 1}), 1)  # fmt: skip
    record = run_cell(cell(tmp_path, script, "closed"), Closed, script, Oracle())
    validities = {c: v.validity for c, v in record.outcome.verdicts.items()}
    assert {"C1": "held", "C2": "unknown", "C3": "unknown", "C4": "unknown", "C5": "unknown", "C6": "unknown"} == {c: validities[c] for c in validities if c != "beyond"}  # fmt: skip
    assert "the state cannot be listed" in record.outcome.verdicts["C2"].note


class _Shut(Flat):
    """A memory that cannot be opened."""

    def open(self, folder: Path) -> None:
        raise MemoryFault(f"shut: SHUT_KEY is not set, so {folder.name} stays empty")


def test_a_memory_that_cannot_be_opened_stops_its_own_run_alone(
    script: Script, tmp_path: Path
) -> None:
    """It is said in the memory's words, and nothing is recorded that could be taken for a result."""
    shut = cell(tmp_path, script)
    with pytest.raises(RunStopped, match="cannot be opened: shut: SHUT_KEY is not set"):
        run_cell(shut, _Shut, script, Oracle())
    assert not shut.record.exists()


def test_a_memory_in_a_worker_that_has_its_own_embedder_can_be_run(tmp_path: Path) -> None:
    """Only the name of its embedder is here: its files are searched without vectors."""
    embedder = {"_target_": "steeltrap.adapters.embedders.hashed.HashEmbedder"}
    node = {"_target_": "steeltrap.adapters.vector.Vector", "embedder": embedder}
    script = compose(ScriptSettings(name="erased", turns=40, families={"erasure": 1.0}), 0)
    record = run_cell(cell(tmp_path, script), lambda: Remote(node), script, Oracle())
    assert record.outcome.failed == 0


@pytest.mark.parametrize("repeats", [0, 1])
def test_what_differs_from_a_twin_is_held_against_runs_of_the_same_script(
    tmp_path: Path, repeats: int
) -> None:
    """Where the script was run again, the record says what those runs differ in; half of one is refused."""
    families = {"leak-asking": 1.0}
    script = compose(ScriptSettings(name="leak-asking", turns=40, families=families), 0)
    spec = run_spec(script, system="flat", settings={}, reader="oracle", limit=10, repeats=repeats)
    made = open_cell(tmp_path, spec, script)
    record = run_cell(made, Flat, script, Oracle())
    assert record.outcome.effects
    assert bool(repeats) == any(effect.null is not None for effect in record.outcome.effects)
    assert repeats == len(made.repeats())
    for half in made.repeats():
        half.write_bytes(b"".join(half.read_bytes().splitlines(keepends=True)[:51]))
        with pytest.raises(HistoryError, match=r"again-0.*ends after 25 of .* steps"):
            score_cell(made, script)


@pytest.mark.parametrize("asks", [True, False])
def test_a_script_that_asks_with_its_turns_has_its_requests_in_the_record(
    tmp_path: Path, asks: bool
) -> None:
    """Turn by turn; another script has none."""
    script = compose(ScriptSettings(name="asking", turns=20, requests=asks), 0)
    outcome = run_cell(cell(tmp_path, script), Flat, script, Oracle()).outcome
    assert (20 if asks else 0) == len(outcome.requests)
