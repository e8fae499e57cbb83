"""The world: what is true after each op."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steeltrap.harness import tokens
from steeltrap.harness.script import Expect, Header, Op, Rule, canonical
from steeltrap.workloads.world import World, WorldError

A, B, C, D = (f"acme/Atlas/{field}" for field in ("launch", "freeze", "drill", "retro"))


def told(*ops: Op) -> World:
    """A world in which each op was a turn of its own, an hour apart."""
    world = World(Header(name="test", tenants=["acme"]))
    for hour, op in enumerate(ops):
        world.apply(f"t{hour}", f"2026-01-05T{hour:02d}:00", [op])
    return world


def offset(source: str, target: str, days: int) -> Op:
    return Op("depend", source, target=target, rule=Rule("offset", days=days))


def date(day: int) -> str:
    return f"date:2026-03-{day:02d}"


def test_a_revision_makes_the_new_value_current_and_keeps_the_old_as_history() -> None:
    """A new value supersedes; the old one stays in the history, in order."""
    world = told(Op("tell", A, date(1)), Op("revise", A, date(2)))
    assert Expect("set", date(2)) == world.expect(A)
    assert [date(1), date(2)] == [past.value for past in world.history(A)]
    assert Expect("set", date(1)) == world.expect_previous(A)


def test_a_revert_is_a_new_history_entry() -> None:
    """A, B, A: the first value holds again as a third entry."""
    world = told(Op("tell", A, date(1)), Op("revise", A, date(2)), Op("revert", A, date(1)))
    assert [date(1), date(2), date(1)] == [past.value for past in world.history(A)]
    assert Expect("set", date(2)) == world.expect_previous(A)


def test_a_corrected_value_was_never_true() -> None:
    """A correction takes the place of the value from the start; the mistake stays on record."""
    world = told(Op("tell", A, date(1)), Op("correct", A, date(2)))
    assert [True, False] == [past.never_true for past in world.history(A)]
    assert Expect("set", date(2)) == world.expect_as_of(A, "2026-01-05T00:30")
    assert Expect("unset") == world.expect_previous(A)


def test_a_retracted_value_leaves_nothing_set() -> None:
    """After a retraction the right answer is that nothing is set."""
    world = told(Op("tell", A, date(1)), Op("retract", A))
    assert Expect("unset") == world.expect(A)
    assert (0, 0) == (world.live_units, world.live_tokens)


def test_a_value_expires_at_the_stated_instant_and_not_before() -> None:
    """A value that holds until T holds one minute before T and not at T."""
    world = told(Op("expire", A, date(1), until="2026-01-06T00:00"))
    world.advance("2026-01-05T23:59")
    assert Expect("set", date(1)) == world.expect(A)
    assert ["expired"] == [change.cause for change in world.advance("2026-01-06T00:00")]
    assert Expect("unset") == world.expect(A)


def test_a_value_that_was_replaced_before_its_end_does_not_take_the_new_one_with_it() -> None:
    """An end that was stated for one value does not end the next."""
    world = told(Op("expire", A, date(1), until="2026-01-06T00:00"), Op("revise", A, date(2)))
    assert [] == world.advance("2026-01-07T00:00")
    assert Expect("set", date(2)) == world.expect(A)


def test_late_news_enters_the_history_where_it_belongs() -> None:
    """News about a time before the present value changes the past and not the present."""
    world = told(
        Op("tell", A, date(1)),
        Op("revise", A, date(2)),
        Op("revise", A, date(9), valid_at="2026-01-05T00:30"),
    )
    assert [date(1), date(9), date(2)] == [past.value for past in world.history(A)]
    assert Expect("set", date(2)) == world.expect(A)
    assert Expect("set", date(9)) == world.expect_as_of(A, "2026-01-05T00:45")


@pytest.mark.parametrize("name", ["echo", "noise", "instruct"])
def test_what_is_merely_said_changes_nothing(name: str) -> None:
    """Echoes, noise and injected instructions leave every value as it was."""
    world = told(Op("tell", A, date(1)), Op("revise", A, date(2)), Op(name, A, date(1)))  # type: ignore[arg-type]
    assert Expect("set", date(2)) == world.expect(A)
    assert 2 == len(world.history(A))


def test_a_rumour_changes_nothing_and_must_be_one() -> None:
    """A lower source never replaces a higher one; what is called a rumour has to come from below."""
    world = told(Op("tell", A, date(1)), Op("rumour", A, date(2), source="hearsay"))
    assert Expect("set", date(1)) == world.expect(A)
    with pytest.raises(WorldError, match="higher source"):
        told(Op("tell", A, date(1)), Op("rumour", A, date(2), source="owner"))
    with pytest.raises(WorldError, match="use rumour"):
        told(Op("tell", A, date(1)), Op("revise", A, date(2), source="colleague"))


def test_an_update_reaches_every_dependent_with_its_hop() -> None:
    """Propagation runs along the chain, and says over how many edges."""
    world = told(
        *(Op("tell", unit, date(1)) for unit in (A, B, C)), offset(A, B, 2), offset(B, C, 3)
    )
    changes = world.apply("t9", "2026-01-06T00:00", [Op("revise", A, date(10))])
    assert [(A, date(10), 0), (B, date(12), 1), (C, date(15), 2)] == [
        (change.unit, change.value, change.hop) for change in changes
    ]
    assert (2, B) == world.origin(C)


def test_a_cycle_ends_where_it_began() -> None:
    """Around a cycle each unit changes once, and the updated unit keeps what was said."""
    world = told(*(Op("tell", unit, date(1)) for unit in (A, B)), offset(A, B, 7), offset(B, A, 5))
    changes = world.apply("t9", "2026-01-06T00:00", [Op("revise", A, date(10))])
    assert [A, B] == [change.unit for change in changes]
    assert Expect("set", date(10)) == world.expect(A)


def test_a_diamond_whose_sides_disagree_has_no_truth() -> None:
    """Two ways to one dependent must give one value, or the script is refused."""
    tells = [Op("tell", unit, date(1)) for unit in (A, B, C, D)]
    rules = [offset(A, B, 1), offset(A, C, 2), offset(B, D, 3)]
    agreeing = told(*tells, *rules, offset(C, D, 2))
    agreeing.apply("t9", "2026-01-06T00:00", [Op("revise", A, date(10))])
    assert Expect("set", date(14)) == agreeing.expect(D)
    with pytest.raises(WorldError, match="disagree"):
        told(*tells, *rules, offset(C, D, 9), Op("revise", A, date(10)))


def test_a_dependent_that_is_revised_directly_holds_until_its_source_changes() -> None:
    """A direct revision stands until the next update of the source."""
    world = told(Op("tell", A, date(1)), Op("tell", B, date(3)), offset(A, B, 2))
    world.apply("t7", "2026-01-06T00:00", [Op("revise", B, date(20))])
    assert Expect("set", date(20)) == world.expect(B)
    world.apply("t8", "2026-01-06T01:00", [Op("revise", A, date(10))])
    assert Expect("set", date(12)) == world.expect(B)


def test_a_review_rule_leaves_the_dependent_waiting() -> None:
    """Where a rule gives no value the dependent is due for review, with its last value."""
    rule = Op("depend", A, target=B, rule=Rule("review"))
    world = told(Op("tell", A, date(1)), Op("tell", B, date(3)), rule, Op("revise", A, date(2)))
    assert Expect("review", date(3)) == world.expect(B)


def test_associations_are_never_crossed() -> None:
    """An update of a topic leaves related topics alone."""
    other = "acme/Borealis/launch"
    world = told(
        Op("tell", A, date(1)),
        Op("tell", other, date(5)),
        Op("associate", "acme/Atlas", target="acme/Borealis"),
        Op("revise", A, date(2)),
    )
    assert Expect("set", date(5)) == world.expect(other)


def test_what_is_erased_is_gone_and_its_rules_with_it() -> None:
    """After an erasure no history is left, and a namesake is not bound by old rules."""
    world = told(Op("tell", A, date(1)), Op("tell", B, date(3)), offset(A, B, 2))
    world.erase("acme", B)
    assert [] == world.history(B)
    world.apply("t8", "2026-01-06T00:00", [Op("tell", B, date(20))])
    world.apply("t9", "2026-01-06T01:00", [Op("revise", A, date(10))])
    assert Expect("set", date(20)) == world.expect(B)


OPS = st.lists(
    st.tuples(
        st.sampled_from(["write", "retract", "correct", "expire", "erase", "wait"]),
        st.sampled_from([A, B, C, D]),
        st.integers(1, 28),
    ),
    max_size=30,
)


@given(OPS)
def test_the_footprint_is_always_the_sum_over_the_live_units(
    ops: list[tuple[str, str, int]],
) -> None:
    """However a script goes, the running footprint equals a fresh count over the live units."""
    world = World(Header(name="test", tenants=["acme"]))
    for unit, target in ((A, B), (B, C)):
        for name in (unit, target):
            if name not in world.units:
                world.apply("t", "2026-01-01T00:00", [Op("tell", name, date(1))])
        world.apply("t", "2026-01-01T00:00", [offset(unit, target, 3)])
    for hour, (name, unit, day) in enumerate(ops):
        at = f"2026-01-{5 + hour // 24:02d}T{hour % 24:02d}:00"
        world.advance(at)
        live = unit in world.units and world.units[unit].live
        match name:
            case "write":
                verb = "revise" if unit in world.units else "tell"
                world.apply(f"t{hour}", at, [Op(verb, unit, date(day))])  # type: ignore[arg-type]
            case "retract" | "correct" if live:
                world.apply(f"t{hour}", at, [Op(name, unit, date(day))])  # type: ignore[arg-type]
            case "expire":
                until = f"2026-01-{5 + (hour + 3) // 24:02d}T{(hour + 3) % 24:02d}:00"
                world.apply(f"t{hour}", at, [Op("expire", unit, date(day), until=until)])
            case "erase" if unit in world.units:
                world.erase("acme", unit)
    live_units = [unit for unit in world.units.values() if unit.live]
    count = sum(
        tokens.count(canonical(u.name, u.now.value)) for u in live_units if u.now and u.now.value
    )
    assert (len(live_units), count) == (world.live_units, world.live_tokens)
