"""Wall clocks that are set back and forward while a run goes on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from steeltrap.harness.history import read_events
from steeltrap.harness.record import read_record

YEARS_S = 40 * 365 * 86_400.0


WORKER = "memories:Noted +system.worker=true +system.passes=[PYTHONPATH]"
JUMPS = {"hours": [-3600.0, 0.0, 3600.0], "years": [-YEARS_S, YEARS_S], "ms": [-1e-3, 0.0]}


@pytest.mark.parametrize("system", ["flat", pytest.param(WORKER, marks=pytest.mark.slow)])
@pytest.mark.parametrize("jumps", JUMPS.values(), ids=JUMPS)
def test_the_wall_clock_plays_no_part(
    commands: Any, work: Path, system: str, jumps: list[float]
) -> None:
    """Histories are the same, times are none that cannot be, and no limit of time is passed."""
    asked = ("run", *f"system={system}".split(), "script=flip-flop", "script.turns=3", "observing=true")  # fmt: skip
    if "worker" in system:
        asked += ("limits.step_s=30",)
    commands(work, *asked, "name=steady")
    ended = commands(work, *asked, "name=jumping", shims=[("clock", {"jumps": jumps})])
    steady, jumping = (
        [read_record(path) for path in (work / "runs" / name).rglob("record.json")]
        for name in ("steady", "jumping")
    )
    assert steady[0].outcome == jumping[0].outcome
    for path in (work / "runs" / "jumping").rglob("*history.jsonl"):
        for event in read_events(path):
            assert 0 <= event.ms < 60_000
            assert 0 <= event.settle_ms < 60_000
    for phase in jumping[0].timing.phases.values():
        assert 0 <= phase.p50_ms <= phase.p95_ms < 60_000
    assert "-" not in ended.err.split(": ")[-1]
    assert ended.seconds < 60


def test_files_from_the_future_are_files(commands: Any, work: Path) -> None:
    """A run that was finished while the clock was ahead is finished; it is not run again."""
    asked = ("run", "system=flat", "script=flip-flop", "script.turns=3")
    commands(work, *asked, shims=[("clock", {"jumps": [0.0], "start": YEARS_S})])
    assert "finished before" in commands(work, *asked).err
