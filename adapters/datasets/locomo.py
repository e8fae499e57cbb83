"""LoCoMo: ten long conversations between two people, as scripts.

Each conversation becomes one script: its turns in order, then its questions. Only `evidence`
is asked: which turns are served. What is known about the data set (hash, licence, category
names, the questions whose evidence is defective) stands in `locomo.json`; the data is not
part of this package and comes from the user's own copy.

The order of the category numbers is that of snap-research/locomo issue 29, not of the paper.
"""

from __future__ import annotations

import gzip
import hashlib
import re
from collections import Counter
from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

import msgspec

from steeltrap.harness.script import Header, Op, Probe, Script, Turn

__all__ = ["CATEGORIES", "DatasetError", "scripts"]


class DatasetError(ValueError):
    """A data set cannot be used; the message says which file, why, and what to do."""


class _Card(msgspec.Struct):
    """The part of `locomo.json` that the loader reads."""

    source: str
    licence: str
    sha256: str
    audit_source: str
    audit_sha256: str
    categories: dict[str, str]


_CARD: Final = msgspec.json.decode(Path(__file__).with_name("locomo.json").read_bytes(), type=_Card)
CATEGORIES: Final[Mapping[str, str]] = _CARD.categories
"""Category numbers, as in `Probe.category`, and their names."""


class _Spoken(msgspec.Struct):
    speaker: str
    dia_id: str
    text: str
    blip_caption: str | None = None


class _Question(msgspec.Struct):
    question: str
    category: Literal[1, 2, 3, 4, 5]
    evidence: list[str]


class _Sample(msgspec.Struct):
    sample_id: str
    conversation: dict[str, Any]
    qa: list[_Question]


class _Finding(msgspec.Struct):
    question_id: str
    question: str
    error_type: str


def scripts(
    path: Path,
    audit: Path | None = None,
    check: bool = True,
    categories: Collection[str] = tuple(CATEGORIES),
) -> list[Script]:
    """The conversations of a LoCoMo file as scripts, questions at the end.

    A turn's text is `speaker: text`, with ` [image: caption]` where a picture was shown. Its
    time is that of its session plus a minute for each turn before it. Speaker a is the user.
    Evidence that is joined or malformed is repaired; what cites no turn is dropped; each such
    question is flagged `evidence-defect` and listed in `Header.notes`.

    Args:
        path: `locomo10.json`, also gzipped.
        audit: `errors.json` of dial481/locomo-audit. Its findings become flags: `wrong-citation`
            where only the evidence is doubted, `wrong-gold:<TYPE>` for every other type. It is
            a list of doubts from a model with human review, not truth.
        check: refuse files other than the known ones.
        categories: the questions to ask; others are left out.

    Raises:
        DatasetError: a file cannot be read, is not the known one, or has another form.
    """
    chosen = sorted(map(str, categories))
    unknown = [category for category in chosen if category not in CATEGORIES]
    if unknown:
        raise DatasetError(f"locomo: no category {unknown[0]}; known: {', '.join(CATEGORIES)}")
    raw, sha256 = _read(path, _CARD.sha256 if check else None, _CARD.source)
    samples: list[_Sample] = _decoded(path, raw, list[_Sample])
    flags: dict[tuple[int, int], str] = {}
    settings: dict[str, Any] = {"sha256": sha256, "categories": chosen}
    if audit is not None:
        known = _CARD.audit_sha256 if check else None
        raw, settings["audit_sha256"] = _read(audit, known, _CARD.audit_source)
        flags = _flags(audit, _decoded(audit, raw, list[_Finding]), samples)
    return [_script(path, i, sample, settings, flags) for i, sample in enumerate(samples)]


# ---------------------------------------------------------------- files


def _read(path: Path, known: str | None, source: str) -> tuple[bytes, str]:
    """The bytes of a file, unzipped, and their sha256."""
    try:
        raw = Path(path).read_bytes()
        if raw.startswith(b"\x1f\x8b"):
            raw = gzip.decompress(raw)
    except (OSError, EOFError) as error:
        reason = getattr(error, "strerror", None) or error
        raise DatasetError(
            f"{path}: cannot be read ({reason}). The data is not part of steeltrap; get {source}"
        ) from None
    sha256 = hashlib.sha256(raw).hexdigest()
    if known is not None and sha256 != known:
        raise DatasetError(
            f"{path}: not the known file (sha256 {sha256}, expected {known}). Get {source}, or"
            " set script.check=false to take this one, whose results compare with no others"
        )
    return raw, sha256


def _decoded(path: Path, raw: bytes, kind: Any) -> Any:
    try:
        return msgspec.json.decode(raw, type=kind)
    except msgspec.DecodeError as error:
        raise DatasetError(f"{path}: not in the form of LoCoMo: {error}") from None


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
            )
        )
    header = Header(
        name="locomo",
        seed=index,
        settings={"conversation": sample.sample_id, **settings},
        tenants=[sample.sample_id],
        notes=_notes(probes, defects, "audit_sha256" in settings),
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
