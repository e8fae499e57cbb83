"""Growth in reports: a system stands where it came to, exponents have words, a figure is its data."""

from __future__ import annotations

import random
from io import BytesIO, StringIO
from typing import Any

import pandas as pd
import pytest
from rich.console import Console

from steeltrap.harness.growth import LENGTHS
from steeltrap.harness.growth import growth as measured
from steeltrap.harness.history import Event
from steeltrap.harness.models import Usage
from steeltrap.harness.record import CostAt, Outcome, Record, RunSpec, Timing
from steeltrap.harness.script import Erasure, Gauge, Pause, Probe, Turn
from steeltrap.harness.stats import Power
from steeltrap.reports import layout, paper
from steeltrap.reports.facts import comparable
from steeltrap.reports.figures import Figure, figures, files
from steeltrap.reports.growth import COSTS, MAIN, reached, reading
from steeltrap.reports.tables import growth, growth_costs

WHY = "after 3 600 s (limits.run_s), at turn 8 213 of 50 000"


def record(
    system: str, *, turns: int = 50_000, seed: int = 0, stopped: str = "", noise: float = 0.02,
    **exponents: float,
) -> Record:  # fmt: skip
    """A life in which each cost grows as turns to some power, beginning with 2 at 100 turns."""
    dice = random.Random(f"{system} {seed}")
    lengths = [n for n in LENGTHS if n <= turns]
    lengths += [turns] if turns not in lengths else []
    points = [
        CostAt(turns=n, operations={}, costs={
            cost: 2 * (n / 100) ** x * dice.lognormvariate(0, noise) for cost, x in exponents.items()
        })
        for n in lengths
    ]  # fmt: skip
    spec = RunSpec(
        system=system, settings={}, script="decade", script_sha256=f"{seed:x}" * 64, seed=seed,
        reader="oracle", limit=10, steeltrap="0.1.0",
    )  # fmt: skip
    outcome = Outcome(
        turns=turns, steps=2 * turns, failed=0, answers={}, verdicts={}, recall=None,
        evidence_recall=None, stopped=stopped,
    )  # fmt: skip
    return Record(spec=spec, outcome=outcome, timing=Timing(phases={}, growth=points))


def three() -> list[Record]:
    """One that goes to the end, one that was stopped, one of which two costs are known alone."""
    return [
        record("flat", ingest_ms=0, retrieve_ms=1, served_tokens=0.5, active_tokens=1, true_tokens=0.2,
               size_bytes=1, life_ms=1),
        record("slow", turns=8213, stopped=WHY, ingest_ms=2, retrieve_ms=0, life_ms=3),
        record("quiet", ingest_ms=0.5, life_ms=1.5),
    ]  # fmt: skip


def cell(records: list[Record], system: str, cost: str) -> list[str]:
    table = growth(records)
    assert table is not None
    (row,) = [row for row in table.rows if row[0] == system]
    return row[table.header.index(COSTS[cost].head)].split("\n")


# ---------------------------------------------------------------- tables


def test_a_row_a_system_as_far_as_it_came() -> None:
    """One that was stopped stands beside the others of its script, with its turns and the reason."""
    records = three()
    assert [records] == comparable(records)
    table = growth(records)
    assert table is not None
    assert [["flat", "50,000"], ["slow", "8,213"], ["quiet", "50,000"]] == [
        r[:2] for r in table.rows
    ]
    assert f"slow ended early: {WHY}." == table.notes[-1]
    told = {(row["system"], row["cost"]): row for row in table.numbers}
    assert WHY == told["slow", "ingest_ms"]["stopped"]
    assert 2 == pytest.approx(told["slow", "ingest_ms"]["exponent"], abs=0.1)


def test_lengths_of_their_own_stay_apart() -> None:
    """A script that was run at two lengths on purpose makes two groups; what was stopped is of the
    longer."""
    whole, short = record("flat", ingest_ms=1), record("flat", turns=1000, ingest_ms=1)
    stopped = record("slow", turns=8213, stopped=WHY, ingest_ms=1)
    assert [[whole, stopped], [short]] == comparable([whole, short, stopped])


def test_a_cost_says_exponent_interval_and_word() -> None:
    """And how steep it is late; what is not known is a dash."""
    records = three()
    flat, late, word = cell(records, "flat", "retrieve_ms")
    assert "linear" == word
    assert flat.startswith(("1.0", "0.9")) and " ±0.0" in flat
    assert late.startswith(("late 1.0", "late 0.9"))
    assert "flat" == cell(records, "flat", "ingest_ms")[-1]
    assert "sublinear" == cell(records, "quiet", "ingest_ms")[-1]
    assert "superlinear" == cell(records, "slow", "ingest_ms")[-1]
    assert ["-"] == cell(records, "quiet", "retrieve_ms")


def test_a_sum_has_no_interval_of_its_own_points() -> None:
    """The points of a sum hang together: one seed gives an exponent alone, three an interval."""
    one = [record("flat", life_ms=1.5)]
    assert 2 == len(cell(one, "flat", "life_ms")) and "±" not in cell(one, "flat", "life_ms")[0]
    seeds = [record("flat", seed=seed, life_ms=1.5) for seed in range(3)]
    assert "superlinear" == cell(seeds, "flat", "life_ms")[-1]
    table = growth(seeds)
    assert table is not None
    assert ("seeds", 3) == (table.numbers[0]["over"], table.numbers[0]["seeds"])
    assert any("over seeds" in note for note in table.notes)
    assert not any("distances of the points" in note for note in table.notes)


@pytest.mark.parametrize(
    ("low", "high", "word"),
    [
        (-0.05, 0.09, "flat"), (-0.9, -0.2, "falling"), (0.2, 0.9, "sublinear"),
        (-0.05, 0.3, "sublinear"), (0.9, 1.1, "linear"), (1.0, 1.2, "linear"),
        (1.01, 1.2, "superlinear"), (0.05, 1.2, "unclear"), (0.4, 1.1, "unclear"),
        (0.9, 2.1, "unclear"),
    ],
)  # fmt: skip
def test_an_interval_has_a_word(low: float, high: float, word: str) -> None:
    """Flat lies below 0.1, linear lies about 1, and what may as well be a root or a square is unclear."""
    assert word == reading(Power((low + high) / 2, low, high, 5, "points"))


def test_few_points_have_no_exponent_but_a_slope() -> None:
    """A quick look of 1,000 turns says what it cost, and how steep it was over its one tenfold."""
    records = [record("flat", turns=1000, noise=0, ingest_ms=1)]
    assert ["late 1.00"] == cell(records, "flat", "ingest_ms")
    costs = growth_costs(records)
    assert costs is not None
    assert [["ingest a turn, ms", "flat", "2", "20"]] == costs.rows


def test_costs_stand_at_their_lengths() -> None:
    """In their units, a dash where a system did not come to, and an end where systems end between."""
    slow = record("slow", turns=8213, noise=0, stopped=WHY, ingest_ms=1, life_ms=1)
    records = [record("flat", noise=0, ingest_ms=1, size_bytes=2, life_ms=1), slow]
    table = growth_costs(records, brief=True)
    assert table is not None
    assert ["cost", "system", "100", "1,000", "10,000", "50,000", "end"] == table.header
    assert [
        ["ingest a turn, ms", "flat", "2", "20", "200", "1,000", "1,000"],
        ["", "slow", "2", "20", "-", "-", "164"],
        ["on disk, kB", "flat", "0.002", "0.2", "20", "500", "500"],
        ["whole life, s", "flat", "0.002", "0.02", "0.2", "1", "1"],
        ["", "slow", "0.002", "0.02", "-", "-", "0.164"],
    ] == table.rows
    at = {(row["cost"], row["system"], row["at"]): row for row in table.numbers}
    assert (3162, 63.24) == (at["ingest_ms", "flat", "3162"]["turns"], pytest.approx(at["ingest_ms", "flat", "3162"]["value"]))  # fmt: skip
    assert 8213 == at["ingest_ms", "slow", "end"]["turns"]


def test_a_console_has_the_main_costs_and_the_page_all() -> None:
    """Both fit 80 columns."""
    records = [
        record(f"system-{n}", **dict.fromkeys(COSTS, float(n))) for n in range(3)
    ]  # fmt: skip
    brief, full = growth_costs(records, brief=True), growth_costs(records)
    assert brief is not None and full is not None
    assert [*MAIN] == sorted({row["cost"] for row in brief.numbers}, key=MAIN.index)
    assert set(COSTS) == {row["cost"] for row in full.numbers}
    stream = StringIO()
    layout.show(records, Console(file=stream, width=80))
    said = stream.getvalue()
    assert max(map(len, said.splitlines())) <= 80
    assert "How it grows with the length of a life" in said
    assert "list what is active" not in said and "list what is active" in layout.page(records)


def test_short_lives_have_no_growth_in_a_report() -> None:
    """Nor has a report without any record that has."""
    short = record("flat", ingest_ms=1)
    short.timing.growth = []
    assert (None, None) == (growth([short]), growth_costs([short]))
    assert "growth" not in [one.name for one in figures([short])]


def test_a_life_ends_where_nothing_more_was_taken_in() -> None:
    """A system that gave up is not said to have come to the end; a rest too short to count is no gap."""
    assert 50_000 == reached(record("flat", ingest_ms=1))
    gave_up = record("flat", turns=8213, ingest_ms=1)
    gave_up.outcome.turns = 50_000
    assert 8213 == reached(gave_up)
    gave_up.outcome.turns = 9000
    assert 9000 == reached(gave_up)


def test_every_cost_that_is_measured_has_words() -> None:
    """What a history gives is what tables name, and nothing else is named."""
    at = "2026-01-01T00:00"
    used = Usage(calls=1, prompt_tokens=1, completion_tokens=1, embedded_tokens=1, ms=0.1)
    steps = [
        (Turn(id="t", at=at, session="s", text="x", ops=[]), {"ms": 1.0, "usage": {"ingest": used}}),
        (Probe(id="p", at=at, ask="current", text="?"), {"ms": 1.0, "settle_ms": 1.0, "tokens": 1, "usage": {"retrieve": used}}),
        (Pause(id="m", at=at), {"ms": 1.0}),
        (Gauge(id="g", at=at, footprint=(1, 1)), {"ms": 1.0, "via": "listing", "items": 1, "tokens": 1, "size_bytes": 1}),
        (Erasure(id="e", at=at), {"ms": 1.0}),
    ]  # fmt: skip
    events: list[Any] = [(step, Event(i=0, type="ok", **told)) for step, told in steps]  # type: ignore[arg-type]
    (*_, last) = measured(pair for _ in range(1000) for pair in events)
    assert set(COSTS) == set(last.costs)


# ---------------------------------------------------------------- the figure


def figure_of(records: list[Record]) -> Figure:
    (found,) = [one for one in figures(records) if one.name == "growth"]
    return found


def drawn_lines(figure: Figure) -> list[tuple[str, str, float, float]]:
    """(panel, colour, turns, value) of every point that is drawn, the guide apart."""
    panels = figure.draw(figure.data).axes
    return [
        (axes.get_title(loc="left"), str(line.get_color()), float(x), float(y))
        for axes in panels
        for line in axes.lines
        if line.get_gid() != "guide"
        for x, y in zip(line.get_xdata(), line.get_ydata(), strict=True)  # type: ignore[arg-type]
    ]


def test_a_panel_a_cost_holds_what_the_data_hold() -> None:
    """Each point of the data is drawn in the panel of its cost, in its unit, and nothing else is."""
    figure = figure_of(three())
    data = figure.data
    expected = sorted(
        (COSTS[row["cost"]].words, float(row["turns"]), row["value"] / COSTS[row["cost"]].of_unit)
        for row in data.to_dict("records")
    )
    assert expected == sorted((panel, x, y) for panel, _, x, y in drawn_lines(figure))
    main = {cost for cost in MAIN if cost in set(data["cost"])}
    assert main == set(data["cost"])
    # a system's lines have one colour in all panels, and no two systems share it
    colours = {
        system: {
            colour
            for panel, colour, x, y in drawn_lines(figure)
            for row in data[data["system"] == system].to_dict("records")
            if (panel, x) == (COSTS[row["cost"]].words, row["turns"]) and y == row["value"] / COSTS[row["cost"]].of_unit
        }
        for system in data["system"].unique()
    }  # fmt: skip
    assert {1} == {len(one) for one in colours.values()}
    assert len(colours) == len({min(one) for one in colours.values()})


def test_the_csv_is_the_data() -> None:
    """What is read from the file is what was drawn, to six digits; both axes are logarithmic."""
    figure = figure_of(three())
    read = pd.read_csv(BytesIO(files(figure)["growth.csv"]), keep_default_na=False)
    assert list(figure.data.columns) == list(read.columns)
    assert list(figure.data["system"]) == list(read["system"])
    assert list(figure.data["value"]) == pytest.approx([float(v) for v in read["value"]], rel=1e-5)
    panels = [axes for axes in figure.draw(figure.data).axes if axes.get_title(loc="left")]
    assert {("log", "log")} == {(axes.get_xscale(), axes.get_yscale()) for axes in panels}


def test_lines_end_where_runs_ended() -> None:
    """Nothing is drawn beyond the last length that was measured, and nought is left out."""
    records = three()
    records[1].timing.growth[0].costs["retrieve_ms"] = 0.0
    data = figure_of(records).data
    slow = data[data["system"] == "slow"]
    assert 8213 == slow["turns"].max()
    assert [316, 1000, 3162, 8213] == list(slow[slow["cost"] == "retrieve_ms"]["turns"])
    assert (data["value"] > 0).all()


def test_the_caption_says_what_is_there() -> None:
    """What is worth keeping is named where it is drawn; intervals where there are seeds."""
    assert "Thick grey: what is worth keeping." in figure_of(three()).caption
    assert "One seed" in figure_of(three()).caption
    assert "Script decade, 8213 to 50000 turns." in figure_of(three()).caption
    plain = [record("flat", seed=seed, ingest_ms=1) for seed in (0, 1, 2)]
    caption = figure_of(plain).caption
    assert "grey: what" not in caption and "3 seeds" in caption
    assert figure_of(plain).data["low"].notna().all()


def test_every_form_has_the_tables() -> None:
    """Markdown, CSV and LaTeX hold both tables, and a text can quote an exponent by its name."""
    made = paper.documents(three())
    for form in ("md", "csv", "tex"):
        assert made[f"tables/decade-growth.{form}"] and made[f"tables/decade-growth-costs.{form}"]
    assert rb"\steeltrapset{decade/slow/ingest-ms/exponent}" in made["numbers.tex"]
    frame = pd.read_csv(BytesIO(made["tables/decade-growth.csv"]))
    slow = frame[(frame["system"] == "slow") & (frame["cost"] == "ingest_ms")].iloc[0]
    assert (8213, "superlinear", WHY) == (slow["reached"], slow["reading"], slow["stopped"])


def test_what_is_not_known_at_the_end_is_not_said_to_be() -> None:
    """A cost that was last seen earlier has no end, and one that is nought throughout no lines."""
    gap, slow = record("gap", noise=0, ingest_ms=1, size_bytes=1, calls=0), record("slow", turns=8213, noise=0, stopped=WHY, ingest_ms=1)  # fmt: skip
    del gap.timing.growth[-1].costs["size_bytes"]
    for at in gap.timing.growth:
        at.costs["calls"] = 0.0
    table = growth_costs([gap, slow])
    assert table is not None
    on_disk = [row for row in table.rows if row[0] == "on disk, kB"]
    assert [["on disk, kB", "gap", "0.002", "0.02", "0.2", "-", "-"]] == on_disk
    assert not any("calls" in row[0] for row in table.rows)


def test_the_truth_stands_below_the_exponents() -> None:
    """How what is worth keeping grows is the measure of what is kept."""
    table = growth(three())
    assert table is not None
    (note,) = [note for note in table.notes if note.startswith("What is worth keeping")]
    assert "0.2" in note and "sublinear" in note
