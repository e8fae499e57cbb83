"""LongMemEval: 500 questions, each after a life of its own in many sessions, as scripts.

Each question has its own haystack of sessions, so each is a **tenant** of its own: its turns come
in, then it is asked. A script holds several (`questions_per_script`), one after the other. Systems
are asked within a tenant, and what another tenant said must not show there: that is the same
isolation that the leakage checks demand. A system that fails at it is disturbed by other lives,
which the one-haystack runs of the official scorer never show; `questions_per_script=1` is as theirs.

What systems see is opaque: `q017` is the 18th record of the file, `q017.3` the fourth session of
its haystack as the record has it, `q017.3.5` the fifth turn of that. Official ids, some of which
hold the word "answer", stand in `Header.notes["questions"]` alone. The official scorer's inputs
follow from the script: its corpus, the user turns of each session joined (sessions without any
stand in the notes too); its gold, sessions whose id holds "answer" and that have a user turn with
`has_answer` (such a turn is `Probe.evidence`); its averages, by flags: without `abstention` 470
questions (469 in the 499 of S), without `no-user-evidence` as well 419.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

import msgspec

from steeltrap.adapters.datasets import source
from steeltrap.adapters.datasets.source import Data, DatasetError, Name, Scripts
from steeltrap.harness.script import Header, Op, Probe, Script, Turn

__all__ = ["TYPES", "VARIANTS", "DatasetError", "scripts"]

_CARD: Final = source.card("longmemeval")
VARIANTS: Final[Mapping[str, tuple[tuple[str, ...], ...]]] = {
    "oracle": (("longmemeval_oracle.json",),),
    "s": (
        ("longmemeval_s_cleaned.json",),
        ("longmemeval_s_cleaned_index.jsonl", "longmemeval_s_cleaned_user_turns.jsonl"),
    ),
    "s-subset100": (("longmemeval_s_cleaned_subset100.json",),),
    "s-ku-rest": (("longmemeval_s_cleaned_ku_rest.json",),),
    "m": (("longmemeval_m_cleaned.json",),),
}
"""The files of each variant, best way first."""
TYPES: Final = (
    "single-session-user", "single-session-assistant", "single-session-preference",
    "multi-session", "temporal-reasoning", "knowledge-update",
)  # fmt: skip

Turns = Literal["all", "user"]
Order = Literal["time", "given"]
Late = Literal["kept", "dropped"]
Silent = Literal["dropped", "kept"]


class _Said(msgspec.Struct):
    role: Literal["user", "assistant"]
    content: str
    has_answer: bool = False


class _UserSaid(msgspec.Struct):
    turn: int
    content: str
    has_answer: bool = False


class _Session(msgspec.Struct):
    """A line of the file of user turns."""

    session_id: str
    user_turns: list[_UserSaid]


class _Head(msgspec.Struct):
    question_id: Name
    question_type: Name


class _Record(_Head):
    question: str
    question_date: str
    answer: str | int
    haystack_dates: list[str]
    haystack_session_ids: list[str]
    haystack_sessions: list[list[_Said]] | None = None


class _Settings(NamedTuple):
    turns: Turns
    order: Order
    late: Late
    evidence: Turns
    silent: Silent


def scripts(
    path: str | Path,
    user_turns: str | Path | None = None,
    variant: str = "s",
    check: bool = True,
    turns: Turns | None = None,
    order: Order = "time",
    late: Late = "kept",
    evidence: Turns = "user",
    silent: Silent = "dropped",
    types: Sequence[str] | None = None,
    questions_per_script: int = 50,
) -> Scripts:
    """The questions of a LongMemEval file as scripts, so many in each.

    A turn has the time of its session plus a minute for each turn before it, but none after the
    session that follows, nor after the question if the session began before it.

    Args:
        path: a file with full records, or an index without sessions; a folder, a mirror or `hub`,
            where `variant` says what is looked for. Gzipped or not.
        user_turns: with an index: the file of its sessions' user turns.
        variant: `oracle`, `s`, `m`, or a part of S: `s-subset100`, `s-ku-rest`.
        check: refuse files other than the known ones.
        turns: those of both, or of the user alone; by default all that the data holds.
        order: of the sessions: by `time` (those of one time as in the record), or as `given`, which
            is the official scorer's, and in which times step back from session to session.
        late: sessions dated after the question: `kept` (the official scorer's way), or `dropped`.
        evidence: turns that count as such: those of the `user` (the official scorer's way), or `all`.
        silent: sessions in which the user says nothing, where the user's turns alone come in:
            `dropped`, or `kept` as one empty turn each. The official scorer searches them as empty
            documents, which moves its BM25 by 0.0003.
        types: the types of questions to ask; others are left out.
        questions_per_script: how many; each script is one seed and can be resumed by itself.

    Raises:
        DatasetError: a file cannot be had or read, is not the known one, or has another form.
    """
    if variant not in VARIANTS:
        raise DatasetError(f"longmemeval: no variant '{variant}'; known: {', '.join(VARIANTS)}")
    wanted = source.chosen("longmemeval", "type", types, TYPES)
    if not isinstance(questions_per_script, int) or questions_per_script < 1:
        raise DatasetError(f"longmemeval: questions_per_script={questions_per_script}: at least 1")
    for name, value, kind in (
        ("order", order, Order), ("late", late, Late), ("evidence", evidence, Turns),
    ):  # fmt: skip
        source.option("longmemeval", name, value, kind)
    questions = _questions(path, user_turns, variant, check)
    kept = turns or ("user" if questions.user_only else "all")
    source.option("longmemeval", "turns", kept, Turns)
    if kept == "all" and questions.user_only:
        raise DatasetError(f"{questions.data.path}: holds user turns alone; set script.turns=user")
    if silent == "kept" and kept == "all":
        raise DatasetError("longmemeval: silent=kept is of the user's turns alone: turns=user")
    if evidence == "all" and kept == "user":
        raise DatasetError("longmemeval: evidence=all needs the assistant's turns: turns=all")
    numbers = [n for n, head in enumerate(questions.heads) if head.question_type in wanted]
    if not numbers:
        raise DatasetError(f"{questions.data.path}: has no question of type {', '.join(wanted)}")
    settings = _Settings(kept, order, late, evidence, silent)
    noted = {
        "variant": questions.variant,
        "sha256": questions.identity,
        **settings._asdict(),
        "types": wanted,
        "questions_per_script": questions_per_script,
    }
    size = questions_per_script

    def make(chunk: int) -> Script:
        return _script(
            questions, numbers[chunk * size : (chunk + 1) * size], chunk, settings, noted
        )

    return Scripts(-(-len(numbers) // size), make)


# ---------------------------------------------------------------- files


class _Questions(NamedTuple):
    """The records of a file, decoded one by one when they are needed."""

    data: Data
    raw: list[msgspec.Raw]
    heads: list[_Head]
    sessions: dict[str, list[tuple[int, _Said]]] | None
    """The user turns of each session, with their places in it from 1, where the records have none."""
    variant: str
    identity: list[str]

    @property
    def user_only(self) -> bool:
        return self.sessions is not None

    def record(self, number: int) -> tuple[_Record, list[list[tuple[int, _Said]]]]:
        """A record and its sessions, each as turns with their places from 1."""
        found = source.record(self.data, number, self.raw[number], _Record)
        ids = found.haystack_session_ids
        where = f"{self.data.path}: {found.question_id}"
        if self.sessions is not None:
            try:
                told = [self.sessions[name] for name in ids]
            except KeyError as error:
                raise DatasetError(f"{where}: no user turns of session {error}") from None
        elif found.haystack_sessions is None:
            raise DatasetError(
                f"{where} has no sessions: this is an index, which goes with a file of user turns;"
                " set script.user_turns"
            )
        else:
            told = [list(enumerate(said, 1)) for said in found.haystack_sessions]
        if not len(ids) == len(told) == len(found.haystack_dates):
            raise DatasetError(
                f"{where}: {len(ids)} session ids, {len(told)} sessions and"
                f" {len(found.haystack_dates)} dates do not go together"
            )
        return found, told


def _questions(
    path: str | Path, user_turns: str | Path | None, variant: str, check: bool
) -> _Questions:
    files = source.find(path, _CARD, VARIANTS[variant])
    if user_turns is not None:
        files = [*files[:1], *source.find(user_turns, _CARD, [VARIANTS["s"][1][1:]])]
    names = [name for ways in VARIANTS.values() for way in ways for name in way[:1]]
    data = source.read(files[0], _CARD, names, check=check)
    identity, sessions = [data.identity], None
    if len(files) > 1:
        turns = source.read(files[1], _CARD, VARIANTS["s"][1][1:], check=check)
        identity.append(turns.identity)
        sessions = _sessions(turns)
    raw = source.records(data)
    heads = [source.record(data, number, one, _Head) for number, one in enumerate(raw)]
    found = _CARD.files[data.name].variant if data.name else variant
    return _Questions(data, raw, heads, sessions, found, identity)


def _sessions(data: Data) -> dict[str, list[tuple[int, _Said]]]:
    told = {}
    for number, raw in enumerate(source.records(data)):
        session = source.record(data, number, raw, _Session)
        told[session.session_id] = [
            (said.turn, _Said("user", said.content, said.has_answer)) for said in session.user_turns
        ]
    return told


# ---------------------------------------------------------------- scripts

_DATE: Final = re.compile(r"(\d{4})/(\d\d)/(\d\d) \(\w{3}\) (\d\d):(\d\d)")


def _time(where: str, text: str) -> datetime:
    found = _DATE.fullmatch(text)
    try:
        if found is None:
            raise ValueError(f"date {text!r} is not written like 2023/05/30 (Tue) 23:40")
        return datetime(*map(int, found.groups()))  # type: ignore[arg-type]
    except ValueError as error:
        raise DatasetError(f"{where}: {error}") from None


class _Told(NamedTuple):
    """A session of a haystack."""

    place: int
    at: datetime
    id: str
    said: list[tuple[int, _Said]]

    @property
    def gold(self) -> bool:
        return "answer" in self.id

    @property
    def counts(self) -> bool:
        """Whether the official scorer takes it for gold."""
        return self.gold and any(said.has_answer for _, said in self.said if said.role == "user")


def _script(
    questions: _Questions,
    numbers: list[int],
    chunk: int,
    settings: _Settings,
    noted: dict[str, Any],
) -> Script:
    steps: list[Turn | Probe] = []
    lives: list[dict[str, Any]] = []
    known: dict[str, str] = {}
    reported = dict(_CARD.reported(questions.variant))
    for number in numbers:
        record, told = questions.record(number)
        where = f"{questions.data.path}: {record.question_id}"
        asked = _time(where, record.question_date)
        haystack = [
            _Told(place, _time(where, date), name, said)
            for place, (date, name, said) in enumerate(
                zip(record.haystack_dates, record.haystack_session_ids, told, strict=True)
            )
        ]
        tenant = f"q{number:03}"
        turns, evidence = _turns(tenant, _in_order(haystack, asked, settings), asked, settings)
        flags = _flags(record, haystack, asked)
        if defect := reported.get(record.question_id):
            flags.append(defect.kind)
            known[tenant] = f"{defect.kind} ({defect.reported})"
        steps += [*turns, _probe(tenant, record, asked, evidence, flags)]
        lives.append(
            {
                "probe": tenant,
                "question_id": record.question_id,
                "sessions": record.haystack_session_ids,
                "late": [session.place for session in haystack if session.at > asked],
            }
        )
    header = Header(
        name="longmemeval",
        seed=chunk,
        settings=noted,
        tenants=[str(life["probe"]) for life in lives],
        notes=_notes(lives, known, settings),
    )
    return Script(header, list(steps))


def _in_order(haystack: list[_Told], asked: datetime, settings: _Settings) -> list[_Told]:
    if settings.late == "dropped":
        haystack = [session for session in haystack if session.at <= asked]
    if settings.order == "time":
        haystack = sorted(haystack, key=lambda session: session.at)
    return haystack


def _turns(
    tenant: str, haystack: list[_Told], asked: datetime, settings: _Settings
) -> tuple[list[Turn], tuple[str, ...]]:
    """The turns of a life, and the ids of those that are evidence."""
    turns, evidence = [], []
    for place, session in enumerate(haystack):
        following = haystack[place + 1].at if place + 1 < len(haystack) else None
        bounds = [time for time in (following, asked) if time is not None and time >= session.at]
        kept = [one for one in session.said if settings.turns == "all" or one[1].role == "user"]
        if not kept and settings.silent == "kept":
            kept = [(0, _Said("user", ""))]
        for minute, (position, said) in enumerate(kept):
            at = source.no_later(session.at + timedelta(minutes=minute), *bounds)
            turn = Turn(
                at=at.isoformat(timespec="minutes"),
                tenant=tenant,
                id=f"{tenant}.{session.place}.{position}",
                session=f"{tenant}.{session.place}",
                role=said.role,
                text=said.content,
                ops=_NOISE,
            )
            turns.append(turn)
            if said.has_answer and (said.role == "user" or settings.evidence == "all"):
                evidence.append(turn.id)
    return turns, tuple(evidence)


_NOISE: Final = [Op(op="noise")]


def _flags(record: _Record, haystack: list[_Told], asked: datetime) -> list[str]:
    flags = {
        "abstention": "_abs" in record.question_id,
        "no-user-evidence": not any(session.counts for session in haystack),
        "noans-session": any(session.gold and not session.counts for session in haystack),
        "after-question": any(session.gold and session.at > asked for session in haystack),
        "duplicate-session": len({session.id for session in haystack}) < len(haystack),
    }
    return [flag for flag, holds in flags.items() if holds]


def _probe(
    tenant: str, record: _Record, asked: datetime, evidence: tuple[str, ...], flags: list[str]
) -> Probe:
    kind = "abstention" if "abstention" in flags else record.question_type
    return Probe(
        at=asked.isoformat(timespec="minutes"),
        tenant=tenant,
        id=tenant,
        ask="evidence",
        text=record.question,
        observe="in-script",
        evidence=evidence,
        category=record.question_type,
        flags=tuple(flags),
        gold=str(record.answer),
        judged=f"longmemeval/{kind}",
    )


def _notes(
    lives: list[dict[str, Any]], known: dict[str, str], settings: _Settings
) -> dict[str, Any]:
    who = {"user": "of the user alone", "all": "of user and assistant"}
    notes: dict[str, Any] = {
        "source": _CARD.source,
        "licence": _CARD.licence,
        "unit": f"single turns {who[settings.turns]}",
        "evidence": f"turns with has_answer, {who[settings.evidence]}",
        "order": "sessions by time" if settings.order == "time" else "sessions as in the record",
        "late_sessions": f"{settings.late}, where dated after the question",
        "silent_sessions": f"{settings.silent}, where the user says nothing",
        "questions": lives,
    }
    return notes | {"reported_defects": known} if known else notes
