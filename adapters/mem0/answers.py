"""How an ideal model answers the prompts of mem0ai 2.x."""

from __future__ import annotations

import json
import re
from typing import Any, Final

from steeltrap.harness.models import Ask, Mind, Reply
from steeltrap.harness.statements import Statement

__all__ = ["answer", "as_json", "unspoken"]

_SECTIONS: Final = re.compile(
    r"\n\n## Existing Memories\n(?P<memories>\[[^\n]*\])"
    r"\n\n## New Messages\n(?P<message>.*)"
    r"\n\n## Observation Date\n",
    re.DOTALL,
)
"""The memories are one line of JSON, so nothing in them can be taken for a heading."""
_SPEAKER: Final = re.compile(r"(user|assistant|system): ")


def answer(ask: Ask, mind: Mind) -> Reply | None:
    """Answer the one prompt that adding a message makes: what to remember of it."""
    if "You are a Memory Extractor" not in ask.said("system"):
        return None
    prompt = ask.said("user")
    sections = _SECTIONS.search(prompt)
    if sections is None:
        return None
    speaker, utterance = unspoken(sections["message"])
    known = [
        (entry["id"], old)
        for entry in json.loads(sections["memories"])
        if (old := mind.read(entry["text"])) is not None
    ]
    facts = mind.facts(utterance, prompt)
    news = [new for new in facts if not any(mind.repeats(new, old) for _, old in known)]
    memories = [
        _memory(number, new, speaker, [name for name, old in known if _related(new, old)])
        for number, new in enumerate(news)
    ]
    return as_json({"memory": memories})


def unspoken(message: str) -> tuple[str, str]:
    """A message without its speaker, and who that is."""
    speaker = _SPEAKER.match(message)
    if speaker is None:
        return "user", message
    return speaker[1], message[speaker.end() :].rstrip("\n")


def as_json(value: Any) -> Reply:
    """A reply that is JSON."""
    return Reply(json.dumps(value, ensure_ascii=False))


def _related(new: Statement, old: Statement) -> bool:
    """The prompt wants memories linked that are about the same thing."""
    return bool(new.topic) and new.about == old.about


def _memory(number: int, new: Statement, speaker: str, linked: list[str]) -> dict[str, Any]:
    memory: dict[str, Any] = {"id": str(number), "text": new.text, "attributed_to": speaker}
    return memory | ({"linked_memory_ids": linked} if linked else {})
