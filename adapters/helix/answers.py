"""How an ideal model extracts, adjudicates and summarises.

It works out nothing that follows from a rule: the rule is a sentence of its own.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from steeltrap.adapters.helix.asks import NOTHING
from steeltrap.harness.models import Ask, Mind, NotUnderstood, Reply
from steeltrap.harness.statements import Sense, Statement

__all__ = ["answer"]

_EXTRACTION: Final = re.compile(
    r"Date: [^\n]*\n\nRelated memories, one JSON object a line:\n(?P<related>.*)"
    r"\n\nTurns before, one JSON object a line:\n(?P<recent>.*)\n\nMessage:\n(?P<message>[^\n]*)",
    re.DOTALL,
)
_ADJUDICATION: Final = re.compile(
    r"Memories, one JSON object a line:\n(?P<memories>.*)"
    r"\n\nFacts, one JSON object a line:\n(?P<facts>.*)",
    re.DOTALL,
)
_PROFILE: Final = re.compile(
    r"At most (?P<lines>\d+) lines in all, of which at most (?P<focus>\d+) for the focus\."
    r"\n\nMemories, one JSON object a line:\n(?P<memories>.*)",
    re.DOTALL,
)
"""What is shown is one line of JSON each, so none can hold a heading."""
_KINDS: Final[Mapping[Sense, str]] = {
    "past": "episode", "rumour": "episode", "rule": "procedure",
}  # fmt: skip
"""Everything else is a state of affairs: a fact."""
_CONFIDENCE: Final[Mapping[Sense, float]] = {"rumour": 0.3}
_IMPORTANCE: Final = {"vital": "high", "normal": "normal", "trivial": "low"}
_LASTING: Final = ("states", "rule", "relation")


def answer(ask: Ask, mind: Mind) -> Reply | None:
    """Answer a prompt by the form that it asks for."""
    user = ask.said("user")
    match ask.schema_name:
        case "facts" if asked := _EXTRACTION.match(user):
            return _json({"facts": _extracted(asked, user, mind)})
        case "decisions" if asked := _ADJUDICATION.match(user):
            return _json({"decisions": _adjudicated(asked, mind)})
        case "profile" if asked := _PROFILE.match(user):
            return _json(_profiled(asked, mind))
    return None


def _extracted(asked: re.Match[str], shown: str, mind: Mind) -> list[dict[str, Any]]:
    message = msgspec.json.decode(asked["message"])
    related = [old for row in _rows(asked["related"]) if (old := mind.read(row["text"]))]
    return [
        _candidate(new, message["id"])
        for new in mind.facts(message["text"], shown)
        if not any(_overruled(new, old, mind) for old in related)
    ]


def _overruled(new: Statement, old: Statement, mind: Mind) -> bool:
    """Whether somebody whose word counts less speaks against what is known."""
    if new.said_by == "owner" or {new.sense, old.sense} - {"states", "withdraws"}:
        return False
    differ = (new.sense, new.value) != (old.sense, old.value)
    return new.about == old.about and differ and not mind.contradicts(new, old)


def _candidate(said: Statement, message: str) -> dict[str, Any]:
    return {
        "content": said.text,
        "kind": _KINDS.get(said.sense, "fact"),
        "confidence": _CONFIDENCE.get(said.sense, 1.0),
        "entities": [topic for topic in (said.topic, said.other_topic) if topic],
        "source": message,
        "scope": "user",
        "importance": _IMPORTANCE[said.importance],
        "event_at": said.since,
        "expires_at": said.until,
    }


# ---------------------------------------------------------------- relating


def _adjudicated(asked: re.Match[str], mind: Mind) -> list[dict[str, Any]]:
    olds = [
        (row["id"], old) for row in _rows(asked["memories"]) if (old := mind.read(row["text"])) is not None
    ]  # fmt: skip
    decisions = []
    for row in _rows(asked["facts"]):
        new = mind.read(row["text"])
        if new is None:
            raise NotUnderstood(f"no statement of the script reads '{row['text']}'")
        relation, memories = _related(new, olds, mind)
        decisions.append({"fact": row["fact"], "relation": relation, "memories": memories})
    return decisions


def _related(
    new: Statement, olds: Sequence[tuple[int, Statement]], mind: Mind
) -> tuple[str, list[int]]:
    """What no longer holds is replaced; else the same is a repetition, and the same topic is added to."""
    if ended := [name for name, old in olds if _ends(new, old, mind)]:
        return "update", ended
    if same := [name for name, old in olds if mind.repeats(new, old)]:
        return "duplicate", same[:1]
    if beside := [name for name, old in olds if new.topic and new.about == old.about]:
        return "extend", beside[:1]
    if beside := [
        name for name, old in olds if new.topic and new.topic in (old.topic, old.other_topic)
    ]:
        return "extend", beside[:1]
    return "new", []


def _ends(new: Statement, old: Statement, mind: Mind) -> bool:
    """Whether a new statement puts an old one out of force.

    Of a value that is replaced nobody need know any more when it would have ended.
    """
    if old.sense == "lapses" and new.topic and new.about == old.about:
        return new.sense in ("states", "withdraws", "lapses") and new.text != old.text
    return mind.contradicts(new, old)


# ---------------------------------------------------------------- the profile


def _profiled(asked: re.Match[str], mind: Mind) -> dict[str, Any]:
    """The latest few are the focus; of the rest the first, which are the most important."""
    rows = [row for row in _rows(asked["memories"]) if (said := mind.read(row["text"])) and said.sense in _LASTING]  # fmt: skip
    most, some = int(asked["lines"]), int(asked["focus"])
    latest = sorted(rows, key=lambda row: (row["since"], row["id"]))[-some:] if some else []
    focus = [row for row in rows if row in latest]
    stable = [row for row in rows if row not in latest][: most - len(focus)]
    return {"stable": list(map(_line, stable)), "focus": list(map(_line, focus))}


def _line(row: Mapping[str, Any]) -> dict[str, Any]:
    return {"text": row["text"], "memories": [row["id"]]}


def _rows(lines: str) -> list[dict[str, Any]]:
    return [msgspec.json.decode(line) for line in lines.split("\n") if line != NOTHING]


def _json(value: Any) -> Reply:
    return Reply(msgspec.json.encode(value).decode())
