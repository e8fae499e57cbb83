"""The flat transcript: everything that was said, or its most recent part, and nothing more."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence
from pathlib import Path

from steeltrap.adapters.crowd import alone
from steeltrap.harness.memory import Item, MemoryFault, Query, Subject, Utterance
from steeltrap.harness.tokens import count

__all__ = ["Flat"]


class _Transcript:
    """One tenant's window, oldest turn first, each with the size that counts against it."""

    def __init__(self) -> None:
        self.turns: deque[tuple[Item, int]] = deque()
        self.size = 0

    def add(self, item: Item, size: int, window: int | None) -> None:
        self.turns.append((item, size))
        self.size += size
        while window is not None and self.size > window:
            self.size -= self.turns.popleft()[1]

    def drop(self, words: str) -> None:
        kept = [(item, size) for item, size in self.turns if words not in item.text.casefold()]
        self.turns = deque(kept)
        self.size = sum(size for _, size in kept)


class Flat:
    """Keeps turns verbatim and serves them newest first, whatever the question.

    Newest first, so that the first k items are the window of the last k turns and recall at k
    compares with systems that rank; whoever builds a prompt reverses the list. The window is
    its own retrieval budget: `Query.limit` does not cut it. Each tenant has a transcript and
    a window of its own. Reading changes nothing, and a turn that has left the window is gone.

    Args:
        window_turns: keep the last so many turns.
        window_tokens: keep the last turns that together have at most so many tokens
            (o200k_base, of their texts); turns stay whole, so a turn that is longer than the
            window leaves it empty.
        stamps: serve each turn with the time at which it was said, as `valid_from`.

    Raises:
        ValueError: both windows are set, or one is not positive.
    """

    concurrent = True

    def __init__(
        self,
        *,
        window_turns: int | None = None,
        window_tokens: int | None = None,
        stamps: bool = True,
    ) -> None:
        if window_turns is not None and window_tokens is not None:
            raise ValueError("flat: set window_turns or window_tokens, not both")
        window = window_tokens if window_turns is None else window_turns
        if window is not None and window < 1:
            raise ValueError(f"flat: a window of {window} keeps nothing; set at least 1")
        self._window = window
        self._by_tokens = window_tokens is not None
        self._stamps = stamps
        self._lock = threading.RLock()
        self._transcripts: dict[str, _Transcript] | None = None

    def open(self, folder: Path) -> None:  # noqa: ARG002 - the transcript is kept in memory
        """Begin an empty transcript."""
        self._transcripts = {}

    def close(self) -> None:
        """Drop everything."""
        self._transcripts = None

    @alone
    def ingest(self, turn: Utterance) -> None:
        """Append a turn and let the oldest out of the window."""
        transcript = self._opened().setdefault(turn.tenant, _Transcript())
        item = Item(
            text=turn.text,
            id=turn.id,
            sources=(turn.id,),
            valid_from=turn.at if self._stamps else None,
        )
        transcript.add(item, count(turn.text) if self._by_tokens else 1, self._window)

    def retrieve(self, query: Query) -> Sequence[Item]:
        """The window of the query's tenant, newest turn first."""
        return self.active(query.tenant)[::-1]

    def settle(self) -> None:
        """Nothing runs in the background."""
        self._opened()

    @alone
    def active(self, tenant: str) -> list[Item]:
        """The window, oldest turn first."""
        transcript = self._opened().get(tenant)
        return [item for item, _ in transcript.turns] if transcript else []

    @alone
    def erase(self, tenant: str, subject: Subject | None) -> None:
        """Drop the tenant's transcript, or every turn in it that names the subject's topic.

        A transcript has no other way to find a subject: turns that speak of it without its
        name stay, and turns that name the topic for another reason go.
        """
        transcripts = self._opened()
        if subject is None:
            transcripts.pop(tenant, None)
        elif tenant in transcripts:
            transcripts[tenant].drop(subject.topic.casefold())

    def _opened(self) -> dict[str, _Transcript]:
        if self._transcripts is None:
            raise MemoryFault("flat: not open; call open(folder) first, and nothing after close()")
        return self._transcripts
