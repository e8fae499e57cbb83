"""How ideal managers answer: facts that hold, events for what was so from when on, the vital in core.

They work out nothing that follows from a rule: a rule is a fact of its own. Nothing that a script
states is a procedure, a document or a secret, so those managers are never called upon.
"""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec

from steeltrap.adapters.mirix.components import CORE
from steeltrap.adapters.mirix.memory import ROUTE
from steeltrap.adapters.placing import Placing, event, placed
from steeltrap.harness.models import Ask, Mind, Reply, ToolCall
from steeltrap.harness.statements import Statement

__all__ = ["answer"]

_MESSAGE: Final = re.compile(
    r"Memories:\n(?P<memories>.*)\n\nMessage, a JSON object:\n(?P<message>[^\n]*)", re.DOTALL
)
_PART: Final = re.compile(r"<(?P<name>\w+)_memory>\n(?P<rows>(?:\{[^\n]*\n)*)</\1_memory>")
_QUESTION: Final = re.compile(r"Question, a JSON string:\n(?P<question>[^\n]*)")
_BLOCK: Final = re.compile(r"Block to shorten, a JSON object:\n(?P<block>[^\n]*)")
"""JSON has no line breaks, so that no memory can hold a tag or a heading."""
_ROOM: Final = 0.9
"""A block that is filled beyond this share is taken from its manager and shortened."""


def answer(ask: Ask, mind: Mind) -> Reply | None:
    """Answer as the meta memory manager, as one of the managers, or say what a question is about."""
    user = ask.said("user")
    if asked := _QUESTION.match(user):
        return Reply(text=_topic(msgspec.json.decode(asked["question"]), mind))
    if full := _BLOCK.match(user):
        return Reply(text=_shortened(msgspec.json.decode(full["block"])))
    told = _MESSAGE.match(user)
    if told is None:
        return None
    managers = _Managers(told["memories"], mind)
    message = msgspec.json.decode(told["message"])
    for said in mind.facts(message["text"], user):
        managers.take(said, message["at"], message["role"])
    if ask.schema_name == ROUTE:
        route = {"components": list(dict.fromkeys(part for part, _ in managers.calls))}
        return Reply(text=msgspec.json.encode(route).decode())
    mine = {tool.name for tool in ask.tools}
    calls = tuple(call for _, call in managers.calls if call.name in mine)
    return Reply(calls=calls, finish="tools") if calls else Reply(text="Nothing has to change.")


def _topic(question: str, mind: Mind) -> str:
    """The places that a question is about; the question itself where it is about none."""
    places = mind.asked(question).places
    return ", ".join(f"the {field} of {topic}" for topic, field in places) or question


def _shortened(block: dict[str, Any]) -> str:
    """The latest lines that leave some room: plain sentences cannot be said in fewer words."""
    lines = list(dict.fromkeys(block["text"].split("\n")))
    while len(lines) > 1 and len("\n".join(lines)) > _ROOM * block["limit"]:
        lines.pop(0)
    return "\n".join(lines)


class _Managers:
    """The memories that a prompt shows, and the calls of all managers, each with its component.

    Each manager is asked by itself, and all are shown the same: so all of them come to the same.
    """

    def __init__(self, memories: str, mind: Mind) -> None:
        self._mind = mind
        parts = {
            part["name"]: [msgspec.json.decode(row) for row in part["rows"].splitlines()]
            for part in _PART.finditer(memories)
        }
        human = next(block for block in parts[CORE] if block["block"] == "human")
        self._core = [line for line in human["text"].split("\n") if line]
        self._room: float = _ROOM * human["limit"]
        self._facts = {row["id"]: row["summary"] for row in parts["semantic"]}
        self._events = {row["summary"] for row in parts["episodic"]}
        self.calls: list[tuple[str, ToolCall]] = []

    def take(self, new: Statement, at: str, role: str) -> None:
        """Have the managers store a statement, and end what it puts out of force."""
        if new.sense == "past":
            self._note(new, new.since, role)
            return
        over, kept = placed(new, self._held(), self._mind)
        news = new.sense == "states" and kept
        lines = [name for name in over if name in self._core]
        vital = kept and new.importance == "vital" and self._fits(new.text)
        if lines or vital:
            left = [line for line in self._core if line not in lines]
            self._rewrite([*left, new.text] if kept else left)
            kept = False
        self._change(new, Placing(tuple(name for name in over if name in self._facts), kept))
        if news:
            self._note(new, at, role)

    def _held(self) -> dict[str, Statement]:
        """What core and semantic memory state: lines of the one by their text, facts by their id."""
        texts = {**{line: line for line in self._core}, **self._facts}
        read = {name: self._mind.read(text) for name, text in texts.items()}
        return {name: said for name, said in read.items() if said is not None}

    def _change(self, new: Statement, placing: Placing) -> None:
        over, kept = placing
        fact = {
            "name": new.place if new.field else new.topic,
            "summary": new.text, "details": "", "source": new.said_by,
        }  # fmt: skip
        for name in over:
            if kept:
                self._call("semantic", "update", id=name, **fact)
                kept = False
            else:
                self._call("semantic", "delete", id=name)
            del self._facts[name]
        if kept:
            self._call("semantic", "insert", **fact)

    def _note(self, said: Statement, at: str, role: str) -> None:
        """Have an event inserted, once."""
        text = event(said, at)
        if text not in self._events:
            self._events.add(text)
            self._call(
                "episodic", "insert", event_type="message", actor=role, occurred_at=at,
                summary=text, details="",
            )  # fmt: skip

    def _fits(self, line: str) -> bool:
        return len("\n".join([*self._core, line])) <= self._room

    def _rewrite(self, lines: list[str]) -> None:
        self._core = lines
        self._call(CORE, "rewrite", block="human", text="\n".join(lines))

    def _call(self, component: str, deed: str, **given: str) -> None:
        self.calls.append((component, ToolCall(f"{component}_{deed}", given)))
