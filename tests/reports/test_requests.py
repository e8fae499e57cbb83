"""Tables and figures of requests, of a cache, of summarising, of windows: each by a worked example."""

from __future__ import annotations

from typing import Any

import pytest

from steeltrap.harness.models import Usage
from steeltrap.harness.record import (  # fmt: skip
    Evidence,
    Outcome,
    Percentiles,
    Record,
    Request,
    RunSpec,
    Timing,
)
from steeltrap.harness.verdict import ConditionVerdict
from steeltrap.reports.figures import figures, files
from steeltrap.reports.requests import LAYOUTS, cached, estimated, priced, total_tokens, triggers
from steeltrap.reports.tables.requests import prompt_cache, requests, summarisation
from steeltrap.reports.tables.topk import prompt_recall
from steeltrap.reports.tables.weighed import weighed


def record(
    system: str, seed: int = 0, *, settings: dict[str, Any] | None = None, **found: Any
) -> Record:
    spec = RunSpec(
        system=system, settings=settings or {}, script="adversarial", script_sha256="0" * 64,
        seed=seed, reader="oracle", limit=10, steeltrap="0.1.0", model=found.pop("model", {}),
    )  # fmt: skip
    outcome: dict[str, Any] = {
        "turns": 40, "steps": 99, "failed": 0, "answers": {}, "verdicts": {}, "recall": None,
        "evidence_recall": None,
    } | found  # fmt: skip
    timing = Timing(phases={"retrieve": Percentiles(1, 1, 1, 1, 1)})
    return Record(spec=spec, outcome=Outcome(**outcome), timing=timing)


def sent(turns: int, grows: int = 0, cached: int = 0) -> list[Request]:
    """Requests of 2,000 tokens and so many more with each turn."""
    return [
        Request(n, 2000 + grows * n, 1000 + grows * n, 8400, cached, cached // 2)
        for n in range(1, turns + 1)
    ]


# ---------------------------------------------------------------- growth


def test_requests_by_turn_in_both_ways_of_counting() -> None:
    """Turn 20 is the mean of turns 11 to 20, over seeds; the last turn is shown too."""
    table = requests([record("flat", seed, requests=sent(40, 100)) for seed in (0, 1)])
    assert table is not None
    assert ["system", "turn 20", "turn 40"] == table.header
    # (11 + … + 20) / 10 = 15.5 and 35.5 turns of 100 tokens more; 8,400 characters / 4
    assert [["flat", "3,550 / 2,100\n2,550", "5,550 / 2,100\n4,550"]] == table.rows
    assert 2100 == estimated(sent(1)[0])
    assert requests([record("flat")]) is None


def test_figure_of_requests_has_both_countings() -> None:
    """20 points at most; each is the mean of the requests since the one before."""
    records = [record("flat", seed, requests=sent(40, 100)) for seed in (0, 1)]
    (figure,) = [f for f in figures(records) if f.name == "tokens-per-request"]
    assert 20 == len(figure.data) and 40 == figure.data["turn"].max()
    assert 2000 + 3950 == figure.data["value"].iloc[-1]
    assert {2100.0} == set(figure.data["estimated_tokens"])
    assert {"tokens-per-request.pdf", "tokens-per-request.png", "tokens-per-request.csv"} == set(files(figure))  # fmt: skip


# ---------------------------------------------------------------- a cache


def test_a_cache_has_a_share_and_a_price() -> None:
    """Half of 2,000 tokens cached, at 0.20 and 0.02 dollars a million: 0.22 for 1,000 requests."""
    records = [record("gem", requests=sent(10, cached=1000))]
    first, memory_first = (cached(records, layout) for layout in LAYOUTS)
    assert first is not None and memory_first is not None
    assert (20_000, 10_000, 5_000) == (first.tokens, first.cached_tokens, memory_first.cached_tokens)  # fmt: skip
    assert (0.5, 0.25) == (first.share, memory_first.share)
    name, by = priced(records)
    assert ("gpt-5.6-luna", 0.20, 0.02) == (name, by.input, by.cached_input)
    assert 0.0022 == pytest.approx(first.usd(by))
    table = prompt_cache(records)
    assert table is not None
    assert [
        ["gem", "instructions first", "2,000", "50.0%", "1,000", "0.400", "0.220"],
        ["gem", "memory first", "2,000", "25.0%", "1,500", "0.400", "0.310"],
    ] == table.rows  # fmt: skip
    assert prompt_cache([record("gem")]) is None


def test_prices_are_those_of_the_model_that_was_asked() -> None:
    """Where all runs asked one whose prices are known."""
    known = record("gem", model={"model": "gpt-5-mini"})
    assert "gpt-5-mini" == priced([known, record("flat")])[0]
    assert "gpt-5.6-luna" == priced([known, record("mem0", model={"model": "gpt-5"})])[0]
    assert "gpt-5.6-luna" == priced([record("gem", model={"model": "of-my-own"})])[0]


# ---------------------------------------------------------------- summarising


def swept(trigger: int, seed: int, prompt_tokens: int) -> Record:
    verdict = ConditionVerdict(
        condition="C1", validity="violated", opportunities=10, violations=seed + 1, names={},
        first_turn=1,
    )  # fmt: skip
    return record(
        f"summary trigger_tokens={trigger}", seed, settings={"trigger_tokens": trigger},
        requests=sent(10), recall=0.5, verdicts={"C1": verdict},
        usage={"ingest": Usage(calls=2, prompt_tokens=prompt_tokens)},
    )  # fmt: skip


def test_a_sweep_counts_requests_and_summarisations() -> None:
    """Ten requests of 2,000 and what the summaries took; beside it flat, recall and C1."""
    records = [swept(t, seed, 100 * seed + t) for t in (300, 600, 1200) for seed in (0, 1)]
    records.append(record("flat", requests=sent(10, 1000)))
    assert 20_400 == total_tokens(swept(300, 0, 400))
    table = summarisation(records)
    assert table is not None
    assert ["flat", "75,000", "75,000", "75,000", "0", "-", "-", "1"] == table.rows[0]
    # means and extremes of 20,300 and 20,400; C1: 1 and 2 of 10
    assert ["300", "20,350", "20,300", "20,400", "350", "50.0%", "15.0%", "2"] == table.rows[1]
    assert ["flat", "300", "600", "1,200"] == [row[0] for row in table.rows]
    (figure,) = [f for f in figures(records) if f.name == "summarisation"]
    measures = ["total input tokens", "recall", "C1"]
    assert measures == list(figure.data["measure"].unique())
    assert 3 == len(files(figure))


def test_two_triggers_are_no_sweep() -> None:
    """Nor are runs without requests."""
    assert {} == triggers([swept(300, 0, 1), swept(600, 0, 1)])
    assert summarisation([swept(300, 0, 1), swept(600, 0, 1)]) is None


# ---------------------------------------------------------------- public data


def evidence(recall: float, *, n: int = 4, k: int = 5, **more: Any) -> Evidence:
    given: dict[str, Any] = {"category": "all", "hit": recall, "all": recall / 2, "ndcg": recall} | more  # fmt: skip
    return Evidence(k=k, n=n, recall=recall, **given)


def test_windows_stand_beside_top_k() -> None:
    """Recall and tokens are means over questions; totals come last."""
    rows = [
        evidence(0.5, tokens=100), evidence(0.8, window=1, tokens=300),
        evidence(0.4, category="2", n=2, tokens=100), evidence(0.6, category="2", n=2, window=1),
        evidence(0.1, left_out="wrong-gold"), evidence(0.1, grain="session"),
        evidence(0.1, k=3), evidence(0.1, k=3, window=1), evidence(0.1, k=0, budget_tokens=1000),
    ]  # fmt: skip
    more = [evidence(0.8, n=12, tokens=200), evidence(0.9, n=12, window=1, tokens=700)]
    records = [record("bm25", evidence=rows), record("bm25", 1, evidence=more)]
    table = prompt_recall(records)
    assert table is not None
    assert ["system", "category", "n", "top 5", "±1"] == table.header
    # (4 * 0.5 + 12 * 0.8) / 16, (4 * 100 + 12 * 200) / 16
    assert ["bm25", "all", "16", "72.5\n175", "87.5\n600"] == table.rows[1]
    assert "2" == table.rows[0][1]
    (figure,) = [f for f in figures(records) if f.name == "prompt-recall"]
    drawn = figure.data[figure.data["k"] == 5]
    assert [0, 1] == list(drawn["window"])
    assert [0.725, 0.875] == pytest.approx(list(drawn["value"]))
    assert [175.0, 600.0] == list(drawn["tokens"])
    assert 3 == len(files(figure))
    assert prompt_recall([record("bm25", evidence=more[:1])]) is None


def test_retrieval_stands_beside_what_is_kept() -> None:
    """Two runs of 1,000 tokens told, of which 400 and 200 are active at the end."""
    records = [
        record(
            "gem", seed, evidence=[evidence(0.5)], ingested_tokens=1000,
            footprint=[(9, 9, 999, 0, 0.0), (40, 20, 400 - 200 * seed, 0, 0.0)],
        )
        for seed in (0, 1)
    ]  # fmt: skip
    table = weighed(records)
    assert table is not None
    assert [["gem", "8", "5", "50.0", "25.0", "50.0", "600", "30.0", "40"]] == table.rows
    assert weighed([record("gem", evidence=[evidence(0.5)])]) is None
