"""Starts and stops the gateway."""

from __future__ import annotations

import socket
import threading
import time
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

from steeltrap.harness import tokens
from steeltrap.harness.gateway.backend import Backend, Embedding, Understands
from steeltrap.harness.gateway.meter import Meter
from steeltrap.harness.models import Models

if TYPE_CHECKING:
    import uvicorn

    from steeltrap.harness.gateway.app import App
    from steeltrap.harness.script import Script

__all__ = ["Gateway"]

_LOOPBACK: Final = "127.0.0.1"
_IDLE_S: Final = 3_600
"""How long an idle connection is kept: memories pause between calls."""


class Gateway:
    """One server for all model calls, on loopback and a free port, from `with` to its end.

    It speaks OpenAI's chat completions, responses and embeddings and Anthropic's messages, and
    runs on a thread of this process.

    Args:
        backend: answers the calls.
        embedding: name and dimension of the vectors that the back end gives.
        chat: name of the chat model.
        timeout_s: after which clients shall give a call up.
        retries: how often clients shall ask again.
    """

    def __init__(
        self,
        backend: Backend,
        embedding: Embedding,
        *,
        chat: str = "ideal",
        timeout_s: float = 120.0,
        retries: int = 2,
    ) -> None:
        self.backend = backend
        self.meter = Meter()
        """Counts the calls."""
        self._models = Models(
            "", chat, embedding.name, embedding.dimension, timeout_s=timeout_s, retries=retries
        )
        self._app: App | None = None
        self._server: uvicorn.Server | None = None
        self._thread: threading.Thread | None = None

    @property
    def models(self) -> Models:
        """What a system is told of its models.

        Raises:
            RuntimeError: the gateway is not running.
        """
        if self._app is None:
            raise RuntimeError("the gateway is not running; use it in a `with` statement")
        return self._models

    def begin(self) -> None:
        """A new life of a memory begins: nothing was asked before."""
        if self._app is None:
            raise RuntimeError("the gateway is not running; use it in a `with` statement")
        self._app.begin()

    def understand(self, script: Script) -> None:
        """Another script is run from now on; nothing to a model that needs no script to answer."""
        if isinstance(self.backend, Understands):
            self.backend.understand(script)

    def __enter__(self) -> Self:
        import msgspec
        import uvicorn

        from steeltrap.harness.gateway.app import App

        tokens.count("the first count reads the encoding, which takes long")
        listening = socket.create_server((_LOOPBACK, 0))
        # else head and body of an answer wait 40 ms for each other: asyncio does so by itself only
        # for sockets that it has made
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        url = f"http://{_LOOPBACK}:{listening.getsockname()[1]}"
        self._models = msgspec.structs.replace(self._models, url=url)
        self.meter.address = url
        self._app = App(self.backend, self.meter, self._models)
        config = uvicorn.Config(
            self._app.asgi(), lifespan="off", ws="none", log_config=None, log_level="critical",
            access_log=False, server_header=False, date_header=False, proxy_headers=False,
            timeout_graceful_shutdown=1, timeout_keep_alive=_IDLE_S,
        )  # fmt: skip
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(
            target=self._server.run, args=([listening],), name="gateway", daemon=True
        )
        self._thread.start()
        while not self._server.started:
            if not self._thread.is_alive():
                listening.close()
                raise RuntimeError("the gateway's server did not start")
            time.sleep(0.002)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._server is not None and self._thread is not None
        self._server.should_exit = True
        self._thread.join()
        self._app = self._server = self._thread = None
