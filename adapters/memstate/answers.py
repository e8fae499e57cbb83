"""How the ideal model files a message: each statement is the value of a field of its topic.

It works out nothing that follows from a rule: the rule is a field of its own.
"""

from __future__ import annotations

import msgspec

from steeltrap.adapters.memstate.memory import Fact, Placed
from steeltrap.harness.models import Ask, Mind, Reply
from steeltrap.harness.statements import Statement

__all__ = ["answer"]


def answer(ask: Ask, mind: Mind) -> Reply | None:
    """Answer the prompt `placing`."""
    prompt = ask.said("user")
    _, found, message = prompt.partition("\n\nMessage:\n")
    if ask.schema_name != "placing" or not found:
        return None
    said = msgspec.json.decode(message.split("\n")[0])["content"]
    placed = Placed([_fact(one) for one in mind.facts(said, prompt)])
    return Reply(msgspec.json.encode(placed).decode())


def _fact(said: Statement) -> Fact:
    return Fact(said.topic or "Unknown topic", _field(said), said.text, said.other_topic)


def _field(said: Statement) -> str:
    """What is no present value of a field stands beside it, so that it replaces none."""
    match said.sense:
        case "rumour":
            return f"{said.field} (unconfirmed)"
        case "past":
            return f"{said.field} (in the past)"
        case "rule":
            return f"{said.field} (follows)"
        case "relation":
            return f"relation to {said.other_topic}"
        case _:
            return said.field
