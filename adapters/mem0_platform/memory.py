"""The adapter."""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

import msgspec

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
    steady,
    verdict,
)
from steeltrap.harness.memory import Item, MemoryFault, Query, Subject, Utterance

if TYPE_CHECKING:
    from mem0 import MemoryClient

__all__ = ["Mem0Platform"]

Row = dict[str, Any]
"""A memory as the service gives it."""
_PAGE: Final = 100


@dataclass
class _User:
    """A tenant at the service."""

    name: str
    names: Names = field(default_factory=Names)
    """Of memories."""


class Mem0Platform(Hosted["MemoryClient", _User]):
    """Each tenant is a user; what is served are the memories that the service drew from its turns.

    A memory that a later one links to as superseded is marked from the later one's time on,
    wherever both are in one answer.

    Args:
        rerank: have the service put search results in order once more.
        threshold: leave out results of a lower score; None: as the service does it (0.1).
        latest_only: have superseded memories left out of search and listing; None: as the
            service does it.
        service: `base_url` and the times of `Hosted`.
    """

    name = "mem0-platform"
    concurrent = True

    def __init__(
        self,
        *,
        rerank: bool | None = None,
        threshold: float | None = None,
        latest_only: bool | None = None,
        **service: Any,
    ) -> None:
        super().__init__(**service)
        self._latest = {"latest_only": latest_only}
        self._searching = {"rerank": rerank, "threshold": threshold, **self._latest}

    # ------------------------------------------------------------ life

    def open(self, folder: Path) -> None:
        """Begin with no user; take away those of a killed run in this folder.

        Raises:
            MemoryFault: there is no key, or the service does not take it.
        """
        self.close()
        key = key_of("mem0-platform", "MEM0_API_KEY")
        folder.mkdir(parents=True, exist_ok=True)
        os.environ["MEM0_TELEMETRY"] = "False"  # both are read when mem0 is imported
        os.environ["MEM0_DIR"] = str(folder / "mem0")
        import httpx
        from mem0 import MemoryClient

        # It writes every refused request into the log, those that are asked again included.
        logging.getLogger("mem0.client.utils").setLevel(logging.CRITICAL)
        http = httpx.Client(timeout=self._timeout_s)
        try:
            self._client = ask(
                lambda: MemoryClient(api_key=key, host=self._base_url, client=http),
                _meaning,
                self._patience_s,
            )
        except BaseException:
            http.close()
            raise
        self._guests = Guests(folder / "mem0-users.txt", self._remove)
        self._guests.clear()

    def _release(self, client: MemoryClient) -> None:
        client.client.close()

    def _meant(self, error: Exception) -> Exception:
        return _meaning(error)

    # ------------------------------------------------------------ the memory

    def ingest(self, turn: Utterance) -> None:
        """Have a turn worked through, as of its time.

        An empty one is not sent: the service takes none, and there is nothing to keep.
        """
        self._opened()
        if not turn.text.strip():
            return
        user = self._user(turn.tenant)
        added = self._ask(
            lambda mem0: mem0.add(
                [{"role": turn.role, "content": turn.text}],
                user_id=user.name,
                timestamp=int(instant(turn.at).timestamp()),
                metadata={"turn": turn.id, "session": turn.session},
            )
        )
        event = added.get("event_id") if isinstance(added, dict) else None
        if not isinstance(event, str):
            raise Unsure(
                f"mem0-platform: the answer to turn {turn.id} names no event: {added!r}"[:300]
            )
        self._jobs[event] = f"taking in turn {turn.id}"

    def retrieve(self, query: Query) -> Sequence[Item]:
        """The memories that the service finds, in its order and with its scores."""
        self._opened()
        user = self._users.get(query.tenant)
        if user is None or query.limit < 1 or not query.text.strip():
            return []
        found = self._ask(
            lambda mem0: mem0.search(
                query.text,
                filters={"user_id": user.name},
                top_k=query.limit,
                reference_date=f"{instant(query.at):%Y-%m-%dT%H:%M:%SZ}",
                **self._searching,
            )
        )
        return _items(user, steady(_rows(found), lambda row: row.get("score"), _age))

    def active(self, tenant: str) -> Sequence[Item]:
        """All memories that search goes through, oldest first."""
        self._opened()
        user = self._users.get(tenant)
        return _items(user, self._all(user.name, **self._latest)) if user else []

    def history(self, subject: Subject) -> Sequence[Item]:
        """All versions of the memories that name the subject's topic, oldest first."""
        self._opened()
        user = self._users.get(subject.tenant)
        if user is None:
            return []
        rows = self._naming(user, subject.topic)
        versions = [
            version
            for row, item in zip(rows, _items(user, rows), strict=True)
            for version in self._versions(row["id"], item)
        ]
        return sorted(versions, key=lambda version: version.valid_from or "")

    def erase(self, tenant: str, subject: Subject | None) -> None:
        """Delete the tenant's user with its memories, or each memory that names the subject.

        It names it with topic and field; where none does so, with the topic alone. With a memory
        go the older ones that it superseded.
        """
        self._opened()
        user = self._users.get(tenant)
        if user is None:
            return
        if subject is None:
            self._remove(user.name)
            return
        named = self._naming(user, subject.topic)
        field = subject.field.casefold()
        for row in [row for row in named if field in row["memory"].casefold()] or named:
            try:
                self._ask(partial(_delete, memory=row["id"]))
            except Missing:
                continue  # it went with a later one

    # ------------------------------------------------------------ parts of it

    def _user(self, tenant: str) -> _User:
        with self._turnstiles.of(tenant):
            if tenant not in self._users:
                assert self._guests is not None
                self._users[tenant] = _User(self._guests.name(tenant))
            return self._users[tenant]

    def _naming(self, user: _User, topic: str) -> list[Row]:
        """The memories that name a topic, superseded ones too, oldest first."""
        words = topic.casefold()
        rows = self._all(user.name, latest_only=False)
        return [row for row in rows if words in row["memory"].casefold()]

    def _all(self, user: str, **options: Any) -> list[Row]:
        """What stands on all pages, oldest first."""
        rows: list[Row] = []
        page = 1
        while True:
            answer = self._ask(partial(_page, user=user, page=page, **options))
            found = _rows(answer)
            rows += found
            if not found or not answer.get("next"):
                break
            page += 1
        return sorted(rows, key=_age)

    def _versions(self, memory: str, item: Item) -> list[Item]:
        """A memory as it was told, changed and deleted, each version up to the next."""
        found = self._ask(lambda mem0: mem0.history(memory))
        steps = sorted(found, key=lambda step: instant(step["created_at"]))
        versions: list[Item] = []
        for step in steps:
            at = minute(step["created_at"]) if versions else item.valid_from
            if versions and versions[-1].valid_to is None:
                versions[-1] = msgspec.structs.replace(versions[-1], valid_to=at)
            if step["event"] in ("ADD", "UPDATE"):
                versions.append(
                    msgspec.structs.replace(
                        item, text=step["new_memory"], valid_from=at, valid_to=None
                    )
                )
        if versions and versions[-1].valid_to is None:
            versions[-1] = msgspec.structs.replace(versions[-1], valid_to=item.valid_to)
        return versions or [item]

    # ------------------------------------------------------------ the service

    def _look(self, event: str) -> str | None:
        from mem0.client.utils import api_error_handler

        @api_error_handler  # type: ignore[untyped-decorator, unused-ignore]
        def get(mem0: MemoryClient) -> Any:
            response = mem0.client.get(f"/v1/event/{quote(event, safe='')}/")
            response.raise_for_status()
            return response.json()

        found = self._ask(get)
        match found.get("status"):
            case "SUCCEEDED":
                return ""
            case "FAILED":
                return (
                    f"failed: {found.get('error') or found.get('results') or 'no reason is given'}"
                )
            case "PENDING" | "RUNNING":
                return None
            case other:
                return f"has the state {other!r}, which is not known"

    def _remove(self, name: str) -> None:
        """Delete a user with all its memories."""
        try:
            self._ask(lambda mem0: mem0.delete_users(user_id=name))
        except Missing:
            return


def _page(mem0: MemoryClient, *, user: str, page: int, **options: Any) -> Any:
    return mem0.get_all(filters={"user_id": user}, page=page, page_size=_PAGE, **options)


def _delete(mem0: MemoryClient, *, memory: str) -> Any:
    return mem0.delete(memory, delete_linked=True)


def _rows(answer: Any) -> list[Row]:
    """The memories of an answer.

    Raises:
        Unsure: it has another form.
    """
    rows = answer.get("results") if isinstance(answer, dict) else None
    if not isinstance(rows, list) or not all(
        isinstance(row, dict)
        and isinstance(row.get("id"), str)
        and isinstance(row.get("memory"), str)
        for row in rows
    ):
        raise Unsure(f"mem0-platform: no list of memories: {answer!r}"[:300])
    return rows


def _age(row: Row) -> tuple[datetime, str]:
    return instant(row.get("created_at") or "0001-01-01"), row["memory"]


def _items(user: _User, rows: list[Row]) -> list[Item]:
    """Memories as items; one that a later one supersedes is marked with the later one's time."""
    ends = {
        old: minute(row.get("created_at"))
        for row in sorted(rows, key=_age, reverse=True)
        for old in row.get("linked_memory_ids") or ()
    }
    items = []
    for row in rows:
        turn = (row.get("metadata") or {}).get("turn")
        items.append(
            Item(
                text=row["memory"],
                id=user.names.of(row["id"], "m"),
                sources=(turn,) if isinstance(turn, str) else None,
                valid_from=minute(row.get("created_at")),
                valid_to=ends.get(row["id"]),
                score=row.get("score"),
            )
        )
    return items


def _meaning(error: Exception) -> Exception:
    """What an exception of the client says of the deed that was asked for."""
    import httpx
    from mem0.exceptions import MemoryError as ClientError

    cause = error.__context__
    if isinstance(error, ClientError):
        status = error.debug_info.get("status_code")
        if status is not None:
            wait = error.debug_info.get("retry_after")
            return verdict("mem0-platform", status, str(error)[:300], wait)
        if error.error_code == "NET_CONNECT":
            return MemoryFault(f"mem0-platform: no connection: {error}")
        return Unsure(f"mem0-platform: the connection broke: {error}")
    if isinstance(error, ValueError) and isinstance(cause, httpx.HTTPStatusError):
        # The constructor of the client tries the key and hides the status.
        after = cause.response.headers.get("Retry-After", "")
        wait = float(after) if after.isdecimal() else None
        return verdict("mem0-platform", cause.response.status_code, str(error)[:300], wait)
    if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout | httpx.UnsupportedProtocol):
        return MemoryFault(f"mem0-platform: no connection: {error}")
    if isinstance(error, httpx.TransportError):
        return Unsure(f"mem0-platform: the connection broke: {type(error).__name__}: {error}")
    if isinstance(error, ValueError):
        return Unsure(f"mem0-platform: an answer of another form: {error}"[:300])
    return error
