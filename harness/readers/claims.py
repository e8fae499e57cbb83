"""What a served text claims: found by the sentence it repeats, or by the values that it names.

The catalogue knows every sentence of the script that has been said so far and how it was meant;
texts of a system's own making are read by the names and values in them (`sentences`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from hashlib import blake2b
from typing import Final

import msgspec
from msgspec.structs import replace

from steeltrap.harness import values
from steeltrap.harness.memory import Item
from steeltrap.harness.readers.claim import LONG_AGO, Claim, Meaning, Stated
from steeltrap.harness.readers.sentences import Gazetteer, Said, Use
from steeltrap.harness.script import Header, Op, Turn, field_of, tenant_of
from steeltrap.harness.shelf import Attic, Pile, Shelf
from steeltrap.harness.statements import UNSET, Statement, places, stated

__all__ = ["LONG_AGO", "Catalogue", "Claim"]

TURN_LINES = 12
"""Lines of a transcript that are tried as one turn."""
_LONG: Final = 200
"""Characters from which on a text is looked up by its hash."""
_PER_TURN: Final = 1 << 12
"""More ops than any turn has."""
_NEWS = frozenset(("tell", "revise", "revert", "correct", "expire"))
"""Ops that give a unit its present value."""
_STATING = frozenset((*_NEWS, "restate", "rumour"))
"""Ops that say in words which value a unit has."""
_UNSPOKEN = frozenset(("noise", "associate"))
"""Ops that say nothing of a unit."""
_LEGIBLE: Final = re.compile(
    r"(?:name|text|code|time):\S+(?: \S+)*|date:[0-9]{4}-[0-9]{2}-[0-9]{2}"
    r"|count:(?:0|[1-9][0-9]*)|measure:(?:0|[1-9][0-9]*) \w+|money:\w+ (?:0|[1-9][0-9]*)"
)
"""Values that can be told from how they are spelled (`values.spelled`)."""
_MEANING: dict[str, Meaning] = {
    "retract": "withdraws",
    "echo": "echo",
    "rumour": "rumour",
    "instruct": "injected",
    "depend": "rule",
}


class _Heard(msgspec.Struct, array_like=True, gc=False):
    """A turn that was said."""

    number: int
    text: str
    """With single spaces."""
    at: str
    ops: list[Op]
    before: dict[str, str | None]
    """Unit -> the value that held before, at least of those that it corrects."""
    derived: tuple[str, ...] = ()
    """Units that it changed by a rule."""


class Catalogue:
    """Everything said so far, and what it meant.

    Hearing a turn keeps no more than where to find it. What it claims, and the plain words in which
    a system may say the same, are worked out for what is served.

    Args:
        header: for the other names of fields.
        attic: where what is not needed often lies; by default one of its own.
    """

    def __init__(self, header: Header, attic: Attic | None = None) -> None:
        attic = attic or Attic()
        self._turns: Shelf[str, _Heard] = Shelf(attic, _Heard)
        self._said: Shelf[str, dict[str, str]] = Shelf(attic, dict[str, str])
        """Sentence -> tenant that said it -> the last turn in which it did."""
        self._bare: Shelf[str, dict[str, Stated]] = Shelf(attic, dict[str, Stated])
        """Plain sentence of a rule, or with names that do not show in it -> unit -> what it claims."""
        self._withdrawn: Shelf[str, Use] = Shelf(attic, Use)
        """Unit -> turns that withdrew it."""
        self._withdrawn_of: Pile[str] = Pile(attic, str)
        """`topic/field`, and `/field`, -> units."""
        self._number = 0
        self._names = Gazetteer(header.words, attic)

    # ------------------------------------------------------------ learning

    def hear(self, turn: Turn, before: dict[str, str | None]) -> None:
        """Learn a turn: its text, its meaning, and the units and values it names.

        Args:
            turn: the turn.
            before: unit -> the value that held before the turn, of those that it corrects.
        """
        self._number += 1
        ops, text = turn.ops, _folded(turn.text)
        heard = self._said.get(key := _key(text))
        if heard is None:
            self._said[key] = {turn.tenant: turn.id}
        else:
            heard.pop(turn.tenant, None)
            heard[turn.tenant] = turn.id
        said = self._turns[turn.id] = _Heard(self._number, text, turn.at, ops, before)
        for n, op in enumerate(ops):
            if op.unit and op.op not in _UNSPOKEN:
                self._learn(op, op.unit, n, turn.id, said)

    def _learn(self, op: Op, unit: str, n: int, turn: str, said: _Heard) -> None:
        """Learn one op of a turn."""
        if value := op.value:
            new = op.op in _NEWS
            use = self._names.know(unit, value, news=new and not op.valid_at)
            if new:
                use.turn = turn
            if op.op in _STATING and _LEGIBLE.fullmatch(value) and _clear(unit):
                use.stated_in[turn] = None
                return
        if op.op == "retract" and _clear(unit):
            self._withdraw(unit, turn)
        elif op.op in _STATING or op.op in ("retract", "depend"):
            self._spell(op, unit, n, said)

    def _withdraw(self, unit: str, turn: str) -> None:
        """A turn says that nothing holds of a unit any more."""
        use = self._withdrawn.get(unit)
        if use is None:
            use = self._withdrawn[unit] = Use()
            self._withdrawn_of.add(unit.split("/", 1)[1], unit)
            self._withdrawn_of.add(f"/{field_of(unit)}", unit)
        use.stated_in[turn] = None

    def _spell(self, op: Op, unit: str, n: int, said: _Heard) -> None:
        """Note the plain words of what cannot be found by what stands in them."""
        number = said.number * _PER_TURN + n
        for one, claim in _plain(op, _meant(op, said), said.at):
            found = self._bare.get(key := _key(one))
            if found is None:
                found = self._bare[key] = {}
            _enter(found, unit, number, claim)

    def know(self, unit: str, value: str, turn: str = "") -> None:
        """Know that a value belongs to a unit because a rule gave it, after some turn."""
        self._names.know(unit, value, news=True)
        heard = self._turns.get(turn) if turn else None
        if heard is not None:
            heard.derived += (unit,)

    def speaks_of(self, turn: str, unit: str) -> bool:
        """Whether a turn said anything of a unit, a rule included, or changed it by a rule."""
        heard = self._turns.get(turn)
        if heard is None:
            return False
        spoken = (op for op in heard.ops if op.unit and op.op not in _UNSPOKEN)
        return unit in heard.derived or any(unit in (op.unit, op.target) for op in spoken)

    def written_by(self, unit: str, value: str) -> str:
        """The last turn that gave a unit a value; empty for a derived one."""
        use = self._names.use(unit, value)
        return use.turn if use else ""

    def owners(self, value: str) -> list[str]:
        """The units to which a value was written, said or derived."""
        return self._names.owners(value)

    # ------------------------------------------------------------ reading

    def claims(self, item: Item, tenant: str) -> tuple[Claim, ...]:
        """What an item claims.

        Args:
            item: as it was served or listed.
            tenant: who asked; decides between units of the same name.
        """
        found = self._repeated(item, tenant)
        if found is None:
            found = self._plainly(item.text, tenant)
        if found is None:
            said = self._names.read(item.text, tenant, self._stamps(item))
            found = tuple(_own_words(each) for each in said)
        if not found:
            return ()

        def dated(claim: Claim) -> bool:
            """Whether a time in the words can be held against others: a diary tells its own."""
            return claim.meaning == "past" or item.valid_from is not None

        return tuple(
            replace(
                claim,
                at=claim.at if claim.at and dated(claim) else item.valid_from,
                closed=item.valid_to,
                review=item.review or claim.review,
            )
            for claim in found
        )

    def _plainly(self, text: str, tenant: str) -> tuple[Claim, ...] | None:
        """The claims of a sentence that states in plain words what a turn stated."""
        folded = _folded(text)
        found = dict(self._bare.get(_key(folded), {}))
        for topic, field, words in places(folded):
            for unit, value, use in self._uses(topic, field, words):
                said = self._stated(unit, value, use).get(folded)
                if said is not None:
                    _enter(found, unit, said.last, said.claim, said.first)
        if not found:
            return None
        claims = {unit: found[unit].claim for unit in sorted(found, key=lambda u: found[u].first)}
        own = tuple(claim for unit, claim in claims.items() if tenant_of(unit) == tenant)
        return own or tuple(claims.values())

    def _uses(self, topic: str, field: str, words: str) -> Iterator[tuple[str, str | None, Use]]:
        """Everything that a sentence may state: unit, value, and the turns that do."""
        if words == UNSET:
            for unit in self._withdrawn_of.get(f"{topic}/{field}"):
                yield unit, None, self._withdrawn[unit]
        for value in values.spelled(words):
            for unit in self._named(topic, field, value):
                use = self._names.use(unit, value)
                if use is not None:
                    yield unit, value, use

    def _named(self, topic: str, field: str, value: str) -> list[str]:
        """The units of a topic and a field, or without a topic those of the field with a value."""
        if topic:
            return self._names.namesakes(topic, field)
        if field not in self._names.fields:
            return []
        return [unit for unit in self._names.owners(value) if field_of(unit) == field]

    def _stated(self, unit: str, value: str | None, use: Use) -> dict[str, Stated]:
        """The plain sentences that have given a unit a value so far, or with None withdrawn it."""
        for turn in use.stated_in:
            said = self._turns[turn]
            for n, op in enumerate(said.ops):
                meant = (
                    op.op == "retract" if value is None else op.op in _STATING and op.value == value
                )
                if meant and op.unit == unit:
                    for text, claim in _plain(op, _meant(op, said), said.at):
                        _enter(use.plainly, text, said.number * _PER_TURN + n, claim)
        use.stated_in.clear()
        return use.plainly

    def _stamps(self, item: Item) -> list[str]:
        """The days and hours of an item's own times and of the turns it came from."""
        times = [item.valid_from, item.valid_to]
        heard = (self._turns.get(turn) for turn in item.sources or ())
        times += [turn.at for turn in heard if turn is not None]
        return [stamp for at in times if at for stamp in (f"date:{at[:10]}", f"time:{at[11:16]}")]

    def _repeated(self, item: Item, tenant: str) -> tuple[Claim, ...] | None:
        """The claims of the script's own sentences, if the text is made of nothing else."""
        text, folded = item.text, _folded(item.text)
        if item.sources and len(item.sources) == 1:
            # Two turns may read alike ("no change there"): the source says which one it is.
            heard = self._turns.get(item.sources[0])
            if heard is not None and heard.text == folded:
                return _claims(heard)
        whole = self._whole(folded, tenant)
        if whole is not None:
            return whole
        if "\n" not in text and ": " not in text and "] " not in text:
            return None
        return self._transcript([line for line in text.split("\n") if line.strip()], tenant)

    def _whole(self, folded: str, tenant: str) -> tuple[Claim, ...] | None:
        """What a sentence meant: to the tenant who asks, or else to whoever said it last."""
        said = self._said.get(_key(folded))
        if said is None:
            return None
        turn = said.get(tenant) or next(reversed(said.values()))
        return _claims(self._turns[turn])

    def _transcript(self, lines: list[str], tenant: str) -> tuple[Claim, ...] | None:
        """The claims of lines that are nothing but turns, some of them over several lines."""
        found: list[Claim] = []
        place = 0
        while place < len(lines):
            for end in range(min(len(lines), place + TURN_LINES), place, -1):
                known = self._line("\n".join(lines[place:end]), tenant)
                if known is not None:
                    found += known
                    place = end
                    break
            else:
                return None
        return tuple(found)

    def _line(self, line: str, tenant: str) -> tuple[Claim, ...] | None:
        """One turn of a transcript, with or without a stamp and a speaker before it."""
        unstamped = line.split("] ", 1)[-1]
        for said in (line, unstamped, line.split(": ", 1)[-1], unstamped.split(": ", 1)[-1]):
            known = self._whole(_folded(said), tenant)
            if known is not None:
                return known
        return None


def _own_words(said: Said) -> Claim:
    """What a sentence of the system's own making claims."""
    match said.how:
        case "before" | "past":
            return Claim(said.unit, said.value, "past", at=LONG_AGO)
        case "echo":
            return Claim(said.unit, said.value, "echo")
        case how:
            return Claim(said.unit, said.value, "states", review=how == "review")


def _claims(heard: _Heard) -> tuple[Claim, ...]:
    """What a turn meant."""
    return tuple(_meant(op, heard) for op in heard.ops if op.unit and op.op not in _UNSPOKEN)


def _meant(op: Op, heard: _Heard) -> Claim:
    assert op.unit is not None
    return Claim(
        op.unit,
        None if op.op in ("retract", "depend") else op.value,
        "past" if op.valid_at else _MEANING.get(op.op, "states"),
        at=op.valid_at,
        until=op.until,
        target=op.target,
        disowns=heard.before.get(op.unit) if op.op == "correct" else None,
    )


def _plain(op: Op, claim: Claim, at: str) -> Iterator[tuple[str, Claim]]:
    """What an op states in plain words, with the topic and without; as an event, too."""
    said = stated(op, at)
    if said is None:
        return
    meant = {said: claim}
    if said.sense == "states":  # that it held when it was said is all that a diary tells
        event = Statement("past", said.topic, said.field, said.value, since=at)
        meant[event] = Claim(claim.unit, claim.value, "past", at=at)
    for one, claimed in meant.items():
        yield _folded(one.text), claimed
        yield _folded(one.untopical.text), claimed


def _enter(
    found: dict[str, Stated], key: str, number: int, claim: Claim, first: int | None = None
) -> None:
    """Enter what was stated under a number, and maybe before, as well."""
    there = found.get(key)
    if there is None:
        there = found[key] = Stated(number, number, claim)
    else:
        there.again(number, claim)
    there.first = min(there.first, number if first is None else first)


@lru_cache(1 << 12)
def _clear(unit: str) -> bool:
    """Whether a plain sentence shows which unit it speaks of."""
    return all(part and _folded(part) == part for part in unit.split("/", 2)[1:])


def _key(text: str) -> str:
    """Under which a text is looked up: a pasted page is not kept a second time."""
    return text if len(text) < _LONG else blake2b(text.encode(), digest_size=20).hexdigest()


def _folded(text: str) -> str:
    return " ".join(text.split())
