"""Published figures: the file makes sense, and what can be computed again comes out again."""

from __future__ import annotations

import gzip
import json
import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from steeltrap.adapters.datasets.published import Figure, Run, published
from steeltrap.adapters.embedders import minilm
from steeltrap.harness.cli import main
from steeltrap.harness.evidence import CUTOFFS, evidence_rows
from steeltrap.harness.history import read_events
from steeltrap.harness.record import Evidence
from steeltrap.harness.retrace import joined
from steeltrap.harness.script import Script
from steeltrap.harness.store import read_cell

FIGURES = published().figure
RUNS = published().run
REPRODUCED = 0.4
"""Percent: of what was measured by other code on the same data."""


def test_every_figure_says_what_became_of_it() -> None:
    """What was reproduced has both numbers, near each other; what was not says why."""
    for figure in FIGURES:
        assert figure.source, figure.what
        assert (figure.run != "") == (figure.ours is not None) == (figure.n is not None)
        if figure.outcome == "reproduced":
            assert figure.published is not None
            assert figure.ours == pytest.approx(figure.published, abs=REPRODUCED), figure.what
        else:
            assert figure.why, figure.what
        if figure.outcome == "different":
            assert figure.ours is not None, figure.what


def test_every_run_is_read_from() -> None:
    """No figure names a run that is not there, and no run is there for nothing."""
    assert {figure.run for figure in FIGURES} - {""} == set(RUNS)


def test_the_official_figures_of_longmemeval_are_met_to_a_thousandth() -> None:
    """BM25 over sessions of S: recall_all@5 .7697 and ndcg_any@5 .6871."""
    met = {f.what: f for f in FIGURES if f.run == "longmemeval-official"}
    for what, target in (("recall_all@5", 76.97), ("ndcg_any@5", 68.71)):
        (figure,) = (one for name, one in met.items() if name.endswith(what))
        assert figure.published == target
        assert figure.ours == pytest.approx(target, abs=0.1)
        assert 469 == figure.n


# ---------------------------------------------------------------- computed again


def ran(run: Run, data: Path, folder: Path) -> dict[str, list[Evidence]]:
    """A run's rows by system, at every k that a figure asks for."""
    if "embedder=minilm" in run.asked and minilm.missing():
        pytest.skip("MiniLM is not installed")
    main(["run", f"script={run.script}", f"script.path={data / run.script}", *run.asked,
          "limit=50", "twins=0", f"runs={folder}", "name=again"])  # fmt: skip
    cutoffs = sorted({*CUTOFFS, *(int(f.row.get("k", 0)) for f in FIGURES)} - {0})
    rows = defaultdict(list)
    for record in sorted((folder / "again").glob("*/record.json")):
        cell = read_cell(record.parent)
        pairs = joined(Script.read(cell.script), read_events(cell.history))
        rows[cell.spec.system] += evidence_rows(pairs, cutoffs=cutoffs)
    return rows


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] if run.slow else []) for name, run in RUNS.items()]
)  # fmt: skip
def test_real_figures_come_out_again(name: str, data: Path, tmp_path: Path) -> None:
    """Ours is what the named run gives, question for question."""
    rows = ran(RUNS[name], data, tmp_path)
    for figure in (one for one in FIGURES if one.run == name):
        (system,) = [figure.system] if figure.system else rows
        n, value = figure.value(rows[system])
        assert (figure.n, figure.ours) == (n, pytest.approx(value, abs=0.006)), figure.what


# ---------------------------------------------------------------- the official scorer, on a part


def test_real_scores_are_the_official_scorer_s(data: Path, tmp_path: Path) -> None:
    """The first fifty questions of LongMemEval S, by the rules of its own scorer written down anew
    and read from the data itself: recall and gain of every cut-off agree to nine digits."""
    run = Run("longmemeval", [*(a for a in RUNS["longmemeval-official"].asked if "seed" not in a), "seed=0"])  # fmt: skip
    (rows,) = ran(run, data, tmp_path).values()
    for k in (5, 10):
        scored = [one for one in official(data / "longmemeval", 50, k) if one]
        for score, column in zip(("all", "ndcg"), zip(*scored, strict=True), strict=True):
            figure = Figure("", "", "", "reproduced", "", score=score, row={"grain": "session", "k": k, "convention": "longmemeval"})  # fmt: skip
            assert (len(scored), pytest.approx(100 * np.mean(column), abs=1e-9)) == figure.value(rows)  # fmt: skip


def official(folder: Path, questions: int, k: int) -> list[tuple[float, float] | None]:
    """recall_all and ndcg_any at k of each question; None for an abstention."""
    with gzip.open(folder / "longmemeval_s_cleaned_user_turns.jsonl.gz", "rt") as lines:
        said = {one["session_id"]: one["user_turns"] for one in map(json.loads, lines)}
    with gzip.open(folder / "longmemeval_s_cleaned_index.jsonl.gz", "rt") as lines:
        asked = [json.loads(line) for line, _ in zip(lines, range(questions), strict=False)]
    found: list[tuple[float, float] | None] = []
    for one in asked:
        sessions = [(name, said[name]) for name in one["haystack_session_ids"]]
        gold = ["answer" in name and any(t.get("has_answer") for t in turns) for name, turns in sessions]  # fmt: skip
        scores = okapi([" ".join(t["content"] for t in turns) for _, turns in sessions], one["question"])  # fmt: skip
        best = [gold[at] for at in np.argsort(scores)[::-1][:k]]
        ideal = gain(sorted(gold, reverse=True)[:k])
        every = float(sum(best) == sum(gold))
        abstention = "_abs" in one["question_id"]
        found.append(None if abstention else (every, gain(best) / ideal if ideal else 0.0))
    return found


def gain(gains: Sequence[bool]) -> float:
    """The first two places count fully, place i from the third on 1 / log2(i)."""
    return sum(gained / max(1.0, math.log2(place)) for place, gained in enumerate(gains, 1))


def okapi(texts: list[str], question: str) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """As rank_bm25.BM25Okapi, of words split at spaces."""
    words = [Counter(text.split(" ")) for text in texts]
    lengths = np.array([one.total() for one in words], dtype=np.float64)
    held = Counter(word for one in words for word in one)
    weight = {w: math.log((len(words) - n + 0.5) / (n + 0.5)) for w, n in held.items()}
    floor = 0.25 * sum(weight.values()) / len(weight)
    scores = np.zeros(len(words))
    for word in question.split(" "):
        counts = np.array([one[word] for one in words])
        value = weight.get(word, 0.0)
        norm = counts + 1.5 * (0.25 + 0.75 * lengths / lengths.mean())
        scores += (floor if value < 0 else value) * counts * 2.5 / norm
    return scores
