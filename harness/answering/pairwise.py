"""Two answers to one question, compared: which is better, that of a system or that of another?

Both answers are stored ones, by one reader, from what two systems served on one script; flat history
is the usual rival ("Oracle Agent Memory", section 7.3). The judge sees no system's name. It is asked
twice, with the answers in either order: what it says only of a place is no preference, so a win is
what it says both times, and everything else is a tie. An answer that is missing makes an error, and
neither a win nor a loss.
"""

from __future__ import annotations

import hashlib
import importlib.resources
import re
import tomllib
from collections.abc import Callable, Iterable
from functools import cache, partial
from string import Template
from typing import Final, Literal, NamedTuple, get_args

import msgspec

from steeltrap.harness.answering.answers import Answer, read_answers
from steeltrap.harness.answering.asking import Asker, Prompt, Sheet, Stopped, fence, in_order
from steeltrap.harness.answering.scores import Judge, Reader
from steeltrap.harness.gateway.backend import BackendError
from steeltrap.harness.models import Usage
from steeltrap.harness.script import Probe, Script
from steeltrap.harness.stats import sign_test
from steeltrap.harness.store import Cell, StoreError

__all__ = ["CRITERIA", "Pair", "PairHeader", "Tally", "compare", "judge_of_pairs", "prompts", "tally", "verdicts"]  # fmt: skip

FORMAT: Final = "steeltrap-pairs"
VERSION: Final = 1
_MAX_TOKENS: Final = 512
_REASON_CHARS: Final = 300

Criterion = Literal["accuracy", "completeness", "relevance", "coherence", "better"]
CRITERIA: Final[tuple[Criterion, ...]] = get_args(Criterion)
"""The last one is the verdict on the whole."""
Place = Literal["first", "second", "tie"]
Outcome = Literal["win", "loss", "tie", "error"]


class _Form(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`pairwise.toml`."""

    version: int
    system: str
    user: str


@cache
def _form() -> _Form:
    text = (importlib.resources.files("steeltrap.harness.answering") / "pairwise.toml").read_text(
        "utf-8"
    )
    return msgspec.convert(tomllib.loads(text), _Form)


class PairHeader(msgspec.Struct, frozen=True, kw_only=True):
    """The first line of `judgements/pairs/NAME.jsonl`."""

    format: str = FORMAT
    version: int = VERSION
    script_sha256: str
    against: str
    """The other system."""
    reader: Reader
    """Of both answers."""
    judge: Judge


class Pair(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a judge says of one question's two answers."""

    step: int
    question: str
    prompt_sha256: str
    """Of what was asked, in both orders."""
    outcome: Outcome
    """Of the system against the other one."""
    criteria: dict[Criterion, Outcome] = {}
    swayed: bool = False
    """On the whole the judge preferred a place and no answer: a tie."""
    reason: str = ""
    """Its words, the first time."""
    usage: Usage = Usage()
    asked: int = 0
    """Whole answers of the judge to these prompts that were of no use."""
    error: str = ""


def judge_of_pairs(name: str, model: str, against: str) -> Judge:
    """A judge as results state it.

    Args:
        name: of its file; by default its model's name and what is compared with.
        model: who answers.
        against: the other system.

    Raises:
        ValueError: a name that is none of a file.
    """
    short = model.partition(":")[2].partition("@")[0] or model
    name = name or re.sub(r"[^\w.-]+", "-", f"{short}-against-{against}")
    if not re.fullmatch(r"\w[\w.-]*", name):
        raise ValueError(f"name={name}: write letters, digits, dots and dashes")
    digest = hashlib.sha256(msgspec.json.encode(_form())).hexdigest()
    return Judge(
        name=name, kind="model", model=model, prompts={"pairwise": _form().version},
        prompts_sha256=digest,
    )  # fmt: skip


# ---------------------------------------------------------------- asking


def prompts(asked: Probe, one: str, other: str) -> tuple[Prompt, Prompt]:
    """What the judge is asked: the answers in one order, and in the other."""
    return _prompt(asked, one, other), _prompt(asked, other, one)


def _prompt(asked: Probe, first: str, second: str) -> Prompt:
    blocks = {"message": asked.text, "right answer": asked.gold, "first answer": first, "second answer": second}  # fmt: skip
    mark = fence(*blocks.values())
    shown = "\n\n".join(
        f"<<<{name} {mark}>>>\n{held}\n<<<end {mark}>>>"
        for name, held in blocks.items()
        if held or name != "right answer"
    )
    form = _form()
    system = Template(form.system.strip()).substitute(mark=mark)
    return Prompt(system, Template(form.user.strip()).substitute(blocks=shown), _MAX_TOKENS, True)


class _Said(msgspec.Struct):
    accuracy: Place
    completeness: Place
    relevance: Place
    coherence: Place
    better: Place
    reason: str = ""


def verdicts(there: str, back: str) -> tuple[dict[Criterion, Outcome], bool, str]:
    """What a judge's two answers come to.

    Args:
        there: with the system's answer first.
        back: with it second.

    Returns:
        The outcome by criterion, whether on the whole a place was preferred, and the reason.

    Raises:
        ValueError: an answer cannot be read.
    """
    one, two = _said(there), _said(back)
    found = {criterion: _both(getattr(one, criterion), getattr(two, criterion)) for criterion in CRITERIA}  # fmt: skip
    swayed = one.better == two.better != "tie"
    return found, swayed, " ".join(one.reason.split())[:_REASON_CHARS]


def _both(there: Place, back: Place) -> Outcome:
    match there, back:
        case "first", "second":
            return "win"
        case "second", "first":
            return "loss"
    return "tie"


def _said(text: str) -> _Said:
    found = re.search(r"\{.*\}", text, re.DOTALL)  # some put it between fences, or words before it
    try:
        return msgspec.json.decode(found[0] if found else text, type=_Said)
    except (msgspec.DecodeError, RecursionError) as error:
        raise ValueError(f"the judge's answer is not as asked: {error}") from None


# ---------------------------------------------------------------- runs


async def compare(
    cell: Cell, rival: Cell, by: Judge, asker: Asker, on_line: Callable[[], object] = lambda: None
) -> Sheet[PairHeader, Pair]:
    """Have the answers of two runs compared, question by question.

    Args:
        cell: with answers.
        rival: of another system on the same script, with answers by the same reader.
        by: the judge.
        asker: its model.
        on_line: called with each question that is done.

    Returns:
        What is there now.

    Raises:
        StoreError, ScriptError: the runs cannot be compared, read or written.
    """
    mine, other = read_answers(cell), read_answers(rival)
    if mine.header != other.header:
        raise StoreError(
            f"{cell.folder}: answered by another reader, or on another script, than {rival.folder};"
            " answer both alike"
        )
    script = Script.read(cell.script)
    path = cell.judgements / "pairs" / f"{by.name}.jsonl"
    path.parent.parent.mkdir(exist_ok=True)
    header = PairHeader(
        script_sha256=cell.spec.script_sha256, against=rival.spec.system,
        reader=mine.header.reader, judge=by,
    )  # fmt: skip
    sheet = Sheet(path, header, Pair)
    jobs = (
        partial(_compared, _probe(script, step), mine.lines[step], other.lines[step], asker, sheet.lines.get(step))
        for step in sorted(mine.lines.keys() & other.lines.keys())
        if not asker.stopped
    )  # fmt: skip
    async for line in in_order(jobs, 4 * asker.at_once):
        if line is not None and sheet.lines.get(line.step) != line:
            sheet.add(line)
        on_line()
    sheet.finish()
    return sheet


def _probe(script: Script, step: int) -> Probe:
    found = script.steps[step]
    assert isinstance(found, Probe)
    return found


async def _compared(
    asked: Probe, mine: Answer, other: Answer, asker: Asker, before: Pair | None
) -> Pair | None:
    """The line of a question: the one that is there, where it compares the same."""
    there, back = prompts(asked, mine.text, other.text)
    digest = hashlib.sha256(f"{there.sha256} {back.sha256}".encode()).hexdigest()
    line = Pair(step=mine.step, question=mine.question, prompt_sha256=digest, outcome="error")
    if mine.error or other.error:
        return msgspec.structs.replace(line, error=f"no answer: {mine.error or other.error}")
    if mine.text == other.text:
        same: dict[Criterion, Outcome] = dict.fromkeys(CRITERIA, "tie")
        return msgspec.structs.replace(line, outcome="tie", criteria=same, reason="the same words")
    if before is not None and before.prompt_sha256 == digest:
        if not before.error:
            return before
        line = msgspec.structs.replace(line, asked=before.asked)
    why = ""
    for nth in (line.asked, line.asked + 1):
        try:
            replies = [await asker.ask(prompt, nth) for prompt in (there, back)]
        except Stopped:
            return None
        except BackendError as error:
            return msgspec.structs.replace(line, error=error.message or error.kind, asked=nth)
        line = msgspec.structs.replace(line, usage=sum((r.usage for r in replies), line.usage))
        try:
            criteria, swayed, reason = verdicts(replies[0].text, replies[1].text)
        except ValueError as error:
            why = str(error)
            continue
        return msgspec.structs.replace(
            line, outcome=criteria["better"], criteria=criteria, swayed=swayed, reason=reason
        )
    return msgspec.structs.replace(line, asked=line.asked + 2, error=why)


# ---------------------------------------------------------------- counting


class Tally(NamedTuple):
    """How often which answer was better."""

    n: int
    wins: int
    losses: int
    ties: int
    swayed: int
    """Of the ties: where the judge preferred a place."""
    errors: int
    p: float
    """Two-sided sign test of wins against losses; ties say nothing."""


def tally(pairs: Iterable[Pair], criterion: Criterion = "better") -> Tally:
    """Count wins, losses and ties by one criterion."""
    lines = list(pairs)
    whole = [line for line in lines if line.outcome != "error"]
    said = [line.criteria[criterion] for line in whole]
    wins, losses = said.count("win"), said.count("loss")
    swayed = sum(line.swayed for line in whole) if criterion == "better" else 0
    return Tally(
        len(lines), wins, losses, said.count("tie"), swayed, len(lines) - len(whole),
        sign_test(wins, losses),
    )  # fmt: skip
