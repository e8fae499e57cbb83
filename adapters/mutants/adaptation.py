"""Defects of retrieval: reading leaves no mark, or the wrong one, or looking leaves one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from steeltrap.adapters.ideal import Ideal
from steeltrap.adapters.mutants.base import Mutant
from steeltrap.adapters.mutants.bound import Forgets
from steeltrap.harness.memory import Item, Subject
from steeltrap.harness.script import field_of, tenant_of, unit_id

FAMILY = ("reinforcement",)
DOSE = ("dose",)
GROUPS = 350
"""Turns in which so many doses are given that their effect is told from chance."""
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


# ---------------------------------------------------------------- how often something is read


class CountsFirstReadOnlyBehindGlass(CountsFirstReadOnly):
    """The first read counts and no later one, and salience cannot be seen: only doses can tell."""

    name = "counts-first-read-only-behind-glass"
    families = DOSE
    turns = GROUPS
    salience = None  # type: ignore[assignment]


class Saturates(Mutant):
    """From the sixth on, reads count for nothing."""

    name = "saturates"
    raises = ("inert-retrieval",)
    families = DOSE
    turns = GROUPS

    def touch(self, name: str) -> None:
        self.saliences[name] = min(5.0, self.saliences.get(name, 0.0) + 1.0)

    def maintain(self, at: str) -> None:
        self.world.advance(at)


class SaturatesBehindGlass(Saturates):
    """From the sixth on, reads count for nothing, and salience cannot be seen."""

    name = "saturates-behind-glass"
    salience = None  # type: ignore[assignment]


class WearsOut(Mutant):
    """Ten reads do good; every further one takes more away than it gave."""

    name = "wears-out"
    raises = ("wrong-direction",)
    families = DOSE
    turns = GROUPS

    def begin(self) -> None:
        self.reads: Counter[str] = Counter()

    def touch(self, name: str) -> None:
        self.reads[name] += 1
        gain = 1.0 if self.reads[name] <= 10 else -2.0
        self.saliences[name] = self.saliences.get(name, 0.0) + gain

    def fork(self) -> Ideal:
        twin = super().fork()
        assert isinstance(twin, WearsOut)
        twin.reads = self.reads.copy()
        return twin


class WearsOutBehindGlass(WearsOut):
    """Ten reads do good and further ones harm, and salience cannot be seen."""

    name = "wears-out-behind-glass"
    salience = None  # type: ignore[assignment]


class ForgetsRegardless(Forgets):
    """Salience rises with each read, and has no say in what is forgotten."""

    name = "forgets-regardless"
    raises = ("inert-retrieval",)
    families = DOSE
    turns = GROUPS

    def gone(self, name: str) -> bool:
        if self.importance(name) != "trivial" or self.silent_for(name) <= 12:
            return False
        return list(self.world.units).index(name) % 2 == 0


class ForgetsMostReadFirst(Forgets):
    """What was read five times is forgotten first, however salient it is."""

    name = "forgets-most-read-first"
    raises = ("wrong-direction",)
    families = DOSE
    turns = GROUPS

    def begin(self) -> None:
        super().begin()
        self.reads: Counter[str] = Counter()

    def touch(self, name: str) -> None:
        super().touch(name)
        self.reads = self.reads + Counter([name])

    def gone(self, name: str) -> bool:
        trivial = self.importance(name) == "trivial"
        return trivial and self.silent_for(name) > 12 and self.reads[name] >= 5


class LiftsWhatStandsBeside(Mutant):
    """A read lifts what was read, and everything of the same field twice as much."""

    name = "lifts-what-stands-beside"
    raises = ("unread-favoured",)
    families = DOSE
    turns = GROUPS

    def touch(self, name: str) -> None:
        super().touch(name)
        for other in self.world.by_tenant[tenant_of(name)]:
            if other != name and field_of(other) == field_of(name):
                self.saliences[other] = self.saliences.get(other, 0.0) + 2.0


class LiftsWhatStandsBesideBehindGlass(LiftsWhatStandsBeside):
    """As `lifts-what-stands-beside`, and salience cannot be seen."""

    name = "lifts-what-stands-beside-behind-glass"
    salience = None  # type: ignore[assignment]


# ---------------------------------------------------------------- who only looks


class LookUpsCount(Mutant):
    """Looking a history up counts as reading it."""

    name = "look-ups-count"
    raises = ("observer-effect",)
    families = DOSE

    def history(self, subject: Subject) -> Sequence[Item]:
        found = super().history(subject)
        self.touch(unit_id(subject.tenant, subject.topic, subject.field))
        return found


class ExportsCount(Mutant):
    """Listing everything counts as reading everything."""

    name = "exports-count"
    raises = ("observer-effect",)
    families = DOSE

    def active(self, tenant: str) -> Sequence[Item]:
        for name in self.world.by_tenant.get(tenant, {}):
            self.touch(name)
        return super().active(tenant)


class SharesWithCopies(Mutant):
    """A copy writes to the salience of its original."""

    name = "shares-with-copies"
    raises = ("observer-effect",)
    families = DOSE

    def fork(self) -> Ideal:
        twin = super().fork()
        twin.saliences = self.saliences
        return twin
