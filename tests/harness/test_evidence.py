"""Evidence recall from steps and recorded events."""

from __future__ import annotations

from functools import partial

import pytest

from steeltrap.harness import evidence
from steeltrap.harness.checks import score
from steeltrap.harness.evidence import evidence_rows, weighed
from steeltrap.harness.history import Event
from steeltrap.harness.memory import Item
from steeltrap.harness.readers import Oracle
from steeltrap.harness.record import Evidence
from steeltrap.harness.script import Gauge, Header, Op, Probe, Script, Step, Turn
from steeltrap.harness.shelf import Attic


@pytest.fixture(autouse=True, params=["short", "long"])
def length(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """All that is tested holds for lives of any length, also for those that do not fit into memory."""
    if request.param == "long":
        monkeypatch.setattr(evidence, "Attic", partial(Attic, room=2))


def probe(category: str, *due: str, flags: tuple[str, ...] = ()) -> Probe:
    return Probe(
        at="2026-01-01T10:00", id="q", ask="evidence", text="?", category=category,
        evidence=due, flags=flags,
    )  # fmt: skip


ITEMS = [Item(text=str(at), sources=(f"t{at}",)) for at in range(12)]
"""Numbered as they are first seen."""


def rows(
    *pairs: tuple[Step, Event], without: list[str] | None = None
) -> dict[tuple[str, str, int], Evidence]:
    found = [
        row
        for row in evidence_rows(pairs, without=without)
        if row.grain == "turn" and row.k and not row.window and not row.convention
    ]
    assert len(found) == len({(row.left_out, row.category, row.k) for row in found})
    return {(row.left_out, row.category, row.k): row for row in found}


def test_recall_is_the_share_found_and_hit_any_of_it() -> None:
    """Of two turns at places 3 and 6, half are found at 5 and all at 10; one is enough for a hit."""
    served = Event(i=0, type="ok", new=ITEMS, served=list(range(12)))
    found = rows((probe("1", "t2", "t5", "t99"), served))
    assert (found["", "1", 5].recall, found["", "1", 5].hit) == (1 / 3, 1.0)
    assert (found["", "1", 10].recall, found["", "1", 10].hit) == (2 / 3, 1.0)
    missed = rows((probe("1", "t8"), served))
    assert (missed["", "1", 5].recall, missed["", "1", 5].hit) == (0.0, 0.0)


def test_the_first_item_of_a_turn_counts_and_k_includes_its_place() -> None:
    """Evidence in the items at places 5 and 7 is found at 5; in those at 6 and 7 it is not."""
    twice = [*ITEMS, Item(text="again", sources=("t4", "t5"))]
    served = Event(i=0, type="ok", new=twice, served=[0, 1, 2, 3, 4, 5, 12])
    assert 1.0 == rows((probe("1", "t4"), served))["", "1", 5].recall
    assert 0.0 == rows((probe("1", "t5"), served))["", "1", 5].recall


def test_numbers_refer_to_items_seen_at_any_earlier_step() -> None:
    """An item keeps the number of its first sight, in whichever event that was."""
    other = Probe(at="2026-01-01T09:00", id="p", ask="current", text="?", unit="a/b/c")
    found = rows(
        (other, Event(i=0, type="ok", new=ITEMS[:8], served=[0])),
        (probe("2", "t9"), Event(i=1, type="ok", new=ITEMS[8:], served=[3, 9])),
        (probe("2", "t1"), Event(i=2, type="ok", served=[1])),
    )
    assert (found["", "2", 5].n, found["", "2", 5].recall) == (2, 1.0)


def test_an_item_of_several_turns_finds_all_of_them() -> None:
    """A merged item counts for each turn it names; one without provenance for none."""
    items = [Item(text="merged", sources=("t1", "t2")), Item(text="unknown")]
    found = rows((probe("1", "t1", "t2"), Event(i=0, type="ok", new=items, served=[1, 0])))
    assert found["", "1", 5].recall == 1.0


def test_categories_are_given_alone_and_together() -> None:
    """Rows per category, over 1 to 4, and over all; groups are means over questions."""
    hit = Event(i=0, type="ok", new=ITEMS, served=[0])
    miss = Event(i=1, type="ok", served=[1])
    found = rows(
        (probe("1", "t0"), hit), (probe("4", "t0"), miss), (probe("4", "t0"), miss),
        (probe("5", "t1"), miss),
    )  # fmt: skip
    expected = {"1": (1, 1.0), "4": (2, 0.0), "5": (1, 1.0), "1-4": (3, 1 / 3), "all": (4, 0.5)}
    assert expected == {name: (row.n, row.recall) for (_, name, k), row in found.items() if k == 5}


def test_questions_that_say_nothing_are_not_counted() -> None:
    """A question without evidence, or whose observation failed, is in no row."""
    found = rows(
        (probe("1"), Event(i=0, type="ok", new=ITEMS, served=[0])),
        (probe("1", "t0"), Event(i=1, type="fail", error="down")),
        (probe("1", "t0"), Event(i=2, type="info", error="down")),
        (probe("1", "t0"), Event(i=3, type="ok", served=[0])),
    )
    assert (found["", "1", 5].n, found["", "1", 5].recall) == (1, 1.0)
    assert rows((probe("1"), Event(i=0, type="ok"))) == {}


def test_wrong_golds_are_left_out_in_a_second_set_of_rows() -> None:
    """Rows come without flagged golds where any is flagged, and without any defect; a wrong
    citation is a defect and no wrong gold, and that a question is an abstention is neither."""
    hit = Event(i=0, type="ok", new=ITEMS, served=[0])
    wrong = (probe("1", "t0", flags=("wrong-gold:AMBIGUOUS",)), hit)
    cited = (probe("1", "t1", flags=("wrong-citation",)), Event(i=1, type="ok", served=[0]))
    kind = (probe("1", "t1", flags=("abstention",)), Event(i=2, type="ok", served=[1]))
    found = rows(wrong, cited, kind)
    counts = {left_out: (row.n, row.recall) for (left_out, c, k), row in found.items() if (c, k) == ("all", 5)}  # fmt: skip
    assert counts == {"": (3, 2 / 3), "wrong-gold": (2, 0.5), "defects": (1, 1.0)}
    alone = rows((cited[0], hit), kind)
    assert {"", "defects"} == {left_out for left_out, _, _ in alone}
    assert {""} == {left_out for left_out, _, _ in rows((kind[0], hit))}


@pytest.mark.parametrize("without", [["wrong-gold"], ["wrong-gold", "defects"], []])
def test_whoever_knows_of_defects_may_say_so(without: list[str]) -> None:
    """`without` decides for a run without a flagged question, so that runs can be pooled."""
    pair = (probe("1", "t0"), Event(i=0, type="ok", new=ITEMS, served=[0]))
    assert {"", *without} == {left_out for left_out, _, _ in rows(pair, without=without)}


# ---------------------------------------------------------------- finer scores


def turn(name: str, session: str, text: str = "word") -> tuple[Step, Event]:
    said = Turn(at="2026-01-01T09:00", id=name, session=session, text=text, ops=[Op(op="noise")])
    return said, Event(i=0, type="ok")


SESSIONS = [turn(f"t{at}", f"s{at // 3}") for at in range(12)]
"""Twelve turns of one token each, three a session."""


def every(*pairs: tuple[Step, Event]) -> list[Evidence]:
    return evidence_rows([*SESSIONS, *pairs])


def only(found: list[Evidence], **wanted: object) -> Evidence:
    chosen = {"category": "all", "window": 0, "budget_tokens": 0, "convention": ""} | wanted
    (row,) = (r for r in found if all(getattr(r, key) == value for key, value in chosen.items()))
    return row


def test_gain_is_discounted_from_the_third_place_on() -> None:
    """Evidence at places 2 and 4 gains 1 + 1/2 of the 1 + 1 that the best order gains."""
    served = Event(i=0, type="ok", new=ITEMS, served=list(range(12)))
    row = only(every((probe("1", "t1", "t3"), served)), k=5, grain="turn")
    assert row.ndcg == pytest.approx((1 + 1 / 2) / 2)
    assert (row.mrr, row.hit, row.all) == (1 / 2, 1.0, 1.0)


def test_an_item_gains_once_however_much_it_repeats() -> None:
    """What was brought before gains nothing again, so no order of repetitions beats the best."""
    again = [Item(text="one", sources=("t0",)), Item(text="again", sources=("t0",))]
    row = only(every((probe("1", "t0"), Event(i=0, type="ok", new=again, served=[0, 1]))), k=5, grain="turn")  # fmt: skip
    assert row.ndcg == 1.0


def test_sessions_are_counted_in_the_order_in_which_they_are_first_served() -> None:
    """Items of sessions 0, 0, 1, 2 are three sessions; the evidence of session 2 stands third."""
    order = [0, 1, 3, 6]
    served = Event(i=0, type="ok", new=ITEMS, served=order)
    found = every((probe("1", "t7", "t8"), served))
    row = only(found, k=5, grain="session")
    assert (row.recall, row.mrr) == (1.0, 1 / 3)
    assert row.ndcg == pytest.approx(1 / 1.584962500721156)
    assert 0.0 == only(found, k=5, grain="turn").recall


def test_a_budget_counts_items_as_long_as_they_fit() -> None:
    """An item that no longer fits ends what counts, and smaller ones after it do not slip in."""
    items = [
        Item(text=" word" * 600, sources=("t0",)),
        Item(text=" word" * 600, sources=("t1",)),
        Item(text=" word", sources=("t2",)),
    ]
    served = Event(i=0, type="ok", new=items, served=[0, 1, 2])
    found = every((probe("1", "t0", "t1", "t2"), served))
    assert only(found, budget_tokens=1000).recall == pytest.approx(1 / 3)
    assert 600 == only(found, budget_tokens=1000).tokens
    assert 1.0 == only(found, budget_tokens=4000).recall


def test_a_window_finds_neighbours_of_the_same_session_and_costs_tokens() -> None:
    """Around turn 4 of session 3-4-5 lie 3 and 5, and never 6, which is another session's."""
    served = Event(i=0, type="ok", new=ITEMS, served=[4])
    found = every((probe("1", "t5", "t6"), served))
    assert 0.0 == only(found, k=5, grain="turn").recall
    row = only(found, k=5, window=1)
    assert (row.recall, row.all, row.tokens) == (0.5, 0.0, 3.0)
    assert row.ndcg is row.mrr is None
    assert 0.5 == only(found, k=5, window=2).recall


def test_longmemeval_counts_questions_without_evidence() -> None:
    """Its scorer finds all of nothing and gains nothing there; abstentions are left out."""
    hit = Event(i=0, type="ok", new=ITEMS, served=[0])
    asked = probe("x", "t0"), probe("x"), probe("x")
    for one, judged in zip(asked, ("x", "x", "abstention"), strict=True):
        one.judged = f"longmemeval/{judged}"
    found = every(*zip(asked, (hit, Event(i=1, type="ok"), Event(i=2, type="ok")), strict=True))
    row = only(found, k=5, grain="session", convention="longmemeval")
    assert (row.n, row.all, row.ndcg) == (2, 1.0, 0.5)
    assert 1 == only(found, k=5, grain="session").n


def test_public_data_is_weighed_without_a_bound() -> None:
    """A last look counts what is active; nothing is known to be true, so C5 is not judged by it."""
    turn = Turn(at="2026-01-01T10:00", id="t0", session="s", text="Hello.", ops=[Op(op="noise")])
    plain = Script(Header(name="small", tenants=[""]), [turn])
    looked = weighed(plain)
    assert [turn] == looked.steps[:1] and 2 == len(looked.steps)
    assert isinstance(looked.steps[1], Gauge) and 0 == looked.header.beta(0)
    assert looked is weighed(looked)
    listed = [Item("word " * 900)]
    events = [
        Event(i=0, type="ok"),
        Event(i=1, type="ok", via="listing", new=listed, items=1, tokens=900),
    ]
    found = score(looked, events, capabilities=["list"], reader=Oracle()).outcome
    assert [(1, 1, 900, 0, 0.0)] == found.footprint
    assert 0 == found.verdicts["C5"].opportunities
