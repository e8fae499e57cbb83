"""Memories that hold one value a unit: a sound one, and others with one defect each under load."""

from __future__ import annotations

import re
import threading
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from queue import Queue
from time import perf_counter, sleep
from typing import Any

from steeltrap.harness.memory import Item, MemoryFault, Query, Utterance

_SAID = re.compile(r"The (.+) is ([A-Z]{2}-\d+)\.")
_ASKED = re.compile(r"What is the (.+)\?")
MOMENT_S = 0.002
"""Long enough for another thread to come in between."""


class Sound:
    """The latest value of each unit, under one lock."""

    concurrent = True

    def __init__(self) -> None:
        self.lock: Any = threading.Lock()
        self.held: dict[str, dict[str, str]] = {}
        self.asking = 0
        """Operations that are under way."""

    def open(self, folder: Path) -> None:  # noqa: ARG002
        self.held = {}

    def close(self) -> None:
        pass

    def settle(self) -> None:
        pass

    def ingest(self, turn: Utterance) -> None:
        said = _SAID.fullmatch(turn.text)
        assert said is not None
        self.asking += 1
        try:
            with self.lock:
                self.take(turn.tenant, said[1], said[2])
        finally:
            self.asking -= 1

    def take(self, tenant: str, place: str, code: str) -> None:
        self.held.setdefault(tenant, {})[place] = code

    def retrieve(self, query: Query) -> Sequence[Item]:
        asked = _ASKED.fullmatch(query.text)
        assert asked is not None
        with self.lock:
            return self.answer(query.tenant, asked[1])

    def answer(self, tenant: str, place: str) -> list[Item]:
        code = self.held.get(tenant, {}).get(place)
        return [said(place, code)] if code else []

    def active(self, tenant: str) -> Sequence[Item]:
        with self.lock:
            return [said(place, code) for place, code in self.held.get(tenant, {}).items()]


def said(place: str, code: str) -> Item:
    return Item(f"The {place} is {code}.")


class LockTooFew(Sound):
    """Everything is one map that is read, changed and put back, and nobody waits for the other."""

    def __init__(self) -> None:
        super().__init__()
        self.lock = nullcontext()

    def take(self, tenant: str, place: str, code: str) -> None:
        kept = {name: dict(held) for name, held in self.held.items()}
        sleep(MOMENT_S)
        kept.setdefault(tenant, {})[place] = code
        self.held = kept


class LosesInACrowd(Sound):
    """What comes while something else is taken in is acknowledged and dropped."""

    def take(self, tenant: str, place: str, code: str) -> None:
        sleep(MOMENT_S)
        if self.asking == 1:
            super().take(tenant, place, code)


class DoublesInACrowd(Sound):
    """What comes while something else is taken in is taken in twice."""

    def __init__(self) -> None:
        super().__init__()
        self.twice: set[str] = set()

    def take(self, tenant: str, place: str, code: str) -> None:
        sleep(MOMENT_S)
        super().take(tenant, place, code)
        if self.asking > 1:
            self.twice.add(code)

    def active(self, tenant: str) -> Sequence[Item]:
        listed = super().active(tenant)
        return [*listed, *(item for item in listed if item.text.split()[-1][:-1] in self.twice)]


class OneTenantAtATime(Sound):
    """Whose turn it is, is kept in one place for all."""

    def __init__(self) -> None:
        super().__init__()
        self.lock = nullcontext()
        self.tenant = ""

    def answer(self, tenant: str, place: str) -> list[Item]:
        self.tenant = tenant
        sleep(MOMENT_S)
        return super().answer(self.tenant, place)


class Stale(Sound):
    """Reads from a copy that is made anew every tenth of a second."""

    def __init__(self) -> None:
        super().__init__()
        self.copy: dict[str, dict[str, str]] = {}
        self.made = 0.0

    def settle(self) -> None:
        self.made = 0.0

    def answer(self, tenant: str, place: str) -> list[Item]:
        if perf_counter() - self.made > 0.1:
            self.copy = {name: dict(held) for name, held in self.held.items()}
            self.made = perf_counter()
        code = self.copy.get(tenant, {}).get(place)
        return [said(place, code)] if code else []


class TwoReplicas(Stale):
    """Every other question goes to that copy."""

    def __init__(self) -> None:
        super().__init__()
        self.turn = False

    def answer(self, tenant: str, place: str) -> list[Item]:
        self.turn = not self.turn
        return super().answer(tenant, place) if self.turn else Sound.answer(self, tenant, place)


class ServesBoth(Sound):
    """Serves a value together with the one that it replaced, and nothing to choose by."""

    def __init__(self) -> None:
        super().__init__()
        self.before: dict[tuple[str, str], str] = {}

    def take(self, tenant: str, place: str, code: str) -> None:
        if old := self.held.get(tenant, {}).get(place):
            self.before[tenant, place] = old
        super().take(tenant, place, code)

    def answer(self, tenant: str, place: str) -> list[Item]:
        found = super().answer(tenant, place)
        old = self.before.get((tenant, place))
        return [*found, said(place, old)] if found and old else found


class ListsOld(ServesBoth):
    """Lists a value together with the one that it replaced."""

    def answer(self, tenant: str, place: str) -> list[Item]:
        return Sound.answer(self, tenant, place)

    def active(self, tenant: str) -> Sequence[Item]:
        old = [said(place, code) for (of, place), code in self.before.items() if of == tenant]
        return [*super().active(tenant), *old]


class Garbles(Sound):
    """Now and then a value comes out with another's last digits."""

    def answer(self, tenant: str, place: str) -> list[Item]:
        found = super().answer(tenant, place)
        return [Item(item.text.replace("7.", "8.")) for item in found]


class RefusesTooLate(Sound):
    """Stores one in five, and then says that it has not."""

    def take(self, tenant: str, place: str, code: str) -> None:
        super().take(tenant, place, code)
        if int(code[-6:]) % 5 == 0:
            raise MemoryFault("no")


class Background(Sound):
    """Sound, and acknowledges before it has worked through what it was told, one after the other."""

    AFTER_S = 0.06

    def open(self, folder: Path) -> None:
        super().open(folder)
        self.told: Queue[tuple[float, Utterance]] = Queue()
        threading.Thread(target=self._work, args=(self.told,), daemon=True).start()

    def _work(self, told: Queue[tuple[float, Utterance]]) -> None:
        while True:
            due, turn = told.get()
            sleep(max(0.0, due - perf_counter()))
            super().ingest(turn)
            told.task_done()

    def ingest(self, turn: Utterance) -> None:
        self.told.put((perf_counter() + self.AFTER_S, turn))

    def settle(self) -> None:
        self.told.join()


class StallsOnce(Sound):
    """Stands still for three tenths of a second, once, for everybody."""

    def __init__(self) -> None:
        super().__init__()
        self.told = 0

    def take(self, tenant: str, place: str, code: str) -> None:
        self.told += 1
        if self.told == 20:
            sleep(0.3)
        super().take(tenant, place, code)
