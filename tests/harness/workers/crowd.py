"""Memories that several threads may ask at once, in a worker."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path

from steeltrap.harness.memory import Item, MemoryFault, Query, Utterance


class Crowd:
    """Takes as long as it is told to; `die` ends the process, `fault` and `error` raise."""

    concurrent = True

    def open(self, folder: Path) -> None:  # noqa: ARG002
        self.texts: list[str] = []

    def close(self) -> None:
        pass

    def settle(self) -> None:
        pass

    def ingest(self, turn: Utterance) -> None:
        command, _, rest = turn.text.partition(" ")
        match command:
            case "sleep":
                time.sleep(float(rest))
            case "die":
                os._exit(7)
            case "fault":
                raise MemoryFault(rest)
            case "error":
                raise ValueError(rest)
        self.texts.append(turn.text)

    def retrieve(self, query: Query) -> Sequence[Item]:
        time.sleep(0.01)
        return [Item(query.text * query.limit)]


class Alone(Crowd):
    """The same, and does not claim it."""

    concurrent = False
