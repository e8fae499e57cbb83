"""Scores of an answer by comparing texts, as the benchmarks that use them define them.

They need no model, and they are what they are: the substring rule finds `1` in `21`, and F1 gives
a wrong name in a right sentence most of its points.
"""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache
from statistics import fmean
from typing import Any, Final

from steeltrap.harness.answering.answers import UNKNOWN

__all__ = ["abstains", "exact", "f1", "f1_locomo", "substring"]

_PUNCTUATION: Final = str.maketrans("", "", string.punctuation)
_LOCOMO_ABSTAINS: Final = ("no information available", "not mentioned")
"""What LoCoMo's scorer looks for in answers to adversarial questions."""


def substring(answer: str, golds: Iterable[str]) -> float:
    """1 where any gold stands in the answer, both normalised; else 0 (MemoryAgentBench)."""
    return float(any(_within(gold, answer) for gold in golds))


def exact(answer: str, golds: Iterable[str]) -> float:
    """1 where the answer is any of the golds, both normalised; else 0."""
    return float(any(_normal(gold) == _normal(answer) for gold in golds))


def f1(answer: str, golds: Iterable[str]) -> float:
    """Harmonic mean of precision and recall of stemmed tokens, of the gold that fits best."""
    return max((_f1(answer, gold) for gold in golds), default=0.0)


def f1_locomo(answer: str, gold: str, category: str) -> float:
    """As LoCoMo's scorer (`task_eval/evaluation.py`) does by category.

    1, several hops: gold and answer are split at commas, and each part of the gold takes its best
    part of the answer. 3: only what stands before a semicolon counts. 5: 1 for an abstention.
    Tokens are stemmed by Porter's own algorithm; the official scorer uses NLTK's variant of it,
    which differs in a few words, on both sides alike.
    """
    if category == "5":
        return float(abstains(answer))
    if category == "3":
        gold = gold.partition(";")[0].strip()
    if category != "1":
        return _f1(answer, gold)
    parts = [part.strip() for part in answer.split(",")]
    return fmean(max(_f1(part, one.strip()) for part in parts) for one in gold.split(","))


def abstains(answer: str) -> bool:
    """Whether an answer begins with what readers are told to say where the memory has no answer, or
    holds what LoCoMo's scorer looks for. Other words for the same are not recognised."""
    said = answer.lower()
    return _normal(answer).startswith(_unknown()) or any(word in said for word in _LOCOMO_ABSTAINS)


@cache
def _unknown() -> tuple[str, ...]:
    return tuple(_normal(phrase) for phrase in UNKNOWN)


def _within(gold: str, answer: str) -> bool:
    wanted = _normal(gold)
    # what is all punctuation would stand in every answer
    return wanted in _normal(answer) if wanted else gold.strip() in answer


def _normal(text: str) -> str:
    """Lower case, without punctuation and articles, with single spaces."""
    plain = text.lower().translate(_PUNCTUATION)
    return " ".join(re.sub(r"\b(a|an|the)\b", " ", plain).split())


def _f1(answer: str, gold: str) -> float:
    said, wanted = _stems(answer), _stems(gold)
    common = sum((Counter(said) & Counter(wanted)).values())
    return 2 * common / (len(said) + len(wanted)) if common else 0.0


def _stems(text: str) -> Sequence[str]:
    plain = text.lower().translate(_PUNCTUATION)
    words = re.sub(r"\b(a|an|the|and)\b", " ", plain).split()
    stems: list[str] = _stemmer().stemWords(words)
    return stems


@cache
def _stemmer() -> Any:
    import Stemmer

    return Stemmer.Stemmer("porter")
