"""What readers' answers to public data amount to, once a judge has read them.

`scores.json` in a run folder holds one `Score` for each reader and judge that went over it, so a
sweep over budgets leaves all its results behind. Nothing here reads a history or asks a model.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import fmean
from typing import Final, Literal, NamedTuple

import msgspec

from steeltrap.harness.gateway.prices import cost_usd
from steeltrap.harness.models import Usage

__all__ = [
    "Judge",
    "Judged",
    "Kind",
    "Reader",
    "Row",
    "Score",
    "Scores",
    "ScoresError",
    "Use",
    "Verdict",
    "read_scores",
    "score",
]

FORMAT: Final = "steeltrap-scores"
VERSION: Final = 1
Kind = Literal["model", "substring", "exact", "f1"]
Verdict = Literal["correct", "wrong", "abstained", "error"]


class ScoresError(ValueError):
    """Scores cannot be read; the message says why and what to do."""


class Reader(msgspec.Struct, frozen=True, kw_only=True):
    """All that decides an answer beside what was served."""

    model: str
    """Provider and model, with a hash of the address where it is not the maker's."""
    prompt: str
    """plain, or the shape of a benchmark's own reader: an entry of `answers.toml`."""
    prompt_version: int
    prompt_sha256: str
    """Of its texts."""
    shape: str
    """What is ours in it and what a benchmark's, in words."""
    budget_tokens: int | None = None
    """Tokens (o200k_base) of the items shown, at most."""
    k: int | None = None
    """Items shown, at most."""
    max_tokens: int = 512
    """Of the answer."""
    temperature: float = 0.0


class Judge(msgspec.Struct, frozen=True, kw_only=True):
    """All that decides a judgement beside the answer and its question."""

    name: str
    kind: Kind
    model: str = ""
    """Provider and model, with a hash of the address where it is not the maker's."""
    prompts: dict[str, int] = {}
    """Versions of the texts by rule."""
    prompts_sha256: str = ""
    """Of all texts."""
    temperature: float = 0.0
    right_from: float = 0.5
    """Where points or F1 are given: the score from which an answer counts as right."""


class Judged(NamedTuple):
    """One question with all that is known of its answer."""

    category: str
    wrong_gold: bool
    """The record's own answer is doubted."""
    evidence: int
    """Turns that hold the answer, as far as the record names them."""
    shown: int | None
    """Of these, how many stood in the prompt; None where nobody knows."""
    context_tokens: int
    verdict: Verdict
    score: float | None
    scores: dict[str, float]
    answer_usage: Usage
    judge_usage: Usage

    @property
    def found(self) -> str:
        """What of the evidence stood in the prompt: all, some, none; unknown, or none named."""
        if not self.evidence:
            return "not named"
        if self.shown is None:
            return "unknown"
        return "all" if self.shown == self.evidence else "some" if self.shown else "none"


class _Counts(msgspec.Struct, kw_only=True):
    n: int
    """Questions."""
    right: int
    wrong: int
    abstained: int
    """Where there was an answer to give; abstaining where there was none is right."""
    errors: int
    """Not answered or not judged; in no share and no mean."""


class Row(_Counts, kw_only=True):
    """Verdicts of one category."""

    category: str
    left_out: str = ""
    """Which questions were left out, if any: `wrong-gold`."""
    score: float | None
    """Mean; None without a judgement."""
    scores: dict[str, float] = {}
    """Means by convention, over the questions that have it."""


class Use(_Counts, kw_only=True):
    """Verdicts of the questions of whose evidence that much stood in the prompt."""

    evidence: str
    """all, some, none, unknown (an item names no turns), not named (by the record)."""


class Score(msgspec.Struct, kw_only=True):
    """One reader's answers, in the words of one judge."""

    reader: Reader
    judge: Judge
    rows: list[Row]
    """By category, over all, and both again without wrong golds where any are known."""
    use: list[Use]
    unjudged: int = 0
    """Questions whose record has no answer to judge by; counted nowhere else."""
    context_tokens_mean: float | None
    """Of the items shown, a question."""
    answer_usage: Usage = Usage()
    answer_usd: float | None = None
    """By the price table; None where it does not have the model."""
    judge_usage: Usage = Usage()
    judge_usd: float | None = None


class Scores(msgspec.Struct, kw_only=True):
    """All that is known of one run, a line for each reader and judge."""

    format: str = FORMAT
    version: int = VERSION
    scores: list[Score] = []

    def put(self, score: Score) -> None:
        """Add a score in the place of an older one of the same reader and judge."""
        key = (score.reader, score.judge.name)
        kept = [one for one in self.scores if (one.reader, one.judge.name) != key]
        self.scores = sorted([*kept, score], key=lambda one: msgspec.json.encode([one.reader, one.judge]))  # fmt: skip


def read_scores(path: Path) -> Scores:
    """The scores of a run; none where there is no file.

    Raises:
        ScoresError: it cannot be read.
    """
    if not path.exists():
        return Scores()
    try:
        found = msgspec.json.decode(path.read_bytes(), type=Scores)
    except (OSError, msgspec.DecodeError, RecursionError) as error:
        raise ScoresError(f"{path}: cannot be read ({error}); remove it and judge again") from None
    if found.version != VERSION:
        raise ScoresError(f"{path}: version {found.version}, this steeltrap reads {VERSION}")
    return found


def score(questions: Sequence[Judged], reader: Reader, judge: Judge, *, unjudged: int = 0) -> Score:
    """Add up what was judged.

    Args:
        questions: of one run or of several.
        reader: whose answers they are.
        judge: who judged.
        unjudged: questions that nobody could judge.
    """
    rows = list(_rows(questions, ""))
    if any(question.wrong_gold for question in questions):
        rows += _rows([one for one in questions if not one.wrong_gold], "wrong-gold")
    order = ("all", "some", "none", "unknown", "not named")
    used = {name: [one for one in questions if one.found == name] for name in order}
    answer_usage = sum((one.answer_usage for one in questions), Usage())
    judge_usage = sum((one.judge_usage for one in questions), Usage())
    contexts = [one.context_tokens for one in questions]
    return Score(
        reader=reader, judge=judge, rows=rows, unjudged=unjudged,
        use=[Use(evidence=name, **_counts(some)) for name, some in used.items() if some],
        context_tokens_mean=fmean(contexts) if contexts else None,
        answer_usage=answer_usage, answer_usd=_usd(reader.model, answer_usage),
        judge_usage=judge_usage, judge_usd=_usd(judge.model, judge_usage) if judge.model else None,
    )  # fmt: skip


def _rows(questions: Sequence[Judged], left_out: str) -> Iterable[Row]:
    for category in (*sorted({one.category for one in questions}), "all"):
        chosen = [one for one in questions if category in ("all", one.category)]
        given = [one.score for one in chosen if one.score is not None]
        names = sorted({name for one in chosen for name in one.scores})
        yield Row(
            category=category, left_out=left_out, **_counts(chosen),
            score=fmean(given) if given else None,
            scores={
                name: fmean(one.scores[name] for one in chosen if name in one.scores)
                for name in names
            },
        )  # fmt: skip


def _counts(questions: Sequence[Judged]) -> dict[str, int]:
    said = [one.verdict for one in questions]
    return {
        "n": len(said), "right": said.count("correct"), "wrong": said.count("wrong"),
        "abstained": said.count("abstained"), "errors": said.count("error"),
    }  # fmt: skip


def _usd(model: str, usage: Usage) -> float | None:
    """`openai:gpt-4o-mini@1b9f03c2` is priced as `gpt-4o-mini`."""
    return cost_usd(model.partition(":")[2].partition("@")[0], usage)
