"""HTTP of the gateway: from a request to its answer, or to an error that its dialect knows."""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from collections.abc import Coroutine, Sequence
from functools import partial
from time import perf_counter
from typing import Any, Final, Literal

import msgspec
import numpy as np
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from steeltrap.harness import tokens
from steeltrap.harness.gateway.backend import Backend, BackendError, Call, Vectors
from steeltrap.harness.gateway.dialects import DIALECTS, chat, embeddings, messages
from steeltrap.harness.gateway.dialects.shared import BadRequestError, encode, key
from steeltrap.harness.gateway.meter import Meter, kind_of, used
from steeltrap.harness.gateway.prefix import Prefixes
from steeltrap.harness.models import Ask, Models, Reply, Usage

__all__ = ["App"]

DialectName = Literal["chat", "responses", "messages", "embeddings"]
_PATHS: Final[dict[str, DialectName]] = {
    "/v1/chat/completions": "chat",
    "/v1/responses": "responses",
    "/v1/messages": "messages",
    "/v1/embeddings": "embeddings",
}
_CODES: Final = {"budget": "insufficient_quota", "unknown-prompt": "unknown_prompt"}
_FINAL: Final = ("budget", "unknown-prompt")
"""Kinds of error after which asking again is of no use, and the run has to stop."""
_STAND_IN: Final = Reply("The answer begins so and")
"""What is broken where the back end gave nothing to be broken."""


class App:
    """Answers the requests of one gateway.

    Args:
        backend: answers the calls.
        meter: is told of every request.
        models: what clients were told.
    """

    def __init__(self, backend: Backend, meter: Meter, models: Models) -> None:
        self._backend = backend
        self._meter = meter
        self._models = models
        self._prefixes = Prefixes()
        self._seen: Counter[str] = Counter()

    def begin(self) -> None:
        """A new life of a memory begins."""
        self._meter.begin()
        self._prefixes.begin()
        self._seen.clear()
        self._backend.begin()

    def asgi(self) -> Starlette:
        """The application for the server."""
        routes = [
            Route(path, partial(self._serve, name), methods=["POST"])
            for path, name in _PATHS.items()
        ]
        routes.append(Route("/v1/models", self._list, methods=["GET"]))
        return Starlette(routes=routes, exception_handlers={404: _nowhere, 405: _nowhere})

    async def _list(self, request: Request) -> Response:  # noqa: ARG002
        """The models, in the words of both kinds of client."""
        names = [self._models.chat, self._models.embedding]
        data = [
            {
                "id": name, "object": "model", "created": 0, "owned_by": "steeltrap",
                "type": "model", "display_name": name, "created_at": "1970-01-01T00:00:00Z",
            }
            for name in names
        ]  # fmt: skip
        ends = {"has_more": False, "first_id": names[0], "last_id": names[-1]}
        return _json(200, {"object": "list", "data": data} | ends)

    async def _serve(self, name: DialectName, request: Request) -> Response:
        """Answer a request, telling the meter before the client can know."""
        arrival = self._meter.arrived(name)
        call, content, usage, failure = None, b"", Usage(), None
        try:
            call = self._call(name, await request.body())
            given, failure, ms = await self._asked(call, request)
            told_ms = given.usage.ms if isinstance(given, Reply) else 0.0
            usage = Usage(ms=told_ms or ms)  # a recording tells how long it took when it was made
            if given is not None:
                content, counts = self._written(call, given)
                usage += counts
        except BadRequestError as error:
            failure = BackendError(str(error), status=400)
        except Exception as error:
            failure = _broke(self._backend, error)
        stops = failure.message if failure and failure.kind in _FINAL else ""
        self._meter.answered(
            arrival,
            kind_of(name, call),
            usage,
            _became(failure) if failure else "",
            stops,
            _asked(call),
        )
        streams = bool(call and call.body.get("stream") and name != "embeddings")
        if failure is None:
            return _content(content, streams=streams)
        return self._failed(name, failure, content, streams=streams)

    def _call(self, name: DialectName, raw: bytes) -> Call:
        try:
            body = msgspec.json.decode(raw, type=dict[str, Any])
        except (msgspec.DecodeError, RecursionError) as error:
            raise BadRequestError(f"the body is no JSON object: {error}") from None
        ask: Ask | None = None
        texts: tuple[str, ...] = ()
        if name == "embeddings":
            texts = embeddings.texts(body, self._models.dimension)
        else:
            ask = DIALECTS[name].ask(body)
        found = key(name, body)
        self._seen[found] += 1
        return Call(name, body, found, self._seen[found] - 1, ask, texts)

    async def _asked(
        self, call: Call, request: Request
    ) -> tuple[Reply | Vectors | None, BackendError | None, float]:
        """What the back end gave, what was wrong with it, and the ms that it took."""
        work: Coroutine[Any, Any, Reply | Vectors]
        work = self._backend.chat(call) if call.ask else self._backend.embed(call)
        start = perf_counter()
        given, failure = None, None
        try:
            given = await _while_connected(work, request)
        except BackendError as error:
            given, failure = error.reply, error
            if given is None and error.kind in ("cut", "malformed"):
                zeros = np.zeros((len(call.texts), self._models.dimension))
                given = _STAND_IN if call.ask else zeros
        except Exception as error:
            failure = _broke(self._backend, error)
        return given, failure, 1000 * (perf_counter() - start)

    def _written(self, call: Call, given: Reply | Vectors) -> tuple[bytes, Usage]:
        """The answer in the call's dialect, and what it cost."""
        if call.ask is None:
            counted = sum(tokens.count(text) for text in call.texts)
            body = embeddings.answer(call, given, counted)  # type: ignore[arg-type]
            return encode(body), Usage(embedded_tokens=counted)
        assert isinstance(given, Reply)
        usage = used(self._prefixes.read(call.ask), given)
        finish = "tools" if given.calls and given.finish == "stop" else given.finish
        reply = msgspec.structs.replace(given, usage=usage, finish=finish)
        dialect = DIALECTS[call.dialect]
        if call.body.get("stream"):
            return b"".join(dialect.stream(call, reply)), usage
        return encode(dialect.answer(call, reply)), usage

    def _failed(
        self, name: DialectName, failure: BackendError, content: bytes, *, streams: bool
    ) -> Response:
        if failure.kind in ("cut", "malformed"):
            if failure.reply is not None and failure.kind == "malformed":
                return _content(content, streams=streams)
            half = content[: len(content) // 2]
            if failure.kind == "cut":
                return _Cut(half, len(content))
            return _content(half + b"\n\n" if streams else half, streams=streams)
        if not failure.status:
            return _Silence(self._models.timeout_s)
        speaks = DIALECTS.get(name, chat)
        code = "rate_limit_exceeded" if failure.status == 429 else ""
        body = speaks.error(failure.status, failure.message, _CODES.get(failure.kind, code))
        return _json(failure.status, body, _headers(failure))


class _Cut(Response):
    """The beginning of an answer, after which the connection breaks off."""

    def __init__(self, beginning: bytes, whole_bytes: int) -> None:
        super().__init__(beginning, headers={"content-length": str(whole_bytes)})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002
        head = {"type": "http.response.start", "status": 200, "headers": self.raw_headers}
        await send(head)
        await send({"type": "http.response.body", "body": self.body, "more_body": True})


class _Silence(Response):
    """No answer at all. Whoever waits beyond all measure gets a 500 in the end."""

    def __init__(self, timeout_s: float) -> None:
        super().__init__()
        self._longest_s = 2 * timeout_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002
        async def gone() -> None:
            while (await receive())["type"] != "http.disconnect":
                pass

        await asyncio.wait({asyncio.ensure_future(gone())}, timeout=self._longest_s)


async def _while_connected(
    work: Coroutine[Any, Any, Reply | Vectors], request: Request
) -> Reply | Vectors:
    """What the work gives; it is given up when the client is gone."""
    working = asyncio.ensure_future(work)
    gone = asyncio.ensure_future(request.receive())
    try:
        await asyncio.wait({working, gone}, return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise BackendError("the client is gone", status=0, kind="timeout")
        return working.result()
    finally:
        working.cancel()
        gone.cancel()


async def _nowhere(request: Request, error: Exception) -> Response:
    """The answer where nothing is: which paths there are."""
    assert isinstance(error, HTTPException)
    message = (
        f"{request.method} {request.url.path} is not served; the gateway has"
        f" POST {', POST '.join(_PATHS)} and GET /v1/models"
    )
    speaks = messages if "anthropic-version" in request.headers else chat
    return _json(error.status_code, speaks.error(error.status_code, message, ""))


def _asked(call: Call | None) -> Sequence[str]:
    """The prompt, or the texts to be embedded."""
    if call is None:
        return ()
    return (call.ask.text,) if call.ask else call.texts


def _broke(backend: Backend, error: Exception) -> BackendError:
    return BackendError(f"the back end {backend.name} broke down: {type(error).__name__}: {error}")


def _became(failure: BackendError) -> str:
    """What became of a call, as the end of a sentence."""
    match failure.kind:
        case "cut":
            how = "broke off half-way"
        case "malformed":
            how = "was answered brokenly"
        case _:
            how = f"was answered {failure.status}" if failure.status else "was not answered"
    return f"{how} ({failure.message})"


def _headers(failure: BackendError) -> dict[str, str]:
    """When to ask again, as both kinds of client understand it."""
    if failure.kind in _FINAL:
        return {"x-should-retry": "false"}
    if failure.retry_after_s is None:
        return {}
    return {
        "retry-after-ms": str(round(1000 * failure.retry_after_s)),
        "retry-after": str(math.ceil(failure.retry_after_s)),
    }


def _content(content: bytes, *, streams: bool) -> Response:
    return Response(content, media_type="text/event-stream" if streams else "application/json")


def _json(status: int, body: dict[str, Any], headers: dict[str, str] | None = None) -> Response:
    return Response(encode(body), status, headers, media_type="application/json")
