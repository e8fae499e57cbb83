from __future__ import annotations

from datetime import date, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steeltrap.harness import values
from steeltrap.workloads.dice import Dice
from steeltrap.workloads.domains import Domain, Field, domains
from steeltrap.workloads.mint import Mint, pools

AT = "2026-03-02T09:00"
FIELDS = [f for d in domains() for f in d.fields]
UNIQUE = [f for f in FIELDS if f.kind not in ("time", "date")]
DOMAINS = pytest.mark.parametrize("domain", domains(), ids=lambda domain: domain.name)


def field(kind: str, low: int = 0, high: int = 0, unit: str = "", pool: str = "") -> Field:
    return Field("thing", kind, low=low, high=high, unit=unit, pool=pool)  # type: ignore[arg-type]


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(), picks=st.lists(st.sampled_from(FIELDS), min_size=150, max_size=400))
def test_values_are_literals_and_none_comes_twice(seed: int, picks: list[Field]) -> None:
    """Whatever fields are asked for in whatever order, each value is valid and new."""
    mint = Mint(Dice("test", seed))
    minted = [mint.value(f, AT) for f in picks]
    assert [values.kind_of(v) for v in minted] == [f.kind for f in picks]
    assert len(set(minted)) == len(minted)


def test_a_hundred_thousand_values_are_all_different() -> None:
    """Long scripts run out of no kind of value but times of day and days."""
    mint = Mint(Dice("long"))
    minted = {mint.value(UNIQUE[i % len(UNIQUE)], AT) for i in range(100_000)}
    assert len(minted) == 100_000


@pytest.mark.parametrize("kind", ["count", "text"])
def test_one_crowded_field_never_runs_out(kind: str) -> None:
    """A single field gives far more values than its bounds or its nicest phrases hold."""
    mint = Mint(Dice("crowd"))
    crowded = field(kind, 5, 30, pool="seat")
    assert len({mint.value(crowded, AT) for _ in range(20_000)}) == 20_000


def test_a_day_comes_again_only_long_after_it_was_given() -> None:
    """However crowded the calendar, the last 600 dates are all different, and stay near."""
    mint = Mint(Dice("days"))
    days = [mint.value(field("date", 5, 30), AT) for _ in range(5_000)]
    for start in range(0, 4_400, 100):
        assert len(set(days[start : start + 600])) == 600
    assert max(days) < "date:2031"


@given(seed=st.integers())
@settings(max_examples=20, deadline=None)
def test_values_lie_within_the_bounds_while_there_is_room(seed: int) -> None:
    """Dates are so many days from now, numbers within their bounds, times in their hours."""
    mint = Mint(Dice("bounds", seed))
    now = date.fromisoformat(AT[:10])
    for _ in range(60):
        day = values.payload_of(mint.value(field("date", 10, 90), AT))
        assert timedelta(10) <= date.fromisoformat(day) - now <= timedelta(90)
        assert 50 <= int(values.payload_of(mint.value(field("count", 50, 900), AT))) <= 900
        assert "08:00" <= values.payload_of(mint.value(field("time", 480, 720), AT)) <= "12:00"


def test_crowded_dates_walk_forward_to_the_next_free_day() -> None:
    """When every day in the window is taken, the next free ones follow."""
    mint = Mint(Dice("walk"))
    minted = sorted(mint.value(field("date", 1, 3), AT) for _ in range(6))
    assert minted == [f"date:2026-03-{day:02d}" for day in range(3, 9)]
    assert mint.value(field("date", 1, 3), "2026-03-20T09:00") >= "date:2026-03-21"


def test_times_of_day_come_round_again_in_the_order_in_which_they_were() -> None:
    """All 1,440 minutes are given once before any is given twice."""
    mint = Mint(Dice("times"))
    noon = field("time", 700, 740)
    assert mint.claim("time:12:00")
    lap = ["time:12:00", *(mint.value(noon, AT) for _ in range(1439))]
    assert len(set(lap)) == 1440
    assert [mint.value(noon, AT) for _ in range(1440)] == lap


@given(seed=st.integers(), kinds=st.sampled_from(UNIQUE))
@settings(max_examples=40, deadline=None)
def test_a_claimed_value_is_never_minted_and_a_minted_one_not_claimed(
    seed: int, kinds: Field
) -> None:
    """Values made by rules and values made here share one space."""
    ahead = Mint(Dice("claims", seed))
    derived = [ahead.value(kinds, AT) for _ in range(20)]
    mint = Mint(Dice("claims", seed))
    assert all(mint.claim(v) for v in derived)
    assert not any(mint.claim(v) for v in derived)
    later = [mint.value(kinds, AT) for _ in range(20)]
    assert not set(later) & set(derived)
    assert not any(mint.claim(v) for v in later)


@DOMAINS
def test_twenty_thousand_topics_are_unique_and_can_stand_in_a_unit(domain: Domain) -> None:
    """No topic comes twice, holds a slash, or a digit that could be taken for a count."""
    mint = Mint(Dice("topics"))
    topics = [mint.topic(domain) for _ in range(20_000)]
    assert len(set(topics)) == len(topics)
    assert not any("/" in topic or values.find(topic) for topic in topics)


@DOMAINS
def test_look_alikes_share_a_beginning_and_are_unique(domain: Domain) -> None:
    """Each look-alike is new, begins as its model does, and many can be had of one."""
    mint = Mint(Dice("alike"))
    models = [mint.topic(domain) for _ in range(100)]
    alikes = [mint.look_alike(m) for m in models]
    crowd = [mint.look_alike(models[0]) for _ in range(60)]
    made = [*models, *alikes, *crowd]
    assert len(set(made)) == len(made)
    join = pools()[domain.topics].join
    for model, alike in [*zip(models, alikes, strict=True), *((models[0], c) for c in crowd)]:
        assert model.split(join)[0] == alike.split(join)[0]
        assert not values.find(alike)


def test_a_topic_from_elsewhere_has_look_alikes_too() -> None:
    """Topics that no pool could have made, as in scripts written by hand, are numbered."""
    mint = Mint(Dice("foreign"))
    alikes = [mint.look_alike("Figure Skating") for _ in range(30)]
    assert len(set(alikes)) == 30
    assert all(alike.startswith("Figure Skating ") for alike in alikes)


def test_people_who_are_topics_are_never_values() -> None:
    """Somebody who is a topic is nobody's emergency contact."""
    mint = Mint(Dice("people"))
    people = {f"name:{mint.topic(domains()[1])}" for _ in range(3000)}
    assert not people & {mint.value(field("name", pool="person"), AT) for _ in range(3000)}


def test_no_phrase_can_stand_inside_another() -> None:
    """Final words belong to one pool and one place, which keeps phrases from containing others."""
    topics = {"project", "trip", "house"}
    texts = set(pools()) - topics - {"person", "service"}
    for group in (topics, texts, {"person"}, {"service"}):
        finals: set[str] = set()
        for name in sorted(group):
            own = {last.split(" ")[-1].casefold() for last in pools()[name].last}
            assert not own & finals, name
            finals |= own
        for name in sorted(group):
            pool = pools()[name]
            begin = {word.casefold() for word in (*pool.first, *pool.middle)}
            assert not begin & finals, name
            assert not {w.casefold() for w in pool.first} & {w.casefold() for w in pool.middle}
            assert not [a for a in pool.last for b in pool.last if b.endswith(" " + a)]


def test_the_same_seed_mints_the_same() -> None:
    """A mint's output depends on its dice alone."""

    def run() -> list[str]:
        mint = Mint(Dice("same"))
        topics = [mint.topic(d) for d in domains()]
        return [*topics, *map(mint.look_alike, topics), *(mint.value(f, AT) for f in FIELDS)]

    assert run() == run()
