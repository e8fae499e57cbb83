"""The reference system with a model that reads for it, behind the gateway."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest

from steeltrap.adapters.embedders import HashEmbedder
from steeltrap.adapters.gem import ModelGem
from steeltrap.adapters.gem.answers import answer
from steeltrap.harness.checks import Scored, score
from steeltrap.harness.drive import RunStopped, drive
from steeltrap.harness.gateway.ideal import Ideal
from steeltrap.harness.gateway.mind import Dials, ScriptMind
from steeltrap.harness.gateway.server import Gateway
from steeltrap.harness.history import read_events, read_header
from steeltrap.harness.models import Answerer, Usage
from steeltrap.harness.readers import Oracle
from steeltrap.harness.script import Script
from steeltrap.workloads.compose import ScriptSettings, compose
from steeltrap.workloads.families import FAMILIES
from steeltrap.workloads.figure1 import figure_1

Dialect = Literal["openai", "anthropic"]


def script(*families: str, seed: int = 0, turns: int = 100) -> Script:
    return compose(
        ScriptSettings(name="some", families=dict.fromkeys(families, 1.0), turns=turns), seed
    )


def run(
    made: Script,
    folder: Path,
    dials: Dials | None = None,
    *,
    dialect: Dialect = "openai",
    answerer: Answerer = answer,
) -> Scored:
    embedder = HashEmbedder()
    ideal = Ideal(answerer, ScriptMind(made, dials), embedder, system="gem")
    history = folder / "history.jsonl"
    memory = ModelGem(dialect=dialect, embedder=embedder)
    with Gateway(ideal, embedder) as gateway:
        memory.connect(gateway.models)
        memory.open(folder)
        try:
            drive(memory, made, history, limit=10, meter=gateway.meter)
        finally:
            memory.close()
    return score(
        made, read_events(history), capabilities=read_header(history).capabilities, reader=Oracle()
    )


def violated(scored: Scored) -> set[str]:
    return {violation.name for violation in scored.violations}


@pytest.mark.parametrize("family", [*FAMILIES, "figure-1"])
def test_holds_the_six_conditions_where_the_model_understands(family: str, tmp_path: Path) -> None:
    """With an ideal model in between the engine is as sound as when it is told."""
    made = figure_1() if family == "figure-1" else script(family, turns=60)
    scored = run(made, tmp_path)
    assert (set(), 0) == (violated(scored), scored.outcome.failed)


@pytest.mark.parametrize("dialect", ["openai", "anthropic"])
def test_every_call_is_attributed_to_what_caused_it(dialect: Dialect, tmp_path: Path) -> None:
    """One call a turn and one a question, each counted in its phase, in either dialect."""
    made = script("revision-chain", turns=40)
    scored = run(made, tmp_path, dialect=dialect)
    usage = scored.outcome.usage
    assert usage["ingest"].calls == made.turns
    queries = sum(event.via in ("fork", "in-script") for event in read_events(tmp_path / "history.jsonl"))  # fmt: skip
    assert usage["retrieve"].calls == queries
    assert sum(usage.values(), Usage()).failed == 0
    assert usage["ingest"].prompt_tokens > 1000 * made.turns
    assert violated(scored) == set()


@pytest.mark.parametrize(
    ("dials", "families", "expected"),
    [
        (Dials(missed=0.4), ("revision-chain",), "stale-read"),
        (Dials(wrong_host=0.4), ("look-alike",), "wrong-read"),
        (Dials(overlooked=0.5), ("revision-chain",), "superseded-active"),
        (Dials(invented=0.4), ("revision-chain",), "wrong-read"),
    ],
)
def test_each_dial_moves_the_violation_that_it_should(
    dials: Dials, families: tuple[str, ...], expected: str, tmp_path: Path
) -> None:
    """A model that misses, misplaces, overlooks or invents shows under the name that fits."""
    scored = run(script(*families, turns=120), tmp_path, dials)
    assert expected in violated(scored)


def test_a_prompt_that_nobody_knows_stops_the_run(tmp_path: Path) -> None:
    """It is an error that names the system and how the prompt begins, not an empty answer."""
    with pytest.raises(RunStopped, match=r"cannot answer gem.*kind that is not known") as caught:
        run(script("flip-flop"), tmp_path, answerer=lambda _ask, _mind: None)
    assert "You keep the memory of somebody" in str(caught.value)
    assert list(read_events(tmp_path / "history.jsonl")) == []
