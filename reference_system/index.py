"""Finding by meaning and by words: which topics and notes a text is about."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from steeltrap.reference_system.state import key

if TYPE_CHECKING:
    from Stemmer import Stemmer

__all__ = ["Vectors", "Words", "fused", "grams"]

Vector = NDArray[np.float32]


class Vectors:
    """Unit vectors by id, one matrix a tenant: one product finds the nearest."""

    def __init__(self) -> None:
        self._rows: dict[str, dict[str, int]] = {}
        self._ids: dict[str, list[str]] = {}
        self._matrix: dict[str, Vector] = {}

    def fork(self) -> Vectors:
        """A copy."""
        twin = Vectors()
        twin._rows = {tenant: dict(rows) for tenant, rows in self._rows.items()}
        twin._ids = {tenant: list(ids) for tenant, ids in self._ids.items()}
        twin._matrix = {tenant: matrix.copy() for tenant, matrix in self._matrix.items()}
        return twin

    def put(self, tenant: str, name: str, vector: Vector) -> None:
        """Add or replace a vector."""
        rows = self._rows.setdefault(tenant, {})
        ids = self._ids.setdefault(tenant, [])
        row = rows.get(name)
        if row is None:
            row = rows[name] = len(ids)
            ids.append(name)
        matrix = self._matrix.get(tenant)
        if matrix is None or row >= len(matrix):
            grown = np.zeros((max(16, 2 * row), len(vector)), dtype=np.float32)
            if matrix is not None:
                grown[: len(matrix)] = matrix
            matrix = self._matrix[tenant] = grown
        matrix[row] = vector

    def drop(self, tenant: str, name: str) -> None:
        """Remove a vector; the last one takes its place."""
        rows, ids = self._rows.get(tenant, {}), self._ids.get(tenant, [])
        row = rows.pop(name, None)
        if row is None:
            return
        last = ids.pop()
        matrix = self._matrix[tenant]
        if last != name:
            matrix[row] = matrix[len(ids)]
            ids[row] = last
            rows[last] = row
        matrix[len(ids)] = 0
        if not ids:
            del self._rows[tenant], self._ids[tenant], self._matrix[tenant]

    def nearest(self, tenant: str, vector: Vector, limit: int) -> list[tuple[str, float]]:
        """The nearest ids with their cosines, best first; equal ones in order of arrival."""
        ids = self._ids.get(tenant)
        if not ids:
            return []
        cosines = self._matrix[tenant][: len(ids)] @ vector
        few = limit < len(ids)
        top = np.argpartition(-cosines, limit)[:limit] if few else np.arange(len(ids))
        order = sorted(top.tolist(), key=lambda row: (-float(cosines[row]), row))
        return [(ids[row], float(cosines[row])) for row in order]


class Words:
    """Texts by id, found by the words that they share with a question (BM25), one set a tenant.

    Robertson, Zaragoza: "The probabilistic relevance framework: BM25 and beyond" (2009), with
    k1 = 1.2 and b = 0.75 and English stems.
    """

    def __init__(self) -> None:
        self._texts: dict[str, dict[str, Counter[str]]] = {}
        self._postings: dict[str, dict[str, dict[str, int]]] = {}
        self._lengths: dict[str, int] = {}

    def fork(self) -> Words:
        """A copy."""
        twin = Words()
        twin._texts = {tenant: dict(texts) for tenant, texts in self._texts.items()}
        twin._postings = {
            tenant: {word: dict(found) for word, found in postings.items()}
            for tenant, postings in self._postings.items()
        }
        twin._lengths = dict(self._lengths)
        return twin

    def put(self, tenant: str, name: str, text: str) -> None:
        """Add or replace a text."""
        self.drop(tenant, name)
        counts = Counter(stems(text))
        self._texts.setdefault(tenant, {})[name] = counts
        self._lengths[tenant] = self._lengths.get(tenant, 0) + counts.total()
        postings = self._postings.setdefault(tenant, {})
        for word, count in counts.items():
            postings.setdefault(word, {})[name] = count

    def drop(self, tenant: str, name: str) -> None:
        """Remove a text."""
        counts = self._texts.get(tenant, {}).pop(name, None)
        if counts is None:
            return
        self._lengths[tenant] -= counts.total()
        postings = self._postings[tenant]
        for word in counts:
            del postings[word][name]
            if not postings[word]:
                del postings[word]
        if not self._texts[tenant]:
            del self._texts[tenant], self._postings[tenant], self._lengths[tenant]

    def nearest(self, tenant: str, text: str, limit: int) -> list[str]:
        """The ids that share most with a text, best first; equal ones in order of their names."""
        texts = self._texts.get(tenant)
        if not texts:
            return []
        mean = self._lengths[tenant] / len(texts) or 1.0
        scores: dict[str, float] = {}
        for word in dict.fromkeys(stems(text)):
            found = self._postings[tenant].get(word, {})
            idf = math.log(1 + (len(texts) - len(found) + 0.5) / (len(found) + 0.5))
            for name, count in found.items():
                norm = 1.2 * (0.25 + 0.75 * texts[name].total() / mean)
                scores[name] = scores.get(name, 0.0) + idf * count * 2.2 / (count + norm)
        return sorted(scores, key=lambda name: (-scores[name], name))[:limit]


@cache
def _stemmer() -> Stemmer:
    from Stemmer import Stemmer

    return Stemmer("english")


def stems(text: str) -> list[str]:
    """The words of a text, stemmed, without those that every text has."""
    words = [word for word in re.findall(r"\w+", text.casefold()) if word not in _COMMON]
    stemmed: list[str] = _stemmer().stemWords(words)
    return stemmed


_COMMON = frozenset(
    "a an and are as at be been but by did do does for from had has have he her his how i if in is"
    " it its me my of on or our she so that the their them they this to was we were what when"
    " where which who will with would you your".split()
)


def fused(rankings: Iterable[Sequence[str]], limit: int) -> list[str]:
    """Several rankings as one, by reciprocal ranks (Cormack, Clarke, Buettcher, SIGIR 2009)."""
    scores: dict[str, float] = {}
    for ranking in rankings:
        for place, name in enumerate(ranking, 1):
            scores[name] = scores.get(name, 0.0) + 1 / (60 + place)
    return sorted(scores, key=lambda name: (-scores[name], name))[:limit]


def grams(text: str, longest: int = 8) -> Iterator[str]:
    """Runs of words of a text as name keys, the longest first."""
    words = [(match.start(), match.end()) for match in re.finditer(r"[^\s,;:!?\"()]+", text)]
    for length in range(min(longest, len(words)), 0, -1):
        for first in range(len(words) - length + 1):
            begin, end = words[first][0], words[first + length - 1][1]
            run = text[begin:end]
            spellings = [run, run.removesuffix("."), re.sub(r"['’]s?$", "", run)]
            spellings += _with_signs(text, begin, end)
            for spelled in dict.fromkeys(spellings):
                yield key(spelled)


def _with_signs(text: str, begin: int, end: int) -> Iterator[str]:
    """A run of words with the signs about it, as in 'Apollo (2026)': some belong to a name."""
    before, after = text[max(0, begin - 2) : begin], text[end : end + 2]
    heads = len(before) - len(before.rstrip('"('))
    tails = len(after) - len(after.lstrip('?!")'))
    for head in range(heads + 1):
        for tail in range(tails + 1):
            if head or tail:
                yield text[begin - head : end + tail]
