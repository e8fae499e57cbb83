"""What a person sees while a search runs: the shortest so far, and how many were tried."""

from __future__ import annotations

import time
from types import TracebackType
from typing import TYPE_CHECKING, Self

from steeltrap.harness.shrink import Search

if TYPE_CHECKING:
    from rich.console import Console
    from rich.status import Status

__all__ = ["Progress"]

_REFRESH_S = 0.1


class Progress:
    """Follows a search; on a terminal with one line, elsewhere in silence.

    Args:
        title: what is looked for.
        console: where the line is drawn.
    """

    def __init__(self, title: str, console: Console) -> None:
        self._title = title
        self._console = console
        self._status: Status | None = None
        self._drawn = 0.0

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._status = self._console.status(self._title)
            self._status.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._status:
            self._status.stop()

    def __call__(self, search: Search, doing: str) -> None:
        """Take in how far a search is."""
        best = f"{search.best.turns} turns" if search.best else "nothing yet"
        self.say(f"{best}, {search.tried} tried, {doing}")

    def say(self, words: str) -> None:
        """Show how far it is."""
        now = time.monotonic()
        if self._status is not None and now - self._drawn >= _REFRESH_S:
            self._drawn = now
            self._status.update(f"{self._title}: {words}")
