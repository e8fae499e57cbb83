# ruff: noqa: ARG002 - every handler is given the same
"""MIRIX's service as its maker's client 0.1.7 speaks to it, as far as agent memory needs.

What its agents draw from a message is simple here: `The FIELD of TOPIC is VALUE.` becomes an entry of
the semantic memory, in place of the one about the same; any other message becomes an event.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from doubles.service import Double, Handler, Refused, fields, reply, shared
from starlette.requests import Request
from starlette.responses import Response

KEY = "mirix_test_key"
KINDS = ("episodic", "semantic", "procedural", "resource", "knowledge", "core")
_STATES = re.compile(r"The (?P<field>[\w -]+?) of (?P<topic>[\w -]+?) is (?P<value>.+)\.")
_READ = {"semantic": "summary", "knowledge": "caption", "core": "value"}


def new(kind: str) -> str:
    return f"{kind}-{uuid.uuid4()}"


def now() -> str:
    return datetime.now(UTC).isoformat()


@dataclass
class User:
    """An end-user's memories, by component."""

    id: str
    memories: dict[str, list[dict[str, Any]]] = field(
        default_factory=lambda: {k: [] for k in KINDS}
    )


class MirixDouble(Double):
    """The service.

    Args:
        polls: a message is worked through at the so-manieth look at its trace; None: never.
    """

    def __init__(self, *, polls: int | None = 2) -> None:
        super().__init__()
        self.polls = polls
        self.users: dict[str, User] = {}
        self.agents = 0
        self.traces: dict[str, dict[str, Any]] = {}
        self.failing: list[str] = []
        """Words with which the next messages' traces shall end."""
        self.hidden = 0
        """So many events are counted and not listed."""

    @property
    def url(self) -> str:
        return self.origin

    def authorised(self, request: Request) -> bool:
        return request.headers.get("x-api-key") == KEY

    def refusal(self, refused: Refused) -> Response:
        return reply({"detail": refused.words}, refused.status)

    def routes(self) -> Iterable[tuple[str, str, Handler]]:
        yield "POST", "/agents/meta/initialize", self.initialize
        yield "POST", "/users/create_or_get", self.create_or_get
        yield "POST", "/memory/add", self.add
        yield "GET", "/memory/queue-traces/{trace}", self.trace
        yield "POST", "/memory/retrieve/conversation", self.retrieve
        yield "GET", "/memory/components", self.components
        yield "POST", "/memory/clear", self.clear
        for kind in KINDS[:-1]:
            yield "DELETE", f"/memory/{kind}/{{it}}", self.deleter(kind)

    # ------------------------------------------------------------ agents and users

    def initialize(self, request: Request, body: dict[str, Any]) -> Response:
        fields(
            body, required=("update_agents",), optional=("provider", "api_key", "model", "config")
        )
        self.agents += 1
        model = {"model": "m", "model_endpoint_type": "openai", "context_window": 128000}
        return reply(
            {"id": "agent-1", "name": "meta_memory_agent", "system": "", "memory": {"blocks": []}, "tools": [],
             "agent_type": "meta_memory_agent", "llm_config": model}
        )  # fmt: skip

    def create_or_get(self, request: Request, body: dict[str, Any]) -> Response:
        fields(body, optional=("user_id", "name"))
        name = body.get("user_id") or new("user")
        self.users.setdefault(name, User(name))
        return reply({"id": name, "name": body.get("name") or name, "timezone": "UTC"})

    def clear(self, request: Request, body: dict[str, Any]) -> Response:
        fields(body, required=("user_id",))
        user = self._user(body["user_id"])
        user.memories = {kind: [] for kind in KINDS}
        return reply({"success": True, "message": "cleared"})

    # ------------------------------------------------------------ taking in

    def add(self, request: Request, body: dict[str, Any]) -> Response:
        fields(
            body, required=("user_id", "meta_agent_id", "messages", "chaining", "verbose", "async_add"),
            optional=("filter_tags", "use_cache", "occurred_at"),
        )  # fmt: skip
        if body["meta_agent_id"] != "agent-1":
            raise Refused(404, "no such agent")
        at = body.get("occurred_at") or now()
        said = "\n".join(_said(body["messages"]))
        trace = new("mqt")
        self.traces[trace] = {
            "id": trace, "status": "queued", "queued_at": now(), "user_id": body["user_id"],
            "polls": self.polls, "at": at, "said": said,
            "fails": self.failing.pop(0) if self.failing else "",
        }  # fmt: skip
        self._user(body["user_id"])
        return reply(
            {"success": True, "status": "queued", "message": "Memory queued for processing",
             "agent_id": "agent-1", "message_count": 1, "trace_id": trace}
        )  # fmt: skip

    def trace(self, request: Request, body: dict[str, Any]) -> Response:
        trace = self.traces.get(request.path_params["trace"])
        if trace is None:
            raise Refused(404, "Trace not found")
        if trace["status"] in ("queued", "processing") and trace["polls"] is not None:
            trace["polls"] -= 1
            trace["status"] = "processing"
            if trace["polls"] <= 0:
                self._end(trace)
        shown = {key: trace[key] for key in ("id", "status", "queued_at", "user_id")}
        failed = trace["status"] == "failed"
        return reply(
            {"trace": shown | {"success": not failed, "error_message": trace["fails"] or None},
             "agent_traces": []}
        )  # fmt: skip

    def _end(self, last: dict[str, Any]) -> None:
        """A user's messages are worked through in the order in which they came."""
        for trace in self.traces.values():
            if trace["user_id"] == last["user_id"] and trace["status"] in ("queued", "processing"):
                if not trace["fails"]:
                    self._take_in(self._user(trace["user_id"]), trace["said"], trace["at"])
                trace["status"] = "failed" if trace["fails"] else "completed"
            if trace is last:
                return

    def _take_in(self, user: User, said: str, at: str) -> None:
        states = _STATES.fullmatch(said.strip())
        if states is None:
            user.memories["episodic"].append(
                {"id": new("event"), "occurred_at": at, "event_type": "user_message",
                 "actor": "user", "summary": said, "details": said, "created_at": now()}
            )  # fmt: skip
            return
        name = f"{states['field']} of {states['topic']}"
        for row in user.memories["semantic"]:
            if row["name"] == name:
                row |= {"summary": said, "updated_at": now()}
                return
        user.memories["semantic"].append(
            {"id": new("sem"), "name": name, "summary": said, "details": "", "source": "user",
             "created_at": now(), "updated_at": now()}
        )  # fmt: skip

    # ------------------------------------------------------------ asking

    def retrieve(self, request: Request, body: dict[str, Any]) -> Response:
        fields(
            body, required=("user_id", "messages", "limit"),
            optional=("local_model_for_retrieval", "filter_tags", "use_cache", "start_date", "end_date"),
        )  # fmt: skip
        user, topics = self._user(body["user_id"]), " ".join(_said(body["messages"]))
        found: dict[str, Any] = {}
        for kind, rows in user.memories.items():
            best = sorted(
                (row for row in rows if shared(topics, row[_READ.get(kind, "summary")]) > 0),
                key=lambda row: (-shared(topics, row[_READ.get(kind, "summary")]), row["id"]),
            )[: body["limit"]]
            found[kind] = {"total_count": len(rows), "items": best}
        events = [
            {"timestamp": row["occurred_at"], **{k: row[k] for k in ("id", "summary", "details")}}
            for row in user.memories["episodic"]
        ]
        relevant = {row["id"] for row in found["episodic"]["items"]}
        found["episodic"] = {
            "total_count": len(events), "recent": events[-body["limit"] :],
            "relevant": [event for event in events if event["id"] in relevant],
        }  # fmt: skip
        found["core"]["items"] = user.memories["core"]
        return reply(
            {"success": True, "topics": topics, "temporal_expression": None, "date_range": None,
             "memories": found}
        )  # fmt: skip

    def components(self, request: Request, body: dict[str, Any]) -> Response:
        asked = request.query_params
        if set(asked) != {"user_id", "memory_type", "limit"} or asked["memory_type"] != "all":
            raise Refused(400, f"unknown parameters {dict(asked)}")
        user, limit = self._user(asked["user_id"]), int(asked["limit"])
        listed: dict[str, Any] = {
            kind: {"total_count": len(rows), "items": rows[: limit or None]}
            for kind, rows in user.memories.items()
        }
        listed["episodic"]["total_count"] += self.hidden
        return reply(
            {"success": True, "user_id": user.id, "memory_type": "all", "limit": limit,
             "memories": listed}
        )  # fmt: skip

    def deleter(self, kind: str) -> Handler:
        def delete(request: Request, body: dict[str, Any]) -> Response:
            for user in self.users.values():
                for row in user.memories[kind]:
                    if row["id"] == request.path_params["it"]:
                        user.memories[kind].remove(row)
                        return reply({"success": True, "message": "deleted"})
            raise Refused(404, "not there")

        return delete

    def _user(self, name: str) -> User:
        if name not in self.users:
            raise Refused(404, f"User {name} not found")
        return self.users[name]


def _said(messages: Any) -> list[str]:
    """The texts of messages, in the form that the service wants."""
    if not isinstance(messages, list) or not messages:
        raise Refused(422, "messages: a list is needed")
    said = []
    for message in messages:
        fields(message, required=("role", "content"))
        if message["role"] not in ("user", "assistant"):
            raise Refused(422, f"unknown role '{message['role']}'")
        for part in message["content"]:
            fields(part, required=("type", "text"))
            said.append(part["text"])
    return said
