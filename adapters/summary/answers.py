"""How the ideal model summarises: each statement that holds, one plain sentence each.

It works out nothing that follows from a rule: the rule is a sentence of its own.
"""

from __future__ import annotations

import re
from typing import Final

import msgspec

from steeltrap.adapters.summary.memory import NOTHING
from steeltrap.harness.models import Ask, Mind, Reply
from steeltrap.harness.statements import Statement

__all__ = ["answer"]

_SECTIONS: Final = re.compile(
    r"Summary so far:\n(?P<summary>.*)\n\nMessages, one JSON object a line:\n(?P<turns>.*)",
    re.DOTALL,
)
"""A sentence of the summary is one line, and so is a message, so neither can hold a heading."""


def answer(ask: Ask, mind: Mind) -> Reply | None:
    """Answer the one prompt there is."""
    sections = _SECTIONS.fullmatch(ask.said("user"))
    if sections is None:
        return None
    lines = [line for line in sections["summary"].split("\n") if line != NOTHING]
    kept = {line: mind.read(line) for line in lines}
    for line in sections["turns"].split("\n"):
        said = msgspec.json.decode(line)["text"]
        for new in mind.facts(said, ask.said("user")):
            kept = _with(kept, new, mind)
    return Reply(text="\n".join(kept) or NOTHING)


def _with(
    kept: dict[str, Statement | None], new: Statement, mind: Mind
) -> dict[str, Statement | None]:
    """The sentences with a new statement among them; what it puts out of force goes."""
    about = [old for old in kept.values() if old is not None and old.about == new.about]
    if any(mind.repeats(new, old) for old in kept.values() if old is not None):
        return kept
    gone = [old for old in about if mind.contradicts(new, old)]
    if new.sense in ("states", "withdraws"):
        values = [old for old in about if old.sense == "states" and old not in gone]
        if any(old.said_by != new.said_by for old in values):
            return kept  # somebody whose word counts more says otherwise
        gone += [old for old in about if old.sense == "lapses"]
    left = {line: old for line, old in kept.items() if old is None or old not in gone}
    return left if new.sense == "withdraws" else left | {new.text: new}
