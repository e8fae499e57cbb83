"""LoCoMo: ten long conversations between two people, as scripts.

Each conversation becomes one script: its turns in order, then its questions. Only `evidence`
is asked: which turns are served. What is known about the data set (hash, licence, category
names, the questions whose evidence is defective) stands in `locomo.json`; the data is not
part of this package and comes from the user's own copy.

The order of the category numbers is that of snap-research/locomo issue 29, not of the paper.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

import msgspec

from steeltrap.adapters.datasets import source
from steeltrap.adapters.datasets.source import DatasetError, Name, Scripts
from steeltrap.harness.script import Header, Op, Probe, Script, Turn

__all__ = ["CATEGORIES", "DatasetError", "scripts"]


_CARD: Final = source.card("locomo")
CATEGORIES: Final[Mapping[str, str]] = _CARD.categories
"""Category numbers, as in `Probe.category`, and their names."""
_DATA: Final = "locomo10.json"
_AUDIT: Final = "locomo_audit_errors.json"


class _Spoken(msgspec.Struct):
    speaker: str
    dia_id: Name
    text: str
    blip_caption: str | None = None


class _Question(msgspec.Struct):
    question: str
    category: Literal[1, 2, 3, 4, 5]
    evidence: list[str]
    answer: str | int | None = None
    adversarial_answer: str | None = None


class _Sample(msgspec.Struct):
    sample_id: Name
    conversation: dict[str, Any]
    qa: list[_Question]


class _Finding(msgspec.Struct):
    question_id: str
    question: str
    error_type: str


def scripts(
    path: str | Path,
    audit: str | Path | None = None,
    check: bool = True,
    categories: Collection[str] = tuple(CATEGORIES),
) -> Scripts:
    """The conversations of a LoCoMo file as scripts, questions at the end.

    A turn's text is `speaker: text`, with ` [image: caption]` where a picture was shown. Its
    time is that of its session plus a minute for each turn before it. Speaker a is the user.
    Evidence that is joined or malformed is repaired; what cites no turn is dropped; each such
    question is flagged `evidence-defect` and listed in `Header.notes`. Adversarial questions have
    no answer; the one that they tempt to stands in `Header.notes["tempting"]`.

    Args:
        path: `locomo10.json`, also gzipped; a folder or a mirror that holds it.
        audit: `errors.json` of dial481/locomo-audit. Its findings become flags: `wrong-citation`
            where only the evidence is doubted, `wrong-gold:<TYPE>` for every other type. It is
            a list of doubts from a model with human review, not truth.
        check: refuse files other than the known ones.
        categories: the questions to ask; others are left out.

    Raises:
        DatasetError: a file cannot be had or read, is not the known one, or has another form.
    """
    wanted = source.chosen("locomo", "category", list(categories), list(CATEGORIES))
    (file,) = source.find(path, _CARD, [[_DATA]])
    data = source.read(file, _CARD, [_DATA], check=check)
    samples = [source.record(data, at, raw, _Sample) for at, raw in enumerate(source.records(data))]
    flags: dict[tuple[int, int], str] = {}
    settings: dict[str, Any] = {"sha256": data.identity, "categories": wanted}
    if audit is not None:
        (file,) = source.find(audit, _CARD, [[_AUDIT]])
        found = source.read(file, _CARD, [_AUDIT], check=check)
        settings["audit_sha256"] = found.identity
        flags = _flags(file, source.decoded(found, list[_Finding]), samples)

    def make(index: int) -> Script:
        return _script(data.path, index, samples[index], settings, flags)

    return Scripts(len(samples), make)


# ---------------------------------------------------------------- the audit


def _flags(
    path: Path, findings: list[_Finding], samples: list[_Sample]
) -> dict[tuple[int, int], str]:
    """The flag of each audited question, by the positions of conversation and question."""
    flags: dict[tuple[int, int], str] = {}
    for finding in findings:
        match = re.fullmatch(r"locomo_(\d+)_qa(\d+)", finding.question_id)
        where = (int(match[1]), int(match[2])) if match else (len(samples), 0)
        asked = samples[where[0]].qa[where[1] :][:1] if where[0] < len(samples) else []
        if not asked or asked[0].question != finding.question:
            raise DatasetError(
                f"{path}: {finding.question_id} is not a question of the data; this audit is of"
                " another version"
            )
        kind = finding.error_type
        flags[where] = "wrong-citation" if kind == "WRONG_CITATION" else f"wrong-gold:{kind}"
    return flags


# ---------------------------------------------------------------- evidence

_CITED = re.compile(r"D:?(\d+):(\d+)")


class _Evidence(NamedTuple):
    turns: tuple[str, ...]
    defect: str


def _evidence(cited: list[str], turns: Collection[str]) -> _Evidence:
    """The turns that a question cites, as far as they exist, and what was wrong with the list."""
    found = [[f"D{int(s)}:{int(t)}" for s, t in _CITED.findall(text)] for text in cited]
    flat = dict.fromkeys(turn for some in found for turn in some)
    if not cited:
        defect = "empty"
    elif any(len(some) > 1 for some in found):
        defect = "joined"
    elif any(some != [text] for some, text in zip(found, cited, strict=True)):
        defect = "malformed"
    else:
        defect = "" if all(turn in turns for turn in flat) else "no-such-turn"
    return _Evidence(tuple(turn for turn in flat if turn in turns), defect)


# ---------------------------------------------------------------- scripts


def _script(
    path: Path,
    index: int,
    sample: _Sample,
    settings: dict[str, Any],
    flags: dict[tuple[int, int], str],
) -> Script:
    turns = _turns(path, sample)
    ids = frozenset(turn.id for turn in turns)
    after = datetime.fromisoformat(turns[-1].at) + timedelta(minutes=1)
    probes, defects = [], {}
    tempting: list[dict[str, str]] = []
    for number, question in enumerate(sample.qa):
        if str(question.category) not in settings["categories"]:
            continue
        evidence, defect = _evidence(question.evidence, ids)
        if defect:
            defects[f"q{number}"] = defect
        marks = ("evidence-defect" if defect else "", flags.get((index, number), ""))
        probes.append(
            Probe(
                at=after.isoformat(timespec="minutes"),
                tenant=sample.sample_id,
                id=f"q{number}",
                ask="evidence",
                text=question.question,
                observe="in-script",
                evidence=evidence,
                category=str(question.category),
                flags=tuple(mark for mark in marks if mark),
                gold="" if question.answer is None else str(question.answer),
                judged=f"locomo/{CATEGORIES[str(question.category)]}",
            )
        )
        if question.adversarial_answer is not None:
            tempting.append({"probe": f"q{number}", "answer": question.adversarial_answer})
    header = Header(
        name="locomo",
        seed=index,
        settings={"conversation": sample.sample_id, **settings},
        tenants=[sample.sample_id],
        notes=_notes(probes, defects, "audit_sha256" in settings) | {"tempting": tempting},
    )
    return Script(header, [*turns, *probes])


def _turns(path: Path, sample: _Sample) -> list[Turn]:
    """The turns of all sessions that have any; some dates stand there without a session."""
    speech = sample.conversation
    turns = []
    for key in sorted(
        (key for key in speech if re.fullmatch(r"session_\d+", key)),
        key=lambda key: int(key.removeprefix("session_")),
    ):
        try:
            begun = datetime.strptime(speech[f"{key}_date_time"], "%I:%M %p on %d %B, %Y")
            spoken = msgspec.convert(speech[key], list[_Spoken])
        except (KeyError, TypeError, ValueError) as error:
            raise DatasetError(f"{path}: {sample.sample_id}, {key}: {error}") from None
        for minute, said in enumerate(spoken):
            shown = f" [image: {said.blip_caption}]" if said.blip_caption else ""
            turns.append(
                Turn(
                    at=(begun + timedelta(minutes=minute)).isoformat(timespec="minutes"),
                    tenant=sample.sample_id,
                    id=said.dia_id,
                    session=key,
                    role="user" if said.speaker == speech.get("speaker_a") else "assistant",
                    text=f"{said.speaker}: {said.text}{shown}",
                    ops=[Op(op="noise")],
                )
            )
    if not turns:
        raise DatasetError(f"{path}: {sample.sample_id} has no session with turns")
    return turns


def _notes(probes: list[Probe], defects: dict[str, str], audited: bool) -> dict[str, Any]:
    marks = Counter(mark for probe in probes for mark in probe.flags)
    return {
        "source": _CARD.source,
        "licence": _CARD.licence,
        "categories": dict(CATEGORIES),
        "unit": "single turns; text with speaker and image caption",
        "questions": len(probes),
        "without_evidence": [probe.id for probe in probes if not probe.evidence],
        "evidence_defects": defects,
        "audit": dict(sorted(marks.items())) if audited else "none given: wrong golds not marked",
    }
