"""How an ideal policy acts: facts that hold, events for what was so from when on, the vital in core.

It works out nothing that follows from a rule: a rule is a fact of its own.
"""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec

from steeltrap.adapters.mem_alpha.policy import DELETE, INSERT, UPDATE
from steeltrap.adapters.placing import event, placed
from steeltrap.harness.models import Ask, Mind, Reply, ToolCall
from steeltrap.harness.statements import Statement
from steeltrap.harness.tokens import count

__all__ = ["answer"]

_SECTIONS: Final = re.compile(
    r"Core memory, a JSON string \(at most (?P<tokens>\d+) tokens\):\n(?P<core>[^\n]*)\n\n"
    r"Semantic memory, one JSON object a line:\n(?P<semantic>.*)\n\n"
    r"Episodic memory, one JSON object a line:\n(?P<episodic>.*)\n\n"
    r"Conversation, a JSON object:\n(?P<chunk>[^\n]*)",
    re.DOTALL,
)
"""JSON has no line breaks, so that no memory can hold a heading."""


def answer(ask: Ask, mind: Mind) -> Reply | None:
    """Answer the one prompt there is."""
    user = ask.said("user")
    sections = _SECTIONS.fullmatch(user)
    if sections is None:
        return None
    chunk = msgspec.json.decode(sections["chunk"])
    keeper = _Keeper(sections, mind)
    for said in mind.facts(chunk["text"], user):
        keeper.take(said, chunk["at"])
    calls = tuple(keeper.calls)
    return Reply(calls=calls, finish="tools") if calls else Reply(text="Nothing has to change.")


class _Keeper:
    """The memory that a prompt shows, and the calls that change it."""

    def __init__(self, sections: re.Match[str], mind: Mind) -> None:
        self._mind = mind
        self._tokens = int(sections["tokens"])
        core = msgspec.json.decode(sections["core"])
        self._core = [line for line in core.split("\n") if line]
        self._facts = _listed(sections["semantic"])
        self._events = _listed(sections["episodic"])
        self.calls: list[ToolCall] = []

    def take(self, new: Statement, at: str) -> None:
        """Store a statement, and end what it puts out of force."""
        if new.sense == "past":
            self._note(new, new.since)
            return
        over, kept = placed(new, self._held(), self._mind)
        news = new.sense == "states" and kept
        if any(name in self._core for name in over):
            left = [line for line in self._core if line not in over]
            self._rewrite([*left, new.text] if kept else left)
            kept = False
        elif kept and new.importance == "vital" and self._fits(new.text):
            self._rewrite([*self._core, new.text])
            kept = False
        for name in [name for name in over if name in self._facts]:
            if kept:
                self._call(UPDATE, "semantic", memory_id=name, new_content=new.text)
                self._facts[name], kept = new.text, False
            else:
                self._call(DELETE, "semantic", memory_id=name)
                del self._facts[name]
        if kept:
            self._call(INSERT, "semantic", content=new.text)
        if news:
            self._note(new, at)

    def _held(self) -> dict[str, Statement]:
        """What core and semantic memory state: lines of the one by their text, facts by their id."""
        texts = {**{line: line for line in self._core}, **self._facts}
        read = {name: self._mind.read(text) for name, text in texts.items()}
        return {name: said for name, said in read.items() if said is not None}

    def _note(self, said: Statement, at: str) -> None:
        """Insert an event, once."""
        text = f"[{at}] {event(said, at)}"
        if text not in self._events.values():
            self._call(INSERT, "episodic", content=text)

    def _fits(self, line: str) -> bool:
        return count("\n".join([*self._core, line])) <= self._tokens

    def _rewrite(self, lines: list[str]) -> None:
        self._core = lines
        self._call(UPDATE, "core", new_content="\n".join(lines))

    def _call(self, tool: str, kind: str, **given: Any) -> None:
        self.calls.append(ToolCall(tool, {"memory_type": kind, **given}))


def _listed(rows: str) -> dict[str, str]:
    lines = (msgspec.json.decode(row) for row in rows.split("\n") if row.startswith("{"))
    return {line["id"]: line["text"] for line in lines}
