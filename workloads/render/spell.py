"""Spellings of values, days, numbers and fractions.

Every spelling of a date, time, amount, measure, count or code is found again by `values.find`.
Numbers of rules are spelled in words, so that no rule holds what could be taken for a value.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from functools import cache
from math import gcd
from typing import Final

from steeltrap.harness import values
from steeltrap.workloads.dice import Dice

__all__ = ["Language", "days", "fraction", "instant", "number", "spell", "spellings"]

Language = str
"""en, de or ja."""

YEARLESS_DAYS: Final = 300
"""A date may lose its year only when it lies so few days ahead: the next such day is meant."""
MONTHS: Final = {
    "en": values.MONTHS,
    "de": "Januar Februar März April Mai Juni Juli August September Oktober November Dezember".split(),
}  # fmt: skip
SIGNS: Final = {"EUR": "€", "USD": "$", "GBP": "£", "JPY": "¥"}
WORDS: Final = {"EUR": "euros", "USD": "dollars", "JPY": "yen", "CHF": "francs"}
LARGE_UNIT: Final = {"m": ("km", 1000), "g": ("kg", 1000), "min": ("hours", 60), "MB": ("GB", 1000)}
LONG_UNIT: Final = {"m": "metres", "g": "grams", "min": "minutes"}


def spell(literal: str, dice: Dice, *, varied: bool, at: str, language: Language = "en") -> str:
    """A value in words; `varied` picks any spelling of the language, otherwise its plain one.

    Args:
        literal: the value.
        dice: picks the spelling.
        varied: whether spellings other than the plain one are allowed.
        at: now; decides whether a date can do without its year.
        language: en, de or ja.
    """
    if not varied:
        return values.display(literal) if language == "en" else spellings(literal, language)[0]
    options = spellings(literal, language)
    if literal.startswith("date:") and language != "de":
        ahead = (
            date.fromisoformat(literal[5:]).toordinal() - date.fromisoformat(at[:10]).toordinal()
        )
        if 0 <= ahead <= YEARLESS_DAYS:
            options += _yearless(literal[5:], language)
    return dice.pick(options)


def spellings(literal: str, language: Language = "en") -> tuple[str, ...]:
    """Every spelling of a value in a language, the plain one first."""
    kind, _, payload = literal.partition(":")
    spellers = _SPELLERS.get(kind)
    return spellers(payload, language) if spellers else (payload,)


def _dates(payload: str, language: Language) -> tuple[str, ...]:
    year, month, day = payload[:4], int(payload[5:7]), int(payload[8:])
    dotted = f"{day:02d}.{month:02d}.{year}"
    if language == "ja":
        return f"{year}年{month}月{day}日", payload
    name = MONTHS[language][month - 1]
    if language == "de":
        return f"{day}. {name} {year}", dotted
    return (
        f"{day} {name} {year}",
        f"{name} {day}, {year}",
        f"{name} {_ordinal(day)}, {year}",
        f"{_ordinal(day)} {name} {year}",
        f"{name[:3]} {day}, {year}",
        f"{day} {name[:3]} {year}",
        dotted,
        payload,
    )


def _yearless(payload: str, language: Language) -> tuple[str, ...]:
    month, day = int(payload[5:7]), int(payload[8:])
    if language == "ja":
        return (f"{month}月{day}日",)
    name = values.MONTHS[month - 1]
    return f"{name} {day}", f"{day} {name}", f"{name} {_ordinal(day)}"


def _ordinal(day: int) -> str:
    ending = "th" if 11 <= day <= 13 else {1: "st", 2: "nd", 3: "rd"}.get(day % 10, "th")
    return f"{day}{ending}"


def _times(payload: str, language: Language) -> tuple[str, ...]:
    hour, minute = int(payload[:2]), payload[3:]
    if language == "ja":
        return payload, f"{hour}時{minute}分"
    if language == "de":
        return (f"{payload} Uhr", f"{hour} Uhr") if minute == "00" else (f"{payload} Uhr",)
    if hour % 12 == 0:  # people disagree on what 12 am is
        return (payload,)
    half, twelve = ("am" if hour < 12 else "pm"), hour % 12
    forms = (payload, f"{twelve}:{minute} {half}", f"{twelve}:{minute} {half[0]}.m.")
    return (*forms, f"{twelve} {half}", f"{twelve}{half}") if minute == "00" else forms


def _amounts(payload: str, language: Language) -> tuple[str, ...]:
    currency, amount = payload.split(" ")
    grouped, sign = _grouped(amount, language), SIGNS.get(currency, "")
    forms = [f"{grouped} {currency}", f"{currency} {grouped}"]
    if sign:
        forms.append(f"{grouped} {sign}" if language == "de" else f"{sign}{grouped}")
    if language == "en" and currency in WORDS:
        forms.append(f"{grouped} {WORDS[currency]}")
    if language == "en" and sign and len(amount) > 3 and amount.endswith("00"):
        forms.append(f"{sign}{_decimal(int(amount), 1000)}k")
    return tuple(forms)


def _measures(payload: str, language: Language) -> tuple[str, ...]:
    amount, unit = payload.split(" ")
    forms = [f"{_grouped(amount, language)} {unit}"]
    if language == "en" and unit in LONG_UNIT:
        forms.append(f"{_grouped(amount, language)} {LONG_UNIT[unit]}")
    large, factor = LARGE_UNIT[unit]
    if language != "en" and large == "hours":
        large = "h"
    spelled = _decimal(int(amount), factor)
    if int(amount) >= factor and spelled and float(spelled) != 1:
        forms.append(f"{spelled.replace('.', ',') if language == 'de' else spelled} {large}")
    return tuple(forms)


def _counts(payload: str, language: Language) -> tuple[str, ...]:
    grouped = _grouped(payload, language)
    return (grouped, payload) if grouped != payload else (payload,)


def _codes(payload: str, language: Language) -> tuple[str, ...]:
    return (payload,) if language != "en" else (payload, payload, payload.lower())


_SPELLERS: Final[dict[str, Callable[[str, Language], tuple[str, ...]]]] = {
    "date": _dates,
    "time": _times,
    "money": _amounts,
    "measure": _measures,
    "count": _counts,
    "code": _codes,
}


def _grouped(amount: str, language: Language) -> str:
    grouped = f"{int(amount):,}"
    return grouped.replace(",", ".") if language == "de" else grouped


def _decimal(amount: int, factor: int) -> str:
    """`amount / factor` with at most two decimals; empty when that would not be exact."""
    hundredths, rest = divmod(amount * 100, factor)
    if rest:
        return ""
    whole, part = divmod(hundredths, 100)
    return f"{whole}.{part:02d}".rstrip("0").rstrip(".")


def instant(at: str) -> str:
    """An instant to the minute: `18:00 on 3 May 2026`."""
    return f"{at[11:16] or '00:00'} on {values.display(f'date:{at[:10]}')}"


# ---------------------------------------------------------------- numbers in words

_SMALL: Final = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen"
    " sixteen seventeen eighteen nineteen"
).split()
_TENS: Final = "zero ten twenty thirty forty fifty sixty seventy eighty ninety".split()
_PART: Final = {2: "half", 3: "third", 4: "quarter", 5: "fifth", 6: "sixth", 7: "seventh",
                8: "eighth", 9: "ninth", 10: "tenth", 12: "twelfth", 20: "twentieth"}  # fmt: skip


@cache
def number(n: int) -> str:
    """A number from 0 to 999,999 in words."""
    if n < 20:
        return _SMALL[n]
    if n < 100:
        tens, ones = divmod(n, 10)
        return _TENS[tens] + (f"-{_SMALL[ones]}" if ones else "")
    unit, word = (1000, "thousand") if n >= 1000 else (100, "hundred")
    many, rest = divmod(n, unit)
    tail = "" if not rest else f" and {number(rest)}" if rest < 100 else f" {number(rest)}"
    return f"{number(many)} {word}{tail}"


@cache
def days(n: int) -> str:
    """How far apart: `one day`, `fourteen days`."""
    return "one day" if n == 1 else f"{number(n)} days"


@cache
def fraction(times: int, over: int) -> str:
    """What stands before the thing that is scaled: `half of`, `twice`, `one and a half times`."""
    shared = gcd(times, over)
    times, over = times // shared, over // shared
    if over == 1:
        return {1: "exactly", 2: "twice"}.get(times, f"{number(times)} times")
    whole, rest = divmod(times, over)
    part = _parts(rest, over)
    if not whole:
        return f"{part} of"
    return f"{number(whole)} and {'a half' if part == 'half' else part} times"


def _parts(times: int, over: int) -> str:
    """`half`, `a third`, `three quarters`; where English has no word, `seven parts in thirty`."""
    name = _PART.get(over)
    if name is None:
        return f"{number(times)} part{'s' if times > 1 else ''} in {number(over)}"
    if over == 2:
        return name
    return f"a {name}" if times == 1 else f"{number(times)} {name}s"
