"""MemGPT: events and function calls, the tiers, what is evicted and what comes back."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from steeltrap.adapters.embedders import HashEmbedder
from steeltrap.adapters.memgpt import MemGPT
from steeltrap.adapters.memgpt.answers import answer
from steeltrap.harness.conformance.said import SCRIPT
from steeltrap.harness.gateway.ideal import Ideal
from steeltrap.harness.gateway.mind import ScriptMind
from steeltrap.harness.gateway.server import Gateway
from steeltrap.harness.memory import (  # fmt: skip
    MemoryFault,
    Query,
    Recalls,
    Recovers,
    Salient,
    Subject,
    Utterance,
)
from steeltrap.harness.models import Answerer, Ask, Message, Mind, Reply, ToolCall
from steeltrap.harness.script import Header, Op, Probe, Script, Step, Turn

ROOM = MemGPT(HashEmbedder())._overhead
"""Tokens that instructions and functions take."""
ATLAS, LUNCH = "Atlas is due in March.", "Lunch was late."


def turn(number: int, text: str, role: str = "user", tenant: str = "acme") -> Utterance:
    at = f"2026-01-{1 + number:02}T10:00"
    return Utterance(f"t{number}", at, tenant, "s1", role, text)


def call(function: str, /, *, heartbeat: bool = False, **arguments: Any) -> ToolCall:
    return ToolCall(function, {**arguments, "request_heartbeat": heartbeat})


class Actor:
    """Calls what it is told to, one inference after another, and keeps what it was shown."""

    def __init__(self, *steps: list[ToolCall]) -> None:
        self.steps = list(steps)
        self.asked: list[Ask] = []

    def __call__(self, ask: Ask, mind: Mind) -> Reply | None:  # noqa: ARG002
        self.asked.append(ask)
        if not ask.tools:
            return Reply(text=f"Summary {sum(not one.tools for one in self.asked)}.")
        calls = self.steps.pop(0) if self.steps else []
        return Reply(calls=tuple(calls), finish="tools") if calls else Reply(text="Nothing.")

    def shown(self, place: int = -1) -> str:
        return self.asked[place].said("user")


@contextlib.contextmanager
def opened(answerer: Answerer, script: Script = SCRIPT, **settings: Any) -> Iterator[MemGPT]:
    """A memory whose model answers so."""
    embedder = HashEmbedder()
    ideal = Ideal(answerer, ScriptMind(script), embedder, system="memgpt")
    with Gateway(ideal, embedder) as gateway:
        memory = MemGPT(embedder, **settings)
        memory.connect(gateway.models)
        memory.open(Path())
        yield memory
        memory.close()


def served(memory: MemGPT, text: str = "What now?", limit: int = 99) -> list[str]:
    return [i.text for i in memory.retrieve(Query("q", "2026-03-01T10:00", "acme", text, limit))]


def listed(memory: MemGPT) -> list[str]:
    return [item.text for item in memory.active("acme")]


# ---------------------------------------------------------------- events and functions


def test_a_turn_is_an_event_and_the_model_edits_core_memory() -> None:
    """Appended and replaced lines are seen by the next inference; messages keep their sources."""
    actor = Actor(
        [call("core_memory_append", name="human", content="Atlas is\ndue in March.")],
        [call("core_memory_replace", name="human", old_content="March", new_content="May")],
    )
    with opened(actor) as memory:
        memory.ingest(turn(0, ATLAS))
        memory.ingest(turn(1, "No, in May."))
        core, *queue = memory.active("acme")
        assert ("Atlas is due in May.", None, "2026-01-02T10:00") == (core.text, core.sources, core.valid_from)  # fmt: skip
        assert [("No, in May.", ("t1",)), (ATLAS, ("t0",))] == [(i.text, i.sources) for i in queue]
    assert '"text":"Atlas is due in March."' in actor.shown(1).split("Messages in recall")[0]


def test_without_a_heartbeat_control_goes_back() -> None:
    """Section 2.4: with it the model sees what its call gave, and goes on."""
    insert = call("archival_memory_insert", content=ATLAS, heartbeat=True)
    actor = Actor([insert], [call("archival_memory_search", query="Atlas", page=0)], [])
    with opened(actor) as memory:
        memory.ingest(turn(0, ATLAS))
        assert 2 == len(actor.asked)
        assert "archival_memory_insert" in actor.shown() and "Passages in archival storage: 1" in actor.shown()  # fmt: skip


def test_an_error_is_told_to_the_model() -> None:
    """Section 2.3: it goes on even where it asked for no heartbeat, and not for ever."""
    wrong = [
        call("core_memory_append", name="human", content="x" * 21),
        call("core_memory_append", name="pet", content="x"),
        call("core_memory_replace", name="human", old_content="y", new_content="x"),
        call("conversation_search", query="x", page=-1),
        call("conversation_search", query=7, page=0),
        call("archival_memory_insert", content="x", more="y"),
        call("explode"),
    ]
    actor = Actor(*([one] for one in wrong), *[[wrong[0]]] * 9)
    with opened(actor, block_chars=20, steps=8) as memory:
        memory.ingest(turn(0, ATLAS))
        assert [ATLAS] == listed(memory)
    assert 8 == len(actor.asked)
    assert 7 == actor.shown().count("failed")
    for why in ("may have 20", "is one of persona, human", "does not stand", "at least 0", "takes content", "no function explode"):  # fmt: skip
        assert why in actor.shown()


def test_what_an_assistant_says_is_no_event() -> None:
    """It is the agent's own message: kept in queue and recall, and dealt with by nobody."""
    actor = Actor()
    with opened(actor) as memory:
        memory.ingest(turn(0, ATLAS, role="assistant"))
        assert [ATLAS] == listed(memory) and [] == actor.asked


# ---------------------------------------------------------------- external context


def test_recall_is_searched_by_words_and_by_days_a_page_at_a_time() -> None:
    """All messages, the newest first, five a page (section 3.1.1), but not the event itself."""
    told = [[] for _ in range(7)]
    actor = Actor(
        *told,
        [call("conversation_search", query="NUMBER", page=0, heartbeat=True)],
        [call("conversation_search", query="number", page=1, heartbeat=True)],
        [call("conversation_search_date", start_date="2026-01-03", end_date="2026-01-04", page=0)],
    )
    with opened(actor) as memory:
        for number in range(7):
            memory.ingest(turn(number, f"Number {number}."))
        # the best of each search first
        assert ["Number 6.", "Number 1.", "Number 3."] == served(memory, "Which number?", 3)
    assert '"found":[]' not in actor.shown()


def test_a_passage_is_found_by_meaning_and_stands_before_main_context() -> None:
    """What the model pulled for a question is served first; its source is not kept."""
    actor = Actor(
        [call("archival_memory_insert", content="Oak tables are heavy."),
         call("archival_memory_insert", content=ATLAS)],
        [],
        [call("archival_memory_search", query="oak tables", page=0)],
    )  # fmt: skip
    with opened(actor) as memory:
        memory.ingest(turn(0, "Oak tables are heavy, and Atlas is due in March."))
        memory.ingest(turn(1, LUNCH))
        first, second, *_ = memory.retrieve(Query("q", "2026-03-01T10:00", "acme", "Oak?", 9))
        assert ["Oak tables are heavy.", ATLAS] == [first.text, second.text]
        assert (None, "2026-01-01T10:00") == (first.sources, first.valid_from)


def test_a_question_joins_the_queue_and_what_it_found_stands_at_its_end() -> None:
    """Reading changes the state (section 2.2); a copy that is asked leaves the original alone."""
    actor = Actor([], [], *[[call("conversation_search", query="Atlas", page=0)]] * 2)
    with opened(actor) as memory:
        memory.ingest(turn(0, ATLAS))
        memory.ingest(turn(1, LUNCH))
        served(memory.fork(), "Atlas?")
        assert [LUNCH, ATLAS] == listed(memory)
        served(memory, "Atlas?")
        assert [ATLAS, LUNCH] == listed(memory)
        served(memory)
    assert '"text":"Atlas?"' in actor.shown()
    assert isinstance(memory, Recovers) and not isinstance(memory, Recalls | Salient)


# ---------------------------------------------------------------- the queue manager


def test_warns_once_then_evicts_the_oldest_and_sums_them_up() -> None:
    """Section 2.2: at 70 % a system message, beyond 100 % half a window goes, whatever it says."""
    actor = Actor()
    with opened(actor, context_tokens=ROOM + 1000) as memory:
        number = 0
        while not any(not ask.tools for ask in actor.asked):
            memory.ingest(turn(number, f"Vital number {number}. " + "So it is. " * 8))
            number += 1
        warned = [ask for ask in actor.asked if "Memory pressure" in ask.said("user")]
        assert 1 < len(warned)
        assert {1} == {ask.said("user").count("Memory pressure") for ask in warned}
        (*left, summary) = memory.active("acme")
        assert ("Summary 1.", None) == (summary.text, summary.sources)
        assert [f"t{n}" for n in range(number)][::-1][: len(left)] == [item.id for item in left]
        assert summary.valid_from == f"2026-01-{number - len(left):02}T10:00"
        assert 0 < len(left) < number
        # external storage has them all
        found = memory.recover(Subject("acme", "vital number", "x", "?"))
        assert {f"t{n}" for n in range(number)} == {item.id for item in found}


def test_the_next_summary_is_told_the_one_before() -> None:
    """It is recursive, and takes its place."""
    actor = Actor()
    with opened(actor, context_tokens=ROOM + 1000, evicted=0.05) as memory:
        for number in range(28):
            memory.ingest(turn(number, f"Number {number}. " + "So it is. " * 8))
        summed = [ask.said("user") for ask in actor.asked if not ask.tools]
        assert len(summed) > 1 and '"summary":["Summary 1."]' in summed[1]
        assert f"Summary {len(summed)}." == listed(memory)[-1]


def test_where_the_model_fails_nothing_happened() -> None:
    """Neither half a chain of calls nor the message is kept."""
    steps = [Reply(calls=(call("core_memory_append", name="human", content="x", heartbeat=True),), finish="tools")]  # fmt: skip

    def fails(ask: Ask, mind: Mind) -> Reply | None:
        return steps.pop() if steps else None

    with opened(fails) as memory:
        with pytest.raises(MemoryFault, match="memgpt: the model"):
            memory.ingest(turn(0, ATLAS))
        assert [] == listed(memory)


def test_erases_by_name_in_every_tier() -> None:
    """Core memory, queue with its calls, recall and archive; or all of a tenant."""
    actor = Actor(
        [call("core_memory_append", name="human", content=ATLAS),
         call("archival_memory_insert", content=ATLAS)],
    )  # fmt: skip
    with opened(actor) as memory:
        memory.ingest(turn(0, ATLAS))
        memory.ingest(turn(1, LUNCH))
        memory.erase("acme", Subject("acme", "atlas", "due", "?"))
        assert [LUNCH] == listed(memory)
        assert [] == list(memory.recover(Subject("acme", "Atlas", "due", "?")))
        served(memory)
        assert "Atlas" not in actor.shown()
        memory.erase("acme", None)
        assert [] == listed(memory) and [] == served(memory)


@pytest.mark.parametrize(
    "settings",
    [{"warning": 0.0}, {"warning": 1.1}, {"evicted": 0.0}, {"context_tokens": 0}, {"steps": 0}],
)
def test_refuses_settings_that_make_no_sense(settings: dict[str, Any]) -> None:
    """The warning comes before the flush, and something is evicted."""
    with pytest.raises(ValueError, match="memgpt: "):
        MemGPT(HashEmbedder(), **settings)


# ---------------------------------------------------------------- the ideal model

DEADLINE, HOST = "acme/Atlas/deadline", "acme/Atlas/host"


def said(*ops: Op) -> Script:
    """Turns that do one thing each, and a question for the deadline."""
    steps: list[Step] = [
        Turn(at=f"2026-01-{1 + n:02}T10:00", id=f"t{n}", session="s", tenant="acme", text=f"Turn {n} of Atlas.", ops=[op])
        for n, op in enumerate(ops)
    ]  # fmt: skip
    steps.append(
        Probe(id="q", at="2026-03-01T10:00", tenant="acme", ask="current", text="When?", unit=DEADLINE)
    )  # fmt: skip
    return Script(Header(name="small", tenants=["acme"]), steps)


def told(memory: MemGPT, count: int) -> list[str]:
    for number in range(count):
        memory.ingest(turn(number, f"Turn {number} of Atlas."))
    return [item.text for item in memory.active("acme") if item.sources is None]


def test_the_ideal_model_keeps_core_memory_true() -> None:
    """What matters stands there as it holds now; what is trivial goes into the archive."""
    script = said(
        Op("tell", DEADLINE, "date:2026-03-05"), Op("noise"),
        Op("tell", HOST, "text:Ilse Brandt", importance="trivial"),
        Op("revise", DEADLINE, "date:2026-03-09"), Op("restate", DEADLINE, "date:2026-03-09"),
    )  # fmt: skip
    with opened(answer, script) as memory:
        assert ["The deadline of Atlas is 9 March 2026."] == told(memory, 5)
        found = [i.text for i in memory.recover(Subject("acme", "Atlas", "host", "?"))]
        assert "The host of Atlas is Ilse Brandt." in found


def test_the_ideal_model_makes_room_for_what_is_vital() -> None:
    """Where core memory is full the rest goes into the archive, and a lesser line gives way."""
    script = said(
        Op("tell", HOST, "text:Ilse Brandt"),
        Op("tell", DEADLINE, "date:2026-03-05", importance="vital"),
    )
    with opened(answer, script, block_chars=45) as memory:
        assert ["The deadline of Atlas is 5 March 2026."] == told(memory, 2)
        found = [i.text for i in memory.recover(Subject("acme", "Atlas", "host", "?"))]
        assert "The host of Atlas is Ilse Brandt." in found


def test_the_ideal_model_searches_for_what_core_memory_does_not_tell() -> None:
    """The archive first, then recall storage; nothing where core memory tells."""
    trivial = Op("tell", DEADLINE, "date:2026-03-05", importance="trivial")
    with opened(answer, said(trivial)) as memory:
        told(memory, 1)
        assert "The deadline of Atlas is 5 March 2026." == served(memory, "When?")[0]
    with opened(answer, said(Op("tell", DEADLINE, "date:2026-03-05"))) as memory:
        told(memory, 1)
        assert ["The deadline of Atlas is 5 March 2026.", "Turn 0 of Atlas."] == (
            served(memory, "When?")
        )
        assert ["user", "function", "user"] == [one.role for one in memory._of("acme").queue]


def test_another_prompt_is_not_known() -> None:
    """The ideal model answers the adapter's prompts and no other."""
    assert answer(Ask("m", ()), ScriptMind(SCRIPT)) is None


def test_the_ideal_summary_is_the_latest_that_holds_in_so_many_words() -> None:
    """Seven words a sentence: a third has no room, and the oldest is left out, however vital."""
    script = said(
        Op("tell", DEADLINE, "date:2026-03-05", importance="vital"),
        Op("tell", HOST, "text:Ilse Brandt", importance="trivial"),
        Op("tell", "acme/Atlas/colour", "text:deep blue"),
        Op("revise", HOST, "text:Noor Haddad", importance="trivial"),
    )
    rows = "\n".join(f'{{"role":"user","text":"Turn {n} of Atlas."}}' for n in range(4))
    user = f'Number of words, at most: 15\n\nSummary so far:\n{{"summary":[]}}\n\nMessages:\n{rows}'
    reply = answer(Ask("m", (Message("user", user),)), ScriptMind(script))
    assert reply is not None
    assert ["The colour of Atlas is deep blue.", "The host of Atlas is Noor Haddad."] == (
        reply.text.split("\n")
    )
