"""Judgements of answers: right, wrong, abstained, or not to be had.

A judge reads the stored answers of a run, so judging again asks neither memories nor readers.
What a model judge is told depends on how the question's own benchmark scores it (`Probe.judged`);
its texts stand in `judging.toml`, with versions. The answer, which may say anything, stands in a
block that it cannot end. Judges without a model compare texts (`matching`).
"""

from __future__ import annotations

import hashlib
import importlib.resources
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from math import floor
from pathlib import Path
from statistics import fmean
from string import Template
from typing import Final, Literal, get_args

import msgspec

from steeltrap.harness import matching
from steeltrap.harness.answers import Answer, read_answers
from steeltrap.harness.asking import Asker, Prompt, Sheet, Stopped, fence, in_order, read_sheet
from steeltrap.harness.gateway.backend import BackendError
from steeltrap.harness.models import Usage
from steeltrap.harness.scores import Judge, Judged, Kind, Reader, Verdict
from steeltrap.harness.script import Probe, Script
from steeltrap.harness.store import Cell

__all__ = [
    "BrokenJudgement",
    "Judgement",
    "JudgementsHeader",
    "compare_texts",
    "event_order",
    "judge",
    "judge_of",
    "judgeable",
    "judged",
    "prompt",
    "read_judgements",
    "rule",
    "verdict_of",
]

FORMAT: Final = "steeltrap-judgements"
VERSION: Final = 1
RuleName = Literal[
    "general", "temporal", "update", "preference", "abstention", "points", "ordering"
]
_MAX_TOKENS: Final = 1024
"""Of a judge's answer."""
_REASON_CHARS: Final = 300
_LOCOMO: Final = {
    "multi-hop": "1", "temporal": "2", "open-domain": "3", "single-hop": "4", "adversarial": "5",
}  # fmt: skip
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
    """One entry of `judging.toml`."""

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
    text = (importlib.resources.files("steeltrap.harness") / "judging.toml").read_text("utf-8")
    return msgspec.convert(tomllib.loads(text), _Texts)


class JudgementsHeader(msgspec.Struct, frozen=True, kw_only=True):
    """The first line of `judgements/NAME.jsonl`."""

    format: str = FORMAT
    version: int = VERSION
    script_sha256: str
    reader: Reader
    """Whose answers were judged."""
    judge: Judge


class Judgement(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a judge says of one answer."""

    step: int
    question: str
    prompt_sha256: str
    """Of what the model was asked; without a model, of the answer."""
    verdict: Verdict
    """error: nobody answered, or the judge gave no judgement."""
    score: float | None = None
    """From 0 to 1; None for an error."""
    scores: dict[str, float] = {}
    """Where conventions differ, by convention. `half`: half points count half. `floored`: they
    count nothing, as in BEAM's scorer for all but event ordering. `tau`: Kendall's tau-b of the
    events' order from 0 to 1; `tau_f1`: the same times the F1 of which events are named."""
    points: list[float] = []
    """Of the rubric."""
    reason: str = ""
    """The judge's words."""
    usage: Usage = Usage()
    asked: int = 0
    """Whole answers of the judge to this prompt that were of no use."""
    error: str = ""


def judge_of(kind: str, name: str, *, model: str = "", right_from: float = 0.5) -> Judge:
    """A judge as results state it.

    Args:
        kind: model, or how texts are compared.
        name: of its file; by default its model's or its kind's.
        model: who answers, where it is one.
        right_from: see `Judge`.

    Raises:
        ValueError: no such judge, a name that is none of a file, or a share that is none.
    """
    kinds: tuple[Kind, ...] = get_args(Kind)
    chosen = next((known for known in kinds if known == kind), None)
    if chosen is None:
        raise ValueError(f"judge={kind}: there are {', '.join(kinds)}")
    if not 0 < right_from <= 1:
        raise ValueError(f"right_from={right_from}: write a share above 0, at most 1")
    name = name or re.sub(r"[^\w.-]+", "-", model.partition(":")[2].partition("@")[0] or kind)
    if not re.fullmatch(r"\w[\w.-]*", name):
        raise ValueError(f"name={name}: write letters, digits, dots and dashes")
    if chosen != "model":
        return Judge(name=name, kind=chosen, right_from=right_from)
    texts = _texts()
    return Judge(
        name=name, kind=chosen, model=model, right_from=right_from,
        prompts={"frame": texts.frame.version}
        | {rule: entry.version for rule, entry in texts.rules.items()},
        prompts_sha256=hashlib.sha256(msgspec.json.encode(texts)).hexdigest(),
    )  # fmt: skip


# ---------------------------------------------------------------- rules


def rule(judged: str) -> RuleName:
    """The rule for a question, by how its benchmark scores it (`Probe.judged`)."""
    where, _, what = judged.replace("_", "-").partition("/")
    if where == "locomo":
        what = _LOCOMO.get(what, what)
    elif where == "longmemeval" and what.endswith("-abs"):
        what = "abstention"
    return _RULES.get(f"{where}/{what}", "points" if where == "beam" else "general")


def judgeable(asked: Probe) -> bool:
    """Whether the record says what a right answer is."""
    match rule(asked.judged):
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
    texts = _texts()
    entry = texts.rules[rule(asked.judged)]
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
    system = Template(texts.frame.system.strip()).substitute(mark=mark)
    form = f"Answer with JSON of this form: {texts.forms[entry.gives]}"
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
    name = rule(asked.judged)
    kind = {"verdict": _Said, "points": _Points, "events": _Events}[_texts().rules[name].gives]
    found = re.search(r"\{.*\}", text, re.DOTALL)  # some put it between fences, or words before it
    try:
        said = msgspec.json.decode(found[0] if found else text, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
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


# ---------------------------------------------------------------- judging


async def judge(
    cell: Cell, by: Judge, asker: Asker | None, on_line: Callable[[], object] = lambda: None
) -> Sheet[JudgementsHeader, Judgement] | None:
    """Have every answer of a run judged that is not judged yet.

    Args:
        cell: with answers.
        by: the judge.
        asker: its model; None where it has none.
        on_line: called with each answer that is done.

    Returns:
        What is there now; None for a run without questions of public data.

    Raises:
        StoreError, ScriptError: the run cannot be read or written, or has no answers.
    """
    script = Script.read(cell.script)
    probes = {
        step: probe
        for step, probe in enumerate(script.steps)
        if isinstance(probe, Probe) and probe.ask == "evidence"
    }
    if not probes:
        return None
    answers = read_answers(cell)
    sheet = Sheet(_path(cell, by.name), _header(cell, answers.header.reader, by), Judgement)
    jobs = (
        partial(_judged, probes[step], line, by, asker, sheet.lines.get(step))
        for step, line in sorted(answers.lines.items())
        if judgeable(probes[step]) and not (asker and asker.stopped)
    )
    async for line in in_order(jobs, 4 * asker.at_once if asker else 1):
        if line is not None and sheet.lines.get(line.step) != line:
            sheet.add(line)
        on_line()
    sheet.finish()
    return sheet


def read_judgements(cell: Cell, name: str) -> Sheet[JudgementsHeader, Judgement]:
    """What a judge said of a run's answers.

    Raises:
        StoreError: there is nothing, or it cannot be read.
    """
    there = sorted(path.stem for path in cell.judgements.glob("*.jsonl"))
    missing = f"judge first, with name={name}; there are {', '.join(there) or 'none'}"
    return read_sheet(_path(cell, name), JudgementsHeader, Judgement, missing)


def judged(
    script: Script, answers: Mapping[int, Answer], judgements: Mapping[int, Judgement]
) -> list[Judged]:
    """The questions that were judged, with all that is known of their answers."""
    found = []
    for step in sorted(judgements.keys() & answers.keys()):
        asked, answer, said = script.steps[step], answers[step], judgements[step]
        assert isinstance(asked, Probe)
        found.append(
            Judged(
                category=asked.category,
                wrong_gold=any(flag.startswith("wrong-gold") for flag in asked.flags),
                evidence=len(asked.evidence), shown=answer.shown,
                context_tokens=answer.context_tokens, verdict=said.verdict, score=said.score,
                scores=said.scores, answer_usage=answer.usage, judge_usage=said.usage,
            )
        )  # fmt: skip
    return found


def _path(cell: Cell, name: str) -> Path:
    return cell.judgements / f"{name}.jsonl"


def _header(cell: Cell, reader: Reader, by: Judge) -> JudgementsHeader:
    return JudgementsHeader(script_sha256=cell.spec.script_sha256, reader=reader, judge=by)


async def _judged(
    asked: Probe, answer: Answer, by: Judge, asker: Asker | None, before: Judgement | None
) -> Judgement | None:
    """The line of an answer: the one that is there, where it judges the same."""
    if answer.error:
        # nothing was said, so nothing can be right, wrong or an abstention
        return Judgement(
            step=answer.step, question=answer.question, prompt_sha256="", verdict="error",
            error=f"no answer: {answer.error}",
        )  # fmt: skip
    if asker is None:
        return compare_texts(asked, answer, by)
    put = prompt(asked, answer.text)
    line = Judgement(
        step=answer.step, question=answer.question, prompt_sha256=put.sha256, verdict="error"
    )
    if before is not None and before.prompt_sha256 == line.prompt_sha256:
        if not before.error:
            return before
        line = msgspec.structs.replace(line, asked=before.asked)
    return await _asked(line, put, asked, by, asker)


async def _asked(
    line: Judgement, put: Prompt, asked: Probe, by: Judge, asker: Asker
) -> Judgement | None:
    """Ask the judge, and once more where its answer cannot be read."""
    usage, why = line.usage, ""
    for nth in (line.asked, line.asked + 1):
        try:
            reply = await asker.ask(put, nth)
        except Stopped:
            return None
        except BackendError as error:
            return msgspec.structs.replace(line, error=error.message or error.kind, asked=nth)
        usage = usage + reply.usage if usage.calls else reply.usage
        try:
            verdict, score, scores, points, reason = verdict_of(reply.text, asked, by.right_from)
        except BrokenJudgement as error:
            why = str(error)
            continue
        return msgspec.structs.replace(
            line, verdict=verdict, score=score, scores=scores, points=points, reason=reason,
            usage=usage,
        )  # fmt: skip
    return msgspec.structs.replace(line, usage=usage, asked=line.asked + 2, error=why)


def compare_texts(asked: Probe, answer: Answer, by: Judge) -> Judgement:
    """Judge by comparing texts.

    An abstention is right only where there is nothing to know, also where it shares words with the
    gold; `score` is the benchmark's own all the same.

    Args:
        asked: the question.
        answer: to it.
        by: says how texts are compared.
    """
    said, name = answer.text, rule(asked.judged)
    golds = [asked.gold, *(() if name in ("points", "ordering") else asked.rubric)]
    golds = [gold for gold in golds if gold]
    where, _, what = asked.judged.partition("/")
    if name == "abstention":
        score = float(matching.abstains(said))
    elif by.kind == "f1" and where == "locomo":
        score = matching.f1_locomo(said, asked.gold, _LOCOMO.get(what, what))
    else:
        score = {"substring": matching.substring, "exact": matching.exact, "f1": matching.f1}[
            by.kind
        ](said, golds)
    verdict: Verdict = "correct" if score >= by.right_from else "wrong"
    if name != "abstention" and matching.abstains(said) and not matching.exact(said, golds):
        # "I do not know" holds "no", and shares words with it
        verdict = "abstained"
    return Judgement(
        step=answer.step, question=answer.question, verdict=verdict, score=score,
        prompt_sha256=hashlib.sha256(said.encode()).hexdigest(),
    )  # fmt: skip
