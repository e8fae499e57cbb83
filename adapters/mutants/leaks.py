"""Defects by which one tenant learns of another: by order, score or number, and by a wrong scope."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase

import msgspec

from steeltrap.adapters.mutants.base import Mutant
from steeltrap.harness.memory import Item
from steeltrap.harness.script import field_of, tenant_of, topic_of
from steeltrap.workloads.world import Entry, Unit

LOOK_ALIKE = 4
"""Letters at the start of two topics' names that make them alike to a careless memory."""


class Sharing(Mutant):
    """Something that other tenants did raises a unit; subclasses say what, and where it shows."""

    raises = ("leak",)
    turns = 100

    def felt(self, name: str) -> float:
        """By how much others have raised a unit."""
        raise NotImplementedError

    def namesakes(self, name: str) -> Iterator[str]:
        """The same unit of every other tenant."""
        own, rest = name.split("/", 1)
        return (f"{tenant}/{rest}" for tenant in self.world.by_tenant if tenant != own)

    def statements(self, name: str) -> int:
        """How often a unit was spoken of."""
        unit = self.world.units.get(name)
        return sum(1 + len(entry.also) for entry in unit.entries) if unit else 0

    def ranked(self, names: Sequence[str]) -> list[Item]:
        """What others have raised stands higher; the scores are the tenant's own."""
        standing = {name: self.saliences.get(name, 0.0) + self.felt(name) for name in names}
        ordered = sorted(names, key=lambda name: -standing[name])
        return [item for name in ordered for item in self.present(name)]


class SharesSalience(Sharing):
    """One salience for all tenants: what one reads rises for all, in order and in score."""

    name = "shares-salience"
    families = ("leak-asking",)

    def felt(self, name: str) -> float:
        return sum(self.saliences.get(other, 0.0) for other in self.namesakes(name))

    def item(self, unit: Unit, entry: Entry, valid_to: str | None = None) -> Item:
        item = super().item(unit, entry, valid_to)
        return msgspec.structs.replace(item, score=(item.score or 0.0) + self.felt(unit.name))


class SharesSalienceLate(SharesSalience):
    """The same, from the third read on."""

    name = "shares-salience-late"

    def felt(self, name: str) -> float:
        return max(0.0, super().felt(name) - 2.0)


class SharesOrder(Sharing):
    """The same in the order alone; the scores are the tenant's own."""

    name = "shares-order"
    families = ("leak-asking",)

    def felt(self, name: str) -> float:
        return sum(self.saliences.get(other, 0.0) for other in self.namesakes(name))


class SharesScores(SharesSalience):
    """The same in the scores alone, and by very little; the order is the tenant's own."""

    name = "shares-scores"

    def felt(self, name: str) -> float:
        return super().felt(name) / 1000

    def ranked(self, names: Sequence[str]) -> list[Item]:
        ordered = sorted(names, key=lambda name: -self.saliences.get(name, 0.0))
        return [item for name in ordered for item in self.present(name)]


class LiftsWhatOthersMention(Sharing):
    """Weighs a unit by how often anybody spoke of it."""

    name = "lifts-what-others-mention"
    families = ("leak-telling",)

    def felt(self, name: str) -> float:
        return sum(map(self.statements, self.namesakes(name)))


class LiftsLookAlikes(Sharing):
    """Takes what others say of a topic of nearly the same name for talk of the tenant's own."""

    name = "lifts-look-alikes"
    families = ("leak-names",)

    def felt(self, name: str) -> float:
        return sum(self.statements(other) for other in _look_alikes(name, self.world.units))


class CutsBeforeItFilters(Sharing):
    """Takes the best few of all tenants, and leaves out afterwards what is not the asker's."""

    name = "cuts-before-it-filters"
    families = ("leak-telling",)
    room = 3

    def ranked(self, names: Sequence[str]) -> list[Item]:
        taken = sum(self.statements(other) for name in names for other in self.namesakes(name))
        return super(Sharing, self).ranked(names)[: max(1, self.room - taken)]


class ServesLookAlikes(Mutant):
    """Serves, beside the tenant's own, what others said of a topic of nearly the same name."""

    name = "serves-look-alikes"
    raises = ("leak",)
    families = ("leak-names",)
    turns = 100

    def now(self, name: str) -> list[Item]:
        alike = _look_alikes(name, self.world.units)
        return [*self.present(name), *(item for other in alike for item in self.present(other))]


class Trespassing(Mutant):
    """Takes scopes for those of a tenant that are none; subclasses say which."""

    raises = ("leak",)
    families = ("leak-scope",)
    turns = 100

    def is_in(self, tenant: str, scope: str) -> bool:
        """Whether a tenant's units are served in a scope that is not its name."""
        raise NotImplementedError

    def now(self, name: str) -> list[Item]:
        scope, rest = name.split("/", 1)
        others = [t for t in self.world.by_tenant if t != scope and self.is_in(t, scope)]
        found = [item for tenant in others for item in self.present(f"{tenant}/{rest}")]
        return [*self.present(name), *found]


class ServesAllWithoutScope(Trespassing):
    """Without a scope everything of everybody is served."""

    name = "serves-all-without-scope"

    def is_in(self, tenant: str, scope: str) -> bool:
        return not scope


class MatchesScopeByPrefix(Trespassing):
    """A scope stands for every tenant whose name begins so."""

    name = "matches-scope-by-prefix"

    def is_in(self, tenant: str, scope: str) -> bool:
        return bool(scope) and tenant.startswith(scope)


class FoldsScope(Trespassing):
    """Upper and lower case of a tenant's name are the same."""

    name = "folds-scope"

    def is_in(self, tenant: str, scope: str) -> bool:
        return tenant.casefold() == scope.casefold()


class TakesScopeForPattern(Trespassing):
    """Signs that stand for anything in a query language do so in a scope."""

    name = "takes-scope-for-pattern"

    def is_in(self, tenant: str, scope: str) -> bool:
        return fnmatchcase(tenant, scope.replace("%", "*"))


class SharesWhatOnceWasCommon(Mutant):
    """Where something was told without a scope, whatever anybody says of it later is for all."""

    name = "shares-what-once-was-common"
    raises = ("leak",)
    families = ("leak-scope",)
    turns = 100

    def now(self, name: str) -> list[Item]:
        rest = name.split("/", 1)[1]
        if self.present(name) or f"/{rest}" not in self.world.units:
            return self.present(name)
        told = [self.unit(f"{tenant}/{rest}") for tenant in self.world.by_tenant]
        latest = max((u for u in told if u and u.now), key=lambda u: u.now.at if u.now else "")
        return self.present(latest.name)


def _look_alikes(name: str, units: dict[str, Unit]) -> list[str]:
    """Units of other tenants whose field is the same and whose topic begins alike."""
    return [
        other
        for other in units
        if tenant_of(other) not in (tenant_of(name), "")
        and field_of(other) == field_of(name)
        and topic_of(other)[:LOOK_ALIKE] == topic_of(name)[:LOOK_ALIKE]
    ]
