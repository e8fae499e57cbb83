"""The page on public data: its stored tables and its published figures."""

from __future__ import annotations

import re
from pathlib import Path

from steeltrap.adapters.datasets.published import published


def test_every_stored_table_is_shown(docs: Path) -> None:
    """What the page asks for is there, and nothing is stored that no page shows."""
    text = (docs / "pages" / "public.md").read_text()
    asked = re.findall(r"<!-- made: stored (\w+) -->", text)
    assert sorted(asked) == sorted(path.stem for path in (docs / "public").glob("*.md"))
    for name in asked:
        assert f"python docs/public.py runs/{name}\n" in text


def test_every_figure_and_its_run_has_a_line(docs: Path) -> None:
    """Cells are as many as the head has, and each run is a command."""
    import public

    lines = public.figures().splitlines()
    assert len(lines) == 2 + len(published().figure)
    assert {line.count(" | ") for line in lines} == {5}
    assert public.runs().count("steeltrap run script=") == len(published().run)


def test_a_row_in_which_everybody_has_everything_is_left_out(docs: Path) -> None:
    """Sessions of which there are no more than k say nothing; turns stay."""
    import public

    from steeltrap.reports.table import Table

    numbers = [
        {"system": system, "grain": grain, "k": 5, "questions": 4, "score": "all", "value": value}
        for system in ("flat", "bm25")
        for grain, value in (("turn", 0.2), ("session", 1.0))
    ]
    table = Table("evidence-scores", "t", [], [], [], numbers, ())
    (found,) = public._scores({"evidence-scores": table})
    assert ["turn", "turn"] == [row[1] for row in found.rows]


def test_every_table_of_table_1_is_shown(docs: Path) -> None:
    """What the page on Table 1 asks for is stored, and nothing is stored that it does not show."""
    text = (docs / "pages" / "table1.md").read_text()
    asked = re.findall(r"<!-- made: table1 ([\w-]+) -->", text)
    assert sorted(asked) == sorted(path.stem for path in (docs / "table1").glob("*.md"))
    import table1

    assert sorted(asked) == sorted(table1._SHOWN)
