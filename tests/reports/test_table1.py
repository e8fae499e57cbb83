"""The paper's Table 1, measured: a mark is given for what was seen, and never for silence."""

from __future__ import annotations

from itertools import product
from typing import Any

import msgspec
import pytest

from steeltrap.harness.record import Dose, DoseResponse, Kept, Outcome, Record, RunSpec, Timing
from steeltrap.harness.verdict import CONDITION_OF, NAMES, ConditionVerdict, Tally, judge
from steeltrap.reports.table1 import (
    CAPABILITIES,
    FAMILIES,
    attenuation,
    family_of,
    figure_1,
    mechanisms,
    of_families,
    propagation,
    retention,
    retrieval,
    table_1,
)
from steeltrap.reports.table1.mechanisms import choice, choice_words, followed, followed_words

BETA = 1000.0


def record(system: str = "gem", *, told: int = 5000, hops: dict[str, list[int]] | None = None,
           dose: DoseResponse | None = None, model: dict[str, Any] | None = None,
           **counts: tuple[int, int]) -> Record:  # fmt: skip
    """A record with these violations and opportunities, by name; beta is 1 000 tokens."""
    verdicts = {}
    for condition, names in NAMES.items():
        tallies = {name: Tally() for name in names}
        for name, (violations, opportunities) in counts.items():
            if CONDITION_OF[name.replace("_", "-")] == condition:
                tallies[name.replace("_", "-")] = Tally(opportunities, violations)
        v, o = sum(t.violations for t in tallies.values()), sum(t.opportunities for t in tallies.values())  # fmt: skip
        verdicts[condition] = ConditionVerdict(
            condition=condition, validity=judge(o, v, tallies), opportunities=o, violations=v, names=tallies
        )  # fmt: skip
    spec = RunSpec(
        system=system, settings={}, script="adversarial", script_sha256="0" * 64, seed=0,
        reader="oracle", limit=10, steeltrap="0.1.0", model=model or {},
    )  # fmt: skip
    outcome = Outcome(
        turns=100, steps=100, failed=0, answers={}, verdicts=verdicts, recall=1.0, evidence_recall=1.0,
        ingested_tokens=told, footprint=[(100, 10, 500, 200, BETA)], missed_by_hop=hops or {}, dose=dose,
    )  # fmt: skip
    return Record(spec=spec, outcome=outcome, timing=Timing(phases={}))


def doses(left: list[int], survival: list[float], n: int = 6) -> DoseResponse:
    given = [
        Dose(reads=reads, n=n, left=some, place=1.0) for reads, some in zip((0, 5, 20), left, strict=True)
    ]  # fmt: skip
    return DoseResponse(groups=n, doses=given, trends={"survival": survival})


def kept(
    late: int = 6, vital: int = 6, read: int = 6, waited: int = 6, back: float | None = None
) -> list[Kept]:
    """Eight kinds of six units; so many are left of those that are early, trivial or not read.

    Args:
        late, vital, read: left of those that are not.
        waited: left of any after silence.
        back: share of what is gone that can be had back.
    """
    rows = []
    for when, most in (("told", 6), ("waited", waited)):
        for kind in product((False, True), repeat=3):
            limits = [some for some, has in zip((late, vital, read), kind, strict=True) if not has]
            left = min([6, most, *limits])
            had = None if back is None or when == "told" else round(back * (6 - left))
            rows.append(
                Kept(when=when, late=kind[0], vital=kind[1], read=kind[2], n=6, left=left, back=had)  # type: ignore[arg-type]
            )  # fmt: skip
    return rows


RISING = [1.0, 0.8, 1.0, 0.9, 1.0, 0.7]
FLAT = [0.0, 0.1, -0.1, 0.0, 0.1, -0.1]


@pytest.mark.parametrize(
    ("told", "counts", "dose", "mark"),
    [
        (5000, {"over_bound": (0, 9), "inverted_retention": (0, 9)}, doses([1, 4, 6], RISING), "supplied"),
        (5000, {"over_bound": (0, 9), "inverted_retention": (1, 9)}, doses([1, 4, 6], RISING), "in part"),
        (5000, {"over_bound": (0, 9)}, doses([2, 2, 2], FLAT), "not supplied"),
        (5000, {"over_bound": (0, 9), "inverted_retention": (1, 9)}, None, "not supplied"),
        (5000, {"over_bound": (0, 9)}, doses([6, 6, 6], FLAT), "unknown"),
        (5000, {"over_bound": (0, 9), "inverted_retention": (0, 9)}, None, "unknown"),
        (900, {"over_bound": (0, 9), "inverted_retention": (0, 9)}, doses([1, 4, 6], RISING), "unknown"),
        (5000, {}, doses([1, 4, 6], RISING), "unknown"),
        (5000, {"over_bound": (3, 9)}, doses([6, 6, 6], FLAT), "not supplied"),
        (5000, {"over_bound": (3, 9)}, doses([1, 4, 6], RISING), "in part"),
    ],
)  # fmt: skip
def test_retention_is_bounded_and_by_relevance(
    told: int, counts: dict[str, tuple[int, int]], dose: DoseResponse | None, mark: str
) -> None:
    """Both are asked for; a memory that was never told more than the bound has shown nothing."""
    assert mark == retention([record(told=told, dose=dose, **counts)]).mark


def test_what_cannot_be_listed_is_said_to_be_so() -> None:
    """A bound that nobody can see is not one that was never reached."""
    blind = record(told=5000)
    blind.outcome.footprint = []
    assert retention([blind])[::3] == ("unknown", "what is active cannot be listed", None)
    assert "never told more than the bound" == retention([record(told=900)]).why


@pytest.mark.parametrize(
    ("hops", "wrong", "mark", "said"),
    [
        ({"1": [0, 9], "2": [0, 4]}, (0, 13), "supplied", "0.0% (0/13) missed"),
        ({"1": [0, 9]}, (0, 9), "unknown", "no chain was tested"),
        ({"1": [0, 9], "2": [4, 4]}, (0, 13), "in part", "one edge only"),
        ({"1": [3, 9], "2": [1, 4]}, (0, 13), "in part", "(4/13) missed"),
        ({"1": [0, 9], "2": [0, 4]}, (2, 13), "in part", "2 wrong"),
        ({"1": [9, 9], "2": [4, 4]}, (0, 13), "not supplied", "100.0% (13/13) missed"),
        ({}, (0, 0), "unknown", "no dependent was asked for"),
    ],
)
def test_propagation_goes_by_hops(
    hops: dict[str, list[int]], wrong: tuple[int, int], mark: str, said: str
) -> None:
    """All edges supply, some in part, the first alone is said; none tested is unknown."""
    found = propagation([record(hops=hops, spurious_propagation=wrong)])
    assert mark == found.mark
    assert said in found.why


@pytest.mark.parametrize(
    ("left", "lost", "over", "mark"),
    [
        ([1, 4, 6], (0, 18), 0, "supplied"),
        ([1, 4, 6], (3, 18), 0, "in part"),
        ([0, 0, 0], (0, 18), 0, "in part"),
        ([1, 4, 6], (7, 18), 0, "not supplied"),
        ([6, 6, 6], (0, 18), 5, "not supplied"),
        ([6, 6, 6], (0, 18), 0, "unknown"),
        ([1, 4, 6], (0, 0), 0, "unknown"),
    ],
)
def test_attenuation_puts_away_and_gives_back(
    left: list[int], lost: tuple[int, int], over: int, mark: str
) -> None:
    """What is put away by degrees and can be had back; keeping everything attenuates nothing."""
    one = record(dose=doses(left, RISING), unrecoverable=lost, over_bound=(over, 9))
    assert mark == attenuation([one]).mark


@pytest.mark.parametrize(
    ("rows", "over", "mark"),
    [
        (kept(read=0), 0, "unknown"),
        (kept(read=0, back=1.0), 0, "supplied"),
        (kept(late=0, back=1.0), 0, "in part"),
        (kept(read=0, back=0.0), 0, "not supplied"),
        (kept(waited=0, back=1.0), 0, "in part"),
        (kept(), 5, "not supplied"),
        (kept(), 0, "unknown"),
    ],
)
def test_attenuation_is_seen_where_what_decides_is_tried(
    rows: list[Kept], over: int, mark: str
) -> None:
    """Some go and can be had back: supplied; all at once: in part; for good, or none under pressure: not."""
    runs = [record(over_bound=(over, 9)), record(over_bound=(over, 9))]
    for run in runs:
        run.outcome.retention = rows
    assert mark == attenuation(runs).mark


def test_without_doses_attenuation_is_unknown_and_loss_is_told() -> None:
    """Where nothing was put away by degrees nobody knows; what was lost is said and judges nothing."""
    assert "unknown" == attenuation([record(unrecoverable=(0, 500))]).mark
    lossy = attenuation([record(unrecoverable=(1, 500))])
    assert ("unknown", 1, 500) == lossy[:3]
    assert "1/500" in lossy.why


def test_a_run_counts_once_and_what_was_taken_together_is_named() -> None:
    """A dial that was set to nought gives the run that there is without it; readers are told."""

    def run(system: str, history: str, **spec: Any) -> Record:
        one = record(system, hops={"1": [1, 4]})
        one.outcome.fingerprint = history
        one.spec = msgspec.structs.replace(one.spec, **spec)
        return one

    both = [run("gem", "one"), run("gem model.missed=0.0", "one")]
    table = table_1([*both, run("gem", "two", limit=5)])
    assert table
    (seen,) = (
        r for r in table.numbers if r["system"] == "gem" and "propagation" in r["capability"]
    )
    assert (2, 8) == (seen["violations"], seen["opportunities"])
    assert any("items a query: 10, 5" in note for note in table.notes)


@pytest.mark.parametrize(
    ("counts", "mark"),
    [((0, 16), "supplied"), ((3, 16), "in part"), ((16, 16), "not supplied"), ((0, 0), "unknown")],
)
def test_retrieval_goes_by_reads(counts: tuple[int, int], mark: str) -> None:
    """Reads that all raise supply, some in part; a read that was never judged says nothing."""
    assert mark == retrieval([record(inert_retrieval=counts)]).mark


def test_nothing_measured_is_never_supplied() -> None:
    """A record without opportunities marks every capability unknown."""
    empty = [record()]
    assert {"unknown"} == {measure(empty).mark for measure in CAPABILITIES.values()}


def test_rows_are_the_papers_and_those_without_a_system_say_so() -> None:
    """All eleven families stand in order with the paper's words, and below them what it has no row for."""
    table = table_1([record("mem0 model.model=x", hops={"1": [9, 9]})])
    assert table
    families = [row[0] for row in table.rows if row[0]]
    assert [family.name for family in FAMILIES] == families
    assert "Generative Agents" == families[10]
    assert 15 == len(families)
    known = [system for family in FAMILIES for system in family.systems]
    assert len(known) == len(set(known))
    relational = next(row for row in table.rows if row[0] == "Relational")
    assert ["Relational", "not run", "paper: None", "paper: Foreign key only"] == relational[:4]
    assert "Fact-extraction (Mem0)" == family_of("mem0-classic x=1").name
    assert "" == family_of("flat").name == family_of("no-such").name


def test_a_system_is_one_row_with_the_best_of_its_settings() -> None:
    """A bound that was set tells what the system does under one; as it comes, where that is no worse."""
    plain = record("document", told=900, hops={"1": [9, 9]})
    bound = record("document ttl_days=60", dose=doses([2, 2, 2], FLAT), over_bound=(0, 9),
                   hops={"1": [9, 9]})  # fmt: skip
    table = table_1([plain, bound])
    assert table
    (line,) = [row for row in table.rows if row[0] == "Key-value / Document"]
    assert line[1] == "document"
    cells = {r["capability"]: r for r in table.numbers if r["system"] == "document"}
    kept = cells["Relevance-driven retention"]
    assert ("not supplied", "ttl_days=60") == (kept["mark"], kept["with"])
    assert "" == cells["Dependency-aware propagation"]["with"]
    assert "with ttl_days=60" in line[2]


# ---------------------------------------------------------------- by what


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (kept(), "puts nothing away"),
        (kept(late=1), "capacity: the oldest go"),
        (kept(vital=1), "capacity: what matters stays"),
        (kept(read=0), "capacity: what is read stays"),
        (kept(waited=0), "time: whatever it is"),
        (kept(late=2, waited=0), "capacity and time: the oldest go"),
    ],
)
def test_what_decides_has_a_name(rows: list[Kept], said: str) -> None:
    """Room and time are told apart, and what the survivors share is named; one run has no interval."""
    runs = [record(), record()]
    for run in runs:
        run.outcome.retention = rows
    found = choice(runs)
    assert found
    assert said == choice_words(found)
    (alone,) = [choice(runs[:1])]
    assert alone and not [sway for sway in alone.sways if sway.sure]


def test_five_coarse_values_are_not_sure_too_soon() -> None:
    """Gains of nought, nought and three times a quarter are no effect."""
    runs = [record() for _ in range(5)]
    for run, late in zip(runs, (6, 6, 4, 4, 4), strict=True):
        run.outcome.retention = kept(late=late)
    found = choice(runs)
    assert found
    (sway,) = [sway for sway in found.sways if sway.factor == "late"]
    assert sway.mean > 0 and not sway.sure


def test_use_and_importance_are_relevance() -> None:
    """A bounded memory that keeps what is read, or what matters, retains by relevance; by age it does not."""
    marks = {}
    for name, rows in (("read", kept(read=0)), ("vital", kept(vital=0)), ("late", kept(late=0))):
        runs = [record(over_bound=(0, 9)), record(over_bound=(0, 9))]
        for run in runs:
            run.outcome.retention = rows
        marks[name] = retention(runs).mark
    assert {"read": "supplied", "vital": "supplied", "late": "not supplied"} == marks


@pytest.mark.parametrize(
    ("rules", "said"),
    [
        ({"same": [0, 0, 0, 4], "offset": [9, 0, 0, 9]}, "follows equal values alone (a foreign key)"),
        ({"same": [4, 0, 0, 4], "offset": [9, 0, 0, 9]}, "follows no rule"),
        ({"same": [0, 0, 4, 4], "offset": [0, 0, 9, 9]}, "marks for review, works nothing out"),
        ({"same": [0, 0, 0, 4], "offset": [0, 0, 0, 9], "review": [0, 0, 3, 3]}, "every kind of rule"),
        ({"review": [0, 0, 3, 3]}, "every kind of rule"),
        ({"same": [4, 0, 0, 4], "review": [0, 0, 3, 3]}, "marks for review, works nothing out"),
        ({"same": [4, 0, 0, 4], "scaled": [0, 0, 0, 2], "offset": [0, 0, 0, 9]}, "rules: offset, scaled"),
    ],
)  # fmt: skip
def test_what_is_followed_has_a_name(rules: dict[str, list[int]], said: str) -> None:
    """Equal values alone are a foreign key; a mark where a value is due is no value."""
    one = record(hops={"1": [0, 9]})
    one.outcome.by_rule = rules
    found = followed([one])
    assert found
    assert said == followed_words(found)


def test_mechanisms_are_tables_too() -> None:
    """A line for each system and setting that was tried, in the order of Table 1, with its numbers."""
    tried = [record("gem"), record("gem bound_tokens=9"), record("flat"), record("document")]
    tried[1].outcome.retention, tried[3].outcome.retention = kept(read=0), kept()
    tried[0].outcome.by_rule = {"same": [1, 2, 3, 9], "review": [0, 0, 4, 4]}
    put_away, followed_ = mechanisms(tried)
    assert ["document", "gem bound_tokens=9"] == [row[0] for row in put_away.rows]
    assert ["0.0%", "0.0%"] == put_away.rows[0][1:3]
    assert ["gem", "1/9\n2 wrong\n3 marked", "-", "-", "0/4\n4 marked", "-"] == followed_.rows[0][
        :-1
    ]
    assert mechanisms([record("flat")]) == []


def test_a_console_has_the_marks_alone() -> None:
    """A line for each system that was run, four marks with their rates; the rest stands in the report."""
    more = record("mem0", hops={"1": [0, 9], "2": [0, 4]}, inert_retrieval=(9, 9))
    first, *_ = of_families([more], brief=True)
    assert ["system", "retention", "propagation", "attenuation", "retrieval"] == first.header
    assert [
        ["mem0", "unknown\n", "supplied !\n0.0%", "unknown\n", "not supplied\n100.0%"]
    ] == first.rows
    whole, *_ = of_families([more])
    assert 15 == len(whole.rows)


def test_what_is_always_worked_out_wrongly_is_not_propagated() -> None:
    """Where each was missed or got another value than its rule gives, none was reached."""
    hops = {"1": [4, 9], "2": [0, 4]}
    assert "not supplied" == propagation([record(hops=hops, wrong_propagation=(9, 13))]).mark
    assert "in part" == propagation([record(hops=hops, wrong_propagation=(8, 13))]).mark


def test_marks_alone_propagate_in_part() -> None:
    """Nothing is missed where everything is marked for review, and nothing is worked out either."""
    one = record(hops={"1": [0, 9], "2": [0, 4]}, missed_propagation=(0, 13))
    assert "supplied" == propagation([one]).mark
    one.outcome.by_rule = {"offset": [0, 0, 9, 9]}
    assert "in part" == propagation([one]).mark


def test_a_contradiction_is_marked() -> None:
    """Supplied where the paper says none is a contradiction; agreeing, and unknown, are not."""
    more = record("mem0", hops={"1": [0, 9], "2": [0, 4]}, inert_retrieval=(9, 9))
    table = table_1([more])
    assert table
    rows = {r["capability"]: r for r in table.numbers if r["system"] == "mem0"}
    assert "no" == rows["Dependency-aware propagation"]["agrees"]
    assert "yes" == rows["State-modifying retrieval"]["agrees"]
    assert "" == rows["Graded attenuation"]["agrees"]
    (line,) = [row for row in table.rows if row[1] == "mem0"]
    assert line[3].startswith("supplied !\n")
    one_edge = record("graphiti", hops={"1": [0, 9], "2": [4, 4]})
    graph = table_1([one_edge])
    assert graph
    found = next(r for r in graph.numbers if r["system"] == "graphiti" and "propagation" in r["capability"])  # fmt: skip
    assert ("in part", "yes") == (found["mark"], found["agrees"])


def test_a_failing_model_is_not_held_against_a_memory() -> None:
    """Runs in which the ideal model was made to fail are left out."""
    missed = record("mem0", hops={"1": [9, 9]}, model={"name": "ideal", "missed": 0.4})
    assert table_1([missed]) is None
    none = record(
        "mem0 model.missed=0.0", hops={"1": [9, 9]}, model={"name": "ideal", "missed": 0.0}
    )
    table = table_1([record("mem0", hops={"1": [9, 9]}), none, missed])
    assert table
    assert [["18"], ["mem0"]] == [
        [str(row["opportunities"]) for row in table.numbers if row["opportunities"]],
        [row[1] for row in table.rows if row[1] != "not run"],
    ]


def test_the_figure_says_the_same() -> None:
    """Every cell of the table is a cell of the matrix, with the sign of its mark."""
    figure = figure_1([record("gem", inert_retrieval=(0, 9))])
    assert figure
    cells = figure.data
    own = cells[(cells.row == "gem") & (cells.column == "State-modifying retrieval")].iloc[0]
    assert ("yes", "paper: By design") == (own.mark, own.beside)
    assert 4 * len(FAMILIES) == len(cells)
