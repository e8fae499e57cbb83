"""Makes the topics and values of a script, each only once, so that every value can be traced.

Values of numbers and dates are taken from number lines on which the next free place is found in
almost constant time; names and texts are phrases of pools that grow by a word when they fill up.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from functools import cache
from typing import Final

from steeltrap.workloads.dice import Dice
from steeltrap.workloads.domains import DATA, Domain, Field

__all__ = ["Mint", "Pool", "pools"]

TRIES: Final = 6
"""How often a nice value is sought before a plainer kind of value is taken."""
DAY_MINUTES: Final = 24 * 60
CALENDAR_DAYS: Final = 1200
"""So many dates are told apart; a script that has used them up may use the first ones again."""
CODE_LETTERS: Final = "ABCDEFGHJKLMNPQRSTUVWXYZ"
REGIONS: Final = ("eu", "us", "staging", "canary", "next", "apac", "lite", "pro")
NUMERALS: Final = ("II", "III", "IV")


@dataclass(frozen=True, slots=True)
class Pool:
    """Words that phrases are made of."""

    first: tuple[str, ...]
    middle: tuple[str, ...]
    last: tuple[str, ...]
    join: str

    def phrase(self, dice: Dice, middles: int) -> str:
        """A random phrase with so many middle words, in an order that reads the same each time."""
        chosen = sorted({dice.between(0, len(self.middle) - 1) for _ in range(middles)})
        parts = [dice.pick(self.first), *(self.middle[i] for i in chosen), dice.pick(self.last)]
        return self.join.join(parts)


@cache
def pools() -> dict[str, Pool]:
    """All word pools by name."""
    with (DATA / "pools.toml").open("rb") as stream:
        data = tomllib.load(stream)
    return {name: _pool(entry) for name, entry in data.items()}


def _pool(entry: dict[str, str]) -> Pool:
    first, middle, last = (
        tuple(word.replace("_", " ") for word in entry[part].split())
        for part in ("first", "middle", "last")
    )
    return Pool(first, middle, last, entry.get("join", " "))


class _Line:
    """Whole numbers of which each is given once: the next free one is found by path halving."""

    def __init__(self) -> None:
        self._next: dict[int, int] = {}

    def take(self, start: int, low: int, high: int) -> int:
        """The next free number from `start` to `high`, or else from `low` on; free no longer."""
        number = self._free(start)
        if number > high:
            number = self._free(low)
        self._next[number] = number + 1
        return number

    def _free(self, here: int) -> int:
        step = self._next
        while (after := step.get(here)) is not None:
            beyond = step.get(after)
            if beyond is None:
                return after
            step[here] = here = beyond
        return here

    def claim(self, number: int) -> bool:
        """Take exactly this number if it is free."""
        if number in self._next:
            return False
        self._next[number] = number + 1
        return True


class Mint:
    """Gives topics and values, no two of which are the same.

    Args:
        dice: where the random choices come from.
    """

    def __init__(self, dice: Dice) -> None:
        self._dice = dice
        self._words: set[str] = set()
        """Names, texts and codes given, as literals."""
        self._topics: set[str] = set()
        self._lines: dict[str, _Line] = {}
        self._times: list[int] = []
        self._laps = 0
        self._days: list[int] = []
        """Days given since the calendar was last cleared."""

    # ------------------------------------------------------------ topics

    def topic(self, domain: Domain) -> str:
        """A topic that has not been given before."""
        if domain.topics == "person":
            return self.person()
        return self._fresh(lambda middles: self._phrase(domain.topics, middles), self._claim_topic)

    def look_alike(self, topic: str) -> str:
        """A new topic that is easily taken for `topic`: its end changed, or a number added."""
        kind = _kind_of_topic(topic)
        if kind == "person":
            return self._fresh(
                lambda middles: _same_start(topic, " ", self._phrase(kind, middles)),
                lambda name: self.claim(f"name:{name}"),
            )
        if not kind or self._dice.chance(0.5):
            return self._fresh(lambda extra: self._numbered(topic, kind, extra), self._claim_topic)
        join = pools()[kind].join
        return self._fresh(
            lambda middles: _same_start(topic, join, self._phrase(kind, middles)),
            self._claim_topic,
        )

    def _fresh(self, make: Callable[[int], str], claim: Callable[[str], bool]) -> str:
        """The first phrase that can be claimed; `make` is told to make longer ones in time."""
        tries = 0
        while not claim(phrase := make(tries // TRIES)):
            tries += 1
        return phrase

    def _phrase(self, pool: str, middles: int) -> str:
        return pools()[pool].phrase(self._dice, middles)

    def _claim_topic(self, topic: str) -> bool:
        if topic in self._topics:
            return False
        self._topics.add(topic)
        return True

    def _numbered(self, topic: str, kind: str, extra: int) -> str:
        """`Website Redesign II`, `osprey-billing-eu`; `extra` words before the end."""
        service = kind == "service"
        glue, endings = ("-", REGIONS) if service else (" ", NUMERALS)
        stem = next(
            (topic.removesuffix(glue + e) for e in endings if topic.endswith(glue + e)), topic
        )
        more = [self._dice.pick(pools()[kind or "project"].middle) for _ in range(extra)]
        return glue.join([stem, *more, self._dice.pick(endings)])

    # ------------------------------------------------------------ values

    def person(self) -> str:
        """The full name of somebody who has not been named before."""
        return self._words_of("name", "person")

    def value(self, field: Field, at: str) -> str:
        """A value of the field, as a literal, that this mint has neither given nor had claimed.

        Numbers and dates lie within the field's bounds as long as there is room, and go on
        beyond them afterwards. Uniqueness has two limits, neither of which a script of 500 turns
        comes near: there are 1,440 times of day, which come round again in the order in which
        they were given, and a calendar has so many days (CALENDAR_DAYS).

        Args:
            field: what the value is for.
            at: now, ISO 8601 to the minute; dates are counted from this day.
        """
        match field.kind:
            case "date":
                now = date.fromisoformat(at[:10]).toordinal()
                day = self._any("date", now + field.low, now + field.high)
                self._remember_day(day)
                return f"date:{date.fromordinal(day).isoformat()}"
            case "time":
                hour, minute = divmod(self._time(field), 60)
                return f"time:{hour:02d}:{minute:02d}"
            case "money":
                return f"money:{field.unit} {self._number(f'money {field.unit}', field)}"
            case "measure":
                return f"measure:{self._number(f'measure {field.unit}', field)} {field.unit}"
            case "count":
                return f"count:{self._number('count', field)}"
            case "code":
                return self._code()
            case "name" | "text":
                return f"{field.kind}:{self._words_of(field.kind, field.pool)}"

    def claim(self, literal: str) -> bool:
        """Reserve a literal that was made elsewhere; False if it is taken."""
        kind, _, payload = literal.partition(":")
        if kind in ("name", "text", "code"):
            if literal in self._words:
                return False
            self._words.add(literal)
            return True
        line, number = _place(kind, payload)
        free = self._line(line).claim(number)
        if free and kind == "time":
            self._times.append(number)
        if free and kind == "date":
            self._remember_day(number)
        return free

    def _remember_day(self, day: int) -> None:
        """Keep the calendar from filling up: of the days given long ago, let go."""
        self._days.append(day)
        if len(self._days) >= CALENDAR_DAYS:
            del self._days[: CALENDAR_DAYS // 2]
            self._lines["date"] = calendar = _Line()
            for recent in self._days:
                calendar.claim(recent)

    def _line(self, name: str) -> _Line:
        line = self._lines.get(name)
        if line is None:
            line = self._lines[name] = _Line()
        return line

    def _words_of(self, kind: str, pool: str) -> str:
        return self._fresh(
            lambda middles: self._phrase(pool, middles),
            lambda phrase: self.claim(f"{kind}:{phrase}"),
        )

    def _number(self, name: str, field: Field) -> int:
        """A round number if one is free, otherwise any within the bounds, or beyond."""
        line, dice = self._line(name), self._dice
        step = _round_step(field.high - field.low)
        for _ in range(TRIES):
            number = -(-dice.between(field.low, field.high) // step) * step
            if number <= field.high and line.claim(number):
                return number
        return self._any(name, field.low, field.high)

    def _any(self, name: str, low: int, high: int) -> int:
        return self._line(name).take(self._dice.between(low, high), low, high)

    def _time(self, field: Field) -> int:
        line = self._line("time")
        if len(self._times) < DAY_MINUTES:
            for _ in range(TRIES):
                minute = self._dice.between(field.low // 15, field.high // 15) * 15
                if line.claim(minute):
                    self._times.append(minute)
                    return minute
            minute = self._any("time", field.low, field.high)
            if minute >= DAY_MINUTES:
                minute = line.take(0, 0, DAY_MINUTES)
            self._times.append(minute)
            return minute
        minute = self._times[self._laps % DAY_MINUTES]
        self._laps += 1
        return minute

    def _code(self) -> str:
        dice = self._dice
        while True:
            letters = dice.pick(CODE_LETTERS) + dice.pick(CODE_LETTERS)
            literal = f"code:{letters}-{dice.between(1000, 9999)}"
            if self.claim(literal):
                return literal


def _place(kind: str, payload: str) -> tuple[str, int]:
    """The number line of a literal and the place on it."""
    if kind == "date":
        return "date", date.fromisoformat(payload).toordinal()
    if kind == "time":
        hour, minute = payload.split(":")
        return "time", int(hour) * 60 + int(minute)
    if kind == "money":
        currency, amount = payload.split(" ")
        return f"money {currency}", int(amount)
    if kind == "measure":
        amount, unit = payload.split(" ")
        return f"measure {unit}", int(amount)
    return "count", int(payload)


def _round_step(span: int) -> int:
    """The roundness of numbers out of a span: at least a hundred of them are to be had."""
    step = 1
    while span // (step * 10) >= 100:
        step *= 10
    return step


@cache
def _last_words() -> dict[str, str]:
    """Final words of topics, each with the pool that it belongs to."""
    kinds = ("person", "service", "project", "trip", "house")
    return {word.split(" ")[-1]: kind for kind in kinds for word in pools()[kind].last}


def _kind_of_topic(topic: str) -> str:
    """The pool from which a topic seems to be made; empty when there is none."""
    known = _last_words()
    return known.get(topic.split(" ")[-1]) or known.get(topic.split("-")[-1]) or ""


def _same_start(topic: str, join: str, other: str) -> str:
    """The first word of `topic` with all but the first word of `other`."""
    return topic.split(join, 1)[0] + join + other.split(join, 1)[1]
