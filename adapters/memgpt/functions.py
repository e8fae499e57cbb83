"""The functions by which the model edits and searches its memory (section 2.3).

Their names and their meaning are those of the released code (`functions/function_sets/base.py`);
searches are paged (section 3.1.1), five results a page as there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec

from steeltrap.adapters.context import Nearness
from steeltrap.adapters.memgpt.context import BLOCKS, Agent, Entry, as_json
from steeltrap.adapters.vector.ranking import ranked
from steeltrap.harness.models import Tool, ToolCall

__all__ = ["PAGE", "TOOLS", "Executor"]

PAGE: Final = 5
_BLOCK: Final[dict[str, Any]] = {"type": "string", "enum": list(BLOCKS)}
_TEXT: Final[dict[str, Any]] = {"type": "string"}
_PAGE: Final[dict[str, Any]] = {
    "type": "integer",
    "minimum": 0,
    "description": "0 for the first page.",
}


def _tool(function: str, description: str, /, **properties: dict[str, Any]) -> Tool:
    beat = {"type": "boolean", "description": "Whether you want to go on after this call."}
    properties = {**properties, "request_heartbeat": beat}
    return Tool(
        function, description,
        {"type": "object", "properties": properties, "required": list(properties)},
    )  # fmt: skip


TOOLS: Final = (
    _tool("core_memory_append", "Add a line to a block of core memory.", name=_BLOCK, content=_TEXT),
    _tool(
        "core_memory_replace",
        "Replace words of a block of core memory, which must stand there exactly so; by nothing, to"
        " remove them.",
        name=_BLOCK, old_content=_TEXT, new_content=_TEXT,
    ),
    _tool(
        "conversation_search",
        "Search all earlier messages for words, whatever their case; the newest come first.",
        query=_TEXT, page=_PAGE,
    ),
    _tool(
        "conversation_search_date",
        "Search all earlier messages by day, YYYY-MM-DD, both ends included; the newest come first.",
        start_date=_TEXT, end_date=_TEXT, page=_PAGE,
    ),
    _tool("archival_memory_insert", "Store a passage in archival storage.", content=_TEXT),
    _tool(
        "archival_memory_search", "Search archival storage by meaning.", query=_TEXT, page=_PAGE
    ),
)  # fmt: skip


class _Refused(ValueError):
    """A call that cannot be carried out; the model is told why."""


class Executor:
    """Carries out what the model calls.

    Args:
        nearness: by which archival storage is searched.
        block_chars: characters that a block of core memory may have.
    """

    def __init__(self, nearness: Nearness, block_chars: int) -> None:
        self._nearness = nearness
        self._block_chars = block_chars
        self._does: dict[str, Callable[..., Sequence[Entry]]] = {
            "core_memory_append": self._append,
            "core_memory_replace": self._replace,
            "conversation_search": self._search,
            "conversation_search_date": self._search_date,
            "archival_memory_insert": self._insert,
            "archival_memory_search": self._search_archive,
        }

    def run(self, agent: Agent, call: ToolCall, at: str) -> tuple[Entry, bool]:
        """Carry out a call: its entry for the queue, and whether the model shall go on.

        It shall if it asked for a heartbeat, and after an error, which it is told.
        """
        arguments = dict(call.arguments)
        beat = arguments.pop("request_heartbeat", False) is True
        found: Sequence[Entry] = ()
        result: dict[str, Any] = {"status": "done"}
        try:
            does = self._does.get(call.name)
            if does is None:
                raise _Refused(f"there is no function {call.name}")
            _checked(call.name, arguments)
            found = does(agent, at, **arguments)
        except _Refused as refusal:
            result, beat = {"status": "failed", "why": str(refusal)}, True
        if "search" in call.name and result["status"] == "done":
            result["found"] = [{"at": one.at, "text": one.text} for one in found]
        text = as_json({"call": call.name, "arguments": arguments, **result})
        return Entry(at, "function", text, found=tuple(found)), beat

    # ------------------------------------------------------------ core memory

    def _append(self, agent: Agent, at: str, name: str, content: str) -> Sequence[Entry]:
        return self._write(agent, at, name, f"{agent.core[name]}\n{_folded(content)}")

    def _replace(
        self, agent: Agent, at: str, name: str, old_content: str, new_content: str
    ) -> Sequence[Entry]:
        old = _folded(old_content)
        if not old or old not in agent.core[name]:
            raise _Refused(f"'{old}' does not stand in the block {name}")
        return self._write(agent, at, name, agent.core[name].replace(old, _folded(new_content)))

    def _write(self, agent: Agent, at: str, block: str, text: str) -> Sequence[Entry]:
        text = "\n".join(filter(None, text.split("\n")))
        if len(text) > self._block_chars:
            raise _Refused(
                f"the block {block} would have {len(text)} characters, and may have"
                f" {self._block_chars}"
            )
        agent.core[block], agent.edited = text, at
        return ()

    # ------------------------------------------------------------ external context

    def _search(self, agent: Agent, at: str, query: str, page: int) -> Sequence[Entry]:  # noqa: ARG002
        words = query.casefold()
        return _paged([one for one in _earlier(agent) if words in one.text.casefold()], page)

    def _search_date(
        self, agent: Agent, at: str, start_date: str, end_date: str, page: int  # noqa: ARG002
    ) -> Sequence[Entry]:  # fmt: skip
        return _paged(
            [one for one in _earlier(agent) if start_date <= one.at[:10] <= end_date], page
        )

    def _insert(self, agent: Agent, at: str, content: str) -> Sequence[Entry]:
        agent.archival.append(Entry(at, "archival", _folded(content)))
        return ()

    def _search_archive(self, agent: Agent, at: str, query: str, page: int) -> Sequence[Entry]:  # noqa: ARG002
        passages = agent.archival[::-1]
        if not passages:
            return ()
        scores = self._nearness.of([one.text for one in passages], query)
        best = ranked(range(len(passages)), scores, len(passages))
        return _paged([passages[number] for number, _ in best], page)


def _earlier(agent: Agent) -> list[Entry]:
    """What was said before the event that is dealt with, newest first."""
    return agent.recall[-2::-1]


def _paged(entries: list[Entry], page: int) -> list[Entry]:
    return entries[page * PAGE : (page + 1) * PAGE]


def _folded(text: str) -> str:
    return " ".join(text.split())


_ARGUMENTS: Final = {
    tool.name: {
        name: kind for name, kind in tool.parameters["properties"].items()
        if name != "request_heartbeat"
    }
    for tool in TOOLS
}  # fmt: skip
_KINDS: Final = {"string": str, "integer": int}


def _checked(name: str, arguments: dict[str, Any]) -> None:
    """Refuse arguments that are not what the function takes; a page left out is the first."""
    expected = _ARGUMENTS[name]
    if "page" in expected:
        arguments.setdefault("page", 0)
    if set(arguments) != set(expected):
        raise _Refused(f"{name} takes {', '.join(expected)}")
    for key, value in arguments.items():
        try:
            msgspec.convert(value, _KINDS[expected[key]["type"]])
        except msgspec.ValidationError as error:
            raise _Refused(f"{name}: {key}: {error}") from error
        if "enum" in expected[key] and value not in expected[key]["enum"]:
            raise _Refused(f"{name}: {key} is one of {', '.join(expected[key]['enum'])}")
        if key == "page" and value < 0:
            raise _Refused(f"{name}: page is at least 0")
