"""The page as a file: the same bytes each time, data that stays data, nothing from elsewhere."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import subprocess
import sys
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from steeltrap.harness.store import Cell
from steeltrap.harness.trajectory import Played, Story
from steeltrap.reports.page import SCRIPTS, PageError, render
from steeltrap.reports.page.pack import SHELF
from steeltrap.reports.page.parts import text_of

MAKE = """
import hashlib, sys
from pathlib import Path
from steeltrap.harness.retrace import looked_at
from steeltrap.harness.store import read_cell
from steeltrap.reports.page import render
page = render(*looked_at([read_cell(Path(folder)) for folder in sys.argv[1:]]))
print(hashlib.sha256(page.encode()).hexdigest())
"""


def blocks(page: str) -> list[Any]:
    data = re.search(r'<script type="text/plain" id="data">([^<]*)</script>', page)
    assert data
    return [json.loads(zlib.decompress(base64.b64decode(line))) for line in data[1].split("\n")]


def shelf(page: list[Any], first: int, rows: int) -> list[Any]:
    blocks = page[first : first + -(-rows // SHELF)]
    return [row for block in blocks for row in block]


def made(folders: Sequence[Path], hash_seed: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", MAKE, *map(str, folders)], check=True, capture_output=True,
        text=True, env=os.environ | {"PYTHONHASHSEED": hash_seed},
    )  # fmt: skip
    return done.stdout


def test_the_same_runs_give_the_same_bytes(cells: list[Cell]) -> None:
    """Whatever order hashes have, the page is the same."""
    folders = [cell.folder for cell in cells]
    assert made(folders, "1") == made(folders, "2")


def test_a_page_names_no_place_of_this_machine(shown: tuple[Any, Any], runs_folder: Path) -> None:
    """Neither in the page nor in its data."""
    page = render(*shown)
    assert str(runs_folder) not in page + json.dumps(blocks(page))


def test_data_holds_every_step_and_violation(shown: tuple[list[Story], list[Played]]) -> None:
    """What shelves hold, one after the other, are the steps and violations in order."""
    stories, runs = shown
    page = blocks(render(stories, runs))
    directory = page[0]
    for told, about in zip(stories, directory["stories"], strict=True):
        lines = shelf(page, about["lines"], len(told.lines))
        assert [line.id for line in told.lines] == [line["id"] for line in lines]
    for run, about in zip(runs, directory["runs"], strict=True):
        marks = shelf(page, about["marks"], len(run.violations))
        assert [mark.name for mark in run.violations] == [mark["name"] for mark in marks]
        index = page[about["index"]]
        assert len(run.shown) == len(index["verdicts"]) == len(index["by"])
        assert [mark.i for mark in run.violations] == index["marks"][0]


def test_hostile_texts_stay_data(shown: tuple[Any, Any], hostile: tuple[Any, Any]) -> None:
    """A page with hostile texts has the same elements as one without."""
    elements = [re.findall(r"<[a-zA-Z!/][^>]*>", _bare(render(*each))) for each in (shown, hostile)]
    assert elements[0] == elements[1]


def _bare(page: str) -> str:
    page = re.sub(r'content="default-src[^"]*"', "", page)
    return re.sub(r"(?s)<(style|script type=\"module\")>.*?</", "<", page)


def test_only_this_script_and_this_style_may_run(hostile: tuple[Any, Any]) -> None:
    """The policy names the hashes of what stands between the tags, and allows no source."""
    page = render(*hostile)
    found = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    assert found
    policy = found[1].replace("&#39;", "'")
    for tag in ('<script type="module">', "<style>"):
        text = page.split(tag, 1)[1].split("</", 1)[0]
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy
    assert policy.startswith("default-src 'none';")
    assert not re.search(r"unsafe|https?:|\*", policy)


def test_scripts_put_text_in_as_text() -> None:
    """Nothing turns a string into markup, code or an address, and nothing loads."""
    forbidden = r"innerHTML|outerHTML|insertAdjacent|document\.write|\beval\b|new Function|\.src\b|" \
        r"\.href\b|fetch\(|XMLHttp|import\(|WebSocket|</script|<!--|setAttribute\(.on"  # fmt: skip
    for name in SCRIPTS:
        assert not re.search(forbidden, text_of(name)), name
    assert "url(" not in text_of("style.css")
    assert "@import" not in text_of("style.css")


def test_two_runs_of_one_name_are_told_apart(shown: tuple[list[Story], list[Played]]) -> None:
    """On one script, a label that is not enough gets the folder; links as well."""
    stories, runs = shown
    told = blocks(render(stories, [runs[0], runs[0], runs[3]]))[0]["runs"]
    assert [f"ideal ({runs[0].folder})"] * 2 + ["ideal"] == [run["label"] for run in told]
    assert [runs[0].folder, f"{runs[0].folder}~2", runs[3].folder] == [run["key"] for run in told]


def test_a_run_needs_its_script(shown: tuple[list[Story], list[Played]]) -> None:
    """A run whose script is not there is refused, by its name."""
    stories, runs = shown
    with pytest.raises(PageError, match=f"{runs[3].folder}: its script"):
        render(stories[:1], runs)


def test_a_page_needs_a_run(shown: tuple[list[Story], list[Played]]) -> None:
    """There is nothing to see on a page of no runs."""
    with pytest.raises(PageError, match="no run to show"):
        render(shown[0], [])
