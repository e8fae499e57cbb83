"""Cases in which the reference system once did wrong, each a rule in small: no random choice."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from steeltrap.reference_system.memory import Memory, Served
from steeltrap.reference_system.policy import PolicySet, default_policies
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
from steeltrap.reference_system.transition import PolicyBreach

ACME = "acme"


def on(day: int) -> str:
    """An instant in days from the beginning of 2026."""
    return f"2026-{1 + day // 28:02}-{1 + day % 28:02}T09:00:00"


class Life:
    """A memory whose turns are numbered and whose days are given."""

    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        self.turns = 0

    def say(
        self, day: int, *statements: Statement, tenant: str = ACME, revise: bool = True
    ) -> None:
        """One turn."""
        self.turns += 1
        self.memory.ingest(tenant, at=on(day), turn=f"t{self.turns}", statements=statements)
        if revise:
            self.memory.revise(tenant, at=on(day))

    def ask(self, day: int, *places: tuple[str, str], **more: str) -> list[Served]:
        """What is served of some places."""
        question = Question("", tuple(Place(*place) for place in places), **more)  # type: ignore[arg-type]
        return self.memory.retrieve(ACME, question, at=on(day)).served

    def values(self, day: int, topic: str, field: str, **more: str) -> list[str]:
        """The values that are served of a field."""
        return [served.value for served in self.ask(day, (topic, field), **more)]

    def held(self, topic: str, field: str) -> list[tuple[str, str, str | None, bool]]:
        """The history of a field: value, from, to, never true."""
        found = self.memory.history(ACME, topic, field)
        return [(s.value, s.valid_from, s.valid_to, s.never_true) for s in found]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "m.db"


@pytest.fixture
def life(path: Path) -> Iterator[Life]:
    """A memory that holds all its invariants when a test ends."""
    with Memory.open(path, policies=default_policies()) as memory:
        held = Life(memory)
        yield held
        assert held.memory.check() == []
        held.memory.close()


@pytest.fixture
def reopen(life: Life, path: Path) -> Callable[[], None]:
    def again() -> None:
        life.memory.close()
        life.memory = Memory.open(path)

    return again


# ---------------------------------------------------------------- two that are one


def two(life: Life, *, mine: Fact, other: Fact, days: tuple[int, int] = (1, 5)) -> None:
    """Two topics with a field each, said to be one on day 9."""
    life.say(days[0], mine)
    life.say(days[1], other)
    life.say(9, Same(mine.topic, other.topic))


def test_present_value_of_a_merged_field_is_open_in_its_history(life: Life) -> None:
    """The value that holds after a merge ends nowhere; the other one ended when it began."""
    two(life, mine=Fact("A", "deadline", "1"), other=Fact("B", "deadline", "2"))
    assert life.held("A", "deadline") == [("1", on(1), on(5), False), ("2", on(5), None, False)]


def test_merged_field_serves_its_present_value_once(life: Life) -> None:
    """What held before is served first, the present value last and once."""
    two(life, mine=Fact("A", "deadline", "1"), other=Fact("B", "deadline", "2"))
    assert life.values(10, "A", "deadline", mode="temporal") == ["1", "2"]


def test_correction_after_a_merge_reaches_the_value_that_won(life: Life) -> None:
    """A value that was never true is marked so, whatever field it was told in."""
    two(life, mine=Fact("A", "deadline", "1"), other=Fact("B", "deadline", "2"))
    life.say(10, Fact("A", "deadline", "3", corrects=True))
    assert ("2", on(5), on(5), True) in life.held("A", "deadline")
    assert life.values(11, "A", "deadline", mode="temporal", as_of=on(7)) == ["3"]


def test_restating_after_a_merge_is_a_source_of_the_value_that_won(life: Life) -> None:
    """Who said it again after a merge is named, and so is an end."""
    two(life, mine=Fact("A", "deadline", "1"), other=Fact("B", "deadline", "2"))
    life.say(10, Fact("B", "deadline", "2", until=on(12)))
    last = life.memory.history(ACME, "A", "deadline")[-1]
    assert (last.turns, last.valid_to) == (("t2", "t4"), on(12))
    assert life.values(13, "A", "deadline", mode="temporal", as_of=on(11)) == ["2"]
    assert life.values(13, "A", "deadline", mode="temporal", as_of=on(12)) == []


def test_value_that_lost_by_rank_does_not_hold_at_any_instant(life: Life) -> None:
    """Where the higher source wins a merge, what was true then is its value too."""
    two(life, mine=Fact("A", "deadline", "1"), other=Fact("B", "deadline", "2", "hearsay"))
    assert life.values(10, "A", "deadline") == ["1"]
    assert life.values(10, "A", "deadline", mode="temporal", as_of=on(9)) == ["1"]
    assert life.held("A", "deadline") == [("1", on(1), None, False), ("2", on(5), on(5), False)]
    life.say(11, Fact("A", "deadline", "3"))
    assert life.held("A", "deadline")[0] == ("1", on(1), on(11), False)
    asked = {"mode": "temporal", "as_of": on(7), "recorded_by": on(8)}
    assert life.values(12, "B", "deadline", **asked) == ["2"]


def test_merge_of_two_fields_without_a_value(life: Life) -> None:
    """Places that wait for a value merge too, and hold none afterwards."""
    life.say(1, Dependency(Place("A", "start"), Place("A", "end")))
    life.say(2, Dependency(Place("B", "start"), Place("B", "end")))
    life.say(3, Same("A", "B"))
    assert life.memory.check() == []
    life.say(4, Fact("B", "start", "x", valid_from=on(1)))
    assert life.values(5, "A", "start") == ["x"]


def test_related_topics_stay_related_after_a_merge(life: Life) -> None:
    """An association of a topic that was merged away is one of its host."""
    life.say(1, Fact("A", "deadline", "1"), Fact("B", "owner", "x"), Fact("C", "cost", "5"))
    life.say(2, Association("C", "B"))
    life.say(3, Same("A", "B"))
    assert "5" in life.values(4, "A", "deadline", mode="structural")


def test_other_names_of_a_merged_topics_fields_still_lead_to_them(life: Life) -> None:
    """What could be looked up by a name before a merge can be afterwards."""
    life.say(1, Fact("B", "Deadline", "1"))
    life.say(2, Fact("B", "deadlines", "2"))
    life.memory.revise(ACME, at=on(3), search=True)
    life.say(4, Fact("A", "owner", "x"), Same("A", "B"))
    for topic in ("A", "B"):
        for field in ("Deadline", "deadlines"):
            assert [s.value for s in life.memory.history(ACME, topic, field)] == ["1", "2"]


def test_dependents_follow_the_value_that_a_merge_made_current(life: Life) -> None:
    """C3: a merge that changes the value of a field has what depends on it looked at."""
    life.say(1, Dependency(Place("A", "deadline"), Place("X", "invoice"), Rule("same")))
    life.say(1, Dependency(Place("B", "deadline"), Place("Y", "invoice"), Rule("same")))
    two(life, mine=Fact("A", "deadline", "1"), other=Fact("B", "deadline", "2", "hearsay"))
    assert life.values(10, "Y", "invoice") == ["1"]
    life.say(11, Fact("C", "deadline", "7"), Same("A", "C"))
    assert [life.values(12, topic, "invoice") for topic in "XY"] == [["7"], ["7"]]


def test_dependents_follow_a_merge_that_a_search_found(life: Life) -> None:
    """C3: what a search repairs leaves nothing to wait for the next one."""
    life.say(1, Dependency(Place("A", "deadline"), Place("X", "invoice"), Rule("same")))
    life.say(2, Fact("A", "deadline", "1"))
    life.say(3, Fact("A", "deadline", "2", new_topic=True))
    life.memory.revise(ACME, at=on(4), search=True)
    (served,) = life.ask(5, ("X", "invoice"))
    assert (served.value, served.review) == ("2", False)


def test_evidence_from_before_a_merge_follows_the_value_that_won(life: Life) -> None:
    """C2: a superseded value is not handed on by evidence that waited while it lost."""
    life.say(1, Dependency(Place("B", "deadline"), Place("Y", "invoice"), Rule("same")))
    life.say(2, Fact("A", "deadline", "1"))
    life.say(3, Same("A", "B"), Fact("B", "deadline", "2", "hearsay"), revise=False)
    life.say(3)
    assert life.values(4, "Y", "invoice") == ["1"]


def test_merging_into_an_archived_topic_brings_it_back(life: Life) -> None:
    """C1: a value that was served before a merge is served after it."""
    shown = "POLICY all ON topic_forgetting DO archive POLICY every ON forgetting WHEN field.name = 'old' DO hide"
    life.say(1, Fact("A", "old", "1"))
    before = life.memory.policies
    life.memory.set_policies(
        PolicySet.parse(
            f"SET half_life_days = 90 SET summary_at = 5 POLICY any ON fact_received DO supersede\n{shown}"
        )
    )
    life.memory.forget(ACME, at=on(2))
    life.memory.set_policies(before)
    life.say(3, Fact("B", "new", "2"))
    life.say(4, Same("A", "B"))
    assert life.values(5, "B", "new") == ["2"]


def test_topic_that_was_merged_away_describes_nothing(life: Life) -> None:
    """Names of fields stay in no summary but that of the topic that has them."""
    two(life, mine=Fact("A", "deadline", "1"), other=Fact("B", "secret", "2"))
    life.memory.erase(ACME, "A", "secret")
    assert not [topic for topic in life.memory._store.load() if "secret" in str(topic)]


def test_merge_that_leaves_both_or_asks_somebody_does(life: Life) -> None:
    """`flag` on conflicting values marks the newest for review; `keep_both` takes the newest."""
    text = life.memory.policies.describe().replace("DO keep_ranking", "DO flag")
    life.memory.set_policies(PolicySet.parse(text))
    two(life, mine=Fact("A", "deadline", "1"), other=Fact("B", "deadline", "2"))
    (served,) = life.ask(10, ("A", "deadline"))
    assert (served.value, served.review) == ("2", True)


def test_what_a_merged_field_follows_from_is_found(life: Life) -> None:
    """structural: edges to either of two merged fields are edges to the one; none lead to itself."""
    life.say(1, Fact("A", "deadline", "1"), Fact("B", "deadline", "2"), Fact("C", "start", "3"))
    life.say(2, Dependency(Place("C", "start"), Place("B", "deadline")), Association("A", "B"))
    life.say(2, Dependency(Place("A", "deadline"), Place("B", "deadline")))
    life.say(3, Same("A", "B"))
    assert life.values(4, "A", "deadline", mode="structural") == ["3"]
    life.say(5, Fact("A", "deadline", "9"), revise=False)
    assert not life.ask(6, ("A", "deadline"))[0].review


def test_correction_of_a_merged_source_reaches_what_was_derived_from_either(life: Life) -> None:
    """What was derived from a value that was never true was never true either."""
    life.say(1, Dependency(Place("B", "deadline"), Place("Y", "invoice"), Rule("same")))
    two(life, mine=Fact("A", "deadline", "1"), other=Fact("B", "deadline", "2"))
    life.say(10, Fact("A", "deadline", "3", corrects=True))
    assert [(value, never) for value, _, _, never in life.held("Y", "invoice")] == [
        ("2", True),
        ("3", False),
    ]


def test_other_policies_have_everything_searched_again(life: Life) -> None:
    """What one set of policies kept apart, another merges, though nothing else has changed."""
    usual = life.memory.policies
    life.memory.set_policies(usual.without("merge-duplicates"))
    life.say(1, Fact("A", "deadline", "1"))
    life.say(2, Fact("A", "deadline", "2", new_topic=True))
    life.memory.revise(ACME, at=on(3), search=True)
    assert life.values(4, "A", "deadline") == ["1"]
    life.memory.set_policies(usual)
    life.memory.revise(ACME, at=on(5), search=True)
    assert life.values(6, "A", "deadline") == ["2"]


# ---------------------------------------------------------------- groups


def alice(life: Life, *fields: str) -> None:
    """Enough about Alice to make her a topic."""
    for day in (1, 2):
        life.say(day, *(Fact("A", name, f"{name}{day}", about="Alice") for name in fields))
    life.memory.revise(ACME, at=on(3), search=True)


def test_promoted_topic_can_be_merged_back(life: Life) -> None:
    """A field that is led back to where it came from stays one field."""
    alice(life, "role", "phone", "town")
    life.say(4, Same("A", "Alice"))
    (served,) = life.ask(5, ("A", "role"))
    assert (served.topic, served.value, served.valid_to) == ("A", "role2", None)
    assert "two histories" not in life.memory.explain(life.memory.transitions[-2])
    assert [held[0] for held in life.held("Alice", "role")] == ["role1", "role2"]


def test_field_that_took_in_another_on_the_way_moves_as_it_is(life: Life) -> None:
    """Where a former name leads to a field that is still to move, nothing of either is lost."""
    life.say(0, Fact("Alice", "Alice role", "engineer"))
    alice(life, "Alice role", "Alice phone", "Alice town")
    life.say(4, Same("A", "Alice"))
    assert life.memory.check() == []
    values = [value for value, *_ in life.held("A", "Alice role")]
    assert values == ["engineer", "Alice role1", "Alice role2"]


def test_group_whose_name_means_its_own_topic_stays(life: Life) -> None:
    """A topic is not promoted out of itself."""
    life.say(0, Same("A", "Alice"))
    alice(life, "role", "phone", "town")
    assert not any("promoted" in life.memory.explain(t) for t in life.memory.transitions)
    assert life.values(5, "Alice", "role") == ["role2"]


def test_erasing_a_promoted_topic_erases_what_it_absorbed(life: Life) -> None:
    """Histories that were merged into a topic's fields go with it, wherever they were told."""
    life.say(0, Fact("Alice", "role", "engineer"))
    alice(life, "Alice role", "Alice phone", "Alice town")
    life.memory.erase(ACME, "Alice")
    assert life.memory.check() == []
    assert not [r for r in life.memory._store.load() if "Alice role" in str(r)]


def test_erasing_the_topic_that_a_group_left_keeps_the_group(life: Life) -> None:
    """What was promoted out of a topic is not erased with it."""
    life.say(0, Fact("Alice", "role", "engineer"), Fact("A", "cost", "5"))
    alice(life, "Alice role", "Alice phone", "Alice town")
    before = life.held("Alice", "role")
    life.memory.erase(ACME, "A")
    assert life.held("Alice", "role") == before


def test_what_is_told_of_a_promoted_field_is_shown(life: Life) -> None:
    """A topic comes back when something is told of its fields, under whatever title."""
    alice(life, "Alice role", "Alice phone", "Alice town")
    archived = PolicySet.parse("""
        SET half_life_days = 90 SET summary_at = 5 POLICY any ON fact_received DO supersede
        POLICY every ON forgetting WHEN field.topic = 'Alice' DO hide
        POLICY all ON topic_forgetting DO archive
    """)
    before = life.memory.policies
    life.memory.set_policies(archived)
    life.memory.forget(ACME, at=on(4))
    life.memory.set_policies(before)
    life.say(5, Fact("A", "Alice role", "chief"))
    assert life.values(6, "Alice", "role") == ["chief"]


# ---------------------------------------------------------------- closing and opening again


def test_title_of_two_topics_means_the_same_one_after_opening_again(
    life: Life, reopen: Callable[[], None]
) -> None:
    """A title leads to the topic that had it first, also where that was written to last."""
    life.say(1, Fact("A", "deadline", "1"))
    life.say(2, Fact("A", "deadline", "2", new_topic=True))
    life.say(3, Fact("A", "owner", "x"))
    assert life.values(4, "A", "deadline") == ["1"]
    reopen()
    assert life.values(4, "A", "deadline") == ["1"]


@pytest.mark.parametrize("how", ["merge", "erase"])
def test_title_leads_to_the_topic_that_still_has_it(life: Life, how: str) -> None:
    """Where the first topic of a title is gone, the next one is found."""
    life.say(1, Fact("A", "deadline", "1"), Fact("B", "owner", "x"))
    life.say(2, Fact("A", "deadline", "2", new_topic=True))
    if how == "merge":
        life.say(3, Same("B", "A"))
    else:
        life.memory.erase(ACME, "A")
    assert life.values(4, "A", "deadline") == ["2"]


def test_summary_does_not_depend_on_when_a_store_was_opened(
    life: Life, reopen: Callable[[], None]
) -> None:
    """A topic's summary names its fields in the order in which they were made."""
    life.say(1, Fact("A", "one", "1"), Fact("B", "two", "2"), Fact("A", "three", "3"))
    life.say(2, Same("A", "B"))
    reopen()
    life.say(3, Fact("A", "one", "5"), Fact("A", "four", "4"))
    (topic,) = [t for t in life.memory._mirror.topics.values() if t.title == "A"]
    assert topic.summary == "one, two, three, four"


def test_what_has_expired_is_not_active_after_opening_again(
    life: Life, reopen: Callable[[], None]
) -> None:
    """The present of a store is that of the latest instant that was written to it."""
    life.say(1, Fact("A", "offer", "5", until=on(3)), Fact("A", "owner", "x"))
    life.say(4, Fact("A", "owner", "y"))
    before = life.memory.footprint(ACME)
    reopen()
    assert life.memory.footprint(ACME) == before
    assert [served.value for served in life.memory.active(ACME)] == ["y"]


def test_what_waits_for_revision_is_said_to_also_after_opening_again(
    life: Life, reopen: Callable[[], None]
) -> None:
    """A field is to be looked at while what it follows from has changed, however old the edge."""
    life.say(1, Fact("A", "start", "1"), Fact("A", "end", "2"))
    life.say(2, Dependency(Place("A", "start"), Place("A", "later")))
    life.say(3, Fact("A", "start", "5"), revise=False)
    life.say(4, Dependency(Place("A", "start"), Place("A", "end")), revise=False)
    assert life.ask(5, ("A", "end"))[0].review
    reopen()
    assert life.ask(5, ("A", "end"))[0].review


# ---------------------------------------------------------------- erasure


def test_erasing_the_last_field_of_a_merged_topic(life: Life) -> None:
    """A topic without fields goes, and so do those that were merged into it."""
    two(life, mine=Fact("A", "deadline", "1"), other=Fact("B", "deadline", "2"))
    life.memory.erase(ACME, "A", "deadline")
    assert life.memory.check() == []


def test_erasing_one_field_leaves_other_topics_to_be_searched(life: Life) -> None:
    """What was to be searched for duplicates still is after something else was erased."""
    life.say(1, Fact("A", "deadline", "1"), Fact("B", "x", "1"), Fact("B", "y", "1"))
    life.say(2, Fact("A", "deadline", "2", new_topic=True))
    life.memory.erase(ACME, "B", "x")
    life.memory.revise(ACME, at=on(3), search=True)
    assert life.values(4, "A", "deadline") == ["2"]


# ---------------------------------------------------------------- answers


def test_what_was_known_then_leaves_out_what_is_known_now(life: Life) -> None:
    """`recorded_by` without an instant gives the history as it was known, and no later value."""
    life.say(1, Fact("A", "deadline", "1"))
    life.say(3, Fact("A", "deadline", "2"))
    life.say(5, Fact("A", "deadline", "3"))
    found = life.ask(6, ("A", "deadline"), mode="temporal", recorded_by=on(4))
    assert [(s.value, s.valid_to) for s in found] == [("1", on(3)), ("2", None)]


def test_value_as_of_now_is_open(life: Life) -> None:
    """The present value asked for by an instant ends nowhere."""
    life.say(1, Fact("A", "deadline", "1"))
    (served,) = life.ask(6, ("A", "deadline"), mode="temporal", as_of=on(4))
    assert served.valid_to is None


def test_field_of_which_nothing_is_served_is_not_reinforced(life: Life) -> None:
    """Only what was served has been read."""
    life.say(3, Fact("A", "deadline", "1"))
    before = life.memory.salience(ACME, "A", "deadline")
    assert life.ask(6, ("A", "deadline"), mode="temporal", as_of=on(2)) == []
    assert life.memory.salience(ACME, "A", "deadline") == before


def test_reading_without_a_trace_is_refused(life: Life) -> None:
    """C6: where no policy reinforces, the postcondition refuses to serve."""
    life.say(3, Fact("A", "deadline", "1"))
    life.memory.set_policies(life.memory.policies.without("reads-reinforce"))
    with pytest.raises(PolicyBreach, match="no-read-without-trace"):
        life.ask(4, ("A", "deadline"))


def test_looking_ahead_changes_nothing(life: Life) -> None:
    """The active content at a later instant can be looked at without time passing."""
    life.say(1, Fact("A", "offer", "5", until=on(3)))
    before = life.memory.footprint(ACME)
    assert life.memory.active(ACME, at=on(9)) == []
    assert life.memory.footprint(ACME) == before
    assert [served.value for served in life.memory.active(ACME)] == ["5"]


def test_fork_holds_every_invariant(life: Life) -> None:
    """A copy is as sound as what it was copied from, also after it was written to."""
    life.say(1, Fact("A", "deadline", "1"), Fact("B", "deadline", "2"), Association("A", "B"))
    twin = life.memory.fork()
    assert twin.check() == []
    twin.ingest(ACME, at=on(2), turn="x", statements=[Same("A", "B"), Fact("C", "c", "1")])
    twin.revise(ACME, at=on(2), search=True)
    twin.erase(ACME, "C")
    assert twin.check() == []
    assert life.memory.history(ACME, "C", "c") == []


# ---------------------------------------------------------------- what is said


def test_correction_of_what_is_withdrawn_is_late_news_if_it_is_earlier(life: Life) -> None:
    """Where there is no value to correct, what is said of an earlier time is history."""
    life.say(1, Fact("A", "deadline", "1"))
    life.say(5, Withdrawal("A", "deadline"))
    life.say(7, Fact("A", "deadline", "2", corrects=True, valid_from=on(3)))
    assert life.memory.lookup(ACME, "A", "deadline") is None
    assert life.values(9, "A", "deadline", mode="temporal", as_of=on(4)) == ["2"]


def test_withdrawal_of_what_has_yet_to_begin_leaves_nothing(life: Life) -> None:
    """A value that was withdrawn before it began holds at no instant."""
    life.say(1, Fact("A", "deadline", "1", valid_from=on(8)))
    life.say(5, Withdrawal("A", "deadline"))
    assert life.values(9, "A", "deadline", mode="temporal", as_of=on(9)) == []


def test_tag_that_makes_a_field_a_note_is_counted(life: Life) -> None:
    """A field that becomes a note is counted by what it says from then on."""
    life.say(1, Fact("A", "remark", "blue"))
    life.say(2, Fact("A", "remark", "blue", tags=("note",)))
    assert life.memory.check() == []
    life.say(3, Fact("A", "thought", "green"))
    life.say(4, Fact("A", "thought", "red", tags=("note",)))
    assert life.memory.footprint(ACME) == 2


def test_nothing_is_the_same_as_a_topic_without_a_name() -> None:
    """A statement with an empty name is refused, whichever it is."""
    memory = Memory.open(Path(), "plain")
    memory.ingest(ACME, at=on(1), turn="t1", statements=[Fact("A", "x", "1")])
    for said in (Same("A", " "), Same("", "A"), Association("A", ""), Fact("", "x", "1")):
        with pytest.raises(ValueError, match="names no topic"):
            memory.ingest(ACME, at=on(1), turn="t2", statements=[said])


def test_tenant_named_like_a_topic_of_another_shares_no_names(life: Life) -> None:
    """Names for topics of one tenant and for fields of another are apart, however they are spelled."""
    life.say(1, Fact("B", "Deadline", "1"))
    life.say(2, Fact("B", "deadlines", "2"))
    life.memory.revise(ACME, at=on(3), search=True)
    (topic,) = life.memory._mirror.of_tenant[ACME]
    life.say(4, Fact("X", "y", "secret"), Same("X", "deadlines"), tenant=topic)
    assert [s.value for s in life.memory.history(ACME, "B", "deadlines")] == ["1", "2"]
    life.memory.erase(ACME)
    assert [s.value for s in life.memory.history(topic, "deadlines", "y")] == ["secret"]


def test_hidden_value_that_is_said_again_is_served(life: Life) -> None:
    """What was just said answers a question, though repetition makes it no more salient."""
    hide = "POLICY every ON forgetting WHEN field.name = 'deadline' DO hide"
    life.say(1, Fact("A", "deadline", "1"))
    before = life.memory.policies
    life.memory.set_policies(
        PolicySet.parse(
            f"SET half_life_days = 90 SET summary_at = 5 POLICY any ON fact_received DO supersede\n{hide}"
        )
    )
    life.memory.forget(ACME, at=on(2))
    life.memory.set_policies(before)
    salience = life.memory.salience(ACME, "A", "deadline")
    assert life.memory.active(ACME, at=on(2)) == []
    life.say(3, Fact("A", "deadline", "1"))
    assert life.memory.salience(ACME, "A", "deadline") == salience
    assert life.values(4, "A", "deadline") == ["1"]


# ---------------------------------------------------------------- the bound


def small(life: Life, bound: int) -> None:
    """A bound of a few fields."""
    text = life.memory.policies.describe().replace("SET bound = 16000", f"SET bound = {bound}")
    life.memory.set_policies(PolicySet.parse(text))


def test_what_is_brought_back_takes_the_place_of_something(life: Life) -> None:
    """C5: the bound holds after every operator, also after a look-up."""
    small(life, 20)
    for day, name in enumerate("abcd", 1):
        life.say(day, Fact("A", name, "123456789"))
    life.memory.restore(ACME, "A", "a", at=on(6))
    assert life.values(7, "A", "a") == ["123456789"]
    assert life.memory.footprint(ACME) <= 20


def test_revision_keeps_within_the_bound(life: Life) -> None:
    """C5: values that follow count like those that were told."""
    small(life, 26)
    for name in "bcd":
        life.say(1, Dependency(Place("A", "a"), Place("A", name), Rule("same")))
    life.say(2, Fact("A", "a", "123456789"))
    assert life.memory.footprint(ACME) <= 26


def test_topic_that_was_brought_back_can_be_archived_again(life: Life) -> None:
    """Forgetting finds the hidden fields of a topic again that was archived and came back."""
    small(life, 20)
    life.say(0, Fact("Old", "a", "1"))
    for day in range(1, 6):
        life.say(day, Fact("B", f"f{day}", "1234567890"))
    life.memory.forget(ACME, at="2029-01-01T00:00")
    assert life.memory._find(ACME, "Old", "a").level == 2  # type: ignore[union-attr]
    archived = [t.title for t in life.memory._mirror.topics.values() if t.archived]
    assert "Old" in archived
    life.memory.ingest(ACME, at="2029-01-02T00:00", turn="d", statements=[Association("Old", "B")])
    life.memory.forget(ACME, at="2029-01-03T00:00")
    assert archived == [t.title for t in life.memory._mirror.topics.values() if t.archived]


def test_what_only_a_rule_has_filled_in_is_listed_without_a_salience(life: Life) -> None:
    """Nobody has told of it or read it: minus infinity is no salience to be shown."""
    life.say(0, Fact("Atlas", "launch", "1 March 2026"))
    life.say(1, Dependency(Place("Atlas", "launch"), Place("Atlas", "review"), Rule("offset", days=3)))  # fmt: skip
    life.say(2, Fact("Atlas", "launch", "5 March 2026"))
    life.memory.revise(ACME, at=on(3))
    told, derived = life.memory.active(ACME)
    assert ("review", "8 March 2026", None) == (derived.field, derived.value, derived.salience)
    assert told.salience is not None
    assert life.memory.salience(ACME, "Atlas", "review") is None
