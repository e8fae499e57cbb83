"""What a person sees while a cell runs: a bar with turns per second and violations so far."""

from __future__ import annotations

import time
from types import TracebackType
from typing import TYPE_CHECKING, Self

from steeltrap.harness.checks import Scorer
from steeltrap.harness.history import Event
from steeltrap.harness.script import Script, Step, Turn

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress

__all__ = ["Watch"]

_REFRESH_S = 0.1


class Watch:
    """Follows the events of a run; on a terminal with a bar, elsewhere in silence.

    Args:
        title: what is run.
        script: what it is run through.
        scorer: counts violations as they show; only used where there is a bar.
        console: where the bar is drawn.
    """

    def __init__(self, title: str, script: Script, scorer: Scorer, console: Console) -> None:
        self._title = title
        self._script = script
        self._scorer = scorer
        self._console = console
        self._turns = 0
        self._steps = 0
        self._began = self._drawn = time.perf_counter()
        self._bar: Progress | None = None

    def __enter__(self) -> Self:
        self._began = time.perf_counter()
        if self._console.is_terminal:
            self._bar = _bar(self._console)
            self._task = self._bar.add_task(
                self._title, total=len(self._script.steps), speed="0", violations=0
            )
            self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar:
            self._bar.stop()
        if error is None:
            seconds = time.perf_counter() - self._began
            self._console.print(f"{self._title}: {seconds:.1f} s", highlight=False, markup=False)

    def __call__(self, step: Step, event: Event) -> None:
        """Take in a step that was done."""
        self._steps += 1
        self._turns += isinstance(step, Turn)
        if self._bar is None:
            return
        self._scorer.observe(step, event)
        now = time.perf_counter()
        if now - self._drawn > _REFRESH_S:
            self._drawn = now
            self._bar.update(
                self._task,
                completed=self._steps,
                speed=f"{self._turns / (now - self._began):,.0f}",
                violations=self._scorer.violations_so_far,
                refresh=True,
            )


def _bar(console: Console) -> Progress:
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=20),
        MofNCompleteColumn(),
        TextColumn("{task.fields[speed]} turns/s, {task.fields[violations]} violations"),
        console=console,
        auto_refresh=False,
        transient=True,
    )
