"""An adapter of MIRIX's service through its maker's client (`mirix` 0.1.7).

The client has no call for the state of work in the queue, nor for deleting one memory; the server
has, and they are asked for through the client's own connection.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import chain, zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from steeltrap.adapters.hosted import (
    Guests,
    Hosted,
    Missing,
    Names,
    Unsure,
    ask,
    instant,
    key_of,
    minute,
    verdict,
)
from steeltrap.harness.memory import Item, MemoryFault, Query, Subject, Utterance

if TYPE_CHECKING:
    from mirix import MirixClient as Client

__all__ = ["MirixClient"]

Row = dict[str, Any]
"""A memory as the service gives it."""
_NAME: Final = "mirix-client"
_READ: Final = {
    "core": ("value",),
    "episodic": ("summary", "details"),
    "semantic": ("summary", "details", "name"),
    "procedural": ("summary", "steps"),
    "resource": ("title", "summary", "content"),
    "knowledge": ("caption", "secret_value"),
}
"""The components, and the fields by which an entry is read, the most telling first."""


@dataclass
class _User:
    """A tenant at the service."""

    name: str
    names: Names = field(default_factory=Names)
    """Of memories."""


class MirixClient(Hosted["Client", _User]):
    """Each tenant is a user; what is served is what the service finds for the question as the
    last message of a conversation.

    Args:
        provider: whose model the service's agents ask, where the project has no agents yet; those
            that it has are not changed.
        service: `base_url` and the times of `Hosted`.
    """

    name = _NAME

    def __init__(
        self,
        *,
        provider: str = "openai",
        **service: Any,
    ) -> None:
        super().__init__(**service)
        self._provider = provider

    # ------------------------------------------------------------ life

    def open(self, folder: Path) -> None:
        """Begin with no user; empty those of a killed run in this folder.

        Raises:
            MemoryFault: there is no key, or the service does not take it.
        """
        self.close()
        key = key_of(_NAME, "MIRIX_API_KEY")
        folder.mkdir(parents=True, exist_ok=True)
        # read when mirix is imported: it would log to stdout, and read a .env file of anybody
        os.environ["MIRIX_LOG_TO_CONSOLE"] = "false"
        os.environ["PYTHON_DOTENV_DISABLED"] = "1"
        from mirix import MirixClient as Client
        from requests.adapters import HTTPAdapter

        client = Client(api_key=key, base_url=self._base_url, timeout=self._timeout_s)
        # The client's own repetitions would send a turn again that may have been taken in.
        for scheme in ("http://", "https://"):
            client.session.mount(scheme, HTTPAdapter(max_retries=0))
        ask(
            lambda: client.initialize_meta_agent(provider=self._provider, update_agents=False),
            _meaning,
            self._patience_s,
        )
        self._client = client
        self._guests = Guests(folder / "mirix-users.txt", self._remove)
        self._guests.clear()

    def _release(self, client: Client) -> None:
        client.session.close()

    def _meant(self, error: Exception) -> Exception:
        return _meaning(error)

    # ------------------------------------------------------------ the memory

    def ingest(self, turn: Utterance) -> None:
        """Have a turn worked through by the service's agents, as of its time."""
        self._opened()
        try:
            user = self._user(turn.tenant)
        except Unsure as error:
            raise MemoryFault(f"{error}; the turn was not sent") from error
        added = self._ask(
            lambda mirix: mirix.add(
                [_message(turn.role, turn.text)],
                user_id=user.name,
                occurred_at=f"{instant(turn.at):%Y-%m-%dT%H:%M:%S}",
                filter_tags={"session": turn.session},
            )
        )
        trace = added.get("trace_id") if isinstance(added, dict) else None
        if not isinstance(trace, str) or not added.get("success"):
            raise Unsure(f"{_NAME}: the answer to turn {turn.id} names no trace: {added!r}"[:300])
        self._jobs[trace] = f"taking in turn {turn.id}"

    def retrieve(self, query: Query) -> Sequence[Item]:
        """The core memory, then what the service finds in each component, one of each in turn.

        The service gives an order within each component, and no scores.
        """
        self._opened()
        user = self._users.get(query.tenant)
        if user is None or query.limit < 1 or not query.text.strip():
            return []
        answer = self._ask(
            lambda mirix: mirix.retrieve_with_conversation(
                user_id=user.name, messages=[_message("user", query.text)], limit=query.limit
            )
        )
        found = _components(answer)
        core = [("core", row) for row in _rows(found.get("core", {}), "items")]
        lists = [
            [(kind, row) for row in _rows(part, name)]
            for kind, part in found.items()
            if kind != "core"
            for name in (("relevant", "recent") if kind == "episodic" else ("items",))
        ]
        served: dict[str, tuple[str, Row]] = {}
        for each in [*core, *chain.from_iterable(zip_longest(*lists))]:
            if each is not None:
                served.setdefault(each[1]["id"], each)
        items = [_item(user, kind, row) for kind, row in served.values()]
        return [item for item in items if item.text][: query.limit]

    def active(self, tenant: str) -> Sequence[Item]:
        """Every memory, component by component, oldest first."""
        self._opened()
        user = self._users.get(tenant)
        items = [_item(user, kind, row) for kind, row in self._all(user)] if user else []
        return [item for item in items if item.text]

    def erase(self, tenant: str, subject: Subject | None) -> None:
        """Clear the tenant's memory, or delete each memory that names the subject.

        It names it with topic and field; where none does so, with the topic alone.

        Raises:
            Unsure: the core memory names it, and the service has no call to take it out of there.
        """
        self._opened()
        user = self._users.get(tenant)
        if user is None:
            return
        if subject is None:
            self._remove(user.name)
            return
        topic, part = subject.topic.casefold(), subject.field.casefold()
        named = [(k, row) for k, row in self._all(user) if topic in _whole(row)]
        named = [(k, row) for k, row in named if part in _whole(row)] or named
        for kind, row in named:
            if kind != "core":
                self._delete(kind, row["id"])
        if any(kind == "core" for kind, _ in named):
            raise Unsure(
                f"{_NAME}: the core memory names '{subject.topic}', and no call takes it out"
            )

    # ------------------------------------------------------------ parts of it

    def _user(self, tenant: str) -> _User:
        if tenant not in self._users:
            assert self._guests is not None
            name = self._guests.name(tenant)
            # `add` would make the user too, but keep to itself that it could not
            self._ask(lambda mirix: mirix.create_or_get_user(user_id=name, user_name=name))
            self._users[tenant] = _User(name)
        return self._users[tenant]

    def _all(self, user: _User) -> Iterator[tuple[str, Row]]:
        """Every memory with its component, oldest first within each.

        Raises:
            Unsure: the service holds more than it lists.
        """
        answer = self._ask(lambda mirix: mirix.list_memory_components(user.name, limit=0))
        for kind, part in _components(answer).items():
            rows = _rows(part, "items")
            if part.get("total_count", len(rows)) > len(rows):
                raise Unsure(
                    f"{_NAME}: of {part['total_count']} {kind} memories {len(rows)} are listed"
                )
            yield from ((kind, row) for row in sorted(rows, key=_age))

    def _delete(self, kind: str, name: str) -> None:
        path = f"/memory/{kind}/{quote(name, safe='')}"
        try:
            self._ask(lambda mirix: mirix._request("DELETE", path))
        except Missing:
            return  # it is gone

    def _look(self, trace: str) -> str | None:
        path = f"/memory/queue-traces/{quote(trace, safe='')}"
        found = self._ask(lambda mirix: mirix._request("GET", path))
        shown = found.get("trace") if isinstance(found, dict) else None
        shown = shown if isinstance(shown, dict) else {}
        match shown.get("status"):
            case "completed" if shown.get("success") is not False:
                return ""
            case "completed" | "failed":
                return f"failed: {shown.get('error_message') or 'no reason is given'}"
            case "queued" | "processing":
                return None
            case other:
                return f"has the state {other!r}, which is not known"

    def _remove(self, name: str) -> None:
        """Clear a user's memory; the service has no call that deletes the user."""
        try:
            self._ask(lambda mirix: mirix.clear_memory(name))
        except Missing:
            return


def _message(role: str, text: str) -> dict[str, Any]:
    return {"role": role, "content": [{"type": "text", "text": text}]}


def _components(answer: Any) -> dict[str, dict[str, Any]]:
    """The components of an answer that are known here, in the order of the paper.

    Raises:
        Unsure: it has another form, or says that it did not work.
    """
    found = answer.get("memories") if isinstance(answer, dict) and answer.get("success") else None
    if not isinstance(found, dict) or not all(isinstance(part, dict) for part in found.values()):
        raise Unsure(f"{_NAME}: no memories: {answer!r}"[:300])
    return {kind: found[kind] for kind in _READ if kind in found}


def _rows(part: dict[str, Any], name: str) -> list[Row]:
    """The memories of one component.

    Raises:
        Unsure: it has another form.
    """
    rows = part.get(name, [])
    if not isinstance(rows, list) or not all(
        isinstance(row, dict) and isinstance(row.get("id"), str) for row in rows
    ):
        raise Unsure(f"{_NAME}: no list of memories: {rows!r}"[:300])
    return rows


def _text(row: Row, *names: str) -> list[str]:
    """What the fields of a memory say that those before them do not."""
    said: list[str] = []
    for name in names:
        value = row.get(name) or ""
        text = "\n".join(map(str, value)) if isinstance(value, list) else str(value)
        if text.strip() and not any(text.casefold() in part.casefold() for part in said):
            said.append(text)
    return said


def _whole(row: Row) -> str:
    """All that a memory says, in small letters."""
    return "\n".join(_text(row, *(name for name in row if name != "id"))).casefold()


def _age(row: Row) -> tuple[datetime, str]:
    at = row.get("occurred_at") or row.get("created_at") or "0001-01-01"
    return instant(at), "\n".join(_text(row, *row))


def _item(user: _User, kind: str, row: Row) -> Item:
    """A memory as an item; what component it is of stands at the head of its id."""
    return Item(
        text="\n".join(_text(row, *_READ[kind])),
        id=user.names.of(row["id"], f"{kind}-"),
        valid_from=minute(row.get("occurred_at") or row.get("timestamp")),
    )


def _meaning(error: Exception) -> Exception:
    """What an exception of the client says of the deed that was asked for."""
    import requests

    if isinstance(error, requests.HTTPError):
        # the client raises one of its own, which has the words, from the one that has the answer
        said = getattr(error.__cause__ or error, "response", None)
        status = said.status_code if said is not None else 0
        after = said.headers.get("Retry-After", "") if said is not None else ""
        return verdict(_NAME, status, str(error)[:300], float(after) if after.isdecimal() else None)
    if isinstance(error, requests.ConnectTimeout):
        return MemoryFault(f"{_NAME}: no connection: {error}")
    if isinstance(error, requests.ConnectionError):
        if "NewConnectionError" in str(error):
            return MemoryFault(f"{_NAME}: no connection: {error}")
        return Unsure(f"{_NAME}: the connection broke: {error}")
    if isinstance(error, requests.RequestException):
        return Unsure(f"{_NAME}: the connection broke: {type(error).__name__}: {error}"[:300])
    if isinstance(error, ValueError):
        return Unsure(f"{_NAME}: an answer of another form: {error}"[:300])
    return error
