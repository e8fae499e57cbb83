"""HaluMem: one user's dialogues over months, asked after the sessions, from a copy of one's own.

Each user becomes one script: a session's turns, then the questions that the record has at its end.
The record ties a question to **memory points**, sentences that a memory should have drawn from a
session, and names no turns. So evidence is known by session alone: all turns of the sessions whose
points a question needs are evidence, and such questions are flagged `evidence-by-session`; recall is
to be read at the grain of sessions. Questions at the boundary of what is known need no point and
have no evidence (`abstention`). Points that the benchmark planted as distractors are
`interference`; where a point replaced an earlier value, the old one stands in
`Header.notes["replaced"]`, so that it can be seen whether it comes back.

The licence (CC BY-NC-ND 4.0) allows no adapted versions to be passed on: a script of it, which a run
folder holds, is for its user alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

import msgspec

from steeltrap.adapters.datasets import source
from steeltrap.adapters.datasets.source import Data, DatasetError, Scripts
from steeltrap.harness.script import Header, Op, Probe, Script, Turn

__all__ = ["TYPES", "DatasetError", "scripts"]

_CARD: Final = source.card("halumem")
TYPES: Final = (
    "basic-fact-recall", "dynamic-update", "generalization-and-application", "memory-boundary",
    "memory-conflict", "multi-hop-inference",
)  # fmt: skip


class _Said(msgspec.Struct):
    role: Literal["user", "assistant"]
    content: str
    timestamp: str


class _Point(msgspec.Struct):
    memory_content: str
    memory_source: str
    is_update: Literal["True", "False"]
    original_memories: list[str] = []


class _Needed(msgspec.Struct):
    memory_content: str


class _Question(msgspec.Struct):
    question: str
    answer: str
    question_type: str
    evidence: list[_Needed]

    @property
    def kind(self) -> str:
        return self.question_type.lower().replace("&", "and").replace(" ", "-")


class _Session(msgspec.Struct):
    end_time: str
    dialogue: list[_Said]
    memory_points: list[_Point]
    questions: list[_Question] = []


class _User(msgspec.Struct):
    uuid: str
    sessions: list[_Session]


def scripts(path: str | Path, check: bool = True, types: Sequence[str] | None = None) -> Scripts:
    """The users of a HaluMem file as scripts, questions after their sessions.

    Args:
        path: a file of one user a line, gzipped or not; a folder or a mirror that holds it.
        check: refuse files other than the known one.
        types: the types of questions to ask; others are left out.

    Raises:
        DatasetError: the file cannot be had or read, is not the known one, or has another form.
    """
    wanted = source.chosen("halumem", "type", types, TYPES)
    names = list(_CARD.files)
    (file,) = source.find(path, _CARD, [[name] for name in names])
    data = source.read(file, _CARD, names, check=check)
    raw = source.records(data)
    noted = {"sha256": data.identity, "types": wanted}

    def make(index: int) -> Script:
        return _script(data, index, source.record(data, index, raw[index], _User), noted)

    return Scripts(len(raw), make)


# ---------------------------------------------------------------- scripts


class _Known(NamedTuple):
    """A memory point and the session it comes from."""

    session: str
    point: _Point

    @property
    def planted(self) -> bool:
        return self.point.memory_source == "interference"


def _script(data: Data, index: int, user: _User, noted: dict[str, Any]) -> Script:
    made = _Life(f"{data.path}: user {index}", f"u{index:02}", noted["types"])
    for number, session in enumerate(user.sessions, 1):
        made.add(f"s{number}", session)
    if not made.said:
        raise DatasetError(f"{data.path}: user {index} has no turns")
    header = Header(
        name="halumem",
        seed=index,
        settings=noted,
        tenants=[made.tenant],
        notes={
            "source": _CARD.source,
            "licence": _CARD.licence,
            "unit": "single messages",
            "evidence": "all turns of the sessions that a question needs",
            "questions": made.asked,
            "replaced": made.replaced,
            "interference": made.planted,
        },
    )
    return Script(header, list(made.steps))


class _Life:
    """Puts together the steps of one user."""

    def __init__(self, where: str, tenant: str, types: list[str]) -> None:
        self.tenant = tenant
        self.steps: list[Turn | Probe] = []
        self.said: dict[str, tuple[str, ...]] = {}
        """Session -> its turns."""
        self.asked = 0
        self.replaced: list[dict[str, Any]] = []
        self.planted: list[dict[str, Any]] = []
        self._where = where
        self._types = types
        self._clock = datetime.min
        self._points: dict[str, list[_Known]] = {}
        self._number = 0

    def add(self, name: str, session: _Session) -> None:
        """A session's turns, then its questions."""
        turns = [
            Turn(
                at=self._at(name, said.timestamp),
                tenant=self.tenant,
                id=f"{name}.{place}",
                session=name,
                role=said.role,
                text=said.content,
                ops=_NOISE,
            )
            for place, said in enumerate(session.dialogue, 1)
        ]
        self.steps += turns
        if turns:
            self.said[name] = tuple(turn.id for turn in turns)
        for point in session.memory_points:
            self._points.setdefault(point.memory_content, []).append(_Known(name, point))
            if point.memory_source == "interference":
                self.planted.append({"session": name, "point": point.memory_content})
        if session.questions:
            at = self._at(name, session.end_time)
            for question in session.questions:
                self._ask(question, at)

    def _at(self, name: str, text: str) -> str:
        """A time of the record to the minute; never before what has been."""
        try:
            time = datetime.strptime(text, "%b %d, %Y, %H:%M:%S")
        except ValueError:
            raise DatasetError(
                f"{self._where}, session {name}: time {text!r} is not written like"
                " Sep 04, 2025, 10:44:31"
            ) from None
        self._clock = max(self._clock, time.replace(second=0))
        return self._clock.isoformat(timespec="minutes")

    def _ask(self, question: _Question, at: str) -> None:
        name = f"q{self._number}"
        self._number += 1
        if question.kind not in TYPES:
            raise DatasetError(
                f"{self._where}: unknown type {question.question_type!r} of a question;"
                f" known: {', '.join(TYPES)}"
            )
        if question.kind not in self._types:
            return
        found = [self._points.get(needed.memory_content, []) for needed in question.evidence]
        known = [one for some in found for one in some]
        sessions = dict.fromkeys(one.session for one in known)
        evidence = tuple(turn for session in sessions for turn in self.said.get(session, ()))
        flags = {
            "abstention": not question.evidence,
            "evidence-by-session": bool(evidence),
            "evidence-defect": not all(found),
            "interference": any(one.planted for one in known),
        }
        old = [value for one in known for value in one.point.original_memories]
        if old:
            self.replaced.append({"probe": name, "values": old})
        self.asked += 1
        self.steps.append(
            Probe(
                at=at,
                tenant=self.tenant,
                id=name,
                ask="evidence",
                text=question.question,
                observe="in-script",
                evidence=evidence,
                category=question.kind,
                flags=tuple(flag for flag, holds in flags.items() if holds),
                gold=question.answer,
                judged=f"halumem/{question.kind}",
            )
        )


_NOISE: Final = [Op(op="noise")]
