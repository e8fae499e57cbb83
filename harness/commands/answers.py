"""`steeltrap answer` and `steeltrap judge`: readers and judges over runs of public data."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

import msgspec

from steeltrap.harness.answering import agreement
from steeltrap.harness.answering.answers import Answer, answer, read_answers, reader
from steeltrap.harness.answering.asking import Asker, AtLeastOne, ModelSettings, over_cells
from steeltrap.harness.answering.grading import judgeable
from steeltrap.harness.answering.judging import judge, judge_of, judged, read_judgements
from steeltrap.harness.answering.pairwise import judge_of_pairs
from steeltrap.harness.answering.scores import (
    Judge,
    Judged,
    Reader,
    Row,
    Score,
    ScoresError,
    Use,
    read_scores,
    score,
)
from steeltrap.harness.commands.asked import (
    Count,
    cell_text,
    judge_told,
    named_cells,
    refuse_none,
    runs_told,
    settings_of,
    table_of,
    told,
)
from steeltrap.harness.commands.dialogue import spoken
from steeltrap.harness.commands.pairs import pairs
from steeltrap.harness.drive import RunStopped
from steeltrap.harness.script import Probe, Script
from steeltrap.harness.settings import SettingsError
from steeltrap.harness.store import Cell, StoreError, write

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

__all__ = ["agree", "answers", "judgements"]

_CONVENTIONS: Final = ("half", "floored", "tau", "tau_f1")
"""Scores of BEAM, as in `Judgement.scores`."""


class _Answering(ModelSettings, frozen=True, kw_only=True):
    prompt: str = "plain"
    budget_tokens: AtLeastOne | None = None
    k: AtLeastOne | None = None
    max_tokens: AtLeastOne = 512


class _Judging(ModelSettings, frozen=True, kw_only=True):
    judge: str = "model"
    name: str = ""
    right_from: float = 0.5
    against: str = ""


def answers(words: Sequence[str], out: Console, aside: Console) -> int:
    """Have the questions of stored runs answered; 0 where each has its answer, else 1.

    Raises:
        SettingsError: a setting is unknown, missing or wrong.
        StoreError, ScriptError, HistoryError: a run cannot be read or written.
        RunStopped: the model can be asked no more; what was answered is kept.
    """
    cells, settings = named_cells(words), settings_of(words, _Answering)
    try:
        asker = Asker(settings)
        by = reader(
            asker.name, settings.prompt, budget_tokens=settings.budget_tokens, k=settings.k,
            max_tokens=settings.max_tokens,
        )  # fmt: skip
    except ValueError as error:
        raise SettingsError(str(error)) from None
    with aside.status("") as shown:
        count = Count(shown, "questions")
        sheets = over_cells(
            cells, lambda cell: answer(cell, by, asker, count), settings.concurrency
        )
    done = [sheet for sheet in sheets if sheet is not None]
    refuse_none(done, cells)
    lines = [line for sheet in done for line in sheet.lines.values()]
    failed = [line for line in lines if line.error]
    out.print(told(by), markup=False)
    out.print(_answered(lines, failed, len(done)), markup=False)
    if asker.stopped:
        raise RunStopped(asker.stopped)
    if failed:
        out.print(f"first error: {spoken(failed[0].error)}", markup=False)
        out.print("errors are no abstentions; the same command asks again", markup=False)
    return 1 if failed else 0


def judgements(words: Sequence[str], out: Console, aside: Console) -> int:
    """Have answers judged and print what was found; 0 where each has a judgement, else 1.

    Raises:
        SettingsError, StoreError, ScriptError, RunStopped: as `answers`.
    """
    cells, settings = named_cells(words), settings_of(words, _Judging)
    if settings.against:
        return _pairs(cells, settings, out, aside)
    try:
        asker = Asker(settings) if settings.judge == "model" else None
        by = judge_of(
            settings.judge, settings.name, model=asker.name if asker else "",
            right_from=settings.right_from,
        )  # fmt: skip
    except ValueError as error:
        raise SettingsError(str(error)) from None
    with aside.status("") as shown:
        count = Count(shown, "answers")
        sheets = over_cells(cells, lambda cell: judge(cell, by, asker, count), settings.concurrency)
    asked = [cell for cell, sheet in zip(cells, sheets, strict=True) if sheet is not None]
    refuse_none(asked, cells)
    groups: dict[tuple[str, str], _Group] = {}
    for cell in asked:
        group = groups.setdefault((cell.spec.system, cell.spec.script), _Group())
        group.add(cell, by)
    for (system, script), group in groups.items():
        group.show(f"{system}, {script}, {runs_told(len(group.cells))}", by, out)
    if asker and asker.stopped:
        raise RunStopped(asker.stopped)
    return 1 if any(one.verdict == "error" for group in groups.values() for one in group.questions) else 0  # fmt: skip


def _pairs(cells: Sequence[Cell], settings: _Judging, out: Console, aside: Console) -> int:
    if settings.judge != "model":
        raise SettingsError(f"judge={settings.judge} against={settings.against}: a model compares")
    try:
        asker = Asker(settings)
        by = judge_of_pairs(settings.name, asker.name, settings.against)
    except ValueError as error:
        raise SettingsError(str(error)) from None
    return pairs(cells, settings.against, by, asker, out, aside)


class _Group:
    """The runs of one system on one kind of script."""

    def __init__(self) -> None:
        self.cells: list[Cell] = []
        self.questions: list[Judged] = []
        self.readers: dict[Reader, None] = {}
        self.names: dict[str, str] = {}
        """Of categories, where the script has names for them."""
        self.unjudged = self.missing = 0

    def add(self, cell: Cell, by: Judge) -> None:
        """Take in a run, and write down its scores."""
        script = Script.read(cell.script)
        sheet = read_answers(cell)
        found = judged(script, sheet.lines, read_judgements(cell, by.name).lines)
        probes = [one for one in script.steps if isinstance(one, Probe) and one.ask == "evidence"]
        unjudged = sum(not judgeable(probe) for probe in probes)
        by_reader = sheet.header.reader
        try:
            there = read_scores(cell.scores)
        except ScoresError as error:
            raise StoreError(str(error)) from None
        there.put(score(found, by_reader, by, unjudged=unjudged))
        write(cell.scores, msgspec.json.format(msgspec.json.encode(there), indent=1) + b"\n")
        names = script.header.notes.get("categories", {})
        self.names |= names if isinstance(names, dict) else {}
        self.cells.append(cell)
        self.questions += found
        self.readers[by_reader] = None
        self.unjudged += unjudged
        self.missing += len(probes) - unjudged - len(found)

    def show(self, title: str, by: Judge, out: Console) -> None:
        """Print verdicts by category, and what became of the evidence."""
        if len(self.readers) > 1:
            raise StoreError(
                f"{title}: answered by different readers; answer all of them alike, or judge them apart"
            )
        (asked,) = self.readers
        total = score(self.questions, asked, by, unjudged=self.unjudged)
        out.print(f"\n{spoken(title)}", markup=False)
        out.print(told(asked), markup=False)
        out.print(judge_told(by), markup=False)
        for line in _costs(total, self.missing):
            out.print(line, markup=False)
        out.print(_verdicts(total, self.names))
        if any(row.left_out for row in total.rows):
            out.print("* without the questions whose gold answer is known to be wrong")
        if any(row.scores for row in total.rows):
            out.print()
            out.print(_by_convention(total, self.names))
        out.print()
        out.print(_use(total))


# ---------------------------------------------------------------- agreement


def agree(words: Sequence[str], one: str, two: str, out: Console) -> int:
    """Print how far two judges agree over the same answers, and where they do not.

    Raises:
        StoreError, ScriptError: a run was not judged by both, or by each over other answers.
    """
    pairs, apart = [], []
    for cell in named_cells(words):
        first, second = read_judgements(cell, one), read_judgements(cell, two)
        if first.header.reader != second.header.reader:
            raise StoreError(f"{cell.folder}: {one} and {two} judged other answers; judge again")
        steps = Script.read(cell.script).steps
        for step in sorted(first.lines.keys() & second.lines.keys()):
            said = first.lines[step].verdict, second.lines[step].verdict
            pairs.append(said)
            if said[0] != said[1] and "error" not in said:
                asked = steps[step]
                assert isinstance(asked, Probe)
                apart.append((cell.folder.name, asked.id, *said, asked.text))
    found = agreement.agreement(pairs)
    _show_agreement(found, len(pairs) - found.n, one, two, out)
    if apart:
        table = table_of("run", "question", one, two, "asked")
        for row in apart:
            table.add_row(*map(cell_text, row))
        out.print(table)
    return 0


def _show_agreement(
    found: agreement.Agreement, errors: int, one: str, two: str, out: Console
) -> None:
    same = f"{found.same} of {found.n}" if found.n else "none"
    out.print(f"judged alike: {same}; left out as errors: {errors}", markup=False)
    if found.kappa is None:
        out.print("kappa: not defined: no answers, or one and the same verdict throughout")
    else:
        low, high = found.interval or (found.kappa, found.kappa)
        out.print(f"Cohen's kappa: {found.kappa:.3f} (95%: {low:.3f} to {high:.3f}, bootstrap over questions)", markup=False)  # fmt: skip
    table = table_of(f"{one} \\ {two}", *agreement.VERDICTS)
    for verdict, row in zip(agreement.VERDICTS, found.table, strict=True):
        table.add_row(verdict, *map(str, row))
    out.print(table)


# ---------------------------------------------------------------- words and tables


def _answered(lines: Sequence[Answer], failed: Sequence[Answer], runs: int) -> str:
    whole = [line.context_tokens for line in lines]
    mean = sum(whole) / len(whole) if whole else 0
    return (
        f"{len(lines) - len(failed)} questions of {runs_told(runs)} answered, {len(failed)} errors;"
        f" {mean:,.0f} tokens of context each"
    )


def _costs(total: Score, missing: int) -> Iterable[str]:
    used, judging = total.answer_usage, total.judge_usage
    yield (
        f"context: {total.context_tokens_mean or 0:,.0f} tokens a question; reader"
        f" {used.prompt_tokens:,} + {used.completion_tokens:,} tokens ({_usd(total.answer_usd)});"
        f" judge {judging.prompt_tokens:,} + {judging.completion_tokens:,}"
        f" ({_usd(total.judge_usd) if total.judge.model else 'no model'})"
    )
    if total.unjudged:
        yield f"{total.unjudged} questions have no gold answer in the record and are not judged"
    if missing:
        yield f"{missing} questions are not answered or not judged yet; the same commands go on"


def _usd(dollars: float | None) -> str:
    return "price not known" if dollars is None else f"{dollars:.4f} usd"


def _verdicts(total: Score, names: dict[str, str]) -> Table:
    table = table_of("category", "n", "right", "wrong", "abstained", "errors", "right %", "score")
    for row in total.rows:
        given = row.n - row.errors
        table.add_row(
            cell_text(_name(row, names)), *_numbers(row),
            f"{100 * row.right / given:.1f}" if given else "-", _score(row.score),
            end_section=row.category == "all",
        )  # fmt: skip
    return table


def _by_convention(total: Score, names: dict[str, str]) -> Table:
    """Scores beside the mean of points, for the categories that have them."""
    table = table_of("category", *_CONVENTIONS)
    for row in total.rows:
        if row.scores:
            scores = (_score(row.scores.get(name)) for name in _CONVENTIONS)
            table.add_row(cell_text(_name(row, names)), *scores, end_section=row.category == "all")
    return table


def _name(row: Row, names: dict[str, str]) -> str:
    """`2 temporal *`: the category, its name, and whether wrong golds are left out."""
    words = (row.category, names.get(row.category, ""), "*" if row.left_out else "")
    return " ".join(word for word in words if word)


def _numbers(row: Row | Use) -> list[str]:
    return [str(number) for number in (row.n, row.right, row.wrong, row.abstained, row.errors)]


def _use(total: Score) -> Table:
    """Whether what was served was used."""
    table = table_of("evidence in the prompt", "n", "right", "wrong", "abstained", "errors")
    for row in total.use:
        table.add_row(row.evidence, *_numbers(row))
    return table


def _score(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"
