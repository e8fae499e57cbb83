"""The server."""

from __future__ import annotations

import socket
import threading
import time
from collections import Counter
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self

import msgspec

from steeltrap.harness import tokens
from steeltrap.harness.gateway.backend import Backend, BackendError, Call, Embedder
from steeltrap.harness.gateway.dialects import chat, embeddings
from steeltrap.harness.gateway.dialects.shared import BadRequestError, encode, key
from steeltrap.harness.models import Models

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

__all__ = ["Gateway"]

_LOOPBACK: Final = "127.0.0.1"


class Gateway:
    """Speaks the dialects of model providers on loopback, from `with` to its end.

    Args:
        backend: answers the calls.
        embedder: of the vectors that are given; known by its name and dimension here.
        chat: name of the chat model.
        timeout_s: after which clients shall give a call up.
        retries: how often clients shall ask again.
    """

    def __init__(
        self,
        backend: Backend,
        embedder: Embedder,
        *,
        chat: str = "ideal",
        timeout_s: float = 120.0,
        retries: int = 2,
    ) -> None:
        self.backend = backend
        self._embedder = embedder
        self._chat = chat
        self._timeout_s = timeout_s
        self._retries = retries
        self._seen: Counter[str] = Counter()
        self._server: Any = None
        self._thread: threading.Thread | None = None
        self._port = 0

    @property
    def models(self) -> Models:
        """What a system is told of its models."""
        return Models(
            url=f"http://{_LOOPBACK}:{self._port}",
            chat=self._chat,
            embedding=self._embedder.name,
            dimension=self._embedder.dimension,
            timeout_s=self._timeout_s,
            retries=self._retries,
        )

    def begin(self) -> None:
        """A new life of a memory begins."""
        self._seen.clear()
        self.backend.begin()

    def __enter__(self) -> Self:
        import uvicorn

        listening = socket.create_server((_LOOPBACK, 0))
        self._port = listening.getsockname()[1]
        config = uvicorn.Config(
            self._app(), lifespan="off", ws="none", log_config=None, log_level="critical",
            access_log=False, server_header=False, date_header=False,
            timeout_graceful_shutdown=1, timeout_keep_alive=600,
        )  # fmt: skip
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(
            target=self._server.run, args=([listening],), name="gateway", daemon=True
        )
        self._thread.start()
        while not self._server.started:
            if not self._thread.is_alive():
                raise RuntimeError("the gateway did not start")
            time.sleep(0.002)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._thread is not None
        self._server.should_exit = True
        self._thread.join()

    def _app(self) -> Starlette:
        from starlette.applications import Starlette
        from starlette.routing import Route

        return Starlette(
            routes=[
                Route("/v1/chat/completions", self._chat_completions, methods=["POST"]),
                Route("/v1/embeddings", self._embeddings, methods=["POST"]),
            ]
        )

    def _nth(self, name: str) -> int:
        self._seen[name] += 1
        return self._seen[name] - 1

    async def _chat_completions(self, request: Request) -> Response:
        from starlette.responses import Response

        try:
            body = await _json(request)
            asked = chat.ask(body)
        except BadRequestError as error:
            return _json_response(400, chat.error(400, str(error), "invalid_request"))
        name = key("chat", body)
        call = Call("chat", body, name, self._nth(name), asked)
        try:
            reply = await self.backend.chat(call)
        except BackendError as error:
            return _json_response(error.status, chat.error(error.status, error.message, error.kind))
        if body.get("stream"):
            return Response(b"".join(chat.stream(call, reply)), media_type="text/event-stream")
        return _json_response(200, chat.answer(call, reply))

    async def _embeddings(self, request: Request) -> Response:
        try:
            body = await _json(request)
            texts = embeddings.texts(body, self._embedder.dimension)
        except BadRequestError as error:
            return _json_response(400, chat.error(400, str(error), "invalid_request"))
        name = key("embeddings", body)
        call = Call("embeddings", body, name, self._nth(name), texts=texts)
        try:
            vectors = await self.backend.embed(call)
        except BackendError as error:
            return _json_response(error.status, chat.error(error.status, error.message, error.kind))
        counted = sum(tokens.count(text) for text in texts)
        return _json_response(200, embeddings.answer(call, vectors, counted))


async def _json(request: Request) -> dict[str, Any]:
    try:
        return msgspec.json.decode(await request.body(), type=dict[str, Any])
    except msgspec.DecodeError as error:
        raise BadRequestError(f"the body is not a JSON object: {error}") from None


def _json_response(status: int, body: dict[str, Any]) -> Response:
    from starlette.responses import Response

    return Response(encode(body), status, media_type="application/json")
