"""What a served text claims: found by the sentence it repeats, or by the values that it names.

The catalogue knows every sentence of the script that has been said so far and how it was meant;
texts of a system's own making are read by the names and values in them (`sentences`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from steeltrap.harness.memory import Item
from steeltrap.harness.readers.sentences import Gazetteer, Said
from steeltrap.harness.script import Header, Op, Turn, tenant_of
from steeltrap.harness.statements import Statement, stated

__all__ = ["LONG_AGO", "Catalogue", "Claim"]

Meaning = Literal["states", "withdraws", "past", "echo", "rumour", "injected", "rule"]

LONG_AGO = "0000"
"""When a value held of which it is only known that another came after it."""
TURN_LINES = 12
"""Lines of a transcript that are tried as one turn."""
_NEWS = ("tell", "revise", "revert", "correct", "expire")
"""Ops that give a unit its present value."""
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


class Catalogue:
    """Everything said so far, and what it meant.

    Args:
        header: for the other names of fields.
    """

    def __init__(self, header: Header) -> None:
        self._said: dict[str, dict[str, tuple[Claim, ...]]] = {}
        """Sentence -> tenant that said it -> what it meant."""
        self._stated: dict[str, dict[str, Claim]] = {}
        self._turns: dict[str, tuple[str, tuple[Claim, ...], str]] = {}
        self._units_of_turn: dict[str, dict[str, None]] = {}
        self._written_by: dict[tuple[str, str], str] = {}
        self._names = Gazetteer(header.words)

    # ------------------------------------------------------------ learning

    def hear(self, turn: Turn, before: dict[str, str | None]) -> None:
        """Learn a turn: its text, its meaning, and the units and values it names.

        Args:
            turn: the turn.
            before: unit -> the value that held before the turn.
        """
        spoken = [op for op in turn.ops if op.unit and op.op not in ("noise", "associate")]
        claims = tuple(self._meant(op, before) for op in spoken)
        text = _folded(turn.text)
        heard = self._said.setdefault(text, {})
        heard.pop(turn.tenant, None)
        heard[turn.tenant] = claims
        for op, claim in zip(spoken, claims, strict=True):
            self._hear_plainly(op, claim, turn.at)
        self._turns[turn.id] = text, claims, turn.at
        units = self._units_of_turn.setdefault(turn.id, {})
        for op in spoken:
            assert op.unit is not None
            units |= dict.fromkeys(unit for unit in (op.unit, op.target) if unit)
            if op.value:
                news = op.op in _NEWS and not op.valid_at
                self._names.know(op.unit, op.value, news=news)
                if op.op in _NEWS:
                    self._written_by[op.unit, op.value] = turn.id

    def _hear_plainly(self, op: Op, claim: Claim, at: str) -> None:
        """Learn what an op states in plain words, with the topic and without; as an event, too."""
        said = stated(op, at)
        if said is None:
            return
        meant = {said: claim}
        if said.sense == "states":  # that it held when it was said is all that a diary tells
            event = Statement("past", said.topic, said.field, said.value, since=at)
            meant[event] = Claim(claim.unit, claim.value, "past", at=at)
        for one, claimed in meant.items():
            for text in (one.text, one.untopical.text):
                self._stated.setdefault(_folded(text), {})[claim.unit] = claimed

    def know(self, unit: str, value: str, turn: str = "") -> None:
        """Know that a value belongs to a unit because a rule gave it, after some turn."""
        self._names.know(unit, value, news=True)
        self._units_of_turn.setdefault(turn, {})[unit] = None

    def speaks_of(self, turn: str, unit: str) -> bool:
        """Whether a turn said anything of a unit, a rule included, or changed it by a rule."""
        return unit in self._units_of_turn.get(turn, ())

    def written_by(self, unit: str, value: str) -> str:
        """The last turn that gave a unit a value; empty for a derived one."""
        return self._written_by.get((unit, value), "")

    def owners(self, value: str) -> list[str]:
        """The units to which a value was written, said or derived."""
        return self._names.owners(value)

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
        claims = self._stated.get(_folded(text))
        if claims is None:
            return None
        own = tuple(claim for unit, claim in claims.items() if tenant_of(unit) == tenant)
        return own or tuple(claims.values())

    def _stamps(self, item: Item) -> list[str]:
        """The days and hours of an item's own times and of the turns it came from."""
        times = [item.valid_from, item.valid_to]
        times += [self._turns[turn][2] for turn in item.sources or () if turn in self._turns]
        return [stamp for at in times if at for stamp in (f"date:{at[:10]}", f"time:{at[11:16]}")]

    def _repeated(self, item: Item, tenant: str) -> tuple[Claim, ...] | None:
        """The claims of the script's own sentences, if the text is made of nothing else."""
        text, folded = item.text, _folded(item.text)
        if item.sources and len(item.sources) == 1:
            # Two turns may read alike ("no change there"): the source says which one it is.
            said, claims, _ = self._turns.get(item.sources[0], ("", (), ""))
            if said == folded:
                return claims
        whole = self._whole(folded, tenant)
        if whole is not None:
            return whole
        if "\n" not in text and ": " not in text and "] " not in text:
            return None
        return self._transcript([line for line in text.split("\n") if line.strip()], tenant)

    def _whole(self, folded: str, tenant: str) -> tuple[Claim, ...] | None:
        """What a sentence meant: to the tenant who asks, or else to whoever said it last."""
        said = self._said.get(folded)
        return said.get(tenant, next(reversed(said.values()))) if said else None

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


def _folded(text: str) -> str:
    return " ".join(text.split())
