"""Answers to the questions of public data, by a reader model, from what a memory served.

A finished run is read and nothing is run again: for each question the items that were served are
cut to a budget, put into a prompt, and a model is asked. `answers.jsonl` in the run folder holds
one line a question. A question that was not answered, as when the provider limits the rate, is an
error and no abstention; the next call of the command asks it again.
"""

from __future__ import annotations

import hashlib
import importlib.resources
import tomllib
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from functools import cache, partial
from string import Template
from typing import Final, Literal, NamedTuple

import msgspec

from steeltrap.harness import tokens
from steeltrap.harness.answering.asking import (
    Asker,
    Prompt,
    Sheet,
    Stopped,
    fence,
    in_order,
    read_sheet,
)
from steeltrap.harness.answering.scores import Reader
from steeltrap.harness.gateway.backend import BackendError
from steeltrap.harness.history import joined, read_events
from steeltrap.harness.memory import Item
from steeltrap.harness.models import Usage
from steeltrap.harness.script import Probe, Script
from steeltrap.harness.shelf import Attic, Shelf
from steeltrap.harness.store import Cell

__all__ = [
    "UNKNOWN",
    "Answer",
    "AnswersHeader",
    "Served",
    "answer",
    "asks_evidence",
    "cut",
    "prompt",
    "read_answers",
    "reader",
    "served",
]

FORMAT: Final = "steeltrap-answers"
VERSION: Final = 1
_DAYS: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


class _Form(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One entry of `answers.toml`."""

    version: int
    shape: str
    order: Literal["served", "time"]
    unknown: str
    system: str
    user: str


@cache
def _forms() -> dict[str, _Form]:
    text = (importlib.resources.files("steeltrap.harness.answering") / "answers.toml").read_text(
        "utf-8"
    )
    return msgspec.convert(tomllib.loads(text), dict[str, _Form])


UNKNOWN: Final = tuple(sorted({form.unknown for form in _forms().values()}))
"""What readers are told to say where the memory does not hold the answer."""


class AnswersHeader(msgspec.Struct, frozen=True, kw_only=True):
    """The first line of `answers.jsonl`."""

    format: str = FORMAT
    version: int = VERSION
    script_sha256: str
    reader: Reader


class Answer(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One question and what became of it."""

    step: int
    """Of the question in the script, from 0."""
    question: str
    """Its id."""
    prompt_sha256: str
    items: int
    """Shown of those that were served."""
    context_tokens: int
    """Of these items' texts."""
    shown: int | None = None
    """Turns of the evidence from which an item was shown; None where an item that was shown names
    no turns, so that nobody knows."""
    text: str = ""
    finish: str = "stop"
    usage: Usage = Usage()
    asked: int = 0
    """Whole answers to this prompt that were of no use."""
    error: str = ""
    """Why there is no answer."""


class Served(NamedTuple):
    """A question with what was served for it."""

    step: int
    probe: Probe
    items: list[Item]
    error: str
    """Why nothing could be served: the system's words."""


def reader(
    model: str, name: str, *, budget_tokens: int | None, k: int | None, max_tokens: int
) -> Reader:
    """A reader as results state it.

    Raises:
        ValueError: no such prompt.
    """
    form = _forms().get(name)
    if form is None:
        raise ValueError(f"prompt={name}: there are {', '.join(_forms())}")
    texts = msgspec.json.encode([form.order, form.system, form.user])
    return Reader(
        model=model, prompt=name, prompt_version=form.version, shape=form.shape,
        prompt_sha256=hashlib.sha256(texts).hexdigest(), budget_tokens=budget_tokens, k=k,
        max_tokens=max_tokens,
    )  # fmt: skip


# ---------------------------------------------------------------- what was served


def asks_evidence(script: Script) -> bool:
    """Whether a script holds questions of public data."""
    return any(isinstance(step, Probe) and step.ask == "evidence" for step in script.steps)


def served(cell: Cell, script: Script) -> Iterator[Served]:
    """Every question of public data in a run, with the items that were served for it, in order.

    Raises:
        HistoryError: the history cannot be read.
    """
    items, seen = Shelf[int, Item](Attic(), Item), 0
    for step, event in joined(script, read_events(cell.history)):
        for item in event.new:
            items[seen] = item
            seen += 1
        if isinstance(step, Probe) and step.ask == "evidence":
            failed = "" if event.type == "ok" else event.error or "the memory gave no reason"
            yield Served(event.i, step, [items[number] for number in event.served], failed)


def cut(items: Sequence[Item], *, budget_tokens: int | None, k: int | None) -> list[Item]:
    """The first items, at most `k` and as many as a budget holds; the first that does not fit
    ends them, so that what is shown is always what was served first."""
    kept: list[Item] = []
    left = budget_tokens
    for item in items[:k]:
        if left is not None:
            left -= tokens.count(item.text)
            if left < 0:
                break
        kept.append(item)
    return kept


def _shown(items: Sequence[Item], evidence: Sequence[str]) -> int | None:
    if any(item.sources is None for item in items):
        return None
    sources = {turn for item in items for turn in item.sources or ()}
    return len(sources & set(evidence))


# ---------------------------------------------------------------- prompts


def prompt(asked: Probe, items: Sequence[Item], by: Reader) -> Prompt:
    """What the reader is asked: the items, the date of the question, the question.

    Args:
        asked: the question.
        items: those shown.
        by: names the prompt.
    """
    form = _forms()[by.prompt]
    if form.order == "time" and all(item.valid_from for item in items):
        items = sorted(items, key=lambda item: str(item.valid_from))
    memory = "\n".join(_line(number, item) for number, item in enumerate(items, 1))
    filled = {
        "memory": memory or "(empty)",
        "date": _date(asked.at),
        "question": asked.text,
        "mark": fence(memory, asked.text),
    }
    system, user = (Template(text.strip()).substitute(filled) for text in (form.system, form.user))
    return Prompt(system, user, by.max_tokens)


def _line(number: int, item: Item) -> str:
    """`[3] (Mon 2023-05-08 13:56) text`, with whatever the system says of how it stands."""
    marks = []
    if item.valid_from:
        marks.append(_date(item.valid_from))
    if item.valid_to:
        marks.append(f"until {_date(item.valid_to)}")
    if item.review:
        marks.append("needs review")
    marked = f"({', '.join(marks)}) " if marks else ""
    return f"[{number}] {marked}{item.text}"


def _date(at: str) -> str:
    """`Mon 2023-05-08 13:56`; what is no time stays as it is."""
    try:
        time = datetime.fromisoformat(at)
    except ValueError:
        return at
    return f"{_DAYS[time.weekday()]} {time:%Y-%m-%d %H:%M}"


# ---------------------------------------------------------------- asking


async def answer(
    cell: Cell, by: Reader, asker: Asker, on_line: Callable[[], object] = lambda: None
) -> Sheet[AnswersHeader, Answer] | None:
    """Have every question of a run answered that is not answered yet.

    Args:
        cell: of a finished run.
        by: the reader; answers of another are replaced.
        asker: the reader's model. Where it can be asked no more, the lines so far are kept.
        on_line: called with each question that is done.

    Returns:
        What is there now; None for a run without questions of public data.

    Raises:
        StoreError, ScriptError, HistoryError: the run cannot be read or written.
    """
    script = Script.read(cell.script)
    if not asks_evidence(script):
        return None
    header = AnswersHeader(script_sha256=cell.spec.script_sha256, reader=by)
    sheet = Sheet(cell.answers, header, Answer)
    jobs = (
        partial(_answered, one, by, asker, sheet.lines.get(one.step))
        for one in served(cell, script)
        if not asker.stopped
    )
    async for line in in_order(jobs, 4 * asker.at_once):
        if line is not None and sheet.lines.get(line.step) != line:
            sheet.add(line)
        on_line()
    sheet.finish()
    return sheet


async def _answered(one: Served, by: Reader, asker: Asker, before: Answer | None) -> Answer | None:
    """The line of a question: the one that is there, where it is an answer to the same prompt."""
    items = cut(one.items, budget_tokens=by.budget_tokens, k=by.k)
    asked = prompt(one.probe, items, by)
    line = Answer(
        step=one.step, question=one.probe.id, prompt_sha256=asked.sha256, items=len(items),
        context_tokens=sum(tokens.count(item.text) for item in items),
        shown=_shown(items, one.probe.evidence), error=one.error,
    )  # fmt: skip
    if line.error:
        return line
    if before is not None and before.prompt_sha256 == line.prompt_sha256:
        if not before.error:
            return before
        line = msgspec.structs.replace(line, asked=before.asked)
    try:
        reply = await asker.ask(asked, line.asked)
    except Stopped:
        return None
    except BackendError as error:
        return msgspec.structs.replace(line, error=error.message or error.kind)
    if not reply.text.strip():
        why = "; give it more room with max_tokens=N" if reply.finish == "length" else ""
        return msgspec.structs.replace(
            line, usage=reply.usage, finish=reply.finish, asked=line.asked + 1,
            error=f"the answer is empty ({reply.finish}){why}",
        )  # fmt: skip
    return msgspec.structs.replace(
        line, text=reply.text.strip(), finish=reply.finish, usage=reply.usage
    )


def read_answers(cell: Cell) -> Sheet[AnswersHeader, Answer]:
    """The answers of a run.

    Raises:
        StoreError: there are none, or they cannot be read.
    """
    missing = f"run `steeltrap answer {cell.folder.name} model=NAME` first"
    return read_sheet(cell.answers, AnswersHeader, Answer, missing)
