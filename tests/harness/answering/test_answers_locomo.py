"""From a real conversation to scores: what is known beforehand has to come out."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from steeltrap.harness.answering.scores import Row, Score, read_scores
from steeltrap.harness.cli import main
from steeltrap.harness.commands.run import run


@pytest.fixture(scope="module")
def locomo(data: Path) -> Path:
    """LoCoMo's file."""
    path = data / "locomo" / "locomo10.json.gz"
    if not path.exists():
        pytest.skip("LoCoMo is not here")
    return path


@pytest.fixture(scope="module")
def runs(locomo: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The first conversation, asked of `bm25`."""
    folder = tmp_path_factory.mktemp("locomo")
    quiet = Console(quiet=True)
    asked = ["experiment=locomo", f"script.path={locomo}", "system=bm25", "seed=0", "twins=0"]
    audit = locomo.with_name("locomo_audit_errors.json")
    run([*asked, f"script.audit={audit}", f"runs={folder}"], quiet, quiet)
    return folder


@pytest.fixture
def golds(locomo: Path) -> dict[str, str]:
    """The record's answers by question."""
    sample = json.loads(gzip.decompress(locomo.read_bytes()))[0]
    return {asked["question"]: str(asked.get("answer", "")) for asked in sample["qa"]}


def scored(runs: Path, name: str) -> Iterator[tuple[Score, dict[str, Row]]]:
    for path in runs.rglob("scores.json"):
        for found in read_scores(path).scores:
            if found.judge.name == name:
                yield found, {row.category: row for row in found.rows if not row.left_out}


def test_a_reader_that_never_knows_is_right_where_nothing_can_be_known(
    provider: Any, runs: Path, tmp_path: Path
) -> None:
    """It abstains everywhere else, which is not right, and no error."""
    provider.says = lambda _: "No information available"
    told = [str(runs), f"recordings={tmp_path}"]
    assert 0 == main(["answer", *told, "model=silent", "prompt=locomo", "budget_tokens=200"])
    assert 0 == main(["judge", str(runs), "judge=f1", "name=silent"])
    ((found, rows),) = scored(runs, "silent")
    assert (47, 47) == (rows["5"].n, rows["5"].right)
    assert (199, 47, 0, 152, 0) == (
        rows["all"].n, rows["all"].right, rows["all"].wrong, rows["all"].abstained,
        rows["all"].errors,
    )  # fmt: skip
    assert found.context_tokens_mean is not None and 100 < found.context_tokens_mean <= 200


def test_a_reader_that_knows_the_record_is_right_wherever_it_has_an_answer(
    provider: Any, runs: Path, golds: dict[str, str], tmp_path: Path
) -> None:
    """By F1, by substring, and by a model that looks; adversarial questions it gets wrong."""

    def says(body: dict[str, Any]) -> str:
        text = body["messages"][-1]["content"]
        if "response_format" not in body:
            question = re.findall(r"^Question: (.*)$", text, re.MULTILINE)[-1]
            return golds[question] or "something"
        found = dict(re.findall(r"<<<([\w ]+) mark-\d+>>>\n(.*?)\n<<<end", text, re.DOTALL))
        right = found.get("gold answer") == found["answer to be graded"]
        return json.dumps({"verdict": "correct" if right else "wrong"})

    provider.says = says
    told = [str(runs), f"recordings={tmp_path}"]
    assert 0 == main(["answer", *told, "model=knowing", "prompt=plain", "k=3"])
    for name in ("f1", "substring"):
        assert 0 == main(["judge", str(runs), f"judge={name}"])
    assert 0 == main(["judge", *told, "model=looking"])
    right = {}
    for name in ("f1", "substring", "looking"):
        ((_, rows),) = scored(runs, name)
        assert (0, 0, 199) == (rows["all"].abstained, rows["all"].errors, rows["all"].n)
        right[name] = [rows[category].right for category in ("1", "2", "3", "4", "5")]
    assert [32, 37, 13, 70, 0] == right["substring"]
    # two adversarial questions have an answer in the record, which LoCoMo's own scorer leaves aside
    assert [32, 37, 13, 70, 2] == right["looking"]
    # to F1 what stands behind a semicolon is no part of the gold, so all of it is too much
    assert [32, 37, 9, 70, 0] == right["f1"]


def test_evidence_use_adds_up_to_all_questions(runs: Path) -> None:
    """Every question stands in one row of the evidence table."""
    main(["judge", str(runs), "judge=exact"])
    ((found, rows),) = scored(runs, "exact")
    assert rows["all"].n == sum(use.n for use in found.use)
    assert {"all", "some", "none", "not named"} >= {use.evidence for use in found.use}
    assert len(found.use) >= 3
