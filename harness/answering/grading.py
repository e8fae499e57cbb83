"""What model judges are told, and what they say.

How an answer is graded depends on how the question's own benchmark scores it (`Probe.judged`). The
texts stand in `grading.toml`, with versions. The answer, which may say anything, stands in a block
that it cannot end.
"""

from __future__ import annotations

import hashlib
import importlib.resources
import re
import tomllib
from collections.abc import Sequence
from functools import cache
from math import floor
from statistics import fmean
from string import Template
from typing import Final, Literal

import msgspec

from steeltrap.harness.answering.asking import Prompt, fence
from steeltrap.harness.answering.scores import Verdict
from steeltrap.harness.script import Probe

__all__ = [
    "LOCOMO",
    "BrokenJudgement",
    "RuleName",
    "event_order",
    "judgeable",
    "prompt",
    "rule",
    "texts",
    "verdict_of",
]

RuleName = Literal[
    "general", "temporal", "update", "preference", "abstention", "points", "ordering"
]
_MAX_TOKENS: Final = 1024
"""Of a judge's answer."""
_REASON_CHARS: Final = 300
LOCOMO: Final = {
    "multi-hop": "1", "temporal": "2", "open-domain": "3", "single-hop": "4", "adversarial": "5",
}  # fmt: skip
"""LoCoMo's categories by name."""
_RULES: Final[dict[str, RuleName]] = {
    "longmemeval/temporal-reasoning": "temporal",
    "longmemeval/knowledge-update": "update",
    "longmemeval/single-session-preference": "preference",
    "longmemeval/abstention": "abstention",
    "beam/event-ordering": "ordering",
    "locomo/2": "temporal",
    "locomo/5": "abstention",
}
"""By `Probe.judged`; the rest of BEAM is judged by points, and everything else by `general`."""


class _Rule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One entry of `grading.toml`."""

    version: int
    about: str
    gives: Literal["verdict", "points", "events"]
    text: str


class _Frame(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    version: int
    system: str


class _Texts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    frame: _Frame
    rules: dict[RuleName, _Rule]
    forms: dict[str, str]


@cache
def _texts() -> _Texts:
    text = (importlib.resources.files("steeltrap.harness.answering") / "grading.toml").read_text(
        "utf-8"
    )
    return msgspec.convert(tomllib.loads(text), _Texts)


def texts() -> tuple[dict[str, int], str]:
    """The versions of all texts, by rule, and their sha256."""
    found = _texts()
    versions = {"frame": found.frame.version}
    versions |= {str(name): entry.version for name, entry in found.rules.items()}
    return versions, hashlib.sha256(msgspec.json.encode(found)).hexdigest()


# ---------------------------------------------------------------- rules


def rule(asked: Probe) -> RuleName:
    """The rule for a question, by how its benchmark scores it (`Probe.judged`).

    Where the record says that there is nothing to know (a flag `abstention`), abstaining is right;
    BEAM says so in the rubric's points.
    """
    where, _, what = asked.judged.partition("/")
    if where == "locomo":
        what = LOCOMO.get(what, what)
    if where != "beam" and "abstention" in asked.flags:
        return "abstention"
    return _RULES.get(f"{where}/{what}", "points" if where == "beam" else "general")


def judgeable(asked: Probe) -> bool:
    """Whether the record says what a right answer is."""
    match rule(asked):
        case "abstention":
            return True
        case "points" | "ordering":
            return bool(asked.rubric)
        case _:
            return bool(asked.gold or asked.rubric)


def prompt(asked: Probe, text: str) -> Prompt:
    """What a model judge is asked of one answer.

    Args:
        asked: the question.
        text: the answer.
    """
    forms = _texts()
    entry = forms.rules[rule(asked)]
    blocks = {"question": asked.text, "gold answer": asked.gold}
    if entry.gives == "verdict":
        blocks["other right answers"] = "\n".join(asked.rubric)
    else:
        points = (" ".join(point.split()) for point in asked.rubric)
        blocks["rubric"] = "\n".join(f"{n}. {point}" for n, point in enumerate(points, 1))
    blocks["answer to be graded"] = text
    mark = fence(*blocks.values())
    shown = [
        f"<<<{name} {mark}>>>\n{held}\n<<<end {mark}>>>"
        for name, held in blocks.items()
        if held or name == "answer to be graded"
    ]
    system = Template(forms.frame.system.strip()).substitute(mark=mark)
    form = f"Answer with JSON of this form: {forms.forms[entry.gives]}"
    user = "\n\n".join([entry.text.strip(), *shown, form])
    return Prompt(system, user, _MAX_TOKENS, json=True)


# ---------------------------------------------------------------- what a model says


class BrokenJudgement(ValueError):
    """A judge's answer is not of the form that it was asked for."""


class _Said(msgspec.Struct):
    verdict: Literal["correct", "wrong", "abstained"]
    reason: str = ""


class _Points(msgspec.Struct):
    points: list[float]
    abstained: bool = False
    reason: str = ""


class _Events(_Points, kw_only=True):
    events: list[int]


_Found = tuple[Verdict, float, dict[str, float], list[float], str]
"""Verdict, score, scores by convention, points, reason."""


def verdict_of(text: str, asked: Probe, right_from: float) -> _Found:
    """What a judge's answer says.

    Args:
        text: the answer.
        asked: the question that was judged.
        right_from: see `Judge`.

    Raises:
        BrokenJudgement: it cannot be read.
    """
    name = rule(asked)
    kind = {"verdict": _Said, "points": _Points, "events": _Events}[_texts().rules[name].gives]
    found = re.search(r"\{.*\}", text, re.DOTALL)  # some put it between fences, or words before it
    try:
        said = msgspec.json.decode(found[0] if found else text, type=kind)
    except (msgspec.DecodeError, RecursionError) as error:
        raise BrokenJudgement(f"the judge's answer is not as asked: {error}") from None
    reason = " ".join(said.reason.split())[:_REASON_CHARS]
    if isinstance(said, _Said):
        verdict = said.verdict
        if name == "abstention" and verdict == "abstained":
            verdict = "correct"
        return verdict, float(verdict == "correct"), {}, [], reason
    assert isinstance(said, _Points)
    return _by_points(said, len(asked.rubric), right_from, reason)


def _by_points(said: _Points, rubric: int, right_from: float, reason: str) -> _Found:
    points = said.points
    if len(points) != rubric or set(points) - {0.0, 0.5, 1.0}:
        raise BrokenJudgement(f"the judge's answer has points {points} for a rubric of {rubric}")
    scores = {"half": fmean(points), "floored": fmean(map(floor, points))}
    if isinstance(said, _Events):
        if any(not 0 <= event <= rubric for event in said.events):
            raise BrokenJudgement(
                f"the judge's answer has events {said.events} for a rubric of {rubric}"
            )
        scores["tau"], scores["tau_f1"] = event_order(said.events, rubric)
    score = scores["half"]
    verdict: Verdict = "abstained" if said.abstained else "wrong"
    if score >= right_from:
        verdict = "correct"  # where abstaining is right, the rubric's points say so
    return verdict, score, scores, points, reason


def event_order(events: Sequence[int], rubric: int) -> tuple[float, float]:
    """How well an answer orders events, as BEAM's scorer has it (`compute_metrics.py`).

    Both lists are ranked over all events that either holds; those that one of them leaves out
    stand last in it, together. An event that is named twice counts once, and then as another.

    Args:
        events: as the answer orders them: numbers of the rubric's points, 0 for any other event.
        rubric: how many points it has, in their true order.

    Returns:
        Kendall's tau-b from 0 to 1, and the same times the F1 of the events named.
    """
    from scipy.stats import kendalltau

    told: list[int] = []
    for place, event in enumerate(events, 1):
        told.append(event if event and event not in told else -place)
    right = [event for event in told if event > 0]
    if not right:
        return 0.0, 0.0
    f1 = 2 * len(right) / (len(told) + rubric)
    true = list(range(1, rubric + 1))
    if told == true:
        return 1.0, f1
    everything = true + [event for event in told if event < 0]
    last = len(everything) + 1

    def ranks(order: Sequence[int]) -> list[int]:
        places = {event: place for place, event in enumerate(order, 1)}
        return [places.get(event, last) for event in everything]

    tau = (float(kendalltau(ranks(true), ranks(told)).statistic) + 1) / 2
    return tau, tau * f1
