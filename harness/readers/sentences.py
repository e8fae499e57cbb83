"""Reads sentences of a system's own making by the names and values in them.

Values are unique, so a value that turns up in somebody's words still names the write it came
from (Elle's trick); topic and field decide where it could be several, and find a value that
nobody ever wrote. Where one sentence holds several values of a unit it tells of a change: the
one it changed *to* holds, or else the one that was written last.
"""

from __future__ import annotations

import re
import sys
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import msgspec

from steeltrap.harness import values
from steeltrap.harness.readers import cues
from steeltrap.harness.readers.claim import Stated
from steeltrap.harness.readers.phrases import Phrases, Words
from steeltrap.harness.script import field_of, tenant_of, topic_of
from steeltrap.harness.shelf import Attic, Pile, Shelf

__all__ = ["Gazetteer", "Said", "Use"]

_SENTENCE_END = re.compile(r"(\n+)|(?<=[.!?。])\s+|;\s+")


_Mention = tuple[list[str], int, int]
"""What a phrase may mean, and where it begins and ends."""


@dataclass(frozen=True, slots=True)
class Said:
    """A value that a sentence gives a unit, and how."""

    unit: str
    value: str
    how: cues.How
    """review: said to be waiting for re-evaluation; past: held once; before: held before the
    value that the same sentence states; echo: mentioned and not believed."""


@dataclass(frozen=True, slots=True)
class _Scene:
    """What a sentence names, and who asked."""

    topics: list[_Mention]
    context: list[str]
    """Topics of this sentence, or else of the last one above it that names any."""
    fields: list[_Mention]
    tenant: str
    stamps: Sequence[str]

    def closest(self, units: list[str], place: int) -> list[str]:
        """Of some units those whose field, then topic, is named closest to a place; the asker's first."""
        if self.fields:
            units = _nearest(units, self.fields, field_of, place)
        if len(units) > 1:
            units = _nearest(units, self.topics, topic_of, place) or units
        return _prefer(units, self.tenant)


@dataclass(frozen=True, slots=True)
class _Found:
    value: str
    start: int


class Use(msgspec.Struct, gc=False):
    """What is known of one value of one unit."""

    written: int = 0
    """Which write it was that gave it last; 0: it was only mentioned."""
    turn: str = ""
    """The last turn that gave it; empty for a derived one."""
    stated_in: dict[str, None] = {}
    """Turns that may state it in plain words, as far as nobody has looked into them yet."""
    plainly: dict[str, Stated] = {}
    """What was found in them, by text."""


class Known(msgspec.Struct, gc=False):
    """What is known of a unit."""

    kind: str
    """Of its latest value."""
    uses: dict[str, Use]


class Gazetteer:
    """The topics, fields and values that have been spoken of.

    The phrases are collected when the first text has to be read by them.

    Args:
        labels: other names of fields.
        attic: where what is not needed often lies.
    """

    def __init__(self, labels: dict[str, list[str]], attic: Attic) -> None:
        self._labels = labels
        self.units: Shelf[str, Known] = Shelf(attic, Known)
        self._owners: Pile[str] = Pile(attic, str)
        """Value -> its units."""
        self._namesakes: Pile[str] = Pile(attic, str)
        """`topic/field` -> units, of several tenants."""
        self.fields: set[str] = set()
        """The names of fields: a vocabulary, that does not grow for long."""
        self._writes = 0
        self._reading = False
        self._yearless: dict[str, dict[str, None]] = {}
        """Date without its year -> those dates, the one last heard of some unit last."""
        self._topics, self._fields = Phrases(attic), Phrases(attic)
        self._names = Phrases(attic)

    def know(self, unit: str, value: str, *, news: bool) -> Use:
        """Know that a value belongs to a unit.

        Args:
            unit: the unit.
            value: the value.
            news: whether it became the unit's value now (a mention makes nothing newer).
        """
        known: Known | None = self.units.get(unit)
        if known is None:
            known = self.units[unit] = Known("", {})
            self._namesakes.add(unit.split("/", 1)[1], unit)
            self.fields.add(field_of(unit))
            if self._reading:
                self._learn_unit(unit)
        use = known.uses.get(value)
        if use is None:
            use = known.uses[value] = Use()
            self._owners.add(value, unit)
            if self._reading:
                self._learn_value(value)
        if news:
            self._writes += 1
            use.written = self._writes
        known.kind = value.split(":", 1)[0]
        return use

    def owners(self, value: str) -> list[str]:
        """The units to which a value was written, said or derived."""
        return self._owners.get(value)

    def namesakes(self, topic: str, field: str) -> list[str]:
        """The units of a topic and a field, of all tenants."""
        return self._namesakes.get(f"{topic}/{field}")

    def use(self, unit: str, value: str) -> Use | None:
        """What is known of a value of a unit, if it is one."""
        known = self.units.get(unit)
        return known.uses.get(value) if known else None

    def _learn_unit(self, unit: str) -> None:
        topic, field = topic_of(unit), field_of(unit)
        self._topics.add(topic, topic)
        for label in (field, *self._labels.get(field, ())):
            self._fields.add(label, field)

    def _learn_value(self, value: str) -> None:
        if value.startswith(("name:", "text:", "code:")):
            self._names.add(values.payload_of(value), value)
        if value.startswith("date:"):
            years = self._yearless.setdefault("date:*" + value[-6:], {})
            years.pop(value, None)
            years[value] = None

    def _learn_to_read(self) -> None:
        """Collect the phrases of all that is known, in the order in which it was first spoken of."""
        self._reading = True
        for _, unit in self._namesakes.pairs():
            self._learn_unit(unit)
        for value, _ in self._owners.pairs():
            self._learn_value(value)

    def read(self, text: str, tenant: str, stamps: Sequence[str]) -> Iterator[Said]:
        """What a text says, sentence by sentence.

        A topic that a line names holds for the lines below it too, until they name another.

        Args:
            text: in the system's own words.
            tenant: who asked; decides between units of the same name.
            stamps: days of the item's own times, which are no values unless they are written so.
        """
        if not self._reading:
            self._learn_to_read()
        context: list[str] = []
        for sentence in _SENTENCE_END.split(text):
            if sentence and sentence.strip():
                words = Words(sentence)
                topics = list(self._topics.find(words))
                context = [name for names, _, _ in topics for name in names] or context
                yield from self._sentence(sentence, words, topics, context, tenant, stamps)

    def _sentence(
        self, sentence: str, words: Words, topics: list[_Mention],
        context: list[str], tenant: str, stamps: Sequence[str],
    ) -> Iterator[Said]:  # fmt: skip
        fields = list(self._fields.find(words))
        taken = [(start, end) for _, start, end in (*topics, *fields)]
        scene = _Scene(topics, context, fields, tenant, stamps)
        by_unit: dict[str, list[_Found]] = {}
        for value, start in self._values(sentence, words, taken):
            for unit, meant in self._meant(value, start, scene):
                by_unit.setdefault(unit, []).append(_Found(meant, start))
        bare = _blanked(sentence, taken)
        heads = sorted(start for _, start, _ in (*topics, *fields))
        places = sorted((f.start, unit) for unit, found in by_unit.items() for f in found)
        for unit, found in by_unit.items():
            stretch = _stretch(unit, found, places, heads)
            yield from self._claimed(bare, stretch, unit, found, stamps)

    def _claimed(
        self, sentence: str, stretch: tuple[int, int], unit: str, found: list[_Found],
        stamps: Sequence[str],
    ) -> Iterator[Said]:  # fmt: skip
        """What a sentence makes of the values that it gives one unit.

        Where it tells of a change, the value that it leads to holds, or else, of those that it
        does not take out, the one that was written last. Where it does not, they all hold.
        """
        known = [f for f in found if self.use(unit, f.value)] or found[:1]
        standing = [f for f in known if not cues.is_taken_out(sentence, f.start)] or known
        led_to = [f for f in standing if cues.is_led_to(sentence, f.start)]
        beside = _beside_each_other(sentence, known, stamps)
        told = led_to or len(standing) < len(known) or cues.tells_of_change(sentence, stretch)
        if len(beside) > 1 and not told:
            yield from (Said(unit, value, "states") for value in beside)
            return
        holds = led_to[-1] if led_to else max(standing, key=lambda f: self._age(unit, f))
        others = list(dict.fromkeys(f.value for f in known if f.value != holds.value))
        yield Said(unit, holds.value, "states" if others else cues.how(sentence, stretch, holds.start))  # fmt: skip
        for value in others:
            yield Said(unit, value, "before")

    def _age(self, unit: str, found: _Found) -> int:
        """When a value was last written to a unit; one that never was is older than all."""
        use = self.use(unit, found.value)
        return use.written if use else -1

    def _values(
        self, sentence: str, words: Words, taken: list[tuple[int, int]]
    ) -> Iterator[tuple[str, int]]:
        """Every value that a sentence names outside the names of topics and fields, with its place."""
        found = []
        for meanings, start, end in self._names.find(words):
            if not _overlaps(start, end, taken):
                taken.append((start, end))
                found += [(value, start) for value in meanings]
        for mention in values.find(sentence):
            if not _overlaps(mention.start, mention.end, taken):
                found.append((mention.literal, mention.start))
        yield from sorted(found, key=lambda pair: pair[1])

    def _meant(self, value: str, start: int, scene: _Scene) -> list[tuple[str, str]]:
        """The units that a value is claimed of, each with the value in full."""
        topics = scene.context
        for full in (*reversed(self._yearless.get(value, ())), value):
            owners = self._owners.get(full)
            named = [o for o in owners if not topics or topic_of(o) in topics]
            chosen = scene.closest(named, start)
            if full in scene.stamps:
                # Somebody else's value on the item's own day is no more than that day.
                chosen = [unit for unit in chosen if tenant_of(unit) == scene.tenant]
            if chosen:
                return [(unit, full) for unit in chosen]
        if any(values.matches(value, stamp) for stamp in scene.stamps):
            return []
        kind = value.split(":", 1)[0]
        spoken_of = [
            unit
            for topic in topics
            for names, _, _ in scene.fields
            for field in names
            for unit in self.namesakes(topic, field)
            if self.units[unit].kind == kind
        ]
        return [(unit, value) for unit in scene.closest(spoken_of, start)]


def _beside_each_other(sentence: str, known: list[_Found], stamps: Sequence[str]) -> list[str]:
    """The different values of a sentence, without the stamp in brackets at its beginning."""
    head = sentence.find("]") if sentence.lstrip().startswith("[") else -1
    return list(dict.fromkeys(f.value for f in known if f.value not in stamps and f.start > head))


def _blanked(sentence: str, taken: list[tuple[int, int]]) -> str:
    """A sentence without its names, which may hold words that are cues elsewhere."""
    parts, place = [], 0
    for start, end in sorted(taken):
        if start >= place:
            parts += [sentence[place:start], "#" * (end - start)]
            place = end
    return "".join(parts) + sentence[place:]


def _stretch(
    unit: str, found: list[_Found], places: list[tuple[int, str]], heads: list[int]
) -> tuple[int, int]:
    """The part of a sentence that speaks of one unit alone.

    It reaches from another unit's value before it to the next name that another's value follows.
    """
    first, last = found[0].start, found[-1].start
    others = [start for start, other in places if other != unit]
    before = bisect_left(others, first)
    low = others[before - 1] if before else 0
    after = bisect_right(others, last)
    if after == len(others):
        return low, sys.maxsize
    head = bisect_right(heads, last)
    return low, min(others[after], heads[head] if head < len(heads) else sys.maxsize)


def _nearest(
    units: list[str], mentions: list[_Mention], name_of: Callable[[str], str], place: int
) -> list[str]:
    """Of the units that a sentence names, those named closest before a place, or after it."""
    away: dict[str, int] = {}
    for names, start, end in mentions:
        distance = place - end if end <= place else start - place + 1000
        for name in names:
            away[name] = min(away.get(name, distance), distance)
    named = [unit for unit in units if name_of(unit) in away]
    least = min((away[name_of(unit)] for unit in named), default=0)
    return [unit for unit in named if away[name_of(unit)] == least]


def _prefer(units: list[str], tenant: str) -> list[str]:
    """Those of the asking tenant if there are any, otherwise all."""
    own = [unit for unit in units if tenant_of(unit) == tenant]
    return own or units


def _overlaps(start: int, end: int, taken: list[tuple[int, int]]) -> bool:
    return any(start < until and since < end for since, until in taken)
