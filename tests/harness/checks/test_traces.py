"""Traces: what shows of something erased, where, and what must not be taken for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from steeltrap.adapters.flat import Flat
from steeltrap.adapters.ideal import Ideal
from steeltrap.adapters.mutants import MUTANTS
from steeltrap.adapters.mutants.erased import KeepsFiles
from steeltrap.harness.checks import Scored, score
from steeltrap.harness.checks.sighting import Compared, Comparison, Sighting
from steeltrap.harness.checks.traces import LOST, PLACES, compare
from steeltrap.harness.drive import drive
from steeltrap.harness.history import Salience, read_events, read_header
from steeltrap.harness.memory import Item, Memory, MemoryFault, Query, Subject, Told
from steeltrap.harness.readers import Oracle
from steeltrap.harness.record import Effect
from steeltrap.harness.remains import Search
from steeltrap.harness.script import (
    Audit,
    Erasure,
    Gauge,
    Header,
    Op,
    Probe,
    Script,
    Turn,
    TwinSpec,
)
from steeltrap.harness.twins import compare as of_runs
from steeltrap.harness.twins import twin_script
from steeltrap.workloads.compose import ScriptSettings, compose
from steeltrap.workloads.truth import annotate

SPEC = TwinSpec("w", about="existing", gone="acme/Atlas/deadline")
ASKED = Probe(
    id="p1", at="2026-01-07T09:00", tenant="acme", ask="current", group="q1", text="And Borealis?",
    unit="acme/Borealis/deadline",
)  # fmt: skip
LISTED = Gauge(id="g1", at="2026-01-07T09:00", full=True)
LOOKED_UP = Audit(
    id="a1", at="2026-01-07T09:00", tenant="acme", unit="acme/Borealis/deadline", text="Ever?"
)
STEPS = {"served": ASKED, "listing": LISTED, "history": LOOKED_UP}


def small() -> Script:
    """Two units are told and one of them is erased."""
    steps = [
        Turn(id="t1", at="2026-01-05T09:00", tenant="acme", session="s1", unless=("w",),
             text="The deadline of Atlas is 12 March 2026.",
             ops=[Op("tell", "acme/Atlas/deadline", "date:2026-03-12")]),
        Turn(id="t2", at="2026-01-05T09:05", tenant="acme", session="s1",
             text="The deadline of Borealis is 24 April 2026.",
             ops=[Op("tell", "acme/Borealis/deadline", "date:2026-04-24")]),
        Erasure(id="e1", at="2026-01-06T09:00", tenant="acme", unit="acme/Atlas/deadline", unless=("w",)),
        ASKED, LISTED, LOOKED_UP,
    ]  # fmt: skip
    return annotate(Script(Header(name="small", tenants=["acme"], twins=[SPEC]), steps))


def seen(
    place: str, items: Sequence[Item | str], *, i: int = 3, scores: Sequence[float] = (),
    salience: Sequence[Salience] = (),
) -> dict[str, Sighting]:  # fmt: skip
    """A run in which one step showed these items."""
    shown = [Item(item) if isinstance(item, str) else item for item in items]
    step = STEPS[place]
    served, given = ([], shown) if place == "history" else (shown, [])
    size = (len(shown), sum(len(item.text) for item in shown)) if place == "listing" else (0, 0)
    return {step.id: Sighting(step, i, served, list(scores), given, [], list(salience), size=size)}


def compared(
    here: dict[str, Sighting], there: dict[str, Sighting], *again: dict[str, Sighting]
) -> Compared:
    return compare(Comparison(SPEC, small(), here, there, list(again)))


def effect(found: Compared | Scored, what: str) -> Effect:
    """The effect at one place; of none was looked at, an empty one."""
    effects = found.effects if isinstance(found, Compared) else found.outcome.effects
    empty = Effect(twin="", about="existing", what=what, n=0, differing=0)
    return next((e for e in effects if e.what == what), empty)


# ---------------------------------------------------------------- by hand


@pytest.mark.parametrize("place", STEPS)
def test_more_than_in_the_twin_is_a_trace(place: str) -> None:
    """A text that the twin does not show, wherever it stands, is a trace and no loss."""
    found = compared(seen(place, ["a", "b", "ghost"]), seen(place, ["a", "b"]))
    assert [v.name for v in found.violations] == ["trace"]
    assert "ghost" in found.violations[0].observed
    assert (effect(found, place).n, effect(found, place).differing) == (1, 1)
    assert effect(found, LOST).differing == 0


@pytest.mark.parametrize("place", STEPS)
def test_less_than_in_the_twin_is_a_loss(place: str) -> None:
    """What the twin shows and this run does not was lost beside it: an effect and no trace."""
    found = compared(seen(place, ["a"]), seen(place, ["a", "b"]))
    assert not found.violations
    assert (effect(found, LOST).differing, effect(found, LOST).value) == (1, 1)


@given(st.lists(st.sampled_from("abcdef"), max_size=6), st.sets(st.integers(0, 5)))
def test_taking_away_is_never_a_trace(texts: list[str], away: set[int]) -> None:
    """Whatever is missing of what the twin shows, nothing of what is left tells of the erased."""
    left = [text for place, text in enumerate(texts) if place not in away]
    for place in STEPS:
        found = compared(seen(place, left), seen(place, texts))
        assert not found.violations
        assert (effect(found, LOST).differing > 0) == (left != texts)


@given(st.lists(st.sampled_from("abcdef"), max_size=6))
def test_the_same_is_the_same(texts: list[str]) -> None:
    """A run that shows what its twin shows has neither trace nor loss, whatever the ids."""
    for place in STEPS:
        here = [Item(text, id=f"h{n}") for n, text in enumerate(texts)]
        found = compared(seen(place, here), seen(place, texts))
        assert not found.violations
        assert all(one.differing == 0 for one in found.effects)


def test_what_takes_the_place_of_a_loss_is_no_trace() -> None:
    """A list of limited length fills up from what the twin knows too."""
    there = seen("served", ["a", "b"]) | seen("listing", ["a", "b", "c"])
    here = seen("served", ["a", "c"]) | seen("listing", ["a", "c"])
    found = compared(here, there)
    assert not found.violations
    assert effect(found, LOST).value == 1
    ghostly = seen("served", ["a", "ghost"]) | seen("listing", ["a", "c"])
    assert compared(ghostly, there).violations


@pytest.mark.parametrize(
    ("what", "other"),
    [
        ("provenance", Item("a", sources=("t2", "t1"))),
        ("validity", Item("a", sources=("t2",), valid_to="2026-01-06T09:00")),
        ("validity", Item("a", sources=("t2",), review=True)),
    ],
)
def test_another_source_or_time_is_a_trace(what: str, other: Item) -> None:
    """What both show must come from the same turns and hold for the same time."""
    for place in STEPS:
        found = compared(seen(place, [other]), seen(place, [Item("a", sources=("t2",))]))
        assert [v.name for v in found.violations] == ["trace"]
        assert effect(found, what).differing == 1


def test_a_source_that_is_missing_is_a_loss() -> None:
    """A fact whose turn was removed with another lost its source."""
    there = seen("listing", [Item("a", sources=("t2",))])
    found = compared(seen("listing", [Item("a", sources=())]), there)
    assert not found.violations
    assert effect(found, LOST).differing == 1


def test_another_order_score_or_salience_is_a_trace() -> None:
    """The rank of the others, their scores and their saliences are those of the twin."""
    found = compared(seen("served", "ba"), seen("served", "ab"))
    assert effect(found, "order").differing == 1
    assert found.violations
    scored = [seen("served", "ab", scores=scores) for scores in ((2.0, 1.0), (3.0, 1.0))]
    assert effect(compared(*scored), "scores").differing == 1
    assert effect(compared(scored[0], scored[0]), "scores").differing == 0
    salient = [seen("served", "a", salience=[Salience("acme/b/c", s, s)]) for s in (1.0, 2.0)]
    assert effect(compared(*salient), "salience").differing == 1
    assert compared(*salient).violations


def test_a_longer_listing_is_a_trace_by_its_size_alone() -> None:
    """A gauge that only counts tells what is more."""
    count = Gauge(id="g1", at="2026-01-07T09:00")
    here, there = ({"g1": Sighting(count, 4, [], [], [], [], [], size=(n, 9 * n))} for n in (3, 2))
    found = compared(here, there)
    assert effect(found, "size").differing == 1
    assert len(found.violations) == 1
    assert not compared(there, here).violations


def test_repeats_that_differ_as_often_tell_nothing() -> None:
    """What differs from run to run is chance; what differs more often than that is not."""
    here, there = seen("served", ["a", "x"]), seen("served", ["a"])
    chance = compared(here, there, seen("served", ["a"]))
    assert not chance.violations
    assert effect(chance, "served").null == 1
    assert compared(here, there, here).violations


def test_chance_is_counted_and_not_looked_up() -> None:
    """A varying system differs elsewhere in each run: it is how often that counts."""
    other = msgspec.structs.replace(ASKED, id="p2")

    def shown(first: str, second: str) -> dict[str, Sighting]:
        return seen("served", first) | {"p2": Sighting(other, 5, [Item(second)], [], [], [], [])}

    found = compared(shown("x", "b"), shown("a", "b"), shown("x", "c"))
    assert effect(found, "served").null == effect(found, "served").differing == 1
    assert not found.violations


def test_before_the_erasure_nothing_is_compared() -> None:
    """Before it the two differ, as they should."""
    found = compared(seen("served", ["a", "ghost"], i=1), seen("served", ["a"]))
    assert (found.opportunities, found.violations) == (0, [])


def test_one_step_is_told_once() -> None:
    """A text left behind shows in list and size; the step has one violation."""
    found = compared(seen("listing", ["a", "ghost"]), seen("listing", ["a"]))
    assert effect(found, "size").differing == effect(found, "listing").differing == 1
    assert (len(found.violations), found.opportunities) == (1, 1)


# ---------------------------------------------------------------- driven


@cache
def script(family: str, turns: int = 110, seed: int = 0) -> Script:
    return compose(ScriptSettings(name=family, turns=turns, families={family: 1.0}), seed)


def run(memory: Memory, of: Script, folder: Path, name: str) -> Path:
    """The history of a memory, its files searched."""
    files = folder / name
    files.mkdir()
    if isinstance(memory, Told):
        memory.told(of)
    memory.open(files)
    embedder = getattr(memory, "embedder", None)
    search = Search(files, of, embedder.embed if embedder else None)
    drive(memory, of, files.with_suffix(".jsonl"), limit=10, search=search)
    memory.close()
    return files.with_suffix(".jsonl")


def scored(make: Callable[[], Memory], of: Script, folder: Path) -> Scored:
    """A memory on a script and on its first twin."""
    spec = of.header.twins[0]
    here = run(make(), of, folder, "here")
    there = run(make(), twin_script(of, spec), folder, "there")
    able = read_header(here).capabilities
    twins = [of_runs(of, spec, here, there)]
    return score(of, read_events(here), capabilities=able, reader=Oracle(), twins=twins)


SHOWN = {
    "keeps-in-summary": "listing",
    "counts-erased": "listing",
    "leaves-a-tombstone": "history",
    "leaves-index-entry": "served",
    "cites-erased": "provenance",
    "lives-on-in-salience": "salience",
    "derives-erased-again": "listing",
    "logs-erased": "files",
    "keeps-vector-of-erased": "files",
}


@pytest.mark.slow
@pytest.mark.parametrize("name", SHOWN)
def test_each_mutant_shows_where_its_defect_is(name: str, tmp_path: Path) -> None:
    """The effect at the place of the defect tells, and only what follows from it tells besides."""
    found = scored(MUTANTS[name], script("erase-unit"), tmp_path)
    assert effect(found, SHOWN[name]).differing
    assert {v.name for v in found.violations} == {"trace"}
    if SHOWN[name] == "files":
        assert not any(effect(found, place).differing for place in PLACES)


@pytest.mark.slow
@pytest.mark.parametrize("family", ["erase-unit", "erase-tenant"])
def test_a_memory_that_erases_its_files_is_clean(family: str, tmp_path: Path) -> None:
    """With files that are written anew there is no trace, and it is known that there is none."""
    found = scored(KeepsFiles, script(family), tmp_path)
    assert not found.violations
    assert effect(found, "files").n > 20
    assert not found.outcome.verdicts["beyond"].names["trace"].blocked


def test_without_files_it_is_never_held(tmp_path: Path) -> None:
    """A memory that writes nothing has no trace that could be seen, and is not acquitted."""
    found = scored(Ideal, small(), tmp_path)
    assert not found.violations
    verdict = found.outcome.verdicts["beyond"]
    assert "no files" in verdict.names["trace"].blocked
    assert verdict.validity == "unknown"
    assert effect(found, "files").n == 0


def test_one_that_cannot_erase_is_not_accused(tmp_path: Path) -> None:
    """Where nothing can be erased, or the erasure failed, what is still there is no trace."""

    class Fails(Ideal):
        def erase(self, tenant: str, subject: Subject | None) -> None:  # noqa: ARG002
            raise MemoryFault("not today")

    class Cannot(Flat):
        erase = None  # type: ignore[assignment]

    for make in (Fails, Cannot):
        (tmp_path / make.__name__).mkdir()
        found = scored(make, small(), tmp_path / make.__name__)
        assert not [v for v in found.violations if v.name == "trace"]
        assert found.outcome.verdicts["beyond"].names["trace"].blocked


def test_what_was_read_there_is_not_counted_again(tmp_path: Path) -> None:
    """Where the erased value was served by name, the twin adds no second violation."""

    class Serves(Ideal):
        """Serves what was erased with everything else."""

        def erase(self, tenant: str, subject: Subject | None) -> None:
            self.ghost = self.present("acme/Atlas/deadline")
            super().erase(tenant, subject)

        def retrieve(self, query: Query) -> Sequence[Item]:
            return [*super().retrieve(query), *getattr(self, "ghost", ())]

    found = scored(Serves, small(), tmp_path)
    at_probe = [v for v in found.violations if v.step == 3]
    assert [v.name for v in at_probe] == ["trace"]
    assert effect(found, "served").differing == 1
    tally = found.outcome.verdicts["beyond"].names["trace"]
    assert tally.violations <= tally.opportunities


def test_a_record_of_effects_survives_writing(tmp_path: Path) -> None:
    """What was found in the files is read back as it was written."""
    found = scored(MUTANTS["logs-erased"], small(), tmp_path)
    events = list(read_events(tmp_path / "here.jsonl"))
    left = [one for event in events if event.remains for one in event.remains.left]
    assert {one.file for one in left} == {"log.txt"}
    assert effect(found, "files").differing == len({(one.what, one.vector) for one in left})
    assert msgspec.json.decode(msgspec.json.encode(found.outcome.effects), type=list[Effect]) == found.outcome.effects  # fmt: skip
