"""BEAM: conversations of up to ten million tokens with ten kinds of questions, as scripts.

Each conversation becomes one script: its batches are sessions, its messages turns, its questions
come at the end. A turn's id is `m` and the place of its message in the chat, from 0, which is
upstream's own message id wherever that counts up. A batch begins on the day of its time anchor; the
record has no finer times, so the first message is set at nine and each further one a minute later.

Upstream scores an answer point by point over the `rubric`, so that is what counts as gold where it
and the answer differ. For event ordering, the rubric's points are the events, and
`Header.notes["event_order"]` holds them in the order in which they came up: by the **presence**
convention an answer has to name each, by the **order** convention also in this order. What an
evidence turn is for (the original and the updated information, the first and the second statement
or event) stands in `Header.notes["evidence_roles"]`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

import msgspec

from steeltrap.adapters.datasets import source
from steeltrap.adapters.datasets.source import Data, DatasetError, Scripts
from steeltrap.harness.script import Header, Op, Probe, Script, Turn

__all__ = ["ABILITIES", "SCALES", "DatasetError", "scripts"]

_CARD: Final = source.card("beam")
SCALES: Final = ("100K", "500K", "1M", "10M")
_NAMES: Final = {
    scale: [[name] for name, file in _CARD.files.items() if file.variant == scale]
    for scale in SCALES
}
ABILITIES: Final = (
    "abstention", "contradiction_resolution", "event_ordering", "information_extraction",
    "instruction_following", "knowledge_update", "multi_session_reasoning", "preference_following",
    "summarization", "temporal_reasoning",
)  # fmt: skip
_MARK: Final = re.compile(r" ?->->.*\Z")
"""What the generator left at the end of a user's text."""
_FIRST_DAY: Final = datetime(2024, 1, 1, 9)
"""Where nothing is known of the time."""
_MINUTE: Final = timedelta(minutes=1)


class _Message(msgspec.Struct):
    role: Literal["user", "assistant"]
    id: int
    content: str
    time_anchor: str | None = None


class _Batch(msgspec.Struct):
    turns: list[list[_Message]]
    time_anchor: str | None = None


class _Question(msgspec.Struct):
    question: str
    rubric: list[str] = []
    answer: str | int | float | None = None
    ideal_answer: str | None = None
    ideal_response: str | None = None
    ideal_summary: str | None = None
    expected_compliance: str | None = None
    source_chat_ids: Any = None
    ordering_tested: list[str] = []

    @property
    def gold(self) -> str:
        golds = (self.answer, self.ideal_answer, self.ideal_response, self.ideal_summary)
        return next((str(g) for g in (*golds, self.expected_compliance) if g is not None), "")


class _Conversation(msgspec.Struct):
    conversation_id: str
    chat: list[dict[str, Any]]
    probing_questions: dict[str, list[_Question]]
    scale: str = ""


def scripts(
    path: str | Path,
    scale: str = "100K",
    check: bool = True,
    abilities: Sequence[str] | None = None,
) -> Scripts:
    """The conversations of one scale as scripts, questions at the end.

    Args:
        path: a file with the conversations of a scale, gzipped or not; a folder or a mirror that
            holds it; or the folder `chats` of a copy of upstream's repository.
        scale: `100K`, `500K`, `1M`, `10M`: which of a folder's.
        check: refuse files other than the known ones.
        abilities: the questions to ask; others are left out.

    Raises:
        DatasetError: a file cannot be had or read, is not the known one, or has another form.
    """
    if scale not in SCALES:
        raise DatasetError(f"beam: no scale '{scale}'; known: {', '.join(SCALES)}")
    wanted = source.chosen("beam", "ability", abilities, ABILITIES)
    data = _data(path, scale, check)
    raw = source.records(data)
    noted = {"scale": scale, "sha256": data.identity, "abilities": wanted}

    def make(index: int) -> Script:
        return _script(data, index, source.record(data, index, raw[index], _Conversation), noted)

    return Scripts(len(raw), make)


def _data(path: str | Path, scale: str, check: bool) -> Data:
    """The conversations of a scale, each record as `_Conversation` has it."""
    names = [name for way in _NAMES[scale] for name in way]
    if chats := _upstream(Path(path), scale):
        return source.checked(Path(path), _packed(chats, scale), _CARD, names, check=check)
    (file,) = source.find(path, _CARD, _NAMES[scale])
    known = names if Path(path).is_dir() else list(_CARD.files)
    data = source.read(file, _CARD, known, check=check)
    if data.name and _CARD.files[data.name].variant != scale:
        found = _CARD.files[data.name].variant
        raise DatasetError(f"{file}: is of scale {found}; set script.scale={found}")
    return data


def _upstream(path: Path, scale: str) -> list[Path]:
    """The chats of upstream's own layout, `<scale>/<number>/chat.json`, by number."""
    found = [*path.glob(f"{scale}/*/chat.json"), *path.glob(f"chats/{scale}/*/chat.json")]
    folders = [chat.parent for chat in found if chat.parent.name.isdecimal()]
    return sorted(folders, key=lambda folder: int(folder.name))


def _packed(chats: list[Path], scale: str) -> bytes:
    """Upstream's files as one, in compact JSON: the very bytes of a file with the whole scale."""
    made = []
    for folder in chats:
        parts = {
            name: source.decoded(source.unchecked(folder / file, _CARD), Any)
            for name, file in (
                ("topic", "topic.json"),
                ("chat", "chat.json"),
                ("probing_questions", "probing_questions/probing_questions.json"),
            )
        }
        made.append({"conversation_id": folder.name, "scale": scale, **parts})
    return msgspec.json.encode(made)


# ---------------------------------------------------------------- scripts


def _script(data: Data, index: int, conversation: _Conversation, noted: dict[str, Any]) -> Script:
    where = f"{data.path}: conversation {conversation.conversation_id}"
    tenant = f"c{index:02}"
    chat = _chat(where, conversation)
    turns, times = _turns(where, tenant, chat)
    if not turns:
        raise DatasetError(f"{where} has no messages")
    asked = _Asked(where, tenant, datetime.fromisoformat(turns[-1].at) + _MINUTE, _places(chat))
    probes = list(asked.probes(conversation.probing_questions, noted["abilities"]))
    key = f"{noted['scale']}/{conversation.conversation_id}/"
    reported = dict(_CARD.reported())
    known: dict[str, str] = {}
    for probe in probes:
        if defect := reported.get(key + probe.id):
            probe.flags += (defect.kind,)
            known[probe.id] = f"{defect.kind} ({defect.reported})"
    header = Header(
        name="beam",
        seed=index,
        settings={"conversation": conversation.conversation_id, **noted},
        tenants=[tenant],
        notes={
            "source": _CARD.source,
            "licence": _CARD.licence,
            "unit": "single messages, generator marks stripped",
            "times": times,
            "questions": len(probes),
            "without_evidence": [probe.id for probe in probes if not probe.evidence],
            "evidence_roles": asked.roles,
            "event_order": asked.events,
            **({"reported_defects": known} if known else {}),
        },
    )
    return Script(header, [*turns, *probes])


def _chat(where: str, conversation: _Conversation) -> list[_Batch]:
    """The batches; at 10M they come in plans, `{"plan-1": [batch, ...]}`, one after the other."""
    batches: list[Any] = []
    for part in conversation.chat:
        if "turns" in part:
            batches.append(part)
        else:
            batches += [batch for plan in part.values() for batch in plan or ()]
    try:
        return msgspec.convert(batches, list[_Batch])
    except msgspec.ValidationError as error:
        raise DatasetError(f"{where}, chat: {error}") from None


def _turns(where: str, tenant: str, chat: list[_Batch]) -> tuple[list[Turn], str]:
    """The messages in order, and how their times were come by."""
    turns: list[Turn] = []
    begun, last, anchored, carried = None, None, 0, 0
    for session, batch in enumerate(chat, 1):
        said = [message for turn in batch.turns for message in turn]
        anchor = _anchor(where, session, batch, said)
        anchored += anchor is not None
        begun = anchor or (begun + timedelta(days=1) if begun else _FIRST_DAY)
        if last is not None and begun <= last:
            begun, carried = last + _MINUTE, carried + 1
        for minute, message in enumerate(said):
            last = begun + minute * _MINUTE
            user = message.role == "user"
            turns.append(
                Turn(
                    at=last.isoformat(timespec="minutes"),
                    tenant=tenant,
                    id=f"m{len(turns)}",
                    session=f"b{session}",
                    role=message.role,
                    text=_MARK.sub("", message.content) if user else message.content,
                    ops=_NOISE,
                )
            )
    parts = ["days of batches from the record", "nine o'clock and a minute a message invented"]
    if anchored < len(chat):
        parts.append("days that the record lacks invented, a day after the batch before")
    if carried:
        parts.append("batches dated before the end of the one before put after it")
    return turns, "; ".join(parts)


_NOISE: Final = [Op(op="noise")]


def _anchor(where: str, session: int, batch: _Batch, said: list[_Message]) -> datetime | None:
    given = [batch.time_anchor, *(message.time_anchor for message in said)]
    text = next((anchor for anchor in given if anchor), None)
    if text is None:
        return None
    try:
        return datetime.strptime(text, "%B-%d-%Y").replace(hour=9)
    except ValueError:
        raise DatasetError(
            f"{where}, batch {session}: time anchor {text!r} is not written like March-15-2024"
        ) from None


def _places(chat: list[_Batch]) -> dict[int, list[int]]:
    """Message id -> where messages of that id stand in the chat."""
    places: dict[int, list[int]] = {}
    said = (message for batch in chat for turn in batch.turns for message in turn)
    for place, message in enumerate(said):
        places.setdefault(message.id, []).append(place)
    return places


# ---------------------------------------------------------------- questions


class _Asked:
    """Makes probes of questions, and gathers what their evidence is for."""

    def __init__(self, where: str, tenant: str, at: datetime, places: dict[int, list[int]]) -> None:
        self._where = where
        self._tenant = tenant
        self._at = at.isoformat(timespec="minutes")
        self._places = places
        self.roles: list[dict[str, Any]] = []
        self.events: list[dict[str, Any]] = []

    def probes(
        self, questions: dict[str, list[_Question]], abilities: Sequence[str]
    ) -> Iterator[Probe]:
        """The questions in the order of the record; ids count all, also those not asked."""
        if unknown := [ability for ability in questions if ability not in ABILITIES]:
            raise DatasetError(
                f"{self._where}: unknown ability {unknown[0]!r}; known: {', '.join(ABILITIES)}"
            )
        every = [(ability, question) for ability, some in questions.items() for question in some]
        for number, (ability, question) in enumerate(every):
            if ability in abilities:
                yield self._probe(f"q{number:02}", ability, question)

    def _probe(self, name: str, ability: str, question: _Question) -> Probe:
        cited = _cited(question.source_chat_ids)
        found = [self._found(one.ids) for one in cited]
        evidence = tuple(dict.fromkeys(turn for turns in found for turn in turns))
        if any(one.role for one in cited):
            roles: dict[str, list[str]] = {}
            for one, turns in zip(cited, found, strict=True):
                roles.setdefault(one.role, []).extend(turns)
            self.roles.append({"probe": name, **roles})
        if ability == "event_ordering":
            events = [re.sub(r"^\d+\w*: *", "", event) for event in question.ordering_tested]
            aligned = found if len(found) == len(events) else []
            self.events.append({"probe": name, "events": events, "turns": aligned})
        kind = ability.replace("_", "-")
        return Probe(
            at=self._at,
            tenant=self._tenant,
            id=name,
            ask="evidence",
            text=question.question,
            observe="in-script",
            evidence=evidence,
            category=kind,
            flags=tuple(self._flags(ability, question, cited, evidence)),
            gold=question.gold,
            rubric=tuple(question.rubric),
            judged=f"beam/{kind}",
        )

    def _found(self, ids: list[Any]) -> list[str]:
        known = (self._places.get(one, ()) for one in ids if isinstance(one, int))
        return [f"m{place}" for places in known for place in places]

    def _flags(
        self, ability: str, question: _Question, cited: list[_Cited], evidence: tuple[str, ...]
    ) -> Iterator[str]:
        if ability == "abstention":
            yield "abstention"
        elif not evidence:
            yield "no-evidence"
        ids = [one for some in cited for one in some.ids]
        if any(not isinstance(one, int) or len(self._places.get(one, ())) != 1 for one in ids):
            yield "evidence-defect"
        if ability == "knowledge_update":
            roles = {one.role: set(self._found(one.ids)) for one in cited}
            updated, original = roles.get("updated_info", set()), roles.get("original_info", set())
            if not updated:
                yield "no-updated-info"
            elif updated & original:
                yield "update-in-same-message"
        if ability == "event_ordering" and len(question.ordering_tested) != len(question.rubric):
            yield "order-unlike-rubric"


class _Cited(NamedTuple):
    """Message ids that go together: of one role, or of one event."""

    role: str
    ids: list[Any]


def _cited(source_ids: Any) -> list[_Cited]:
    """A list of ids or of lists of them, or one of these for each role."""
    if isinstance(source_ids, dict):
        return [_Cited(role, _flat(ids)) for role, ids in source_ids.items()]
    return [_Cited("", _flat(one)) for one in source_ids or ()]


def _flat(ids: Any) -> list[Any]:
    return [one for some in ids for one in _flat(some)] if isinstance(ids, list) else [ids]
