"""What is better, worse or the same between two sides, on worked examples and on any."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from steeltrap.adapters.flat import Flat
from steeltrap.adapters.ideal import Ideal
from steeltrap.harness.compare import CompareError, baseline, compare, read_rules, read_side
from steeltrap.harness.compare.comparison import Comparison, Measure
from steeltrap.harness.compare.samples import Run, Sample, Seen
from steeltrap.harness.memory import Memory
from steeltrap.harness.readers import Oracle
from steeltrap.harness.record import RecordError, RunSpec
from steeltrap.harness.run import run_cell
from steeltrap.harness.store import open_cell, run_spec
from steeltrap.harness.verdict import BEYOND, CONDITION_OF, CONDITIONS, NAMES, Violation
from steeltrap.workloads.figure1 import figure_1

POINTS = 20


def spec(**changed: Any) -> RunSpec:
    told: dict[str, Any] = {
        "system": "memory",
        "settings": {},
        "script": "adversarial",
        "script_sha256": f"{changed.get('seed', 0):064x}",
        "seed": 0,
        "reader": "oracle",
        "limit": 10,
        "steeltrap": "0.1.0",
        "packages": {"python": "3.11.7"},
    }
    return RunSpec(**told | changed)


def run(
    violated: Mapping[str, Iterable[tuple[str, int]]] | None = None,
    *,
    metrics: Mapping[str, float] | None = None,
    unseen: Mapping[str, str] | None = None,
    families: Mapping[str, str] | None = None,
    steady: bool | None = None,
    fingerprint: str = "",
    **asked: Any,
) -> Run:
    """A run with so many points a condition, and violations at (unit, step) by name."""
    shown = {name: sorted(points) for name, points in (violated or {}).items()}
    blocked = unseen or {}
    conditions, names = {}, {}
    for condition in (*CONDITIONS, BEYOND):
        count = len({point for name in NAMES[condition] for point in shown.get(name, ())})
        hidden = condition in blocked
        conditions[condition] = Seen(
            validity="unknown" if hidden else "violated" if count else "held",
            counts=[0, 0] if hidden else [count, POINTS],
            note=blocked.get(condition, ""),
        )
        for name in NAMES[condition]:
            if not hidden:
                names[name] = [len(shown.get(name, ())), POINTS]
    points: dict[str, dict[str, dict[str, list[int]]]] = {}
    tried = {condition: [0, POINTS] for condition in conditions if condition not in blocked}
    rows: dict[str, dict[str, list[int]]] = {"flip-flop": tried}
    for name, of in shown.items():
        for unit, step in of:
            family = (families or {}).get(unit, "flip-flop")
            points.setdefault(family, {}).setdefault(unit, {}).setdefault(name, []).append(step)
            row = rows.setdefault(family, {}).setdefault(CONDITION_OF[name], [0, POINTS])
            row[0] += 1
    told = Sample(
        spec=spec(**asked), turns=100, fingerprint=fingerprint or repr(sorted(shown.items())),
        steady=steady, conditions=conditions, names=names, families=rows,
        metrics=dict(metrics or {"recall": 1.0}), points=points,
    )  # fmt: skip
    full = [
        Violation(
            name, CONDITION_OF[name], step, began="t0001", unit=unit, expected="20 April 2026",
            observed="12 March 2026", witness=("t0001", "t0004"),
        )
        for name, of in shown.items()
        for unit, step in of
    ]  # fmt: skip
    return Run(told, full)


def measure(found: Comparison, name: str, family: str = "") -> Measure:
    (versus,) = found.versus
    (one,) = [m for m in versus.measures if (m.name, m.family) == (name, family)]
    return one


def chain(
    name: str, *steps: int, unit: str = "acme/Atlas/deadline"
) -> dict[str, list[tuple[str, int]]]:
    return {name: [(unit, step) for step in steps]}


# ---------------------------------------------------------------- steps that failed


def test_a_memory_that_fails_more_often_cannot_be_judged() -> None:
    """A step that failed is asked nothing, so fewer violations and better recall prove nothing."""
    base = run(chain("stale-read", 5, 9), metrics={"recall": 0.9, "failed": 2})
    new = run(metrics={"recall": 1.0, "failed": 9})
    words = "memory: steps failed: 2 -> 9; what they would have shown is unknown"
    for rules in ("", "C1>+0.02, recall<-0.02"):
        found = compare([base], [new], read_rules(rules))
        assert (found.exit_code, found.unjudged) == (2, [words])
    assert compare([new], [base]).exit_code == 1
    assert compare([base], [base]).exit_code == 0
    assert compare([base], [new], read_rules("C1, failed>+10")).exit_code == 0


def test_failing_steps_of_a_system_that_varies() -> None:
    """Where chance fails steps too, only what lies above all of it counts."""

    def side(*failed: int) -> list[Run]:
        return [
            run(metrics={"recall": 1.0, "failed": count}, steady=False, seed=seed)
            for seed, count in enumerate(failed)
        ]

    assert compare(side(0, 2, 1), side(3, 1, 4)).exit_code == 0
    assert compare(side(0, 2, 1), side(3, 5, 4)).exit_code == 2


# ---------------------------------------------------------------- on the same scripts


def test_three_more_resurrections_are_worse() -> None:
    """What a steady system shows more often on the same script is worse, without any test."""
    found = compare([run(steady=True)], [run(chain("resurrection", 5, 9, 12))])
    assert (found.exit_code, found.worse) == (1, ["memory: worse in C2 (resurrection 0 -> 3)"])
    c2 = measure(found, "C2")
    assert (c2.verdict, c2.appeared, c2.gone, c2.base, c2.new) == ("worse", 3, 0, 0.0, 0.15)
    assert (c2.test, c2.p, c2.general) == ("units", None, "same")
    assert c2.witness and (c2.witness.step, c2.witness.turns) == (5, ["t0001", "t0004"])
    assert measure(found, "C2", "flip-flop").red
    assert measure(found, "C1").verdict == "same"


def test_a_test_fewer_makes_nothing_worse() -> None:
    """The same violations in fewer tests, or more tests, are a higher or lower rate and no change."""
    base, new = run(chain("resurrection", 5, 9)), run(chain("resurrection", 5, 9), fingerprint="n")
    new.sample.conditions["C2"].counts[1] -= 1
    for ours, theirs in ((base, new), (new, base)):
        found = compare([ours], [theirs])
        assert measure(found, "C2").verdict == "same"
        assert (found.exit_code, found.worse) == (0, [])


def test_what_is_worse_is_said_with_the_largest_first() -> None:
    """A name that rose most stands before one that rose less, with its counts."""
    one, two = (
        chain("stale-read", 1),
        chain("resurrection", 5, 9, 12) | chain("superseded-active", 2),
    )
    (line,) = compare([run()], [run(one | two)]).worse
    assert line == (
        "memory: worse in C2 (resurrection 0 -> 3, superseded-active 0 -> 1), C1 (stale-read 0 -> 1)"
    )


def test_a_name_that_was_put_to_no_test_before_has_no_number() -> None:
    """What only NEW was tested for and shows is told without a count of BASE."""
    base, new = run(), run(chain("half-applied", 5))
    del base.sample.names["half-applied"]
    assert compare([base], [new]).worse == ["memory: worse in C2 (half-applied untested -> 1)"]


def test_a_new_kind_of_violation_is_worse_where_its_condition_is_not() -> None:
    """Three resurrections are not paid for with three superseded values less."""
    base = run(chain("superseded-active", 5, 9, 12, 14))
    found = compare([base], [run(chain("resurrection", 5, 9, 12))])
    assert measure(found, "C2").verdict == "better"
    assert measure(found, "superseded-active").verdict == "better"
    assert (found.exit_code, found.worse) == (1, ["memory: worse in resurrection 0 -> 3"])


def test_points_are_told_apart_by_unit_and_step() -> None:
    """As many violations elsewhere are no difference in rate, and yet told."""
    found = compare([run(chain("stale-read", 5, 9))], [run(chain("stale-read", 9, 12))])
    c1 = measure(found, "C1")
    assert (found.exit_code, c1.verdict, c1.appeared, c1.gone) == (0, "same", 1, 1)


def test_recall_counts_and_other_numbers_do_not() -> None:
    """A memory that answers nothing is never wrong, so recall decides; tokens are only shown."""
    base = run(metrics={"recall": 1.0, "served_tokens": 10})
    found = compare([base], [run(metrics={"recall": 0.5, "served_tokens": 20})])
    assert (found.exit_code, found.worse) == (1, ["memory: worse in recall"])
    assert measure(found, "served_tokens").verdict == "worse"


def test_wall_times_are_never_judged_unasked() -> None:
    """Two machines differ in speed; only a rule compares them."""
    base, new = run(metrics={"p95_ms": 1.0}), run(metrics={"p95_ms": 1.3})
    assert compare([base], [new]).exit_code == 0
    assert measure(compare([base], [new]), "p95_ms").verdict == "not comparable"
    assert compare([base], [new], read_rules("p95_ms>+20%")).exit_code == 1
    assert compare([base], [new], read_rules("p95_ms>+40%")).exit_code == 0


# ---------------------------------------------------------------- what cannot be judged


def test_what_can_no_longer_be_seen_cannot_be_judged() -> None:
    """A condition that was held and is unknown now is no pass."""
    found = compare([run()], [run(unseen={"C4": "there is no history to look up"})])
    why = "memory: C4 can no longer be judged (seed 0: there is no history to look up)"
    assert (found.exit_code, found.unjudged) == (2, [why])
    assert measure(found, "C4").verdict == "not comparable"
    assert measure(found, "C4").why == "NEW: there is no history to look up"


def test_what_one_script_can_no_longer_show_is_lost_for_a_steady_system() -> None:
    """Where a system varies, what is put to the test does too, and only all scripts together tell."""

    def side(steady: bool, *unseen: int) -> list[Run]:
        why = {"C3": "it was never put to the test"}
        return [run(seed=n, steady=steady, unseen=why if n in unseen else {}) for n in range(3)]

    for lost, steady, expected in (((1,), True, 2), ((1,), False, 0), ((0, 1, 2), False, 2)):
        assert compare(side(steady), side(steady, *lost)).exit_code == expected


def test_a_name_that_can_no_longer_be_seen_cannot_be_judged() -> None:
    """A part that is hidden counts, though the condition is violated elsewhere."""
    base, new = run(chain("lost-history", 3)), run(chain("lost-history", 3))
    new.sample.conditions["C4"].unseen = {"wrong-order": "there is no history to look up"}
    found = compare([base], [new])
    assert (found.exit_code, found.worse) == (2, [])
    assert measure(found, "C4").lost == "seed 0: wrong-order: there is no history to look up"


def test_a_limit_says_nothing_of_what_is_out_of_sight() -> None:
    """A rule on a condition that NEW hides a part of is not kept, and neither is one on the part."""
    base, new = run(chain("superseded-active", 3)), run()
    new.sample.conditions["C2"].unseen = {"superseded-active": "content cannot be listed"}
    del new.sample.names["superseded-active"]
    for rule in ("C2>+0.02", "C2", "C2@flip-flop>0", "superseded-active@expiry>0"):
        assert compare([base], [new], read_rules(rule)).exit_code == 2
    assert compare([base], [new], read_rules("C1>+0.02, resurrection@flip-flop>0")).exit_code == 0
    assert compare([base], [run(chain("resurrection", *range(9)))], read_rules("C2")).exit_code == 1


def test_recall_that_nobody_measured_cannot_be_judged() -> None:
    """A memory that is no longer asked anything has no recall, which is no pass."""
    found = compare([run()], [run(metrics={"failed": 0})])
    assert found.unjudged == ["memory: recall can no longer be judged (not measured in NEW)"]


def test_what_can_be_seen_now_accuses_nobody() -> None:
    """A system that begins to show its state is not worse for what is seen there."""
    base = run(unseen={"C5": "the state cannot be listed"})
    found = compare([base], [run(chain("over-bound", 7, unit=""))])
    assert (found.exit_code, measure(found, "C5").verdict) == (0, "not comparable")
    assert measure(found, "C5").new == 0.05


def test_certainly_worse_outweighs_what_cannot_be_judged() -> None:
    """A red that is certain stays red."""
    found = compare([run()], [run(chain("stale-read", 3), unseen={"C4": "gone"})])
    assert found.exit_code == 1
    assert found.worse and found.unjudged


def test_nothing_in_common_cannot_be_judged() -> None:
    """Two sides without a pair give 2, and say what differs."""
    found = compare([run(limit=10)], [run(limit=5)])
    assert found.exit_code == 2
    assert [one.why for one in found.apart] == [
        "differs in limit (10 here, 5 there)", "differs in limit (5 here, 10 there)",
    ]  # fmt: skip
    assert "the two sides have no run in common" in found.unjudged


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"reader": "top1"}, "reader (oracle here, top1 there)"),
        ({"script_sha256": "f" * 64}, "script sha256 (000000000000 here, ffffffffffff there)"),
        ({"embedder": "minilm 1"}, "embedder (none here, minilm there)"),
        ({"model": {"name": "ideal", "missed": 0.1}}, "model (none here, missed 0.1, name ideal there)"),
        ({"twins": 0}, "twins (1 here, 0 there)"),
    ],
)  # fmt: skip
def test_settings_that_must_agree(changed: dict[str, Any], why: str) -> None:
    """Where the question was another one, the runs are not comparable, and the setting is named."""
    found = compare([run()], [run(**changed)])
    assert found.exit_code == 2
    assert found.apart[0].why.removeprefix("differs in ").startswith(why.replace("none here, missed", "missed none, name none here, missed"))  # fmt: skip


def test_what_is_being_compared_may_differ_and_is_named() -> None:
    """Revision, packages and settings are what changes between two sides."""
    new = run(revision="b" * 40, packages={"python": "3.12.1"}, settings={"window": {"turns": 9}})
    found = compare([run(revision="a" * 40)], [new])
    assert found.exit_code == 0
    assert found.versus[0].notes[:3] == [
        "revision: aaaaaaaaaaaa -> bbbbbbbbbbbb",
        "package python: 3.11.7 -> 3.12.1",
        "setting window.turns: none -> 9",
    ]
    assert "steeltrap score" in found.versus[0].notes[3]


def test_a_run_that_is_missing_cannot_be_judged() -> None:
    """A seed that only BASE has may be the one that broke; another system is nobody's loss."""
    base = [run(seed=0), run(seed=1)]
    found = compare(base, [run(seed=0)])
    assert found.exit_code == 2
    assert found.unjudged == ["memory, adversarial, seed 1: NEW has no run of this script and seed"]
    assert compare([run(seed=0)], base).exit_code == 0
    found = compare([run(), run(system="other")], [run()])
    assert (found.exit_code, found.apart[0].why) == (0, "NEW has no run of this system")


def test_two_systems_are_compared_with_each_other() -> None:
    """One system on each side, by other names: their embedders are their own."""
    base = run(system="vector", embedder="wordllama 0.4")
    found = compare([base], [run(chain("stale-read", 2), system="flat")])
    assert (found.versus[0].base, found.versus[0].new) == ("vector", "flat")
    assert found.worse == ["flat: worse in C1 (stale-read 0 -> 1)"]


def test_runs_of_two_states_of_the_code_are_no_repeats() -> None:
    """Nobody knows which of them is meant."""
    with pytest.raises(CompareError, match=r"NEW holds 2 runs of memory .* differ in revision"):
        compare([run()], [run(revision="a" * 40), run(revision="b" * 40)])


# ---------------------------------------------------------------- chance


def sides(base: list[list[int]], new: list[list[int]]) -> tuple[list[Run], list[Run]]:
    """By seed and run: how many stale reads."""

    def side(counts: list[list[int]]) -> list[Run]:
        return [
            run(
                chain("stale-read", *range(count)),
                seed=seed,
                fingerprint=f"{seed} {number} {count}",
            )
            for seed, own in enumerate(counts)
            for number, count in enumerate(own)
        ]

    return side(base), side(new)


def test_a_system_that_varies_is_judged_by_a_test_over_runs() -> None:
    """Runs are dealt out anew within their scripts: of 8 000 ways only two are so extreme."""
    found = compare(*sides([[1, 2, 0], [2, 3, 1], [0, 1, 1]], [[5, 6, 4], [7, 6, 6], [5, 4, 4]]))
    c1, versus = measure(found, "C1"), found.versus[0]
    assert (versus.steadiness, versus.labelings) == ("varies", 8000)
    assert (c1.test, c1.p, c1.verdict) == ("permutation", pytest.approx(2 / 8000), "worse")
    assert (c1.appeared, c1.gone, found.exit_code) == (None, None, 1)
    assert c1.new_counts == [pytest.approx(47 / 3), 60]


def test_a_system_that_varies_as_before_is_no_worse() -> None:
    """A difference that lies within the noise is none, though a mean is higher."""
    found = compare(*sides([[1, 2, 0], [2, 3, 1], [0, 1, 1]], [[2, 1, 1], [3, 2, 1], [0, 1, 2]]))
    c1 = measure(found, "C1")
    assert c1.new is not None and c1.base is not None and c1.new > c1.base
    assert (c1.verdict, found.exit_code) == ("same", 0)


def test_few_runs_of_a_system_that_varies_are_tested_by_units() -> None:
    """A wrong value shows at many probes: ten of one unit count once."""
    many = {"stale-read": [("acme/A/x", step) for step in range(10)]}
    found = compare([run(steady=False)], [run(many)])
    assert (measure(found, "C1").verdict, found.tests) == ("same", 0)
    spread = {"stale-read": [(f"acme/{unit}/x", unit) for unit in range(8)]}
    found = compare([run(steady=False)], [run(spread)])
    c1 = measure(found, "C1")
    assert (c1.test, c1.p, c1.verdict) == ("units", pytest.approx(2 / 2**8), "worse")


def test_recall_of_too_few_runs_of_a_system_that_varies_cannot_be_judged() -> None:
    """Recall has no units to test: a fall that no test could show is not taken for none."""

    def side(recall: float, seeds: int) -> list[Run]:
        return [
            run(seed=n, steady=False, metrics={"recall": recall + n / 100}) for n in range(seeds)
        ]

    found = compare(side(0.9, 7), side(0.1, 7))
    assert (found.exit_code, measure(found, "recall").verdict) == (2, "not comparable")
    assert found.unjudged[0].startswith("memory: recall cannot be judged (it varies by itself")
    assert compare(side(0.9, 8), side(0.1, 8)).exit_code == 1
    assert compare(side(0.9, 7), side(0.9, 7)).exit_code == 0
    assert compare(side(0.9, 7), side(0.89, 7), read_rules("recall<-0.02")).exit_code == 0
    assert compare(side(0.9, 7), side(0.1, 7), read_rules("recall<-0.02")).exit_code == 1


def test_seeds_of_what_fails_by_chance_are_repeats() -> None:
    """Runs that differ in `model.seed` alone answer one question."""

    def side(first: int) -> list[Run]:
        return [
            run(system=f"gem model.missed=0.1 model.seed={seed}", fingerprint=str(seed),
                model={"name": "ideal", "missed": 0.1, "seed": seed, "faults": {"name": "none"}})
            for seed in range(first, first + 5)
        ]  # fmt: skip

    found = compare(side(0), side(5))
    assert (found.exit_code, found.versus[0].new) == (0, "gem model.missed=0.1")
    assert (found.versus[0].labelings, found.versus[0].steadiness) == (252, "varies")
    found = compare(side(0)[:1], side(0)[:1])
    assert "model.seed=0,1,2" in found.versus[0].notes[0]


def test_whether_it_holds_beyond_these_scripts_is_another_question() -> None:
    """Eight seeds that all got worse are more than chance; one of eight is a fact and no trend."""
    found = compare(*sides([[0]] * 8, [[1]] * 8))
    c1 = measure(found, "C1")
    assert (c1.verdict, c1.general, c1.p) == ("worse", "worse", pytest.approx(2 / 2**8))
    found = compare(*sides([[0]] * 8, [[1], *[[0]] * 7]))
    c1 = measure(found, "C1")
    assert (c1.verdict, c1.general, c1.p) == ("worse", "same", None)


def test_few_seeds_are_too_few_for_a_test_over_runs() -> None:
    """No permutation of six seeds can reach 0.01, so their units are tested instead."""
    assert measure(compare(*sides([[0]] * 6, [[1]] * 6)), "C1").test == "units"
    assert measure(compare(*sides([[0]] * 8, [[1]] * 8)), "C1").test == "permutation"


def test_wall_times_are_no_tests() -> None:
    """Another machine is slower on every seed, which neither counts nor costs a test."""
    base = [run(seed=seed, metrics={"p95_ms": 1.0}) for seed in range(8)]
    found = compare(base, [run(seed=seed, metrics={"p95_ms": 2.0}) for seed in range(8)])
    assert (found.tests, found.exit_code) == (0, 0)


def test_a_family_of_a_system_that_varies_is_no_worse_than_its_condition() -> None:
    """Single families are not tested: they show where a tested difference lies, and no other."""
    found = compare(*sides([[1, 2, 0], [2, 3, 1], [0, 1, 1]], [[2, 1, 1], [3, 2, 1], [0, 1, 2]]))
    assert measure(found, "C1", "flip-flop").verdict == "same"
    found = compare(*sides([[1, 2, 0], [2, 3, 1], [0, 1, 1]], [[5, 6, 4], [7, 6, 6], [5, 4, 4]]))
    assert measure(found, "C1", "flip-flop").red


def test_tests_that_could_not_come_out_cost_nothing() -> None:
    """Holm is over the tests that could have reached the level."""
    base, new = sides([[0]] * 8, [[1]] * 8)
    assert compare(base, new).tests == 1


# ---------------------------------------------------------------- any two sides

NAMED = st.sampled_from(("stale-read", "resurrection", "missed-propagation", "lost-source", "leak"))
POINT = st.tuples(
    st.sampled_from(("acme/A/x", "acme/B/x", "globex/A/y")), st.integers(0, POINTS - 1)
)
VIOLATED = st.dictionaries(NAMED, st.sets(POINT, max_size=4), max_size=3)
ONE = st.builds(
    lambda violated, seed, recall: run(violated, seed=seed, metrics={"recall": recall}),
    VIOLATED, st.integers(0, 2), st.sampled_from((0.5, 0.75, 1.0)),
)  # fmt: skip
SIDE = st.lists(ONE, min_size=1, max_size=4)
OPPOSITE = {"better": "worse", "worse": "better"}


@given(SIDE)
def test_a_side_is_no_different_from_itself(side: list[Run]) -> None:
    """Comparing runs with themselves shows no difference, and ends with 0."""
    found = compare(side, side)
    assert (found.exit_code, found.worse, found.unjudged) == (0, [], [])
    for one in found.versus:
        assert {m.verdict for m in (*one.conditions, *one.families, *one.metrics)} <= {"same", "not comparable"}  # fmt: skip


@given(SIDE, SIDE)
def test_exchanging_the_sides_exchanges_better_and_worse(base: list[Run], new: list[Run]) -> None:
    """There is one truth about two sides, seen from either."""
    there, back = compare(base, new), compare(new, base)
    assert there.tests == back.tests
    for one, other in zip(there.versus, back.versus, strict=True):
        for a, b in zip(one.measures, other.measures, strict=True):
            assert (a.name, a.family, OPPOSITE.get(a.verdict, a.verdict)) == (b.name, b.family, b.verdict)  # fmt: skip
            assert (a.appeared, a.gone, a.base, a.new) == (b.gone, b.appeared, b.new, b.base)
            assert OPPOSITE.get(a.general, a.general) == b.general
            assert a.p == pytest.approx(b.p)


@given(SIDE, SIDE, st.randoms(use_true_random=False))
def test_the_order_of_runs_does_not_matter(base: list[Run], new: list[Run], dice: Any) -> None:
    """Baselines of the same runs are the same file, and give the same comparison."""
    mixed = dice.sample(base, len(base))
    assert baseline(base) == baseline(mixed)
    one, two = compare(base, new), compare(mixed, new)
    assert (one.exit_code, one.worse, one.tests) == (two.exit_code, two.worse, two.tests)


# ---------------------------------------------------------------- folders and baselines


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`ideal` and `flat`, each on figure 1."""
    folder = tmp_path_factory.mktemp("runs")
    script = figure_1(0)
    makes: dict[str, type[Memory]] = {"ideal": Ideal, "flat": Flat}
    for name, make in makes.items():
        asked = run_spec(script, system="memory", settings={"is": name}, reader="oracle", limit=10)
        run_cell(open_cell(folder / name, asked, script), make, script, Oracle())
    return folder


def test_a_baseline_stands_for_its_folder(runs: Path, tmp_path: Path) -> None:
    """A comparison with a baseline is that with the folder it was made of; only words are fewer."""
    file = tmp_path / "baseline.json"
    file.write_bytes(baseline(read_side(runs / "ideal")))
    by_folder = compare(read_side(runs / "ideal"), read_side(runs / "flat"))
    assert by_folder == compare(read_side(file), read_side(runs / "flat"))
    assert by_folder.exit_code == 1
    assert file.stat().st_size < 10_000
    assert baseline(read_side(file)) == file.read_bytes()


def test_further_runs_of_a_script_tell_whether_a_system_is_steady(
    runs: Path, tmp_path: Path
) -> None:
    """A run that holds repeats of itself says so: alike, or not."""
    assert [run.sample.steady for run in read_side(runs / "flat")] == [None]
    folder = tmp_path / "run"
    shutil.copytree(next((runs / "flat").rglob("record.json")).parent, folder)
    again = folder / "twins" / "again-0.history.jsonl"
    again.parent.mkdir(exist_ok=True)
    shutil.copy(folder / "history.jsonl", again)
    assert [run.sample.steady for run in read_side(folder)] == [True]
    again.write_bytes(
        again.read_bytes().replace(b"Alice", b"Bob").replace(b'"tokens":1', b'"tokens":2')
    )
    assert [run.sample.steady for run in read_side(folder)] == [False]


def test_counts_are_those_of_the_record(runs: Path) -> None:
    """Violations that are told apart by unit and step add up to what was counted."""
    (flat,) = read_side(runs / "flat")
    assert any(flat.sample.names.values())
    for name, (count, _) in flat.sample.names.items():
        assert count == sum(one[0] == name for one in flat.sample.violated())
    for condition, seen in flat.sample.conditions.items():
        points = {one[2:] for one in flat.sample.violated() if CONDITION_OF[one[0]] == condition}
        assert seen.counts[0] == len(points)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"", "not a baseline"),
        (b"\xff{}", "not a baseline"),
        (b'{"format": "steeltrap-record", "version": 1, "runs": []}', "format steeltrap-record"),
        (b'{"format": "steeltrap-baseline", "version": 9, "runs": []}', "version 9"),
        (b'{"format": "steeltrap-baseline", "version": 1, "runs": []}', "holds no runs"),
    ],
)
def test_what_is_no_baseline_is_said_to_be_none(tmp_path: Path, text: bytes, words: str) -> None:
    """A file that cannot be read is named, with what to do."""
    file = tmp_path / "baseline.json"
    file.write_bytes(text)
    with pytest.raises(RecordError, match=words):
        read_side(file)


def test_a_folder_without_finished_runs_is_no_side(tmp_path: Path) -> None:
    """Nothing to compare is an error and no pass."""
    with pytest.raises(RecordError, match=r"holds no record\.json"):
        read_side(tmp_path)
    with pytest.raises(RecordError, match="is not there"):
        read_side(tmp_path / "nowhere")


def test_a_comparison_can_be_read_back() -> None:
    """Its JSON has a format and a version, and holds all of it."""
    found = compare([run()], [run(chain("stale-read", 1))])
    data = msgspec.json.encode(found)
    assert found == msgspec.json.decode(data, type=Comparison)
    assert msgspec.json.decode(data)["format"] == "steeltrap-comparison"
