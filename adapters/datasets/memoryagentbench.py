"""MemoryAgentBench, its split on conflict resolution: long lists of facts, some of which conflict.

Each record becomes one script: its facts are turns in order, a minute apart, then come its hundred
questions. Of two facts that conflict the one with the larger number is current: that is the rule of
the task, and the numbers are part of the texts unless `numbers=false`. Contents are counterfactual by
design, so knowing the world gives the old answer. Scored is whether the gold answer, normalised, is
part of what was said.

Evidence is not part of the record. For single-hop questions it is looked for: a fact that ends in the
gold answer and whose words before it, each weighed by how rare it is, are the question's, clearly
more so than those of any other such fact. Nothing is looked for where questions take several hops.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Annotated, Any, Final, NamedTuple

import msgspec

from steeltrap.adapters.datasets import source
from steeltrap.adapters.datasets.source import Data, DatasetError, Scripts
from steeltrap.harness.script import Header, Op, Probe, Script, Turn

__all__ = ["HOPS", "SIZES", "DatasetError", "scripts"]

_CARD: Final = source.card("memoryagentbench")
_FILE: Final = "Conflict_Resolution.json"
HOPS: Final = ("sh", "mh")
SIZES: Final = ("6k", "32k", "64k", "262k")
_CATEGORY: Final = {"sh": "single-hop", "mh": "multi-hop"}
_TENANT: Final = "facts"
_FIRST: Final = datetime(2024, 1, 1)
_COVERED: Final = 0.6
"""How much of a fact's words, weighed by rarity, must be the question's."""
_CLEARLY: Final = 0.15
"""By how much that must exceed the same share of the next fact that ends in the answer."""


class _About(msgspec.Struct):
    source: Annotated[str, msgspec.Meta(pattern=r"^factconsolidation_(sh|mh)_(6|32|64|262)k$")]

    @property
    def kind(self) -> tuple[str, str]:
        _, hops, size = self.source.split("_")
        return hops, size


class _Record(msgspec.Struct):
    context: str
    questions: list[str]
    answers: list[Annotated[list[str], msgspec.Meta(min_length=1)]]
    metadata: _About


class _Head(msgspec.Struct):
    metadata: _About


def scripts(
    path: str | Path,
    check: bool = True,
    hops: Sequence[str] | None = None,
    sizes: Sequence[str] | None = None,
    numbers: bool = True,
) -> Scripts:
    """The records of the split as scripts, in the order of the file.

    Args:
        path: `Conflict_Resolution.json`, gzipped or not; a folder or a mirror that holds it.
        check: refuse files other than the known one.
        hops: `sh` (single hop), `mh` (multi-hop); by default both.
        sizes: `6k`, `32k`, `64k`, `262k`; by default all.
        numbers: keep the facts' numbers in the texts, as in the official prompt.

    Raises:
        DatasetError: the file cannot be had or read, is not the known one, or has another form.
    """
    kinds = {
        "hops": source.chosen("memoryagentbench", "hops", hops, HOPS),
        "sizes": source.chosen("memoryagentbench", "size", sizes, SIZES),
    }
    (file,) = source.find(path, _CARD, [[_FILE]])
    data = source.read(file, _CARD, [_FILE], check=check)
    raw = source.records(data)
    heads = [
        source.record(data, number, one, _Head).metadata.kind for number, one in enumerate(raw)
    ]
    places = [
        place
        for place, (hop, size) in enumerate(heads)
        if hop in kinds["hops"] and size in kinds["sizes"]
    ]
    if not places:
        raise DatasetError(f"{file}: holds none of {kinds['hops']} with {kinds['sizes']}")
    noted = {"sha256": data.identity, **kinds, "numbers": numbers}

    def make(index: int) -> Script:
        place = places[index]
        record = source.record(data, place, raw[place], _Record)
        return _script(data, index, record, noted)

    return Scripts(len(places), make)


# ---------------------------------------------------------------- scripts


def _script(data: Data, index: int, record: _Record, noted: dict[str, Any]) -> Script:
    where = f"{data.path}: {record.metadata.source}"
    if len(record.questions) != len(record.answers):
        raise DatasetError(
            f"{where}: {len(record.questions)} questions and {len(record.answers)} answers"
        )
    facts = _facts(where, record.context)
    turns = [
        Turn(
            at=_at(number),
            tenant=_TENANT,
            id=f"f{number}",
            session="list",
            text=f"{number}. {fact}" if noted["numbers"] else fact,
            ops=_NOISE,
        )
        for number, fact in enumerate(facts)
    ]
    hops, _ = record.metadata.kind
    search = _Search(facts) if hops == "sh" else None
    probes = []
    for number, (question, answers) in enumerate(
        zip(record.questions, record.answers, strict=True)
    ):
        evidence, flag = search.evidence(question, answers[0]) if search else ((), "no-evidence")
        probes.append(
            Probe(
                at=_at(len(facts)),
                tenant=_TENANT,
                id=f"q{number}",
                ask="evidence",
                text=question,
                observe="in-script",
                evidence=evidence,
                category=_CATEGORY[hops],
                flags=(flag,) if flag else (),
                gold=answers[0],
                rubric=tuple(answers[1:]),
                judged="substring",
            )
        )
    earlier = {probe.id: _EARLIER for probe in probes if _EARLIER in probe.flags}
    header = Header(
        name="memoryagentbench",
        seed=index,
        settings={"record": record.metadata.source, **noted},
        tenants=[_TENANT],
        notes={
            "source": _CARD.source,
            "licence": _CARD.licence,
            "unit": f"single facts, {'with' if noted['numbers'] else 'without'} their numbers",
            "evidence": "found by comparing words, for single-hop questions; not part of the data",
            "times": "invented, a minute a fact",
            "questions": len(probes),
            "without_evidence": [probe.id for probe in probes if not probe.evidence],
            **({"found_defects": earlier} if earlier else {}),
        },
    )
    return Script(header, [*turns, *probes])


_NOISE: Final = [Op(op="noise")]
_EARLIER: Final = "wrong-gold:earlier-fact"


def _at(minute: int) -> str:
    return (_FIRST + timedelta(minutes=minute)).isoformat(timespec="minutes")


def _facts(where: str, context: str) -> list[str]:
    """The facts by number, without it."""
    facts: list[str] = []
    for line in context.splitlines()[1:]:
        if not line.strip():
            continue
        number, dot, fact = line.partition(". ")
        if not dot or number != str(len(facts)):
            raise DatasetError(f"{where}: expected fact {len(facts)}, found {line[:60]!r}")
        facts.append(fact)
    if not facts:
        raise DatasetError(f"{where}: has no numbered facts")
    return facts


# ---------------------------------------------------------------- evidence

_WORD: Final = re.compile(r"\w+")


class _Fits(NamedTuple):
    share: float
    number: int
    before: str
    """The fact up to the answer."""


class _Search:
    """Finds the fact that answers a single-hop question."""

    def __init__(self, facts: list[str]) -> None:
        self._facts = facts
        self._with = Counter(word for fact in facts for word in set(_words(fact)))

    def evidence(self, question: str, gold: str) -> tuple[tuple[str, ...], str]:
        """The turn of the fact, and what there is to be said of it.

        | flag | |
        |---|---|
        | none | the later of a pair that conflicts |
        | `no-conflict` | no other fact says anything else |
        | `wrong-gold:earlier-fact` | a later fact says otherwise, so by the rule the gold is old |
        | `no-evidence` | not found, or not clearly |
        """
        asked = set(_words(question))
        ending = f" {gold}."
        fits = sorted(
            (
                _Fits(self._share(before, asked), number, before)
                for number, fact in enumerate(self._facts)
                if fact.endswith(ending) and (before := fact[: -len(ending) + 1])
            ),
            key=lambda fit: (-fit.share, fit.number),
        )
        if not fits or fits[0].share < _COVERED:
            return (), "no-evidence"
        if len(fits) > 1 and fits[0].share - fits[1].share < _CLEARLY:
            return (), "no-evidence"
        best = fits[0]
        others = [
            number
            for number, fact in enumerate(self._facts)
            if number != best.number and fact.startswith(best.before)
        ]
        if not others:
            return (f"f{best.number}",), "no-conflict"
        return (f"f{best.number}",), "" if max(others) < best.number else _EARLIER

    def _share(self, before: str, asked: set[str]) -> float:
        weights = [(word in asked, self._weight(word)) for word in _words(before)]
        total = math.fsum(weight for _, weight in weights)
        return math.fsum(weight for shared, weight in weights if shared) / total if total else 0.0

    def _weight(self, word: str) -> float:
        return math.log(len(self._facts) / self._with[word])


def _words(text: str) -> list[str]:
    return _WORD.findall(text.lower())
