"""How an ideal model answers the one prompt of LangMem 0.0.30 with the tools that it offers."""

from __future__ import annotations

import ast
import re
from typing import Any, Final

from steeltrap.harness.models import Ask, Mind, Reply, ToolCall
from steeltrap.harness.statements import Statement

__all__ = ["answer"]

_EXISTING: Final = re.compile(
    r'<instance id=(\S+) schema_type="Memory">\n(\{[^\n]*\})\n</instance>'
)
"""A memory is written as Python writes a dictionary, on one line."""
_SESSION: Final = re.compile(
    r"<session_(?P<id>[0-9a-f-]+)>\n=+ (?:Human|Ai) Message =+\n\n(?P<said>.*)\n</session_(?P=id)>",
    re.DOTALL,
)
"""Its end is the last one, and the prompt's: none within a message is taken for it."""


def answer(ask: Ask, mind: Mind) -> Reply | None:
    """Answer the prompt by calls of the tools that it offers, all at once.

    A value takes the place of the memory that it contradicts, and a withdrawal removes it; further
    memories that are contradicted are removed. Where removing is not offered, a withdrawal takes
    the place too.
    """
    if not ask.said("system").startswith("You are a memory subroutine for an AI."):
        return None
    session = _SESSION.search(ask.said("user"))
    offered = {tool.name for tool in ask.tools}
    if session is None or session.end() != len(ask.said("user")) or "Memory" not in offered:
        return None
    entries = [
        _Entry(name, mind.read(ast.literal_eval(memory)["content"]))
        for name, memory in _EXISTING.findall(ask.said("system"))
    ]
    added = []
    for new in mind.facts(session["said"], ask.text):
        if not _placed(new, entries, mind, removing="RemoveDoc" in offered):
            added.append(ToolCall("Memory", {"content": new.text}))
    calls = [*(call for entry in entries for call in entry.calls()), *added]
    if not calls and ask.tool_choice == "required":
        calls = [entries[0].unchanged()]  # the prompt wants a call, and takes one without a patch
    return Reply(calls=tuple(calls), finish="tools" if calls else "stop")


class _Entry:
    """One existing memory, and what becomes of it."""

    def __init__(self, name: str, said: Statement | None) -> None:
        self.name, self.said = name, said
        self.changed = self.gone = False

    def become(self, new: Statement) -> None:
        self.said, self.changed = new, True

    def go(self) -> None:
        self.said, self.gone = None, True

    def calls(self) -> list[ToolCall]:
        if self.gone:
            return [ToolCall("RemoveDoc", {"json_doc_id": self.name})]
        if self.changed and self.said is not None:
            patch = {"op": "replace", "path": "/content", "value": self.said.text}
            return [self._patched("Replace what no longer holds.", [patch])]
        return []

    def unchanged(self) -> ToolCall:
        return self._patched("Nothing has changed.", [])

    def _patched(self, why: str, patches: list[Any]) -> ToolCall:
        arguments = {"json_doc_id": self.name, "planned_edits": why, "patches": patches}
        return ToolCall("PatchDoc", arguments)


def _placed(new: Statement, entries: list[_Entry], mind: Mind, *, removing: bool) -> bool:
    """Whether a fact finds its place in the existing memories, so that nothing has to be added."""
    known = any(entry.said and mind.repeats(new, entry.said) for entry in entries)
    wrong = [entry for entry in entries if entry.said and mind.contradicts(new, entry.said)]
    if wrong and not known and (new.sense == "states" or not removing):
        wrong.pop(0).become(new)
        known = True
    for entry in wrong if removing else ():
        entry.go()
        known = True
    return known
