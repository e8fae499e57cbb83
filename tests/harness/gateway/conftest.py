"""A gateway whose back end a test writes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from steeltrap.adapters.embedders import WordLlamaEmbedder
from steeltrap.harness.gateway import Call, Embedder, Gateway, Local
from steeltrap.harness.models import Reply

Answer = Callable[[Call], Reply]
Opener = Callable[..., Gateway]


class Answering(Local):
    """A back end that answers as a function does."""

    name = "answering"

    def __init__(self, embedder: Embedder, answer: Answer) -> None:
        super().__init__(embedder)
        self._answer = answer
        self.lives = 0
        self.calls: list[Call] = []

    def begin(self) -> None:
        self.lives += 1

    async def chat(self, call: Call) -> Reply:
        self.calls.append(call)
        return self._answer(call)


@pytest.fixture(scope="session")
def embedder() -> Embedder:
    return WordLlamaEmbedder()


@pytest.fixture
def opened(embedder: Embedder) -> Iterator[Opener]:
    """Opens gateways for one test: behind them a reply, a function that makes it, a back end."""
    with ExitStack() as stack:

        def open_one(answer: Any = None, **settings: Any) -> Gateway:
            fixed = answer or Reply("yes")
            if isinstance(fixed, Reply):
                backend: Any = Answering(embedder, lambda _: fixed)
            else:
                backend = answer if hasattr(answer, "chat") else Answering(embedder, answer)
            return stack.enter_context(Gateway(backend, embedder, **settings))

        yield open_one
