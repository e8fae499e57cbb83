"""What a person sees of a whole sweep: how many cells are done, and how long the others may take."""

from __future__ import annotations

import time
from types import TracebackType
from typing import TYPE_CHECKING, Self

from steeltrap.harness.execution.estimate import Estimate, about

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress

__all__ = ["Bar"]


class Bar:
    """Follows the cells of a sweep that run apart; on a terminal with a bar, elsewhere in silence.

    Args:
        total: cells.
        estimate: takes in every cell before this does.
        console: where it is drawn.
    """

    def __init__(self, total: int, estimate: Estimate, console: Console) -> None:
        self._estimate = estimate
        self._bar = _bar(console)
        self._task = self._bar.add_task("cells", total=total, ends=None)

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._bar.stop()

    def __call__(self) -> None:
        """A cell more is done."""
        left = self._estimate.left_s
        ends = None if left is None else time.monotonic() + left
        self._bar.update(self._task, advance=1, ends=ends)


def _bar(console: Console) -> Progress:
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, TextColumn
    from rich.progress import Task as Shown
    from rich.text import Text

    class Left(ProgressColumn):
        max_refresh = 0.5

        def render(self, task: Shown) -> Text:
            ends = task.fields["ends"]
            return Text("" if ends is None else about(max(0.0, ends - time.monotonic())))

    return Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=40),
        MofNCompleteColumn(),
        Left(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )
