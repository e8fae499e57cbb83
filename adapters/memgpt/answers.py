"""How the ideal model manages its memory.

It stores each statement at once: in core memory while there is room, what matters little in
archival storage. What a statement puts out of force it replaces where it sees it. It searches
only for what core memory does not tell. It works out nothing that follows from a rule.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import msgspec

from steeltrap.adapters.memgpt.functions import PAGE
from steeltrap.adapters.memgpt.memory import NONE
from steeltrap.harness.models import Ask, Asked, Mind, NotUnderstood, Reply, ToolCall
from steeltrap.harness.statements import Statement

__all__ = ["answer"]

_WORDS: Final = re.compile(r"Number of words, at most: (\d+)\n\n")
_BLOCK: Final = "human"
_PAGES: Final = 3
"""So far the ideal model reads on where it has not found what it looks for."""


def answer(ask: Ask, mind: Mind) -> Reply | None:
    """Answer the agent's prompt, and that of the summary."""
    user = ask.said("user")
    rows = [msgspec.json.decode(line) for line in user.split("\n") if line.startswith("{")]
    words = _WORDS.match(user)
    if words is not None and rows:
        return _summarised(rows[0]["summary"], rows[1:], int(words[1]), user, mind)
    if not any(tool.name == "core_memory_append" for tool in ask.tools):
        return None
    blocks = {row["block"]: row for row in rows if "block" in row}
    queue = [row for row in rows if "role" in row]
    place = max((n for n, row in enumerate(queue) if row["role"] == "user"), default=None)
    if place is None or _BLOCK not in blocks:
        return None
    event, after = queue[place], queue[place + 1 :]
    done = [msgspec.json.decode(row["text"]) for row in after if row["role"] == "function"]
    core = _Core(blocks[_BLOCK], mind)
    try:
        facts = mind.facts(event["text"], user)
    except NotUnderstood:
        return _looked_up(mind.asked(event["text"]), event["text"], core, done, mind)
    if done:
        return _nothing()
    for fact in facts:
        core.store(fact)
    if any(row["role"] == "system" for row in after):
        _rescue(queue[:place], core, user, mind)
    return _called(core.calls)


def _nothing() -> Reply:
    return Reply(text="There is nothing to do.")


def _called(calls: Sequence[ToolCall]) -> Reply:
    return Reply(calls=tuple(calls), finish="tools") if calls else _nothing()


# ---------------------------------------------------------------- storing


class _Core:
    """The block that it writes to, as it will be after the calls made so far."""

    def __init__(self, block: dict[str, Any], mind: Mind) -> None:
        self._mind, self._limit = mind, int(block["limit"])
        lines = [line for line in str(block["text"]).split("\n") if line]
        self.held: dict[str, Statement | None] = {line: mind.read(line) for line in lines}
        self.calls: list[ToolCall] = []

    @property
    def told(self) -> list[Statement]:
        """What the lines state."""
        return [said for said in self.held.values() if said is not None]

    def store(self, new: Statement) -> None:
        """Find a statement its place; what repeats, or is outranked, needs none."""
        if any(self._mind.repeats(new, old) for old in self.told) or self._outranked(new):
            return
        gone = [line for line, old in self.held.items() if old and self._replaced(new, old)]
        if gone and self._fits(new.text, gone[0]):
            self._replace(gone.pop(0), new)
        elif new.importance != "trivial" and self._fits(new.text):
            self._call("core_memory_append", content=new.text)
            self.held[new.text] = new
        elif new.importance == "vital" and (room := self._lesser(new)):
            self._insert(room)
            self._replace(room, new)
        else:
            self._insert(new.text)
        for line in gone:
            self._call("core_memory_replace", old_content=line, new_content="")
            del self.held[line]

    def _replaced(self, new: Statement, old: Statement) -> bool:
        lapsed = old.sense == "lapses" and old.about == new.about and new.sense == "states"
        return lapsed or self._mind.contradicts(new, old)

    def _outranked(self, new: Statement) -> bool:
        """Whether somebody whose word counts more says otherwise."""
        return new.sense in ("states", "withdraws") and any(
            old.about == new.about and old.sense == "states" and old.said_by != new.said_by
            and not self._mind.contradicts(new, old)
            for old in self.told
        )  # fmt: skip

    def _fits(self, text: str, instead: str = "") -> bool:
        left = [line for line in self.held if line != instead]
        return len("\n".join([*left, text])) <= self._limit

    def _lesser(self, new: Statement) -> str:
        """A line that may make room for what is vital."""
        return next(
            (
                line for line, old in self.held.items()
                if (old is None or old.importance != "vital") and self._fits(new.text, line)
            ), "",
        )  # fmt: skip

    def _replace(self, old: str, new: Statement) -> None:
        self._call("core_memory_replace", old_content=old, new_content=new.text)
        self.held = {
            new.text if line == old else line: new if line == old else said
            for line, said in self.held.items()
        }

    def _insert(self, text: str) -> None:
        arguments = {"content": text, "request_heartbeat": False}
        self.calls.append(ToolCall("archival_memory_insert", arguments))

    def _call(self, name: str, **arguments: str) -> None:
        self.calls.append(ToolCall(name, {"name": _BLOCK, **arguments, "request_heartbeat": False}))


def _rescue(queue: Sequence[dict[str, Any]], core: _Core, shown: str, mind: Mind) -> None:
    """Store what older messages state and no call in sight has stored: what others than the user said."""
    stored = {row["text"] for row in queue if row["role"] == "function"}
    for row in queue:
        if row["role"] == "assistant":
            for fact in _facts(row["text"], shown, mind):
                if not any(fact.text in text for text in stored):
                    core.store(fact)


def _facts(text: str, shown: str, mind: Mind) -> Sequence[Statement]:
    """What a message states; a question states nothing."""
    try:
        return mind.facts(text, shown)
    except NotUnderstood:
        mind.asked(text)
        return ()


# ---------------------------------------------------------------- searching


def _looked_up(
    asked: Asked, question: str, core: _Core, done: Sequence[dict[str, Any]], mind: Mind
) -> Reply:
    """The next searches for a question, as long as something is not found and there is more."""
    calls: list[ToolCall] = []
    if not asked.places:
        calls += _next("archival_memory_search", question, done, pages=1)
    for topic, field in asked.places:
        if asked.mode == "current" and _told(topic, field, core.told):
            continue
        archive = f"{field} of {topic}"
        calls += _next("archival_memory_search", archive, done, pages=1)
        seen = _found("archival_memory_search", archive, done)
        known = _told(topic, field, filter(None, map(mind.read, seen)))
        if asked.mode != "current" or (done and not known):
            calls += _next("conversation_search", topic, done, pages=_PAGES)
    return _called(list({msgspec.json.encode(call): call for call in calls}.values()))


def _told(topic: str, field: str, statements: Iterable[Statement]) -> bool:
    return any(
        said.about == (topic, field) and said.sense in ("states", "withdraws")
        for said in statements
    )


def _found(name: str, query: str, done: Sequence[dict[str, Any]]) -> list[str]:
    return [text for page in _pages(name, query, done) for text in page]


def _pages(name: str, query: str, done: Sequence[dict[str, Any]]) -> Iterator[list[str]]:
    for call in done:
        if call["call"] == name and call["arguments"].get("query") == query:
            yield [one["text"] for one in call.get("found", ())]


def _next(
    name: str, query: str, done: Sequence[dict[str, Any]], *, pages: int
) -> Iterator[ToolCall]:
    """The next page of a search, while the last one was full."""
    read = list(_pages(name, query, done))
    if len(read) < pages and (not read or len(read[-1]) == PAGE):
        arguments = {"query": query, "page": len(read), "request_heartbeat": True}
        yield ToolCall(name, arguments)


# ---------------------------------------------------------------- summing up


def _summarised(
    summary: Sequence[str], rows: Sequence[dict[str, Any]], words: int, shown: str, mind: Mind
) -> Reply:
    """What holds, as much of the latest of it as the words allow."""
    held: dict[str, Statement | None] = {line: mind.read(line) for line in summary}
    for row in rows:
        if row["role"] in ("user", "assistant"):
            for new in _facts(row["text"], shown, mind):
                gone = [line for line, old in held.items() if old and mind.contradicts(new, old)]
                held = {line: old for line, old in held.items() if line not in gone}
                held[new.text] = new
    kept: list[str] = []
    for line in list(held)[::-1]:
        words -= len(line.split())
        if words < 0:
            break
        kept.append(line)
    return Reply(text="\n".join(kept[::-1]) or NONE)
