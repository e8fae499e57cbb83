"""What is put on trial, and how a conversation is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from steeltrap.harness.commands.dialogue import dialogue, spoken
from steeltrap.harness.commands.trial import Plan, Trial
from steeltrap.harness.compare import baseline, read_side
from steeltrap.harness.conformance import CHECKS, Broken
from steeltrap.harness.script import Header, Probe, Script, Turn
from steeltrap.harness.settings import SettingsError
from steeltrap.harness.verdict import Violation

FLAT = "steeltrap.adapters.flat:Flat"


@pytest.mark.parametrize(
    ("plan", "said"),
    [
        ({"system": "steeltrap.adapters.flat:Sharp"}, "has no 'Sharp'; memories in it: Flat"),
        ({"system": "nowhere.at:All"}, "there is no module 'nowhere' here; install its package"),
        ({"system": "steeltrap:3"}, "write module:Class, as mypackage.memory:MyMemory"),
        ({"system": "nobody"}, "unknown system 'nobody'; known: a-mem, bm25"),
        ({"system": FLAT, "sets": ("colour=red",)}, "it takes: window_turns"),
        ({"system": FLAT, "sets": ("red",)}, "'red' is not understood; write KEY=VALUE"),
        ({"system": FLAT, "sets": ("window_turns=1,2",)}, "one memory is tried at a time"),
        ({"system": FLAT, "seeds": 0}, "0 seeds: at least 1"),
        ({"system": FLAT, "script": "nothing"}, "unknown script 'nothing'"),
        ({"system": FLAT, "baseline": Path("no.json")}, "no.json"),
        ({"system": "pathlib:Path"}, "is no memory; it needs open, close"),
    ],
)
def test_a_plan_that_cannot_be_carried_out_is_refused(
    plan: dict[str, object], said: str, tmp_path: Path
) -> None:
    """Each slip is one sentence that says what there is, or what to write."""
    with pytest.raises(SettingsError) as error:
        Trial(Plan(**{"folder": tmp_path, **plan}))  # type: ignore[arg-type]
    assert said in str(error.value)


def test_settings_go_where_they_belong(tmp_path: Path) -> None:
    """A plain key is the memory's; one with a dot, and a few by name, are the run's."""
    sets = ("window_turns=20", "script.surface.paste=0", "limit=5")
    trial = Trial(Plan("flat", tmp_path, sets=sets, turns=40, seeds=3))
    assert [0, 1, 2] == [one.config.seed for one in trial.settings]
    assert (20, 5) == (trial.settings[0].config.system.window_turns, trial.settings[0].config.limit)


def test_a_memory_of_a_later_session_is_run_again(tmp_path: Path) -> None:
    """Within a session a run is made once; the next one makes it anew, and keeps no older one."""

    def made(session: str, system: str = FLAT) -> tuple[Trial, list[int]]:
        trial = Trial(Plan(system, tmp_path, turns=20, seeds=1, session=session))
        assert trial.failures() == ""
        return trial, [p.stat().st_mtime_ns for p in tmp_path.glob("*/record.json")]

    _, first = made("a")
    _, again = made("a")
    _, later = made("b")
    _, other = made("c", "flat")
    assert first == again != later
    assert [1, 1] == [len(later), len(other)]


ONE_AT_A_TIME = """
from steeltrap.adapters.flat import Flat


class Mine(Flat):
    def ingest(self, turn):
        self.began = getattr(self, "began", turn.text)
        super().ingest(turn)

    def retrieve(self, query):
        return list(super().retrieve(query))[: 1 if self.began == {first!r} else 10]
"""
"""Serves old values beside the new ones in no script that begins with certain words."""


def test_a_baseline_knows_nothing_of_other_seeds_and_of_what_it_could_not_see(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What shows on a seed that the baseline lacks, or was not tested in it, is no old violation."""
    script = Trial(Plan(FLAT, tmp_path, turns=60, seeds=1)).settings[0].script()
    (first, *_) = (step.text for step in script.steps if isinstance(step, Turn))
    (tmp_path / "seed_zero.py").write_text(ONE_AT_A_TIME.format(first=first))
    monkeypatch.syspath_prepend(tmp_path)
    file = tmp_path / "base.json"

    def trial(seeds: int, before: Path | None = None) -> Trial:
        plan = Plan(
            "seed_zero:Mine", tmp_path / "runs", turns=60, seeds=seeds, session=f"{seeds} {before}",
            baseline=before,
        )  # fmt: skip
        made = Trial(plan)
        assert made.failures() == ""
        return made

    trial(1)
    sides = read_side(tmp_path / "runs")
    file.write_bytes(baseline(sides))
    two = trial(2, file)
    assert two.worse() == ""
    assert two.finding("superseded-active").state == "known"
    assert two.finding("exposed-history").state == "violated"
    del sides[0].sample.names["superseded-active"]
    file.write_bytes(baseline(sides))
    assert trial(1, file).finding("superseded-active").state == "violated"


@pytest.mark.parametrize("error", ["SystemExit(0)", "pytest.skip.Exception('no database')"])
def test_whatever_a_memory_raises_is_no_pass(
    error: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """sys.exit(0) and a skip are errors of the memory: of the contract, and of the run."""
    name = f"ends_{error[:6].lower().replace('.', '_')}"
    text = f"""
import pytest
from steeltrap.adapters.flat import Flat

class Mine(Flat):
    def ingest(self, turn):
        raise {error}
"""
    (tmp_path / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    trial = Trial(Plan(f"{name}:Mine", tmp_path, turns=20, seeds=1, session="a"))
    with pytest.raises(Broken):
        trial.check(CHECKS["takes-a-long-turn"], tmp_path / "check")
    assert ("SystemExit" if "System" in error else "no database") in trial.failures()
    assert trial.finding("stale-read").state == "unknown"


def test_a_conversation_is_told_in_four_lines() -> None:
    """user, asked, due, answered; whose it is only where there are several tenants."""
    at = {"at": "2026-01-05T09:00", "tenant": "acme"}
    steps = [
        Turn(id="t1", session="s", ops=[], text="The host is Ilse.\n::error::x", **at),
        Turn(id="t2", session="s", ops=[], text="\x1b[31mThe host is Noor." + " Hm." * 100, **at),
        Probe(id="p1", ask="current", text="Who is the host?", unit="acme/Mill/host", **at),
    ]
    script = Script(Header(name="one", tenants=["acme"]), list(steps))
    shown = Violation("stale-read", "C1", 2, "t2", expected="Noor", observed="Ilse")
    lines = dialogue(script, shown).split("\n")
    assert ["user: The host is Ilse. ⏎ ::error::x", "asked: Who is the host?", "due: Noor", "answered: Ilse"] == [lines[0], *lines[2:]]  # fmt: skip
    assert lines[1].startswith("user: \\x1b[31mThe host is Noor. Hm.")
    assert lines[1].endswith("… (422 characters)")
    assert spoken("see ##[error]here") == "see ## [error]here"
    assert "user: The host" not in dialogue(script, shown, only=["t2"])


@pytest.mark.parametrize("text", ["a\u202eb", "a\u2028b", "a\rb", "a\x85b", "\u200b", "a\x00b"])
def test_what_is_spoken_is_one_plain_line(text: str) -> None:
    """No control, no mark of direction and no break of a line gets through."""
    assert spoken(text).isprintable()
    assert len(spoken(text).splitlines()) == 1
