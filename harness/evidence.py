"""Recall of the turns that hold the answers to the questions of public data.

k counts items in the order in which they were served. A system that ranks serves its best
first; a transcript serves its newest first, so that its first k are the window of the last k
turns.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from statistics import fmean
from typing import Final, NamedTuple

from steeltrap.harness.history import Event
from steeltrap.harness.record import Evidence
from steeltrap.harness.script import Probe, Step

__all__ = ["CUTOFFS", "evidence_rows"]

CUTOFFS: Final = (5, 10, 25, 50)
_GROUPS: Final[dict[str, tuple[str, ...]]] = {"1-4": ("1", "2", "3", "4")}
"""Categories that are also given together: those of LoCoMo that have an answer."""


class _Question(NamedTuple):
    category: str
    wrong_gold: bool
    ranks: list[float]
    """For each turn of evidence the place of the first item that came from it, from 1."""


def evidence_rows(
    pairs: Iterable[tuple[Step, Event]],
    *,
    cutoffs: Sequence[int] = CUTOFFS,
    audited: bool | None = None,
) -> list[Evidence]:
    """Recall and hit rate at each cut-off, per category, over 1 to 4, and over all.

    Left out are questions without evidence and questions whose observation failed, so `n` says
    how many were counted. Where wrong golds are known the rows come a second time without the
    questions that carry a flag `wrong-gold:...` (`left_out="wrong-gold"`).

    Args:
        pairs: every step of a run with its outcome, in order.
        cutoffs: values of k; none should exceed the number of items that a query was served.
        audited: whether wrong golds are known; by default when any question is flagged.
    """
    questions, flagged = _questions(pairs)
    rows = _rows(questions, cutoffs, "")
    if flagged if audited is None else audited:
        rows += _rows([q for q in questions if not q.wrong_gold], cutoffs, "wrong-gold")
    return rows


def _questions(pairs: Iterable[tuple[Step, Event]]) -> tuple[list[_Question], bool]:
    """The questions that count, and whether any question has a flagged gold."""
    sources: list[tuple[str, ...]] = []
    questions, flagged = [], False
    for step, event in pairs:
        sources.extend(item.sources or () for item in event.new)
        if not isinstance(step, Probe) or step.ask != "evidence":
            continue
        wrong_gold = any(flag.startswith("wrong-gold") for flag in step.flags)
        flagged = flagged or wrong_gold
        if event.type == "ok" and step.evidence:
            place: dict[str, int] = {}
            for rank, number in enumerate(event.served, 1):
                for turn in sources[number]:
                    place.setdefault(turn, rank)
            ranks = [place.get(turn, math.inf) for turn in step.evidence]
            questions.append(_Question(step.category, wrong_gold, ranks))
    return questions, flagged


def _rows(questions: Sequence[_Question], cutoffs: Sequence[int], left_out: str) -> list[Evidence]:
    groups: dict[str, tuple[str, ...]] = {
        category: (category,) for category in sorted({q.category for q in questions})
    }
    for name, members in _GROUPS.items():
        if any(member in groups for member in members):
            groups[name] = members
    groups["all"] = tuple(groups)
    rows = []
    for name, members in groups.items():
        chosen = [q.ranks for q in questions if q.category in members]
        for k in cutoffs if chosen else ():
            found = [[rank <= k for rank in ranks] for ranks in chosen]
            rows.append(
                Evidence(
                    category=name,
                    k=k,
                    n=len(chosen),
                    recall=fmean(map(fmean, found)),
                    hit=fmean(map(any, found)),
                    left_out=left_out,
                )
            )
    return rows
