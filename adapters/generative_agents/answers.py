"""How the ideal model rates, asks itself and concludes.

It concludes what holds, as the records shown tell it, and nothing that follows from a rule.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec

from steeltrap.adapters.generative_agents.memory import Insight, Insights, Questions, Rating
from steeltrap.harness.models import Ask, Mind, NotUnderstood, Reply
from steeltrap.harness.statements import Statement

__all__ = ["answer"]

_COUNT: Final = re.compile(r"Number of (?:questions|insights, at most): (\d+)\n\n")
_RATING: Final = {"vital": 9, "normal": 5, "trivial": 2}
"""What matters, by what the script says of it; what states nothing is 1."""
_ABOUT: Final = "What is known of {}?"


def answer(ask: Ask, mind: Mind) -> Reply | None:
    """Answer the three prompts."""
    lines = ask.said("user").split("\n")
    rows = [msgspec.json.decode(line) for line in lines if line.startswith("{")]
    counted = _COUNT.match(ask.said("user"))
    match ask.schema_name:
        case "importance" if rows:
            return _filled(_rated(rows[0]["memory"], mind))
        case "questions" if counted:
            return _filled(_asked(rows, int(counted[1]), mind))
        case "insights" if counted and rows:
            return _filled(_concluded(rows[0]["question"], rows[1:], int(counted[1]), mind))
    return None


def _filled(form: msgspec.Struct) -> Reply:
    return Reply(text=msgspec.json.encode(form).decode())


def _stated(text: str, shown: str, mind: Mind) -> Sequence[Statement]:
    """What a record states: a conclusion of this mind, or a turn."""
    said = mind.read(text)
    if said is not None:
        return (said,)
    try:
        return mind.facts(text, shown)
    except NotUnderstood:
        return ()


def _rated(text: str, mind: Mind) -> Rating:
    return Rating(max((_RATING[said.importance] for said in _stated(text, "", mind)), default=1))


def _asked(rows: Sequence[dict[str, Any]], count: int, mind: Mind) -> Questions:
    """The topics that most is said about."""
    shown = _shown(rows)
    said = [fact.topic for row in rows for fact in _stated(row["text"], shown, mind) if fact.topic]
    return Questions([_ABOUT.format(topic) for topic, _ in Counter(said).most_common(count)])


def _concluded(question: str, rows: Sequence[dict[str, Any]], count: int, mind: Mind) -> Insights:
    """What holds of the topic asked about, each with what it rests on; the latest come first."""
    shown = _shown(rows)
    held: dict[str, tuple[Statement, list[int]]] = {}
    for row in rows:
        for new in _stated(row["text"], shown, mind):
            if new.topic and _ABOUT.format(new.topic) == question:
                _hold(held, new, row["number"], mind)
    latest = list(held.values())[::-1][:count]
    return Insights([Insight(said.text, because) for said, because in latest])


def _hold(
    held: dict[str, tuple[Statement, list[int]]], new: Statement, number: int, mind: Mind
) -> None:
    """A statement takes the place of what it puts out of force; a repetition is evidence."""
    same = [text for text, (old, _) in held.items() if mind.repeats(new, old)]
    if same:
        held[same[0]][1].append(number)
        return
    if _outranked((old for old, _ in held.values()), new, mind):
        return
    for text in [text for text, (old, _) in held.items() if mind.contradicts(new, old)]:
        del held[text]
    held[new.text] = new, [number]


def _outranked(olds: Iterable[Statement], new: Statement, mind: Mind) -> bool:
    """Whether somebody whose word counts more says otherwise."""
    return new.sense in ("states", "withdraws") and any(
        old.about == new.about and old.sense == "states" and old.said_by != new.said_by
        and not mind.contradicts(new, old)
        for old in olds
    )  # fmt: skip


def _shown(rows: Sequence[dict[str, Any]]) -> str:
    return "\n".join(row["text"] for row in rows)
