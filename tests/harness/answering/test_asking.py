"""Marks of blocks, jobs in order, sheets of lines."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec
import pytest

from steeltrap.harness.answering.asking import Sheet, fence, in_order, read_sheet
from steeltrap.harness.store import StoreError


class Head(msgspec.Struct):
    of: str


class Line(msgspec.Struct):
    step: int
    text: str = ""


def test_a_mark_stands_in_no_text() -> None:
    """A text that holds the mark that it would have had gets another; else it is always the same."""
    mark = fence("a", "b")
    assert mark == fence("a", "b") == fence("c")
    for texts in ((f"x {mark}", "b"), ("a", f"{mark}>>>"), ("mark-1", f"{mark}0 mark-2 mark-3")):
        assert not any(fence(*texts) in text for text in texts)


def test_results_come_in_order_and_only_so_many_jobs_run() -> None:
    """Whichever is done first, lines are written in the order of the questions."""
    running, most = 0, 0

    async def job(n: int) -> int:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.01 * (5 - n))
        running -= 1
        return n

    async def everything() -> list[int]:
        return [n async for n in in_order([lambda n=n: job(n) for n in range(5)], 3)]

    assert [0, 1, 2, 3, 4] == asyncio.run(everything())
    assert 1 < most <= 3


def test_the_later_line_counts_and_the_end_brings_order(tmp_path: Path) -> None:
    """Lines are added as they come; finishing sorts them by step."""
    path = tmp_path / "sheet.jsonl"
    sheet = Sheet(path, Head("x"), Line)
    for line in (Line(2, "old"), Line(1), Line(2, "new")):
        sheet.add(line)
    assert 4 == len(path.read_bytes().splitlines())
    again = Sheet(path, Head("x"), Line)
    assert {1: Line(1), 2: Line(2, "new")} == again.lines
    again.finish()
    assert b'{"of":"x"}\n{"step":1,"text":""}\n{"step":2,"text":"new"}\n' == path.read_bytes()


def test_another_header_begins_anew(tmp_path: Path) -> None:
    """Lines belong to what decided them."""
    path = tmp_path / "sheet.jsonl"
    Sheet(path, Head("x"), Line).add(Line(1))
    assert {} == Sheet(path, Head("y"), Line).lines
    assert b'{"of":"y"}\n' == path.read_bytes()


def test_reading_changes_nothing_that_it_does_not_know(tmp_path: Path) -> None:
    """A sheet of another version is refused and left as it is."""
    path = tmp_path / "sheet.jsonl"
    with pytest.raises(StoreError, match=r"is not there; do this"):
        read_sheet(path, Head, Line, "do this")
    for content, told in (
        (b'{"of":"x","more":1}\n{"step":1}\n', "another version"),
        (b"nothing\n", r"sheet.jsonl:1: cannot be read"),
        (b'{"of":"x"}\n{"step":\n', r"sheet.jsonl:2: cannot be read"),
    ):
        path.write_bytes(content)
        with pytest.raises(StoreError, match=told):
            read_sheet(path, Head, Line, "do this")
        assert content == path.read_bytes()
