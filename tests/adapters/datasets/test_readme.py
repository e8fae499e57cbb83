"""The page about public data sets says what the loaders do."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from steeltrap.adapters.datasets import locomo, source
from steeltrap.harness.script import Probe

PAGE = Path(source.__file__).with_name("README.md").read_text()
NAMES = ("beam", "halumem", "locomo", "longmemeval", "memoryagentbench")


def counts_on_page() -> dict[tuple[str, str], str]:
    """Data set and flag -> how many questions the page says have it."""
    found, owner = {}, ""
    for line in PAGE.partition("## Defects")[2].splitlines():
        cells = [cell.strip(" `") for cell in line.split("|")]
        if len(cells) == 6:
            owner = cells[1] or owner
            found[owner, cells[2]] = cells[3]
    return found


def counts_on_card(name: str) -> dict[str, Counter[str]]:
    """Flag -> questions by variant, which is said in words where there are several."""
    found: dict[str, Counter[str]] = {}
    for defect in source.card(name).defects:
        for question in defect.questions:
            scale = question.partition("/")[0] if name == "beam" else defect.variant
            found.setdefault(defect.kind, Counter())[scale.upper() if scale == "s" else scale] += 1
    return found


@pytest.mark.parametrize("name", NAMES)
def test_defects_on_the_page_are_those_on_the_card(name: str) -> None:
    """Each kind that a card lists has a row with as many questions."""
    page = counts_on_page()
    for kind, counts in counts_on_card(name).items():
        said = [
            f"{count} of {variant}" if variant else str(count) for variant, count in counts.items()
        ]
        assert page[name, kind] == ", ".join(said)


@pytest.mark.parametrize("name", NAMES)
def test_every_data_set_has_its_rows(name: str) -> None:
    """What it becomes, its times and its evidence are said of each."""
    assert len(re.findall(rf"^\| `{name}` \|", PAGE, re.MULTILINE)) >= 3


def test_locomo_s_questions_without_evidence(data: Path) -> None:
    """Four of 1986, as the page says."""
    folder = data / "locomo"
    if not folder.is_dir():
        pytest.skip(f"LoCoMo is not in {folder}")
    asked = [p for script in locomo.scripts(folder) for p in script.steps if isinstance(p, Probe)]
    assert (sum(not probe.evidence for probe in asked), len(asked)) == (4, 1986)
