"""The adapter."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from steeltrap.adapters.hosted import (
    Guests,
    Hosted,
    Missing,
    Names,
    Unsure,
    instant,
    key_of,
    minute,
    steady,
    verdict,
)
from steeltrap.harness.memory import Item, MemoryFault, Query, Subject, Utterance

if TYPE_CHECKING:
    from zep_cloud import AddMessage, Edge, Task
    from zep_cloud import Zep as Client  # noqa: F401 - what the base is made of

__all__ = ["Reranker", "Zep"]

Reranker = Literal["rrf", "cross_encoder"]
_MESSAGES: Final = 30
"""At most so many in one call."""
_SEARCH_PAGE: Final = 50
_LIST_PAGE: Final = 100


@dataclass
class _User:
    """A tenant at the service."""

    uuid: str
    graph: str
    threads: dict[str, str] = field(default_factory=dict)
    """By session."""
    turns: dict[str, str | None] = field(default_factory=dict)
    """By episode; None where the episode names no turn."""
    names: Names = field(default_factory=Names)
    """Of edges."""
    expired: dict[str, str] = field(default_factory=dict)
    """Simulated time at which an edge without `invalid_at` was first seen to be superseded."""
    erased: bool = False


class Zep(Hosted["Client", _User]):
    """Each tenant is a user with a graph, each session a thread; what is served are the graph's
    facts, with the time from and until which each holds.

    Args:
        reranker: how search results are put in order.
        message_chars: longer turns are sent as several messages of at most this length; 2 500
            fits every plan of the service.
        service: `base_url` and the times of `Hosted`.
    """

    name = "zep"
    concurrent = True

    def __init__(
        self,
        *,
        reranker: Reranker = "rrf",
        message_chars: int = 2500,
        **service: Any,
    ) -> None:
        super().__init__(**service)
        self._reranker = reranker
        self._message_chars = message_chars
        self._now = ""

    # ------------------------------------------------------------ life

    def open(self, folder: Path) -> None:
        """Begin with no user; take away those of a killed run in this folder.

        Raises:
            MemoryFault: there is no key.
        """
        self.close()
        key = key_of("zep", "ZEP_API_KEY")
        from zep_cloud import Zep as Client

        # The client's own repetitions would send a turn again that may have been taken in.
        self._client = Client(
            api_key=key, base_url=self._base_url, timeout=self._timeout_s, max_retries=0
        )
        folder.mkdir(parents=True, exist_ok=True)
        self._guests = Guests(folder / "zep-users.txt", self._remove)
        self._guests.clear()

    def close(self) -> None:
        """Delete the users that were made, as far as that is possible."""
        super().close()
        self._now = ""

    def _meant(self, error: Exception) -> Exception:
        return _meaning(error)

    # ------------------------------------------------------------ the memory

    def ingest(self, turn: Utterance) -> None:
        """Add a turn to its session's thread, with its time, its speaker and its id.

        An empty one is not sent: the service takes none, and there is nothing to keep.
        """
        self._opened()
        if not turn.text.strip():
            return
        try:
            with self._turnstiles.of(turn.tenant):
                user = self._user(turn.tenant)
                thread = self._thread(user, turn.session)
        except Unsure as error:
            raise MemoryFault(f"{error}; the turn was not sent") from error
        self._now = max(self._now, turn.at)
        messages = self._messages(turn)
        added = self._ask(lambda zep: zep.thread.add_messages(thread, messages=messages))
        for message in added.messages or ():
            if message.uuid_:
                user.turns[message.uuid_] = turn.id
        self._await(added.task, f"taking in turn {turn.id}")

    def retrieve(self, query: Query) -> Sequence[Item]:
        """The facts that the service finds for the question, in its order and with its scores."""
        self._opened()
        user = self._users.get(query.tenant)
        if user is None or query.limit < 1 or not query.text.strip():
            return []
        self._now = max(self._now, query.at)
        fetch = partial(self._search, user.graph, query.text, min(query.limit, _SEARCH_PAGE))
        found = self._pages(user, fetch, query.limit)
        facts = steady((edge for edge in found if edge.fact), lambda edge: edge.score, _age)
        return [self._item(user, edge) for edge in facts]

    def active(self, tenant: str) -> Sequence[Item]:
        """All facts of the tenant's graph, also those marked as no longer true: search finds them."""
        self._opened()
        user = self._users.get(tenant)
        return [self._item(user, edge) for edge in self._edges(user)] if user else []

    def history(self, subject: Subject) -> Sequence[Item]:
        """The facts that name the subject's topic, oldest first."""
        self._opened()
        user = self._users.get(subject.tenant)
        if user is None:
            return []
        topic = subject.topic.casefold()
        edges = [edge for edge in self._edges(user) if topic in (edge.fact or "").casefold()]
        return [self._item(user, edge) for edge in edges]

    def erase(self, tenant: str, subject: Subject | None) -> None:
        """Delete the tenant's user, or the episodes, facts and nodes that name the subject."""
        self._opened()
        user = self._users.get(tenant)
        if user is None or user.erased:
            return
        if subject is None:
            deleted = self._ask(lambda zep: zep.user.delete(user.uuid))
            self._await(deleted.task, f"deleting tenant {tenant}")
            user.erased = True
            return
        self._forget(user, subject)

    # ------------------------------------------------------------ parts of it

    def _user(self, tenant: str) -> _User:
        """The tenant's user; one that was erased has a successor."""
        user = self._users.get(tenant)
        if user is None or user.erased:
            assert self._guests is not None
            name = self._guests.name(tenant)
            made = self._ask(lambda zep: zep.user.create(user_id=name, first_name=tenant))
            if not made.uuid_ or not made.graph_uuid:
                raise Unsure("zep: the answer to a new user names no uuid or no graph")
            names = user.names if user else Names()  # no name is given twice
            user = self._users[tenant] = _User(made.uuid_, made.graph_uuid, names=names)
        return user

    def _thread(self, user: _User, session: str) -> str:
        if session not in user.threads:
            made = self._ask(lambda zep: zep.thread.create(user_uuid=user.uuid))
            if not made.uuid_:
                raise Unsure("zep: the answer to a new thread names no uuid")
            user.threads[session] = made.uuid_
        return user.threads[session]

    def _messages(self, turn: Utterance) -> list[AddMessage]:
        """A turn as messages of the length that the service takes.

        Raises:
            MemoryFault: it would be more messages than go into one call.
        """
        from zep_cloud import AddMessage

        parts = _parts(turn.text, self._message_chars)
        if len(parts) > _MESSAGES:
            raise MemoryFault(
                f"zep: turn {turn.id} has {len(turn.text)} characters; one call takes"
                f" {_MESSAGES} messages of {self._message_chars}"
            )
        return [
            AddMessage(
                role=turn.role,
                name=turn.tenant if turn.role == "user" else turn.role,
                content=part,
                reference_time=instant(turn.at).strftime("%Y-%m-%dT%H:%M:%SZ"),
                metadata={"turn": turn.id},
            )
            for part in parts
        ]

    def _search(self, graph: str, text: str, size: int, cursor: str | None) -> Any:
        return self._ask(
            lambda zep: zep.graph.search_edges(
                graph, query=text, reranker=self._reranker, page_size=size, cursor=cursor
            )
        )

    def _edges(self, user: _User) -> list[Edge]:
        """All facts, the one that began to hold first first."""
        fetch = partial(self._list, self._opened().graph.edge, user.graph)
        return sorted((edge for edge in self._pages(user, fetch) if edge.fact), key=_age)

    def _pages(
        self, user: _User, fetch: Callable[[str | None], Any], limit: int | None = None
    ) -> list[Any]:
        """What stands on all pages, or on as many as are needed; an erased graph has none."""
        found: list[Any] = []
        seen: set[str | None] = {None}
        cursor = None
        while limit is None or len(found) < limit:
            try:
                page = fetch(cursor)
            except Missing:
                if user.erased:
                    return []
                raise
            found += page.items or ()
            cursor = page.response.next_cursor or None
            if cursor is None:
                break
            if cursor in seen:
                raise Unsure("zep: a page leads back to one that was read before")
            seen.add(cursor)
        return found[:limit]

    def _forget(self, user: _User, subject: Subject) -> None:
        """Delete the episodes, facts and nodes that name topic and field, or else the topic alone.

        The turn that a fact came from may leave the topic out, so it goes with the fact.
        """
        graph, words = self._opened().graph, [subject.topic.casefold(), subject.field.casefold()]
        facts = [edge for edge in self._edges(user) if _says(edge.fact, words)]
        if not facts:
            words = words[:1]
            facts = [edge for edge in self._edges(user) if _says(edge.fact, words)]
        told = {episode for edge in facts for episode in edge.episode_uuids or ()}
        kinds: list[tuple[str, Any, str]] = [
            ("episode", graph.episode, "content"),
            ("fact", graph.edge, "fact"),
            ("node", graph.node, "name"),
        ]
        for kind, part, text in kinds:
            for found in self._pages(user, partial(self._list, part, user.graph)):
                if found.uuid_ in told or _says(getattr(found, text), words):
                    what = f"deleting a {kind} of '{subject.topic}'"
                    self._delete(part, user.graph, found.uuid_, what)
            self.settle()

    def _list(self, part: Any, graph: str, cursor: str | None) -> Any:
        return self._ask(lambda _: part.list(graph, page_size=_LIST_PAGE, cursor=cursor))

    def _delete(self, part: Any, graph: str, uuid: str, what: str) -> None:
        try:
            deleted = self._ask(lambda _: part.delete(graph, uuid))
        except Missing:
            return  # it went with something else
        self._await(deleted.task, what)

    def _item(self, user: _User, edge: Edge) -> Item:
        uuid = edge.uuid_ or ""
        until = minute(edge.invalid_at)
        if until is None and edge.expired_at is not None:
            until = user.expired.setdefault(uuid, self._now)
        sources = None
        if edge.episode_uuids is not None:
            turns = dict.fromkeys(self._turn(user, episode) for episode in edge.episode_uuids)
            sources = tuple(turn for turn in turns if turn is not None)
        return Item(
            text=edge.fact or "",
            id=user.names.of(uuid, "f"),
            sources=sources,
            valid_from=minute(edge.valid_at),
            valid_to=until,
            score=edge.score,
        )

    def _turn(self, user: _User, episode: str) -> str | None:
        """The turn that an episode is; the service is asked where it gave another uuid to it."""
        if episode not in user.turns:
            try:
                found = self._ask(lambda zep: zep.graph.episode.get(user.graph, episode))
                turn = (found.metadata or {}).get("turn")
            except Missing:
                turn = None
            user.turns[episode] = turn if isinstance(turn, str) else None
        return user.turns[episode]

    # ------------------------------------------------------------ the service

    def _await(self, task: Task | None, what: str) -> None:
        if task is None or not task.uuid_:
            raise Unsure(f"zep: {what}: the answer names no task")
        self._jobs[task.uuid_] = what

    def _look(self, uuid: str) -> str | None:
        task = self._ask(lambda zep: zep.task.get(uuid))
        match task.status:
            case "succeeded":
                return ""
            case "failed" | "partial" as status:
                words = task.error.message if task.error else None
                return f"{'failed' if status == 'failed' else 'was done in part'}: {words or 'no reason is given'}"
            case "pending" | "processing":
                return None
            case other:
                return f"has the state {other!r}, which is not known"

    def _remove(self, name: str) -> None:
        """Delete a user by our name of it."""
        try:
            user = self._ask(lambda zep: zep.user.lookup(user_id=name))
            if not user.uuid_:
                raise Unsure(f"zep: the answer to the look-up of user {name} names no uuid")
            uuid = user.uuid_
            self._ask(lambda zep: zep.user.delete(uuid))
        except Missing:
            return


def _parts(text: str, size: int) -> list[str]:
    """A text in pieces of at most `size` characters, cut at white space where there is any."""
    parts = []
    while len(text) > size:
        cut = max(text.rfind(space, 1, size) for space in " \n\t") + 1 or size
        parts.append(text[:cut])
        text = text[cut:]
    return [*parts, text]


def _age(edge: Edge) -> tuple[datetime, datetime, str]:
    """When a fact began to hold, was written down, and what it says."""
    begin = "0001-01-01"
    return (
        instant(edge.valid_at or edge.created_at or begin),
        instant(edge.created_at or begin),
        edge.fact or "",
    )


def _meaning(error: Exception) -> Exception:
    """What an exception of the client says of the deed that was asked for."""
    import httpx
    from zep_cloud.core.api_error import ApiError
    from zep_cloud.core.parse_error import ParsingError

    if isinstance(error, ApiError):
        wait = (error.headers or {}).get("retry-after", "")
        wait_s = float(wait) if wait.isdecimal() else None
        return verdict("zep", error.status_code or 0, _words(error.body), wait_s)
    if isinstance(error, ParsingError):
        return verdict(
            "zep", error.status_code or 0, f"an answer of another form: {error.body}"[:300]
        )
    if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout | httpx.UnsupportedProtocol):
        return MemoryFault(f"zep: no connection: {error}")
    if isinstance(error, httpx.TransportError):
        return Unsure(f"zep: the connection broke: {type(error).__name__}: {error}")
    return error


def _words(body: Any) -> str:
    """The service's own words from the body of an error."""
    if hasattr(body, "model_dump"):
        body = body.model_dump()
    if isinstance(body, dict):
        inner = body.get("error")
        body = inner if isinstance(inner, dict) else body
        body = ": ".join(str(body[key]) for key in ("code", "message") if body.get(key)) or body
    return str(body)[:300]


def _says(text: str | None, words: Sequence[str]) -> bool:
    """Whether a text holds all of these, in any case."""
    folded = (text or "").casefold()
    return all(word in folded for word in words)
