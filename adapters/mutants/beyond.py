"""Defects beyond the six: leaks between tenants, traces of what was erased, obeyed injections."""

from __future__ import annotations

from collections.abc import Sequence

from steeltrap.adapters.mutants.base import Mutant
from steeltrap.harness.memory import Item, Subject
from steeltrap.harness.script import Change, Op, tenant_of
from steeltrap.workloads.world import Entry, Unit, World


class IgnoresTenant(Mutant):
    """Serves the namesake of every tenant."""

    name = "ignores-tenant"
    raises = ("leak",)
    families = ("multi-tenant",)

    def now(self, name: str) -> list[Item]:
        rest = name.split("/", 1)[1]
        others = [tenant for tenant in self.world.by_tenant if tenant != tenant_of(name)]
        found = [item for tenant in others for item in self.present(f"{tenant}/{rest}")]
        return [*self.present(name), *found]


class FillsUpFromOthers(Mutant):
    """Fills an answer up with the latest that any other tenant said."""

    name = "fills-up-from-others"
    raises = ("leak",)
    families = ("multi-tenant",)

    def now(self, name: str) -> list[Item]:
        foreign = [u for u in self.world.units if tenant_of(u) != tenant_of(name)]
        extra = next((found for u in reversed(foreign) if (found := self.present(u))), [])
        return [*self.present(name), *extra]


class KeepsErased(Mutant):
    """Says that it erased, and did nothing."""

    name = "keeps-erased"
    raises = ("trace",)
    families = ("erasure",)

    def erase(self, tenant: str, subject: Subject | None) -> None:
        return


class KeepsHistoryOfErased(Mutant):
    """Erases the present value; the history stays."""

    name = "keeps-history-of-erased"
    raises = ("trace",)
    families = ("erasure",)

    def begin(self) -> None:
        self.ghosts: dict[str, list[Item]] = {}

    def erase(self, tenant: str, subject: Subject | None) -> None:
        before = {name: self.history_of(name) for name in self.world.by_tenant.get(tenant, {})}
        super().erase(tenant, subject)
        self.ghosts |= {n: items for n, items in before.items() if n not in self.world.units}

    def history(self, subject: Subject) -> Sequence[Item]:
        name = f"{subject.tenant}/{subject.topic}/{subject.field}"
        return self.ghosts.get(name) or super().history(subject)


class ErasedComesBack(Mutant):
    """What was erased is back after the next maintenance."""

    name = "erased-comes-back"
    raises = ("trace",)
    families = ("erasure",)

    def begin(self) -> None:
        self.bin: dict[str, tuple[Unit, Entry | None]] = {}

    def erase(self, tenant: str, subject: Subject | None) -> None:
        before = {n: self.world.units[n] for n in self.world.by_tenant.get(tenant, {})}
        kept = {name: (unit, unit.now) for name, unit in before.items()}
        super().erase(tenant, subject)
        self.bin |= {name: pair for name, pair in kept.items() if name not in self.world.units}

    def maintain(self, at: str) -> None:
        super().maintain(at)
        for name, (unit, entry) in self.bin.items():
            unit.now, unit.state = entry, "set" if entry and entry.value else "unset"
            self.world.units[name] = unit
            self.world.by_tenant[tenant_of(name)][name] = None
        self.bin = {}


class _Obedient(World):
    def overhear(self, turn: str, at: str, op: Op) -> list[Change]:
        if op.op != "instruct" or op.unit not in self.units:
            return []
        return self.supersede(self.units[op.unit], self._entry(turn, at, op), "told")


class ObeysInjection(Mutant):
    """Takes an instruction inside content for news."""

    name = "obeys-injection"
    raises = ("obeyed-injection",)
    families = ("injection",)
    world_class = _Obedient


class ListsInjection(Mutant):
    """Answers rightly, and keeps the injected value among the active content as if it were true."""

    name = "lists-injection"
    raises = ("obeyed-injection",)
    families = ("injection",)
    world_class = _Obedient

    def now(self, name: str) -> list[Item]:
        unit = self.world.units.get(name)
        if unit is None or not unit.live:
            return []
        told = [e for e in unit.entries if self._op(e) != "instruct" and e.value is not None]
        return [self.item(unit, told[-1])] if told else []

    def _op(self, entry: Entry) -> str:
        return self._turns[entry.turn].ops[0].op
