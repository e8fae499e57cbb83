"""What the gateway costs a call, in CPU time of its own thread; off by default.

Run with `python -m pytest -m benchmark` on an idle machine. The client works on another thread,
and the back end and the embedder do next to nothing, so neither is counted.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import httpx
import numpy as np
import pytest
from numpy.typing import NDArray

from steeltrap.harness import tokens
from steeltrap.harness.gateway import Call, Gateway, Local
from steeltrap.harness.gateway.prefix import _packed
from steeltrap.harness.models import Reply
from steeltrap.harness.script import Turn
from steeltrap.workloads.compose import ScriptSettings, compose

pytestmark = pytest.mark.benchmark

CALLS = 200
ANSWER = Reply(
    '{"memory": [' + '{"id": "0", "text": "The deadline of Atlas is 12 May."}, ' * 3 + "]}"
)
Bodies = list[tuple[str, dict[str, Any]]]


class Constant:
    """An embedder of constant vectors."""

    name = "constant"
    version = "1"
    dimension = 256

    def embed(self, texts: list[str]) -> NDArray[np.float32]:
        return np.zeros((len(texts), self.dimension), np.float32)


class Ready(Local):
    """A back end that has its answer ready."""

    name = "ready"

    async def chat(self, call: Call) -> Reply:  # noqa: ARG002
        return ANSWER

    def begin(self) -> None: ...


@cache
def turns() -> list[str]:
    script = compose(ScriptSettings(name="adversarial", turns=3_000), 0)
    return [step.text for step in script.steps if isinstance(step, Turn)]


def text(least_tokens: int, start: int) -> str:
    """Turns of a script, different ones for each start, until there are enough tokens."""
    taken: list[str] = []
    counted = 0
    while counted < least_tokens:
        taken.append(turns()[(start + len(taken)) % len(turns())])
        counted += tokens.count(taken[-1]) + 1
    return "\n".join(taken)


def chat(path: str = "/v1/chat/completions", **more: Any) -> Bodies:
    """Calls as a memory makes them: a constant system prompt and a message that never recurs."""
    system = text(8_400, 0)
    return [
        (path, {
            "model": "m", "temperature": 0,
            "messages": [
                {"role": "system", "content": system},
                {"role": "user", "content": f"{i}\n{text(1_000, 37 * i)}"},
            ],
        } | more)
        for i in range(CALLS)
    ]  # fmt: skip


def embeddings() -> Bodies:
    return [
        (
            "/v1/embeddings",
            {"model": "e", "input": f"{i} {turns()[i]}", "encoding_format": "base64"},
        )
        for i in range(CALLS)
    ]


@pytest.fixture(scope="module")
def gateway() -> Iterator[Gateway]:
    embedder = Constant()
    with Gateway(Ready(embedder), embedder) as running:
        yield running


def ms_a_call(gateway: Gateway, bodies: Bodies) -> float:
    """CPU time of the gateway's thread for a call, the least of three tries."""
    thread = next(one for one in threading.enumerate() if one.name == "gateway")
    assert thread.ident is not None
    clock = time.pthread_getcpuclockid(thread.ident)
    best = math.inf
    with httpx.Client(base_url=gateway.models.url) as client:
        for _ in range(3):
            _packed.cache_clear()  # else the messages of an earlier try would be known
            tokens.count.cache_clear()
            client.post(bodies[0][0], json=bodies[0][1]).raise_for_status()
            start = time.clock_gettime(clock)
            for path, body in bodies[1:]:
                client.post(path, json=body).raise_for_status()
            best = min(best, time.clock_gettime(clock) - start)
    return 1000 * best / (len(bodies) - 1)


CASES: dict[str, Callable[[], Bodies]] = {
    "chat": chat,
    "streamed chat": lambda: chat(stream=True),
    "responses": lambda: [
        ("/v1/responses", {"model": "m", "input": body["messages"]}) for _, body in chat()
    ],
    "messages": lambda: chat("/v1/messages", max_tokens=99),
    "embeddings": embeddings,
}


@pytest.mark.parametrize("case", CASES)
def test_a_call(gateway: Gateway, case: str) -> None:
    """A call costs the gateway under 2 ms of CPU: a constant system prompt of 8 400 tokens and a
    message of 1 000, or one short text to embed."""
    ms = ms_a_call(gateway, CASES[case]())
    print(f"{case}: {ms:.2f} ms")
    assert ms < 2
