"""How the ideal model files a message: each statement a sentence, and old sentences kept true.

It works out nothing that follows from a rule: the rule is a sentence of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from steeltrap.adapters.a_mem.memory import Attributes, Changed, Evolution
from steeltrap.harness.models import Ask, Mind, Reply
from steeltrap.harness.statements import Statement

__all__ = ["answer"]


def answer(ask: Ask, mind: Mind) -> Reply | None:
    """Answer the prompts `note` and `evolution`."""
    prompt = ask.said("user")
    if ask.schema_name == "note" and prompt.startswith("Message:\n"):
        said = msgspec.json.decode(prompt.split("\n")[1])
        return _reply(_attributes(mind.facts(said["content"], prompt)))
    if ask.schema_name == "evolution" and prompt.startswith("New note:\n"):
        _, note, _, _, *near = prompt.split("\n")
        rows = [msgspec.json.decode(line) for line in near if line.startswith("{")]
        return _reply(_evolution(msgspec.json.decode(note)["content"], rows, prompt, mind))
    return None


def _reply(value: Any) -> Reply:
    return Reply(msgspec.json.encode(value).decode())


def _attributes(said: Iterable[Statement]) -> Attributes:
    """Topics, fields and values are keywords, fields are tags."""
    said = list(said)
    words = [word for one in said for word in (one.topic, one.other_topic, one.field, one.value)]
    tags = [one.field or "relation" for one in said]
    return Attributes(
        keywords=list(dict.fromkeys(filter(None, words))),
        context=[one.text for one in said],
        tags=list(dict.fromkeys(tags)) or ["small talk"],
    )


def _evolution(content: str, near: Sequence[dict[str, Any]], prompt: str, mind: Mind) -> Evolution:
    """A new note leads to those about a topic of its own; what it contradicts in them gives way."""
    news = mind.facts(content, prompt)
    links, changed = [], []
    for row in near:
        context = [(sentence, mind.read(sentence)) for sentence in row["context"]]
        olds = [old for _, old in context if old is not None]
        if any(_related(new, old) for new in news for old in olds):
            links.append(row["id"])
        now = list(dict.fromkeys(_current(text, old, news, mind) for text, old in context))
        if now != row["context"]:
            made = _attributes(filter(None, map(mind.read, now)))
            changed.append(Changed(made.keywords, now, made.tags, row["id"]))
    return Evolution(links, changed)


def _current(text: str, old: Statement | None, news: Sequence[Statement], mind: Mind) -> str:
    """A sentence as it reads now."""
    wrong = [new for new in news if old is not None and mind.contradicts(new, old)]
    return wrong[-1].text if wrong else text


def _related(new: Statement, old: Statement) -> bool:
    """Whether two statements have a topic in common."""
    topics = {new.topic, new.other_topic} & {old.topic, old.other_topic}
    return bool(topics - {""})
