"""A memory without a fault must not be accused because it is made or speaks differently."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import msgspec
import pytest

from steeltrap.adapters.ideal import Ideal
from steeltrap.harness import values
from steeltrap.harness.memory import Item, Query, Subject
from steeltrap.harness.script import Script, field_of, topic_of, unit_id
from steeltrap.harness.validate import examine
from steeltrap.workloads.compose import ScriptSettings, compose
from steeltrap.workloads.figure1 import figure_1
from steeltrap.workloads.world import Entry, Unit


@cache
def scripts() -> list[Script]:
    return [figure_1(), compose(ScriptSettings(name="adversarial", turns=250), 21)]


class Speaking(Ideal):
    """The ideal memory in other words: `form` makes the sentence."""

    form = ""

    def item(self, unit: Unit, entry: Entry, valid_to: str | None = None) -> Item:
        item = super().item(unit, entry, valid_to)
        said = self.form.format(
            topic=topic_of(unit.name),
            field=field_of(unit.name),
            value=values.display(entry.value or ""),
            iso=entry.at[:10],
            day=values.display(f"date:{entry.at[:10]}"),
        )
        return msgspec.structs.replace(item, text=said)


class Possessive(Speaking):
    form = "{topic}'s {field} is {value}"


class Arrow(Speaking):
    form = "{topic} -> {field} -> {value}"


class Heading(Speaking):
    form = "# {topic}\n- {field}: {value}"


class Stamped(Speaking):
    form = "[{iso} 09:00] On {day} the user said that the {field} of {topic} is {value} (3 times)."


class WasThenNow(Speaking):
    """Tells with each value which one it took the place of."""

    def item(self, unit: Unit, entry: Entry, valid_to: str | None = None) -> Item:
        before = [e for e in unit.entries if e.arrival < entry.arrival and e.value]
        self.form = "The {field} of {topic} is {value}."
        if before and before[-1].value != entry.value:
            old = values.display(before[-1].value or "")
            self.form = "The {field} of {topic} changed from " + old + " to {value}."
        return super().item(unit, entry, valid_to)


class Zoned(Ideal):
    """Gives times with seconds and a zone."""

    def item(self, unit: Unit, entry: Entry, valid_to: str | None = None) -> Item:
        item = super().item(unit, entry, valid_to)
        since, until = (at and f"{at}:00+00:00" for at in (item.valid_from, item.valid_to))
        return msgspec.structs.replace(item, valid_from=since, valid_to=until)


class MarkedHistory(Ideal):
    """Serves the past beside the present, each entry marked with its end."""

    def present(self, name: str) -> list[Item]:
        items = super().present(name)
        old = [item for item, entry in self._chain(name) if item.valid_to and not entry.never_true]
        return [*items, *old[-2:]] if items else []

    def listed(self, name: str) -> list[Item]:
        return super().present(name)


class Summaries(Ideal):
    """Adds to each answer what else is known of the topic."""

    def present(self, name: str) -> list[Item]:
        start = name.rsplit("/", 1)[0] + "/"
        mates = [u for u in self.world.by_tenant.get(name.split("/")[0], {}) if u.startswith(start)]
        items = super().present(name)
        extra = [item for mate in mates if mate != name for item in super(Summaries, self).present(mate)]  # fmt: skip
        return [*items, *extra] if items else []

    def listed(self, name: str) -> list[Item]:
        return super().present(name)


class SimilarityScores(Ideal):
    """Orders by salience and gives scores that say something else."""

    def ranked(self, names: Sequence[str]) -> list[Item]:
        return [msgspec.structs.replace(item, score=0.5) for item in super().ranked(names)]


class LazySalience(Ideal):
    """Knows of no salience before the first read."""

    def salience(self, subject: Subject) -> float | None:
        return self.saliences.get(unit_id(subject.tenant, subject.topic, subject.field))


class WithdrawnAsReview(Ideal):
    """Shows a withdrawn value as one to be looked at."""

    def retrieve(self, query: Query) -> Sequence[Item]:
        items = super().retrieve(query)
        name = getattr(self._questions[query.id], "unit", None)
        unit = self.world.units.get(name) if name else None
        if not items and unit and unit.state == "unset" and len(unit.entries) > 1 and unit.entries[-1].value is None:  # fmt: skip
            return [msgspec.structs.replace(self.item(unit, unit.entries[-2]), review=True)]
        return items


class RestatesInHistory(Ideal):
    """Keeps every repetition as an entry of the history."""

    def history_of(self, name: str) -> list[Item]:
        return [item for item in super().history_of(name) for _ in range(2)]


FAULTLESS = [
    Possessive, Arrow, Heading, Stamped, WasThenNow, Zoned, MarkedHistory, Summaries,
    SimilarityScores, LazySalience, WithdrawnAsReview, RestatesInHistory,
]  # fmt: skip


@pytest.mark.parametrize("make", FAULTLESS)
def test_the_faultless_is_not_accused(make: type[Ideal]) -> None:
    """Whatever its shape and wording, a memory that does everything right has no violation."""
    for script in scripts():
        violations, failed = examine(make, script)
        longer_words = {"over-bound"}  # figure 1 leaves no room for more than the plainest sentence
        assert violations - longer_words == set()
        assert failed == 0


class StoresNothing(Ideal):
    """Takes nothing in."""

    def take_in(self, *_: object) -> None:
        return


def test_silence_is_never_held(tmp_path: object) -> None:
    """A memory that stores nothing breaks nothing, and is not said to have held anything."""
    from steeltrap.harness.readers import Oracle
    from steeltrap.harness.run import run_cell
    from steeltrap.harness.store import open_cell, run_spec

    script = scripts()[1]
    spec = run_spec(script, system="nothing", settings={}, reader="oracle", limit=10)
    cell = open_cell(tmp_path, spec, script)  # type: ignore[arg-type]
    record = run_cell(cell, StoresNothing, script, Oracle())
    validities = {c: v.validity for c, v in record.outcome.verdicts.items() if c != "beyond"}
    assert validities == dict.fromkeys(validities, "unknown")
