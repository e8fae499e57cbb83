"""What an agent would send with every turn: its instructions, what its memory serves, the turn.

A script that asks with its turns (`script.requests=true`) puts each turn to the memory just before
it tells it. From the history of such a run the requests are put together here, in two layouts, so
that tokens and what a cache of prefixes would have of them (`gateway.prefix`) can be compared
without running anything again ("Oracle Agent Memory", sections 7.2 and 7.5).

The memory stands in a request a line an item: first what has no time, in the order served, and then
the rest by time, so that a transcript only grows at its end. A turn that could not be asked with has
no request.
"""

from __future__ import annotations

import importlib.resources
import tomllib
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Final

import msgspec

from steeltrap.harness.gateway.prefix import Prefixes, packed
from steeltrap.harness.history import Event
from steeltrap.harness.memory import Item
from steeltrap.harness.record import Request
from steeltrap.harness.script import REQUEST, Probe, Step, Turn
from steeltrap.harness.shelf import Attic, Shelf

__all__ = ["instructions", "lines", "requests"]

_BYTES: Final = 4
"""Of a packed token."""


class _Form(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`requests.toml`."""

    version: int
    instructions: str


@cache
def instructions() -> str:
    """What is the same in every request."""
    text = (importlib.resources.files("steeltrap.harness") / "requests.toml").read_text("utf-8")
    return msgspec.convert(tomllib.loads(text), _Form).instructions.strip() + "\n"


def requests(pairs: Iterable[tuple[Step, Event]]) -> list[Request]:
    """The requests of a run, turn by turn; none where the script does not ask with its turns.

    Args:
        pairs: every step of a run with its outcome, in order.
    """
    attic = Attic()
    items, seen = Shelf[int, Item](attic, Item), 0
    found: list[Request] = []
    desk = _Desk(attic)
    turns = 0
    for step, event in pairs:
        for item in event.new:
            items[seen] = item
            seen += 1
        turns += isinstance(step, Turn)
        if isinstance(step, Probe) and step.category == REQUEST and event.type == "ok":
            served = [items[number] for number in event.served]
            found.append(desk.request(turns + 1, lines(served), f"{step.text}\n"))
    return found


def lines(served: Sequence[Item]) -> list[str]:
    """What a memory served, as it stands in a request."""
    standing = [item for item in served if not item.valid_from]
    # a transcript is served newest first: of one minute's items the last one served came first
    timed = [item for item in reversed(served) if item.valid_from]
    timed.sort(key=lambda item: str(item.valid_from))
    return [_line(item) for item in (*standing, *timed)]


def _line(item: Item) -> str:
    """`- (2026-01-05T09:00) text`, with whatever the system says of how it stands."""
    marks = [item.valid_from] if item.valid_from else []
    marks += [f"until {item.valid_to}"] if item.valid_to else []
    marks += ["needs review"] if item.review else []
    return f"- ({', '.join(marks)}) {item.text}\n" if marks else f"- {item.text}\n"


class _Desk:
    """Where the requests of one run are put together; a line is taken apart once."""

    def __init__(self, attic: Attic) -> None:
        self._instructions = packed(instructions())
        self._packed: Shelf[str, bytes] = Shelf(attic, bytes)
        self._in_order, self._memory_first = Prefixes(), Prefixes()

    def request(self, number: int, memory: Sequence[str], turn: str) -> Request:
        """One request; it counts as read from now on."""
        held = b"".join(map(self._tokens, memory))
        said = packed(turn)
        whole = self._in_order.read_packed(self._instructions + held + said)
        other = self._memory_first.read_packed(held + self._instructions + said)
        return Request(
            turn=number, tokens=whole.tokens, memory_tokens=len(held) // _BYTES,
            characters=len(instructions()) + sum(map(len, memory)) + len(turn),
            cached_tokens=whole.prefix_tokens, cached_memory_first_tokens=other.prefix_tokens,
        )  # fmt: skip

    def _tokens(self, line: str) -> bytes:
        known: bytes | None = self._packed.get(line)
        if known is None:
            known = self._packed[line] = packed(line)
        return known
