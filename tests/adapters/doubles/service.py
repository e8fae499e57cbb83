"""A hosted service played on loopback: a real HTTP server, with faults on request."""

from __future__ import annotations

import asyncio
import json
import re
import socket
import threading
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Self

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import Message, Receive, Scope, Send

Handler = Callable[[Request, dict[str, Any]], Response]


class Refused(Exception):
    """A request that the service does not take.

    Args:
        status: of the answer.
        words: what is wrong.
        code: short name of it.
    """

    def __init__(self, status: int, words: str, code: str = "invalid_request") -> None:
        super().__init__(words)
        self.status, self.words, self.code = status, words, code


@dataclass
class Fault:
    """What happens to requests instead of, or after, what they ask for."""

    on: str
    """Regular expression over `METHOD /path`."""
    status: int = 500
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b'{"error": {"message": "out of order"}, "detail": "out of order"}'
    times: int = 1
    done: bool = False
    """The deed is done before the fault."""
    cut: bool = False
    """The connection is closed in the middle of the answer."""
    delay_s: float = 0.0


class Double:
    """The server: `with` starts it, `url` is its address, `seen` what it was asked.

    Subclasses give `routes`, `authorised` and `refusal`.
    """

    def __init__(self) -> None:
        self.seen: list[tuple[str, str, dict[str, Any]]] = []
        """Method, path with query, and body of each request."""
        self.refused: list[str] = []
        """What was answered with 400, 404, 405 or 422, in the service's words."""
        self.faults: list[Fault] = []
        self.lock = threading.Lock()

    # ------------------------------------------------------------ for subclasses

    def routes(self) -> Iterable[tuple[str, str, Handler]]:
        """Method, path and handler of every route."""
        raise NotImplementedError

    def authorised(self, request: Request) -> bool:
        """Whether the request bears the key."""
        raise NotImplementedError

    def refusal(self, refused: Refused) -> Response:
        """An error in the service's form."""
        raise NotImplementedError

    # ------------------------------------------------------------ life

    def __enter__(self) -> Self:
        # asyncio leaves the delay of small packets off only where the protocol is named: 40 ms a call.
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        self._socket.bind(("127.0.0.1", 0))
        self.origin = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        by_path: dict[str, dict[str, Handler]] = {}
        for method, path, handler in self.routes():
            by_path.setdefault(path, {})[method] = handler
        app = Starlette(
            routes=[
                Route(path, self._endpoint(by), methods=list(by)) for path, by in by_path.items()
            ],
            exception_handlers={404: self._lost, 405: self._lost},
        )
        config = uvicorn.Config(_Cuts(app), log_level="critical", lifespan="off")
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(
            target=self._server.run, args=([self._socket],), daemon=True
        )
        self._thread.start()
        while not self._server.started:
            threading.Event().wait(0.005)
        return self

    def __exit__(self, *_: object) -> None:
        self._server.should_exit = self._server.force_exit = True
        self._thread.join(10)
        self._socket.close()

    def fault(self, on: str, **how: Any) -> None:
        """Have the next requests that match go wrong."""
        self.faults.append(Fault(on, **how))

    def count(self, on: str) -> int:
        """How many requests matched."""
        return sum(bool(re.search(on, f"{method} {path}")) for method, path, _ in self.seen)

    # ------------------------------------------------------------ a request

    def _endpoint(self, by: dict[str, Handler]) -> Callable[[Request], Awaitable[Response]]:
        async def endpoint(request: Request) -> Response:
            raw = await request.body()
            path = request.url.path + (f"?{request.url.query}" if request.url.query else "")
            with self.lock:
                fault = self._next_fault(f"{request.method} {path}")
                response = None
                if fault is None or fault.done:
                    response = self._answer(request, path, raw, by)
                else:
                    self.seen.append((request.method, path, {}))
            if fault is None:
                assert response is not None
                return response
            await asyncio.sleep(fault.delay_s)
            headers = fault.headers | ({"x-cut": "yes"} if fault.cut else {})
            return Response(fault.body, fault.status, headers, "application/json")

        return endpoint

    def _answer(self, request: Request, path: str, raw: bytes, by: dict[str, Handler]) -> Response:
        try:
            try:
                body = json.loads(raw) if raw else {}
            except ValueError:
                raise Refused(400, "the body is not JSON") from None
            if not isinstance(body, dict):
                raise Refused(400, "the body is not an object")
            self.seen.append((request.method, path, body))
            if not self.authorised(request):
                raise Refused(401, "the key is missing or wrong", "unauthorized")
            return by[request.method](request, body)
        except Refused as refused:
            if refused.status != 404:
                self.refused.append(f"{request.method} {path}: {refused.words}")
            return self.refusal(refused)

    def _next_fault(self, request: str) -> Fault | None:
        for fault in self.faults:
            if fault.times and re.search(fault.on, request):
                fault.times -= 1
                return fault
        return None

    async def _lost(self, request: Request, error: Exception) -> Response:
        status = getattr(error, "status_code", 404)
        self.refused.append(f"{request.method} {request.url.path}: no such route ({status})")
        return self.refusal(Refused(status, "no such route", "not_found"))


class _Cuts:
    """Breaks the connection off where an answer says so."""

    def __init__(self, app: Starlette) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def cut(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = message["headers"]
                if any(name == b"x-cut" for name, _ in headers):
                    message["headers"] = [
                        (name, b"99999" if name == b"content-length" else value)
                        for name, value in headers
                    ]
            await send(message)

        await self._app(scope, receive, cut)


def fields(
    given: dict[str, Any], required: Iterable[str] = (), optional: Iterable[str] = ()
) -> None:
    """Refuse what lacks a field or has one that is not known."""
    required = set(required)
    if missing := required - {key for key, value in given.items() if value is not None}:
        raise Refused(400, f"missing: {', '.join(sorted(missing))}")
    if unknown := set(given) - required - set(optional):
        raise Refused(400, f"unknown: {', '.join(sorted(unknown))}", "unknown_field")


def reply(given: Any, status: int = 200) -> JSONResponse:
    """An answer in JSON."""
    return JSONResponse(given, status)


def shared(one: str, other: str) -> float:
    """How much two texts have in common: shared words by the words of the first, 0 to 1."""
    asked = set(re.findall(r"\w+", one.casefold()))
    return len(asked & set(re.findall(r"\w+", other.casefold()))) / len(asked) if asked else 0.0
