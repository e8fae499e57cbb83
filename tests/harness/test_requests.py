"""Requests of an agent, turn by turn: what they hold, their tokens, what a cache would have."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pytest
from rich.console import Console

from steeltrap.harness import requests as asking
from steeltrap.harness.commands.run import run
from steeltrap.harness.gateway.mind import ScriptMind
from steeltrap.harness.gateway.prefix import BLOCK_TOKENS, LEAST_TOKENS
from steeltrap.harness.history import Event
from steeltrap.harness.memory import Item
from steeltrap.harness.record import Request, read_record
from steeltrap.harness.requests import instructions, lines, requests
from steeltrap.harness.script import REQUEST, Op, Probe, Step, Turn
from steeltrap.harness.shelf import Attic
from steeltrap.harness.tokens import count
from steeltrap.workloads.compose import ScriptSettings, compose

FIXED = count(instructions())


@pytest.fixture(autouse=True, params=["short", "long"])
def length(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """All that is tested holds for lives of any length, also for those that do not fit into memory."""
    if request.param == "long":
        monkeypatch.setattr(asking, "Attic", partial(Attic, room=2))


def asked(number: int, text: str = "Hello.") -> Probe:
    return Probe(
        at="2026-01-01T10:00", id=f"r{number}", ask="evidence", text=text, category=REQUEST
    )


def told(number: int) -> Turn:
    return Turn(
        at="2026-01-01T10:00", id=f"t{number}", session="s", text="Hello.", ops=[Op("noise")]
    )


def life(*served: Sequence[Item]) -> list[tuple[Step, Event]]:
    """For each turn what was served for it; every item is new."""
    pairs: list[tuple[Step, Event]] = []
    seen = 0
    for number, items in enumerate(served):
        numbers = list(range(seen, seen + len(items)))
        seen += len(items)
        pairs.append((asked(number), Event(i=2 * number, type="ok", new=list(items), served=numbers)))  # fmt: skip
        pairs.append((told(number), Event(i=2 * number + 1, type="ok")))
    return pairs


def test_instructions_are_long_enough_to_be_cached() -> None:
    """Providers cache from 1,024 tokens on; a shorter text would hide what layouts do."""
    assert LEAST_TOKENS <= FIXED < LEAST_TOKENS + BLOCK_TOKENS


def test_a_request_is_instructions_memory_and_turn() -> None:
    """Its tokens are those of its text, taken together."""
    items = [Item("The deadline is 5 May."), Item("It rains.\nA lot.")]
    (first, second) = requests(life([], items))
    text = "- The deadline is 5 May.\n- It rains.\nA lot.\n"
    assert (1, FIXED + count("Hello.\n"), 0) == (first.turn, first.tokens, first.memory_tokens)
    assert (2, count(text)) == (second.turn, second.memory_tokens)
    assert count(instructions() + text + "Hello.\n") == second.tokens
    assert len(instructions() + text + "Hello.\n") == second.characters


def test_the_memory_stands_by_time_behind_what_has_none() -> None:
    """A transcript that is served newest first grows at its end, also within one minute."""
    served = [
        Item("third", valid_from="2026-01-02T10:00"), Item("a rule"),
        Item("second", valid_from="2026-01-01T10:00", valid_to="2026-01-02"),
        Item("first", valid_from="2026-01-01T10:00", review=True), Item("another"),
    ]  # fmt: skip
    assert [
        "- a rule\n", "- another\n", "- (2026-01-01T10:00, needs review) first\n",
        "- (2026-01-01T10:00, until 2026-01-02) second\n", "- (2026-01-02T10:00) third\n",
    ] == lines(served)  # fmt: skip


def test_what_changes_first_spoils_the_cache_behind_it() -> None:
    """Instructions first: they are read from the cache whatever the memory serves. Memory first:
    another first item leaves nothing; the same memory again leaves all of it."""
    one, other = [Item("a " * 2000)], [Item("b " * 2000)]
    found = requests(life(one, other, one))
    kept = FIXED // BLOCK_TOKENS * BLOCK_TOKENS
    whole = found[0].tokens // BLOCK_TOKENS * BLOCK_TOKENS
    assert [0, kept, whole] == [r.cached_tokens for r in found]
    assert [0, 0, whole] == [r.cached_memory_first_tokens for r in found]


def test_a_growing_transcript_is_cached_in_one_layout() -> None:
    """What is appended spoils nothing before it, but it does spoil instructions that stand behind."""
    texts = [Item(f"turn {n} " + "word " * 200, valid_from=f"2026-01-01T10:{n:02}") for n in range(12)]  # fmt: skip
    found = requests(life(*(texts[:n][::-1] for n in range(12))))
    memory = [request.memory_tokens for request in found]
    for before, request in zip(memory, found[1:], strict=False):
        assert request.cached_tokens >= FIXED + before - 2 * BLOCK_TOKENS
        least = before - BLOCK_TOKENS
        assert request.cached_memory_first_tokens <= before + BLOCK_TOKENS
        assert request.cached_memory_first_tokens >= (least if least >= LEAST_TOKENS else 0)


def test_a_turn_that_could_not_be_asked_with_has_no_request() -> None:
    """And public data's questions, which are no turns, have none either."""
    failed = (asked(0), Event(i=0, type="fail", error="no"))
    question = Probe(at="2026-01-01T10:00", id="q", ask="evidence", text="Hello?", category="1")
    assert [] == requests([failed, (told(0), Event(i=1, type="ok")), (question, Event(i=2, type="ok"))])  # fmt: skip


# ---------------------------------------------------------------- scripts


@pytest.fixture(scope="module")
def settings() -> ScriptSettings:
    return ScriptSettings(name="adversarial", turns=60)


def test_a_script_that_asks_with_its_turns_is_otherwise_the_same(settings: ScriptSettings) -> None:
    """Each turn has its question just before it, and no other step changes, nor a script without."""
    plain = compose(settings, 0)
    asking = compose(ScriptSettings(name="adversarial", turns=60, requests=True), 0)
    assert "requests" not in plain.header.settings and asking.header.settings["requests"]
    rest = [s for s in asking.steps if not (isinstance(s, Probe) and s.category == REQUEST)]
    changes = [change for step in asking.steps for change in step.changes]
    assert [step.id for step in plain.steps] == [step.id for step in rest]
    assert [change for step in plain.steps for change in step.changes] == changes
    for place, step in enumerate(asking.steps):
        if isinstance(step, Turn):
            before = asking.steps[place - 1]
            assert isinstance(before, Probe) and before.observe == "in-script"
            assert (step.text, step.tenant, step.at) == (before.text, before.tenant, before.at)
            assert step.unless == before.unless


def test_what_runs_out_while_a_turn_is_asked_with_is_probed_at_once() -> None:
    """A question may be the first step after a value has lapsed; what follows is as without it."""

    def steps(requests: bool, seed: int) -> list[Step]:
        made = compose(ScriptSettings(name="expiry", families={"expiry": 1}, turns=300, requests=requests), seed)  # fmt: skip
        return made.steps

    lapsed = 0
    for seed in range(2):
        asking = steps(True, seed)
        requests = [s for s in asking if isinstance(s, Probe) and s.category == REQUEST]
        lapsed += sum(bool(step.changes) for step in requests)
        assert [s.id for s in steps(False, seed)] == [s.id for s in asking if s not in requests]
    assert lapsed


def test_the_ideal_model_knows_what_a_turn_is_about() -> None:
    """A request that speaks of no unit is understood too, and is about nothing."""
    script = compose(ScriptSettings(name="adversarial", turns=40, requests=True), 0)
    mind = ScriptMind(script)
    about = {len(mind.asked(s.text).places) for s in script.steps if isinstance(s, Probe) and s.category == REQUEST}  # fmt: skip
    assert {0, 1} <= about


def test_requests_of_whole_runs(tmp_path: Path) -> None:
    """A transcript's requests grow with its turns, those of a memory that answers do not."""
    asked = ["system=flat,gem,summary,ideal", "script=adversarial", "script.turns=40", "twins=0"]
    quiet = Console(quiet=True)
    run([*asked, "script.requests=true", f"runs={tmp_path}"], quiet, quiet)
    found: dict[str, list[Request]] = {}
    for path in tmp_path.rglob("record.json"):
        record = read_record(path)
        found[record.spec.system] = record.outcome.requests
    assert {40} == {len(own) for own in found.values()}
    last = {system: own[-1].memory_tokens for system, own in found.items()}
    assert last["ideal"] <= last["gem"] + 50 and 5 * last["gem"] < last["flat"]
    assert found["flat"][39].memory_tokens > found["flat"][9].memory_tokens
