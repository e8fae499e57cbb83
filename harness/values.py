"""Typed values: written as literals, compared by value and never by spelling.

A literal is `kind:payload` with one canonical payload per value, so two literals are the
same value exactly when they are the same string:

| kind    | payload      | also spelled                                  |
|---------|--------------|-----------------------------------------------|
| date    | 2026-04-20   | 20 April 2026, April 20, 20.04.2026, 4月20日   |
| time    | 14:00        | 2 pm, 14:00, 14 Uhr                           |
| money   | EUR 4300     | 4,300 EUR, €4.3k, 4300 euros                  |
| measure | 1500 m       | 1.5 km, 1,500 metres                          |
| count   | 12           | 12, 1,200                                     |
| code    | KX-4821      | kx-4821                                       |
| name    | Ilse Brandt  | any case                                      |
| text    | window seat  | any case                                      |

A date that is spelled without its year is found as `date:*-04-20`, which `matches` any year.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Final, Literal, get_args

__all__ = [
    "KINDS",
    "Kind",
    "Mention",
    "ValueLiteralError",
    "display",
    "find",
    "kind_of",
    "literal",
    "matches",
    "payload_of",
    "scaled",
    "shifted",
    "spelled",
]

Kind = Literal["date", "time", "money", "measure", "count", "code", "name", "text"]
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)

MONTHS: Final = (
    "January February March April May June July August September October November December".split()
)
_GERMAN_MONTHS = (
    "Januar Februar März April Mai Juni Juli August September Oktober November Dezember".split()
)
_MONTH_NUMBER = {
    name.lower(): number
    for names in (MONTHS, _GERMAN_MONTHS, [m[:3] for m in MONTHS])
    for number, name in enumerate(names, 1)
} | {"sept": 9}
_CURRENCY = {
    "€": "EUR", "eur": "EUR", "euro": "EUR", "euros": "EUR",
    "$": "USD", "usd": "USD", "dollar": "USD", "dollars": "USD",
    "£": "GBP", "gbp": "GBP", "pounds sterling": "GBP",
    "¥": "JPY", "jpy": "JPY", "yen": "JPY", "chf": "CHF", "francs": "CHF",
}  # fmt: skip
_UNIT: dict[str, tuple[int, str]] = {
    "km": (1000, "m"), "kilometres": (1000, "m"), "kilometers": (1000, "m"),
    "m": (1, "m"), "metres": (1, "m"), "meters": (1, "m"),
    "kg": (1000, "g"), "kilos": (1000, "g"), "kilograms": (1000, "g"),
    "g": (1, "g"), "grams": (1, "g"),
    "h": (60, "min"), "hours": (60, "min"), "hrs": (60, "min"),
    "min": (1, "min"), "minutes": (1, "min"), "mins": (1, "min"),
    "gb": (1000, "MB"), "mb": (1, "MB"),
}  # fmt: skip

_PAYLOAD: dict[Kind, re.Pattern[str]] = {
    "date": re.compile(r"(\d{4}|\*)-\d{2}-\d{2}"),
    "time": re.compile(r"([01]\d|2[0-3]):[0-5]\d"),
    "money": re.compile(r"(EUR|USD|GBP|JPY|CHF) \d+"),
    "measure": re.compile(r"\d+ (m|g|min|MB)"),
    "count": re.compile(r"\d+"),
    "code": re.compile(r"[A-Z]{2,4}-\d{2,6}"),
    "name": re.compile(r"\S(.*\S)?"),
    "text": re.compile(r"\S(.*\S)?"),
}


EXAMPLE: Final[dict[Kind, str]] = {
    "date": "2026-04-20",
    "time": "14:00",
    "money": "EUR 4300",
    "measure": "1500 m",
    "count": "12",
    "code": "KX-4821",
    "name": "Ilse Brandt",
    "text": "window seat",
}


class ValueLiteralError(ValueError):
    """A string is not a value literal; the message says which form its kind wants."""


@dataclass(frozen=True, slots=True)
class Mention:
    """A value found in a text, at `text[start:end]`."""

    literal: str
    start: int
    end: int


def literal(kind: Kind, payload: str) -> str:
    """The literal of a kind and a payload.

    Raises:
        ValueLiteralError: the payload is not in the canonical form of its kind.
    """
    if kind not in _PAYLOAD:
        raise ValueLiteralError(f"unknown kind of value '{kind}'; known: {', '.join(KINDS)}")
    ok = _PAYLOAD[kind].fullmatch(payload)
    if ok and kind == "date" and not payload.startswith("*"):
        try:
            date.fromisoformat(payload)
        except ValueError:
            ok = None
    if not ok:
        raise ValueLiteralError(f"'{payload}' is not a {kind}; write it as {kind}:{EXAMPLE[kind]}")
    return f"{kind}:{payload}"


def kind_of(lit: str) -> Kind:
    """The kind of a literal.

    Raises:
        ValueLiteralError: `lit` is not a literal.
    """
    kind, colon, payload = lit.partition(":")
    if not colon:
        raise ValueLiteralError(
            f"'{lit}' is not a value; write it as date:2026-04-20 or text:window seat"
        )
    literal(kind, payload)  # type: ignore[arg-type]
    return kind  # type: ignore[return-value]


def payload_of(lit: str) -> str:
    """What stands behind the colon of a literal."""
    return lit.partition(":")[2]


def matches(a: str, b: str) -> bool:
    """Whether two literals mean the same value; a date without year matches every year."""
    if a == b:
        return True
    kind, _, left = a.partition(":")
    other, _, right = b.partition(":")
    if kind != other:
        return False
    if kind == "date":
        return (left[0] == "*" or right[0] == "*") and left[-5:] == right[-5:]
    return kind in ("name", "text", "code") and left.casefold() == right.casefold()


# ---------------------------------------------------------------- arithmetic of rules


def shifted(lit: str, days: int) -> str:
    """A date literal moved by `days`."""
    day = date.fromisoformat(payload_of(lit)) + timedelta(days=days)
    return f"date:{day.isoformat()}"


def scaled(lit: str, times: int, over: int) -> str:
    """A money, measure or count literal multiplied by `times / over`, rounded half up."""
    kind, _, payload = lit.partition(":")
    amount = re.search(r"\d+", payload)
    if kind not in ("money", "measure", "count") or amount is None:
        raise ValueLiteralError(f"'{lit}' cannot be scaled; only money, measures and counts can")
    result = (2 * int(amount.group()) * times + over) // (2 * over)
    return f"{kind}:{payload[: amount.start()]}{result}{payload[amount.end() :]}"


# ---------------------------------------------------------------- spelling


def _grouped(number: str) -> str:
    return f"{int(number):,}"


def _display_date(payload: str) -> str:
    day = date.fromisoformat(payload)
    return f"{day.day} {MONTHS[day.month - 1]} {day.year}"


def _display_measure(payload: str) -> str:
    number, unit = payload.split(" ")
    return f"{_grouped(number)} {unit}"


def _display_money(payload: str) -> str:
    currency, number = payload.split(" ")
    return f"{_grouped(number)} {currency}"


_DISPLAY: dict[str, Callable[[str], str]] = {
    "date": _display_date,
    "money": _display_money,
    "measure": _display_measure,
    "count": _grouped,
}


def display(lit: str) -> str:
    """The plain English spelling that canonical sentences use."""
    kind, _, payload = lit.partition(":")
    spell = _DISPLAY.get(kind)
    return spell(payload) if spell else payload


_PLAIN_DATE = re.compile(r"(\d{1,2}) ([A-Z][a-z]+) (\d{1,4})")
_PLAIN_NUMBER = re.compile(r"(\d{1,3}(?:,\d{3})*)(?: (\w+))?")


def spelled(words: str) -> list[str]:
    """Every literal that `display` spells so; of numbers those without leading zeros."""
    found = [f"{kind}:{words}" for kind in ("name", "text", "code", "time")]
    if (day := _PLAIN_DATE.fullmatch(words)) and day[2] in MONTHS:
        found.append(f"date:{int(day[3]):04d}-{MONTHS.index(day[2]) + 1:02d}-{int(day[1]):02d}")
    elif number := _PLAIN_NUMBER.fullmatch(words):
        amount, unit = number[1].replace(",", ""), number[2]
        found += [f"money:{unit} {amount}", f"measure:{amount} {unit}"] if unit else [f"count:{amount}"]  # fmt: skip
    return found


# ---------------------------------------------------------------- finding values in text

_MONTH_WORD = "|".join(sorted(_MONTH_NUMBER, key=len, reverse=True))
_NUMBER = r"\d{1,3}(?:[,.\u202f]\d{3})+|\d+(?:[.,]\d{1,2})?"
_UNIT_WORD = "|".join(sorted(_UNIT, key=len, reverse=True))
_CUR_WORD = "|".join(re.escape(c) for c in sorted(_CURRENCY, key=len, reverse=True))
_PATTERN = re.compile(
    rf"""
    (?P<iso>\b(?P<iy>\d{{4}})-(?P<im>\d{{2}})-(?P<id>\d{{2}})\b)
  | (?P<dot>\b(?P<dd>\d{{1,2}})\.(?P<dm>\d{{1,2}})\.(?P<dy>\d{{4}})\b)
  | (?P<cjk>(?:(?P<jy>\d{{4}})年)?(?P<jm>\d{{1,2}})月(?P<jd>\d{{1,2}})日)
  | (?P<dmy>\b(?:the\s+)?(?P<bd>\d{{1,2}})(?:st|nd|rd|th|\.)?\s+(?:of\s+)?(?P<bm>{_MONTH_WORD})\b\.?
        (?:,?\s+(?P<by>\d{{4}}))?)
  | (?P<mdy>\b(?P<um>{_MONTH_WORD})\b\.?\s+(?:the\s+)?(?P<ud>\d{{1,2}})(?:st|nd|rd|th)?\b
        (?:,?\s+(?P<uy>\d{{4}}))?)
  | (?P<clock>\b(?P<ch>[01]?\d|2[0-3]):(?P<cm>[0-5]\d)(?:\s?(?P<ca>[ap])\.?m\b\.?)?)
  | (?P<ampm>\b(?P<ah>1[0-2]|0?[1-9])\s?(?P<aa>[ap])\.?m\b\.?)
  | (?P<uhr>\b(?P<uh>[01]?\d|2[0-3])\s?(?:Uhr|時)(?:\s?(?P<umin>[0-5]\d)分?)?)
  | (?P<cur1>(?P<c1>{_CUR_WORD})\s?(?P<n1>{_NUMBER})(?P<k1>k\b)?)
  | (?P<cur2>\b(?P<n2>{_NUMBER})\s?(?P<k2>k\s)?(?P<c2>{_CUR_WORD})(?!\w))
  | (?P<code>\b[A-Z]{{2,4}}-\d{{2,6}}\b)
  | (?P<unit>\b(?P<nu>{_NUMBER})\s?(?P<u>{_UNIT_WORD})\b)
  | (?P<num>(?<![\w.#-])(?:{_NUMBER})(?![\w-]|\.\d|:\d))
    """,
    re.VERBOSE | re.IGNORECASE,
)


def _number(spelled: str) -> float:
    """The value of a spelled number: `4,300`, `4.300`, `4300`, `1.5`, `1,5`."""
    if re.fullmatch(r"\d{1,3}([,.\u202f]\d{3})+", spelled):
        return float(re.sub(r"\D", "", spelled))
    return float(spelled.replace(",", "."))


def _whole(value: float) -> int | None:
    if not math.isfinite(value):
        return None
    rounded = round(value)
    return rounded if abs(value - rounded) < 1e-9 else None


def _date_literal(year: str | None, month: int, day: int) -> str | None:
    try:
        date(int(year) if year else 2024, month, day)  # 2024: a leap year allows 29 February
    except ValueError:
        return None
    return f"date:{year or '*'}-{month:02d}-{day:02d}"


def _time_literal(hour: int, minute: int, half: str | None) -> str | None:
    if half:
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + (12 if half.lower() == "p" else 0)
    return f"time:{hour:02d}:{minute:02d}"


def _money_literal(currency: str, spelled: str, thousands: str | None) -> str | None:
    amount = _whole(_number(spelled) * (1000 if thousands else 1))
    return None if amount is None else f"money:{_CURRENCY[currency.lower()]} {amount}"


def _measure_literal(spelled: str, unit: str) -> str | None:
    factor, base = _UNIT[unit.lower()]
    amount = _whole(_number(spelled) * factor)
    return None if amount is None else f"measure:{amount} {base}"


def _count_literal(spelled: str) -> str | None:
    amount = _whole(_number(spelled))
    return None if amount is None else f"count:{amount}"


_READ: dict[str, Callable[[re.Match[str]], str | None]] = {
    "iso": lambda m: _date_literal(m["iy"], int(m["im"]), int(m["id"])),
    "dot": lambda m: _date_literal(m["dy"], int(m["dm"]), int(m["dd"])),
    "cjk": lambda m: _date_literal(m["jy"], int(m["jm"]), int(m["jd"])),
    "dmy": lambda m: _date_literal(m["by"], _MONTH_NUMBER[m["bm"].lower()], int(m["bd"])),
    "mdy": lambda m: _date_literal(m["uy"], _MONTH_NUMBER[m["um"].lower()], int(m["ud"])),
    "clock": lambda m: _time_literal(int(m["ch"]), int(m["cm"]), m["ca"]),
    "ampm": lambda m: _time_literal(int(m["ah"]), 0, m["aa"]),
    "uhr": lambda m: _time_literal(int(m["uh"]), int(m["umin"] or 0), None),
    "cur1": lambda m: _money_literal(m["c1"], m["n1"], m["k1"]),
    "cur2": lambda m: _money_literal(m["c2"], m["n2"], m["k2"]),
    "code": lambda m: f"code:{m['code'].upper()}",
    "unit": lambda m: _measure_literal(m["nu"], m["u"]),
    "num": lambda m: _count_literal(m["num"]),
}


def find(text: str) -> list[Mention]:
    """Every date, time, amount, measure, count and code in `text`, from left to right.

    Names and free text have no pattern of their own: whoever knows the script's values looks
    for those.
    """
    found = []
    for match in _PATTERN.finditer(text):
        group = next(name for name in _READ if match[name] is not None)
        lit = _READ[group](match)
        if lit is not None:
            found.append(Mention(lit, match.start(), match.end()))
    return found
