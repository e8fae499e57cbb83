"""What a served text claims: found by the sentence it repeats, or by the values that it names.

The catalogue knows every sentence of the script that has been said so far and how it was meant,
and every value with the unit that it was written to. Values are unique, so a value that turns
up in a text of the system's own making still names the write it came from (Elle's trick).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Literal

from steeltrap.harness import values
from steeltrap.harness.memory import Item
from steeltrap.harness.script import Header, Op, Turn, field_of, tenant_of, topic_of

__all__ = ["Catalogue", "Claim"]

Meaning = Literal["states", "withdraws", "past", "echo", "rumour", "injected", "rule"]

_WORD = re.compile(r"\w+(?:['’.-]\w+)*")
_SENTENCE_END = re.compile(r"\n+|(?<=[.!?。])\s+")
_MEANING: dict[str, Meaning] = {
    "retract": "withdraws",
    "echo": "echo",
    "rumour": "rumour",
    "instruct": "injected",
    "depend": "rule",
}


@dataclass(frozen=True, slots=True)
class Claim:
    """One thing that an item says about one unit."""

    unit: str
    value: str | None
    meaning: Meaning
    """states: holds it for true; past: says that it held once; the rest as the sentence was meant."""
    at: str | None = None
    """Since when, by the system's own account."""
    closed: str | None = None
    """Until when, by the system's own mark."""
    until: str | None = None
    """Until when, by the sentence itself."""
    review: bool = False
    target: str | None = None
    """rule: the dependent unit."""
    disowns: str | None = None
    """The value that a correction declared to have never been true."""

    def open_at(self, at: str) -> bool:
        """Whether the item holds this for true at an instant."""
        return (
            self.meaning in ("states", "withdraws")
            and (self.closed is None or self.closed > at)
            and (self.until is None or self.until > at)
        )


class Phrases:
    """Finds known phrases in a text, longest first, without overlaps."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, ...], list[str]] = {}
        self._starts: dict[str, int] = {}

    def add(self, phrase: str, meaning: str) -> None:
        """Know a phrase; the same phrase may mean several things."""
        words = tuple(_words(phrase))
        if not words:
            return
        meanings = self._known.setdefault(words, [])
        if meaning not in meanings:
            meanings.append(meaning)
        self._starts[words[0]] = max(self._starts.get(words[0], 0), len(words))

    def find(self, words: list[str], spans: list[tuple[int, int]]) -> Iterator[tuple[list[str], int, int]]:  # fmt: skip
        """Each phrase found: its meanings and where it stands in the text."""
        place = 0
        while place < len(words):
            longest = self._starts.get(words[place], 0)
            for length in range(min(longest, len(words) - place), 0, -1):
                meanings = self._known.get(tuple(words[place : place + length]))
                if meanings:
                    yield meanings, spans[place][0], spans[place + length - 1][1]
                    place += length - 1
                    break
            place += 1


def _words(text: str) -> list[str]:
    return [match.group().casefold() for match in _WORD.finditer(text)]


class Catalogue:
    """Everything said so far, and what it meant.

    Args:
        header: for the other names of fields.
    """

    def __init__(self, header: Header) -> None:
        self._said: dict[str, tuple[Claim, ...]] = {}
        self._turns: dict[str, tuple[str, tuple[Claim, ...]]] = {}
        self._mentions: dict[tuple[str, str], set[str]] = {}
        self._writers: dict[str, list[str]] = {}
        self._order: dict[tuple[str, str], int] = {}
        self._kinds: dict[str, str] = {}
        self._yearless: dict[str, str] = {}
        self._topics = Phrases()
        self._fields = Phrases()
        self._named_values = Phrases()
        self._units_of: dict[tuple[str, str], list[str]] = {}
        self._labels = header.words

    # ------------------------------------------------------------ learning

    def hear(self, turn: Turn, before: dict[str, str | None]) -> None:
        """Learn a turn: its text, its meaning, and the values it names.

        Args:
            turn: the turn.
            before: unit -> the value that held before the turn.
        """
        claims = tuple(self._meant(op, before) for op in turn.ops if op.unit and op.op not in ("noise", "associate"))  # fmt: skip
        text = _folded(turn.text)
        self._said[text] = claims
        self._turns[turn.id] = text, claims
        for op in turn.ops:
            if op.unit and op.value:
                self.know(op.unit, op.value, turn.id)
            elif op.op == "depend" and op.target:
                self.mention(turn.id, op.target)

    def mention(self, turn: str, unit: str) -> None:
        """Know that a turn speaks of a unit without naming a value (a rule)."""
        self._mentions.setdefault((turn, unit), set())

    def know(self, unit: str, value: str, turn: str | None = None) -> None:
        """Know that a value belongs to a unit; derived values come without a turn."""
        units = self._writers.setdefault(value, [])
        if unit not in units:
            units.append(unit)
            if value.startswith(("name:", "text:", "code:")):
                self._named_values.add(values.payload_of(value), value)
        self._order[unit, value] = len(self._order)
        self._kinds[unit] = value.split(":", 1)[0]
        if value.startswith("date:"):
            self._yearless["date:*" + value[-6:]] = value
        if turn:
            self._mentions.setdefault((turn, unit), set()).add(value)
        topic, field = topic_of(unit), field_of(unit)
        if (topic, field) not in self._units_of:
            self._topics.add(topic, topic)
            for label in (field, *self._labels.get(field, ())):
                self._fields.add(label, field)
        of_topic = self._units_of.setdefault((topic, field), [])
        if unit not in of_topic:
            of_topic.append(unit)

    def speaks_of(self, turn: str, unit: str, value: str | None) -> bool:
        """Whether a turn named this value of this unit, or a rule for it."""
        said = self._mentions.get((turn, unit))
        return said is not None and (not said or value is None or value in said)

    def owners(self, value: str) -> list[str]:
        """The units to which a value was written, said or derived."""
        return self._writers.get(value, [])

    def _meant(self, op: Op, before: dict[str, str | None]) -> Claim:
        assert op.unit is not None
        meaning: Meaning = "past" if op.valid_at else _MEANING.get(op.op, "states")
        value = None if op.op in ("retract", "depend") else op.value
        disowns = before.get(op.unit) if op.op == "correct" else None
        return Claim(
            op.unit,
            value,
            meaning,
            at=op.valid_at,
            until=op.until,
            target=op.target,
            disowns=disowns,
        )

    # ------------------------------------------------------------ reading

    def claims(self, item: Item, tenant: str) -> tuple[Claim, ...]:
        """What an item claims.

        Args:
            item: as it was served or listed.
            tenant: who asked; decides between units of the same name.
        """
        found = self._repeated(item)
        if found is None:
            found = tuple(self._named(item.text, tenant))
        if not found:
            return ()
        return tuple(
            replace(
                claim,
                at=claim.at if claim.meaning == "past" and item.valid_from else item.valid_from,
                closed=item.valid_to,
                review=item.review,
            )
            for claim in found
        )

    def _repeated(self, item: Item) -> tuple[Claim, ...] | None:
        """The claims of the script's own sentences, if the text is made of nothing else."""
        text, folded = item.text, _folded(item.text)
        if item.sources and len(item.sources) == 1:
            # Two turns may read alike ("no change there"): the source says which one it is.
            said, claims = self._turns.get(item.sources[0], ("", ()))
            if said == folded:
                return claims
        whole = self._said.get(folded)
        if whole is not None:
            return whole
        if "\n" not in text and ": " not in text and "] " not in text:
            return None
        found: list[Claim] = []
        for line in text.split("\n"):
            if not line.strip():
                continue
            known = self._line(line)
            if known is None:
                return None
            found += known
        return tuple(found)

    def _line(self, line: str) -> tuple[Claim, ...] | None:
        """One line of a transcript, with or without a stamp and a speaker before it."""
        unstamped = line.split("] ", 1)[-1]
        for said in (line, unstamped, line.split(": ", 1)[-1], unstamped.split(": ", 1)[-1]):
            known = self._said.get(_folded(said))
            if known is not None:
                return known
        return None

    def _named(self, text: str, tenant: str) -> Iterator[Claim]:
        """Claims of a text of the system's own making, sentence by sentence."""
        for sentence in _SENTENCE_END.split(text):
            if sentence.strip():
                yield from self._sentence(sentence, tenant)

    def _sentence(self, sentence: str, tenant: str) -> Iterator[Claim]:
        matches = list(_WORD.finditer(sentence))
        words = [match.group().casefold() for match in matches]
        spans = [match.span() for match in matches]
        topics = list(self._topics.find(words, spans))
        fields = list(self._fields.find(words, spans))
        taken = [(start, end) for _, start, end in (*topics, *fields)]
        topic_names = [name for names, _, _ in topics for name in names]
        field_names = [name for names, _, _ in fields for name in names]
        claimed: dict[str, str] = {}
        for value in self._values(sentence, words, spans, taken):
            for unit in self._meant_unit(value, topic_names, field_names, tenant):
                known = claimed.get(unit)
                # Several values of one unit in one sentence tell of a change: the newest counts.
                if known is None or self._age(unit, value) > self._age(unit, known):
                    claimed[unit] = value
        for unit, value in claimed.items():
            yield Claim(unit, value, "states")

    def _age(self, unit: str, value: str) -> int:
        return self._order.get((unit, value), len(self._order))

    def _values(
        self, sentence: str, words: list[str], spans: list[tuple[int, int]], taken: list[tuple[int, int]]
    ) -> Iterator[str]:  # fmt: skip
        """Every value that a sentence names, outside the names of topics and fields."""
        for meanings, start, end in self._named_values.find(words, spans):
            if not _overlaps(start, end, taken):
                taken.append((start, end))
                yield from meanings
        for mention in values.find(sentence):
            if not _overlaps(mention.start, mention.end, taken):
                yield self._with_year(mention.literal)

    def _with_year(self, value: str) -> str:
        if not value.startswith("date:*"):
            return value
        return self._yearless.get(value, value)

    def _meant_unit(
        self, value: str, topics: list[str], fields: list[str], tenant: str
    ) -> Iterable[str]:
        """The units that a value is claimed of, by the value's own history and by the words."""
        owners = self._writers.get(value, [])
        if not topics:
            return _prefer([o for o in owners if not fields or field_of(o) in fields], tenant)
        named = [o for o in owners if topic_of(o) in topics]
        exact = [o for o in named if field_of(o) in fields]
        if named:
            return _prefer(exact or named, tenant)
        kind = value.split(":", 1)[0]
        spoken_of = [
            unit
            for topic in topics
            for field in fields
            for unit in self._units_of.get((topic, field), ())
            if self._kinds.get(unit) == kind
        ]
        return _prefer(spoken_of, tenant)


def _prefer(units: list[str], tenant: str) -> list[str]:
    """Those of the asking tenant if there are any, otherwise all."""
    own = [unit for unit in units if tenant_of(unit) == tenant]
    return own or units


def _overlaps(start: int, end: int, taken: list[tuple[int, int]]) -> bool:
    return any(start < until and since < end for since, until in taken)


def _folded(text: str) -> str:
    return " ".join(text.split())
