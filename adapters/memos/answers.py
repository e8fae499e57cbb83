"""How an ideal model answers the prompts of MemoryOS 2.x."""

from __future__ import annotations

import ast
import re
from typing import Any, Final

from steeltrap.adapters.mem0.answers import as_json
from steeltrap.harness.models import Ask, Asked, Mind, NotUnderstood, Reply
from steeltrap.harness.statements import Statement

__all__ = ["answer"]

_MESSAGE: Final = re.compile(
    r"(?:Conversation|对话)[:：]\s*\n(?:user|assistant|system): \[[\d:T-]+\]: (?P<text>.*)\n"
    r"\s*\n(?:Your Output|您的输出)[:：]\s*\Z",
    re.DOTALL,
)
_LISTS: Final = re.compile(r"(?:Query History|Queries): (\[.*?\])(?: \(recency-ordered\))?\n(?:Memories to Filter|Current order): (\[.*\])\n\nPlease", re.DOTALL)  # fmt: skip
_INTENT: Final = re.compile(
    r"\nUser Questions:\n(\[.*?\])\n\nWorking Memory Contents:\n(\[.*\])\n\n## Required", re.DOTALL
)
"""Lists are written as Python writes them; a line break in them is written `\\n`, so nothing in them
can be taken for a heading."""
_QUERY: Final = re.compile(r"\n- Query: (.*)\n- Output Format: A Json list", re.DOTALL)
_ENTRY: Final = re.compile(r"\[\d+\] (.*)", re.DOTALL)


def answer(ask: Ask, mind: Mind) -> Reply | None:
    """Answer a prompt by its task: of the reader, or of the scheduler."""
    prompt = ask.said("user")
    if found := _MESSAGE.search(prompt):
        return _read(found["text"], mind)
    if found := _QUERY.search(prompt):
        return as_json(_keywords(found[1], mind))
    if found := _INTENT.search(prompt):
        return _intent(ast.literal_eval(found[1]), ast.literal_eval(found[2]), mind)
    if found := _LISTS.search(prompt):
        queries, memories = (_entries(part) for part in found.groups())
        ranked = "# Memory Reranking Task" in prompt
        return _order(queries, memories, mind) if ranked else _filter(queries, memories, mind)
    return None


# ---------------------------------------------------------------- the reader


def _read(text: str, mind: Mind) -> Reply:
    """What to remember of a message; the prompt shows nothing else."""
    facts = mind.facts(text)
    summary = " ".join(fact.text for fact in facts)
    return as_json({"memory list": [_memory(fact) for fact in facts], "summary": summary})


def _memory(fact: Statement) -> dict[str, Any]:
    named = [name for name in (fact.topic, fact.field, fact.other_topic) if name]
    key = fact.place if fact.field else " and ".join(named)
    return {
        "key": key, "memory_type": "LongTermMemory", "value": fact.text, "tags": named,
    }  # fmt: skip


# ---------------------------------------------------------------- the scheduler


def _keywords(query: str, mind: Mind) -> list[str]:
    """Topics and fields that a question asks for."""
    asked = _asked(query, mind)
    return list(dict.fromkeys(name for place in asked.places for name in place if name)) or [query]


def _intent(queries: list[str], memories: list[str], mind: Mind) -> Reply:
    """Whether the working memory answers the questions, and which of them it does not."""
    evidences = [text for text in memories if any(_answers(text, q, mind) for q in queries)]
    missing = [q for q in queries if not any(_answers(text, q, mind) for text in memories)]
    return as_json(
        {"trigger_retrieval": bool(missing), "evidences": evidences, "missing_evidences": missing}
    )


def _order(queries: list[str], memories: list[str], mind: Mind) -> Reply:
    """What answers the newest question first, then what speaks of its topics, then the rest."""
    order = sorted(range(len(memories)), key=lambda n: -_closest(memories[n], queries, mind))
    return as_json({"new_order": order, "reasoning": "What answers the questions comes first."})


def _filter(queries: list[str], memories: list[str], mind: Mind) -> Reply:
    """Without what speaks of no topic that any of the questions asks for; in doubt it is kept."""
    kept = [n for n, text in enumerate(memories) if _closest(text, queries, mind) > 0]
    return as_json(
        {
            "relevant_memories": kept,
            "filtered_count": len(memories) - len(kept),
            "reasoning": "Kept what speaks of what was asked for.",
        }
    )


def _closest(text: str, queries: list[str], mind: Mind) -> float:
    """How near a memory comes to one of the questions; to an earlier one of the list if equal."""
    near = [
        (2.0 if _answers(text, query, mind) else 1.0 if _related(text, query, mind) else 0.0)
        * (1 - n / 1000)
        for n, query in enumerate(queries)
    ]
    return max(near, default=0.0)


def _answers(text: str, query: str, mind: Mind) -> bool:
    """Whether a memory tells what a question asks for."""
    said = mind.read(text)
    return said is not None and said.about in _asked(query, mind).places


def _related(text: str, query: str, mind: Mind) -> bool:
    """Whether it speaks of a topic that a question asks for; where that is unknown, it may."""
    said = mind.read(text)
    topics = {topic for topic, _ in _asked(query, mind).places}
    return not topics or (said is not None and bool(topics & {said.topic, said.other_topic}))


def _asked(query: str, mind: Mind) -> Asked:
    """What a question asks for: of one that the script does not have, nothing."""
    try:
        return mind.asked(query)
    except NotUnderstood:
        return Asked((), "current")


def _entries(written: str) -> list[str]:
    """The texts of a list whose entries are numbered."""
    return [_ENTRY.fullmatch(entry)[1] for entry in ast.literal_eval(written)]  # type: ignore[index]
