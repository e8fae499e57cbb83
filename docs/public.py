"""What `pages/public.md` shows: tables from stored runs, and what became of published figures.

    python docs/public.py runs/locomo runs/longmemeval runs/beam runs/memoryagentbench

The data is nobody's to pass on, so the site cannot make them when it is built: they lie in
`docs/public/`, a file for each folder of runs, and the command above writes them anew.
"""

from __future__ import annotations

import shlex
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from steeltrap.adapters.datasets.published import Figure, published
from steeltrap.harness.record import Record
from steeltrap.harness.store import find_records
from steeltrap.reports.layout import markdown
from steeltrap.reports.table import Table, crossed
from steeltrap.reports.tables import evidence

__all__ = ["FOLDER", "figures", "page", "runs", "stored"]

FOLDER: Final = Path(__file__).parent / "public"
_K: Final = (5, 10)
_ORDER: Final = ("flat", "bm25", "vector", "hybrid", "hybrid-recipe", "gem-words")
_SCORES: Final = ("recall", "hit", "all", "ndcg", "mrr")


def stored(name: str) -> str:
    """The tables of a data set, as they were written."""
    return (FOLDER / f"{name}.md").read_text()


# ---------------------------------------------------------------- tables


def page(records: Sequence[Record]) -> str:
    """The tables of one data set: every score, by category, by budget, with neighbours."""
    made = {table.name: table for table in evidence(records)}
    if not made:
        raise SystemExit("no finished runs of public data there")
    tables = [*_scores(made), *_categories(made), made["evidence-budget"], made["evidence-window"]]
    return "\n\n".join(markdown(table._replace(notes=[])) for table in tables) + "\n"


def _scores(made: dict[str, Table]) -> Iterator[Table]:
    """Every score at small k; of an official scorer those of sessions, which it is about."""
    for name, table in made.items():
        if not name.startswith("evidence-scores") or ("without" in name and "defects" not in name):
            continue
        official = name.removeprefix("evidence-scores").startswith("-longmemeval")
        shown = [
            row for row in table.numbers
            if row["k"] in _K and (not official or row["grain"] == "session")
        ]  # fmt: skip
        least: defaultdict[tuple[str, int], float] = defaultdict(lambda: 1.0)
        for row in shown:
            if row["score"] == "all":
                cut = row["grain"], row["k"]
                least[cut] = min(least[cut], row["value"])
        # where everybody has everything, as among five sessions at 5, nothing is said
        numbers = [row for row in shown if least[row["grain"], row["k"]] < 1]
        yield crossed(
            name, table.title, numbers, lambda row: _percent(row["value"]),
            down={"system": "system", "of": "grain", "k": "k", "questions": "questions"},
            across="score", columns=_SCORES,
        )  # fmt: skip


def _categories(made: dict[str, Table]) -> Iterator[Table]:
    """Recall and hit at 10 by category, systems side by side, with and without defects."""
    for name, words in (("evidence", ""), ("evidence-without-defects", ", without defects")):
        if name in made:
            yield crossed(
                name, f"Recall / hit at 10 by category{words}",
                [row for row in made[name].numbers if row["k"] == 10],
                lambda row: f"{_percent(row['recall'])} / {_percent(row['hit'])}",
                down={"category": "category", "questions": "questions"}, across="system",
            )  # fmt: skip


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.1f}"


def _place(record: Record) -> tuple[int, str, int]:
    """Where a record stands: baselines in the order of what they can, then others by name."""
    system = record.spec.system
    known = _ORDER.index(system) if system in _ORDER else len(_ORDER)
    return known, system, record.spec.seed


# ---------------------------------------------------------------- published figures

_HEAD: Final = ("data", "what", "published", "ours", "became", "published in")


def figures() -> str:
    """What others published, and what became of it here."""
    rows = [_HEAD, ["---"] * len(_HEAD), *map(_line, published().figure)]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _line(one: Figure) -> list[str]:
    ours = "" if one.ours is None else f"{one.ours:.2f} (n {one.n})"
    if one.ours is not None and one.published is not None and one.outcome == "reproduced":
        ours += f", {one.ours - one.published:+.2f}"
    became = f"**{one.outcome}**" + (f": {one.why}" if one.why else "")
    number = "" if one.published is None else f"{one.published:g}"
    return [one.data, one.what, number, ours, became, one.source]


def runs() -> str:
    """The commands that ours are read from."""
    lines = [
        f"steeltrap run script={run.script} script.path={run.script} limit=50 twins=0 "
        f"{shlex.join(run.asked)}  # {name}"
        for name, run in published().run.items()
    ]
    return "\n".join(["```sh", *lines, "```"])


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for folder in map(Path, sys.argv[1:]):
        records = sorted(find_records(folder), key=_place)
        (FOLDER / f"{folder.name}.md").write_text(page(records))
