"""Judgements of answers: right, wrong, abstained, or not to be had.

A judge reads the stored answers of a run, so judging again asks neither memories nor readers.
Model judges are told what `grading` holds for the question's own benchmark; judges without a model
compare texts (`matching`).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Final, get_args

import msgspec

from steeltrap.harness.answering import matching
from steeltrap.harness.answering.answers import Answer, read_answers
from steeltrap.harness.answering.asking import Asker, Prompt, Sheet, Stopped, in_order, read_sheet
from steeltrap.harness.answering.grading import (
    LOCOMO,
    BrokenJudgement,
    judgeable,
    prompt,
    rule,
    texts,
    verdict_of,
)
from steeltrap.harness.answering.scores import Judge, Judged, Kind, Reader, Verdict
from steeltrap.harness.gateway.backend import BackendError
from steeltrap.harness.models import Usage
from steeltrap.harness.script import Probe, Script
from steeltrap.harness.store import Cell

__all__ = [
    "Judgement",
    "JudgementsHeader",
    "compare_texts",
    "judge",
    "judge_of",
    "judged",
    "read_judgements",
]

FORMAT: Final = "steeltrap-judgements"
VERSION: Final = 1


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
    versions, digest = texts()
    return Judge(
        name=name, kind=chosen, model=model, right_from=right_from, prompts=versions,
        prompts_sha256=digest,
    )  # fmt: skip


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
    said, name = answer.text, rule(asked)
    golds = [asked.gold, *(() if name in ("points", "ordering") else asked.rubric)]
    golds = [gold for gold in golds if gold]
    where, _, what = asked.judged.partition("/")
    if name == "abstention":
        score = float(matching.abstains(said))
    elif by.kind == "f1" and where == "locomo":
        score = matching.f1_locomo(said, asked.gold, LOCOMO.get(what, what))
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
