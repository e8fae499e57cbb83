"""Runs many short scripts on one memory, one after another, as fast as it goes.

What is slow is done once: the memory is made, its worker started, the gateway opened. Nothing is
written but what the memory writes itself.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Collection
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from steeltrap.harness.checks import score
from steeltrap.harness.checks.scorer import Scored
from steeltrap.harness.driver import Driver, NotOpened, RunStopped
from steeltrap.harness.gateway import Gateway
from steeltrap.harness.history import Event
from steeltrap.harness.memory import Erases, Memory, Told, capabilities
from steeltrap.harness.models import UsesModels
from steeltrap.harness.readers import Reader
from steeltrap.harness.remains import Search, Vectors
from steeltrap.harness.remote import Remote
from steeltrap.harness.script import Script
from steeltrap.harness.twins import compare, twin_script

__all__ = ["LIMIT", "Bench", "NotOpened", "limit_of"]

LIMIT: Final = "limit"
"""A script that shows what it shows only where so few items are served says so in its notes."""


def limit_of(script: Script, otherwise: int) -> int:
    """How many items a query may be served."""
    asked = script.header.notes.get(LIMIT)
    return asked if isinstance(asked, int) else otherwise


class Bench:
    """One memory that is opened again for each script.

    Args:
        make_memory: gives a new memory.
        reader: turns what was served into answers.
        folder: exists and is empty; where the memory writes.
        limit: items that a query may be served, where a script does not say.
        gateway: open; answers the memory's model calls, where it makes any.
        repeats: further runs of the same script beside twins.
        vectors: makes the vectors that the memory gets from the gateway.
    """

    def __init__(
        self,
        make_memory: Callable[[], Memory],
        reader: Reader,
        folder: Path,
        *,
        limit: int,
        gateway: Gateway | None = None,
        repeats: int = 1,
        vectors: Vectors | None = None,
    ) -> None:
        self._make = make_memory
        self._reader = reader
        self._folder = folder
        self._limit = limit
        self._gateway = gateway
        self._repeats = repeats
        self._vectors = vectors
        self._memory: Memory | None = None
        self.runs = 0
        """Lives of the memory so far."""
        self.fresh = False
        """Whether each life is that of a memory made anew."""

    @property
    def ideal(self) -> bool:
        """Whether an ideal model answers: it stops at what it cannot read, and at nothing else."""
        return self._gateway is not None and self._gateway.backend.name == "ideal"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.renew()

    def renew(self) -> None:
        """Let the memory go, so that the next script is run on one that is made anew."""
        memory, self._memory = self._memory, None
        if memory is not None:
            memory.close()

    def run(self, script: Script, twins: Collection[str] = ()) -> Scored:
        """Run a script from an empty memory on, and score what happened.

        Args:
            script: with its truth.
            twins: names of its twins that are run and compared with it.

        Raises:
            NotOpened: the memory cannot be opened.
            RunStopped: a model call cannot be answered.
        """
        specs = [spec for spec in script.header.twins if spec.name in twins]
        events = self._live(script, searched=bool(specs))
        others = [(spec, self._live(twin_script(script, spec))) for spec in specs]
        again: list[list[Event]] = []
        if any(spec.about != "reading" for spec in specs):
            again = [self._live(script) for _ in range(self._repeats)]
        assert self._memory is not None
        return score(
            script,
            events,
            capabilities=capabilities(self._memory),
            reader=self._reader,
            twins=[compare(script, spec, events, there, again) for spec, there in others],
        )

    def _live(self, script: Script, *, searched: bool = False) -> list[Event]:
        """What becomes of each step; `searched`: and of the files, where something is erased."""
        self.runs += 1
        memory = self._opened(script)
        meter = self._gateway.meter if self._gateway else None
        driver = Driver(memory, limit_of(script, self._limit), meter)
        search = None
        if searched and isinstance(memory, Erases):
            # of an embedder in a worker nothing but its name is here
            vectors = getattr(getattr(memory, "embedder", None), "embed", self._vectors)
            search = Search(self._folder, script, vectors)
        events = []
        for i, step in enumerate(script.steps):
            events.append(driver.do(i, step))
            if search:
                events[-1].remains = search.after(i, driver.shown)
        return events

    def _opened(self, script: Script) -> Memory:
        """The memory, empty."""
        if self.fresh:
            self.renew()
        begun = self._memory is not None
        memory = self._memory or self._make()
        self._memory = memory
        if isinstance(memory, Told):
            memory.told(script)
        if isinstance(memory, UsesModels):
            if self._gateway is None:
                raise RunStopped("the memory asks models, and there is no gateway to answer")
            self._gateway.understand(script)
            self._gateway.begin()
            memory.connect(self._gateway.models)
        try:
            self._open(memory, again=begun)
        except Exception as error:  # whatever it is, this memory cannot be run
            words = f"{type(error).__name__}: {error}"
            raise NotOpened(f"the memory cannot be opened: {words}") from error
        return memory

    def _open(self, memory: Memory, *, again: bool) -> None:
        if isinstance(memory, Remote):
            memory.reopen(self._folder)
            return
        if again:
            memory.close()
            self._clear()
        memory.open(self._folder)

    def _clear(self) -> None:
        for path in self._folder.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
