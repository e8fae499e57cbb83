"""What the ideal model understands: every sentence of a script, and nothing that is not shown.

The mind is made from a script, so it never misreads. What it is given to read comes from a
system's own prompts. Its dials make it fail in named ways and by measured shares, so that the
part of a failure that is the model's can be told from the part that is the data model's. Every
draw depends on the seed and on the sentence alone: the order of calls, retries and resumed runs
change nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from steeltrap.harness import values
from steeltrap.harness.models import Asked, NotUnderstood
from steeltrap.harness.script import (
    REQUEST,
    Audit,
    Header,
    Op,
    Probe,
    Script,
    Turn,
    field_of,
    topic_of,
)
from steeltrap.harness.statements import Statement, stated

__all__ = ["Dials", "ScriptMind"]

CUT_CHARS: Final = 200
"""A text of which a system shows only the beginning is known by so many characters."""


class Dials(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How often the ideal model fails: shares from 0 to 1.

    Raises:
        ValueError: a share is not one.
    """

    missed: float = 0.0
    """Of the facts in utterances: not seen at all."""
    wrong_host: float = 0.0
    """Of the facts that give a field a value: put to another topic that the prompt shows."""
    overlooked: float = 0.0
    """Of the pairs of statements that contradict each other: not noticed."""
    invented: float = 0.0
    """Of the facts that give a field a value: beside them stands a value that nobody gave."""
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("missed", "wrong_host", "overlooked", "invented"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"model.{name}={getattr(self, name)}: write a share from 0 to 1")


class ScriptMind:
    """A `Mind` over one script.

    Args:
        script: with its ops; its truth is not looked at.
        dials: how often it fails; by default never.
    """

    def __init__(self, script: Script, dials: Dials | None = None) -> None:
        self.dials = dials or Dials()
        self._rank = _ranks(script.header)
        self._said: dict[str, list[Turn]] = {}
        self._begun: dict[str, str] = {}
        self._stored: dict[str, Statement] = {}
        self._asked: dict[str, Asked] = {}
        self._topics: dict[str, str] = {}
        self._given: dict[str, dict[str, None]] = {}
        self._had: dict[tuple[str, str], set[str]] = {}
        for step in script.steps:
            match step:
                case Turn():
                    self._hear(step)
                case Probe():
                    self._hear_question(step)
                case Audit():
                    place = topic_of(step.unit), field_of(step.unit)
                    self._asked[_folded(step.text)] = Asked((place,), "history")

    # ------------------------------------------------------------ learning the script

    def _hear(self, turn: Turn) -> None:
        text = _folded(turn.text)
        self._said.setdefault(text, []).append(turn)
        if len(text) > CUT_CHARS:
            self._begun[text[:CUT_CHARS]] = text
        found = [said for op in turn.ops if (said := stated(op, turn.at))]
        for said in found:
            for known in (said, said.untopical):
                self._stored[_folded(known.text)] = known
            for topic in filter(None, (said.topic, said.other_topic)):
                self._topics[topic] = topic.casefold()
        if len(found) == 1:
            self._stored[text] = found[0]
        for op in turn.ops:
            if op.value and op.unit:
                self._given.setdefault(values.kind_of(op.value), {})[op.value] = None
                self._had.setdefault((topic_of(op.unit), field_of(op.unit)), set()).add(op.value)

    def _hear_question(self, probe: Probe) -> None:
        units = probe.units or ((probe.unit,) if probe.unit else ())
        modes = {"previous": "previous", "as-of": "as-of"}
        if not units and probe.category != REQUEST:
            return
        asked = Asked(
            tuple((topic_of(unit), field_of(unit)) for unit in units),
            modes.get(probe.ask, "current"),  # type: ignore[arg-type]
            probe.of or "",
        )
        self._asked[_folded(probe.text)] = asked
        if probe.swap:
            place = topic_of(probe.swap.unit), field_of(probe.swap.unit)
            self._asked[_folded(probe.swap.text)] = msgspec.structs.replace(asked, places=(place,))

    # ------------------------------------------------------------ reading

    def facts(self, utterance: str, shown: str = "") -> Sequence[Statement]:
        """See `Mind`."""
        text = _folded(utterance)
        turns = self._said.get(text) or self._said.get(self._begun.get(text[:CUT_CHARS], ""))
        if turns is None:
            raise NotUnderstood(f"no turn of the script reads '{_short(utterance)}'")
        visible = f"{utterance}\n{shown}".casefold()
        found: list[Statement] = []
        turn = _meant(turns, visible)
        for op in turn.ops:
            found += self._understood(op, turn.at, text, visible)
        for said in found:
            self._stored.setdefault(_folded(said.text), said)
        return found

    def _understood(self, op: Op, at: str, text: str, visible: str) -> Iterator[Statement]:
        """What an op states, as far as the dials and what is visible allow."""
        said = stated(op, at)
        if said is None or self._fails("missed", text, said.text):
            return
        if said.topic.casefold() not in visible:
            said = said.untopical
        valued = said.sense in ("states", "past", "withdraws")
        if valued and said.topic and self._fails("wrong_host", text, said.text):
            said = self._misplaced(said, visible)
        yield said
        if said.sense == "states" and op.value and self._fails("invented", text, said.text):
            made_up = self._made_up(op.value, said)
            if not made_up:
                return
            yield msgspec.structs.replace(
                said, value=values.display(made_up), corrects=False, returned=""
            )

    def _misplaced(self, said: Statement, visible: str) -> Statement:
        """The same of another topic: one that is shown, or else any."""
        others = [topic for topic in self._topics if topic != said.topic]
        shown = [topic for topic in others if self._topics[topic] in visible]
        options = shown or others
        if not options:
            return said
        return msgspec.structs.replace(said, topic=options[self._draw("host", said.text) % len(options)])  # fmt: skip

    def _made_up(self, value: str, said: Statement) -> str:
        """A value of the same kind that nobody gives this field; empty where there is none."""
        kind, draw = values.kind_of(value), self._draw("value", said.text)
        given = self._given[kind]
        match kind:
            case "date":
                options = (values.shifted(value, 400 + (draw + n) % 1000) for n in range(1000))
            case "money" | "measure" | "count":
                options = (values.scaled(value, 1009 + (draw + n) % 800, 500) for n in range(800))
            case "code":
                head, _, digits = value.rpartition("-")
                numbers = (10 ** (len(digits) - 1) + (draw + n) % 90 for n in range(90))
                options = (f"{head}-{number}" for number in numbers)
            case _:
                given, others = {}, list(given)
                options = (others[(draw + n) % len(others)] for n in range(len(others)))
        had = self._had.get(said.about, set())
        return next((one for one in options if one not in given and one not in had), "")

    def read(self, text: str) -> Statement | None:
        """See `Mind`."""
        return self._stored.get(_folded(text))

    def asked(self, question: str) -> Asked:
        """See `Mind`."""
        asked = self._asked.get(_folded(question))
        if asked is None:
            raise NotUnderstood(f"no question of the script reads '{_short(question)}'")
        return asked

    # ------------------------------------------------------------ comparing

    def contradicts(self, new: Statement, old: Statement) -> bool:
        """See `Mind`."""
        news = new.sense in ("states", "withdraws") and old.sense in ("states", "withdraws")
        differ = (new.sense, new.value, new.until) != (old.sense, old.value, old.until)
        if not (news and differ and new.topic and new.about == old.about):
            return False
        if self._rank.get(new.said_by, 0) > self._rank.get(old.said_by, 0):
            return False
        return not self._fails("overlooked", new.text, old.text)

    def repeats(self, new: Statement, old: Statement) -> bool:
        """See `Mind`."""
        if _folded(new.text) == _folded(old.text):
            return True
        same = (new.about, new.value, new.until) == (old.about, old.value, old.until)
        return new.sense == old.sense == "states" and same and not new.returned

    # ------------------------------------------------------------ chance

    def _fails(self, dial: str, *what: str) -> bool:
        share: float = getattr(self.dials, dial)
        return share > 0 and self._draw(dial, *what) < share * 2**32

    def _draw(self, *what: str) -> int:
        """A number below 2**32, the same for the same seed and words."""
        name = "\0".join((str(self.dials.seed), *what)).encode()
        return int.from_bytes(hashlib.sha256(name).digest()[:4])


def _ranks(header: Header) -> dict[str, int]:
    """Whose word counts, 0 the most."""
    return {source: rank for rank, source in enumerate(header.authority)}


def _meant(turns: list[Turn], visible: str) -> Turn:
    """Of several turns that read alike, the one whose topics can be seen; otherwise the first."""
    for turn in turns:
        if all(topic_of(op.unit).casefold() in visible for op in turn.ops if op.unit):
            return turn
    return turns[0]


def _folded(text: str) -> str:
    return " ".join(text.split())


def _short(text: str) -> str:
    folded = _folded(text)
    return folded if len(folded) <= 120 else f"{folded[:120]}…"
