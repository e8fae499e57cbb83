"""A provider that real back ends of the gateway ask: a server on loopback that speaks as
OpenAI-compatible servers and as Anthropic do."""

from __future__ import annotations

import asyncio
import json
import shutil
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from rich.console import Console
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from steeltrap.harness.commands.run import run
from steeltrap.harness.script import Header, Op, Probe, Script, Turn

KEY = "sk-test-0123456789abcdef"


@dataclass
class Seen:
    """What came over the wire."""

    path: str
    headers: dict[str, str]
    raw: bytes

    @property
    def body(self) -> dict[str, Any]:
        return json.loads(self.raw)


@dataclass
class Planned:
    """What the next request gets."""

    status: int = 200
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)
    after_s: float = 0.0
    cut: bool = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002
        await asyncio.sleep(self.after_s)
        body = self.body if isinstance(self.body, bytes) else json.dumps(self.body).encode()
        length = len(body) + (1000 if self.cut else 0)
        headers = {"content-type": "application/json", "content-length": str(length)} | self.headers
        packed = [(name.encode(), value.encode()) for name, value in headers.items()]
        await send({"type": "http.response.start", "status": self.status, "headers": packed})
        await send({"type": "http.response.body", "body": body, "more_body": self.cut})
        # A cut answer ends without its end: uvicorn closes the connection.


class ProviderServer:
    """Answers as planned, then as a friendly provider; keeps what it was sent."""

    def __init__(self) -> None:
        self.reset()
        routes = [
            Route("/v1/chat/completions", self._chat, methods=["POST"]),
            Route("/v1/messages", self._messages, methods=["POST"]),
            Route("/v1/embeddings", self._embeddings, methods=["POST"]),
        ]
        listening = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        config = uvicorn.Config(
            Starlette(routes=routes),
            lifespan="off",
            ws="none",
            log_config=None,
            log_level="critical",
            date_header=False,
        )
        self.server = uvicorn.Server(config)
        self.thread = threading.Thread(target=self.server.run, args=([listening],), daemon=True)
        self.thread.start()
        while not self.server.started:
            time.sleep(0.005)

    def stop(self) -> None:
        self.server.should_exit = True
        self.thread.join(10)

    def reset(self) -> None:
        self.seen: list[Seen] = []
        self.planned: list[Planned] = []
        self.refuses: set[str] = set()
        self.at_once = self.most_at_once = 0
        self.says: Callable[[dict[str, Any]], str] | None = None
        """What is said to a chat request, instead of Lisbon."""

    def plan(self, status: int = 200, body: Any = None, **more: Any) -> None:
        self.planned.append(Planned(status, body, **more))

    async def _take(self, request: Request) -> Planned | None:
        raw = await request.body()
        self.seen.append(Seen(request.url.path, dict(request.headers), raw))
        if self.planned:
            return self.planned.pop(0)
        for name in self.seen[-1].body:
            if name in self.refuses:
                words = f"Unsupported parameter: '{name}' is not supported with this model."
                return Planned(400, {"error": {"message": words, "param": name}})
        self.at_once += 1
        self.most_at_once = max(self.at_once, self.most_at_once)
        await asyncio.sleep(0.002)
        self.at_once -= 1
        return None

    async def _chat(self, request: Request) -> Planned:
        if planned := await self._take(request):
            return planned
        if self.says is None:
            return Planned(200, CHAT)
        message = {"role": "assistant", "content": self.says(await request.json())}
        return Planned(200, CHAT | {"choices": [{"index": 0, "message": message}]})

    async def _messages(self, request: Request) -> Planned:
        return await self._take(request) or Planned(200, MESSAGES)

    async def _embeddings(self, request: Request) -> Planned:
        if planned := await self._take(request):
            return planned
        texts = self.seen[-1].body["input"]
        rows = [{"index": i, "embedding": [len(text) / 7, 0.1]} for i, text in enumerate(texts)]
        return Planned(200, {"data": rows[::-1], "model": "e"})


CHAT: dict[str, Any] = {
    "id": "x",
    "object": "chat.completion",
    "choices": [
        {
            "index": 0,
            "message": {"role": "assistant", "content": "Lisbon."},
            "finish_reason": "stop",
        }
    ],
    "usage": {
        "prompt_tokens": 1200,
        "completion_tokens": 5,
        "prompt_tokens_details": {"cached_tokens": 1024},
    },
}
MESSAGES: dict[str, Any] = {
    "type": "message",
    "content": [{"type": "text", "text": "Lisbon."}],
    "stop_reason": "end_turn",
    "usage": {
        "input_tokens": 176,
        "output_tokens": 5,
        "cache_read_input_tokens": 1024,
        "cache_creation_input_tokens": 3,
    },
}


@pytest.fixture(scope="session")
def _provider() -> Iterator[ProviderServer]:
    server = ProviderServer()
    yield server
    server.stop()


@pytest.fixture
def provider(_provider: ProviderServer, monkeypatch: pytest.MonkeyPatch) -> ProviderServer:
    """A provider that both families of variables point to, with a key set."""
    _provider.reset()
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_BASE_URL", f"{_provider.url}/v1")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", _provider.url)
    return _provider


# ---------------------------------------------------------------- a run of public data

SAID = (
    "I moved to Lisbon last week.", "My dog is called Rex.", "My bicycle is green.",
    "I paid 40 euros for the lamp.", "Lunch was good today.", "The weather is fine.",
)  # fmt: skip


def _question(at: int, text: str, **more: Any) -> Probe:
    asked = {"judged": "longmemeval/single-session-user", "category": "facts"} | more
    return Probe(
        at="2026-03-10T09:00", id=f"q{at}", ask="evidence", text=text, observe="in-script", **asked
    )


QUESTIONS = (
    _question(0, "Where did I move?", gold="Lisbon", evidence=("t0",)),
    _question(1, "What is my dog called?", gold="Rex", evidence=("t1", "t5")),
    _question(
        2, "What colour is my bicycle?", gold="blue", evidence=("t2",),
        flags=("wrong-gold:HALLUCINATION",),
    ),
    _question(3, "What is my cat called?", category="gaps", judged="longmemeval/abstention"),
    _question(4, "What else?", category="loose"),
)  # fmt: skip


@pytest.fixture(scope="session")
def _public_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    runs = tmp_path_factory.mktemp("public")
    turns = [
        Turn(at=f"2026-03-0{n}T10:00", id=f"t{n - 1}", session="s", text=text, ops=[Op(op="noise")])
        for n, text in enumerate(SAID, 1)
    ]
    script = Script(Header(name="small", seed=0, settings={}, tenants=[""]), [*turns, *QUESTIONS])
    script.write(runs / "small.jsonl")
    asked = ["system=bm25", "script=file", f"script.path={runs / 'small.jsonl'}", "limit=4"]
    run([*asked, f"runs={runs}"], Console(quiet=True), Console(quiet=True))
    return next(runs.rglob("record.json")).parent


@pytest.fixture
def public_run(_public_run: Path, tmp_path: Path) -> Path:
    """The folder of a finished run over six turns and five questions: one of them has a wrong gold,
    one cannot be answered, and one has no gold at all."""
    return Path(shutil.copytree(_public_run, tmp_path / "run"))
