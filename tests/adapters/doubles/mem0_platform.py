# ruff: noqa: ARG002 - every handler is given the request and its body
"""Mem0's hosted API as far as a memory needs it; forms and limits are those of mem0ai 2.2.1's
`MemoryClient` and of the service's reference.

Its memory is small and honest, and only adds: a sentence `The FIELD of TOPIC is VALUE.` becomes a
memory that links to the one it supersedes; any other message becomes a memory in its own words.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

from doubles.service import Double, Handler, Refused, fields, reply, shared
from starlette.requests import Request
from starlette.responses import Response

KEY = "m_test_key"
ENTITIES = ("user_id", "agent_id", "app_id", "run_id")
_STATES = re.compile(r"The (?P<field>[\w -]+?) of (?P<topic>[\w -]+?) is (?P<value>.+)\.")
_COAST = timezone(timedelta(hours=-8))
"""The service spells its times in a zone of its own."""


@dataclass
class Event:
    """A write that waits."""

    uuid: str
    given: dict[str, Any]
    polls: int
    fails: str = ""
    status: str = "PENDING"


class Mem0Double(Double):
    """The service.

    Args:
        polls: an event ends at the so-manieth look at it; None: never.
        page_cap: no page is longer, whatever is asked for.
    """

    def __init__(self, *, polls: int | None = 2, page_cap: int = 100) -> None:
        super().__init__()
        self.polls = polls
        self.page_cap = page_cap
        self.memories: list[dict[str, Any]] = []
        self.histories: dict[str, list[dict[str, Any]]] = {}
        self.users: set[str] = set()
        self.events: dict[str, Event] = {}
        self.failing: list[str] = []
        """Words with which the next events shall fail."""

    @property
    def url(self) -> str:
        return self.origin

    def authorised(self, request: Request) -> bool:
        return request.headers.get("authorization") == f"Token {KEY}"

    def refusal(self, refused: Refused) -> Response:
        return reply({"detail": refused.words}, refused.status)

    def routes(self) -> Iterable[tuple[str, str, Handler]]:
        yield "GET", "/v1/ping/", self.ping
        yield "POST", "/v3/memories/add/", self.add
        yield "POST", "/v3/memories/search/", self.search
        yield "POST", "/v3/memories/", self.get_all
        yield "GET", "/v1/event/{event}/", self.get_event
        yield "GET", "/v1/memories/{memory}/history/", self.history
        yield "DELETE", "/v1/memories/{memory}/", self.delete
        yield "DELETE", "/v2/entities/{kind}/{name}/", self.delete_entity

    def ping(self, request: Request, body: dict[str, Any]) -> Response:
        return reply(
            {"status": "ok", "org_id": "o", "project_id": "p", "user_email": "user@mail.example"}
        )

    # ------------------------------------------------------------ writing

    def add(self, request: Request, body: dict[str, Any]) -> Response:
        fields(
            body, required=("messages",),
            optional=(*ENTITIES, "metadata", "timestamp", "infer", "custom_categories",
                      "custom_instructions", "agent_custom_instructions", "expiration_date",
                      "structured_data_schema"),
        )  # fmt: skip
        if not any(isinstance(body.get(name), str) for name in ENTITIES):
            raise Refused(400, "one of user_id, agent_id, app_id, run_id is required")
        for message in body["messages"] or [{}]:
            fields(message, required=("role", "content"))
            if message["role"] not in ("user", "assistant", "system") or not message["content"]:
                raise Refused(400, "a message has a role and a content")
        if type(body.get("timestamp", 0)) is not int:
            raise Refused(400, "timestamp is a number of seconds")
        fails = self.failing.pop(0) if self.failing else ""
        event = Event(str(uuid.uuid4()), body, self.polls or 0, fails)
        self.events[event.uuid] = event
        self.users.add(body["user_id"])
        return reply(
            {"message": "Memory processing queued", "status": "PENDING", "event_id": event.uuid}
        )

    def get_event(self, request: Request, body: dict[str, Any]) -> Response:
        event = self.events.get(request.path_params["event"])
        if event is None:
            raise Refused(404, "Event not found")
        if event.status in ("PENDING", "RUNNING") and self.polls is not None:
            event.polls -= 1
            event.status = "RUNNING"
            if event.polls <= 0:
                event.status = "FAILED" if event.fails else "SUCCEEDED"
                if not event.fails:
                    self._take_in(event.given)
        return reply(
            {"id": event.uuid, "event_type": "ADD", "status": event.status,
             "results": [{"error": event.fails}] if event.status == "FAILED" else []}
        )  # fmt: skip

    def _take_in(self, given: dict[str, Any]) -> None:
        at = datetime.fromtimestamp(given["timestamp"], _COAST) if "timestamp" in given else datetime.now(UTC)  # fmt: skip
        for message in given["messages"]:
            said = _STATES.fullmatch(message["content"].strip())
            about = [said["topic"], said["field"]] if said else None
            older = [
                one["id"]
                for one in self.memories
                if about and one["about"] == about and one["user_id"] == given["user_id"]
                and one["superseded"] is False
            ]  # fmt: skip
            for one in self.memories:
                one["superseded"] |= one["id"] in older
            memory = {
                "id": str(uuid.uuid4()), "memory": message["content"], "user_id": given["user_id"],
                "metadata": given.get("metadata"), "categories": [], "created_at": at.isoformat(),
                "updated_at": at.isoformat(), "linked_memory_ids": older, "about": about,
                "superseded": False,
            }  # fmt: skip
            self.memories.append(memory)
            self.histories[memory["id"]] = [self._step(memory, "ADD", None)]

    def _step(self, memory: dict[str, Any], event: str, old: str | None) -> dict[str, Any]:
        stamp = datetime.now(UTC).isoformat()
        return {
            "id": str(uuid.uuid4()), "memory_id": memory["id"], "input": [], "old_memory": old,
            "new_memory": memory["memory"], "event": event, "user_id": memory["user_id"],
            "metadata": memory["metadata"], "created_at": stamp, "updated_at": stamp,
        }  # fmt: skip

    def rewrite(self, old: str, text: str) -> None:
        """The service changes a memory by itself, as its consolidation does."""
        for memory in self.memories:
            if memory["memory"] == old:
                memory["memory"] = text
                self.histories[memory["id"]].append(self._step(memory, "UPDATE", old))

    def delete(self, request: Request, body: dict[str, Any]) -> Response:
        if unknown := set(request.query_params) - {"delete_linked"}:
            raise Refused(400, f"unknown parameter {', '.join(unknown)}")
        going = [self._find(request)["id"]]
        linked = request.query_params.get("delete_linked") == "true"
        for name in going:
            for one in self.memories:
                if one["id"] == name and linked:
                    going += [old for old in one["linked_memory_ids"] if old not in going]
        self.memories = [one for one in self.memories if one["id"] not in going]
        return reply({"message": "Memory deleted successfully!"})

    def delete_entity(self, request: Request, body: dict[str, Any]) -> Response:
        kind, name = request.path_params["kind"], request.path_params["name"]
        if kind not in ("user", "agent", "app", "run"):
            raise Refused(400, "Invalid entity type")
        if kind != "user" or name not in self.users:
            raise Refused(404, "Entity not found")
        self.users.discard(name)
        self.memories = [one for one in self.memories if one["user_id"] != name]
        return Response(status_code=204)

    # ------------------------------------------------------------ reading

    def search(self, request: Request, body: dict[str, Any]) -> Response:
        fields(
            body, required=("query", "filters"),
            optional=("top_k", "rerank", "threshold", "fields", "categories", "show_expired",
                      "reference_date", "latest_only", "keyword_search", "metadata"),
        )  # fmt: skip
        top = body.get("top_k", 10)
        if type(top) is not int or not 1 <= top <= 1000:
            raise Refused(400, "top_k goes from 1 to 1000")
        if (date := body.get("reference_date")) is not None and not isinstance(date, int):
            try:
                datetime.fromisoformat(date)
            except ValueError:
                raise Refused(400, f"reference_date '{date}' is no date") from None
        scored = []
        for one in self._matching(body):
            score = round(shared(body["query"], one["memory"]), 2)
            if score >= (0.1 if body.get("threshold") is None else body["threshold"]):
                scored.append(_shown(one) | {"score": score})
        scored.sort(key=lambda one: (-one["score"], one["id"]))
        return reply({"results": scored[:top]})

    def get_all(self, request: Request, body: dict[str, Any]) -> Response:
        fields(
            body, required=("filters",),
            optional=("start_date", "end_date", "categories", "show_expired", "latest_only"),
        )  # fmt: skip
        if unknown := set(request.query_params) - {"page", "page_size"}:
            raise Refused(400, f"unknown parameter {', '.join(unknown)}")
        page = int(request.query_params.get("page", 1))
        size = min(int(request.query_params.get("page_size", 100)), self.page_cap)
        found = sorted(self._matching(body), key=lambda one: one["id"])
        begin = (page - 1) * size
        if begin and begin >= len(found):
            raise Refused(404, "Invalid page.")
        more = begin + size < len(found)
        return reply(
            {"count": len(found), "previous": None,
             "next": f"{self.origin}/v3/memories/?page={page + 1}&page_size={size}" if more else None,
             "results": [_shown(one) for one in found[begin : begin + size]]}
        )  # fmt: skip

    def history(self, request: Request, body: dict[str, Any]) -> Response:
        return reply(self.histories[self._find(request)["id"]])

    def _matching(self, body: dict[str, Any]) -> list[dict[str, Any]]:
        filters = body["filters"]
        if not isinstance(filters, dict) or not any(name in filters for name in ENTITIES):
            raise Refused(400, "filters have to name one of user_id, agent_id, app_id, run_id")
        if set(filters) != {"user_id"}:
            raise Refused(422, "this double knows the filter user_id alone")
        return [
            one
            for one in self.memories
            if one["user_id"] == filters["user_id"]
            and not (body.get("latest_only") and one["superseded"])
        ]

    def _find(self, request: Request) -> dict[str, Any]:
        for one in self.memories:
            if one["id"] == request.path_params["memory"]:
                return one
        raise Refused(404, "Memory not found!")


def _shown(memory: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in memory.items() if key not in ("about", "superseded")}
