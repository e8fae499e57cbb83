"""Values are compared by value and found in any spelling."""

from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steeltrap.harness.values import (
    MONTHS,
    ValueLiteralError,
    display,
    find,
    kind_of,
    literal,
    matches,
    scaled,
    shifted,
)

DATES = st.dates(date(2024, 1, 1), date(2060, 12, 31))


def literals(text: str) -> list[str]:
    return [mention.literal for mention in find(text)]


@given(DATES)
def test_a_date_is_found_in_every_spelling(day: date) -> None:
    """However a date is written, it is the same date."""
    wanted = f"date:{day.isoformat()}"
    month = MONTHS[day.month - 1]
    for spelled in (
        day.isoformat(), f"{day.day} {month} {day.year}", f"{month} {day.day}, {day.year}",
        f"{month[:3]} {day.day}, {day.year}", f"the {day.day}th of {month} {day.year}",
        f"{day.day:02d}.{day.month:02d}.{day.year}", f"{day.year}年{day.month}月{day.day}日",
    ):  # fmt: skip
        assert [wanted] == literals(f"It is due on {spelled}.")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("at 2 pm, 14:00, 2:00 p.m. or 14 Uhr", ["time:14:00"] * 4),
        ("12 am is midnight, 12 pm noon", ["time:00:00", "time:12:00"]),
        ("4,300 EUR, €4300, 4.3k €, 4.300 Euro", ["money:EUR 4300"] * 4),
        ("$12,000 or 12k USD", ["money:USD 12000"] * 2),
        ("1.5 km or 1,500 m", ["measure:1500 m"] * 2),
        ("2 hours or 120 minutes", ["measure:120 min"] * 2),
        ("seats: 1,200", ["count:1200"]),
        ("code kx-4821", ["code:KX-4821"]),
        ("Deadline: March 15", ["date:*-03-15"]),
        ("nothing here, v2.3 and A4", []),
        ("31 February 2026 is no day", []),
    ],
)
def test_values_are_found_by_what_they_mean(text: str, found: list[str]) -> None:
    """Times, amounts, measures, counts and codes are read whatever the spelling."""
    assert found == literals(text)


@given(
    st.one_of(
        DATES.map(lambda day: f"date:{day.isoformat()}"),
        st.integers(0, 10**7).map(lambda n: f"count:{n}"),
        st.integers(1, 10**6).map(lambda n: f"money:EUR {n}"),
        st.integers(1, 10**6).map(lambda n: f"measure:{n} m"),
        st.times().map(lambda t: f"time:{t:%H:%M}"),
    )
)
def test_the_plain_spelling_reads_back(value: str) -> None:
    """What canonical sentences spell is found again as the same value."""
    assert [value] == literals(f"The field of the topic is {display(value)}.")


def test_a_date_without_year_matches_every_year_and_no_other_day() -> None:
    """A yearless date is a date, only less certain."""
    assert matches("date:*-04-20", "date:2026-04-20")
    assert not matches("date:*-04-20", "date:2026-04-21")
    assert not matches("date:2027-04-20", "date:2026-04-20")
    assert matches("name:Ilse Brandt", "name:ilse brandt")
    assert not matches("text:blue", "name:blue")


@given(DATES, st.integers(-400, 400))
def test_a_shift_can_be_undone(day: date, days: int) -> None:
    """Rules that offset dates are exact."""
    value = f"date:{day.isoformat()}"
    assert value == shifted(shifted(value, days), -days)


def test_scaling_rounds_half_up_and_refuses_what_has_no_amount() -> None:
    """A scaled amount is the same on every machine."""
    assert "money:EUR 2151" == scaled("money:EUR 4301", 1, 2)
    with pytest.raises(ValueLiteralError, match="cannot be scaled"):
        scaled("name:Ilse Brandt", 1, 2)


@pytest.mark.parametrize("bad", ["plain", "colour:blue", "date:2026-02-30", "time:24:00", "money:4300", "name:"])  # fmt: skip
def test_what_is_no_literal_is_refused(bad: str) -> None:
    """A malformed value is an error that shows the form of its kind."""
    with pytest.raises(ValueLiteralError):
        kind_of(bad)
    assert "code:KX-4821" == literal("code", "KX-4821")
