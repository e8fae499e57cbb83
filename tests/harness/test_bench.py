"""The bench: many scripts on one memory, each as if it were the only one."""

from __future__ import annotations

from pathlib import Path

import pytest

from steeltrap.adapters.embedders import HashEmbedder
from steeltrap.adapters.ideal import Ideal
from steeltrap.adapters.mutants import MUTANTS
from steeltrap.adapters.vector import Vector
from steeltrap.harness.bench import LIMIT, Bench, NotOpened
from steeltrap.harness.drive import RunStopped
from steeltrap.harness.memory import Memory
from steeltrap.harness.models import Models
from steeltrap.harness.readers import Oracle
from steeltrap.harness.remote import Remote
from steeltrap.harness.run import run_cell
from steeltrap.harness.script import Script
from steeltrap.harness.store import open_cell, run_spec
from steeltrap.workloads.compose import ScriptSettings, compose
from steeltrap.workloads.figure1 import figure_1


def family(name: str, turns: int = 30, seed: int = 0) -> Script:
    return compose(ScriptSettings(name=name, turns=turns, families={name: 1.0}), seed)


def on(memory: type[Memory], folder: Path, limit: int = 10) -> Bench:
    return Bench(memory, Oracle(), folder, limit=limit)


def test_a_script_on_the_bench_is_judged_as_in_a_run(tmp_path: Path) -> None:
    """Violations, witnesses and all are those of a run folder, twins included."""
    for number, name in enumerate(("never-supersedes", "read-only", "keeps-erased")):
        mutant, script = MUTANTS[name], family(MUTANTS[name].families[0], 60)
        spec = run_spec(script, system=name, settings={}, reader="oracle", limit=10, twins=9)
        cell = open_cell(tmp_path / str(number), spec, script)
        run_cell(cell, mutant, script, Oracle())
        (tmp_path / name).mkdir()
        with on(mutant, tmp_path / name) as bench:
            scored = bench.run(script, [twin.name for twin in script.header.twins])
        stored = cell.violations.read_bytes().count(b"\n")
        assert stored == len(scored.violations) > 0


def test_scripts_do_not_feel_each_other(tmp_path: Path) -> None:
    """A script shows the same whatever was run before it, also to a memory with files."""
    scripts = [family("revision-chain"), figure_1(), family("erasure"), family("revision-chain")]
    with Bench(lambda: Vector(HashEmbedder()), Oracle(), tmp_path, limit=5) as bench:
        together = [bench.run(script).violations for script in scripts]
        for script, before in zip(scripts, together, strict=True):
            bench.renew()
            assert before == bench.run(script).violations
    assert together[0]


def test_a_worker_is_started_once(tmp_path: Path) -> None:
    """A memory in a process of its own begins anew in the same process."""
    node = {"_target_": "steeltrap.adapters.ideal.Ideal"}
    memory = Remote(node)
    with Bench(lambda: memory, Oracle(), tmp_path, limit=10) as bench:
        assert bench.run(figure_1()).violations == []
        worker = memory._worker
        assert bench.run(family("revision-chain")).violations == []
        assert worker is not None and memory._worker is worker


def test_a_script_says_how_few_items_may_be_served(tmp_path: Path) -> None:
    """The note `limit` of a script goes before the limit of the bench."""
    script = family("revision-chain", 12)
    with Bench(lambda: Vector(fusion="bm25"), Oracle(), tmp_path, limit=10) as bench:
        wide = bench.run(script).outcome.served_tokens_total
        script.header.notes[LIMIT] = 1
        narrow = bench.run(script).outcome.served_tokens_total
    assert 0 < narrow < wide


def test_fresh_makes_a_memory_for_each_script(tmp_path: Path) -> None:
    """With `fresh` no memory is opened twice."""
    made: list[Ideal] = []

    def make() -> Ideal:
        made.append(Ideal())
        return made[-1]

    with Bench(make, Oracle(), tmp_path, limit=10) as bench:
        bench.run(figure_1())
        bench.run(figure_1())
        assert len(made) == 1
        bench.fresh = True
        bench.run(figure_1())
        assert len(made) == 2


def test_a_memory_that_asks_models_needs_a_gateway(tmp_path: Path) -> None:
    """Without one nothing is run."""

    class Asking(Ideal):
        def connect(self, models: Models) -> None:
            raise AssertionError(models)

    with on(Asking, tmp_path) as bench, pytest.raises(RunStopped, match="no gateway"):
        bench.run(figure_1())


def test_a_memory_that_cannot_be_opened_is_said_so(tmp_path: Path) -> None:
    """Its own words are told."""

    class Shut(Ideal):
        def open(self, folder: Path) -> None:
            raise OSError(f"no room in {folder.name}")

    with on(Shut, tmp_path) as bench, pytest.raises(NotOpened, match="OSError: no room in "):
        bench.run(figure_1())
