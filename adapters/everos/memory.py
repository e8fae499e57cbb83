"""The adapter."""

from __future__ import annotations

import hashlib
import re
import shutil
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from steeltrap.adapters.everos.files import Entry, Origins, cut, entries, sentences
from steeltrap.adapters.everos.service import Service
from steeltrap.adapters.logged import HalfDone
from steeltrap.harness.memory import Item, MemoryFault, Query, Subject, Utterance
from steeltrap.harness.models import Models

__all__ = ["EverOS"]

_NAME_MAX: Final = 128
"""Characters of an id that the package takes."""
_TOP_MAX: Final = 100
"""Results that a search can be asked for, and entries of a page."""
_ASSISTANT: Final = "assistant"


class EverOS:
    """everos: episodes and single facts of conversations in Markdown, searched by an index.

    A tenant is a user. See README.md beside this file.

    Args:
        foresight: whether predictions with an end are extracted too. Nothing in the package reads
            them, and it leaves them out by default.
        reflection: whether maintenance merges the episodes of a cluster. The package leaves that
            out by default, and advises once a week.
    """

    def __init__(self, *, foresight: bool = False, reflection: bool = True) -> None:
        self._foresight = foresight
        self._reflection = reflection
        self._models: Models | None = None
        self._service: Service | None = None
        self._root = Path()
        self._begin()

    def _begin(self) -> None:
        self._at = ""
        self._open_sessions: dict[str, None] = {}
        self._last_ms: dict[str, int] = {}
        self._turns: dict[str, str] = {}
        self._merged_at: dict[str, str] = {}

    def connect(self, models: Models) -> None:
        """Take the address of the models."""
        self._models = models

    def open(self, folder: Path) -> None:
        """Start the package's server over an empty root, `folder`/everos.

        Raises:
            MemoryFault: it was not connected, or the server does not start.
        """
        self.close()
        if self._models is None:
            raise MemoryFault("everos: no models; call connect(models) before open(folder)")
        self._root = (folder / "everos").absolute()
        shutil.rmtree(self._root, ignore_errors=True)
        self._root.mkdir(parents=True)
        self._begin()
        strategies = {"extract_foresight": self._foresight, "extract_user_profile": False}
        self._service = Service(self._root, self._models, strategies)

    def close(self) -> None:
        """End the server; its files stay."""
        if self._service is not None:
            self._service.close()
        self._service = None

    # ------------------------------------------------------------ operators

    def ingest(self, turn: Utterance) -> None:
        """Add one message to its session; the package decides whether an episode ends before it."""
        service, user = self._running(), _user(turn.tenant)
        session = _bounded(f"{user}/{turn.session}")
        # Messages of one session are told apart by their time alone.
        ms = max(_ms(turn.at), self._last_ms.get(session, -1) + 1)
        role = turn.role if turn.role in ("user", _ASSISTANT) else "user"
        message = {
            "sender_id": user if role == "user" else _ASSISTANT,
            "role": role,
            "timestamp": ms,
            "content": turn.text,
        }
        self._at = turn.at
        done = service.post("/memory/add", turn.at, session_id=session, messages=[message])
        self._last_ms[session] = ms
        self._turns[f"m_{session}_{ms}_000"] = turn.id
        self._open_sessions[session] = None
        if done["status"] == "extracted":
            service.wait(turn.at, "idle")  # what two episodes write side by side has no order

    def settle(self) -> None:
        """End the episodes that are open, then wait for strategies and index.

        Raises:
            HalfDone: a strategy was given up.
        """
        service = self._running()
        while self._open_sessions:
            session = next(iter(self._open_sessions))
            service.post("/memory/flush", self._at, session_id=session)
            del self._open_sessions[session]
            service.wait(self._at, "idle")
        service.wait(self._at, "indexed")

    def maintain(self, at: str) -> None:
        """Have the package reflect, as its weekly schedule would: clusters become one episode each."""
        if not self._reflection:
            return
        self._at = at
        service = self._running()
        done = service.post("/ome/trigger", at, name="reflect_episodes", force=True)
        failed = [run["error"] for run in done["runs"] if run["error"]]
        if done["status"] != "ok" or failed:
            raise HalfDone(f"everos: reflection ended '{done['status']}': {'; '.join(failed)}")
        service.wait(at, "indexed")
        self._note_merged()

    def retrieve(self, query: Query) -> Sequence[Item]:
        """The package's hybrid search; where facts stand in for their episode, those facts."""
        service, user = self._running(), _user(query.tenant)
        if query.limit < 1 or not query.text.strip():
            return []
        found = service.post(
            "/memory/search", query.at, user_id=user, query=query.text,
            top_k=min(query.limit, _TOP_MAX), method="hybrid",
        )  # fmt: skip
        sources = _Sources(self._root, user, self._turns)
        items = [item for episode in found["episodes"] for item in _served(episode, sources)]
        items.sort(key=lambda item: (-(item.score or 0.0), item.id or ""))
        return items[: query.limit]

    def active(self, tenant: str) -> Sequence[Item]:
        """The episodes in the Markdown that no other stands in for, each with its single facts."""
        self._running()
        user = _user(tenant)
        sources = _Sources(self._root, user, self._turns)
        facts: dict[str, list[Entry]] = {}
        for fact in entries(_home(self._root, user), ".atomic_facts"):
            facts.setdefault(fact.parent, []).append(fact)
        return [
            _item(f"{user}_{one.id}", one.text, one.at, sources.of(episode.id))
            for episode in sources.episodes.values()
            if episode.id not in sources.replaced_by
            for one in (episode, *facts.get(episode.id, ()))
        ]

    def recover(self, subject: Subject) -> Sequence[Item]:
        """The facts in the Markdown that name topic and field, also those put aside, by age."""
        self._running()
        user = _user(subject.tenant)
        sources = _Sources(self._root, user, self._turns)
        topic, field = subject.topic.casefold(), subject.field.casefold()
        found = []
        for fact in entries(_home(self._root, user), ".atomic_facts"):
            if topic in fact.text.casefold() and field in fact.text.casefold():
                over = self._merged_at.get(sources.replaced_by.get(fact.parent, ""))
                item = _item(f"{user}_{fact.id}", fact.text, fact.at, sources.of(fact.parent), over)
                found.append(item)
        return sorted(found, key=lambda item: item.valid_from or "")

    def erase(self, tenant: str, subject: Subject | None) -> None:
        """Take sentences out of the Markdown, as a user would by hand; the index follows.

        Of a subject: those that name topic and field; where none does so, the topic alone.
        """
        service, user = self._running(), _home(self._root, _user(tenant))
        if subject is None:
            cut(user, lambda _: True)
        else:
            topic, field = subject.topic.casefold(), subject.field.casefold()
            kinds = ("episodes", ".atomic_facts", ".foresights")
            told = [
                each
                for kind in kinds
                for one in entries(user, kind)
                for each in sentences(one.text)
            ]
            close = any(topic in one.casefold() and field in one.casefold() for one in told)
            words = (topic, field) if close else (topic,)
            cut(user, lambda one: all(word in one.casefold() for word in words))
        service.wait(self._at, "indexed")

    def size_bytes(self) -> int:
        """Bytes of all files of the root."""
        self._running()
        return sum(_size(path) for path in self._root.rglob("*"))

    # ------------------------------------------------------------ helpers

    def _running(self) -> Service:
        if self._service is None:
            raise MemoryFault(
                "everos: not open; call open(folder) first, and nothing after close()"
            )
        return self._service

    def _note_merged(self) -> None:
        """When each reflection was: the package has that by the clock alone."""
        for path in _homes(self._root):
            for one in set(Origins(self._root, path.name).replaced_by.values()):
                self._merged_at.setdefault(one, self._at)


class _Sources:
    """From which turns the entries of a user come."""

    def __init__(self, root: Path, user: str, turns: dict[str, str]) -> None:
        self._origins = Origins(root, user)
        self._turns = turns
        self.episodes = {one.id: one for one in entries(_home(root, user), "episodes")}
        self.replaced_by = self._origins.replaced_by

    def of(self, episode: str) -> tuple[str, ...] | None:
        """By the id of the episode; None where it is not known."""
        if episode not in self.episodes:
            return None
        messages = self._origins.messages(self.episodes[episode], self.episodes)
        return tuple(self._turns[one] for one in messages if one in self._turns)


def _served(episode: dict[str, Any], sources: _Sources) -> Iterator[Item]:
    """A search ranks episodes and facts in one list, and then puts each fact under its episode."""
    name = episode["id"].removeprefix(f"{episode['user_id']}_")
    for one in episode["atomic_facts"] or [episode]:
        text = one.get("content") or one["episode"]
        yield _item(
            one["id"], text, episode["timestamp"], sources.of(name), score=round(one["score"], 4)
        )


def _item(
    name: str, text: str, at: str, sources: tuple[str, ...] | None, over: str | None = None,
    *, score: float | None = None,
) -> Item:  # fmt: skip
    return Item(text, id=name, sources=sources, valid_from=at[:16], valid_to=over, score=score)


def _user(tenant: str) -> str:
    """A tenant's name in the characters that the package takes; others become +XX.

    Raises:
        MemoryFault: it has none.
    """
    if not tenant:
        raise MemoryFault("everos: a tenant without a name; the package needs a user id")
    safe = re.sub(
        r"[^a-zA-Z0-9_@-]", lambda one: "".join(f"+{byte:02X}" for byte in one[0].encode()), tenant
    )
    return _bounded(safe)


def _bounded(name: str) -> str:
    if len(name) <= _NAME_MAX:
        return name
    return f"{name[:64]}+{hashlib.sha256(name.encode()).hexdigest()[:32]}"


def _homes(root: Path) -> list[Path]:
    return sorted((root / "default_app" / "default_project" / "users").glob("*"))


def _home(root: Path, user: str) -> Path:
    return root / "default_app" / "default_project" / "users" / user


def _ms(at: str) -> int:
    return int(datetime.fromisoformat(at).replace(tzinfo=UTC).timestamp() * 1000)


def _size(path: Path) -> int:
    """The index tidies up behind our back, so that a file may be gone."""
    try:
        return path.stat().st_size if path.is_file() else 0
    except FileNotFoundError:
        return 0
