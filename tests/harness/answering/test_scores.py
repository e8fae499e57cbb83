"""Verdicts added up, and what became of the evidence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from steeltrap.harness.answering.scores import (
    Judge,
    Judged,
    Reader,
    Scores,
    ScoresError,
    read_scores,
    score,
)
from steeltrap.harness.models import Usage

READER = Reader(
    model="openai:gpt-4o-mini", prompt="plain", prompt_version=1, prompt_sha256="x", shape="ours"
)
JUDGE = Judge(name="j", kind="model", model="openai:nobody")


def judged(verdict: Any, category: str = "a", **more: Any) -> Judged:
    given: dict[str, Any] = {
        "wrong_gold": False, "evidence": 2, "shown": 2, "context_tokens": 100,
        "score": None if verdict == "error" else float(verdict == "correct"), "scores": {},
        "answer_usage": Usage(calls=1, prompt_tokens=1_000_000), "judge_usage": Usage(calls=1),
    } | more  # fmt: skip
    return Judged(category=category, verdict=verdict, **given)


def test_errors_are_in_no_mean() -> None:
    """They are counted beside the rest; a mean is over what was judged."""
    (row, total) = score([judged("correct"), judged("wrong"), judged("error")], READER, JUDGE).rows
    assert (3, 1, 1, 0, 1, 0.5) == (
        total.n, total.right, total.wrong, total.abstained, total.errors, total.score,
    )  # fmt: skip
    assert ("a", "all") == (row.category, total.category)


def test_wrong_golds_are_left_out_of_rows_of_their_own() -> None:
    """All is said twice, with and without; where no gold is doubted, once."""
    rows = score([judged("wrong", wrong_gold=True), judged("correct")], READER, JUDGE).rows
    assert [("a", "", 2), ("all", "", 2), ("a", "wrong-gold", 1), ("all", "wrong-gold", 1)] == [
        (row.category, row.left_out, row.n) for row in rows
    ]
    assert 2 == len(score([judged("correct")], READER, JUDGE).rows)


@pytest.mark.parametrize(
    ("evidence", "shown", "name"),
    [(2, 2, "all"), (2, 1, "some"), (2, 0, "none"), (2, None, "unknown"), (0, 0, "not named")],
)
def test_evidence_use(evidence: int, shown: int | None, name: str) -> None:
    """Verdicts stand beside what of the evidence was in the prompt; who names no turns is unknown."""
    found = score([judged("correct", evidence=evidence, shown=shown)], READER, JUDGE).use
    assert [(name, 1, 1)] == [(use.evidence, use.n, use.right) for use in found]


def test_conventions_are_means_over_the_questions_that_have_them() -> None:
    """Order is scored for event ordering alone."""
    some = [
        judged("correct", scores={"floored": 1.0, "tau": 0.5}), judged("wrong", scores={"floored": 0.0}),
    ]  # fmt: skip
    assert {"floored": 0.5, "tau": 0.5} == score(some, READER, JUDGE).rows[-1].scores


def test_cost_is_known_where_the_table_has_the_model() -> None:
    """An unknown price is not free."""
    found = score([judged("correct")], READER, JUDGE)
    assert found.answer_usd is not None and found.answer_usd > 0
    assert found.judge_usd is None
    elsewhere = msgspec.structs.replace(READER, model="compatible:gpt-4o-mini@1b9f03c2")
    assert found.answer_usd == score([judged("correct")], elsewhere, JUDGE).answer_usd


def test_another_reader_adds_and_the_same_one_replaces() -> None:
    """So a sweep over budgets leaves all of its results behind, in an order of their own."""
    scores = Scores()
    small = msgspec.structs.replace(READER, budget_tokens=500)
    for reader, verdict in ((READER, "wrong"), (small, "wrong"), (READER, "correct")):
        scores.put(score([judged(verdict)], reader, JUDGE))
    found = {one.reader.budget_tokens: one.rows[-1].right for one in scores.scores}
    assert {None: 1, 500: 0} == found


def test_what_cannot_be_read_is_told(tmp_path: Path) -> None:
    """No file is no score; a damaged one is named."""
    path = tmp_path / "scores.json"
    assert [] == read_scores(path).scores
    path.write_text("{")
    with pytest.raises(ScoresError, match=r"scores\.json: cannot be read"):
        read_scores(path)
    path.write_bytes(msgspec.json.encode(Scores(version=9)))
    with pytest.raises(ScoresError, match="version 9"):
        read_scores(path)
