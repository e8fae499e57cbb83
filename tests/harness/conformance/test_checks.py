"""Each check of the contract is failed by a memory that breaks that rule, and by no other."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest

from steeltrap.harness.conformance import CHECKS, Broken, NotApplicable, Remark, put
from steeltrap.harness.conformance.said import SCRIPT

_SPEC = importlib.util.spec_from_file_location(
    "contract_memories", Path(__file__).with_name("memories.py")
)
assert _SPEC
assert _SPEC.loader
memories: Any = importlib.util.module_from_spec(_SPEC)
sys.modules[_SPEC.name] = memories
_SPEC.loader.exec_module(memories)


def outcomes(make: Any, folder: Path, names: Any = CHECKS) -> dict[str, Exception]:
    """What each check says that does not pass."""
    found: dict[str, Exception] = {}
    for name in names:
        try:
            put(CHECKS[name], make, folder / name)
        except (Broken, NotApplicable) as said:
            found[name] = said
    return found


def test_a_good_memory_passes_every_check(tmp_path: Path) -> None:
    """A memory with all capabilities that keeps to the contract is put to every check, and passes."""
    assert outcomes(memories.Good, tmp_path) == {}


@pytest.fixture(autouse=True)
def _short_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("steeltrap.harness.conformance.lives._BACKGROUND_S", 0.12)


@pytest.mark.parametrize("name", CHECKS)
def test_each_check_is_failed_by_its_own_broken_memory(name: str, tmp_path: Path) -> None:
    """For every check there is a memory that fails it and no other."""
    failed = outcomes(memories.BROKEN[name], tmp_path)
    assert [name] == [key for key, said in failed.items() if isinstance(said, Broken)], failed
    assert isinstance(failed[name], Remark) == (name == "same-replies-twice")


def test_a_message_says_what_happened_what_is_due_and_what_to_do(tmp_path: Path) -> None:
    """A failure is read by somebody who does not know the check."""
    (said,) = outcomes(memories.BROKEN["keeps-to-the-limit"], tmp_path, ["keeps-to-the-limit"]).values()  # fmt: skip
    assert str(said) == (
        "asked for at most 1, it served 8 items\n"
        "  contract: at most query.limit items may be served; fewer is fine\n"
        "  to do:    cut the reply: found[:query.limit]"
    )


def test_an_error_of_the_memory_is_told_in_its_own_words(tmp_path: Path) -> None:
    """What the memory raised is quoted with the call that raised it, and kept as the cause."""
    (said,) = outcomes(memories.BROKEN["takes-an-empty-turn"], tmp_path, ["takes-an-empty-turn"]).values()  # fmt: skip
    assert "ingest('') raised ValueError: input must not be empty" in str(said)
    assert isinstance(said.__cause__, ValueError)


def test_what_is_missing_is_said_and_never_passed(tmp_path: Path) -> None:
    """A memory with the required methods alone is not put to what it does not claim."""

    class Bare:
        def __init__(self) -> None:
            self._good = memories.Good()
            for method in ("open", "close", "ingest", "retrieve", "settle"):
                setattr(self, method, getattr(self._good, method))

    said = outcomes(Bare, tmp_path)
    assert {type(one) for one in said.values()} == {NotApplicable}
    assert {"history-oldest-first", "erases-a-tenant", "tells-its-size"} <= set(said)
    assert "the memory has no history" in str(said["history-oldest-first"])


def test_everything_that_is_said_stands_in_the_script(tmp_path: Path) -> None:
    """An ideal model understands every sentence and question of the checks."""
    from steeltrap.harness.gateway.mind import ScriptMind

    mind = ScriptMind(SCRIPT)

    class Listening(memories.Good):  # type: ignore[misc, name-defined]
        def ingest(self, turn: Any) -> None:
            mind.facts(turn.text)
            super().ingest(turn)

        def retrieve(self, query: Any) -> Any:
            mind.asked(query.text)
            return super().retrieve(query)

    assert outcomes(Listening, tmp_path) == {}
