"""Values as people spell them, for a database: the first date or number in a text, read and respelled.

They are registered as functions of SQL, so that a column can hold what a value means beside how it
is spelled; whatever is reckoned with it is reckoned by the database.
"""

from __future__ import annotations

import re
from datetime import date
from typing import Final

__all__ = ["day_in", "number_in", "with_day", "with_number"]

_MONTHS: Final = (
    "January February March April May June July August September October November December".split()
)
_NUMBER: Final = {name[:3].casefold(): number for number, name in enumerate(_MONTHS, 1)}
_NAMES: Final = "|".join(f"{name[:3]}(?:{name[3:]})?" for name in _MONTHS)
_DAY = re.compile(
    r"\b(?P<iso>\d{4}-\d{2}-\d{2})\b"
    rf"|\b(?P<d>\d{{1,2}})(?:st|nd|rd|th)? (?P<m>{_NAMES}),? (?P<y>\d{{4}})\b"
    rf"|\b(?P<m2>{_NAMES}) (?P<d2>\d{{1,2}})(?:st|nd|rd|th)?,? (?P<y2>\d{{4}})\b",
    re.IGNORECASE,
)
_DIGITS = re.compile(r"\d{1,3}(?:,\d{3})+|\d+")


def day_in(value: str) -> str | None:
    """The first date in a value, as ISO 8601; None where there is none."""
    found = _DAY.search(value)
    try:
        return _day(found).isoformat() if found else None
    except ValueError:
        return None


def number_in(value: str) -> int | None:
    """The first number in a value; None where there is none that a database holds."""
    found = _DIGITS.search(value)
    return int(found[0].replace(",", "")) if found and len(found[0]) < 16 else None


def with_day(value: str | None, day: str | None) -> str | None:
    """The value with another date in place of its first, spelled in the same manner."""
    found = _DAY.search(value or "")
    if value is None or found is None or day is None:
        return None
    new = date.fromisoformat(day)
    month = _MONTHS[new.month - 1]
    if found["iso"]:
        spelled = day
    else:
        spelled = (
            f"{new.day} {month} {new.year}" if found["d"] else f"{month} {new.day}, {new.year}"
        )
    return value[: found.start()] + spelled + value[found.end() :]


def with_number(value: str | None, number: int | None) -> str | None:
    """The value with another number in place of its first, in groups of three digits."""
    found = _DIGITS.search(value or "")
    if value is None or found is None or number is None:
        return None
    return f"{value[: found.start()]}{number:,}{value[found.end() :]}"


def _day(found: re.Match[str]) -> date:
    if found["iso"]:
        return date.fromisoformat(found["iso"])
    month = _NUMBER[(found["m"] or found["m2"])[:3].casefold()]
    return date(int(found["y"] or found["y2"]), month, int(found["d"] or found["d2"]))
