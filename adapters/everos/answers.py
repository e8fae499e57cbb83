"""How an ideal model answers the prompts of everos 1.5."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

from steeltrap.harness.models import Ask, Mind, Reply
from steeltrap.harness.statements import Statement

__all__ = ["answer"]

_LINE: Final = re.compile(r"^\[(\d+)\] \[(\d{4}-\d\d-\d\d) \d\d:\d\d:\d\d\] ", re.MULTILINE)
_MESSAGE: Final = re.compile(
    r"^ {16}\{\n {20}\"timestamp\": [^\n]*,\n {20}\"speaker\": (?P<speaker>[^\n]*),\n"
    r" {20}\"content\": (?P<text>.*?)\n {16}\}(?=\n|\Z)",
    re.MULTILINE | re.DOTALL,
)
_SPOKEN: Final = re.compile(
    r"^\[(?P<day>\d{4}-\d\d-\d\d) \d\d:\d\d:\d\d\] [^\n:]*: (?P<text>.*?)"
    r"(?=\n\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\] |\Z)",
    re.MULTILINE | re.DOTALL,
)
_TITLE_WORDS: Final = 20


def answer(ask: Ask, mind: Mind) -> Reply | None:
    """Answer one of the prompts that adding, and later merging, makes."""
    prompt = ask.said("user")
    for marker, answers in _PROMPTS.items():
        if marker in prompt:
            return _as_json(answers(prompt, mind))
    return None


# ---------------------------------------------------------------- the prompts


def _boundaries(prompt: str, mind: Mind) -> dict[str, Any]:  # noqa: ARG001
    """An episode ends where the day does; the prompt wants everything else merged in doubt."""
    log = _between(
        prompt, "with a 1-based index and timestamp:\n\n```\n", "\n```\n\n### When to split"
    )
    days: list[str] = []
    for line in _LINE.finditer(log):
        if int(line[1]) == len(days) + 1:  # anything else stands in what somebody said
            days.append(line[2])
    pairs = enumerate(itertools.pairwise(days), 1)
    cuts = [number for number, (day, next_day) in pairs if day != next_day]
    why = "Episodes end with their day." if cuts else "All of it is of one day."
    return {"reasoning": why, "boundaries": cuts, "should_wait": False}


def _episode(prompt: str, mind: Mind) -> dict[str, Any]:
    """A sentence for each fact of the conversation."""
    shown = _between(prompt, "\nConversation content:\n", "\n\nCustom instructions:\n")
    messages = list(_MESSAGE.finditer(shown))
    facts = [fact for one in messages for fact in mind.facts(one["text"], shown)]
    if facts:
        return _narrative([fact.text for fact in facts], facts)
    speakers = sorted({one["speaker"] for one in messages})
    return {"title": "Small talk", "content": f"{' and '.join(speakers)} made small talk."}


def _facts(prompt: str, mind: Mind) -> dict[str, Any]:
    """The sentences of an episode that state something."""
    text = _between(prompt, '\n- EPISODE_TEXT: "', '"\n- TIME: "')
    at = prompt.rpartition('"\n- TIME: "')[2].partition('"  (the start time')[0]
    facts = [line for line, _ in _read(text, mind)]
    return {"atomic_facts": {"time": at, "atomic_fact": facts}}


def _foresights(prompt: str, mind: Mind) -> dict[str, Any]:
    """What is known to end; nothing else that the scripts say is a prediction."""
    shown = _between(prompt, "\n- conversation:\n```text\n", "\n```\n\n**CRITICAL LANGUAGE RULE**")
    found = [
        {
            "content": fact.text, "evidence": fact.text,
            "start_time": one["day"], "end_time": fact.until[:10],
        }
        for one in _SPOKEN.finditer(shown)
        for fact in mind.facts(one["text"], shown)
        if fact.until
    ]  # fmt: skip
    return {"foresights": found}


def _merged(prompt: str, mind: Mind) -> dict[str, Any]:
    """The facts of several episodes, of which the later ones put earlier ones out of force."""
    return _latest(prompt.rpartition("\nEpisodes:\n")[2], mind)


def _updated(prompt: str, mind: Mind) -> dict[str, Any]:
    """The same of a merged episode and those that came later."""
    old = _between(
        prompt, "\nCurrent narrative:\n", "\n\nNew episodes (chronologically ordered):\n"
    )
    new = _between(
        prompt, "\n\nNew episodes (chronologically ordered):\n", "\n\nUpdate the narrative"
    )
    return _latest(f"{old}\n{new}", mind)


_PROMPTS: Final = {
    "You are an episodic memory boundary detection expert.": _boundaries,
    "You are an episodic memory generation expert.": _episode,
    "extract a set of atomic fact optimized": _facts,
    "You are an advanced personal foresight analysis agent.": _foresights,
    "You are a memory consolidation assistant.": _merged,
    "You are updating an existing memory narrative": _updated,
}


# ---------------------------------------------------------------- helpers


def _latest(text: str, mind: Mind) -> dict[str, Any]:
    kept: list[tuple[str, Statement]] = []
    for line, new in _read(text, mind):
        kept = [(told, old) for told, old in kept if not mind.contradicts(new, old)]
        if not any(mind.repeats(new, old) for _, old in kept):
            kept.append((line, new))
    if not kept:
        return {"title": "Small talk", "content": "Small talk was made."}
    return _narrative([line for line, _ in kept], [fact for _, fact in kept])


def _read(text: str, mind: Mind) -> Iterator[tuple[str, Statement]]:
    """The lines of stored text that state something, without the number of an episode."""
    for numbered in text.splitlines():
        line = re.sub(r"^\d+\. ", "", numbered)
        if (fact := mind.read(line)) is not None:
            yield line, fact


def _narrative(lines: Sequence[str], facts: Sequence[Statement]) -> dict[str, Any]:
    """One sentence a line, under a title that names what it is about."""
    places = dict.fromkeys(fact.place if fact.field else fact.topic for fact in facts)
    words = "; ".join(places).split()[:_TITLE_WORDS]
    return {"title": " ".join(words), "content": "\n".join(lines)}


def _between(text: str, start: str, end: str) -> str:
    """From the first start to the last end: what stands between may hold either."""
    return text.partition(start)[2].rpartition(end)[0]


def _as_json(value: dict[str, Any]) -> Reply:
    return Reply(json.dumps(value, ensure_ascii=False))
