"""Retrieval of the turns that hold the answers to the questions of public data.

Places count items in the order in which they were served. A system that ranks serves its best
first; a transcript serves its newest first, so that its first k are the window of the last k
turns. Everything is worked out from the history, so another k, another budget of tokens or a wider
window needs no other run.

| | over items | over sessions |
|---|---|---|
| recall, hit, all | share of the evidence found; any; all of it | the same of the sessions that hold it |
| NDCG | an item gains 1 that brings evidence not seen before | a session gains 1 that holds any |
| MRR | 1 / place of the first gain | the same |

The gain at place i is divided by log2(i) from place 3 on, and not at places 1 and 2, as Järvelin
and Kekäläinen (2002) and LongMemEval's scorer have it. `window` puts the neighbours of each item
beside it ("prompt recall", Oracle Agent Memory, section 7.6).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Final, Literal, NamedTuple

import msgspec

from steeltrap.harness import tokens
from steeltrap.harness.history import Event
from steeltrap.harness.memory import Item
from steeltrap.harness.record import Evidence
from steeltrap.harness.script import Gauge, Probe, Script, Step, Turn
from steeltrap.harness.shelf import Attic, Shelf

__all__ = ["BUDGETS", "CUTOFFS", "WINDOWS", "evidence_rows", "weighed"]

CUTOFFS: Final = (5, 10, 25, 50)
BUDGETS: Final = (1000, 4000)
"""Tokens."""
WINDOWS: Final = (1, 2)
"""Turns before and after."""
_GROUPS: Final[dict[str, tuple[str, ...]]] = {"1-4": ("1", "2", "3", "4")}
"""Categories that are also given together: those of LoCoMo that have an answer."""

_NO_DEFECTS: Final = frozenset({"abstention", "no-user-evidence", "evidence-by-session"})
"""Flags that tell of what kind a question is, and of nothing that is wrong with it."""

Grain = Literal["turn", "session"]


class _Cut(NamedTuple):
    grain: Grain
    k: int = 0
    budget_tokens: int = 0
    window: int = 0


@dataclass(slots=True)
class _Found:
    """What one question was given, and what of it counts."""

    category: str
    flags: tuple[str, ...]
    judged: str
    gains: dict[Grain, list[int]]
    """For each item, or session, in order: how much evidence it brings that was not there before."""
    due: dict[Grain, int]
    """How much evidence there is."""
    cost_tokens: list[int]
    """Of each item."""
    near: dict[tuple[int, int], tuple[int, int]]
    """(k, window) -> evidence turns among the first k items and their neighbours, and the tokens."""


class _Score(NamedTuple):
    recall: float
    hit: float
    all: float
    ndcg: float | None
    mrr: float | None
    tokens: float


def evidence_rows(
    pairs: Iterable[tuple[Step, Event]],
    *,
    cutoffs: Sequence[int] = CUTOFFS,
    without: Collection[str] | None = None,
) -> list[Evidence]:
    """Every score at every cut-off, per category, over 1 to 4, and over all.

    Left out are questions without evidence and questions whose observation failed, so `n` says
    how many were counted. Where defects are known the rows come again without the questions that
    have them: `left_out="wrong-gold"` leaves out those with a flag `wrong-gold:...`, and
    `left_out="defects"` those with any flag that tells of a defect. LongMemEval's questions
    come once more as its own scorer counts them (`convention="longmemeval"`): those without evidence
    are in, with all of nothing found and no gain; abstentions are out.

    Args:
        pairs: every step of a run with its outcome, in order.
        cutoffs: values of k; none should exceed the number of items that a query was served.
        without: `wrong-gold`, `defects`, or both; by default those that any question has.
    """
    questions, flags = _questions(pairs, cutoffs)
    cuts = [_Cut(grain, k) for grain in ("turn", "session") for k in cutoffs]
    cuts += [_Cut("turn", budget_tokens=budget) for budget in BUDGETS]
    cuts += [_Cut("turn", k, window=window) for window in WINDOWS for k in cutoffs]
    counted = [found for found in questions if found.due["turn"]]
    rows = _rows(counted, cuts)
    for name, told in _TOLD.items():
        if any(map(told, flags)) if without is None else name in without:
            sound = [found for found in counted if not any(map(told, found.flags))]
            rows += _rows(sound, cuts, left_out=name)
    own = [
        f for f in questions if f.judged.startswith("longmemeval/") and "abstention" not in f.judged
    ]
    plain = [cut for cut in cuts if not cut.window and not cut.budget_tokens]
    return rows + _rows(own, plain, convention="longmemeval")


def weighed(script: Script) -> Script:
    """The same script of public data with a last look at how much is active.

    What is true there is not known, so nothing bounds it.
    """
    if any(isinstance(step, Gauge) for step in script.steps) or not script.steps:
        return script
    header = msgspec.structs.replace(script.header, alpha=0.0, constant_tokens=0)
    return Script(header, [*script.steps, Gauge(id="weighed", at=script.steps[-1].at)])


# ---------------------------------------------------------------- questions


class _Said:
    """The turns so far: where each stands in its session, and what it costs."""

    def __init__(self, attic: Attic) -> None:
        self.session: dict[str, tuple[str, str]] = {}
        self._order: dict[tuple[str, str], list[str]] = {}
        self._place: dict[str, int] = {}
        self._texts: Shelf[str, str] = Shelf(attic, str)

    def hear(self, turn: Turn) -> None:
        session = turn.tenant, turn.session
        told = self._order.setdefault(session, [])
        self.session[turn.id], self._place[turn.id] = session, len(told)
        self._texts[turn.id] = turn.text
        told.append(turn.id)

    def near(self, turn: str, window: int) -> list[str]:
        """A turn and its neighbours within its session."""
        if turn not in self.session:
            return [turn]
        told, place = self._order[self.session[turn]], self._place[turn]
        return told[max(0, place - window) : place + window + 1]

    def cost(self, turn: str) -> int:
        return tokens.count(self._texts.get(turn, ""))


def _questions(
    pairs: Iterable[tuple[Step, Event]], cutoffs: Sequence[int]
) -> tuple[list[_Found], set[str]]:
    """The questions that were observed, and the flags of all that were asked."""
    attic = Attic()
    items, seen = Shelf[int, Item](attic, Item), 0
    said = _Said(attic)
    questions, flags = [], set[str]()
    for step, event in pairs:
        for item in event.new:
            items[seen] = item
            seen += 1
        if isinstance(step, Turn):
            said.hear(step)
        if not isinstance(step, Probe) or step.ask != "evidence":
            continue
        flags.update(step.flags)
        if event.type == "ok":
            served = [items[number] for number in event.served]
            questions.append(_found(step, served, said, cutoffs))
    return questions, flags


def _wrong(flag: str) -> bool:
    return flag.startswith("wrong-gold")


def _defect(flag: str) -> bool:
    return flag not in _NO_DEFECTS


_TOLD: Final = {"wrong-gold": _wrong, "defects": _defect}
"""What can be left out, and the flags that tell of it."""


def _found(probe: Probe, served: Sequence[Item], said: _Said, cutoffs: Sequence[int]) -> _Found:
    sources = [list(item.sources or ()) for item in served]
    sessions = [said.session[t] for turns in sources for t in turns if t in said.session]
    due = set(probe.evidence)
    held = {said.session[turn] for turn in due if turn in said.session}
    return _Found(
        category=probe.category,
        flags=probe.flags,
        judged=probe.judged,
        gains={
            "turn": _gains(sources, due),
            "session": [int(session in held) for session in dict.fromkeys(sessions)],
        },
        due={"turn": len(due), "session": len(held)},
        cost_tokens=[tokens.count(item.text) for item in served],
        near={
            (k, window): _near(sources[:k], due, said, window) for k in cutoffs for window in WINDOWS
        } if due else {},
    )  # fmt: skip


def _gains(sources: Sequence[Sequence[str]], due: set[str]) -> list[int]:
    left, gains = set(due), []
    for turns in sources:
        new = left.intersection(turns)
        left -= new
        gains.append(len(new))
    return gains


def _near(
    sources: Sequence[Sequence[str]], due: set[str], said: _Said, window: int
) -> tuple[int, int]:
    shown = {near for turns in sources for turn in turns for near in said.near(turn, window)}
    return len(due & shown), sum(map(said.cost, shown))


# ---------------------------------------------------------------- scores


def _rows(
    questions: Sequence[_Found], cuts: Sequence[_Cut], *, left_out: str = "", convention: str = ""
) -> list[Evidence]:
    groups: dict[str, tuple[str, ...]] = {
        category: (category,) for category in sorted({q.category for q in questions})
    }
    for name, members in _GROUPS.items():
        if any(member in groups for member in members):
            groups[name] = members
    groups["all"] = tuple(groups)
    rows = []
    for name, members in groups.items():
        chosen = [question for question in questions if question.category in members]
        for cut in cuts if chosen else ():
            columns = zip(*(_score(question, cut) for question in chosen), strict=True)
            recall, hit, every, ndcg, mrr, spent = (_mean(column) for column in columns)
            assert recall is not None and hit is not None and every is not None
            rows.append(
                Evidence(
                    category=name, n=len(chosen), recall=recall, hit=hit, all=every, ndcg=ndcg,
                    mrr=mrr, tokens=spent or 0.0, left_out=left_out, convention=convention,
                    **cut._asdict(),
                )
            )  # fmt: skip
    return rows


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


def _score(found: _Found, cut: _Cut) -> _Score:
    due = found.due[cut.grain]
    if cut.window:
        seen, spent = found.near[cut.k, cut.window]
        return _Score(seen / due, float(seen > 0), float(seen == due), None, None, spent)
    places = cut.k or _fitting(found.cost_tokens, cut.budget_tokens)
    gains = found.gains[cut.grain][:places]
    seen = sum(gains)
    first = next((1 / place for place, gain in enumerate(gains, 1) if gain), 0.0)
    # what LongMemEval's scorer makes of a question without evidence: all of nothing was found
    share = seen / due if due else 0.0
    spent = sum(found.cost_tokens[:places]) if cut.grain == "turn" else 0
    return _Score(
        share, float(seen > 0), float(seen == due), _ndcg(gains, due, places), first, spent
    )


def _fitting(cost_tokens: Sequence[int], budget_tokens: int) -> int:
    """How many of the first items fit into a budget together."""
    left = budget_tokens
    for place, cost in enumerate(cost_tokens):
        left -= cost
        if left < 0:
            return place
    return len(cost_tokens)


def _ndcg(gains: Sequence[int], due: int, places: int) -> float:
    best = _dcg([1] * min(due, places))
    return _dcg([min(gain, 1) for gain in gains]) / best if best else 0.0


def _dcg(gains: Sequence[int]) -> float:
    return sum(gain / max(1.0, math.log2(place)) for place, gain in enumerate(gains, 1))
