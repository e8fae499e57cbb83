# ruff: noqa: ARG002 - every handler is given the request and its body
"""Zep's API, version 4, as far as a memory needs it; forms and limits are those of zep-cloud 4.0.1
and of the service's reference.

Its memory is small and honest: a sentence `The FIELD of TOPIC is VALUE.` becomes a fact that ends
the one before it; any other message becomes a fact in its own words.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from doubles.service import Double, Handler, Refused, fields, reply, shared
from starlette.requests import Request
from starlette.responses import Response

KEY = "z_test_key"
_STATES = re.compile(r"The (?P<field>[\w -]+?) of (?P<topic>[\w -]+?) is (?P<value>.+)\.")
_ROLES = {"system", "assistant", "user", "function", "tool"}


def new() -> str:
    return str(uuid.uuid4())


def now() -> str:
    return datetime.now(UTC).isoformat().replace("+00:00", "Z")


@dataclass
class Graph:
    """What is known of a user."""

    uuid: str
    user: str
    edges: list[dict[str, Any]] = field(default_factory=list)
    episodes: list[dict[str, Any]] = field(default_factory=list)
    nodes: list[dict[str, Any]] = field(default_factory=list)


@dataclass
class Task:
    """Work in the background."""

    uuid: str
    kind: str
    graph: str
    polls: int
    run: Callable[[], None]
    ends: str = "succeeded"
    error: str = ""
    status: str = "pending"

    def view(self) -> dict[str, Any]:
        shown: dict[str, Any] = {"uuid": self.uuid, "type": self.kind, "status": self.status}
        if self.error and self.status == self.ends:
            shown["error"] = {"code": "processing_failed", "message": self.error}
        return shown


class ZepDouble(Double):
    """The service.

    Args:
        polls: a task ends at the so-manieth look at it; None: never.
        page_cap: no page is longer, whatever is asked for.
        message_chars: a longer message is refused.
        own_uuids: episodes have other uuids than the messages that they come from.
    """

    def __init__(
        self,
        *,
        polls: int | None = 2,
        page_cap: int = 100,
        message_chars: int = 2500,
        own_uuids: bool = False,
    ) -> None:
        super().__init__()
        self.polls = polls
        self.page_cap = page_cap
        self.message_chars = message_chars
        self.own_uuids = own_uuids
        self.users: dict[str, dict[str, Any]] = {}
        self.threads: dict[str, str] = {}
        self.graphs: dict[str, Graph] = {}
        self.tasks: dict[str, Task] = {}
        self.failing: list[tuple[str, str]] = []
        """State in which, and words with which the next messages' tasks shall end."""

    @property
    def url(self) -> str:
        return f"{self.origin}/api/v4"

    def authorised(self, request: Request) -> bool:
        return request.headers.get("authorization") == f"Api-Key {KEY}"

    def refusal(self, refused: Refused) -> Response:
        error = {"code": refused.code, "message": refused.words, "request_id": new()}
        return reply({"error": error}, refused.status)

    def routes(self) -> Iterable[tuple[str, str, Handler]]:
        graph = "/api/v4/graphs/{graph}"
        yield "POST", "/api/v4/users", self.create_user
        yield "POST", "/api/v4/users/lookup", self.lookup_user
        yield "DELETE", "/api/v4/users/{user}", self.delete_user
        yield "POST", "/api/v4/threads", self.create_thread
        yield "POST", "/api/v4/threads/{thread}/messages", self.add_messages
        yield "GET", "/api/v4/tasks/{task}", self.get_task
        yield "POST", f"{graph}/search/edges", self.search_edges
        yield "GET", f"{graph}/episodes/{{it}}", self.get_episode
        for kind in ("edges", "episodes", "nodes"):
            yield "POST", f"{graph}/{kind}/list", self.lister(kind)
            yield "DELETE", f"{graph}/{kind}/{{it}}", self.deleter(kind)

    # ------------------------------------------------------------ users and threads

    def create_user(self, request: Request, body: dict[str, Any]) -> Response:
        fields(
            body, optional=("user_id", "first_name", "last_name", "email", "metadata", "time_zone",
                            "disable_default_ontology", "content_policy"),
        )  # fmt: skip
        name = body.get("user_id")
        if name is not None and not 0 < len(name) <= 500:
            raise Refused(400, "user_id has at most 500 characters")
        if name is not None and any(user["user_id"] == name for user in self.users.values()):
            raise Refused(409, f"user {name} exists", "conflict")
        user = {"uuid": new(), "graph_uuid": new(), "user_id": name, "created_at": now()}
        self.users[user["uuid"]] = user
        self.graphs[user["graph_uuid"]] = Graph(user["graph_uuid"], user["uuid"])
        return reply(user | {"first_name": body.get("first_name")}, 201)

    def lookup_user(self, request: Request, body: dict[str, Any]) -> Response:
        fields(body, optional=("user_id", "thread_id", "graph_id"))
        for user in self.users.values():
            if user["user_id"] == body.get("user_id"):
                return reply(user)
        raise Refused(404, "no such user", "not_found")

    def delete_user(self, request: Request, body: dict[str, Any]) -> Response:
        user = self._user(request.path_params["user"])

        def run() -> None:
            self.users.pop(user["uuid"], None)
            self.graphs.pop(user["graph_uuid"], None)

        return reply({"task": self._task("user.delete", user["graph_uuid"], run)}, 202)

    def create_thread(self, request: Request, body: dict[str, Any]) -> Response:
        fields(body, required=("user_uuid",))
        user = self._user(body["user_uuid"])
        thread = new()
        self.threads[thread] = user["uuid"]
        shown = {"uuid": thread, "user_uuid": user["uuid"], "graph_uuid": user["graph_uuid"]}
        return reply(shown | {"created_at": now()}, 201)

    def add_messages(self, request: Request, body: dict[str, Any]) -> Response:
        fields(
            body, required=("messages",),
            optional=("ignore_roles", "return_context", "strict_ontology"),
        )  # fmt: skip
        user = self._user(self.threads.get(_uuid(request.path_params["thread"]), new()))
        if not 0 < len(body["messages"]) <= 30:
            raise Refused(400, "a call takes 1 to 30 messages")
        for message in body["messages"]:
            self._check(message)
        episodes = [
            message | {"uuid": new(), "thread_uuid": request.path_params["thread"], "created_at": now(), "processed": False}
            for message in body["messages"]
        ]  # fmt: skip
        graph = self.graphs[user["graph_uuid"]]

        def run() -> None:
            for episode in episodes:
                own = new() if self.own_uuids else episode["uuid"]
                self._take_in(graph, episode | {"uuid": own, "processed": True})

        task = self._task("thread.add_messages", graph.uuid, run, may_fail=True)
        return reply({"messages": episodes, "task": task}, 202)

    def _check(self, message: dict[str, Any]) -> None:
        fields(
            message, required=("content", "role"), optional=("name", "metadata", "reference_time")
        )
        if message["role"] not in _ROLES:
            raise Refused(400, f"unknown role '{message['role']}'")
        if not 0 < len(message["content"]) <= self.message_chars:
            raise Refused(400, f"a message has 1 to {self.message_chars} characters")
        at = message.get("reference_time")
        if at is not None and not re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)", at):  # fmt: skip
            raise Refused(400, f"'{at}' is no time in RFC 3339")
        metadata = message.get("metadata") or {}
        if len(metadata) > 10 or any(isinstance(value, dict) for value in metadata.values()):
            raise Refused(400, "metadata has at most 10 keys, with scalars")

    def _take_in(self, graph: Graph, episode: dict[str, Any]) -> None:
        at = episode.get("reference_time") or episode["created_at"]
        graph.episodes.append(episode | {"content": episode["content"], "source": "message"})
        said = _STATES.fullmatch(episode["content"].strip())
        about = (said["topic"], said["field"]) if said else None
        if said and not any(node["name"] == said["topic"] for node in graph.nodes):
            graph.nodes.append(
                {"uuid": new(), "name": said["topic"], "labels": ["Entity"], "created_at": now(),
                 "episode_uuids": [episode["uuid"]], "episode_uuids_truncated": False}
            )  # fmt: skip
        for edge in graph.edges:
            if about and edge["about"] == about and edge["invalid_at"] is None:
                if edge["fact"] == episode["content"]:
                    edge["episode_uuids"].append(episode["uuid"])
                    return
                edge["invalid_at"], edge["expired_at"] = at, now()
        graph.edges.append(
            {"uuid": new(), "fact": episode["content"], "name": "STATES", "valid_at": at,
             "invalid_at": None, "expired_at": None, "created_at": now(), "about": about,
             "episode_uuids": [episode["uuid"]], "graph_uuid": graph.uuid}
        )  # fmt: skip

    # ------------------------------------------------------------ graphs

    def search_edges(self, request: Request, body: dict[str, Any]) -> Response:
        fields(
            body, required=("query",),
            optional=("filters", "reranker", "mmr_lambda", "center_node_uuid",
                      "bfs_origin_node_uuids", "filter_low_quality_results"),
        )  # fmt: skip
        if not isinstance(body["query"], str) or not body["query"].strip():
            raise Refused(400, "the query is empty")
        if body.get("reranker", "rrf") not in ("rrf", "cross_encoder", "mmr", "node_distance", "episode_mentions"):  # fmt: skip
            raise Refused(400, f"unknown reranker {body['reranker']}")
        graph = self._graph(request)
        scored = [
            edge | {"score": score}
            for edge in graph.edges
            if (score := round(shared(body["query"], edge["fact"]), 2)) > 0
        ]
        scored.sort(key=lambda edge: (-edge["score"], edge["uuid"]))
        return self._page(request, scored, 50)

    def get_episode(self, request: Request, body: dict[str, Any]) -> Response:
        return reply(_find(self._graph(request).episodes, request.path_params["it"]))

    def lister(self, kind: str) -> Handler:
        def list_(request: Request, body: dict[str, Any]) -> Response:
            fields(body, optional=("filters",))
            there = getattr(self._graph(request), kind)
            return self._page(request, sorted(there, key=lambda one: one["uuid"]), 100)

        return list_

    def deleter(self, kind: str) -> Handler:
        def delete(request: Request, body: dict[str, Any]) -> Response:
            graph = self._graph(request)
            it = _find(getattr(graph, kind), request.path_params["it"])

            def run() -> None:
                setattr(graph, kind, [one for one in getattr(graph, kind) if one is not it])
                if kind == "episodes":
                    graph.edges = [e for e in graph.edges if it["uuid"] not in e["episode_uuids"]]
                if kind == "nodes":
                    graph.edges = [
                        e for e in graph.edges if not e["about"] or e["about"][0] != it["name"]
                    ]

            return reply({"task": self._task(f"graph.{kind[:-1]}.delete", graph.uuid, run)}, 202)

        return delete

    def _page(self, request: Request, found: list[dict[str, Any]], most: int) -> Response:
        asked = request.query_params
        if unknown := set(asked) - {"page_size", "cursor", "order_by", "order"}:
            raise Refused(400, f"unknown parameter {', '.join(unknown)}")
        size = asked.get("page_size", str(most))
        if not size.isdecimal() or not 1 <= int(size) <= most:
            raise Refused(400, f"page_size goes from 1 to {most}")
        at = asked.get("cursor", "from-0")
        if not re.fullmatch(r"from-\d+", at):
            raise Refused(400, "unknown cursor")
        begin = int(at.removeprefix("from-"))
        end = begin + min(int(size), self.page_cap)
        hidden = {"about"}
        shown: dict[str, Any] = {
            "items": [
                {
                    key: value
                    for key, value in one.items()
                    if key not in hidden and value is not None
                }
                for one in found[begin:end]
            ]
        }
        if end < len(found):
            shown["next_cursor"] = f"from-{end}"
        return reply(shown)

    # ------------------------------------------------------------ tasks

    def get_task(self, request: Request, body: dict[str, Any]) -> Response:
        task = self.tasks.get(_uuid(request.path_params["task"]))
        if task is None:
            raise Refused(404, "no such task", "not_found")
        if task.status in ("pending", "processing") and self.polls is not None:
            task.polls -= 1
            task.status = "processing"
            if task.polls <= 0:
                self._end(task)
        return reply(task.view())

    def _task(
        self, kind: str, graph: str, run: Callable[[], None], *, may_fail: bool = False
    ) -> dict[str, Any]:
        task = Task(new(), kind, graph, self.polls or 0, run)
        if may_fail and self.failing:
            task.ends, task.error = self.failing.pop(0)
        self.tasks[task.uuid] = task
        return task.view()

    def _end(self, last: Task) -> None:
        """A graph's work is done in the order in which it was given."""
        for task in self.tasks.values():
            if task.graph == last.graph and task.status in ("pending", "processing"):
                if task.ends != "failed":
                    task.run()
                task.status = task.ends
            if task is last:
                return

    # ------------------------------------------------------------ finding

    def _user(self, name: str) -> dict[str, Any]:
        user = self.users.get(_uuid(name))
        if user is None:
            raise Refused(404, "no such user", "not_found")
        return user

    def _graph(self, request: Request) -> Graph:
        name = _uuid(request.path_params["graph"])
        for graph in self.graphs.values():
            if name in (graph.uuid, graph.user):
                return graph
        raise Refused(404, "no such graph", "not_found")


def _uuid(name: str) -> str:
    try:
        return str(uuid.UUID(name))
    except ValueError:
        raise Refused(400, f"'{name}' is no uuid", "invalid_identifier") from None


def _find(among: list[dict[str, Any]], name: str) -> dict[str, Any]:
    for one in among:
        if one["uuid"] == _uuid(name):
            return one
    raise Refused(404, "not there", "not_found")
