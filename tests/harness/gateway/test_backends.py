"""Back ends behind real gateways, asked by the providers' own clients."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anthropic
import numpy as np
import openai
import pytest

from steeltrap.harness.gateway import Call, Embedder, Gateway
from steeltrap.harness.gateway.budget import Budgeted
from steeltrap.harness.gateway.faults import Faulty
from steeltrap.harness.gateway.recording import Recorded, Replay
from steeltrap.harness.gateway.upstream import LocalEmbeddings, Upstream
from steeltrap.harness.models import Ask, Reply, ToolCall, Usage

Opener = Callable[..., Gateway]
HELLO: Any = [{"role": "system", "content": "Give JSON."}, {"role": "user", "content": "hello"}]
USAGE = Usage(prompt_tokens=1300, completion_tokens=9, cached_tokens=1024)
SCHEMA: dict[str, Any] = {
    "type": "object", "properties": {"facts": {"type": "array", "items": {"type": "string"}}},
    "required": ["facts"], "additionalProperties": False,
}  # fmt: skip
FORMAT: Any = {"type": "json_schema", "json_schema": {"name": "Facts", "schema": SCHEMA}}
SAVE: Any = {"type": "function", "function": {"name": "save", "parameters": SCHEMA}}


def chats(gateway: Gateway, **more: Any) -> Any:
    with openai.OpenAI(base_url=gateway.models.openai_url, api_key="x", max_retries=0) as client:
        given = {"model": "m", "messages": HELLO} | more
        return client.chat.completions.create(**given)


@pytest.fixture
def asked_of(opened: Opener, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Gateway]:
    """Opens a gateway on an upstream that is a second gateway, on a back end that a test writes."""

    def open_two(provider: Any, answer: Any, **more: Any) -> Gateway:
        monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-0123456789")
        monkeypatch.setenv("OPENAI_API_KEY", "sk-0123456789")
        server = opened(answer).models
        url = server.url if provider == "anthropic" else server.openai_url
        return opened(Upstream(provider, "big", base_url=url, retries=0, **more))

    return open_two


def forced(reply: Reply) -> Callable[[Call], Reply]:
    """Answers by the tool that must be called, as Anthropic's models do, and else as given."""

    def answer(call: Call) -> Reply:
        assert call.ask is not None
        name = call.ask.tool_choice
        if name in ("auto", "none", "required"):
            return reply
        return Reply(calls=(ToolCall(name, json.loads(reply.text)),), usage=reply.usage)

    return answer


@pytest.mark.parametrize("provider", ["openai", "compatible", "anthropic"])
def test_one_client_any_provider(asked_of: Callable[..., Gateway], provider: str) -> None:
    """A system that speaks OpenAI gets its JSON from every provider, and what that cost."""
    gateway = asked_of(provider, forced(Reply('{"facts":["x"]}', usage=USAGE)))
    given = chats(gateway, response_format=FORMAT, max_tokens=5, temperature=0.0)
    assert json.loads(given.choices[0].message.content) == {"facts": ["x"]}
    assert given.choices[0].finish_reason == "stop"
    assert given.usage.prompt_tokens == 1300
    assert given.usage.prompt_tokens_details.cached_tokens == 1024


@pytest.mark.parametrize("provider", ["openai", "compatible", "anthropic"])
def test_functions_of_any_provider(asked_of: Callable[..., Gateway], provider: str) -> None:
    """Functions are called through every provider alike."""
    gateway = asked_of(provider, Reply(calls=(ToolCall("save", {"facts": ["x"]}),), finish="tools"))
    given = chats(gateway, tools=[SAVE], tool_choice="required")
    [made] = given.choices[0].message.tool_calls
    assert (made.function.name, json.loads(made.function.arguments)) == ("save", {"facts": ["x"]})
    assert given.choices[0].finish_reason == "tool_calls"


@pytest.mark.parametrize("provider", ["openai", "compatible", "anthropic"])
def test_anthropics_client_any_provider(asked_of: Callable[..., Gateway], provider: str) -> None:
    """A system that speaks Anthropic, streaming, is answered by every provider."""
    gateway = asked_of(provider, Reply("Lisbon it is.", usage=USAGE))
    with (
        anthropic.Anthropic(base_url=gateway.models.url, api_key="x", max_retries=0) as client,
        client.messages.stream(
            model="m", max_tokens=9, system="Be brief.",
            messages=[{"role": "user", "content": "Where?"}],
        ) as stream,
    ):  # fmt: skip
        given = stream.get_final_message()
    assert [block.text for block in given.content if block.type == "text"] == ["Lisbon it is."]


def test_responses_from_any_provider(asked_of: Callable[..., Gateway]) -> None:
    """A system that uses the responses dialect is driven by a server that only has the older one."""
    gateway = asked_of("compatible", Reply('{"facts":[]}'))
    with openai.OpenAI(base_url=gateway.models.openai_url, api_key="x") as client:
        given = client.responses.create(
            model="m", input="hello", instructions="Give JSON.",
            text={"format": {"type": "json_schema", "name": "Facts", "schema": SCHEMA}},
        )  # fmt: skip
    assert given.output_text == '{"facts":[]}'


def test_what_the_provider_is_asked(opened: Opener, asked_of: Callable[..., Gateway]) -> None:
    """The question survives two gateways, under the model's configured name."""
    asks: list[Ask | None] = []

    def answer(call: Call) -> Reply:
        asks.append(call.ask)
        return Reply("True", logprobs=({"True": -0.1, "False": -2.5},))

    direct, through = opened(answer), asked_of("openai", answer)
    for gateway, name in ((direct, "big"), (through, "m")):
        given = chats(
            gateway, model=name, logprobs=True, top_logprobs=2, max_tokens=1, temperature=0.0
        )
        top = given.choices[0].logprobs.content[0].top_logprobs
        assert {token.token: token.logprob for token in top} == {"True": -0.1, "False": -2.5}
    assert asks[0] == asks[1]


def test_vectors_of_a_provider(
    asked_of: Callable[..., Gateway], embedder: Embedder, tmp_path: Path
) -> None:
    """Vectors come from a provider, through recordings, as they would come from here."""
    gateway = asked_of("compatible", None, embedding_model="e")
    texts = ["The meeting is in Lisbon.", "I like tea."]
    gateway._app._backend = Recorded(gateway.backend, tmp_path)  # type: ignore[union-attr]
    with openai.OpenAI(base_url=gateway.models.openai_url, api_key="x") as client:
        given = client.embeddings.create(model="m", input=texts)
    rows = np.array([row.embedding for row in given.data], np.float32)
    assert rows.tobytes() == embedder.embed(texts).tobytes()


def test_recorded_then_replayed(
    opened: Opener, provider: Any, embedder: Embedder, tmp_path: Path
) -> None:
    """A client sees no difference between a provider, its recording and a replay of that."""
    upstream = Upstream("openai", "big")

    def once(backend: Any) -> list[Any]:
        gateway = opened(LocalEmbeddings(backend, embedder))
        gateway.begin()
        return [chats(gateway).model_dump() for _ in range(2)]

    first = once(Recorded(upstream, tmp_path))
    assert once(Recorded(upstream, tmp_path)) == once(Replay(tmp_path)) == first
    assert len(provider.seen) == 2


def test_faults_as_clients_see_them(opened: Opener, embedder: Embedder) -> None:
    """Every fault is to OpenAI's client what a real one would be, and the meter counts it."""

    class Fixed:
        name = "fixed"

        def begin(self) -> None: ...

        async def chat(self, call: Call) -> Reply:  # noqa: ARG002
            return Reply('{"facts": ["likes tea"]}')

    seen: dict[str, Any] = {}
    for fault in ("429", "500", "timeout", "cut", "malformed", "empty", "wrong-schema"):
        backend = Faulty(LocalEmbeddings(Fixed(), embedder), {fault: 1.0})  # type: ignore[arg-type]
        gateway = opened(backend)
        try:
            seen[fault] = chats(gateway, timeout=0.5).choices[0].message.content
        except openai.APIError as error:
            seen[fault] = type(error).__name__
        assert sum(used.failed for used in gateway.meter.taken().values()) == 1
    assert seen == {
        "429": "RateLimitError",
        "500": "InternalServerError",
        "timeout": "APITimeoutError",
        "cut": "APIConnectionError",
        "malformed": '{"facts": ["',
        "empty": "",
        "wrong-schema": '{"unexpected":[1,2,3]}',
    }


def test_a_spent_budget_as_clients_see_it(
    opened: Opener, provider: Any, embedder: Embedder
) -> None:
    """It is an error that no client tries again, and it says what to do."""
    budgeted = Budgeted(Upstream("openai", "big"), model="big", limit_tokens=1)
    gateway = opened(LocalEmbeddings(budgeted, embedder))
    chats(gateway)
    with (
        openai.OpenAI(base_url=gateway.models.openai_url, api_key="x", max_retries=3) as client,
        pytest.raises(openai.APIStatusError, match="run again with a larger one") as caught,
    ):
        client.chat.completions.create(model="m", messages=HELLO)
    assert caught.value.status_code == 402
    assert sum(used.calls for used in gateway.meter.taken().values()) == 2
