"""What stands behind the gateway: whoever answers the calls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Protocol, runtime_checkable

import msgspec
import numpy as np
from numpy.typing import NDArray

from steeltrap.harness.models import Ask, Reply
from steeltrap.harness.script import Script

__all__ = [
    "Backend",
    "BackendError",
    "Call",
    "Embedder",
    "Embedding",
    "Local",
    "Understands",
    "Vectors",
]

Vectors = Sequence[Sequence[float]] | NDArray[np.floating[Any]]
"""One row a text."""


class Call(msgspec.Struct, frozen=True):
    """One request, as a back end gets it."""

    dialect: Literal["chat", "responses", "messages", "embeddings"]
    body: dict[str, Any]
    """The request's JSON, as the client sent it."""
    key: str
    """What a recording is found by: the sha256 of dialect and body as JSON with sorted keys,
    without what leaves the answer as it is (see `shared.key`)."""
    nth: int
    """How many times this key was asked before in this life."""
    ask: Ask | None = None
    """None for embeddings."""
    texts: tuple[str, ...] = ()
    """What is to be embedded."""


class BackendError(Exception):
    """A call that is answered by an error, or brokenly; the server makes HTTP of it.

    Args:
        message: what the client is told.
        status: what the client gets; 0 for no answer at all, until the client gives up.
        kind: error, timeout, budget and unknown-prompt are answered by `status` and the
            dialect's own error. cut: the connection breaks off half-way through the answer.
            malformed: the answer is no JSON.
        retry_after_s: when the client may ask again.
        reply: for cut, what breaks off half-way. For malformed, an answer given as it is and
            counted as a broken one: empty, of another schema, JSON that ends too early.
    """

    Kind = Literal["error", "timeout", "cut", "malformed", "budget", "unknown-prompt"]

    def __init__(
        self,
        message: str,
        *,
        status: int = 500,
        kind: Kind = "error",
        retry_after_s: float | None = None,
        reply: Reply | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.status = status
        self.kind: BackendError.Kind = kind
        self.retry_after_s = retry_after_s
        self.reply = reply


class Backend(Protocol):
    """Answers calls. Both methods run on the gateway's event loop, many at a time."""

    @property
    def name(self) -> str:
        """As settings call it."""

    async def chat(self, call: Call) -> Reply:
        """Answer a chat call.

        Raises:
            BackendError: it is to be answered by an error.
        """

    async def embed(self, call: Call) -> Vectors:
        """One vector for each text.

        Raises:
            BackendError: it is to be answered by an error.
        """

    def begin(self) -> None:
        """A new life of a memory begins: counts of occurrences start anew."""


@runtime_checkable
class Understands(Protocol):
    """A back end whose answers depend on the script that is run."""

    def understand(self, script: Script) -> None:
        """From now on this script is run; called between two lives of a memory."""


class Embedding(Protocol):
    """What a system is told of the vectors that it gets."""

    @property
    def name(self) -> str:
        """The model."""

    @property
    def dimension(self) -> int:
        """Length of a vector."""


class Embedder(Embedding, Protocol):
    """Turns texts into vectors on this machine."""

    @property
    def version(self) -> str:
        """Changes whenever the vectors may."""

    def embed(self, texts: list[str], /) -> NDArray[np.float32]:
        """One row a text."""


class Local:
    """Embeds on this machine; a back end whose chat model has no embeddings derives from it."""

    def __init__(self, embedder: Embedder) -> None:
        self.embedder = embedder

    async def embed(self, call: Call) -> Vectors:
        """One vector for each text."""
        return self.embedder.embed(list(call.texts))
