"""How the ideal model evaluates and reflects.

A message shows a failure where it contradicts what the prompt shows that the agent held. The lesson
is what the message says instead, and nothing that follows from a rule.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from steeltrap.adapters.reflexion.memory import Evaluation
from steeltrap.harness.models import Ask, Mind, Reply
from steeltrap.harness.statements import Statement

__all__ = ["answer"]


def answer(ask: Ask, mind: Mind) -> Reply | None:
    """Answer the evaluator's prompt, and that of the self-reflection."""
    shown = ask.said("user")
    rows = [msgspec.json.decode(line) for line in shown.split("\n") if line.startswith("{")]
    if not rows or "text" not in rows[-1]:
        return None
    *before, message = rows
    held = list(_held(before, shown, mind))
    wrong = [
        new
        for new in mind.facts(message["text"], shown)
        if any(mind.contradicts(new, old) for old in held)
    ]
    if ask.schema_name == "evaluation":
        return Reply(text=msgspec.json.encode(Evaluation(bool(wrong))).decode())
    return Reply(text="\n".join(new.text for new in wrong)) if wrong else None


def _held(rows: list[dict[str, Any]], shown: str, mind: Mind) -> Iterator[Statement]:
    """What the lessons and the conversation told the agent last, each thing once."""
    held: dict[str, Statement] = {}
    for row in rows:
        if "lesson" in row:
            found = [mind.read(line) for line in row["lesson"].split("\n")]
        else:
            found = list(mind.facts(row["text"], shown))
        for new in filter(None, found):
            held = {text: old for text, old in held.items() if not mind.contradicts(new, old)} | {
                new.text: new
            }
    yield from held.values()
