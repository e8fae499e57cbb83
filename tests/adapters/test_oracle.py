"""Oracle Agent Memory: how an ideal model answers, and the package's client on a store of ours."""

from __future__ import annotations

import contextlib
import json
import sqlite3
import sys
from collections.abc import Callable, Iterator
from html import escape
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from steeltrap.adapters.oracle import Oracle, OracleDatabase
from steeltrap.adapters.oracle.answers import answer
from steeltrap.harness.gateway.backend import BackendError
from steeltrap.harness.gateway.mind import ScriptMind
from steeltrap.harness.memory import Item, MemoryFault, Query, Subject, Utterance, capabilities
from steeltrap.harness.models import Ask, Message, Reply

ON_MAY = "The kick-off of Old Mill is 3 May 2026."
ON_JUNE = "The kick-off of Old Mill is 9 June 2026."
BACK = "The kick-off of Old Mill is 3 May 2026 again since 2026-01-06 09:30."
GONE = "The kick-off of Old Mill is no longer set."
HOST = "The host of Old Mill is Ilse Brandt."
KICK_OFF = Subject("acme", "Old Mill", "kick-off", "When is the kick-off of Old Mill?")
MEMORIES = ["memory", "fact", "guideline", "preference"]


# ---------------------------------------------------------------- the ideal model's answers


def asked(system: str, user: str) -> Ask:
    return Ask("m", (Message("system", system), Message("user", user)), "schema")


def message(text: str) -> str:
    return (
        "<message>\n  <timestamp>2026-01-01T09:30</timestamp>\n  <role>user</role>\n"
        f"  <content>{escape(text, quote=False)}</content>\n</message>"
    )


def extraction(text: str, *known: str) -> Ask:
    """The prompt with the sections of the package's own, in its order."""
    shown = "".join(f"\n  {line}" for line in known)
    past = f"Past.\n<retrieved_memories>{shown}\n</retrieved_memories>\n\n" if known else ""
    return asked(
        "You are a memory extraction module for an LLM agent.\n",
        "Newest thread messages for this extraction pass, presented between xml tags:\n"
        f"{message(text)}\n\n{past}Extract.",
    )


def linking(new: str, *stored: str) -> Ask:
    def one(name: str, text: str) -> str:
        return f"<id>{name}</id>\n<record_type>fact</record_type>\n<content>{escape(text, quote=False)}</content>"

    candidates = "".join(
        f"<link_target_candidate>{one(f'old{n}', text)}</link_target_candidate>"
        for n, text in enumerate(stored)
    )
    return asked(
        "You resolve links from newly extracted memories to stored candidate memories.\n",
        f"<link_source_memory>\n{one('new', new)}\n{candidates}\n</link_source_memory>",
    )


def summing(summary: str, *texts: str) -> Ask:
    return asked(
        "You maintain the persisted summary metadata for a thread.\n",
        f"Previous summary:\n{summary}\n\nPrevious topics:\n(empty)\n\nNew messages since the "
        f"previous summary:\n{chr(10).join(map(message, texts))}\n\nUpdate the summary and topics.",
    )


Answered = Callable[[Ask], Any]


@pytest.fixture
def answered(small: Any) -> Answered:
    """What the ideal model answers, by a mind that has heard all turns of the short script."""
    mind = ScriptMind(small.script)
    for turn in small.turns.values():
        mind.facts(turn.text, "Old Mill, Harbour Lights")

    def give(ask: Ask) -> Any:
        reply = answer(ask, mind)
        assert reply is not None
        return json.loads(reply.text)

    return give


def test_a_message_is_extracted_by_what_it_states(small: Any, answered: Answered) -> None:
    """Each statement is a memory in the form of the schema; small talk gives none."""
    (memory,) = answered(extraction(small.turns["tell"].text))["memories"]
    assert memory == {
        "id": None, "text": ON_MAY, "record_type": "fact", "scope": "environment",
        "entities": ["Old Mill", "kick-off"], "timestamp": None, "valid_to": None, "importance": 3,
    }  # fmt: skip
    assert answered(extraction(small.turns["noise"].text))["memories"] == []


def test_the_time_of_which_a_message_speaks_is_the_memory_s(small: Any, answered: Answered) -> None:
    """The prompt wants times that are told to be noted; without one the package fills it in."""
    (memory,) = answered(extraction(small.turns["late"].text))["memories"]
    assert memory["timestamp"] == "2025-12-01T12:00"


def test_what_is_remembered_is_not_extracted_again(small: Any, answered: Answered) -> None:
    """The prompt lets true duplicates be left out; a value that came back is news."""
    assert answered(extraction(small.turns["tell"].text, ON_MAY))["memories"] == []
    (memory,) = answered(extraction(small.turns["revert"].text, ON_MAY))["memories"]
    assert memory["text"] == BACK


def test_a_topic_that_is_left_out_is_known_from_what_is_shown(
    small: Any, answered: Answered
) -> None:
    """The topic of an untopical message stands in the memories, or stays open."""
    (known,) = answered(extraction(small.turns["host"].text, ON_MAY))["memories"]
    (open_,) = answered(extraction(small.turns["host"].text))["memories"]
    assert known["text"] == HOST
    assert "Old Mill" not in open_["text"]


def test_a_new_memory_supersedes_what_it_contradicts(answered: Answered) -> None:
    """Links go to what is replaced and what is said again, and to nothing else."""
    links = answered(linking(ON_JUNE, ON_MAY, HOST, ON_JUNE))["source_resolutions"]
    assert links == {
        "new": {
            "updated_source_memory_text": None,
            "links": [
                {"target_memory_id": "old0", "link_type": "supersedes"},
                {"target_memory_id": "old2", "link_type": "duplicates"},
            ],
        }
    }
    withdrawn = answered(linking(GONE, ON_MAY))["source_resolutions"]["new"]["links"]
    assert [link["link_type"] for link in withdrawn] == ["supersedes"]


def test_a_summary_says_what_holds_now(small: Any, answered: Answered) -> None:
    """What is new takes the place of what it puts out of force."""
    told = answered(summing(f"{ON_MAY}\n{HOST}", small.turns["revise"].text))
    assert told == {"summary": f"{HOST}\n{ON_JUNE}", "topics": ["Old Mill"]}


def test_another_prompt_is_not_answered(small: Any) -> None:
    """What is no prompt of the package is left to the gateway to report."""
    assert answer(asked("Be kind.", "Hello"), ScriptMind(small.script)) is None


# ---------------------------------------------------------------- settings


def test_settings_that_mean_nothing_are_refused() -> None:
    """A type of record that there is not, and a life of no day, are told at once."""
    with pytest.raises(ValueError, match="no such type: facts"):
        Oracle(record_types=["facts"])
    with pytest.raises(ValueError, match="at least one day"):
        Oracle(ttl_days=0)


# ---------------------------------------------------------------- the package


@pytest.fixture(scope="module")
def running(living: Any) -> Iterator[tuple[Any, Any]]:
    """The package, which is asked for memories alone, and its model."""
    node = {"_target_": "steeltrap.adapters.oracle.Oracle", "record_types": MEMORIES}
    memory, model = living("oracle", node, answer)
    yield memory, model
    memory.close()


@pytest.fixture
def oracle(running: tuple[Any, Any], tmp_path: Path) -> tuple[Any, Any]:
    """The same, begun anew."""
    memory, model = running
    model.broken = None
    memory.open(tmp_path)
    return running


def served(memory: Any, text: str = KICK_OFF.text, at: str = "2026-02-01T09:00") -> list[Item]:
    return list(memory.retrieve(Query("q", at, "acme", text, 10)))


def heard(small: Any, name: str, session: str = "s") -> Utterance:
    said = small.heard(name)
    return Utterance(said.id, said.at, said.tenant, session, said.role, said.text)


def test_what_is_superseded_is_kept_with_its_end(small: Any, oracle: Any) -> None:
    """A change in another session ends the old memory; both name their turns; the list agrees."""
    memory, _ = oracle
    memory.ingest(heard(small, "tell", "one"))
    memory.ingest(heard(small, "revise", "two"))
    old = Item(
        ON_MAY, sources=("tell",), valid_from="2026-01-01T09:30", valid_to="2026-01-04T09:30"
    )
    new = Item(ON_JUNE, sources=("revise",), valid_from="2026-01-04T09:30")
    assert [bare(item) for item in memory.history(KICK_OFF)] == [old, new]
    assert {bare(item) for item in served(memory)} == {old, new}
    assert {bare(item) for item in memory.active("acme")} == {old, new}
    assert capabilities(memory) == ["list", "history", "erase", "size", "models"]


def bare(item: Item) -> Item:
    return Item(item.text, None, item.sources, item.valid_from, item.valid_to, item.review)


def test_an_erased_subject_stays_in_old_summaries_alone(
    small: Any, oracle: Any, tmp_path: Path
) -> None:
    """With a memory go the messages of which it was made; the package keeps the thread's summaries,
    which it marks as invalid, until the thread or its user is deleted.
    """
    memory, _ = oracle
    for turn in ("tell", "host"):
        memory.ingest(heard(small, turn))
    memory.erase("acme", KICK_OFF)
    assert [item.text for item in memory.active("acme")] == [HOST]
    (file,) = tmp_path.rglob("records.sqlite")
    with contextlib.closing(sqlite3.connect(file)) as rows:
        left = rows.execute("SELECT kind, status FROM record WHERE content LIKE '%3 May%'")
        assert set(left) == {("thread_summary", "invalid")}
    memory.erase("acme", None)
    assert list(memory.active("acme")) == []
    assert b"3 May" not in file.read_bytes()


def test_an_erased_memory_takes_its_message_along(small: Any, oracle: Any, tmp_path: Path) -> None:
    """A message that leaves the topic out is known by the memory that was made of it."""
    memory, _ = oracle
    for turn in ("tell", "host"):
        memory.ingest(heard(small, turn))
    memory.erase("acme", Subject("acme", "Old Mill", "host", ""))
    (file,) = tmp_path.rglob("records.sqlite")
    with contextlib.closing(sqlite3.connect(file)) as rows:
        left = rows.execute("SELECT content FROM record WHERE kind = 'message'").fetchall()
    assert [json.loads(content) for (content,) in left] == [small.turns["tell"].text]


def test_a_search_changes_nothing_that_is_stored_later(
    small: Any, oracle: Any, tmp_path: Path
) -> None:
    """Names are given out by what is written alone, so that looking leaves no trace in them."""
    memory, _ = oracle
    named = []
    for looks in (0, 2):
        memory.open(tmp_path / str(looks))
        memory.ingest(heard(small, "tell"))
        for _ in range(looks):
            served(memory)
        memory.ingest(heard(small, "revise"))
        named.append([item.id for item in memory.active("acme")])
    assert named[0] == named[1]


def test_a_memory_without_its_successor_holds_again(
    small: Any, oracle: Any, tmp_path: Path
) -> None:
    """A memory is invalid as long as there is a link that makes it so."""
    memory, _ = oracle
    for turn in ("tell", "revise"):
        memory.ingest(heard(small, turn))
    (file,) = tmp_path.rglob("records.sqlite")
    with contextlib.closing(sqlite3.connect(file)) as rows, rows:
        links = rows.execute("SELECT type FROM link").fetchall()
        rows.execute("DELETE FROM link")
        states = rows.execute("SELECT status FROM record WHERE kind = 'fact'").fetchall()
    assert links == [("supersedes",)]
    assert states == [("valid",), ("valid",)]
    assert [item.valid_to for item in memory.history(KICK_OFF)] == [None, None]


def test_a_model_that_does_not_answer_is_a_fault(small: Any, oracle: Any) -> None:
    """Where the message could not be stored nothing happened; where it could, that is not said."""
    memory, model = oracle
    model.broken = BackendError("down", status=500)
    with pytest.raises(Exception, match="provider request failed") as raised:
        memory.ingest(heard(small, "tell"))
    assert not isinstance(raised.value, MemoryFault)
    model.broken = Reply("no JSON")
    with pytest.raises(Exception, match="no memories extracted"):
        memory.ingest(heard(small, "revise"))


def test_messages_are_served_unless_memories_alone_are_asked_for(
    living: Any, small: Any, tmp_path: Path
) -> None:
    """By default a search finds both, and the message of an old value has no end; days end both."""
    node = {"_target_": "steeltrap.adapters.oracle.Oracle", "ttl_days": 20}
    memory, _ = living("oracle", node, answer)
    try:
        memory.open(tmp_path)
        for turn in ("tell", "revise"):
            memory.ingest(heard(small, turn))
        ends = {item.text: item.valid_to for item in served(memory, at="2026-01-05T09:00")}
        assert ends == {
            small.turns["tell"].text: None, small.turns["revise"].text: None,
            ON_MAY: "2026-01-04T09:30", ON_JUNE: None,
        }  # fmt: skip
        left = {item.text for item in served(memory, at="2026-01-22T09:00")}
        assert left == {small.turns["revise"].text, ON_JUNE}
    finally:
        memory.close()


# ---------------------------------------------------------------- the package's own store


def test_without_a_database_one_sentence_says_what_is_missing(
    living: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Settings that are missing are named; a database that does not answer is named."""
    monkeypatch.delenv("ORACLE_PASSWORD", raising=False)
    memory, _ = living(
        "oracle", {"_target_": "steeltrap.adapters.oracle.OracleDatabase", "user": "memory"}, answer
    )
    with pytest.raises(MemoryFault, match=r"system\.dsn, ORACLE_PASSWORD not set; it needs"):
        memory.open(tmp_path)
    memory.close()


class NoDatabase(Exception):
    """What the driver raises."""


def test_the_driver_gets_what_was_set_and_the_password_alone_from_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What cannot be reached is told in one line, which never holds the password."""
    given: list[dict[str, Any]] = []

    def create_pool(**settings: Any) -> Any:
        given.append(settings)
        raise NoDatabase("DPY-6005: cannot connect (CONNECTION_ID=x==).\nHelp: https://example.org")

    driver = SimpleNamespace(create_pool=create_pool, Error=NoDatabase)
    monkeypatch.setitem(sys.modules, "oracledb", driver)  # type: ignore[arg-type]
    monkeypatch.setenv("ORACLE_PASSWORD", "Sesame")
    memory = OracleDatabase(dsn="db.example.org:1521/PDB", user="keeper")
    with pytest.raises(MemoryFault) as raised:
        memory._connected()
    assert str(raised.value) == (
        "oracle-database: no database answers at db.example.org:1521/PDB as keeper: "
        "DPY-6005: cannot connect."
    )
    (settings,) = given
    assert settings | {"min": 1, "max": 4} == settings
    assert {name: settings[name] for name in ("user", "password", "dsn")} == {
        "user": "keeper", "password": "Sesame", "dsn": "db.example.org:1521/PDB",
    }  # fmt: skip
