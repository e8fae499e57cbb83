"""How an ideal model answers the prompts of mem0ai 1.x: of its vector memory and of its graph."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from itertools import count
from typing import Any, Final

from steeltrap.adapters.mem0.answers import as_json, unspoken
from steeltrap.harness.models import Ask, Mind, NotUnderstood, Reply, ToolCall
from steeltrap.harness.statements import Statement

__all__ = ["answer"]

_MEMORIES: Final = re.compile(r"in the following format only:\s+```\s+(\[[^\n]*\])\s+```")
_FACTS: Final = re.compile(
    r"mentioned in the triple backticks\.[^\n]*\s+```\s+(\[[^\n]*\])\s+```\s+You must return"
)
"""Both lists are written as Python writes them, on one line."""
_DELETIONS: Final = re.compile(
    r"Here are the existing memories: (?P<memories>.*) \n\n New Information: (?P<data>.*)",
    re.DOTALL,
)
_RELATIONS: Final = re.compile(r"List of entities: \[.*?\]\. \n\nText: (?P<data>.*)", re.DOTALL)


def answer(ask: Ask, mind: Mind) -> Reply | None:
    """Answer a prompt by what marks it: its first words, or the tool that it offers."""
    system, user = ask.said("system"), ask.said("user")
    offered = {tool.name for tool in ask.tools}
    if system.startswith("You are a Personal Information Organizer"):
        return _extracted(user, mind)
    if user.startswith("You are a smart memory manager"):
        return _updated(user, mind)
    if "extract_entities" in offered:
        return _entities(user, mind)
    if "establish_relationships" in offered and (asked := _RELATIONS.fullmatch(user)):
        return _relations(asked["data"], mind)
    if "delete_graph_memory" in offered and (asked := _DELETIONS.fullmatch(user)):
        return _deletions(asked["memories"], asked["data"], mind)
    return None


# ---------------------------------------------------------------- vector memory


def _extracted(prompt: str, mind: Mind) -> Reply:
    """The facts of a message; the prompt forbids to take any from an assistant's."""
    speaker, utterance = unspoken(prompt.removeprefix("Input:\n"))
    facts = mind.facts(utterance) if speaker == "user" else ()
    return as_json({"facts": [fact.text for fact in facts]})


class _Entry:
    """One old memory, and what becomes of it."""

    def __init__(self, name: str, text: str, said: Statement | None) -> None:
        self.name, self.text, self.said = name, text, said
        self.old, self.event = text, "NONE"

    def become(self, new: Statement) -> None:
        self.text, self.said, self.event = new.text, new, "UPDATE"

    def go(self) -> None:
        self.text, self.said, self.event = self.old, None, "DELETE"

    @property
    def row(self) -> dict[str, str]:
        row = {"id": self.name, "text": self.text, "event": self.event}
        return row | ({"old_memory": self.old} if self.event == "UPDATE" else {})


def _updated(prompt: str, mind: Mind) -> Reply | None:
    """What becomes of the old memories, and which new ones there are."""
    facts, shown = _FACTS.search(prompt), _MEMORIES.search(prompt)
    if facts is None:
        return None
    olds = ast.literal_eval(shown[1]) if shown else []
    entries = [_Entry(old["id"], old["text"], mind.read(old["text"])) for old in olds]
    numbers = count(len(entries))
    added = []
    for text in ast.literal_eval(facts[1]):
        new = mind.read(text)
        if new is None:
            raise NotUnderstood(f"no statement of the script reads '{text}'")
        if not _placed(new, entries, mind):
            added.append({"id": str(next(numbers)), "text": text, "event": "ADD"})
    return as_json({"memory": [*(entry.row for entry in entries), *added]})


def _placed(new: Statement, entries: list[_Entry], mind: Mind) -> bool:
    """Whether a fact finds its place in the old memories, so that nothing has to be added.

    A value takes the place of the one that it contradicts; a withdrawal takes it away. Further
    entries that are contradicted go too.
    """
    there = [entry for entry in entries if entry.said is not None]
    known = any(entry.said and mind.repeats(new, entry.said) for entry in there)
    wrong = [entry for entry in there if entry.said and mind.contradicts(new, entry.said)]
    if wrong and new.sense == "states" and not known:
        wrong.pop(0).become(new)
        known = True
    for entry in wrong:
        entry.go()
        known = True
    return known


# ---------------------------------------------------------------- graph


def _statements(data: str, mind: Mind) -> Sequence[Statement]:
    """What a turn, or a memory that is being deleted, states."""
    try:
        return mind.facts(data)
    except NotUnderstood:
        said = mind.read(data)
        if said is None:
            raise
        return (said,)


def _entities(data: str, mind: Mind) -> Reply:
    """Topics and values of a text; of a question the topics alone."""
    types: dict[str, str] = {}
    try:
        for said in _statements(data, mind):
            types |= dict.fromkeys(filter(None, (said.topic, said.other_topic)), "topic")
            types |= {target: types.get(target, "value") for _, _, target in _edges((said,))}
    except NotUnderstood:
        types = {topic: "topic" for topic, _ in mind.asked(data).places}
    entities = [{"entity": name, "entity_type": kind} for name, kind in types.items()]
    return _call("extract_entities", {"entities": entities})


def _relations(data: str, mind: Mind) -> Reply:
    rows = [
        {"source": source, "relationship": relationship, "destination": target}
        for source, relationship, target in _edges(_statements(data, mind))
    ]
    return _call("establish_relationships", {"entities": rows})


def _edges(statements: Sequence[Statement]) -> list[tuple[str, str, str]]:
    """Statements as relations of a graph: a field leads from its topic to its value.

    A withdrawal, and an end without a value, leave nothing to be drawn.
    """
    edges = []
    for said in statements:
        match said.sense:
            case "rule" if said.topic and said.other_topic:
                edges.append((said.topic, _rule_name(said), said.other_topic))
            case "relation":
                edges.append((said.topic, "is related to", said.other_topic))
            case _ if said.topic and said.value:
                edges.append((said.topic, _field_name(said), said.value))
    return edges


def _field_name(said: Statement) -> str:
    match said.sense:
        case "rumour":
            return f"unconfirmed {said.field}"
        case "past":
            return f"previously {said.field} from {said.since[:10]}"
        case _:
            return f"{said.field} until {said.until[:10]}" if said.until else said.field


def _rule_name(said: Statement) -> str:
    """`The deadline of Atlas is always the same as the kick-off of Birch.` without its topics."""
    words = said.text.rstrip(".").replace(f"of {said.topic}", "", 1)
    return " ".join(words.replace(f"of {said.other_topic}", "of", 1).split())


def _deletions(memories: str, data: str, mind: Mind) -> Reply:
    """Call the tool for each relation that the new information contradicts."""
    news = [new for new in _statements(data, mind) if new.topic]
    calls = []
    for line in memories.split("\n"):
        source, _, rest = line.partition(" -- ")
        relationship, _, target = rest.partition(" -- ")
        olds = [_old(new, source, relationship, target) for new in news]
        if any(old and mind.contradicts(new, old) for new, old in zip(news, olds, strict=True)):
            names = {"source": source, "relationship": relationship, "destination": target}
            calls.append(ToolCall("delete_graph_memory", names))
    return Reply(calls=tuple(calls), finish="tools" if calls else "stop")


def _old(new: Statement, source: str, relationship: str, target: str) -> Statement | None:
    """What a relation states, if it is about the same as a statement.

    The graph has names in small letters with underscores; a value that is the new one so written
    is the new one. Who said so is not in the graph, so it never stands in the way.
    """
    field, _, until = relationship.partition("_until_")
    if (source, field) != (_node(new.topic), _node(new.field)):
        return None
    value = new.value if target == _node(new.value) else target.replace("_", " ")
    end = new.until if until == new.until[:10] else until
    return Statement("states", new.topic, new.field, value, said_by=new.said_by, until=end)


def _node(name: str) -> str:
    return name.lower().replace(" ", "_")


def _call(tool: str, arguments: dict[str, Any]) -> Reply:
    return Reply(calls=(ToolCall(tool, arguments),), finish="tools")
