"""The recipe on HelixDB: the ideal model's answers, the write and read path, forgetting, atomicity."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from steeltrap.adapters.helix import HelixRecipe
from steeltrap.adapters.helix.answers import answer
from steeltrap.adapters.helix.memory import _pieces
from steeltrap.adapters.helix.recall import asks_for_history, within_budget
from steeltrap.harness import environments
from steeltrap.harness.gateway.backend import BackendError
from steeltrap.harness.gateway.mind import ScriptMind
from steeltrap.harness.memory import Item, MemoryFault, Query, Subject, Utterance, capabilities
from steeltrap.harness.models import Ask, Message, NotUnderstood, Reply

ON_MAY = "The kick-off of Old Mill is 3 May 2026."
ON_JUNE = "The kick-off of Old Mill is 9 June 2026."
HOST = "The host of Old Mill is Ilse Brandt."
BUDGET = "The budget of Old Mill is 4,300 EUR."
NOT_SET = "The kick-off of Old Mill is no longer set."
RUMOUR = "Unconfirmed, from hearsay: the kick-off of Old Mill is 3 May 2026."
RULE = "The review of Harbour Lights is always 1 day after the kick-off of Old Mill."
WAS = "The kick-off of Old Mill was 9 June 2026 as of 2025-12-01 12:00."
KICK_OFF = Subject("acme", "Old Mill", "kick-off", "When is the kick-off of Old Mill?")

Answered = Callable[[Ask], Any]


@pytest.fixture
def answered(small: Any) -> Answered:
    """What the ideal model answers."""

    def give(ask: Ask) -> Any:
        reply = answer(ask, ScriptMind(small.script))
        assert reply is not None
        return json.loads(reply.text)

    return give


def asked_for(form: str, user: str) -> Ask:
    return Ask("m", (Message("system", "As told."), Message("user", user)), "schema", form)


def lines(*rows: dict[str, Any]) -> str:
    return "\n".join(msgspec.json.encode(row).decode() for row in rows) or "NONE"


def extraction(text: str, *related: str, before: str = "") -> Ask:
    shown = lines(*({"id": n, "text": one} for n, one in enumerate(related, 1)))
    recent = lines(*([{"id": "t0", "text": before}] if before else []))
    return asked_for(
        "facts",
        f"Date: 2026-01-04 09:30\n\nRelated memories, one JSON object a line:\n{shown}\n\nTurns"
        f" before, one JSON object a line:\n{recent}\n\nMessage:\n{lines({'id': 't1', 'text': text})}",
    )


def adjudication(fact: str, *memories: str) -> Ask:
    shown = lines(*({"id": n, "text": one} for n, one in enumerate(memories, 1)))
    facts = lines({"fact": 0, "text": fact})
    return asked_for(
        "decisions",
        f"Memories, one JSON object a line:\n{shown}\n\nFacts, one JSON object a line:\n{facts}",
    )


# ---------------------------------------------------------------- the ideal model


def test_facts_have_what_the_recipe_asks_for(answered: Answered, small: Any) -> None:
    """Content, kind, confidence, entities, source and scope, and what the data model needs besides."""
    (rule,) = answered(extraction(small.turns["depend"].text))["facts"]
    assert (rule["content"], rule["kind"], rule["entities"]) == (RULE, "procedure", ["Harbour Lights", "Old Mill"])  # fmt: skip
    assert (rule["source"], rule["scope"], rule["importance"]) == ("t1", "user", "normal")
    (rumour,) = answered(extraction(small.turns["rumour"].text))["facts"]
    assert (rumour["content"], rumour["kind"], rumour["confidence"]) == (RUMOUR, "episode", 0.3)
    (late,) = answered(extraction(small.turns["late"].text))["facts"]
    assert (late["content"], late["kind"], late["event_at"]) == (WAS, "episode", "2025-12-01T12:00")
    assert answered(extraction(small.turns["noise"].text))["facts"] == []
    assert len(answered(extraction(small.turns["two"].text))["facts"]) == 2


def test_a_topic_that_is_left_out_is_known_from_what_is_shown(answered: Answered, small: Any) -> None:  # fmt: skip
    """From a turn before or a related memory; otherwise the fact stays without one."""
    said = small.turns["host"].text
    for ask in (extraction(said, ON_MAY), extraction(said, before=small.turns["tell"].text)):
        assert [fact["content"] for fact in answered(ask)["facts"]] == [HOST]
    (unknown,) = answered(extraction(said))["facts"]
    assert (unknown["content"], unknown["entities"]) == ("The host is Ilse Brandt.", [])


@pytest.mark.parametrize(
    ("fact", "memories", "relation", "meant"),
    [
        (ON_MAY, [], "new", []),
        (ON_MAY, [BUDGET, ON_MAY], "duplicate", [2]),
        (ON_JUNE, [HOST, ON_MAY], "update", [2]),
        (ON_JUNE, [NOT_SET, ON_MAY, HOST], "update", [1, 2]),
        (NOT_SET, [ON_MAY], "update", [1]),
        (RUMOUR, [ON_JUNE], "extend", [1]),
        (BUDGET, [RULE, HOST], "extend", [1]),
        (RULE, ["Hm.", BUDGET], "new", []),
    ],
    ids=["first", "repeated", "changed", "several", "withdrawn", "rumour", "added to", "other topic"],
)  # fmt: skip
def test_facts_relate_to_memories(
    answered: Answered, fact: str, memories: list[str], relation: str, meant: list[int]
) -> None:
    """A repetition is a duplicate, a change an update, the same topic an extension, else it is new."""
    (decision,) = answered(adjudication(fact, *memories))["decisions"]
    assert decision == {"fact": 0, "relation": relation, "memories": meant}


def test_a_profile_is_sentences_as_they_are(answered: Answered) -> None:
    """The first lines are stable, the latest are the focus, and what is unconfirmed is left out."""
    rows = [RULE, HOST, RUMOUR, "Hm.", BUDGET, ON_JUNE]
    memories = lines(*(
        {"id": n, "kind": "fact", "since": f"2026-01-0{n}T09:30", "text": text}
        for n, text in enumerate(rows, 1)
    ))  # fmt: skip
    told = f"At most 3 lines in all, of which at most 1 for the focus.\n\nMemories, one JSON object a line:\n{memories}"
    profile = answered(asked_for("profile", told))
    assert profile["stable"] == [{"text": RULE, "memories": [1]}, {"text": HOST, "memories": [2]}]
    assert profile["focus"] == [{"text": ON_JUNE, "memories": [6]}]


def test_other_prompts_and_facts_are_refused(small: Any) -> None:
    """An unknown prompt is left to the gateway; a sentence that was never said is an error."""
    mind = ScriptMind(small.script)
    assert answer(Ask("m", (Message("user", "Hello"),)), mind) is None
    assert answer(asked_for("facts", "Hello"), mind) is None
    for ask in (extraction("Never said."), adjudication("Never said.", ON_MAY)):
        with pytest.raises(NotUnderstood, match=r"Never said"):
            answer(ask, mind)


# ---------------------------------------------------------------- without the package


def test_questions_that_ask_for_history() -> None:
    """Words of the past bring earlier versions; a plain question brings none."""
    for question in ("What was it before?", "How has the rent changed?", "Trace the kick-off."):
        assert asks_for_history(question)
    for question in ("When is the kick-off of Old Mill?", "Who washes the washer?", ""):
        assert not asks_for_history(question)


@pytest.mark.parametrize(
    "settings", [{"depth": 0}, {"half_life_days": 0}, {"decay_kinds": ["dream"]}, {"depht": 3}, {"chunks": -1}]
)  # fmt: skip
def test_refuses_settings_that_make_no_sense(settings: dict[str, Any]) -> None:
    """A number below its least, an unknown kind, or a setting that there is not."""
    with pytest.raises(ValueError, match=next(iter(settings))):
        HelixRecipe(**settings)


def test_use_while_not_open_is_a_fault(tmp_path: Path) -> None:
    """Without models it cannot be opened, and nothing works before."""
    memory = HelixRecipe()
    memory.close()
    with pytest.raises(MemoryFault, match="no model is connected"):
        memory.open(tmp_path)
    calls: list[Callable[[], object]] = [
        lambda: memory.ingest(Utterance("t", "2026-01-01T09:30", "acme", "s", "user", "Hello.")),
        lambda: memory.retrieve(Query("q", "2026-01-01T09:30", "acme", "?", 3)),
        lambda: memory.active("acme"), lambda: memory.history(KICK_OFF),
        lambda: memory.recover(KICK_OFF), lambda: memory.salience(KICK_OFF),
        lambda: memory.erase("acme", None), lambda: memory.maintain("2026-01-01T09:30"),
        lambda: memory.remove(KICK_OFF), lambda: memory.restore(KICK_OFF),
        lambda: memory.erase_source("acme", "t"),
        memory.settle, memory.size_bytes, memory.fork,
    ]  # fmt: skip
    for call in calls:
        with pytest.raises(MemoryFault, match="not open"):
            call()


def test_raw_text_is_cut_between_words_and_what_is_served_fits() -> None:
    """Pieces make up the turn again; the first item is served however long it is, later ones if they fit."""
    text = "One two three four five six. " * 4
    pieces = _pieces(text, 20)
    assert "".join(pieces) == text
    assert all(len(piece) <= 20 for piece in pieces) and all(
        piece.endswith(" ") for piece in pieces
    )
    assert _pieces("x" * 45, 20) == ["x" * 20, "x" * 20, "x" * 5]
    assert _pieces("  \n", 20) == []
    items = [Item("x" * 400), Item("y" * 40), Item("z" * 40)]
    assert within_budget(items, 3, 10) == items[:1]
    assert within_budget(items, 3, 110) == items[:2]
    assert within_budget(items, 1, 1000) == items[:1]


# ---------------------------------------------------------------- the package


@pytest.fixture(scope="module")
def system(living: Any) -> tuple[Any, Any]:
    node = {"_target_": "steeltrap.adapters.helix.HelixRecipe", "profile_every": 3}
    return living("helix", node, answer)  # type: ignore[no-any-return]


def asked(memory: Any, text: str, limit: int = 10, tenant: str = "acme", at: str = "2026-02-01T12:00") -> list[Item]:  # fmt: skip
    return list(memory.retrieve(Query("q", at, tenant, text, limit)))


def memories(items: list[Item]) -> list[str]:
    """The texts of what is neither the profile nor raw text."""
    return [item.text for item in items if (item.id or "").startswith("memory-")]


def test_a_life(memory: Any, small: Any) -> None:
    """A change ends what it changes; what was before is served to questions of the past alone."""
    assert capabilities(memory) == [
        "list", "history", "salience", "maintain", "recover", "erase", "fork", "size", "models"
    ]  # fmt: skip
    for turn in ("tell", "noise", "revise", "two"):
        memory.ingest(small.heard(turn))
        memory.settle()
    at = {name: turn.at for name, turn in small.turns.items()}
    found = [item for item in memory.active("acme") if memories([item])]
    assert [(i.text, i.sources, i.valid_from, i.valid_to) for i in found] == [
        (ON_JUNE, ("revise", "two"), at["revise"], None), (BUDGET, ("two",), at["two"], None),
    ]  # fmt: skip
    assert [(i.text, i.valid_to) for i in memory.history(KICK_OFF)] == [
        (ON_MAY, at["revise"]), (ON_JUNE, None),
    ]  # fmt: skip
    assert ON_MAY not in memories(asked(memory, "When is the kick-off of Old Mill?"))
    past = asked(memory, "What was the kick-off of Old Mill before?")
    assert {ON_MAY: at["revise"], ON_JUNE: None}.items() <= {i.text: i.valid_to for i in past}.items()  # fmt: skip
    assert memories(asked(memory, "kick-off of Old Mill", limit=2))[0] == ON_JUNE
    assert len(asked(memory, "kick-off of Old Mill", limit=1)) == 1
    memory.erase("acme", KICK_OFF)
    memory.settle()
    shown = [*memory.active("acme"), *asked(memory, "kick-off?"), *memory.recover(KICK_OFF)]
    assert BUDGET in memories(shown)
    assert not [i for i in shown if "June" in i.text or "3 May" in i.text]


def test_the_profile_comes_first_and_never_tells_what_no_longer_holds(memory: Any, small: Any) -> None:  # fmt: skip
    """It is written after so many memories; a line goes at once with its memory, and the rest stays."""
    memory.ingest(small.heard("two"))
    memory.settle()
    assert asked(memory, "Old Mill?")[0].id != "profile"
    memory.ingest(small.heard("depend"))
    memory.settle()
    first = asked(memory, "Old Mill?")[0]
    assert first.id == "profile"
    assert {ON_JUNE, BUDGET, RULE} == set(first.text.split("\n"))
    assert {"two", "depend"} <= set(first.sources or ())
    memory.ingest(small.heard("retract"))
    assert set(asked(memory, "Old Mill?")[0].text.split("\n")) == {BUDGET, RULE}


def test_a_turn_that_was_lost_is_a_fault(memory: Any, model: Any, small: Any) -> None:
    """Whatever a model fails in, nothing of the turn is there, and it can be told again."""
    memory.ingest(small.heard("tell"))
    before = memory.active("acme")
    for broken in (BackendError("down", status=500), Reply("no JSON"), Reply('{"facts": [{}]}')):
        model.broken = broken
        with pytest.raises(MemoryFault, match="helix-recipe: "):
            memory.ingest(small.heard("revise"))
    model.broken = None
    assert memory.active("acme") == before
    memory.ingest(small.heard("revise"))
    assert memories(memory.active("acme")) == [ON_JUNE]


def test_a_turn_told_again_changes_nothing(memory: Any, small: Any) -> None:
    """A write that is retried stores no fact twice, gains no salience, and brings back no old version."""
    for turn in ("tell", "revise", "two"):
        memory.ingest(small.heard(turn))
    before, strength = memory.active("acme"), memory.salience(KICK_OFF)
    for turn in ("two", "revise", "tell"):
        memory.ingest(small.heard(turn))
    assert (memory.active("acme"), memory.salience(KICK_OFF)) == (before, strength)
    assert len(memory.history(KICK_OFF)) == 2


def test_repetition_and_recall_strengthen(memory: Any, small: Any) -> None:
    """A repetition gains salience and an access, a recall an access; a copy keeps its own count."""
    memory.ingest(small.heard("revise"))
    assert memory.salience(KICK_OFF) == pytest.approx(0.5)
    memory.ingest(small.heard("two"))
    assert memory.salience(KICK_OFF) == pytest.approx(1.6)
    copy = memory.fork()
    for _ in range(2):
        copy.retrieve(Query("q", "2026-02-01T12:00", "acme", "kick-off?", 10))
    assert copy.salience(KICK_OFF) == pytest.approx(3.6)
    assert memory.salience(KICK_OFF) == pytest.approx(1.6)
    asked(memory, "kick-off?")
    assert memory.salience(KICK_OFF) == pytest.approx(2.6)
    memory.ingest(small.heard("depend"))
    assert memory.salience(KICK_OFF) == pytest.approx(2.6)
    with pytest.raises(MemoryFault, match="out of date"):
        copy.retrieve(Query("q", "2026-02-01T12:00", "acme", "kick-off?", 10))


def test_names_are_data(memory: Any, small: Any) -> None:
    """Tenants and questions in the signs of query languages are names and words, and nothing else."""
    tenants = [
        "acme",
        "'; DROP --",
        '"}]} {"drop": "context"}',
        "acm%",
        "ACME",
        "ü\u202e\x01🚢",
        " ",
    ]
    for number, tenant in enumerate(tenants):
        memory.ingest(small.heard("tell" if number % 2 else "revise", tenant=tenant))
    for number, tenant in enumerate(tenants):
        due = ON_MAY if number % 2 else ON_JUNE
        for question in ("kick-off?", '"}, {"drop": "context"}]', "%' OR 1=1 --", "\x00 kick"):
            assert memories(asked(memory, question, tenant=tenant)) == [due]
    memory.erase("acm%", None)
    assert [tenant for tenant in tenants if not memory.active(tenant)] == ["acm%"]


# ---------------------------------------------------------------- the store, in its environment


def played(scene: str, folder: Path) -> subprocess.Popen[str]:
    """A scene of `scenes_helix.py`, begun."""
    try:
        python = environments.find("helix")
    except environments.EnvironmentMissing as missing:
        pytest.skip(str(missing))
    source = Path(environments.__file__).parents[2]
    return subprocess.Popen(
        [python, Path(__file__).with_name("scenes_helix.py"), scene, folder],
        env={"PYTHONPATH": str(source), "HOME": str(folder)}, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


def seen(scene: str, folder: Path) -> str:
    """What a scene prints; it must end well."""
    process = played(scene, folder)
    said, wrong = process.communicate(timeout=120)
    assert process.returncode == 0, wrong[-3000:]
    return said


@pytest.mark.parametrize(
    "scene",
    [
        "soft_deletion",
        "expiry",
        "decay",
        "a_source_goes",
        "names_that_begin_alike",
        "a_fault_in_the_middle",
    ],
)
def test_scenes(scene: str, tmp_path: Path) -> None:
    """Soft deletion can be undone; what expired or faded is hidden; a source takes along what was
    derived from it, and a subject nothing of its namesakes; a batch that fails leaves no trace."""
    seen(scene, tmp_path)


def test_a_killed_write_is_whole_or_not_there(tmp_path: Path) -> None:
    """Killed in the middle of superseding, again and again, the database holds whole versions alone."""
    for lines_first in (3, 4, 7):
        process = played("write_until_killed", tmp_path)
        assert process.stdout is not None and process.stderr is not None
        told = [process.stdout.readline() for _ in range(lines_first)]
        process.send_signal(signal.SIGKILL)
        rest, wrong = process.communicate(timeout=60)
        assert told[-1], wrong[-3000:]
        done = int((rest.split() or told)[-1])
        assert int(seen("whole", tmp_path)) in (done, done + 1)
