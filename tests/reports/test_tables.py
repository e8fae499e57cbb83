"""The printed tables are pinned as text: what a reader sees changes only on purpose."""

from __future__ import annotations

import io
from typing import Any

import msgspec
import pytest
from rich.console import Console

from steeltrap.harness.record import (
    Effect,
    Evidence,
    Outcome,
    Percentiles,
    Record,
    RunSpec,
    Timing,
)
from steeltrap.harness.script import Header
from steeltrap.harness.verdict import BEYOND, CONDITIONS, NAMES, ConditionVerdict, Tally, judge
from steeltrap.reports import layout, tables
from steeltrap.reports.facts import comparable, facts, notes

BLOCKED = "it keeps no history that can be looked up"


def verdict(condition: str, violations: int, blocked: str = "") -> ConditionVerdict:
    tallies = {name: Tally(opportunities=20) for name in NAMES[condition]}
    first = NAMES[condition][0]
    tallies[first] = Tally(0 if blocked else 20, violations, blocked)
    return ConditionVerdict(
        condition=condition,
        validity=judge(20, violations, tallies),
        opportunities=20,
        violations=violations,
        names=tallies,
    )


def unseen(condition: str) -> ConditionVerdict:
    tallies = {name: Tally(blocked=BLOCKED) for name in NAMES[condition]}
    return ConditionVerdict(
        condition=condition, validity="unknown", opportunities=0, violations=0, names=tallies
    )


def record(system: str, seed: int, *, spec: dict[str, Any] | None = None, **found: Any) -> Record:
    described = {
        "system": system,
        "settings": {},
        "script": "adversarial",
        "script_sha256": f"{seed:x}" * 64,
        "seed": seed,
        "reader": "oracle",
        "limit": 10,
        "steeltrap": "0.1.0",
        "packages": {"python": "3.11.7", "msgspec": "0.19.0"},
        "revision": "a" * 40 + "+",
    } | (spec or {})
    outcome = {
        "turns": 500,
        "steps": 900,
        "failed": 0,
        "answers": {},
        "verdicts": {},
        "recall": 0.9,
        "evidence_recall": 0.95,
        "served_tokens_mean": 1234.5,
    } | found
    timing = Timing(phases={"retrieve": Percentiles(9, 0.25, 1.5, 2.0, 9.0)})
    return Record(spec=RunSpec(**described), outcome=Outcome(**outcome), timing=timing)


def weak(seed: int) -> Record:
    """A system that breaks C1, shows no history and leaves one name of C5 unobserved."""
    verdicts = {condition: verdict(condition, 0) for condition in CONDITIONS}
    verdicts["C1"] = verdict("C1", 4 + 2 * seed)
    verdicts["C4"] = unseen("C4")
    verdicts["C5"] = verdict("C5", 0, blocked="nothing can be recovered")
    return record("flat-window", seed, verdicts=verdicts, failed=2 * seed)


def strong(seed: int) -> Record:
    verdicts = {condition: verdict(condition, 0) for condition in CONDITIONS}
    return record(
        "ideal", seed, verdicts=verdicts, recall=1.0, footprint_ratio=1.0, growth_exponent=0.4
    )


RECORDS = [*map(weak, range(3)), *map(strong, range(3))]

CONSOLE = """\
Script adversarial, 500 turns; seed (sha256): 0 (000000000000), 1
(111111111111), 2 (222222222222)
Reader oracle; at most 10 items a query; embedder none
steeltrap 0.1.0, revision aaaaaaaaaaaa+
Packages: msgspec 0.19.0, python 3.11.7

The six conditions
system              C1    C2    C3          C4       C5    C6
─────────────────────────────────────────────────────────────
flat-window      30.0%  held  held         not  unknown  held
             20.0–40.0  0/60  0/60  observable     0/60  0/60
                 18/60
ideal             held  held  held        held     held  held
                  0/60  0/60  0/60        0/60     0/60  0/60
  Rate, its 95% interval over seeds, and violations/opportunities.
  flat-window: 6 of 2700 steps failed or ended in doubt; what they would have
shown is unknown.
  lost-history, lost-source, wrong-order, invented-source (flat-window): it
keeps no history that can be looked up
  over-bound (flat-window): nothing can be recovered

What it gives and what it costs
                      p50   p95
system       recall    ms    ms  tokens  footprint  growth
──────────────────────────────────────────────────────────
flat-window   90.0%  0.25  1.50   1,234          -       -
ideal        100.0%  0.25  1.50   1,234       1.00    0.40
  recall: set current values answered right.
  p50, p95: wall time of a retrieval, median over seeds.
  tokens: o200k_base, served to a query, mean.
  footprint: active over true tokens.
  growth: slope of log active tokens over log turns.
"""


def printed(records: list[Record], width: int = 80) -> str:
    console = Console(file=io.StringIO(), width=width, color_system=None)
    layout.show(records, console)
    assert isinstance(console.file, io.StringIO)
    return "\n".join(line.rstrip() for line in console.file.getvalue().splitlines()) + "\n"


def test_console_fits_80_columns_and_says_this() -> None:
    """Each system has rate, interval and opportunities, and what was not seen is named so."""
    assert printed(RECORDS) == CONSOLE


def test_what_lies_beyond_the_six_is_said_below_them() -> None:
    """A memory that holds the six and leaks is not passed over in silence."""
    leaking = msgspec.convert(msgspec.to_builtins(RECORDS[0]), Record)
    leaking.outcome.verdicts[BEYOND] = verdict(BEYOND, 3)
    table = tables.conditions([leaking, *RECORDS[3:]])
    assert table
    assert f"Beyond the six, flat-window: {NAMES[BEYOND][0]} 3/20." in table.notes
    assert sum("Beyond" in note for note in table.notes) == 1


def test_long_names_are_broken_and_numbers_are_not_cut() -> None:
    """A system with its settings takes several lines in 80 columns; every number stays whole."""
    records = [msgspec.convert(msgspec.to_builtins(one), Record) for one in RECORDS]
    for one in records:
        one.spec.system += (
            " system.capacity_turns=500 model.missed=0.25 anunbrokennameofthirtyletters"
        )
    said = printed(records)
    assert "…" not in said
    assert max(map(len, said.splitlines())) <= 80
    for number in ("20.0–40.0", "18/60", "0/60", "observable", "1,234", "100.0%"):
        assert said.count(number) >= CONSOLE.count(number)


def test_markdown_has_names_and_differences() -> None:
    """The page holds counts by violation name, and paired differences with p after Holm."""
    page = layout.page(RECORDS, notes=["a note"])
    for line in (
        "## adversarial, 500 turns",
        "- a note",
        "| system | C1 | C2 | C3 | C4 | C5 | C6 |",
        "| C1 | stale-read | 18/60 | 0/60 |",
        "| C4 | lost-history | not obs. | 0/60 |",
        "| C5 | over-bound | not obs. | 0/60 |",
        "| flat-window - ideal | +30.0 | +0.0 | +0.0 | - | +0.0 | +0.0 |",
        "- No p: 3 seeds cannot give one below 0.05; 6 can.",
    ):
        assert line in page.splitlines()


def test_p_stands_where_seeds_can_give_it() -> None:
    """From six seeds on each difference has its p after Holm, and the number of tests is said."""
    grid = tables.differences([*map(weak, range(6)), *map(strong, range(6))])
    assert grid
    assert grid.rows[0][1] == "+45.0\np 0.16"
    assert "over 6 seeds, after Holm over 5 tests" in grid.notes[1]


def test_a_memory_that_always_fails_has_its_row() -> None:
    """Without one opportunity the six conditions are all unknown, and titles keep their line."""
    none = {
        c: ConditionVerdict(
            condition=c, validity="unknown", opportunities=0, violations=0, names={}
        )
        for c in CONDITIONS
    }
    broken = record("bad", 0, verdicts=none, failed=9, recall=None, evidence_recall=None,
                    served_tokens_mean=None)  # fmt: skip
    broken.timing.phases.clear()
    said = printed([broken])
    assert "The six conditions\n" in said
    assert ["bad", *["unknown"] * 6] in [line.split() for line in said.splitlines()]
    assert "bad: 9 of 900 steps failed" in said
    assert "What it gives" not in said


def test_frame_has_a_row_a_cell() -> None:
    """The frame holds every cell with its counts, for whoever wants to work on them."""
    frame = tables.frame(RECORDS)
    assert len(frame) == 6
    row = frame[(frame.system == "flat-window") & (frame.seed == 2)].iloc[0]
    assert (row.C1, row.C1_violations, row.C1_opportunities) == ("violated", 8, 20)
    assert (row.retrieve_ms_p50, row.retrieve_ms_p95) == (0.25, 1.5)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"script_sha256": "f" * 64}, "the script of seed 1 (111111111111, ffffffffffff)"),
        ({"seed": 9}, "the seeds that were run (a: 1; b: 9)"),
        ({"steeltrap": "0.2.0"}, "the version of steeltrap (0.1.0, 0.2.0)"),
        ({"revision": ""}, f"the revision of the code ({'a' * 40}+, none)"),
        ({"packages": {"msgspec": "1.0"}}, "the version of msgspec (0.19.0, 1.0)"),
    ],
)
def test_what_differs_is_named(changed: dict[str, Any], said: str) -> None:
    """Results that do not agree on where they came from say on what."""
    assert f"NOT THE SAME: {said}" in facts([record("a", 1), record("b", 1, spec=changed)])
    assert not any("NOT THE SAME" in fact for fact in facts([record("a", 1), record("b", 1)]))


def test_a_run_that_ended_early_is_named() -> None:
    """Of which run, why and where stands above the table; so does it of a twin."""
    why = "after 60 s (limits.run_s), at turn 213 of 500"
    early, beside = record("a", 1, stopped=why), record("a", 2)
    early.timing.run_s = beside.timing.run_s = 60.0
    assert [line for line in facts([early, beside, record("a", 3)]) if "EARLY" in line] == [
        f"ENDED EARLY: a, seed 1, {why}; it has no twins, and what comes later is unknown",
        "ENDED EARLY: a twin of a, seed 2, at limits.run_s=60; what ended early is not compared",
    ]


def test_several_embedders_are_told_apart_and_named() -> None:
    """A system that ran with two embedders has two rows, and the difference is said."""
    two = [record("vector", 0, spec={"embedder": name}) for name in ("small 1", "large 2")]
    assert [r[0] for r in tables.costs(two).rows] == ["vector\n(small 1)", "vector\n(large 2)"]
    assert "NOT THE SAME: the embedder (small 1, large 2)" in facts(two)


def test_other_settings_of_one_name_are_told_apart() -> None:
    """A system whose default was changed is not pooled with what it was."""
    two = [record("gem", 0, spec={"settings": {"store": store, "x": 1}}) for store in ("a", "b")]
    assert [r[0] for r in tables.costs(two).rows] == ["gem\n(store a)", "gem\n(store b)"]


def test_names_command_no_terminal_and_are_no_markdown() -> None:
    """What does not print is spelled out; a name begins no heading, link, picture or code."""
    hostile = "x\x1b]0;y\x07\u202e\n# h ![p](http://example.org/p.png) `c` *b* a\\|b <i>"
    one = record(hostile, 0, spec={"reader": hostile, "packages": {hostile: hostile}})
    drawn = io.StringIO()
    layout.show([one], Console(file=drawn, width=200), notes=[hostile])
    page = layout.page([one], notes=[hostile])
    for text in (drawn.getvalue(), page):
        assert not {"\x1b", "\x07", "\u202e"} & set(text)
    assert not any(line.startswith("# h") for line in page.splitlines())
    assert not any(sign in page for sign in ("![p]", "](", "`c`", "*b*", "\\\\|", "<i>"))


@pytest.mark.parametrize("changed", [{"reader": "top1"}, {"limit": 5}, {"script": "flip-flop"}])
def test_other_readers_budgets_and_scripts_stand_apart(changed: dict[str, Any]) -> None:
    """Only the same script, reader and budget may stand in one table."""
    assert len(comparable([record("a", 0), record("a", 0, spec=changed)])) == 2
    assert len(comparable([record("a", 0), record("b", 1)])) == 1


def test_public_data_shows_evidence_and_no_empty_conditions() -> None:
    """Recall by category and cut-off is pooled over conversations, weighted by questions."""
    cells = [
        record("bm25", seed, evidence=[
            Evidence(category="multi-hop", k=5, n=n, recall=share, hit=share, all=share),
            Evidence(category="multi-hop", k=10, n=n, recall=2 * share, hit=1.0, all=share),
        ])
        for seed, n, share in ((0, 10, 0.5), (1, 30, 0.1))
    ]  # fmt: skip
    (grid,) = tables.evidence(cells)
    assert grid.header == ["system", "category", "n", "@5", "@10"]
    assert grid.rows == [["bm25", "multi-hop", "40", "20.0 / 20.0", "40.0 / 100.0"]]
    assert tables.conditions(cells) is None
    assert tables.names(cells) is None
    assert tables.evidence(RECORDS) == []


def test_wrong_golds_are_left_out_in_a_table_of_their_own() -> None:
    """Results with and without audited questions stand apart, each with its own n."""
    found = [
        Evidence(category="1", k=5, n=n, recall=0.5, hit=0.5, all=0.5, left_out=left_out)
        for n, left_out in ((40, ""), (37, "wrong-gold"))
    ]
    grids = tables.evidence([record("bm25", 0, evidence=found)])
    assert [grid.title for grid in grids] == [
        "Recall / hit of evidence",
        "Recall / hit of evidence, without wrong-gold",
    ]
    assert [grid.rows[0][2] for grid in grids] == ["40", "37"]


def test_a_console_shows_public_data_at_small_k() -> None:
    """In brief there is no k beyond 10, no budget, no neighbours, and no score of a part."""
    rows = [
        Evidence(category=category, k=k, grain=grain, n=4, recall=0.5, hit=0.5, all=0.5, left_out=left_out)
        for category in ("1", "all")
        for left_out in ("", "defects")
        for grain in ("turn", "session")
        for k in (5, 10, 25)
    ]  # fmt: skip
    rows.append(
        Evidence(category="all", k=0, budget_tokens=1000, n=4, recall=0.5, hit=0.5, all=0.5)
    )
    rows.append(Evidence(category="all", k=5, window=1, n=4, recall=0.5, hit=0.5, all=0.5))
    cells = [record("bm25", 0, evidence=rows)]
    whole = {table.name: table for table in tables.evidence(cells)}
    assert ["@5", "@10", "@25"] == whole["evidence"].header[3:]
    assert {
        "evidence", "evidence-without-defects", "evidence-scores", "evidence-scores-without-defects",
        "evidence-budget", "evidence-window",
    } == set(whole)  # fmt: skip
    brief = {table.name: table for table in tables.evidence(cells, brief=True)}
    assert ["evidence", "evidence-without-defects", "evidence-scores"] == list(brief)
    assert ["@5", "@10"] == brief["evidence"].header[3:]
    assert ["5", "10", "5", "10"] == [row[2] for row in brief["evidence-scores"].rows]


def test_notes_of_several_scripts_are_taken_together() -> None:
    """Equal words stand once; numbers add up; lists and marks are counted."""
    headers = [
        Header(name="talk", notes={
            "licence": "free",
            "categories": {"1": "multi-hop", "2": "temporal"},
            "questions": 5,
            "without_evidence": ["q1"],
            "defects": {"q1": "empty", f"q{n}": "joined"},
        })
        for n in (2, 3)
    ]  # fmt: skip
    assert notes(headers) == [
        "licence: free",
        "categories: 1 multi-hop, 2 temporal",
        "questions: 10",
        "without evidence: 2",
        "defects: empty 2, joined 2",
    ]


def effect(what: str, differing: int, null: int | None, **sized: Any) -> Effect:
    return Effect(twin="asking", about="asking", what=what, n=20, differing=differing, null=null, **sized)  # fmt: skip


def test_what_twins_showed_is_pooled_over_seeds() -> None:
    """Counts add up; sizes are means, with an interval over seeds, or their own where all agree."""
    told = {"measure": "advantage", "low": 0.6, "high": 1.0}
    cells = [
        record("gem", seed, effects=[
            effect("direct", 0, None),
            effect("order", 18 + seed, seed, value=0.5 + seed / 4, null_value=0.0, measure="distance"),
            effect("distinguisher", 20, 0, value=1.0, null_value=0.1, **told),
        ])
        for seed in (0, 1)
    ]  # fmt: skip
    grid = tables.twins(cells)
    assert grid is not None
    assert grid.rows == [
        ["gem", "asking", "direct", "0/40", "-", "-", "-"],
        ["gem", "asking", "order", "37/40", "1", "0.625\n0.5–0.75", "0"],
        ["gem", "asking", "distinguisher", "40/40", "0", "1\n0.6–1", "0.1"],
    ]
    assert grid.notes[1:] == ["order: distance.", "distinguisher: advantage."]
    assert tables.twins(RECORDS) is None
    for page in (layout.page(cells), printed(cells)):
        assert "What twins showed" in page


def test_no_differences_without_a_pair() -> None:
    """One system, or one seed, gives nothing to compare."""
    assert tables.differences(RECORDS[:3]) is None
    assert tables.differences([RECORDS[0], RECORDS[3]]) is None


@pytest.mark.parametrize(
    ("share", "said"),
    [(0, "0.0%"), (0.0001, "<0.1%"), (0.123, "12.3%"), (0.9999, ">99.9%"), (1, "100.0%")],
)
def test_percent_never_hides_a_violation(share: float, said: str) -> None:
    """What is not nought is not written as nought, nor what is not all as all."""
    assert said == tables.percent(share)
