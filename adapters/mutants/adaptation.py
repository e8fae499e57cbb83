"""Defects of retrieval: reading leaves no mark, or the wrong one."""

from __future__ import annotations

from steeltrap.adapters.mutants.base import Mutant
from steeltrap.harness.script import tenant_of

FAMILY = ("reinforcement",)
CROWD = 10
"""So many units make it certain that one of them can be watched beside the one that is read."""


class ReadOnly(Mutant):
    """Reading changes nothing."""

    name = "read-only"
    raises = ("inert-retrieval",)
    families = FAMILY

    def touch(self, name: str) -> None:
        return


class ReadOnlyBehindGlass(ReadOnly):
    """Reading changes nothing, and salience cannot be seen: only twins can tell."""

    name = "read-only-behind-glass"
    salience = None  # type: ignore[assignment]


class CountsFirstReadOnly(Mutant):
    """The first read counts and no later one."""

    name = "counts-first-read-only"
    raises = ("inert-retrieval",)
    families = FAMILY

    def touch(self, name: str) -> None:
        self.saliences[name] = max(self.saliences.get(name, 0.0), 1.0)


class CountsAtMaintenance(Mutant):
    """Reads are logged and counted when maintenance runs: the read itself changes nothing."""

    name = "counts-at-maintenance"
    raises = ("inert-retrieval",)
    families = FAMILY

    def begin(self) -> None:
        self.log: list[str] = []

    def touch(self, name: str) -> None:
        self.log = [*self.log, name]

    def maintain(self, at: str) -> None:
        super().maintain(at)
        for name in self.log:
            super().touch(name)
        self.log = []


class ReadingTires(Mutant):
    """What is read loses salience."""

    name = "reading-tires"
    raises = ("wrong-direction",)
    families = FAMILY

    def touch(self, name: str) -> None:
        self.saliences[name] = self.saliences.get(name, 0.0) - 1.0


class ReadingTiresBehindGlass(ReadingTires):
    """What is read loses salience, which cannot be seen: only twins can tell."""

    name = "reading-tires-behind-glass"
    salience = None  # type: ignore[assignment]


class LiftsTheUnread(Mutant):
    """Where much is stored, a read lifts everything but what was read."""

    name = "lifts-the-unread"
    raises = ("unread-favoured",)
    families = FAMILY

    def touch(self, name: str) -> None:
        others = [other for other in self.world.by_tenant[tenant_of(name)] if other != name]
        for other in others if len(others) >= CROWD else [name]:
            super().touch(other)


class LiftsNeighboursMore(Mutant):
    """A read lifts what was read a little and everything else a lot."""

    name = "lifts-neighbours-more"
    raises = ("unread-favoured",)
    families = FAMILY

    def touch(self, name: str) -> None:
        for other in self.world.by_tenant[tenant_of(name)]:
            more = 0.5 if other == name else 2.0
            self.saliences[other] = self.saliences.get(other, 0.0) + more
