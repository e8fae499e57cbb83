"""What a sentence of a script states, in the plainest words.

A perfect reader of a conversation would write these sentences down. The ideal model gives them to
the systems that it drives, and the oracle reader knows them by heart, so that what stands between
the two, the system's own data model, is all that is judged.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, Literal

import msgspec

from steeltrap.harness import values
from steeltrap.harness.script import Op, OpName, Rule, field_of, topic_of

__all__ = ["UNSET", "Sense", "Statement", "places", "stated"]

UNSET: Final = "no longer set"
"""What is said of a field whose value was withdrawn."""
Sense = Literal["states", "past", "withdraws", "lapses", "rumour", "rule", "relation"]
"""states: a value holds; past: it held from an earlier time on, and says nothing of the present;
withdraws: nothing holds; lapses: what holds now ends at `until`; rumour: somebody without
standing says so; rule: one field follows another; relation: two topics are related, and
independent."""


class Statement(msgspec.Struct, frozen=True, omit_defaults=True):
    """One thing that a sentence states. Echoes, noise and injected instructions state nothing."""

    sense: Sense
    topic: str
    """Empty where the sentence leaves it out and nothing shows which one is meant."""
    field: str = ""
    value: str = ""
    """In plain spelling (`values.display`); empty where the sense has none."""
    said_by: str = "owner"
    since: str = ""
    """ISO 8601: from when it held, where that is not when it was said."""
    until: str = ""
    """ISO 8601: from when it holds no longer."""
    returned: str = ""
    """ISO 8601: when an earlier value became the present one again. Said, because a sentence that
    reads like one from before tells nobody that anything changed."""
    corrects: bool = False
    """What was held before was never true."""
    importance: str = "normal"
    """vital, normal or trivial."""
    rule: Rule | None = None
    other_topic: str = ""
    """rule: the topic that is followed; relation: the other one."""
    other_field: str = ""
    """rule: the field that is followed."""

    @property
    def text(self) -> str:
        """The statement as one English sentence."""
        match self.sense:
            case "states":
                until = f" until {self.until.replace('T', ' ')}" if self.until else ""
                again = f" again since {self.returned.replace('T', ' ')}" if self.returned else ""
                said = f"{self.place} is {self.value}{again}{until}."
                return _sentence(f"correction: {said}" if self.corrects else said)
            case "past":
                return _sentence(
                    f"{self.place} was {self.value} as of {self.since.replace('T', ' ')}."
                )
            case "withdraws":
                return _sentence(f"{self.place} is {UNSET}.")
            case "lapses":
                return _sentence(
                    f"what {self.place} is now ends at {self.until.replace('T', ' ')}."
                )
            case "rumour":
                said_by = "hearsay" if self.said_by == "hearsay" else f"a {self.said_by}"
                return _sentence(f"unconfirmed, from {said_by}: {self.place} is {self.value}.")
            case "rule":
                return _sentence(_rule(self))
            case "relation":
                return f"{self.topic} and {self.other_topic} are related, and independent of each other."

    @property
    def place(self) -> str:
        """The field and its topic: `the deadline of Atlas`."""
        return _place(self.topic, self.field)

    @property
    def untopical(self) -> Statement:
        """The same as it reads where nothing shows which topic is meant."""
        return msgspec.structs.replace(self, topic="") if self.sense != "relation" else self

    @property
    def about(self) -> tuple[str, str]:
        """Topic and field; two statements about the same are about one thing."""
        return self.topic, self.field


_SENSES: dict[OpName, Sense] = {
    "tell": "states", "revise": "states", "revert": "states", "correct": "states",
    "restate": "states", "expire": "states", "retract": "withdraws", "rumour": "rumour",
    "depend": "rule", "associate": "relation",
}  # fmt: skip


def stated(op: Op, at: str) -> Statement | None:
    """What an op states that was said at a time (ISO 8601); None where it states nothing."""
    sense = _SENSES.get(op.op)
    if sense is None or op.unit is None:
        return None
    if op.op == "associate":
        return Statement("relation", topic_of(op.unit), other_topic=topic_of(op.target or ""))
    if op.op == "depend":
        return Statement(
            "rule", topic_of(op.target or ""), field_of(op.target or ""), rule=op.rule,
            other_topic=topic_of(op.unit), other_field=field_of(op.unit),
        )  # fmt: skip
    if op.valid_at and sense == "states":
        sense = "past"
    elif op.op == "expire" and op.value is None:
        sense = "lapses"
    return Statement(
        sense, topic_of(op.unit), field_of(op.unit), values.display(op.value) if op.value else "",
        said_by=op.source, since=op.valid_at or "", until=op.until or "",
        returned=at if op.op == "revert" and sense == "states" else "",
        corrects=op.op == "correct", importance=op.importance,
    )  # fmt: skip


_IS = re.compile(r" (?:is|was)(?= )")
_OF = re.compile(r" of(?= )")
_THE = re.compile(r"^The |: the ")
_END = re.compile(r" (?:again since|until|as of)(?= )|\.$")


def places(text: str) -> Iterator[tuple[str, str, str]]:
    """What a text may give a value to, if it is a statement: (topic, field, value as it is spelled).

    Every way to take the text apart is tried, since names may hold any words: what a true statement
    speaks of is among them. The topic is empty where it may have been left out.
    """
    heads = [match.end() for match in _THE.finditer(text)] if text.endswith(".") else []
    for verb in _IS.finditer(text) if heads else ():
        start = verb.end() + 1
        spelled = [text[start : end.start()] for end in _END.finditer(text, start)]
        for head in heads:
            named = text[head : verb.start()]
            ways = [("", named)] if named else []
            ways += [(named[of.end() + 1 :], named[: of.start()]) for of in _OF.finditer(named)]
            yield from ((topic, field, value) for topic, field in ways for value in spelled)


def _rule(said: Statement) -> str:
    source, target, rule = _place(said.other_topic, said.other_field), said.place, said.rule
    assert rule is not None
    match rule.kind:
        case "offset" if rule.days:
            days = f"{abs(rule.days)} day{'s' if abs(rule.days) != 1 else ''}"
            return f"{target} is always {days} {'after' if rule.days > 0 else 'before'} {source}."
        case "scaled":
            return f"{target} is always {rule.times}/{rule.over} of {source}, rounded to a whole number."
        case "review":
            return f"{target} has to be looked at whenever {source} changes."
        case _:
            return f"{target} is always the same as {source}."


def _place(topic: str, field: str) -> str:
    return f"the {field} of {topic}" if topic else f"the {field}"


def _sentence(words: str) -> str:
    return words[0].upper() + words[1:]
