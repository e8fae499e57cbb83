"""The shortest conversation that shows a violation: small, true, the same for the same seed."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path

import pytest
from msgspec import structs

from steeltrap.adapters.ideal import Ideal
from steeltrap.adapters.mutants import MUTANTS
from steeltrap.harness.bench import LIMIT, Bench, limit_of
from steeltrap.harness.commands.shrink import MEANS
from steeltrap.harness.memory import Item, Memory, Query
from steeltrap.harness.readers import Oracle
from steeltrap.harness.script import Header, Op, Probe, Script, Turn
from steeltrap.harness.shrink import Journal, Search, ShrinkError, Shrunk, Target
from steeltrap.harness.verdict import Violation
from steeltrap.workloads.check import check
from steeltrap.workloads.compose import ScriptSettings, compose
from steeltrap.workloads.retell import retold

DOZEN = (
    "serves-history-unmarked", "never-supersedes", "resurrects-on-echo", "believes-rumours",
    "tears-turns", "propagates-one-hop", "off-by-one-year", "cycle-never-settles",
    "keeps-two-versions", "credits-latest-turn", "appends-turns", "never-keeps-vital",
    "read-only", "lifts-neighbours-more", "ignores-tenant", "keeps-history-of-erased",
    "obeys-injection",
)  # fmt: skip


class ServesOldestFirst(Ideal):
    """Serves what a unit ever was, the oldest first, and no more than it may."""

    def retrieve(self, query: Query) -> Sequence[Item]:
        question = self._questions[query.id]
        if isinstance(question, Probe) and question.ask == "current" and question.unit:
            told = self.history_of(question.unit)[: query.limit]
            return [structs.replace(item, valid_to=None) for item in told]
        return super().retrieve(query)


@cache
def family(name: str, turns: int, seed: int = 0) -> Script:
    return compose(ScriptSettings(name=name, turns=turns, families={name: 1.0}), seed)


def home(name: str) -> Script:
    return family(MUTANTS[name].families[0], MUTANTS[name].turns)


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Callable[..., Bench]]:
    """Makes benches, which are cleared away afterwards."""
    made: list[Bench] = []

    def opened(memory: Callable[[], Memory]) -> Bench:
        folder = tmp_path / f"bench-{len(made)}"
        folder.mkdir()
        made.append(Bench(memory, Oracle(), folder, limit=10))
        return made[-1]

    yield opened
    for one in made:
        one.renew()


def shown(bench: Bench, script: Script) -> dict[str, tuple[Violation, bool]]:
    """The first violation of each name, and whether twins show it."""
    alone = {v.name for v in bench.run(script).violations}
    scored = bench.run(script, [twin.name for twin in script.header.twins])
    found: dict[str, tuple[Violation, bool]] = {}
    for violation in scored.violations:
        found.setdefault(violation.name, (violation, violation.name not in alone))
    return found


def search(
    bench: Bench, script: Script, violation: Violation, *, twinned: bool = False,
    journal: Journal | None = None, **more: object,
) -> Search:  # fmt: skip
    target = Target.of(script, violation, twinned=twinned)
    return Search(bench, MEANS, target, journal or Journal(None, {}), 10, **more)  # type: ignore[arg-type]


def shrunk(bench: Bench, script: Script, name: str, **more: object) -> Shrunk:
    violation, twinned = shown(bench, script)[name]
    return search(bench, script, violation, twinned=twinned, **more).run(script, violation)


@pytest.mark.parametrize("name", DOZEN)
def test_what_a_mutant_does_is_shown_in_a_few_turns(
    name: str, bench: Callable[..., Bench], tmp_path: Path
) -> None:
    """Every violation of a mutant: at most 8 turns, a true script, shown anew, none to spare."""
    mutant, script = MUTANTS[name], home(name)
    on = bench(mutant)
    for violation_name, (violation, twinned) in shown(on, script).items():
        found = search(on, script, violation, twinned=twinned).run(script, violation)
        assert found.finished and found.confirmed
        assert found.script.turns <= 8
        assert found.violation.name == violation_name
        found.script.write(tmp_path / "small.jsonl")
        check(tmp_path / "small.jsonl")
        again = shown(bench(mutant), found.script)
        assert violation_name in again
        for step in found.script.steps:
            if isinstance(step, Turn):
                rest = [one for one in found.script.steps if one is not step]
                less = retold(found.script.header, rest)
                assert less is None or violation_name not in shown(on, less)


def test_the_ideal_memory_shows_nothing_of_it(bench: Callable[..., Bench]) -> None:
    """What was shrunk is the memory's fault: the ideal memory holds on the same script."""
    script = home("propagates-one-hop")
    found = shrunk(bench(MUTANTS["propagates-one-hop"]), script, "missed-propagation")
    assert not shown(bench(Ideal), found.script)


@pytest.mark.parametrize("name", ["lives-on-in-salience", "cites-erased"])
def test_a_twin_is_without_what_is_erased_and_nothing_else(
    name: str, bench: Callable[..., Bench]
) -> None:
    """While a trace is shrunk its twin stays one that differs in what is erased alone: the ideal
    memory shows nothing on what is left."""
    found = shrunk(bench(MUTANTS[name]), home(name), "trace")
    assert "trace" in shown(bench(MUTANTS[name]), found.script)
    assert not shown(bench(Ideal), found.script)


def test_the_same_seed_gives_the_same_bytes(bench: Callable[..., Bench]) -> None:
    """For one seed the result is one; another seed tries in another order."""
    on, script = bench(MUTANTS["keeps-two-versions"]), home("keeps-two-versions")
    first, again, other = (
        shrunk(on, script, "lost-history", seed=seed).script for seed in (0, 0, 9)
    )
    assert first.sha256() == again.sha256()
    assert other.turns == first.turns


@pytest.mark.parametrize("tried_before", [1, 3, 7, 15])
def test_a_search_that_was_stopped_goes_on(
    tried_before: int, bench: Callable[..., Bench], tmp_path: Path
) -> None:
    """With its journal it ends where it would have ended, and runs nothing twice."""
    on, script = bench(MUTANTS["propagates-one-hop"]), home("propagates-one-hop")
    violation, _ = shown(on, script)["missed-propagation"]
    whole = search(on, script, violation).run(script, violation)
    path, of = tmp_path / "journal", {"run": 1}
    first = search(on, script, violation, journal=Journal(path, of), budget_runs=tried_before)
    with contextlib.suppress(ShrinkError):
        assert not first.run(script, violation).finished
    assert first.tried == tried_before
    with path.open("ab") as torn:
        torn.write(b'{"script":"12')
    before = on.runs
    journal = Journal(path, of)
    second = search(on, script, violation, journal=journal).run(script, violation)
    assert second.script.sha256() == whole.script.sha256()
    assert on.runs - before == whole.tried - tried_before + 1  # and one to confirm it


def test_a_journal_of_something_else_is_begun_anew(tmp_path: Path) -> None:
    """Verdicts on another violation or system are not used."""
    path = tmp_path / "journal"
    Journal(path, {"run": 1}).add("abc", shows=True)
    assert Journal(path, {"run": 1}).verdicts == {"abc": True}
    assert Journal(path, {"run": 2}).verdicts == {}


def test_an_interrupted_search_has_the_shortest_so_far(bench: Callable[..., Bench]) -> None:
    """Whenever it is stopped, `best` shows the violation."""
    on, script = bench(MUTANTS["never-supersedes"]), home("never-supersedes")
    violation, _ = shown(on, script)["superseded-active"]

    def stop(one: Search, _doing: str) -> None:
        if one.best is not None and one.tried > 4:
            raise KeyboardInterrupt

    stopped = search(on, script, violation, watch=stop)
    with pytest.raises(KeyboardInterrupt):
        stopped.run(script, violation)
    assert stopped.best is not None and stopped.best.turns < script.turns
    assert "superseded-active" in shown(on, stopped.best)


def test_what_varies_counts_by_its_share(bench: Callable[..., Bench]) -> None:
    """A candidate that shows it in four of five runs counts where 0.8 is asked, and not for 1."""
    lives = 0

    class Varies(MUTANTS["serves-history-unmarked"]):  # type: ignore[misc]
        def begin(self) -> None:
            nonlocal lives
            lives += 1
            self.sound = lives % 5 == 0

        def now(self, name: str) -> list[Item]:
            return self.present(name) if self.sound else super().now(name)

    on, script = bench(Varies), home("serves-history-unmarked")
    violation, _ = shown(bench(MUTANTS["serves-history-unmarked"]), script)["exposed-history"]
    found = search(on, script, violation, repeats=5, share=0.8).run(script, violation)
    assert found.script.turns == 2
    with pytest.raises(ShrinkError, match="varies"):
        search(on, script, violation, repeats=5, share=1.0).run(script, violation)


def test_a_violation_that_does_not_show_again_is_said_so(bench: Callable[..., Bench]) -> None:
    """Nothing is made up where the memory now does right."""
    script = home("serves-history-unmarked")
    violation, _ = shown(bench(MUTANTS["serves-history-unmarked"]), script)["exposed-history"]
    with pytest.raises(ShrinkError, match="exposed-history: it did not show"):
        search(bench(Ideal), script, violation).run(script, violation)


def test_a_memory_that_does_not_begin_empty_is_not_believed(bench: Callable[..., Bench]) -> None:
    """What only a memory shows that remembers other candidates is not confirmed; `fresh` helps."""

    class Remembers(MUTANTS["serves-history-unmarked"]):  # type: ignore[misc]
        lives = 0

        def begin(self) -> None:
            self.lives += 1

        def now(self, name: str) -> list[Item]:
            return super().now(name) if self.lives > 1 else self.present(name)

    on, script = bench(Remembers), home("serves-history-unmarked")
    violation, _ = shown(bench(MUTANTS["serves-history-unmarked"]), script)["exposed-history"]
    assert not search(on, script, violation).run(script, violation).confirmed
    on.fresh = True
    with pytest.raises(ShrinkError):
        search(on, script, violation).run(script, violation)


def test_where_room_is_the_matter_there_is_less_of_it(bench: Callable[..., Bench]) -> None:
    """Ten items that are in the way become one, and the script says how many may be served."""
    on = bench(ServesOldestFirst)
    turns = [
        Turn(
            id=f"t{n}", at=f"2026-01-{n + 1:02d}T10:00", tenant="acme", session="s", text="",
            ops=[Op("revise", "acme/Atlas/deadline", f"date:2026-05-{n + 1:02d}")],
        )
        for n in range(14)
    ]  # fmt: skip
    script = retold(Header(name="crowd", tenants=["acme"]), turns, probed=True)
    assert script is not None
    crowded = next(v for v in on.run(script).violations if v.name == "stale-read")
    found = search(on, script, crowded).run(script, crowded)
    assert found.script.turns == 2
    assert limit_of(found.script, 10) < 10
    assert LIMIT in found.script.header.notes


def test_room_is_left_alone_where_few_turns_do(bench: Callable[..., Bench]) -> None:
    """A violation that shows in a few turns is shown with the system's own limit."""
    found = shrunk(
        bench(MUTANTS["never-supersedes"]), home("never-supersedes"), "superseded-active"
    )
    assert LIMIT not in found.script.header.notes


def test_names_values_and_days_become_simple(bench: Callable[..., Bench]) -> None:
    """The result speaks of Atlas, in plain sentences, with a day for each thing that happens."""
    found = shrunk(
        bench(MUTANTS["propagates-one-hop"]), home("propagates-one-hop"), "missed-propagation"
    )
    texts = [step.text for step in found.script.steps if isinstance(step, Turn)]
    assert texts[0] == "The deadline of Atlas is 1 March 2026."
    assert found.script.header.words == {} and found.script.header.settings == {}
    assert found.script.steps[0].at == "2026-01-05T08:30"


def test_no_budget_of_time_is_no_candidate(bench: Callable[..., Bench]) -> None:
    """A budget that is used up at once says so."""
    on, script = bench(MUTANTS["never-supersedes"]), home("never-supersedes")
    violation, _ = shown(on, script)["superseded-active"]
    with pytest.raises(ShrinkError, match="budget"):
        search(on, script, violation, budget_s=-1.0).run(script, violation)
