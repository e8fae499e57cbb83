"""Figures: what is drawn is what was recorded, the same every time, and names stay names."""

from __future__ import annotations

import hashlib
import itertools
import os
import subprocess
import sys
from math import log, sqrt
from pathlib import Path
from typing import Any

import msgspec
import pytest

from steeltrap.harness.models import Usage
from steeltrap.harness.record import (
    Dose,
    DoseResponse,
    Effect,
    Outcome,
    Percentiles,
    Record,
    RunSpec,
    Timing,
)
from steeltrap.harness.stats import Interval, rate_interval
from steeltrap.harness.verdict import CONDITIONS, ConditionVerdict, Validity
from steeltrap.reports.claims import Claim
from steeltrap.reports.figures import Figure, figures, files, matrix, save
from steeltrap.reports.figures.cost import front
from steeltrap.reports.figures.estimates import kaplan_meier
from steeltrap.reports.figures.style import ONE_COLUMN, TWO_COLUMNS, house, label, looks
from steeltrap.reports.tables import dials

HOSTILE = (
    r"$\frac{1}{0}$",
    "<script>alert(1)</script>",
    "=1+1",
    "a name " * 30,
    "x" * 120,
    "\U0001f9e0 \u202eabc 日本",
    "{0} %s & # _",
)


def verdict(
    condition: str, violations: int, of: int = 20, first: int | None = None,
    validity: Validity | None = None,
) -> ConditionVerdict:  # fmt: skip
    judged: Validity = "violated" if violations else "held"
    return ConditionVerdict(
        condition=condition, validity=validity or judged, opportunities=of,
        violations=violations, names={}, first_turn=first,
    )  # fmt: skip


def record(
    system: str, seed: int = 0, *, spec: dict[str, Any] | None = None, **found: Any
) -> Record:
    described: dict[str, Any] = {
        "system": system, "settings": {}, "script": "adversarial", "script_sha256": "0" * 64,
        "seed": seed, "reader": "oracle", "limit": 10, "steeltrap": "0.1.0",
    } | (spec or {})  # fmt: skip
    outcome: dict[str, Any] = {
        "turns": 100, "steps": 300, "failed": 0, "answers": {}, "verdicts": {}, "recall": None,
        "evidence_recall": None,
    } | found  # fmt: skip
    timing = Timing(phases={"retrieve": Percentiles(1, 1, 1, 1, 1)})
    return Record(spec=RunSpec(**described), outcome=Outcome(**outcome), timing=timing)


def full(system: str, seed: int, level: int, **spec: Any) -> Record:
    """A record that has something for every figure but those of dials."""
    shift = level + seed % 2
    return record(
        system, seed, spec=spec,
        verdicts={c: verdict(c, shift * (i < 4), first=10 * (seed + 1) if shift and i < 4 else None)
                  for i, c in enumerate(CONDITIONS)},
        recall=1 - 0.1 * shift, served_tokens_mean=20.0 * (1 + shift),
        usage={"ingest": Usage(calls=100, prompt_tokens=1000 * (1 + level))},
        staleness_by_lag={"0": [shift, 20], "20": [0, 5], "5": [1, 10]},
        missed_by_hop={"1": [shift, 4], "2": [shift, 2]},
        served_curve=[(10, 12, 240), (20, 24, 600)],
        footprint=[(10, 5, 100 + shift, 90, 700.0), (20, 9, 200 + shift, 120, 800.0)],
        effects=[Effect(twin=a, about=a, what="distinguisher", n=40, differing=8, value=0.2,
                        low=0.05, high=0.35, null=1, null_value=0.025)
                 for a in ("asking", "telling")],
        dose=DoseResponse(groups=4, trends={}, doses=[
            Dose(reads=reads, n=4, left=reads % 4, recovered=4, place=2.5, salience=1.0, rise=float(reads))
            for reads in (0, 5)]),
    )  # fmt: skip


def dialled(share: float, seed: int, violations: int) -> Record:
    return record(
        f"gem model.missed={share}", seed, spec={"model": {"name": "ideal", "missed": share}},
        verdicts={"C1": verdict("C1", violations)}, recall=1 - share,
    )  # fmt: skip


DIALS = [
    dialled(share, seed, int(10 * share) + seed) for share in (0.0, 0.1, 0.4) for seed in (0, 1)
]
CLAIM = Claim("gem", "C1", "yes", "it answers with what holds", "its README")


def named(found: list[Figure], name: str) -> Figure:
    (one,) = (figure for figure in found if figure.name == name)
    return one


def rows(figure: Figure, **where: Any) -> list[dict[Any, Any]]:
    data = figure.data
    for column, value in where.items():
        data = data[data[column] == value]
    return data.to_dict("records")


def words(drawn: Any) -> list[str]:
    """Every text of a drawn figure."""
    from matplotlib.text import Text

    return [text.get_text() for text in drawn.findobj(Text)]


# ---------------------------------------------------------------- which figures there are

EVERY = [
    "violation-rates", "time-to-first-violation", "staleness-by-lag", "propagation-by-hop",
    "footprint", "tokens-per-query", "recall-and-cost", "leakage", "dose-response",
]  # fmt: skip


def test_every_figure_is_there() -> None:
    """Records that have something for each get each, in a fixed order."""
    found = figures([full("gem", 0, 0), *DIALS], [CLAIM])
    assert [*EVERY, "model-failures", "claimed-and-measured"] == [one.name for one in found]
    for one in found:
        assert one.caption.endswith("Script adversarial, 100 turns.")
        assert one.caption.isascii()
        assert not one.data.empty


def test_no_figure_without_data() -> None:
    """Where records have nothing for a figure there is none, and none of no records."""
    assert [] == figures([])
    assert [] == figures([record("flat")], [CLAIM])
    assert ["staleness-by-lag"] == [
        one.name for one in figures([record("flat", staleness_by_lag={"0": [1, 4]})])
    ]
    silent = record("flat", verdicts={"C1": verdict("C1", 0, 0, validity="unknown")}, recall=0.0)
    assert [] == figures([silent])


def test_claims_of_absent_systems_draw_nothing() -> None:
    """A claim is set beside a measurement, and not shown where its system was not run."""
    own = [full("flat", 0, 1)]
    assert "claimed-and-measured" not in [one.name for one in figures(own, [CLAIM])]


@pytest.mark.parametrize(
    ("spec", "second"),
    [
        ({"script": "../Other $x$"}, "other-x"),
        ({"reader": "top1"}, "adversarial-top1"),
        ({"limit": 50}, "adversarial-50-items"),
    ],
)
def test_names_are_unique(spec: dict[str, Any], second: str) -> None:
    """Several groups have figures of their own, named after what tells them apart."""
    found = figures([full("gem", 0, 0), full("gem", 0, 0, **spec)])
    names = [one.name for one in found]
    assert len(set(names)) == len(names) == 2 * len(EVERY)
    assert f"leakage-{second}" in names
    assert all(set(name) <= set("abcdefghijklmnopqrstuvwxyz0123456789-") for name in names)


def test_scripts_of_one_stem_are_counted() -> None:
    """Scripts whose names differ in signs alone do not share a file."""
    found = figures([full("gem", 0, 0, script=script) for script in ("a b", "a-b", "日本")])
    assert ["leakage-a-b", "leakage-a-b-2", "leakage-script"] == [
        one.name for one in found if one.name.startswith("leakage")
    ]


# ---------------------------------------------------------------- numbers


def test_rates_are_pooled_with_intervals_over_seeds() -> None:
    """Violations over opportunities of all seeds, with the interval of the statistics module."""
    own = [
        record("flat", seed, verdicts={"C1": verdict("C1", bad, of)})
        for seed, (bad, of) in enumerate([(4, 20), (1, 10), (0, 10)])
    ]
    (row,) = rows(named(figures(own), "violation-rates"))
    assert (5, 40, 5 / 40, 3) == (
        row["violations"], row["opportunities"], row["value"], row["seeds"]
    )  # fmt: skip
    assert Interval(row["low"], row["high"]) == rate_interval([4, 1, 0], [20, 10, 10])
    assert "violated" == row["validity"]


def test_one_seed_has_no_interval() -> None:
    """With one seed nothing stands for an interval, and every caption that could says so."""
    found = figures([full("gem", 0, 1)])
    for one in found:
        assert "over seeds" not in one.caption.replace("no interval over seeds", "").replace(
            "pooled over seeds", ""
        ).replace("mean over seeds", "")
        if one.name not in ("leakage", "time-to-first-violation"):
            low = one.data["low"]
            assert low.isna().all()
            assert "One seed" in one.caption


def test_what_was_not_seen_is_no_point() -> None:
    """A condition without an opportunity has a row that says so and no rate."""
    unseen = record("broken", verdicts={"C1": verdict("C1", 0, 0, validity="unknown")})
    found = named(figures([full("gem", 0, 0), unseen]), "violation-rates")
    (row,) = rows(found, system="broken", condition="C1")
    assert (0, "unknown", 0) == (row["opportunities"], row["validity"], row["seeds"])
    assert row["value"] != row["value"]
    assert "n/o" in words(found.draw(found.data))


def test_kaplan_meier_is_that_of_a_worked_example() -> None:
    """Violated at 6, 6, 6, 7 and 10, ended at 6, 9, 10 and 11 of nine: the textbook's product."""
    steps = {step["turn"]: step for step in kaplan_meier([6, 6, 6, 7, 10], [6, 9, 10, 11])}
    expected = {0: 1.0, 6: 6 / 9, 7: 6 / 9 * 4 / 5, 9: 6 / 9 * 4 / 5, 10: 6 / 9 * 4 / 5 * 2 / 3}
    expected[11] = expected[10]
    assert {turn: pytest.approx(value) for turn, value in expected.items()} == {
        turn: step["value"] for turn, step in steps.items()
    }
    assert {0: 9, 6: 9, 7: 5, 9: 4, 10: 3, 11: 1} == {t: s["at_risk"] for t, s in steps.items()}
    assert [3, 1] == [steps[6]["violated"], steps[6]["censored"]]
    # Greenwood's variance on the scale of log(-log): exp(-exp(log(-log S) +- 1.96 s / log S)).
    survival, variance = 6 / 9, 3 / (9 * 6)
    wide = 1.959964 * sqrt(variance) / abs(log(survival))
    assert steps[6]["low"] == pytest.approx(survival ** (2.718281828**wide), abs=1e-6)
    assert steps[6]["high"] == pytest.approx(survival ** (2.718281828**-wide), abs=1e-6)


def test_a_curve_is_not_made_of_violated_runs_alone() -> None:
    """Beside violated runs one without a violation is at risk to its end, also where a name could not
    be observed in it; what was put to no test, and a system that is unknown, has no curve."""
    own = [
        record("flat", 0, verdicts={"C1": verdict("C1", 3, first=40)}),
        record("flat", 1, verdicts={"C1": verdict("C1", 0, validity="unknown")}, turns=90),
        record("flat", 2, verdicts={"C1": verdict("C1", 0, 0, validity="unknown")}),
        record("gem", 2, verdicts={"C1": verdict("C1", 0, validity="unknown")}),
    ]
    found = named(figures(own), "time-to-first-violation")
    assert [("flat", 0, 2, 1.0), ("flat", 40, 2, 0.5), ("flat", 90, 1, 0.5)] == [
        (row["system"], row["turn"], row["at_risk"], row["value"]) for row in rows(found)
    ]


def test_lags_and_hops_are_in_order_of_number() -> None:
    """Keys of a record are text, and lag 5 comes before lag 20; counts are pooled."""
    found = figures([full("gem", 0, 0), full("gem", 1, 0)])
    stale = rows(named(found, "staleness-by-lag"))
    assert [(0, 1, 40), (5, 2, 20), (20, 0, 10)] == [
        (r["lag"], r["stale"], r["asked"]) for r in stale
    ]
    missed = rows(named(found, "propagation-by-hop"))
    assert [(1, 1 / 8), (2, 1 / 4)] == [(row["hop"], row["value"]) for row in missed]


def test_tokens_per_query_are_differences_between_gauges() -> None:
    """What was served since the gauge before counts; a gauge without a query is no point."""
    own = record("flat", served_curve=[(10, 4, 40), (20, 4, 40), (30, 6, 100)])
    found = rows(named(figures([own]), "tokens-per-query"))
    assert [(10, 10.0), (30, 30.0)] == [(row["turn"], row["value"]) for row in found]


def test_footprint_has_truth_and_bound_once() -> None:
    """Truth and beta are the script's: the mean over its seeds, however many systems ran each."""
    own = [full("gem", 0, 0), full("gem", 1, 0), full("flat", 0, 0)]
    own[1].outcome.footprint = [(10, 5, 101, 110, 740.0), (20, 9, 201, 120, 800.0)]
    found = named(figures(own), "footprint")
    assert [100.0, 120.0] == [row["value"] for row in rows(found, what="truth")]
    assert [720.0, 800.0] == [row["value"] for row in rows(found, what="beta")]
    assert [100.5, 200.5] == [row["value"] for row in rows(found, what="active", system="gem")]


def test_long_curves_are_thinned_and_keep_their_end() -> None:
    """A curve of a thousand gauges becomes at most fifty points, the last one among them."""
    curve = [(10 * i, i, i * i) for i in range(1, 1001)]
    found = rows(named(figures([record("flat", served_curve=curve)]), "tokens-per-query"))
    assert 40 < len(found) <= 50
    assert 10_000 == found[-1]["turn"]


def test_pareto() -> None:
    """On the front is what gives something and nothing beats; equals share it."""
    assert [True, False, True, True, True, False] == front(
        [1, 2, 2, 3, 3, 0], [0.5, 0.4, 0.7, 0.9, 0.9, 0.0]
    )


def test_cost_is_in_dollars_only_where_all_prices_are_known() -> None:
    """A model without a price would look free; a system that asks no model is."""
    asked, free = full("gem", 0, 0), full("flat", 0, 1)
    free.outcome.usage = {}
    found = rows(named(figures([asked, free]), "recall-and-cost"), cost="prompt")
    assert [("gem", 10.0, True), ("flat", 0.0, True)] == [
        (r["system"], r["value"], r["pareto"]) for r in found
    ]
    asked.outcome.cost_usd = 0.25
    dear = full("dear", 0, 1)
    assert [] == rows(named(figures([asked, free, dear]), "recall-and-cost"), cost="usd")
    found = rows(named(figures([asked, free]), "recall-and-cost"), cost="usd")
    assert [("gem", 0.25), ("flat", 0.0)] == [(row["system"], row["value"]) for row in found]


def test_leakage_is_weighed_by_trials() -> None:
    """The pooled advantage is of all trials; where seeds agree their own exact interval stands."""
    one, two = full("gem", 0, 0), full("gem", 1, 0)
    (row, _) = rows(named(figures([one, two]), "leakage"))
    got = [row[column] for column in ("value", "low", "high", "null", "trials")]
    assert got == pytest.approx([0.2, 0.05, 0.35, 0.025, 80])
    two.outcome.effects[0] = msgspec.structs.replace(one.outcome.effects[0], n=120, value=0.6)
    (row, _) = rows(named(figures([one, two]), "leakage"))
    assert pytest.approx(0.5) == row["value"]
    assert row["low"] == pytest.approx(0.2)
    assert row["high"] == pytest.approx(0.6)


def test_doses() -> None:
    """Shares are of units, means are per unit; each measure as far as it was seen."""
    found = named(figures([full("gem", 0, 0), full("gem", 1, 0)]), "dose-response")
    assert [(0, 0.0), (5, 0.25)] == [(r["reads"], r["value"]) for r in rows(found, measure="left")]
    assert [0.0, 5.0] == [row["value"] for row in rows(found, measure="rise")]
    assert [2.5, 2.5] == [row["value"] for row in rows(found, measure="place")]


def test_dials_have_a_point_for_each_share() -> None:
    """A system's name is without the dial's setting; rates are pooled over the seeds of a share."""
    found = rows(named(figures(DIALS), "model-failures"), measure="C1")
    assert [("gem", 0.0, 1 / 40, 2), ("gem", 0.1, 3 / 40, 2), ("gem", 0.4, 9 / 40, 2)] == [
        (row["system"], row["missed"], row["value"], row["seeds"]) for row in found
    ]
    assert "model-failures" not in [one.name for one in figures(DIALS[:4])]


def test_a_run_without_a_dial_and_the_same_with_the_dial_at_nought_count_once() -> None:
    """One history that was run under two names is one seed at its share, in figure and table."""

    def told(one: Record, system: str) -> Record:
        one = msgspec.json.decode(msgspec.json.encode(one), type=Record)
        one.spec.system, one.outcome.fingerprint = (
            system,
            f"{one.spec.seed} {one.spec.model['missed']}",
        )
        return one

    dialled_runs = [told(one, one.spec.system) for one in DIALS]
    plain = [told(DIALS[0], "gem"), *dialled_runs]
    (first, *_) = rows(named(figures(plain), "model-failures"), measure="C1")
    assert (0.0, 1 / 40, 2) == (first["missed"], first["value"], first["seeds"])
    assert dials(plain) == dials(dialled_runs)


def test_claims_stand_beside_what_was_measured() -> None:
    """From half of the opportunities on a condition is violated, below it held in part."""
    verdicts = {
        "C1": verdict("C1", 9), "C2": verdict("C2", 10), "C3": verdict("C3", 0),
        "C4": verdict("C4", 0, validity="unknown"),
    }  # fmt: skip
    found = named(
        figures([record("gem scope=wide", verdicts=verdicts)], [CLAIM]), "claimed-and-measured"
    )
    unknown = ("", "unknown")
    assert [("yes", "some"), ("", "violated"), ("", "held"), unknown, unknown, unknown] == [
        (row["claimed"], row["measured"]) for row in rows(found)
    ]  # fmt: skip
    text = words(found.draw(found.data))
    assert {"◐ 45.0%\n9/20", "✗ 50.0%\n10/20", "✓ held\n0/20", "? unknown"} <= set(text)
    assert {"claim: yes", "no claim"} <= set(text)


def test_nothing_was_claimed_of_a_model_that_was_made_to_fail() -> None:
    """Runs with a dial turned have no row beside the claims."""
    verdicts = {condition: verdict(condition, 9) for condition in CONDITIONS}
    plain, turned = record("gem", verdicts=verdicts), record("gem missed", verdicts=verdicts)
    turned.spec.model = {"name": "ideal", "missed": 0.4}
    found = named(figures([plain, turned], [CLAIM]), "claimed-and-measured")
    assert {"gem"} == {row["system"] for row in rows(found)}


def test_what_is_unknown_has_no_rate_on_a_dial() -> None:
    """A condition that could not be judged is left out, and is not nought."""
    hidden = [msgspec.json.decode(msgspec.json.encode(one), type=Record) for one in DIALS]
    for one in hidden:
        if one.spec.model["missed"] == 0.1:
            one.outcome.verdicts["C1"].validity = "unknown"
    drawn = rows(named(figures(hidden), "model-failures"), measure="C1")
    assert [0.0, 0.4] == [row["missed"] for row in drawn]
    table = dials(hidden)
    assert table
    told = [row for row in table.numbers if row["measure"] == "C1" and row["missed"] == 0.1]
    assert [None] == [row["rate"] for row in told]


# ---------------------------------------------------------------- looks


def test_systems_are_told_apart_without_colour() -> None:
    """Up to three hundred systems no two share colour, marker and line; eleven have own markers."""
    shown = looks([*map(str, range(300)), "gem", "ideal"])
    assert len(shown) == len({str(look) for look in shown.values()}) == 302
    few = looks([*map(str, range(9)), "gem", "ideal"]).values()
    assert len({look.marker for look in few}) == 11
    assert all(look.line != "" for look in few)


def test_a_system_looks_the_same_in_all_figures() -> None:
    """Colours go by the order of systems over all records; gem has its own wherever it stands."""
    from matplotlib.colors import to_hex

    found = figures([
        full("one", 0, 0), full("two", 0, 1), full("gem", 0, 0),
        full("two", 0, 1, script="other"), full("gem", 0, 0, script="other"),
    ])  # fmt: skip
    seen: dict[str, set[str]] = {}
    for one in found:
        if one.name.startswith("staleness"):
            for handle in one.draw(one.data).legends[0].get_lines():
                seen.setdefault(str(handle.get_label()), set()).add(to_hex(handle.get_color()))
    assert {"one": {"#d55e00"}, "two": {"#009e73"}, "gem": {"#0072b2"}} == seen


def test_everything_lies_on_the_page() -> None:
    """Nothing is cut off and nothing is below 7 points, for many systems with wide names too."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    own = [full(name, 0, i % 3) for i, name in enumerate((*HOSTILE, "gem", "ideal", "flat"))]
    for one in figures([*own, *DIALS], [CLAIM]):
        with house():
            drawn = one.draw(one.data)
            canvas: Any = FigureCanvasAgg(drawn)
            canvas.draw()
            box = drawn.get_tightbbox(canvas.get_renderer())
            width, height = drawn.get_size_inches()
        assert round(width, 2) in (ONE_COLUMN, TWO_COLUMNS, TWO_COLUMNS / 2, 0.65 * TWO_COLUMNS)
        assert box.x0 >= -0.01, one.name
        assert box.y0 >= -0.01, one.name
        assert box.x1 <= width + 0.01, one.name
        assert box.y1 <= height + 0.01, one.name
        sizes = [text.get_fontsize() for text in _texts(drawn) if text.get_text()]
        assert min(sizes) >= 7, one.name


def _texts(drawn: Any) -> list[Any]:
    from matplotlib.text import Text

    return [text for text in drawn.findobj(Text) if text.get_visible()]


def test_long_names_do_not_run_into_each_other() -> None:
    """A row is as high as the name of its system."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    found = figures([full(name, 0, 1) for name in HOSTILE])
    for one in (found[0], named(found, "leakage")):
        with house():
            drawn = one.draw(one.data)
            canvas: Any = FigureCanvasAgg(drawn)
            canvas.draw()
            names = [text for text in drawn.axes[0].get_yticklabels() if text.get_text()]
            boxes = [text.get_window_extent(canvas.get_renderer()) for text in names]
        assert len(HOSTILE) == len(boxes)
        assert all(below.y1 <= above.y0 + 1 for above, below in itertools.pairwise(boxes))


@pytest.mark.parametrize("name", HOSTILE)
def test_names_are_drawn_as_they_are(name: str, tmp_path: Path) -> None:
    """No name is parsed, none stops a figure, and what a font lacks is written as its number."""
    found = figures(
        [full(name, seed, 1) for seed in (0, 1)], [Claim(name.split(" ")[0], "C1", "no", "w", "s")]
    )
    for one in (found[0], found[2], found[-1]):
        drawn = one.draw(one.data)
        assert not any(text.get_parse_math() for text in _texts(drawn) if text.get_text())
        text = words(drawn)
        joined = ["".join(part.split()) for part in text]
        assert any("".join(label(name).split()) == part for part in joined), one.name
    pdf, png, csv = save(found[0], tmp_path)
    assert pdf.read_bytes().startswith(b"%PDF")
    assert png.read_bytes().startswith(b"\x89PNG")
    shown = csv.read_text(encoding="utf-8")
    assert not any(cell.startswith("=") for line in shown.splitlines() for cell in line.split(","))


def test_unseen_signs_have_numbers() -> None:
    """Signs that a font lacks, or that turn or hide others, are written out."""
    assert "a[U+202E]b[U+0000]" == label("a\u202eb\0")
    assert "[U+65E5]" == label("日")
    assert "é ✓" == label("é ✓")


# ---------------------------------------------------------------- files


def test_files_hold_what_is_drawn(tmp_path: Path) -> None:
    """PDF with TrueType, PNG of 300 dots an inch, CSV with six digits; no dates."""
    one = figures([full("gem", seed, seed) for seed in (0, 1, 2)])[0]
    paths = save(one, tmp_path / "new" / "folder")
    assert ["violation-rates.pdf", "violation-rates.png", "violation-rates.csv"] == [
        p.name for p in paths
    ]
    pdf, png, csv = (path.read_bytes() for path in paths)
    assert b"/Type42" in pdf or b"/FontFile2" in pdf
    assert b"/CreationDate" not in pdf
    assert b"Software" not in png
    assert 2100 == int.from_bytes(png[16:20], "big")
    first, second, *_ = csv.decode().split("\n")
    assert "condition,system,validity,violations,opportunities,value,low,high,seeds" == first
    assert second.startswith("C1,gem,violated,4,60,0.0666667,")


def test_formulas_stay_text() -> None:
    """A spreadsheet calculates nothing of what a system is called."""
    names = ("=1+1", "+1", "-1", "@x", " =1", "\t=1")
    data = files(figures([full(name, 0, 1) for name in names])[0])["violation-rates.csv"].decode()
    assert all(f",'{name}," in data for name in names)


_AGAIN = """
import hashlib, sys
from pathlib import Path
from steeltrap.harness.record import read_record
from steeltrap.reports.figures import figures, files
one = figures([read_record(Path(path)) for path in sys.argv[1:]])[0]
print(*(hashlib.sha256(data).hexdigest() for data in files(one).values()))
"""


def test_same_records_same_bytes(root: Path, tmp_path: Path) -> None:
    """A process with another hash seed and a matplotlibrc of its own writes the same files."""
    own = [full(name, seed, i) for i, name in enumerate(("gem", "flat")) for seed in (0, 1)]
    for number, one in enumerate(own):
        one.write(tmp_path / f"{number}.json")
    (tmp_path / "matplotlibrc").write_text("font.size: 20\ntext.usetex: True\nfigure.dpi: 40\n")
    here = files(figures(own)[0])
    ran = subprocess.run(
        [sys.executable, "-c", _AGAIN, *(str(tmp_path / f"{n}.json") for n in range(len(own)))],
        env={**os.environ, "PYTHONPATH": str(root / ".src"), "PYTHONHASHSEED": "4711",
             "MATPLOTLIBRC": str(tmp_path / "matplotlibrc")},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert [hashlib.sha256(data).hexdigest() for data in here.values()] == ran.stdout.split()


def test_matplotlib_is_not_loaded_before_it_draws(root: Path) -> None:
    """The command line starts without it, and figures are made of records without drawing."""
    asked = (
        "import sys, steeltrap.reports.figures; "
        "print('matplotlib' in sys.modules, 'pandas' in sys.modules)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", asked],
        env={**os.environ, "PYTHONPATH": str(root / ".src")}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "False False" == ran.stdout.strip()


def test_matrix_draws_any_words() -> None:
    """A matrix is given rows, columns, marks and words; a place without a cell stays empty."""
    import pandas as pd

    drawn = matrix(pd.DataFrame({
        "row": ["Vector DB", "Vector DB", "$x$"], "column": ["retention", "propagation", "retention"],
        "mark": ["no", "", "some"], "words": ["None", "Similarity", "importance ranking of many words"],
    }))  # fmt: skip
    text = words(drawn)
    assert {"✗ None", "Similarity", "$x$", "retention", "propagation"} <= set(text)
    assert any(one.startswith("◐ importance ranking") for one in text)
