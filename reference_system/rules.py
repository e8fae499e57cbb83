"""What an extension edge may say about how its target follows, and arithmetic on spelled values.

Values are kept as they were said. A rule reads the date or the first number in one and writes
the result in the same manner, so `14 February 2026` moved by a week is `21 February 2026`.
"""

from __future__ import annotations

import re
from datetime import date, timedelta
from functools import lru_cache
from typing import Final, Literal

import msgspec

__all__ = ["Rule", "RuleError", "derive", "same_value"]

_MONTHS: Final = (
    "January February March April May June July August September October November December".split()
)
_MONTH: Final = {name[:3].casefold(): number for number, name in enumerate(_MONTHS, 1)}
_DATE = re.compile(
    r"(?P<iso>\b\d{4}-\d{2}-\d{2}\b)"
    r"|\b(?P<d>\d{1,2})(?:st|nd|rd|th)? (?P<m>[A-Z][a-z]{2,8})\.?,? (?P<y>\d{4})\b"
    r"|\b(?P<m2>[A-Z][a-z]{2,8})\.? (?P<d2>\d{1,2})(?:st|nd|rd|th)?,? (?P<y2>\d{4})\b"
)
_NUMBER = re.compile(r"\d{1,3}(?:,\d{3})+|\d+")


class RuleError(ValueError):
    """A rule does not fit the value that it is given."""


class Rule(msgspec.Struct, frozen=True, omit_defaults=True):
    """How a target follows its source."""

    kind: Literal["offset", "same", "scaled", "review"]
    """review: no value follows, but somebody has to look."""
    days: int = 0
    """offset: days added to the date in the source's value."""
    times: int = 1
    """scaled: numerator."""
    over: int = 1
    """scaled: denominator."""


def derive(rule: Rule, value: str) -> str:
    """The value that follows from `value`; amounts are rounded half up.

    Raises:
        RuleError: there is no date or number to reckon with, or the rule gives no value.
    """
    match rule.kind:
        case "same":
            return value
        case "offset":
            return _shifted(value, rule.days)
        case "scaled":
            return _scaled(value, rule.times, rule.over)
        case "review":
            raise RuleError("a review rule gives no value")


def _shifted(value: str, days: int) -> str:
    found = _DATE.search(value)
    day = _read(found) if found else None
    if found is None or day is None:
        raise RuleError(f"'{value}' holds no date that could be moved by {days} days")
    try:
        moved = day + timedelta(days=days)
    except OverflowError:
        raise RuleError(f"'{value}' moved by {days} days leaves the calendar") from None
    return value[: found.start()] + _write(found, moved) + value[found.end() :]


def _read(found: re.Match[str]) -> date | None:
    try:
        if found["iso"]:
            return date.fromisoformat(found["iso"])
        month = _MONTH.get((found["m"] or found["m2"])[:3].casefold(), 0)
        return date(int(found["y"] or found["y2"]), month, int(found["d"] or found["d2"]))
    except ValueError:
        return None


def _write(found: re.Match[str], day: date) -> str:
    month = _MONTHS[day.month - 1]
    if found["iso"]:
        return day.isoformat()
    return f"{day.day} {month} {day.year}" if found["m"] else f"{month} {day.day}, {day.year}"


def _scaled(value: str, times: int, over: int) -> str:
    found = _NUMBER.search(value)
    if found is None:
        raise RuleError(f"'{value}' holds no number that could be scaled by {times}/{over}")
    amount = int(found[0].replace(",", ""))
    result = (2 * amount * times + over) // (2 * over)
    return f"{value[: found.start()]}{result:,}{value[found.end() :]}"


def same_value(a: str, b: str) -> bool:
    """Whether two spellings mean one value: case, blanks, separators and dates apart."""
    return a == b or _plain(a) == _plain(b)


@lru_cache(maxsize=4096)
def _plain(value: str) -> str:
    found = _DATE.search(value)
    day = _read(found) if found else None
    if found is not None and day is not None:
        value = value[: found.start()] + day.isoformat() + value[found.end() :]
    value = re.sub(r"(?<=\d),(?=\d{3}\b)", "", value)
    return " ".join(value.split()).casefold()
