"""The ideal memory in a body that can be made to fail."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Sequence
from pathlib import Path

from steeltrap.adapters.ideal import Ideal
from steeltrap.harness.memory import Item, Query, Subject, Utterance


class Mortal(Ideal):
    """Dies as it is told, once at each place.

    Args:
        at: by id of a turn or a question, by the time of a pause, or `erase`: how to die.
        notes: a file outside of its folder, where it writes down at what it died.
        ages: how many further turns each later life of it takes, at most; 0: any number.
        forgets: whether a later life has another memory of what was told.
    """

    def __init__(
        self, at: dict[str, str], notes: str, ages: int = 0, *, forgets: bool = False
    ) -> None:
        self._at = at
        self._notes = Path(notes)
        self._ages = ages
        self._forgets = forgets

    def open(self, folder: Path) -> None:
        super().open(folder)
        if list(folder.iterdir()):
            raise RuntimeError("the folder is not empty")
        (folder / "here").touch()
        self._lives = len(self._died())
        self._left = self._ages

    def ingest(self, turn: Utterance) -> None:
        self._meet(turn.id)
        self._left -= 1
        if self._lives and self._left == 0:
            os._exit(9)
        super().ingest(turn)

    def retrieve(self, query: Query) -> Sequence[Item]:
        self._meet(query.id)
        items = super().retrieve(query)
        return [] if self._forgets and self._lives else items

    def maintain(self, at: str) -> None:
        self._meet(at)
        super().maintain(at)

    def erase(self, tenant: str, subject: Subject | None) -> None:
        self._meet("erase")
        super().erase(tenant, subject)

    def _died(self) -> list[str]:
        return self._notes.read_text().split() if self._notes.exists() else []

    def _meet(self, place: str) -> None:
        how = self._at.get(place)
        if how is None or place in self._died():
            return
        with self._notes.open("a") as notes:
            notes.write(f"{place}\n")
        match how:
            case "hang":
                time.sleep(100)
            case "hog":
                held = []
                while True:
                    held.append(bytearray(b"x" * 10_000_000))
                    time.sleep(0.01)
            case "leave":
                os._exit(3)
            case _:
                os.kill(os.getpid(), signal.Signals[f"SIG{how}"])
