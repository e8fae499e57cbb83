"""Reflexion: what counts as a failure, what is learned from it, and what is kept."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from steeltrap.adapters.embedders import HashEmbedder
from steeltrap.adapters.reflexion import Reflexion
from steeltrap.adapters.reflexion.answers import answer
from steeltrap.harness.conformance.said import SCRIPT
from steeltrap.harness.gateway.ideal import Ideal
from steeltrap.harness.gateway.mind import ScriptMind
from steeltrap.harness.gateway.server import Gateway
from steeltrap.harness.memory import (  # fmt: skip
    Forks,
    MemoryFault,
    Query,
    Recalls,
    Recovers,
    Salient,
    Subject,
    Utterance,
)
from steeltrap.harness.models import Answerer, Ask, Mind, Reply
from steeltrap.harness.script import Header, Op, Script, Turn


def turn(number: int, text: str, role: str = "user", tenant: str = "acme") -> Utterance:
    return Utterance(f"t{number}", f"2026-01-01T10:{number:02}", tenant, "s1", role, text)


class Critic:
    """Finds a failure in what says so, and learns a lesson of one line from each."""

    def __init__(self) -> None:
        self.asked: list[Ask] = []

    def __call__(self, ask: Ask, mind: Mind) -> Reply | None:  # noqa: ARG002
        self.asked.append(ask)
        message = ask.said("user").rpartition("Next message:\n")[2]
        if ask.schema_name == "evaluation":
            return Reply(text=f'{{"failed": {str("wrong" in message).lower()}}}')
        return Reply(text=f"Lesson {len(self.lessons)}.\n\n Mind  it.")

    @property
    def lessons(self) -> list[Ask]:
        return [ask for ask in self.asked if ask.schema_name != "evaluation"]


@contextlib.contextmanager
def opened(answerer: Answerer, script: Script = SCRIPT, **settings: int) -> Iterator[Reflexion]:
    """A memory whose model answers so."""
    embedder = HashEmbedder()
    ideal = Ideal(answerer, ScriptMind(script), embedder, system="reflexion")
    with Gateway(ideal, embedder) as gateway:
        memory = Reflexion(embedder, **settings)
        memory.connect(gateway.models)
        memory.open(Path())
        yield memory
        memory.close()


def served(memory: Reflexion, text: str = "?", limit: int = 99, tenant: str = "acme") -> list[str]:
    return [i.text for i in memory.retrieve(Query("q", "2026-01-02T10:00", tenant, text, limit))]


def test_a_failure_leaves_a_lesson_and_anything_else_none() -> None:
    """The evaluator is asked of every message of the user, the self-reflection after a failure."""
    critic = Critic()
    with opened(critic) as memory:
        memory.ingest(turn(0, "Atlas is due in March."))
        memory.ingest(turn(1, "Noted.", role="assistant"))
        memory.ingest(turn(2, "That was wrong."))
        assert ["Lesson 1.", "Mind it.", "That was wrong.", "Noted.", "Atlas is due in March."] == (
            served(memory)
        )
        lesson, *_ = memory.active("acme")
        assert (None, "2026-01-01T10:02") == (lesson.sources, lesson.valid_from)
    # nothing can have been wrong before the first message, and what is the agent's own is no signal
    assert ["evaluation", ""] == [ask.schema_name for ask in critic.asked]
    assert "Atlas is due" in critic.lessons[0].text and "That was wrong." in critic.lessons[0].text


def test_the_last_lessons_are_kept_and_the_latest_turns() -> None:
    """Ω lessons (section 3), the oldest goes first whatever it says; and so do turns."""
    critic = Critic()
    with opened(critic, experiences=2, trajectory_turns=3) as memory:
        for number in range(6):
            memory.ingest(turn(number, f"Number {number} was wrong."))
        kept = [item.text for item in memory.active("acme")]
        assert ["Lesson 4.", "Mind it.", "Lesson 5.", "Mind it."] == kept[:4]
        assert [f"Number {number} was wrong." for number in (3, 4, 5)] == kept[4:]
        assert kept[:2] == served(memory)[2:4]  # the newest lesson first
    assert "Lesson 3." in critic.lessons[-1].text  # self-reflection sees what it learned before


def test_a_limit_cuts_to_what_is_nearest_in_the_order_of_the_context() -> None:
    """A model would have all of it before it: the cut is no ranking."""
    with opened(Critic()) as memory:
        for number, text in enumerate(
            ["Old oak tables.", "Rain again.", "New oak tables.", "Snow."]
        ):
            memory.ingest(turn(number, text))
        assert ["New oak tables.", "Old oak tables."] == served(memory, "oak tables", 2)
        assert [] == served(memory, "oak tables", 0)


def test_reading_changes_nothing_and_nothing_more_is_claimed() -> None:
    """A question brings no signal; there is no history, no salience and no archive."""
    with opened(Critic()) as memory:
        memory.ingest(turn(0, "Rain."))
        before = memory.active("acme")
        served(memory, "Rain?")
        assert before == memory.active("acme")
        memory.fork().ingest(turn(1, "Snow."))
        assert before == memory.active("acme")
        assert isinstance(memory, Forks) and not isinstance(memory, Recalls | Salient | Recovers)


def test_where_the_model_fails_nothing_is_taken_in() -> None:
    """An evaluation without a lesson would lose the failure."""

    def fails(ask: Ask, mind: Mind) -> Reply | None:
        return Reply(text='{"failed": true}') if ask.schema_name else None

    with opened(fails) as memory:
        memory.ingest(turn(0, "Rain."))
        with pytest.raises(MemoryFault, match="reflexion: the model"):
            memory.ingest(turn(1, "That was wrong."))
        assert ["Rain."] == served(memory)


def test_erases_by_name() -> None:
    """Lessons and turns that name the topic go, or all of a tenant."""
    with opened(Critic()) as memory:
        memory.ingest(turn(0, "Old Mill opens."))
        memory.ingest(turn(1, "It rains."))
        memory.erase("acme", Subject("acme", "old mill", "opening", "?"))
        assert ["It rains."] == served(memory)
        memory.erase("acme", None)
        assert [] == served(memory)


@pytest.mark.parametrize("settings", [{"experiences": 0}, {"trajectory_turns": 0}])
def test_refuses_settings_that_make_no_sense(settings: dict[str, int]) -> None:
    """Something has to be kept."""
    with pytest.raises(ValueError, match="reflexion: "):
        Reflexion(HashEmbedder(), **settings)


def test_the_ideal_agent_learns_what_it_should_have_said() -> None:
    """A change of what is in sight is a failure; what is new, or was never heard of, is none."""
    deadline = "acme/Atlas/deadline"
    ops = [
        Op("tell", deadline, "date:2026-03-05"), Op("noise"),
        Op("restate", deadline, "date:2026-03-05"), Op("revise", deadline, "date:2026-03-09"),
    ]  # fmt: skip
    turns = [
        Turn(at=f"2026-01-01T10:{n:02}", id=f"t{n}", session="s", tenant="acme", text=f"Turn {n} of Atlas.", ops=[op])
        for n, op in enumerate(ops)
    ]  # fmt: skip
    script = Script(Header(name="small", tenants=["acme"]), list(turns))
    for window, lessons in ((30, ["The deadline of Atlas is 9 March 2026."]), (1, [])):
        with opened(answer, script, trajectory_turns=window) as memory:
            for number in (0, 2, 1, 3):
                memory.ingest(turn(number, f"Turn {number} of Atlas."))
            assert lessons == [i.text for i in memory.active("acme") if i.sources is None]
