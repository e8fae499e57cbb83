"""The page on the reference system is true: its code runs, and its tables are those of the code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from steeltrap import reference_system
from steeltrap.reference_system.policy.vocabulary import reference

PAGE = Path(next(iter(reference_system.__path__)), "README.md").read_text("utf-8")


def test_the_code_runs_as_it_stands(capsys: pytest.CaptureFixture[str]) -> None:
    """The examples, one after the other in one namespace, hold what they assert."""
    names: dict[str, object] = {}
    for block in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL):
        exec(compile(block, "README.md", "exec"), names)
    assert "keep-higher-source" in capsys.readouterr().out


def test_the_vocabulary_is_that_of_the_language() -> None:
    """The tables of events, names and actions are made from the code, and up to date."""
    found = re.search(r"<!-- vocabulary -->\n(.*?)\n<!-- /vocabulary -->", PAGE, re.DOTALL)
    assert found is not None
    assert reference().strip() == found[1].strip()
