"""What somebody who does not wish the reference system well would try."""

from __future__ import annotations

import shutil
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from steeltrap.reference_system.memory import Memory
from steeltrap.reference_system.policy import PolicyError, PolicySet
from steeltrap.reference_system.rules import Rule
from steeltrap.reference_system.statements import (
    Association,
    Dependency,
    Fact,
    Place,
    Question,
    Same,
    Statement,
    Withdrawal,
)
from steeltrap.reference_system.stores import DamagedStore, ForeignFile, StoreError
from steeltrap.reference_system.stores.plain import PlainStore
from steeltrap.reference_system.transition import PolicyBreach, Transition

ACME = "acme"


def on(day: int) -> str:
    """An instant of a day of January 2026."""
    return f"2026-01-{day:02}T09:00:00"


def say(memory: Memory, day: int, *said: Statement) -> Transition:
    """One turn, and what follows from it."""
    taken = memory.ingest(ACME, at=on(day), turn=f"t{day}", statements=said)
    memory.revise(ACME, at=on(day))
    return taken


def values(memory: Memory, day: int, topic: str, field: str) -> list[str]:
    """What is served of a field."""
    asked = Question(places=(Place(topic, field),))
    return [served.value for served in memory.retrieve(ACME, asked, at=on(day)).served]


def govern(memory: Memory, text: str, before: str = "") -> None:
    """Add policies, or replace them."""
    memory.set_policies(memory.policies.with_(text, before=before))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "m.db"


@pytest.fixture
def memory(path: Path) -> Iterator[Memory]:
    """A memory that holds all its invariants when a test ends, also after opening again."""
    with Memory.open(path) as opened:
        yield opened
        assert opened.check() == []
    with Memory.open(path) as again:
        assert again.check() == []


# ---------------------------------------------------------------- names and values


def test_a_value_beyond_the_bound_drives_out_nothing_but_itself(memory: Memory) -> None:
    """One long paste is hidden, and what was active before it stays, whatever its salience."""
    govern(memory, "SET bound = 100")
    say(memory, 1, *(Fact("A", name, "1") for name in "abcdef"))
    say(memory, 2, Fact("Paste", "text", "x" * 100_000))
    assert [served.topic for served in memory.active(ACME)] == ["A"] * 6
    held = memory.lookup(ACME, "Paste", "text")
    assert held is not None and len(held.value) == 100_000


def test_an_accent_is_one_sign_or_two(memory: Memory) -> None:
    """One name in both of Unicode's spellings is one topic and one field."""
    say(memory, 1, Fact("Caf\u00e9", "cr\u00e8me", "1"))
    say(memory, 2, Fact("Cafe\u0301", "cre\u0300me", "2"))
    assert [served.value for served in memory.history(ACME, "CAF\u00c9", "cr\u00e8me")] == ["1", "2"]  # fmt: skip


def test_names_of_signs_alone_are_apart(memory: Memory) -> None:
    """Titles and fields that have no letter are one only where they are equal."""
    say(memory, 1, Fact("--", "-", "1"), Fact("--", "/", "2"), Fact("()", "x", "3"))
    memory.revise(ACME, at=on(2), search=True)
    assert values(memory, 3, "--", "-") == ["1"]
    assert values(memory, 3, "--", "/") == ["2"]
    assert memory.history(ACME, "--", "x") == []


@pytest.mark.parametrize("title", ["Apollo (2026)", "Who is Bob?", '"Quoted" thing', "C++"])
def test_a_title_with_signs_is_found_in_a_question(memory: Memory, title: str) -> None:
    """Signs about a name in a question may belong to it."""
    say(memory, 1, Fact(title, "deadline", "1"), Fact("Other", "deadline", "2"))
    asked = Question(f"What is the deadline of {title}?")
    assert [served.topic for served in memory.retrieve(ACME, asked, at=on(2)).served] == [title]


def test_malformed_instants_and_limits_are_refused(memory: Memory) -> None:
    """Whatever is wrong with an instant or a limit, it is a ValueError that says so."""
    for at in ("0001-01-01T00:00+14:00", "9999-12-31T23:59-12:00", "tomorrow", ""):
        with pytest.raises(ValueError, match="not an instant"):
            memory.ingest(ACME, at=at, turn="t", statements=[])
    with pytest.raises(ValueError, match="limit"):
        memory.retrieve(ACME, Question("x"), at=on(1), limit=-1)


# ---------------------------------------------------------------- what is taken in


def test_what_is_not_taken_leaves_nothing(memory: Memory) -> None:
    """A fact that is rejected makes no topic, no field and no summary."""
    govern(memory, "POLICY content ON fact_received WHEN fact.source = 'content' DO reject WITH reason='it is content'", "keep-higher-source")  # fmt: skip
    say(memory, 1, Fact("A", "x", "1"))
    before = list(memory._store.load())
    refused = say(memory, 2, Fact("B", "y", "2", "content"), Fact("A", "z", "3", "content"))
    assert list(memory._store.load()) == before
    assert "new topic" not in memory.explain(refused)
    say(memory, 3, Fact("B", "y", "2", "content"), Fact("B", "z", "3"))
    assert [(served.field, served.value) for served in memory.active(ACME)] == [("x", "1"), ("z", "3")]  # fmt: skip


def test_the_reason_of_a_policy_is_said(memory: Memory) -> None:
    """WITH reason is said to whoever asked for what is refused, for a fact and for a transition."""
    say(memory, 1, Fact("A", "x", "1"))
    refused = say(memory, 2, Fact("A", "x", "2", "hearsay"))
    assert "a higher source said otherwise" in memory.explain(refused)
    govern(memory, "POLICY closed ON transition_proposed WHEN operator = 'ingest' DO reject WITH reason='read only today'")  # fmt: skip
    with pytest.raises(PolicyBreach, match="read only today"):
        say(memory, 3, Fact("A", "x", "2"))


def test_a_value_that_is_kept_beside_can_be_looked_up(memory: Memory) -> None:
    """keep_both: both values are in the history, and the contested one is marked."""
    govern(memory, "POLICY both ON fact_received WHEN EXISTS current AND fact.source = 'hearsay' DO keep_both", "keep-higher-source")  # fmt: skip
    say(memory, 1, Fact("A", "x", "1"))
    say(memory, 2, Fact("A", "x", "2", "hearsay"))
    found = [(s.value, s.said_by, s.contested) for s in memory.history(ACME, "A", "x")]
    assert found == [("1", "owner", False), ("2", "hearsay", True)]
    assert values(memory, 3, "A", "x") == ["1"]


def test_a_value_that_a_higher_source_confirms_is_its_own(memory: Memory) -> None:
    """C2: what the owner has confirmed, hearsay overrules no more than what they said first."""
    say(memory, 1, Fact("A", "x", "1", "hearsay"))
    say(memory, 2, Fact("A", "x", "1"))
    say(memory, 3, Fact("A", "x", "2", "hearsay"))
    assert values(memory, 4, "A", "x") == ["1"]


def test_a_value_does_not_end_before_it_begins(memory: Memory) -> None:
    """An interval that is empty is refused, and takes no value away; one that is said again ends."""
    say(memory, 1, Fact("A", "x", "1"))
    with pytest.raises(ValueError, match="before it begins"):
        say(memory, 3, Fact("A", "x", "2", until=on(2)))
    assert values(memory, 3, "A", "x") == ["1"]
    say(memory, 4, Fact("A", "x", "1", until=on(3)))
    assert values(memory, 4, "A", "x") == []


# ---------------------------------------------------------------- structure


def test_a_rule_that_is_said_anew_replaces_the_old_one(path: Path, memory: Memory) -> None:
    """Between two fields there is one rule, the latest, and saying it again adds no edge."""
    where = Place("A", "deadline"), Place("A", "launch")
    say(memory, 1, Fact("A", "deadline", "1 March 2026"), Fact("A", "launch", "6 March 2026"))
    for days in (5, 7, 7):
        say(memory, 2, Dependency(*where, Rule("offset", days=days)))
    say(memory, 3, Fact("A", "deadline", "10 March 2026"))
    assert values(memory, 4, "A", "launch") == ["17 March 2026"]
    for _ in range(2):
        say(memory, 4, Association("A", "B"), Association("B", "A"))
    assert len(memory._mirror.edges) == 2


# ---------------------------------------------------------------- policies replaced


@pytest.mark.parametrize("half_life", [9, 900])
def test_another_half_life_changes_the_pace_and_not_the_past(
    memory: Memory, half_life: int
) -> None:
    """What was read just now is salient whatever half-life is set, and fades with the new one."""
    say(memory, 1, Fact("A", "x", "1"))
    govern(memory, f"SET half_life_days = {half_life}")
    assert "compressed" not in memory.explain(memory.forget(ACME, at=on(2)))
    faded = memory.forget(ACME, at=on(20))
    assert ("compressed" in memory.explain(faded)) == (half_life == 9)


def test_a_repair_that_is_refused_does_not_hold_up_the_others(memory: Memory) -> None:
    """If P refuses a repair and the mark for review too, other evidence is still dealt with."""
    for topic in "AB":
        say(memory, 1, Fact(topic, "a", "1"), Fact(topic, "b", "1"), Dependency(Place(topic, "a"), Place(topic, "b"), Rule("same")))  # fmt: skip
    govern(memory, "POLICY closed ON transition_proposed WHEN operator = 'revise' AND delta.entries > 0 DO reject")  # fmt: skip
    memory.ingest(ACME, at=on(2), turn="t2", statements=[Fact("A", "a", "2"), Fact("B", "a", "2")])
    done = memory.revise(ACME, at=on(2))
    assert [transition.committed for transition in done] == [False, False]
    (served,) = memory.retrieve(ACME, Question(places=(Place("B", "b"),)), at=on(2)).served
    assert (served.value, served.review) == ("1", True)
    memory.set_policies(memory.policies.without("closed"))
    memory.revise(ACME, at=on(3))
    assert [values(memory, 3, topic, "b") for topic in "AB"] == [["2"], ["2"]]


# ---------------------------------------------------------------- files


def vectors(length: int) -> Callable[[Sequence[str]], NDArray[np.float32]]:
    """An embedder to which all is alike."""
    return lambda texts: np.full((len(texts), length), length**-0.5, dtype=np.float32)


def test_another_embedder_is_refused_when_a_store_is_opened(path: Path) -> None:
    """Vectors of another length are refused at once, and not when they are first compared."""
    with Memory.open(path, embed=vectors(8)) as memory:
        say(memory, 1, Fact("A", "x", "1"))
    with pytest.raises(ValueError, match="8 numbers and the embedder gives 16"):
        Memory.open(path, embed=vectors(16))
    with Memory.open(path, embed=vectors(8)) as memory:
        assert values(memory, 2, "A", "x") == ["1"]


def test_a_folder_is_no_store(tmp_path: Path) -> None:
    """A path that is a folder is refused like any other foreign thing."""
    with pytest.raises(ForeignFile, match="folder"):
        Memory.open(tmp_path)


def test_a_copy_that_was_examined_is_not_left_behind(path: Path, tmp_path: Path) -> None:
    """What a kill left of an examination goes at the next opening: erasure must find all."""
    left = tmp_path / "m.db.check"
    left.mkdir()
    (left / "m.db").write_bytes(b"secret")
    Memory.open(path).close()
    assert not left.exists()


PLANTED = {
    "field": (
        "value = '9'", "salience = NULL", "tokens = 99", "tenant = 'b'", "until = '2020-01-01T00:00:00'",
        "state = 'unset'", "level = 7", "merged_into = 'acme:f77'", "merged_into = id", "topic = 'acme:t9'",
        "entries = 9", "seq = 7", "tags = '['",
    ),
    "edge": ("target = 'acme:f99'", "tenant = 'b'"),
    "entry": ("value = '7'", "ord = 1", "seq = seq + 10"),
    "alias": ("target = 'acme:t55'",),
    "topic": ("tenant = 'b'", "merged_into = 'acme:t77'", "vector = x'00'"),
    "evidence": ("subject = 'acme:f99'",),
    "policy": ("text = 'nonsense'",),
}  # fmt: skip


@pytest.mark.parametrize("planted", [f"UPDATE {t} SET {s}" for t, sets in PLANTED.items() for s in sets])  # fmt: skip
def test_planted_damage_is_found(path: Path, tmp_path: Path, planted: str) -> None:
    """`check` tells of what was changed behind its back, also by a later opening of the files."""
    copy = tmp_path / "copy.db"
    with Memory.open(path) as memory:
        say(memory, 1, Fact("A", "x", "1"), Fact("A", "y", "1"), Same("A", "Z"))
        say(memory, 1, Dependency(Place("A", "x"), Place("A", "y"), Rule("same")))
        memory.ingest(ACME, at=on(2), turn="t2", statements=[Fact("A", "x", "2")])
        assert memory.check() == []
        memory.checkpoint()
        db = sqlite3.connect(path)
        db.execute(planted)
        db.commit()
        db.close()
        memory.checkpoint()
        shutil.copyfile(path, copy)
        assert memory.check() != []
    try:
        again = Memory.open(copy)
    except (DamagedStore, ValueError):  # ValueError: policies that cannot be read
        return
    assert again.check() != []
    again.close()


# ---------------------------------------------------------------- cost


def seconds_to(work: Callable[[Memory], object], fields: int) -> float:
    """CPU that something costs a memory of so many fields in one topic, at its best of three."""
    taken = []
    for _ in range(3):
        memory = Memory(PlainStore())
        govern(memory, "SET bound = 1000000")
        for first in range(0, fields, 100):
            said = [Fact("A", f"name {n}", "1") for n in range(first, first + 100)]
            memory.ingest(ACME, at=on(1), turn="t1", statements=said)
        govern(memory, "SET bound = 10")
        begun = time.process_time()
        work(memory)
        taken.append(time.process_time() - begun)
    return min(taken)


@pytest.mark.parametrize(
    "work",
    [lambda m: m.forget(ACME, at=on(2)), lambda m: m.revise(ACME, at=on(2), search=True)],
    ids=["forget", "search"],
)
def test_what_is_attenuated_or_searched_costs_by_its_number(
    work: Callable[[Memory], object],
) -> None:
    """Eight times the fields cost about eight times as much, and not 64 times."""
    assert seconds_to(work, 2400) < 24 * seconds_to(work, 300)


# ---------------------------------------------------------------- what begins later


def test_a_later_price_is_not_the_present_one(path: Path) -> None:
    """A value that begins later leaves the present one alone until then, and then takes its place."""
    with Memory.open(path) as memory:
        say(memory, 1, Fact("Plan", "price", "10 EUR"), Fact("Plan", "offer", "20 EUR"))
        say(
            memory,
            1,
            Dependency(Place("Plan", "price"), Place("Plan", "offer"), Rule("scaled", times=2)),
        )
        say(memory, 2, Fact("Plan", "price", "15 EUR", valid_from=on(9)))
        assert ["10 EUR"] == values(memory, 3, "Plan", "price")
    with Memory.open(path) as memory:
        assert ["10 EUR"] == values(memory, 8, "Plan", "price")
        memory.revise(ACME, at=on(10))
        assert (["15 EUR"], ["30 EUR"]) == (
            values(memory, 10, "Plan", "price"),
            values(memory, 10, "Plan", "offer"),
        )
        first, then = memory.history(ACME, "Plan", "price")
        assert (on(9), ("t2",)) == (first.valid_to, then.turns)
        assert [] == memory.check()


def test_what_is_planned_can_be_withdrawn(path: Path) -> None:
    """A planned value that was withdrawn, by somebody who may, never comes."""
    with Memory.open(path) as memory:
        say(memory, 1, Fact("Plan", "price", "15 EUR", valid_from=on(9)))
        say(memory, 2, Withdrawal("Plan", "price", said_by="hearsay"))
        memory.fork().retrieve(ACME, Question(), at=on(10))
        assert ["15 EUR"] == values(memory.fork(), 10, "Plan", "price")
        say(memory, 3, Withdrawal("Plan", "price"))
        assert [] == values(memory, 10, "Plan", "price")


def test_erasure_takes_what_is_planned(path: Path) -> None:
    """What would hold later is erased with its field."""
    with Memory.open(path) as memory:
        say(memory, 1, Fact("Plan", "price", "15 EUR", valid_from=on(9)), Fact("Plan", "name", "P"))
        memory.erase(ACME, "Plan", "price")
        assert [] == values(memory, 10, "Plan", "price")
        assert [] == memory.check()


def test_a_transition_that_fails_moves_no_clock(path: Path) -> None:
    """A refused utterance of next year lets nothing expire today."""
    with Memory.open(path) as memory:
        say(memory, 1, Fact("Gate", "code", "7", until="2026-06-01T00:00"))
        with pytest.raises(ValueError, match="names no field"):
            memory.ingest(
                ACME, at="2027-01-01T09:00", turn="t9", statements=[Fact("Gate", " ", "1")]
            )
        assert memory.lookup(ACME, "Gate", "code") is not None
        assert memory.footprint(ACME) > 0


# ---------------------------------------------------------------- asking for what is not active


@pytest.mark.parametrize("field", ["code", ""])
def test_an_archived_topic_can_be_asked_for(field: str, path: Path) -> None:
    """A topic that is named is served from the archive, and is active again since it matters."""
    with Memory.open(path) as memory:
        say(memory, 1, Fact("Gate", "code", "7"))
        govern(memory, "POLICY gone ON forgetting DO hide", before="protect-vital")
        memory.forget(ACME, at="2031-01-01T09:00")
        memory.forget(ACME, at="2031-01-01T09:01")
        assert [] == memory.active(ACME)
        assert memory._mirror.topics["acme:t1"].archived
        memory.set_policies(memory.policies.without("gone"))
        asked = Question(places=(Place("Gate", field),))
        answer = memory.retrieve(ACME, asked, at="2031-01-02T09:00")
        assert ["7"] == [served.value for served in answer.served]
        assert "brought back" in answer.transition.explain()
        assert ["7"] == [served.value for served in memory.active(ACME)]
        assert [] == memory.check()


def test_two_ways_that_disagree_are_told(path: Path) -> None:
    """Where rules give one field two values the first way stands, and the transition says so."""
    with Memory.open(path) as memory:
        names = ("root", "left", "right", "end")
        say(memory, 1, *(Fact("P", name, "1 May 2026") for name in names))
        for source, target, days in (("root", "left", 1), ("root", "right", 2), ("left", "end", 1), ("right", "end", 9)):  # fmt: skip
            rule = Rule("offset", days=days)
            say(memory, 2, Dependency(Place("P", source), Place("P", target), rule))
        memory.ingest(ACME, at=on(3), turn="t3", statements=[Fact("P", "root", "10 May 2026")])
        (done,) = memory.revise(ACME, at=on(3))
        assert (
            "P / end would be 21 May 2026 by way of P / right; it stays 12 May 2026"
            in done.explain()
        )


def test_edges_told_after_a_change_oblige_from_then_on(path: Path) -> None:
    """Revising later gives what revising at once would have given."""
    with Memory.open(path) as memory:
        say(memory, 1, Fact("P", "a", "1 May 2026"), Fact("P", "b", "3 May 2026"), Fact("P", "c", "9 May 2026"))  # fmt: skip
        say(memory, 1, Dependency(Place("P", "a"), Place("P", "b"), Rule("offset", days=2)))
        memory.ingest(ACME, at=on(2), turn="t2", statements=[
            Fact("P", "a", "2 May 2026"),
            Dependency(Place("P", "a"), Place("P", "c"), Rule("offset", days=3)),
        ])  # fmt: skip
        memory.revise(ACME, at=on(2))
        assert ["4 May 2026"] == values(memory, 3, "P", "b")
        assert ["9 May 2026"] == values(memory, 3, "P", "c")


# ---------------------------------------------------------------- what a newcomer gets wrong


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (
            [Dependency(Place("A", "b"), Place("A", "c"), Rule("ofset", days=5))],
            r"statement 1.*ofset.*rule\.kind",
        ),  # type: ignore[arg-type]
        ([Fact("A", "n", 2026)], r"statement 1.*value"),  # type: ignore[arg-type]
        ([Fact("A", "n", "1"), Fact("A", "n", "2", tags="vital")], r"statement 2.*tags"),  # type: ignore[arg-type]
        (Fact("A", "n", "1"), "brackets"),
    ],
)
def test_a_malformed_statement_is_refused(memory: Memory, said: list[Statement], why: str) -> None:
    """What no store could give back is refused before anything is written, and told where."""
    with pytest.raises(ValueError, match=why):
        memory.ingest(ACME, at=on(1), turn="t1", statements=said)
    assert [] == memory.active(ACME)


def test_a_malformed_question_is_refused(memory: Memory) -> None:
    """A question in words, or of an unknown mode, is refused with what to do."""
    with pytest.raises(ValueError, match="`ask`"):
        memory.retrieve(ACME, "When?", at=on(1))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="tempral"):
        memory.retrieve(ACME, Question(mode="tempral"), at=on(1))  # type: ignore[arg-type]


def test_policies_that_lack_the_least_are_refused(memory: Memory) -> None:
    """A set under which nothing could be taken in is refused, and the one before stays."""
    before = memory.policies
    for text in ("SET bound = 4000", "SET half_life_days = 90"):
        with pytest.raises(PolicyError, match="begin with a copy"):
            memory.set_policies(PolicySet.parse(text))
    assert before == memory.policies


def test_a_closed_memory_says_so(path: Path) -> None:
    """Whatever is asked of it after closing, and closing again does nothing."""
    memory = Memory.open(str(path))
    memory.close()
    memory.close()
    with pytest.raises(StoreError, match="closed"):
        memory.check()
    with pytest.raises(StoreError, match="no folder"):
        Memory.open(path / "none" / "m.db")
