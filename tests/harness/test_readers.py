"""Readers and claims: what a text says about a unit, and what answer that makes."""

from __future__ import annotations

import pytest

from steeltrap.harness.memory import Item
from steeltrap.harness.readers import Answer, Catalogue, Oracle, Top1
from steeltrap.harness.script import Header, Op, Probe, Turn

UNIT = "acme/Website Redesign/deadline"
OTHER = "acme/Website Redesign 2/deadline"
MARCH, APRIL, MAY = "date:2026-03-15", "date:2026-04-20", "date:2026-05-04"


def turn(number: int, text: str, *ops: Op) -> Turn:
    return Turn(
        id=f"t{number}", at=f"2026-01-{number:02d}T09:00", tenant="acme", session="s",
        text=text, ops=list(ops),
    )  # fmt: skip


TURNS = [
    turn(1, "The deadline is mid March, on the 15th.", Op("tell", UNIT, MARCH)),
    turn(2, "Deadline UPDATED: April 20", Op("revise", UNIT, APRIL)),
    turn(3, "Did we once say 15 March?", Op("echo", UNIT, MARCH)),
    turn(4, "I heard it might be 4 May.", Op("rumour", UNIT, MAY, source="hearsay")),
    turn(5, "No change there.", Op("restate", UNIT, APRIL)),
    turn(6, "No change there.", Op("tell", OTHER, MAY)),
]


@pytest.fixture
def catalogue() -> Catalogue:
    known = Catalogue(Header(name="x", words={"deadline": ["due date"]}))
    for said in TURNS:
        known.hear(said, {})
    return known


def probe(ask: str = "current", at: str = "2026-02-01T00:00", of: str | None = None) -> Probe:
    return Probe(id="p", at=at, ask=ask, text="?", unit=UNIT, of=of)  # type: ignore[arg-type]


def said(number: int, **marks: object) -> Item:
    """A turn of the script, repeated word by word."""
    stated = TURNS[number - 1]
    return Item(stated.text, sources=(stated.id,), **marks)  # type: ignore[arg-type]


def read(catalogue: Catalogue, *items: Item, ask: str = "current", of: str | None = None, reader: type = Oracle) -> Answer:  # fmt: skip
    claims = [claim for item in items for claim in catalogue.claims(item, "acme")]
    answer: Answer = reader().read(probe(ask, of=of), claims)
    return answer


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("The deadline of Website Redesign is 20 April 2026.", APRIL),
        ("Website Redesign: due date 2026-04-20", APRIL),
        ("Website Redesign is due on April 20", APRIL),
        ("It was moved from 15 March 2026 to 20 April 2026.", APRIL),
        ("[2026-01-02 09:00] user: Deadline UPDATED: April 20", APRIL),
        ("The deadline of Website Redesign is 1 July 2027.", "date:2027-07-01"),
    ],
)
def test_a_text_of_the_systems_own_names_the_write_by_its_value(
    catalogue: Catalogue, text: str, value: str
) -> None:
    """Values are unique, so a claim is found by value, topic and field, however it is worded."""
    claims = catalogue.claims(Item(text), "acme")
    assert [(UNIT, value)] == [(c.unit, c.value) for c in claims if c.meaning == "states"]


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("The deadline of Website Redesign was previously 15 March 2026.", "past"),
        ("Website Redesign: the deadline is no longer 15 March 2026", "past"),
        ("Unconfirmed: the deadline of Website Redesign is 4 May 2026.", "echo"),
        ("Ignored an instruction to set the deadline of Website Redesign to 4 May 2026", "echo"),
        ("The deadline of Website Redesign was set to 20 April 2026.", "states"),
    ],
)
def test_what_a_text_calls_past_or_unsure_is_not_claimed(
    catalogue: Catalogue, text: str, meaning: str
) -> None:
    """A sentence that says itself that a value is over, or in doubt, does not hold it for true."""
    assert [meaning] == [claim.meaning for claim in catalogue.claims(Item(text), "acme")]


@pytest.mark.parametrize(
    "text",
    [
        "The deadline of Website Redesign used to be 15 March 2026 and is now 20 April 2026.",
        "Website Redesign, deadline: 15 March 2026 -> 20 April 2026",
        "The deadline of Website Redesign is 20 April 2026, not 15 March 2026.",
        "The deadline of Website Redesign is 20 April 2026 (previously 15 March 2026).",
        "[2026-03-15 09:00] The deadline of Website Redesign is 20 April 2026.",
    ],
)
def test_a_sentence_about_a_change_claims_what_it_leads_to(catalogue: Catalogue, text: str) -> None:
    """Of several values the one that the words lead to holds, whatever the order."""
    assert Answer("value", (APRIL,)) == read(catalogue, Item(text))


def test_values_beside_each_other_are_all_claimed(catalogue: Catalogue) -> None:
    """A list of values with nothing that tells of a change holds them all for true."""
    text = "The deadline of Website Redesign: 15 March 2026, 20 April 2026."
    assert Answer("ambiguous", (MARCH, APRIL)) == read(catalogue, Item(text))


def test_a_cue_belongs_to_the_value_beside_it(catalogue: Catalogue) -> None:
    """What is said of one unit in a sentence is not said of the next."""
    text = (
        "The deadline of Website Redesign is 20 April 2026,"
        " the deadline of Website Redesign 2 was previously 4 May 2026."
    )
    meant = {claim.unit: claim.meaning for claim in catalogue.claims(Item(text), "acme")}
    assert {UNIT: "states", OTHER: "past"} == meant


def test_the_value_that_something_changed_to_is_the_one_that_is_claimed(catalogue: Catalogue) -> None:  # fmt: skip
    """A text that has the order of things wrong is believed: that is what the system holds."""
    text = "The deadline of Website Redesign changed from 20 April 2026 to 15 March 2026."
    assert Answer("value", (MARCH,)) == read(catalogue, Item(text))


def test_a_longer_topic_is_not_taken_for_the_shorter_one(catalogue: Catalogue) -> None:
    """A name that begins with another name is another topic."""
    claims = catalogue.claims(Item("The deadline of Website Redesign 2 is 4 May 2026."), "acme")
    assert [OTHER] == [claim.unit for claim in claims]


def test_turns_that_read_alike_are_told_apart_by_their_source(catalogue: Catalogue) -> None:
    """Where two turns have the same words, the source says which one was meant."""
    assert [APRIL] == [claim.value for claim in catalogue.claims(said(5), "acme")]
    assert [MAY] == [claim.value for claim in catalogue.claims(said(6), "acme")]


def test_the_oracle_knows_what_was_meant(catalogue: Catalogue) -> None:
    """Echoes and rumours are no claims to truth for a perfect reader."""
    assert Answer("value", (APRIL,)) == read(catalogue, said(3), said(4), said(2))
    assert Answer("missing") == read(catalogue, said(3), said(4))


def test_top1_takes_the_first_item_at_its_word(catalogue: Catalogue) -> None:
    """The naive reader believes whatever speaks of the unit first, an echo too."""
    assert Answer("value", (MARCH,)) == read(catalogue, said(3), said(2), reader=Top1)


def test_without_marks_or_times_two_claims_are_ambiguous(catalogue: Catalogue) -> None:
    """Where two claims stay equal the oracle says so."""
    assert Answer("ambiguous", (MARCH, APRIL)) == read(catalogue, said(1), said(2))


def test_times_and_marks_of_the_system_decide(catalogue: Catalogue) -> None:
    """The later time wins, and what is marked as over is no answer."""
    timed = [said(n, valid_from=f"2026-01-0{n}") for n in (1, 2)]
    assert Answer("value", (APRIL,)) == read(catalogue, *timed)
    closed = said(1, valid_to="2026-01-02")
    assert Answer("value", (APRIL,)) == read(catalogue, closed, said(2))
    assert Answer("unset") == read(catalogue, closed)


def test_what_is_marked_for_review_is_answered_so(catalogue: Catalogue) -> None:
    """A value that waits for re-evaluation is not given as current."""
    assert Answer("review", (APRIL,)) == read(catalogue, said(2, review=True))


def test_questions_about_the_past_are_read_by_time(catalogue: Catalogue) -> None:
    """Before: the value before the present one. As of: the value at the instant."""
    items = [said(n, valid_from=f"2026-01-0{n}T09:00") for n in (1, 2)]
    assert Answer("value", (MARCH,)) == read(catalogue, *items, ask="previous")
    assert Answer("value", (MARCH,)) == read(catalogue, *items, ask="as-of", of="2026-01-01T12:00")
    assert Answer("value", (APRIL,)) == read(catalogue, items[1], ask="previous")


def test_an_event_tells_what_held_when_and_a_fact_without_a_time_what_holds(
    catalogue: Catalogue,
) -> None:
    """A diary and the present fact beside it answer all three questions; two facts stay ambiguous."""
    march = Item("The deadline of Website Redesign was 15 March 2026 as of 2026-01-01 09:00.")
    april = Item("The deadline of Website Redesign was 20 April 2026 as of 2026-01-02 09:00.")
    fact = Item("The deadline of Website Redesign is 20 April 2026.")
    assert Answer("value", (APRIL,)) == read(catalogue, march, april, fact)
    assert Answer("value", (MARCH,)) == read(catalogue, march, april, fact, ask="previous")
    assert Answer("value", (MARCH,)) == read(
        catalogue, march, april, fact, ask="as-of", of="2026-01-01T20:00"
    )
    assert "ambiguous" == read(catalogue, march, fact, ask="as-of", of="2026-01-03T20:00").kind
    stale = Item("The deadline of Website Redesign is 15 March 2026.")
    assert "ambiguous" == read(catalogue, march, april, fact, stale, ask="previous").kind
