"""Memories for tests of the harness itself: one that takes notes, and many that mean no good."""

from __future__ import annotations

import os
from pathlib import Path

from steeltrap.adapters.flat import Flat
from steeltrap.harness.memory import Utterance


class Noted(Flat):
    """The transcript; what it is given is noted in the file that ADVERSITY_NOTES names, at once."""

    def open(self, folder: Path) -> None:
        self._note("open")
        super().open(folder)

    def ingest(self, turn: Utterance) -> None:
        super().ingest(turn)
        self._note(turn.id)

    def _note(self, word: str) -> None:
        if name := os.environ.get("ADVERSITY_NOTES"):
            notes = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
            os.write(notes, f"{word}\n".encode())
            os.close(notes)
