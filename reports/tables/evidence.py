"""Retrieval of public data: by category, by score, by budget, with neighbours."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from steeltrap.harness.record import Evidence, Record
from steeltrap.reports.numbers import by_system
from steeltrap.reports.table import Numbers, Table, crossed

__all__ = ["TOGETHER", "evidence"]

_SCORES: Final = {
    "recall": "share of a question's evidence, mean",
    "hit": "questions with any of it",
    "all": "questions with all of it",
    "ndcg": "gain over that of the best order",
    "mrr": "1 / place of the first",
}
TOGETHER: Final = ("1-4", "all")
"""Categories that are several others, which come last."""
_BRIEF: Final = (5, 10)
"""Values of k in brief."""
_LEFT_OUT: Final = {
    "wrong-gold": "Left out are questions whose gold is known or said to be wrong.",
    "defects": "Left out are questions with any known defect: of their gold, their evidence, their "
    "sessions or their dates.",
}
_OFFICIAL: Final = {
    "longmemeval": "As LongMemEval's scorer counts: questions without evidence are in (all of nothing "
    "is found, nothing is gained), abstentions are out."
}


def evidence(records: Sequence[Record], *, brief: bool = False) -> list[Table]:
    """The tables of public data; none for other scripts.

    Args:
        records: finished cells.
        brief: recall and hit by category and every score over all questions, at small k alone.
    """
    rows = [
        (system, row)
        for system, own in by_system(records).items()
        for record in own
        for row in record.outcome.evidence
        if not brief or (row.k in _BRIEF and not row.window)
    ]
    if brief:
        return [*_by_category(rows), *(t for t in _by_score(rows) if not _partial(t))]
    return [*_by_category(rows), *_by_score(rows), *_cut_otherwise(rows)]


def _partial(table: Table) -> bool:
    return "without" in table.name


Rows = Sequence[tuple[str, Evidence]]
"""Of every system."""


def _by_category(rows: Rows) -> Iterator[Table]:
    """Recall and hit of turns by category and k; one table for each selection of questions."""
    plain = [row for row in rows if _plain(row[1]) and row[1].grain == "turn"]
    for left_out in dict.fromkeys(one.left_out for _, one in plain if not one.convention):
        own = [row for row in plain if row[1].left_out == left_out and not row[1].convention]
        own.sort(key=lambda row: (row[1].category in TOGETHER, row[1].category))
        numbers = _pooled(own, lambda one: {"category": one.category}, lambda one: {"k": one.k})
        order = list(dict.fromkeys(system for system, _ in rows))
        numbers.sort(key=lambda row: order.index(row["system"]))
        yield crossed(
            "evidence" + (f"-without-{left_out}" if left_out else ""),
            "Recall / hit of evidence" + (f", without {left_out}" if left_out else ""), numbers,
            lambda row: f"{_hundred(row['recall'])} / {_hundred(row['hit'])}",
            down={"system": "system", "category": "category", "n": "questions"},
            across="k", head=lambda k: f"@{k}",
            notes=[
                "n: questions with evidence. Recall is the mean share of a question's evidence among the "
                "first k items; hit the share of questions with any of it there. In percent.",
                *filter(None, [_LEFT_OUT.get(left_out)]),
            ],
        )  # fmt: skip


def _by_score(rows: Rows) -> Iterator[Table]:
    """Every score over all questions, of turns and of sessions, by whose rules they are counted
    and by what is left out."""
    plain = [row for row in rows if _plain(row[1]) and row[1].category == "all"]
    for convention, left_out in dict.fromkeys((one.convention, one.left_out) for _, one in plain):
        own = [
            row for row in plain if (row[1].convention, row[1].left_out) == (convention, left_out)
        ]
        pooled = _pooled(own, lambda one: {"grain": one.grain, "k": one.k}, lambda _: {})
        numbers = [
            {**{key: row[key] for key in ("system", "grain", "k", "questions")}, "score": score, "value": row[score]}
            for row in pooled
            for score in _SCORES
        ]  # fmt: skip
        said = "; ".join(f"{score}: {words}" for score, words in _SCORES.items())
        notes = [f"Of turns, and of sessions that hold any of it, in percent. {said}."]
        notes += filter(None, [_OFFICIAL.get(convention), _LEFT_OUT.get(left_out)])
        yield crossed(
            "evidence-scores"
            + (f"-{convention}" if convention else "")
            + (f"-without-{left_out}" if left_out else ""),
            "Evidence by every score"
            + (f", as {convention} counts" if convention else "")
            + (f", without {left_out}" if left_out else ""),
            numbers, lambda row: _hundred(row["value"]),
            down={"system": "system", "grain": "grain", "k": "k", "n": "questions"},
            across="score", columns=[*_SCORES], notes=notes,
        )  # fmt: skip


def _cut_otherwise(rows: Rows) -> Iterator[Table]:
    """Recall within a budget of tokens, and with neighbours beside the items."""
    total = [(s, one) for s, one in rows if one.category == "all" and not one.left_out and not one.convention]  # fmt: skip
    within = [row for row in total if row[1].budget_tokens]
    if within:
        yield crossed(
            "evidence-budget", "Evidence within a budget of tokens",
            _pooled(within, lambda _: {}, lambda one: {"budget_tokens": one.budget_tokens}), _spent,
            down={"system": "system", "n": "questions"}, across="budget_tokens",
            head=lambda budget: f"{budget:,} tokens",
            notes=["Recall, all, and the mean tokens of the items that fit, in the order served."],
        )  # fmt: skip
    near = [(s, one) for s, one in total if one.grain == "turn" and one.k and not one.budget_tokens]
    if near:
        yield crossed(
            "evidence-window", "Evidence with neighbours beside the items",
            _pooled(near, lambda one: {"window": one.window}, lambda one: {"k": one.k}), _spent,
            down={"system": "system", "window": "window", "n": "questions"}, across="k",
            head=lambda k: f"@{k}",
            notes=[
                "Recall, all, and mean tokens, when so many turns before and after each of the first k "
                "items are put beside it, within its session."
            ],
        )  # fmt: skip


def _plain(one: Evidence) -> bool:
    return one.k > 0 and not one.window


def _pooled(
    rows: Rows, down: Callable[[Evidence], Numbers], across: Callable[[Evidence], Numbers]
) -> list[Numbers]:
    """Means over all questions of several cells."""
    cells: dict[tuple[Any, ...], list[Evidence]] = {}
    about: dict[tuple[Any, ...], Numbers] = {}
    for system, one in rows:
        line, column = {"system": system, **down(one)}, across(one)
        key = (*line.values(), *column.values())
        cells.setdefault(key, []).append(one)
        about[key] = {**line, "questions": 0, **column}
    most: dict[tuple[Any, ...], int] = {}
    for key, found in cells.items():
        most[key[:-1]] = max(most.get(key[:-1], 0), sum(one.n for one in found))
    return [
        {**about[key], "questions": most[key[:-1]], **_means(found)} for key, found in cells.items()
    ]


def _means(cells: Sequence[Evidence]) -> Numbers:
    total = sum(one.n for one in cells)

    def mean(score: str) -> float | None:
        values = [(one.n, getattr(one, score)) for one in cells if getattr(one, score) is not None]
        return sum(n * value for n, value in values) / total if values else None

    return {score: mean(score) for score in (*_SCORES, "tokens")}


def _hundred(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.1f}"


def _spent(row: Numbers) -> str:
    return f"{_hundred(row['recall'])} / {_hundred(row['all'])}\n{row['tokens']:,.0f}"
