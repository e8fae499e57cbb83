"""Defects of provenance: the history or the sources of a unit are not what they should be."""

from __future__ import annotations

from dataclasses import replace as changed

import msgspec

from steeltrap.adapters.mutants.base import Mutant
from steeltrap.harness.memory import Item
from steeltrap.workloads.world import Entry


class KeepsTwoVersions(Mutant):
    """Keeps the present value and the one before."""

    name = "keeps-two-versions"
    raises = ("lost-history",)
    families = ("revision-chain",)

    def history_of(self, name: str) -> list[Item]:
        return super().history_of(name)[-2:]


class OverwritesInPlace(Mutant):
    """The present value replaces whatever was there."""

    name = "overwrites-in-place"
    raises = ("lost-history",)
    families = ("revision-chain",)

    def history_of(self, name: str) -> list[Item]:
        return super().history_of(name)[-1:]


class MergesEqualValues(Mutant):
    """Two entries of the same value become one."""

    name = "merges-equal-values"
    raises = ("lost-history",)
    families = ("flip-flop",)

    def history_of(self, name: str) -> list[Item]:
        return list({item.text: item for item in reversed(super().history_of(name))}.values())[::-1]


class ForgetsHistoryAtMaintenance(Mutant):
    """Maintenance cleans the history away."""

    name = "forgets-history-at-maintenance"
    raises = ("lost-history",)
    families = ("revision-chain",)

    def begin(self) -> None:
        self.cleaned: tuple[str, ...] = ()

    def maintain(self, at: str) -> None:
        super().maintain(at)
        self.cleaned = tuple(self.world.units)

    def history_of(self, name: str) -> list[Item]:
        history = super().history_of(name)
        return history[-1:] if name in self.cleaned else history


class DropsCorrected(Mutant):
    """A value that was corrected leaves no entry behind."""

    name = "drops-corrected"
    raises = ("lost-history",)
    families = ("retraction",)

    def history_of(self, name: str) -> list[Item]:
        return [item for item, entry in self._chain(name) if not entry.never_true]


class DropsSources(Mutant):
    """Says of nothing where it came from."""

    name = "drops-sources"
    raises = ("lost-source",)
    families = ("revision-chain",)

    def history_of(self, name: str) -> list[Item]:
        return [msgspec.structs.replace(item, sources=()) for item in super().history_of(name)]


class DropsSourcesOfThePast(Mutant):
    """Once a value is superseded, its source is forgotten."""

    name = "drops-sources-of-the-past"
    raises = ("lost-source",)
    families = ("revision-chain",)

    def history_of(self, name: str) -> list[Item]:
        history = super().history_of(name)
        past = [msgspec.structs.replace(item, sources=()) for item in history[:-1]]
        return [*past, *history[-1:]]


class CreditsRestatement(Mutant):
    """Whoever said it last is taken for the source."""

    name = "credits-restatement"
    raises = ("lost-source",)
    families = ("restatement-flood",)

    def sources(self, entry: Entry) -> tuple[str, ...]:
        return (entry.turn, *entry.also)[-1:]


class CreditsLatestTurn(Mutant):
    """Names the latest turn of all beside the source."""

    name = "credits-latest-turn"
    raises = ("invented-source",)
    families = ("revision-chain",)

    def history_of(self, name: str) -> list[Item]:
        return [
            msgspec.structs.replace(item, sources=(*(item.sources or ()), self.turn_id))
            for item in super().history_of(name)
        ]


class CreditsUnknownTurn(Mutant):
    """Names a turn that does not exist."""

    name = "credits-unknown-turn"
    raises = ("invented-source",)
    families = ("revision-chain",)

    def history_of(self, name: str) -> list[Item]:
        return [
            msgspec.structs.replace(item, sources=(*(item.sources or ()), "t9999999"))
            for item in super().history_of(name)
        ]


class CreditsFirstTurn(Mutant):
    """All values of a unit are credited to the turn of its first."""

    name = "credits-first-turn"
    raises = ("lost-source",)
    families = ("revision-chain",)

    def history_of(self, name: str) -> list[Item]:
        chain = self._chain(name)
        if not chain:
            return []
        first, unit = chain[0][1].turn, self.world.units[name]
        return [self.item(unit, changed(entry, turn=first, also=())) for _, entry in chain]


class HistoryBackwards(Mutant):
    """Gives the history newest first, as if that were the order of events."""

    name = "history-backwards"
    raises = ("wrong-order",)
    families = ("revision-chain",)

    def history_of(self, name: str) -> list[Item]:
        return super().history_of(name)[::-1]


class HistoryByArrival(Mutant):
    """Late news about the past stands at the end of the history."""

    name = "history-by-arrival"
    raises = ("wrong-order",)
    families = ("out-of-order",)

    def history_of(self, name: str) -> list[Item]:
        chain = sorted(self._chain(name), key=lambda pair: pair[1].arrival)
        return [item for item, _ in chain]


class SwapsLastTwo(Mutant):
    """From the third entry on, the last two change places."""

    name = "swaps-last-two"
    raises = ("wrong-order",)
    families = ("revision-chain",)

    def history_of(self, name: str) -> list[Item]:
        history = super().history_of(name)
        return [*history[:-2], history[-1], history[-2]] if len(history) > 2 else history
