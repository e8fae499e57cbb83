"""How an ideal model answers the prompts of oracleagentmemory 26.8."""

from __future__ import annotations

import re
from html import unescape
from typing import Any, Final

from steeltrap.adapters.mem0.answers import as_json
from steeltrap.harness.models import Ask, Mind, Reply
from steeltrap.harness.statements import Statement

__all__ = ["answer"]

_MESSAGE: Final = re.compile(
    r"<message>\n  <timestamp>[^<]*</timestamp>\n  <role>[^<]*</role>\n"
    r"  <content>(?P<said>[^<]*)</content>\n</message>"
)
"""What was said is escaped, so that nothing in it can be taken for a tag."""
_NEWEST: Final = "Newest thread messages for this extraction pass"
_KNOWN: Final = re.compile(r"<retrieved_memories>\n(?P<known>.*)\n</retrieved_memories>", re.DOTALL)
_MEMORY: Final = re.compile(
    r"<id>(?P<id>[^<]*)</id>\s*<record_type>[^<]*</record_type>\s*"
    r"(?:<timestamp>[^<]*</timestamp>\s*)?<content>(?P<text>[^<]*)</content>"
)
_SOURCE: Final = re.compile(r"<link_source_memory>(.*?)</link_source_memory>", re.DOTALL)
_SUMMARY: Final = re.compile(
    r"Previous summary:\n(?P<summary>.*)\n\nPrevious topics:\n(?P<topics>.*)"
    r"\n\nNew messages since the previous summary:\n(?P<news>.*)\n\nUpdate the summary",
    re.DOTALL,
)
_SUMMARY_CHARS: Final = 4000
"""The package cuts a longer one off."""
_TOPICS: Final = 8
_IMPORTANCE: Final = {"vital": 5, "normal": 3, "trivial": 1}


def answer(ask: Ask, mind: Mind) -> Reply | None:
    """Answer a prompt by its task: extract memories, link them, or sum the thread up."""
    system, prompt = ask.said("system"), ask.said("user")
    if system.startswith("You are a memory extraction module"):
        return _extract(prompt, mind)
    if system.startswith("You resolve links from newly extracted memories"):
        return _link(prompt, mind)
    if system.startswith("You maintain the persisted summary metadata") and (
        found := _SUMMARY.search(prompt)
    ):
        return _sum_up(found["summary"], found["news"], mind)
    return None


def _extract(prompt: str, mind: Mind) -> Reply:
    """What the newest messages state, but for what a memory that is shown says already."""
    _, _, newest = prompt.partition(_NEWEST)
    shown = _KNOWN.search(newest)
    known = [old for line in _lines(shown) if (old := mind.read(line)) is not None]
    messages = [unescape(found["said"]) for found in _MESSAGE.finditer(newest)]
    facts = [fact for said in messages for fact in mind.facts(said, prompt)]
    news = [fact for fact in facts if not any(mind.repeats(fact, old) for old in known)]
    return as_json({"thoughts": None, "memories": [_memory(fact) for fact in news]})


def _lines(shown: re.Match[str] | None) -> list[str]:
    return [line.strip() for line in shown["known"].split("\n")] if shown else []


def _memory(fact: Statement) -> dict[str, Any]:
    """A memory as the schema has it; where no time is told, the package takes the message's."""
    names = [name for name in (fact.topic, fact.field, fact.other_topic) if name]
    return {
        "id": None,
        "text": fact.text,
        "record_type": "fact",
        "scope": "environment",
        "entities": names,
        "timestamp": fact.since or None,
        "valid_to": (fact.until if fact.sense == "states" else "") or None,
        "importance": _IMPORTANCE[fact.importance],
    }


def _link(prompt: str, mind: Mind) -> Reply:
    """Which stored memories each new one replaces or says again."""
    resolved = {}
    for found in _SOURCE.finditer(prompt):
        source, *candidates = _MEMORY.finditer(found[1])
        new = mind.read(unescape(source["text"]))
        links = [
            {"target_memory_id": candidate["id"], "link_type": kind}
            for candidate in candidates
            if (kind := _relation(new, mind.read(unescape(candidate["text"])), mind))
        ]
        resolved[source["id"]] = {"updated_source_memory_text": None, "links": links}
    return as_json({"source_resolutions": resolved})


def _relation(new: Statement | None, old: Statement | None, mind: Mind) -> str:
    if new is None or old is None:
        return ""
    if mind.contradicts(new, old):
        return "supersedes"
    return "duplicates" if mind.repeats(new, old) else ""


def _sum_up(summary: str, news: str, mind: Mind) -> Reply:
    """The summary with what is new, without what that puts out of force; the newest at the end."""
    told = [line for line in summary.split("\n") if mind.read(line)]
    for found in _MESSAGE.finditer(news):
        for new in mind.facts(unescape(found["said"]), "\n".join((summary, news))):
            told = [line for line in told if not _past(line, new, mind)] + [new.text]
    while len("\n".join(told)) > _SUMMARY_CHARS:
        told.pop(0)
    facts = [fact for line in told if (fact := mind.read(line))]
    topics = list(dict.fromkeys(fact.topic for fact in reversed(facts) if fact.topic))
    return as_json(
        {"summary": "\n".join(told) or "Nothing to remember so far.", "topics": topics[:_TOPICS]}
    )


def _past(line: str, new: Statement, mind: Mind) -> bool:
    old = mind.read(line)
    return old is not None and (mind.contradicts(new, old) or mind.repeats(new, old))
