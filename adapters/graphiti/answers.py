"""How an ideal model answers the prompts of graphiti-core 0.31.2.

**How statements become edges.** An edge joins two entities. The prompts forbid entities that are
dates, numbers or bare nouns, ask for possessors where a noun alone would be ambiguous, and hang a
detail of one entity on a node of its own (`Entity -> HAS_ATTRIBUTE -> detail-entity`). So what is
said of a field becomes an edge from its topic to the node `deadline of Atlas`, whatever the value:
all edges about one field join the same two nodes. Only between such edges does Graphiti look for
duplicates, and it offers them first among the facts that a new one may contradict. A rule joins
the nodes of its two fields, a relation two topics. The speaker is the first entity of a message.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable
from datetime import datetime
from typing import Any, Final

import msgspec

from steeltrap.harness.models import Ask, Mind, NotUnderstood, Reply
from steeltrap.harness.statements import Statement

__all__ = ["answer"]

SUMMARY_CHARS: Final = 1000
"""The prompt's limit for a summary."""
CERTAIN, UNTHINKABLE = -0.0001, -9.2
"""Logarithms of the probabilities of a sure answer and of its opposite."""


def answer(ask: Ask, mind: Mind) -> Reply | None:
    """Answer one prompt; None where it is none of those below.

    Raises:
        NotUnderstood: it shows a sentence that the mind does not know.
    """
    instructions = ask.said("system")
    for schema, marker, give in STEPS:
        if ask.schema_name == schema and marker in instructions:
            given = give(ask.said("user"), mind)
            return given if isinstance(given, Reply) else Reply(msgspec.json.encode(given).decode())
    return None


# ---------------------------------------------------------------- extraction


def _entities(prompt: str, mind: Mind) -> dict[str, Any]:
    """The speaker, then the ends of every fact that the message states."""
    speaker, said = _message(prompt, mind, "CURRENT MESSAGE", "PREVIOUS MESSAGES")
    names = dict.fromkeys([speaker])
    for statement in said:
        source, _, target = _triple(statement, speaker)
        names |= dict.fromkeys((source, target))
    entities = [{"name": name, "entity_type_id": 0, "episode_indices": [0]} for name in names]
    return {"extracted_entities": entities}


def _edges(prompt: str, mind: Mind) -> dict[str, Any]:
    """One fact for each statement, with the times from which and to which it holds."""
    speaker, said = _message(prompt, mind, "CURRENT_MESSAGE", "PREVIOUS_MESSAGES")
    now = _section(prompt, "REFERENCE_TIME").partition("#")[0]
    edges = []
    for statement in said:
        source, relation, target = _triple(statement, speaker)
        edges.append({
            "source_entity_name": source, "target_entity_name": target, "relation_type": relation,
            "fact": statement.text, **_times(statement, now), "episode_indices": [0],
        })  # fmt: skip
    return {"edges": edges}


def _triple(said: Statement, speaker: str) -> tuple[str, str, str]:
    """Source, relation and target of a statement.

    A field whose topic nothing shows is the speaker's.
    """
    match said.sense:
        case "relation":
            return said.topic, "RELATED_TO", said.other_topic
        case "rule":
            other = _node(said.other_topic, said.other_field, speaker)
            return _node(said.topic, said.field, speaker), "FOLLOWS", other
        case _:
            relation = "HAS_" + re.sub(r"\W+", "_", said.field).strip("_").upper()
            return said.topic or speaker, relation, _node(said.topic, said.field, speaker)


def _node(topic: str, field: str, speaker: str) -> str:
    return f"{field} of {topic or speaker}"


def _times(said: Statement, now: str) -> dict[str, str | None]:
    """A statement about the present holds from when it is said on."""
    return {"valid_at": _iso(said.since or now), "invalid_at": _iso(said.until)}


def _iso(time: str) -> str | None:
    """A time as the prompts want it; all of them are in UTC."""
    if not time:
        return None
    return f"{datetime.fromisoformat(time.strip()).replace(tzinfo=None).isoformat()}Z"


def _timestamps(prompt: str, mind: Mind) -> dict[str, Any]:
    """The times of a fact that has none yet."""
    said = _known(_section(prompt, "FACT"), mind)
    return _times(said, _section(prompt, "REFERENCE TIME"))


# ---------------------------------------------------------------- resolution


def _resolutions(prompt: str, _: Mind) -> dict[str, Any]:
    """Entities are the same where they are called the same."""
    known: dict[str, dict[str, Any]] = {}
    for node in json.loads(_section(prompt, "EXISTING ENTITIES")):
        known.setdefault(node["name"].casefold(), node)
    resolutions = []
    for node in json.loads(_section(prompt, "ENTITIES")):
        same = known.get(node["name"].casefold(), {"name": node["name"], "candidate_id": -1})
        resolutions.append({
            "id": node["id"], "name": same["name"], "duplicate_candidate_id": same["candidate_id"],
        })  # fmt: skip
    return {"entity_resolutions": resolutions}


def _duplicates(prompt: str, mind: Mind) -> dict[str, Any]:
    """Which old facts a new one repeats, and which it puts out of force.

    Only facts between the same two entities may be repeated, and a fact that is repeated is not
    contradicted as well.
    """
    new = _known(_section(prompt, "NEW FACT"), mind)
    between = _facts(prompt, "EXISTING FACTS", mind)
    beside = _facts(prompt, "FACT INVALIDATION CANDIDATES", mind)
    repeated = [place for place, old in between if mind.repeats(new, old)]
    contradicted = [
        place
        for place, old in (*between, *beside)
        if place not in repeated and mind.contradicts(new, old)
    ]
    return {"duplicate_facts": repeated, "contradicted_facts": contradicted}


def _facts(prompt: str, name: str, mind: Mind) -> list[tuple[int, Statement]]:
    """The old facts of a list, by their numbers; words of anybody else are left alone."""
    listed = ast.literal_eval(_section(prompt, name))
    read = ((fact["idx"], mind.read(fact["fact"])) for fact in listed)
    return [(place, old) for place, old in read if old is not None]


def _known(fact: str, mind: Mind) -> Statement:
    said = mind.read(fact)
    if said is None:
        raise NotUnderstood(f"no statement reads '{fact[:120]}'")
    return said


# ---------------------------------------------------------------- summaries and ranks


def _summaries(prompt: str, mind: Mind) -> dict[str, Any]:
    """What is known of each entity and still in force, the latest first to be kept.

    Of an entity that no statement names, the speaker, what it said is told. Entities of which
    there is nothing to tell are skipped, as the prompt allows.
    """
    previous, message = _section(prompt, "MESSAGES").split("\n", 1)
    _, said = _heard(json.loads(message), previous, mind)
    summaries = []
    for entity in json.loads(_section(prompt, "ENTITIES")):
        name = entity["name"].casefold()
        named = [one.text for one in said if name in one.text.casefold()]
        lines = [line for line in (entity["summary"] or "").split("\n") if line]
        if told := lines + (named or ([] if lines else [one.text for one in said])):
            summaries.append({"name": entity["name"], "summary": _in_force(told, mind)})
    return {"summaries": summaries}


def _in_force(lines: list[str], mind: Mind) -> str:
    """The lines that no later one repeats or contradicts, as many of the latest as have room."""
    kept: list[str] = []
    newer: list[Statement] = []
    room = SUMMARY_CHARS
    for line in reversed(lines):
        old = mind.read(line)
        if old and any(mind.repeats(new, old) or mind.contradicts(new, old) for new in newer):
            continue
        room -= len(line) + 1
        if room < 0:
            break
        kept.insert(0, line)
        newer += [old] if old else []
    return "\n".join(kept)


def _relevance(prompt: str, mind: Mind) -> Reply:
    """True where the passage is about what the query asks for."""
    places = mind.asked(_section(prompt, "QUERY")).places
    said = mind.read(_section(prompt, "PASSAGE"))
    relevant = said is not None and said.about in places
    word, other = ("True", "False") if relevant else ("False", "True")
    return Reply(word, logprobs=({word: CERTAIN, other: UNTHINKABLE},))


# ---------------------------------------------------------------- reading prompts


def _message(prompt: str, mind: Mind, name: str, before: str) -> tuple[str, list[Statement]]:
    """Who speaks in the current message, and what the message states."""
    return _heard(_section(prompt, name), _section(prompt, before), mind)


def _heard(message: str, previous: str, mind: Mind) -> tuple[str, list[Statement]]:
    speaker, _, text = message.partition(": ")
    earlier = "\n".join(episode["content"] for episode in json.loads(previous))
    return speaker, list(mind.facts(text, shown=earlier))


def _section(prompt: str, name: str) -> str:
    """What stands between two tags; the last closing one counts, for a message may hold tags."""
    found = re.search(rf"<{name}>\n(.*)\n *</{name}>", prompt, re.DOTALL)
    if found is None:
        raise NotUnderstood(f"the prompt has no section '{name}'")
    return found[1].strip()


Step = tuple[str, str, Callable[[str, Mind], dict[str, Any] | Reply]]
STEPS: Final[tuple[Step, ...]] = (
    ("ExtractedEntities", "entity extraction specialist for conversational messages", _entities),
    ("NodeResolutions", "entity deduplication assistant", _resolutions),
    ("ExtractedEdges", "expert fact extractor that extracts fact triples", _edges),
    ("EdgeDuplicate", "fact deduplication assistant", _duplicates),
    ("EdgeTimestamps", "extract temporal bounds from facts", _timestamps),
    ("SummarizedEntities", "generates concise entity summaries", _summaries),
    ("", "determining whether the passage is relevant to the query", _relevance),
)
"""Schema of the answer, words of the system prompt, and who answers."""
