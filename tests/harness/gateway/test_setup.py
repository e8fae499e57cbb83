"""Runs of a system whose model calls go to a server, a recording, a budget or through faults."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from rich.console import Console

from steeltrap.adapters.embedders import HashEmbedder
from steeltrap.adapters.gem.answers import answer
from steeltrap.harness.cli import main
from steeltrap.harness.commands.run import run
from steeltrap.harness.gateway.ideal import Ideal
from steeltrap.harness.gateway.mind import Dials, ScriptMind
from steeltrap.harness.gateway.server import Gateway
from steeltrap.harness.history import read_events
from steeltrap.harness.models import Ask, Mind, NotUnderstood, Reply
from steeltrap.harness.record import Record
from steeltrap.harness.settings import cells
from steeltrap.harness.store import find_records

SCRIPT = ("system=gem", "script=flip-flop", "script.turns=15", "twins=0")
QUIET = Console(quiet=True)


@contextmanager
def provider(dials: Dials | None = None) -> Iterator[Gateway]:
    """A second server on loopback that plays a provider; minds for two seeds stand behind it."""
    minds = [ScriptMind(cell.script(), dials) for cell in cells([*SCRIPT, "seed=0,1"])]

    def either(ask: Ask, mind: Mind) -> Reply | None:
        try:
            return answer(ask, mind)
        except NotUnderstood:
            return answer(ask, minds[1])

    embedder = HashEmbedder()
    with Gateway(Ideal(either, minds[0], embedder, system="x"), embedder) as served:
        yield served


def upstream(served: Gateway) -> list[str]:
    return [
        "model=upstream", "model.provider=compatible", "model.model=played",
        f"model.base_url={served.models.openai_url}", "model.retries=0",
    ]  # fmt: skip


def ran(runs: Path, *settings: str) -> Record:
    """The one record of a run."""
    run([*SCRIPT, f"runs={runs}", *settings], QUIET, QUIET)
    (record,) = find_records(runs)
    return record


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-a-secret-that-must-not-be-kept")
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)


def test_the_same_command_runs_against_a_server(tmp_path: Path) -> None:
    """With an address set, a run asks that server, and says so; nothing else changes."""
    ideal = ran(tmp_path / "ideal")
    with provider() as served:
        asked = ran(tmp_path / "asked", *upstream(served))
    assert asked.spec.model["model"] == "played"
    assert asked.outcome.verdicts == ideal.outcome.verdicts
    assert asked.outcome.usage["ingest"].calls == ideal.outcome.usage["ingest"].calls
    kept = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert b"sk-a-secret" not in kept


def test_a_recorded_run_is_replayed_to_the_same_history(tmp_path: Path) -> None:
    """What was recorded gives the same history without the server, twins included."""
    folder = f"model.recordings={tmp_path / 'kept'}"
    with provider(Dials(missed=0.3)) as served:
        there = [*upstream(served), "model=record", folder, "twins=1"]
        recorded = ran(tmp_path / "first", *there)
    replayed = ran(tmp_path / "second", "model=replay", folder, "twins=1")
    assert recorded.outcome == replayed.outcome
    assert recorded.outcome.recall is not None
    assert recorded.outcome.recall < 1


def test_a_replay_without_a_recording_says_what_to_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A call that nobody recorded stops the run with the prompt's beginning and a way out."""
    (tmp_path / "kept").mkdir()
    with provider() as served:
        there = [*upstream(served), "model=record", f"model.recordings={tmp_path / 'kept'}"]
        ran(tmp_path / "first", *there)
    code = main(
        ["run", *SCRIPT, "seed=1", f"runs={tmp_path / 'second'}", "model=replay",
         f"model.recordings={tmp_path / 'kept'}"]
    )  # fmt: skip
    said = capsys.readouterr().err
    assert code == 1
    assert "model=record" in said
    assert "You keep the memory" in said


def test_a_spent_budget_stops_cleanly_and_a_larger_one_goes_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing is recorded of the step that could not be paid, and nothing is paid twice."""
    with provider() as served:
        whole = ran(tmp_path / "whole", *upstream(served))
        there = ["run", *SCRIPT, f"runs={tmp_path / 'runs'}", *upstream(served)]
        assert main([*there, "model.budget_tokens=20000"]) == 1
        assert "budget" in capsys.readouterr().err
        (history,) = (tmp_path / "runs").rglob("history.jsonl")
        begun = list(read_events(history))
        assert 0 < len(begun) < whole.outcome.steps
        assert all(event.type == "ok" for event in begun)
        served.meter.taken()
        assert main([*there, "model.budget_tokens=10000000"]) == 0
        paid = sum(usage.calls for usage in served.meter.taken().values())
    (record,) = find_records(tmp_path / "runs")
    assert record.outcome.fingerprint == whole.outcome.fingerprint
    before = sum(usage.calls for event in begun for usage in event.usage.values())
    assert paid == sum(usage.calls for usage in whole.outcome.usage.values()) - before


def test_a_run_under_faults_names_every_lost_turn(tmp_path: Path) -> None:
    """A turn that did not go in is named, and no failed call is an abstention or a wrong answer."""
    faults = ["faults=some", *(f"faults.{kind}=0.06" for kind in ("status_429", "status_500", "cut", "malformed", "empty", "wrong_schema"))]  # fmt: skip
    record = ran(tmp_path, *faults, "faults.timeout=0.0", "faults.retries=0", "script.turns=40")
    (history,) = tmp_path.rglob("history.jsonl")
    script = cells([*SCRIPT, "script.turns=40"])[0].script()
    failed = [event for event in read_events(history) if event.type != "ok"]
    assert len(failed) == record.outcome.failed > 10
    named = {script.steps[event.i].id for event in failed if hasattr(script.steps[event.i], "ops")}
    assert set(record.outcome.lost) == named
    assert all(record.outcome.lost.values())
    assert set(record.outcome.answers) <= {"correct", "unknown"}
    assert sum(verdict.violations for verdict in record.outcome.verdicts.values()) == 0


def test_a_run_under_faults_is_the_same_again(tmp_path: Path) -> None:
    """The words of a failed call do not hold the port that the gateway happened to have."""
    faults = ["faults=some", "faults.status_500=0.2", "faults.retries=0", "faults.timeout=0.0"]
    records = [ran(tmp_path / name, *faults, "script.turns=20") for name in ("a", "b")]
    assert records[0].outcome.failed > 2
    assert records[0].outcome.fingerprint == records[1].outcome.fingerprint
    assert "127.0.0.1" not in (next(tmp_path.rglob("history.jsonl"))).read_text()


def test_what_is_wrong_with_a_model_is_said_by_its_setting(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A share that is none, a missing model, address or key: one sentence and exit code 2."""
    monkeypatch.delenv("OPENAI_API_KEY")
    for setting, words in {
        "model.missed=1.5": "model.missed=1.5: write a share from 0 to 1",
        "model=upstream": "model.model must be given",
        "model=nothing": "unknown model 'nothing'",
    }.items():
        assert main(["run", *SCRIPT, f"runs={tmp_path}", setting]) == 2
        assert words in capsys.readouterr().err
    assert main(["run", *SCRIPT, f"runs={tmp_path}", "model=upstream", "model.model=x"]) == 2
    assert "OPENAI_API_KEY" in capsys.readouterr().err


def test_a_budget_is_that_of_the_whole_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What one cell has spent the next ones do not have; each of them says so, and none is lost."""
    with provider() as served:
        whole = ran(tmp_path / "one", *upstream(served))
        tokens = sum(u.prompt_tokens + u.completion_tokens for u in whole.outcome.usage.values())
        asked = ["run", *SCRIPT, f"runs={tmp_path / 'two'}", *upstream(served), "seed=0,1"]
        assert main([*asked, f"model.budget_tokens={round(tokens * 1.2)}"]) == 1
    assert len(list(find_records(tmp_path / "two"))) == 1
    assert "the budget of" in capsys.readouterr().err


def test_answers_of_one_server_are_not_taken_for_anothers(tmp_path: Path) -> None:
    """Two servers of one model's name are two models: each is asked, and each is a run of its own."""
    folder = f"runs={tmp_path}"
    with provider() as one, provider(Dials(missed=0.5)) as other:
        for served in (one, other):
            run([*SCRIPT, folder, *upstream(served)], QUIET, QUIET)
        recalls = [record.outcome.recall for record in find_records(tmp_path)]
    assert len(recalls) == 2
    assert min(recalls) < 1 == max(recalls)  # type: ignore[type-var]


def test_a_server_that_is_not_there_stops_the_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An outage is no result: nothing is finished, and the run goes on when the server is back."""
    with provider() as served:
        there = upstream(served)
    assert main(["run", *SCRIPT, f"runs={tmp_path}", *there]) == 1
    assert "no connection" in capsys.readouterr().err
    assert list(find_records(tmp_path)) == []
