from __future__ import annotations

from io import StringIO
from pathlib import Path
from typing import Any

import msgspec
import pytest
from rich.console import Console

from steeltrap.harness import cli
from steeltrap.harness.commands import load as command
from steeltrap.harness.load import (
    LoadRecord,
    LoadSettings,
    LoadSpec,
    Step,
    next_rate,
    read_load,
)
from steeltrap.harness.load.histogram import Histogram
from steeltrap.harness.record import RecordError, RunSpec
from steeltrap.harness.settings import SettingsError

QUICK = ["system=flat", "seconds=0.3", "warm_s=0", "tenants=2"]


def _load(folder: Path, *words: str) -> tuple[bool, str, str]:
    out, aside = StringIO(), StringIO()
    consoles = [Console(file=file, width=80, highlight=False) for file in (out, aside)]
    done = command.load([*QUICK, f"runs={folder}", *words], *consoles)
    return done, out.getvalue(), aside.getvalue()


def test_a_load_is_measured_written_and_told(tmp_path: Path) -> None:
    """Each rate is a line; the record and the page hold the circumstances and every histogram."""
    done, said, _ = _load(tmp_path, "rate=60,30")
    assert done
    assert "alone" in said
    assert "Latency in ms" in said
    (path,) = tmp_path.rglob("load.json")
    record = read_load(path)
    assert [step.rate for step in record.steps] == [30, 60]
    assert record.spec.run.system == "flat"
    assert record.steps[0].intended["write"].n == record.steps[0].operations["write"]["ok"]
    tables = said.partition("Latency in ms")[2].partition(str(tmp_path))[0]
    assert all(len(line) <= 80 for line in tables.splitlines())
    assert "settle" in tables
    assert "| 30 |" in path.with_suffix(".md").read_text()
    assert not path.with_name("memory").exists()


def test_a_rate_that_was_measured_is_not_measured_again(tmp_path: Path) -> None:
    """The same command goes on where it stopped; fresh=true begins anew; a damaged record is named."""
    _load(tmp_path, "rate=30")
    (path,) = tmp_path.rglob("load.json")
    before = path.read_bytes()
    _, said, aside = _load(tmp_path, "rate=30")
    assert path.read_bytes() == before
    assert not aside
    assert "30" in said
    _, _, aside = _load(tmp_path, "rate=30", "fresh=true")
    assert "30 a second" in aside
    path.write_text("{")
    with pytest.raises(RecordError, match="delete it"):
        _load(tmp_path, "rate=30")


def test_an_interruption_shows_what_there_is_and_keeps_what_is_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C at the second rate: the first one is kept, the tables are printed, exit code 130."""
    measured = command.at_rate

    def interrupted(spec: LoadSpec, rate: float, *rest: Any) -> Step:
        step = measured(spec, rate, *rest)
        step.cut = rate == 60
        return step

    monkeypatch.setattr(command, "at_rate", interrupted)
    done, said, _ = _load(tmp_path, "rate=30,60")
    assert not done
    assert "60 (cut)" in said
    (path,) = tmp_path.rglob("load.json")
    assert [step.rate for step in read_load(path).steps] == [30]
    monkeypatch.undo()
    assert _load(tmp_path, "rate=30,60")[0]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["rate=fast"], "rate=fast"),
        (["rate=-3"], "rate=-3"),
        (["seconds=0"], "seconds=0"),
        (["bound_ms=0"], "bound_ms=0"),
        (["writes=x"], "writes"),
        (["warm_s=20"], "warm_s"),
        (["system=ideal", "threads=4"], "claim"),
        (["system=nobody"], "nobody"),
    ],
)
def test_what_makes_no_sense_is_said(tmp_path: Path, words: list[str], said: str) -> None:
    """Each wrong setting is named, with what would be right."""
    with pytest.raises(SettingsError, match=said):
        _load(tmp_path, *words)


def test_the_command_line_knows_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`steeltrap load` runs, and without a system says what it needs."""
    assert cli.main(["load", "rate=20"]) == 2
    assert "system=NAME" in capsys.readouterr().err
    assert cli.main(["load", *QUICK, "rate=20", f"runs={tmp_path}"]) == 0
    assert "What no order" in capsys.readouterr().out


# ---------------------------------------------------------------- the knee


def _record(knee: float, rates: list[float]) -> LoadRecord:
    run = RunSpec(
        system="s", settings={}, script="load", script_sha256="", seed=0, reader="oracle", limit=10,
        steeltrap="0",
    )  # fmt: skip
    spec = LoadSpec(
        run=run, load=LoadSettings(), rates=[], threads=4, concurrent=True, bound_ms=100.0,
        warm_s=0.0, patience_s=1.0,
    )  # fmt: skip
    return LoadRecord(spec=spec, steps=[_step(rate, rate <= knee) for rate in rates])


def _step(rate: float, holds: bool) -> Step:
    p99_ms = 10.0 if holds else 1000.0
    latency = Histogram(
        n=1, p50_ms=1, p90_ms=1, p99_ms=p99_ms, p999_ms=p99_ms, max_ms=p99_ms, hdr=""
    )
    nothing = Histogram(n=0, p50_ms=0, p90_ms=0, p99_ms=0, p999_ms=0, max_ms=0, hdr="")
    return Step(
        rate=rate, script_sha256="", reached=rate, operations={}, violations={}, broken={},
        opportunities={}, missing=0, unread=0, copies=1, unknown="", examples=[], errors=[],
        intended={"write": latency}, service={}, lag=nothing, late=nothing, settle_ms=0.0,
    )  # fmt: skip


@pytest.mark.parametrize("knee", [0.7, 3.0, 10.0, 57.0, 1234.0])
def test_the_knee_is_found_between_what_holds_and_what_does_not(knee: float) -> None:
    """Rates are doubled or halved, then the middle is tried; the answer is near, and from below."""
    rates: list[float] = []
    while (rate := next_rate(_record(knee, rates))) is not None:
        rates.append(rate)
        assert len(rates) < 20
    found = _record(knee, rates).knee
    assert found is not None
    assert knee / 1.4 < found <= knee


def test_a_rate_that_holds_above_one_that_does_not_is_no_knee() -> None:
    """Chance lets a high rate pass; the knee is the highest with all below it."""
    record = _record(20, [10, 20, 40])
    record.steps.append(_step(80, holds=True))
    assert record.knee == 20
    assert _record(5, [10, 20]).knee is None


def test_a_record_of_another_version_is_refused(tmp_path: Path) -> None:
    """What cannot be read as it was meant is named, not guessed."""
    record = _record(1, [1])
    record.version = 99
    path = tmp_path / "load.json"
    path.write_bytes(record.encoded())
    with pytest.raises(RecordError, match="99"):
        read_load(path)
    record.version = 1
    path.write_bytes(record.encoded())
    assert msgspec.to_builtins(read_load(path)) == msgspec.to_builtins(record)
