"""Days and times of day as people write them in English, resolved against when it was said."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import Final, Literal

__all__ = ["DAY", "instant_in", "only_relative"]

_MONTHS: Final = "jan feb mar apr may jun jul aug sep oct nov dec".split()
_WEEKDAYS: Final = "monday tuesday wednesday thursday friday saturday sunday".split()
_COUNTS: Final = {"a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7}  # fmt: skip
_MONTH = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?"
    r"|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\b\.?"
)
_TIME = (
    r"(?:(?:,| at|T)? ?(?P<hour>\d{1,2})"
    r"(?::(?P<minute>\d{2})(?::\d{2})?(?: ?(?P<pm>[ap]m))?| ?(?P<pm2>[ap]m))\b)?"
)
DAY: Final = (
    r"(?:\d{4}-\d{2}-\d{2}"
    rf"|\d{{1,2}}(?:st|nd|rd|th)?(?: of)? {_MONTH}(?:,? \d{{4}})?"
    rf"|{_MONTH} \d{{1,2}}(?:st|nd|rd|th)?\b(?:,? \d{{4}})?"
    rf"|(?:(?:next|last|this|on) )?(?:{'|'.join(_WEEKDAYS)})"
    r"|today|tonight|tomorrow|yesterday|(?:next|last) (?:week|month|year)"
    r"|in (?:\d{1,3}|a|an|one|two|three|four|five|six|seven) (?:day|week)s?"
    r"|(?:\d{1,3}|a|an|one|two|three|four|five|six|seven) (?:day|week)s? ago"
    r"|the end of (?:the|this) (?:week|month|year))"
)
"""Part of a regular expression: a day; letters in any case."""
_SPELLED = re.compile(rf"\b(?P<day>{DAY}){_TIME}(?!\w)", re.IGNORECASE)
_ABSOLUTE = re.compile(
    rf"(?P<iso>\d{{4}}-\d{{2}}-\d{{2}})"
    rf"|(?P<d>\d{{1,2}})(?:st|nd|rd|th)?(?: of)? (?P<m>{_MONTH})(?:,? (?P<y>\d{{4}}))?"
    rf"|(?P<m2>{_MONTH}) (?P<d2>\d{{1,2}})(?:st|nd|rd|th)?(?:,? (?P<y2>\d{{4}}))?"
)


def instant_in(text: str, at: str, side: Literal["ahead", "back"], end: bool = False) -> str | None:
    """The first day in a text, with its time of day, as ISO 8601 to the minute.

    Args:
        text: what was said.
        at: when it was said, ISO 8601; relative days count from here.
        side: where a day without year, or a weekday, is looked for.
        end: a day without a time of day means its last minute, not its first.
    """
    for found in _SPELLED.finditer(text):
        day = _day(found["day"].lower(), datetime.fromisoformat(at), side)
        if day is None:
            continue
        hour, minute = (23, 59) if end else (0, 0)
        if found["hour"]:
            half = (found["pm"] or found["pm2"] or "").lower()
            hour, minute = int(found["hour"]), int(found["minute"] or 0)
            hour = hour % 12 + (12 if half == "pm" else 0) if half else hour
        if hour < 24 and minute < 60:
            return day.replace(hour=hour, minute=minute).strftime("%Y-%m-%dT%H:%M")
    return None


def only_relative(text: str) -> bool:
    """Whether a text is a day that can be understood only by who knows when it was said."""
    found = _SPELLED.fullmatch(text.strip())
    return found is not None and _ABSOLUTE.fullmatch(found["day"].lower()) is None


def _day(spelled: str, now: datetime, side: Literal["ahead", "back"]) -> datetime | None:
    """Midnight of a day; None if there is no such day."""
    now = now.replace(tzinfo=None, hour=0, minute=0, second=0, microsecond=0)
    try:
        found = _ABSOLUTE.fullmatch(spelled)
        return _absolute(found, now, side) if found else _relative(spelled, now, side)
    except (ValueError, OverflowError):
        return None


def _absolute(found: re.Match[str], now: datetime, side: Literal["ahead", "back"]) -> datetime:
    if found["iso"]:
        return datetime.fromisoformat(found["iso"])
    month = _MONTHS.index((found["m"] or found["m2"])[:3]) + 1
    number, year = int(found["d"] or found["d2"]), found["y"] or found["y2"]
    day = datetime(int(year) if year else now.year, month, number)
    if not year and side == "ahead" and day < now:
        return day.replace(year=day.year + 1)
    if not year and side == "back" and day > now:
        return day.replace(year=day.year - 1)
    return day


def _relative(spelled: str, now: datetime, side: Literal["ahead", "back"]) -> datetime:
    words = spelled.split()
    step = {"today": 0, "tonight": 0, "tomorrow": 1, "yesterday": -1}.get(spelled)
    if step is not None:
        return now + timedelta(days=step)
    if words[-1] in _WEEKDAYS:
        return _weekday(_WEEKDAYS.index(words[-1]), words[0], now, side)
    if words[0] == "in" or words[-1] == "ago":
        count = words[1] if words[0] == "in" else words[0]
        days = (_COUNTS.get(count) or int(count)) * (7 if "week" in spelled else 1)
        return now + timedelta(days=days if words[0] == "in" else -days)
    if words[0] == "the":
        return _end(words[-1], now)
    sign = 1 if words[0] == "next" else -1
    if words[-1] == "week":
        return now + timedelta(days=7 * sign)
    months = now.year * 12 + now.month - 1 + sign * (12 if words[-1] == "year" else 1)
    return now.replace(year=months // 12, month=months % 12 + 1, day=min(now.day, 28))


def _weekday(wanted: int, word: str, now: datetime, side: Literal["ahead", "back"]) -> datetime:
    back = word == "last" or (side == "back" and word not in ("next", "this"))
    if back:
        return now - timedelta(days=(now.weekday() - wanted - 1) % 7 + 1)
    return now + timedelta(days=(wanted - now.weekday() - 1) % 7 + 1)


def _end(period: str, now: datetime) -> datetime:
    """The first day after the week, month or year."""
    if period == "week":
        return now + timedelta(days=7 - now.weekday())
    if period == "year":
        return datetime(now.year + 1, 1, 1)
    return datetime(now.year + now.month // 12, now.month % 12 + 1, 1)
