"""How the ideal model extracts, manages and distils.

It works out nothing that follows from a rule: a rule is a memory of its own, and of use for
questions about what follows from it, with what it follows from.
"""

from __future__ import annotations

import re
from typing import Final

import msgspec

from steeltrap.adapters.memory_r1.policy import CHOICE, FACTS, OPERATION, Operation
from steeltrap.adapters.placing import placed
from steeltrap.harness.models import Ask, Mind, NotUnderstood, Reply
from steeltrap.harness.statements import Statement

__all__ = ["answer"]

_MESSAGE: Final = re.compile(r"Message, a JSON object:\n(?P<last>[^\n]*)", re.DOTALL)
_LISTED: Final = r"Memories, one JSON object a line:\n(?P<rows>.*)\n\n"
_NEW: Final = re.compile(_LISTED + r"New fact, a JSON object:\n(?P<last>[^\n]*)", re.DOTALL)
_QUESTION: Final = re.compile(_LISTED + r"Question, a JSON string:\n(?P<last>[^\n]*)", re.DOTALL)
"""JSON has no line breaks, so that no memory can hold a heading."""


def answer(ask: Ask, mind: Mind) -> Reply | None:
    """Answer one of the three prompts, told apart by the form that they want."""
    user, content = ask.said("user"), None
    if ask.schema_name == FACTS and (said := _MESSAGE.match(user)):
        text = msgspec.json.decode(said["last"])["text"]
        content = {"facts": [fact.text for fact in mind.facts(text, user)]}
    elif ask.schema_name == OPERATION and (said := _NEW.match(user)):
        text = msgspec.json.decode(said["last"])["text"]
        content = msgspec.to_builtins(_operation(text, said["rows"], mind))
    elif ask.schema_name == CHOICE and (said := _QUESTION.match(user)):
        question = msgspec.json.decode(said["last"])
        content = {"useful": _useful(question, said["rows"], mind)}
    return Reply(text=msgspec.json.encode(content).decode()) if content else None


def _held(rows: str, mind: Mind) -> dict[str, Statement]:
    """What the listed memories state, by their ids."""
    lines = (msgspec.json.decode(row) for row in rows.split("\n") if row.startswith("{"))
    read = {line["id"]: mind.read(line["text"]) for line in lines}
    return {name: said for name, said in read.items() if said is not None}


def _operation(text: str, rows: str, mind: Mind) -> Operation:
    """One operation: of several memories that hold no longer, only the nearest can be dealt with."""
    new = mind.read(text)
    if new is None:
        raise NotUnderstood(f"no statement of the script reads '{text}'")
    over, kept = placed(new, _held(rows, mind), mind)
    if over:
        return Operation("UPDATE", over[0], text) if kept else Operation("DELETE", over[0], "")
    return Operation("ADD", "", text) if kept else Operation("NOOP", "", "")


def _useful(question: str, rows: str, mind: Mind) -> list[str]:
    """Memories about what is asked for, rules for it, and what those rules start from.

    One whose topic is not in its sentence may be about anything with such a field.
    """
    held, places = _held(rows, mind), list(mind.asked(question).places)
    if not places:
        return list(held)
    for topic, field in places:
        for said in held.values():
            source = said.other_topic, said.other_field
            if said.sense == "rule" and said.about == (topic, field) and source not in places:
                places.append(source)
    wanted = {*places, *(("", field) for _, field in places)}
    return [name for name, said in held.items() if said.about in wanted]
