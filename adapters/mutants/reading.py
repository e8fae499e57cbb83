"""Defects of reading: the state is right, and the wrong thing is served."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace as changed

import msgspec

from steeltrap.adapters.mutants.base import Mutant, superseded
from steeltrap.harness.memory import Item, Utterance
from steeltrap.harness.script import Op, field_of, tenant_of, topic_of
from steeltrap.workloads.world import Entry, Unit


def _timeless(item: Item) -> Item:
    return msgspec.structs.replace(item, valid_from=None, valid_to=None)


class ServesHistoryUnmarked(Mutant):
    """Serves every earlier value beside the present one, dated, and not marked as past."""

    name = "serves-history-unmarked"
    raises = ("exposed-history",)
    families = ("revision-chain",)

    def now(self, name: str) -> list[Item]:
        unit = self.unit(name)
        old = [self.item(unit, entry) for entry in superseded(unit)] if unit else []
        return [*self.present(name), *old]


class ServesOldUnmarkedAfterRevert(Mutant):
    """After a return to an earlier value, the one in between is served beside it."""

    name = "exposes-after-revert"
    raises = ("exposed-history",)
    families = ("flip-flop",)

    def now(self, name: str) -> list[Item]:
        unit = self.unit(name)
        if unit is None or not _reverted(unit):
            return self.present(name)
        return [*self.present(name), self.item(unit, superseded(unit)[-1])]


class ServesFirst(Mutant):
    """Serves the first value that a unit ever had."""

    name = "serves-first"
    raises = ("stale-read",)
    families = ("revision-chain",)

    def now(self, name: str) -> list[Item]:
        return self.stale(name, lambda old: old[0])

    def stale(
        self, name: str, choose: Callable[[list[Entry]], Entry], least: int = 1
    ) -> list[Item]:
        """One of at least `least` earlier values of a unit that was spoken of directly."""
        unit = self.unit(name)
        old = superseded(unit) if unit else []
        if unit is None or unit.now is None or unit.now.hop or len(old) < least:
            return self.present(name)
        return [self.item(unit, choose(old))]


class StaleAtThirdRevision(ServesFirst):
    """Keeps up with two revisions of a unit, and serves the one before from the third on."""

    name = "stale-at-third-revision"

    def now(self, name: str) -> list[Item]:
        return self.stale(name, lambda old: old[-1], least=3)


class StaleAfterRevert(ServesFirst):
    """Takes a return to an earlier value for an old story, and serves the value in between."""

    name = "stale-after-revert"
    families = ("flip-flop",)

    def now(self, name: str) -> list[Item]:
        unit = self.unit(name)
        if unit is None or not _reverted(unit):
            return self.present(name)
        return self.stale(name, lambda old: old[-1])


class OneTurnBehind(ServesFirst):
    """Serves from a snapshot that is one turn old."""

    name = "one-turn-behind"

    def now(self, name: str) -> list[Item]:
        unit = self.unit(name)
        if unit is None or unit.now is None or unit.now.turn != self.turn_id:
            return self.present(name)
        return self.stale(name, lambda old: old[-1])


class ServesBothTimeless(Mutant):
    """Serves the present value and the one before, with nothing to choose by."""

    name = "serves-both-timeless"
    raises = ("ambiguous-read",)
    families = ("revision-chain",)

    def now(self, name: str) -> list[Item]:
        unit = self.unit(name)
        old = superseded(unit)[-1:] if unit else []
        if unit is None or not old:
            return self.present(name)
        return [_timeless(item) for item in (*self.present(name), self.item(unit, old[0]))]


class AmbiguousAfterRevert(ServesBothTimeless):
    """Flip-flops leave both values standing side by side."""

    name = "ambiguous-after-revert"
    families = ("flip-flop",)

    def now(self, name: str) -> list[Item]:
        unit = self.unit(name)
        return super().now(name) if unit and _reverted(unit) else self.present(name)


class ConfusesLookAlikes(Mutant):
    """Answers with the same field of a topic whose name begins alike."""

    name = "confuses-look-alikes"
    raises = ("wrong-read",)
    families = ("look-alike",)

    def now(self, name: str) -> list[Item]:
        own = self.unit(name)
        other = self.look_alike(name)
        if own is None or other is None or other.now is None or own.now is None or own.now.hop:
            return self.present(name)
        return [self.item(own, changed(own.now, value=other.now.value))]

    def look_alike(self, name: str) -> Unit | None:
        """Another unit of the same field whose topic starts with the same word."""
        start = _first_word(topic_of(name))
        for known in self.world.by_tenant.get(tenant_of(name), {}):
            if known != name and field_of(known) == field_of(name):
                if _first_word(topic_of(known)) == start and (unit := self.unit(known)):
                    return unit
        return None


class DeniesHistory(Mutant):
    """Answers every question about the past with the present."""

    name = "denies-history"
    raises = ("history-denied",)
    families = ("history-audit",)

    def past(self, name: str) -> list[Item]:
        return self.present(name)

    def as_of(self, name: str, at: str) -> list[Item]:
        return self.present(name)


class AsOfIsNow(Mutant):
    """Ignores the instant in a question about the past, and gives no times."""

    name = "as-of-is-now"
    raises = ("history-denied",)
    families = ("history-audit",)

    def as_of(self, name: str, at: str) -> list[Item]:
        return [_timeless(item) for item in self.present(name)]


class AsOfIsFirst(Mutant):
    """Answers a question about an instant with the first value that there was."""

    name = "as-of-is-first"
    raises = ("wrong-read",)
    families = ("history-audit",)

    def as_of(self, name: str, at: str) -> list[Item]:
        chain = [item for item, entry in self._chain(name) if not entry.never_true]
        return [_timeless(item) for item in chain[:1]]


class HistoryWithoutTimes(Mutant):
    """Serves the past without any times: nobody can tell what came when."""

    name = "history-without-times"
    raises = ("ambiguous-read",)
    families = ("history-audit",)

    def past(self, name: str) -> list[Item]:
        return [_timeless(item) for item in super().past(name)]


class AnswersWithRumour(Mutant):
    """Keeps the value on record and answers with the latest rumour."""

    name = "answers-with-rumour"
    raises = ("wrong-read",)
    families = ("authority",)

    def begin(self) -> None:
        self.rumours: dict[str, str | None] = {}

    def take_in(self, turn: Utterance, ops: Sequence[Op]) -> None:
        super().take_in(turn, ops)
        for op in ops:
            if op.unit:
                self.rumours[op.unit] = op.value if op.op == "rumour" else None

    def now(self, name: str) -> list[Item]:
        unit, rumour = self.unit(name), self.rumours.get(name)
        if unit is None or unit.now is None or rumour is None:
            return self.present(name)
        return [self.item(unit, changed(unit.now, value=rumour))]


class ServesWithdrawn(Mutant):
    """Serves a value that was withdrawn."""

    name = "serves-withdrawn"
    raises = ("wrong-read",)
    families = ("retraction",)

    def now(self, name: str) -> list[Item]:
        unit = self.world.units.get(name)
        if unit and unit.state == "unset" and unit.entries[-1].value is None:
            return [self.item(unit, unit.entries[-2])]
        return self.present(name)


class ServesMistaken(Mutant):
    """Serves a value that was corrected: it had never been true."""

    name = "serves-mistaken"
    raises = ("wrong-read",)
    families = ("retraction",)

    def now(self, name: str) -> list[Item]:
        unit = self.unit(name)
        mistaken = [e for e in unit.entries if e.never_true] if unit else []
        return [self.item(unit, mistaken[-1])] if unit and mistaken else self.present(name)


class ServesExpired(Mutant):
    """Serves a value after its time was up."""

    name = "serves-expired"
    raises = ("stale-read",)
    families = ("expiry",)

    def now(self, name: str) -> list[Item]:
        unit = self.world.units.get(name)
        if unit and unit.state == "unset" and unit.now and unit.now.until:
            return [self.item(unit, changed(unit.now, until=None))]
        return self.present(name)


def _reverted(unit: Unit) -> bool:
    """Whether the present value was the value once before, with another in between."""
    assert unit.now is not None
    earlier: list[Entry] = [entry for entry in unit.entries if entry is not unit.now]
    return any(entry.value == unit.now.value for entry in earlier) and bool(superseded(unit))


def _first_word(topic: str) -> str:
    return topic.replace("-", " ").split(" ", 1)[0]
