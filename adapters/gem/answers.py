"""How the ideal model answers the interpreter's two prompts.

It gives what a perfect reader would write: the statements of an utterance, with the topic and
field that the stored topics shown call for, and the places that a question asks for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from steeltrap.harness.models import Ask, Mind, Reply, ToolCall
from steeltrap.harness.statements import Statement
from steeltrap.reference_system import statements as gem
from steeltrap.reference_system.rules import Rule

__all__ = ["answer"]

NOWHERE = "user"
"""The topic of what nothing shows the topic of."""
UNNOTICED = "another {}"
"""The name of a field that was not noticed to be one that is there."""


def answer(ask: Ask, mind: Mind) -> Reply | None:
    """Answer the prompts `facts` and `question`, in either dialect."""
    name = ask.schema_name or ask.tool_choice
    shown, divider, last = ask.said("user").rpartition("\nUtterance:\n")
    if name == "statements" and divider:
        said = msgspec.json.decode(_first_line(last))
        found = mind.facts(said["text"], shown)
        stored = _stored(shown)
        content: dict[str, Any] = {"statements": list(_statements(found, stored, mind))}
    elif name == "question":
        shown, divider, last = ask.said("user").rpartition("\nQuestion:\n")
        if not divider:
            return None
        content = _question(msgspec.json.decode(_first_line(last)), mind)
    else:
        return None
    if ask.tools:
        return Reply(calls=(ToolCall(name, msgspec.to_builtins(content)),), finish="tools")
    return Reply(text=msgspec.json.encode(content).decode())


def _first_line(text: str) -> str:
    """What was said stands on one line; a second try has a complaint below it."""
    return text.strip().split("\n", 1)[0]


def _stored(shown: str) -> dict[str, set[str]]:
    """The fields of each stored topic that is shown."""
    lines = (line for line in shown.split("\n") if line.startswith("{"))
    return {topic["title"]: set(topic["fields"]) for topic in map(msgspec.json.decode, lines)}


def _question(text: str, mind: Mind) -> dict[str, Any]:
    asked = mind.asked(text)
    return {
        "places": [gem.Place(topic, field) for topic, field in asked.places],
        "mode": "topic" if asked.mode == "current" else "temporal",
        "as_of": asked.of or None,
        "recorded_by": None,
    }


def _statements(found: Any, stored: dict[str, set[str]], mind: Mind) -> Iterator[gem.Statement]:
    for said in found:
        make = _MAKE.get(said.sense)
        if make:
            yield make(_hosted(said, stored, mind))


def _hosted(said: Statement, stored: dict[str, set[str]], mind: Mind) -> Statement:
    """The statement with a host: an overlooked contradiction is a field not found in the schema."""
    there = said.field in stored.get(said.topic, ())
    held = msgspec.structs.replace(said, sense="states", value="what is on record")
    if there and said.sense in ("states", "withdraws") and not mind.contradicts(said, held):
        return msgspec.structs.replace(said, field=UNNOTICED.format(said.field))
    return msgspec.structs.replace(said, topic=said.topic or NOWHERE)


def _fact(said: Statement) -> gem.Fact:
    return gem.Fact(
        said.topic, said.field, said.value, said.said_by, valid_from=said.since or None,
        until=said.until or None, corrects=said.corrects,
        tags=() if said.importance == "normal" else (said.importance,),
    )  # fmt: skip


def _dependency(said: Statement) -> gem.Dependency:
    rule = said.rule
    return gem.Dependency(
        gem.Place(said.other_topic, said.other_field),
        gem.Place(said.topic, said.field),
        Rule(rule.kind, rule.days, rule.times, rule.over) if rule else None,
    )


_MAKE: dict[str, Callable[[Statement], gem.Statement]] = {
    "states": _fact,
    "past": _fact,
    "rumour": _fact,
    "withdraws": lambda said: gem.Withdrawal(said.topic, said.field, said.said_by),
    "rule": _dependency,
    "relation": lambda said: gem.Association(said.topic, said.other_topic),
}
"""What lapses has no form of its own: the value that holds until then is not shown."""
