"""Runs to look at: a memory that does everything right, one that resurrects, one that stores all."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

from steeltrap.adapters.flat import Flat
from steeltrap.adapters.ideal import Ideal
from steeltrap.adapters.mutants import MUTANTS
from steeltrap.harness.readers import Oracle
from steeltrap.harness.retrace import looked_at
from steeltrap.harness.run import run_cell
from steeltrap.harness.script import Script
from steeltrap.harness.store import Cell, open_cell, run_spec
from steeltrap.harness.trajectory import Played, Story
from steeltrap.workloads.compose import ScriptSettings, compose

HOSTILE = (
    '<img src=x onerror="window.__pwned=1"></script><script>window.__pwned=1</script>'
    "<!--<script> javascript:window.__pwned=1 {{ 7*7 }} &lt;b&gt; \u2028 \u202e \x00 \U0001f600"
)


class Shown(NamedTuple):
    """What a page is made of."""

    stories: list[Story]
    runs: list[Played]


@pytest.fixture(scope="session")
def cells(tmp_path_factory: pytest.TempPathFactory) -> list[Cell]:
    """Three runs of one script, and a fourth of another that only the resurrecting memory ran."""
    runs = tmp_path_factory.mktemp("runs")
    first, second = (_script(turns, seed) for turns, seed in ((60, 0), (40, 1)))
    makes: list[tuple[str, Callable[[], Any], Script]] = [
        ("ideal", Ideal, first),
        ("returning", MUTANTS["resurrects-at-maintenance"], first),
        ("flat", Flat, first),
        ("ideal", Ideal, second),
        ("flat", Flat, second),
    ]
    made = []
    for system, make, script in makes:
        spec = run_spec(script, system=system, settings={}, reader="oracle", limit=10, twins=0)
        cell = open_cell(runs, spec, script)
        run_cell(cell, make, script, Oracle())
        made.append(cell)
    return made


def _script(turns: int, seed: int) -> Script:
    families = {"revision-chain": 1.0, "dependency-cascade": 1.0, "retraction": 1.0}
    return compose(ScriptSettings(name="mixed", turns=turns, families=families), seed)


@pytest.fixture(scope="session")
def shown(cells: list[Cell]) -> Shown:
    return Shown(*looked_at(cells))


@pytest.fixture(scope="session")
def hostile(shown: Shown) -> Shown:
    """The same runs, with a hostile text wherever there is a text of somebody else's."""
    stories, runs = (msgspec.json.decode(msgspec.json.encode(part)) for part in shown)
    for story in stories:
        story["name"] += HOSTILE
        for unit in story["units"]:
            unit |= {"name": unit["name"] + HOSTILE, "tenant": HOSTILE, "family": HOSTILE}
        for line in story["lines"]:
            for key in ("text", "due", "role"):
                if line.get(key):
                    line[key] += HOSTILE
            for change in line.get("changes", []):
                if change.get("value"):
                    change["value"] += HOSTILE
    for run in runs:
        run["label"] += HOSTILE
        run["facts"] = {HOSTILE: HOSTILE}
        for verdict in run["verdicts"].values():
            verdict["note"] = HOSTILE
        for item in run["items"]:
            item |= {"text": item["text"] + HOSTILE, "sources": [HOSTILE], "valid_from": HOSTILE}
        for step in run["shown"]:
            if step.get("answer"):
                step |= {"answer": step["answer"] + HOSTILE, "exposed": [HOSTILE]}
            step["models"] = {HOSTILE: [1, 0, 2, 3, 4, 5]}
            for claim in step.get("claims", []):
                claim |= {"value": HOSTILE, "meaning": HOSTILE}
        for mark in run["violations"]:
            mark |= {"observed": HOSTILE, "expected": HOSTILE}
    return Shown(msgspec.convert(stories, list[Story]), msgspec.convert(runs, list[Played]))


@pytest.fixture(scope="session")
def runs_folder(cells: list[Cell]) -> Path:
    """The folder that holds the runs."""
    return cells[0].folder.parent
