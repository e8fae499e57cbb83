from __future__ import annotations

import asyncio
import gc
import re
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import msgspec
import numpy as np
import pytest

from steeltrap.harness.gateway.backend import BackendError, Call
from steeltrap.harness.gateway.upstream import LocalEmbeddings, Upstream, UpstreamError
from steeltrap.harness.models import Ask, Message, Reply, Tool, ToolCall

KEY = "sk-test-0123456789abcdef"
Answer = TypeVar("Answer")
SCHEMA = {"type": "object", "properties": {"facts": {"type": "array"}}, "required": ["facts"]}


def ask(system: str = "Answer briefly.", **more: Any) -> Ask:
    messages = (Message("system", system), Message("user", "Where is the meeting?"))
    return Ask("m", more.pop("messages", messages), **more)


def call(of: Ask | None = None, dialect: Any = "responses", **body: Any) -> Call:
    return Call(dialect, body, "0" * 64, 0, of or ask())


def upstream(provider: Any = "openai", model: str = "big", **more: Any) -> Upstream:
    return Upstream(provider, model, **({"wait_s": 0.001} | more))


def run(what: Callable[[], Awaitable[Answer]]) -> Answer:
    async def go() -> Answer:
        return await what()

    return asyncio.run(asyncio.wait_for(go(), 20))


def chat(made: Upstream, of: Call | None = None) -> Reply:
    return run(lambda: made.chat(of or call()))


def fails(made: Upstream, of: Call | None = None) -> BackendError:
    with pytest.raises(BackendError) as caught:
        chat(made, of)
    return caught.value


# ---------------------------------------------------------------- dialects


def test_ask_becomes_chat_completions(provider: Any) -> None:
    """The configured model is asked what the `Ask` says, in OpenAI's words."""
    tool = Tool("save", "Saves.", {"type": "object", "properties": {"x": {"type": "string"}}})
    asked = ask(
        form="schema", schema_name="Facts!", schema=SCHEMA, tools=(tool,), tool_choice="save",
        max_tokens=50, temperature=0.0, logprobs=2,
    )  # fmt: skip
    chat(upstream(), call(asked))
    [seen] = provider.seen
    assert seen.path == "/v1/chat/completions"
    assert seen.body == {
        "model": "big",
        "messages": [
            {"role": "system", "content": "Answer briefly."},
            {"role": "user", "content": "Where is the meeting?"},
        ],
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "Facts_", "schema": SCHEMA},
        },
        "tools": [
            {
                "type": "function",
                "function": {
                    "name": "save",
                    "description": "Saves.",
                    "parameters": tool.parameters,
                },
            }
        ],
        "tool_choice": {"type": "function", "function": {"name": "save"}},
        "max_completion_tokens": 50,
        "temperature": 0.0,
        "logprobs": True,
        "top_logprobs": 2,
    }


def test_json_is_named_in_the_prompt(provider: Any) -> None:
    """OpenAI refuses its JSON format where no message has the word, so one is added if need be."""
    chat(upstream(), call(ask(form="json")))
    chat(upstream(), call(ask("Give JSON.", form="json")))
    first, second = (seen.body["messages"][0]["content"] for seen in provider.seen)
    assert first == "Answer briefly.\n\nAnswer with one JSON object."
    assert second == "Give JSON."


def test_chat_completion_becomes_reply(provider: Any) -> None:
    """Text, usage with its cached part and the time taken come back."""
    reply = chat(upstream())
    assert (reply.text, reply.calls, reply.finish) == ("Lisbon.", (), "stop")
    usage = reply.usage
    assert (usage.prompt_tokens, usage.completion_tokens, usage.cached_tokens) == (1200, 5, 1024)
    assert 0 < usage.ms < 20_000
    assert usage.calls == 0, "the gateway counts calls"


@pytest.mark.parametrize(
    ("message", "finish", "expected"),
    [
        ({"content": None, "tool_calls": [{"function": {"name": "f", "arguments": '{"a": 1}'}}]},
         "tool_calls", Reply("", (ToolCall("f", {"a": 1}),), "tools")),
        ({"content": None, "tool_calls": [{"function": {"name": "f", "arguments": ""}}]},
         "tool_calls", Reply("", (ToolCall("f", {}),), "tools")),
        ({"content": None, "tool_calls": [{"function": {"name": "f", "arguments": '{"a'}}]},
         "length", Reply('{"a', (), "length")),
        ({"content": None, "refusal": "I will not."}, "stop", Reply("I will not.", (), "refusal")),
        ({"content": [{"type": "text", "text": "in "}, {"type": "text", "text": "parts"}]},
         "stop", Reply("in parts")),
        ({"content": "half an"}, "length", Reply("half an", (), "length")),
        ({"content": None}, None, Reply("")),
    ],
)  # fmt: skip
def test_kinds_of_completions(
    provider: Any, message: dict[str, Any], finish: str | None, expected: Reply
) -> None:
    """Function calls, refusals, parts and cut answers are read; broken arguments are text."""
    provider.plan(200, {"choices": [{"message": message, "finish_reason": finish}]})
    reply = chat(upstream())
    assert expected == msgspec.structs.replace(reply, usage=expected.usage)
    assert reply.usage.prompt_tokens == 0


def test_logprobs_are_read(provider: Any) -> None:
    """For each token its alternatives, the chosen one among them."""
    tokens = [{"token": "True", "logprob": -0.1, "top_logprobs": [
        {"token": "True", "logprob": -0.1}, {"token": "False", "logprob": -2.5}]}]  # fmt: skip
    choice = {"message": {"content": "True"}, "logprobs": {"content": tokens}}
    provider.plan(200, {"choices": [choice]})
    assert chat(upstream(), call(ask(logprobs=2))).logprobs == ({"True": -0.1, "False": -2.5},)


def test_ask_becomes_messages(provider: Any) -> None:
    """System text stands apart, is marked for the provider's cache when long, and tools fit in."""
    long = "You extract facts. " * 300
    tool = Tool("save", "Saves.", {"type": "object", "properties": {}})
    asked = ask(long, tools=(tool,), tool_choice="required", max_tokens=50, temperature=1.5)
    chat(upstream("anthropic", "small"), call(asked, "chat"))
    [seen] = provider.seen
    assert seen.path == "/v1/messages"
    assert seen.headers["anthropic-version"]
    assert seen.body == {
        "model": "small",
        "max_tokens": 50,
        "system": [{"type": "text", "text": long, "cache_control": {"type": "ephemeral"}}],
        "messages": [{"role": "user", "content": "Where is the meeting?"}],
        "tools": [{"name": "save", "description": "Saves.", "input_schema": tool.parameters}],
        "tool_choice": {"type": "any"},
        "temperature": 1.0,
    }


def test_messages_become_reply(provider: Any) -> None:
    """Anthropic counts what was cached apart; a reply counts all that was sent."""
    reply = chat(upstream("anthropic"))
    assert reply.text == "Lisbon."
    usage = reply.usage
    assert (usage.prompt_tokens, usage.completion_tokens, usage.cached_tokens) == (1203, 5, 1024)


def test_json_from_anthropic_by_a_forced_tool(provider: Any) -> None:
    """A schema is had by a tool that must be called; what it is called with is the answer."""
    block = {"type": "tool_use", "id": "t", "name": "answer_as_json", "input": {"facts": ["a"]}}
    provider.plan(200, {"content": [block], "stop_reason": "tool_use"})
    reply = chat(
        upstream("anthropic"), call(ask(form="schema", schema_name="Facts", schema=SCHEMA))
    )
    sent = provider.seen[0].body
    assert sent["tools"][0]["input_schema"] == SCHEMA
    assert sent["tool_choice"] == {"type": "tool", "name": "answer_as_json"}
    assert (reply.text, reply.calls, reply.finish) == ('{"facts":["a"]}', (), "stop")


def test_own_dialect_goes_through(provider: Any) -> None:
    """A call in the provider's dialect is sent as the system wrote it, but for model and stream."""
    written = {
        "model": "m", "stream": True, "stream_options": {"include_usage": True}, "top_p": 0.3,
        "messages": [{"role": "user", "content": "hi"}], "logit_bias": {"6432": 1},
    }  # fmt: skip
    chat(upstream(), call(dialect="chat", **written))
    kept = {k: v for k, v in written.items() if not k.startswith("stream")}
    assert provider.seen[0].body == kept | {"model": "big"}
    system = [{"type": "text", "text": "s", "cache_control": {"type": "ephemeral"}}]
    chat(upstream("anthropic"), call(dialect="messages", model="m", max_tokens=9, system=system))
    assert provider.seen[1].body == {"model": "big", "max_tokens": 9, "system": system}


def test_anthropic_conversations_are_valid(provider: Any) -> None:
    """The user begins, nothing is empty, and a lone system text is asked by the user."""
    made = upstream("anthropic")
    told = (Message("assistant", "Hello."), Message("user", " "), Message("tool", "42"))
    chat(made, call(ask(messages=told)))
    assert [m["role"] for m in provider.seen[0].body["messages"]] == ["user", "assistant", "user"]
    chat(made, call(ask(messages=(Message("system", "Summarise: x"),))))
    sent = provider.seen[1].body
    assert sent["messages"][0]["content"] == [{"type": "text", "text": "Summarise: x"}]
    assert "system" not in sent


def test_log_probabilities_are_not_to_be_had_from_anthropic(provider: Any) -> None:
    """What a provider cannot give is an error that says so, never an answer without it."""
    failure = fails(upstream("anthropic"), call(ask(logprobs=2)))
    assert failure.status == 400
    assert "log probabilities" in failure.message
    assert not provider.seen


def test_embeddings(provider: Any) -> None:
    """Vectors come back in the order of the texts, whatever the order in the answer."""
    made = upstream(embedding_model="e")
    asked = Call("embeddings", {"model": "x", "dimensions": 2}, "k", 0, texts=("a", "bbbbbbb"))
    rows = run(lambda: made.embed(asked))
    assert np.asarray(rows).tolist() == [[1 / 7, 0.1], [1.0, 0.1]]
    sent = provider.seen[0].body
    assert sent == {
        "model": "e", "input": ["a", "bbbbbbb"], "encoding_format": "float", "dimensions": 2,
    }  # fmt: skip
    assert re.fullmatch(r"openai:big@[0-9a-f]{8}\+e", made.name)


def test_a_vector_too_few_is_an_error(provider: Any) -> None:
    """Vectors are never put to the wrong texts."""
    provider.plan(200, {"data": [{"embedding": [1.0]}]})
    made = upstream(embedding_model="e", retries=0)
    with pytest.raises(BackendError, match="1 vectors for 2 texts"):
        run(lambda: made.embed(Call("embeddings", {}, "k", 0, texts=("a", "b"))))


def test_local_embeddings_wrap_a_provider(provider: Any) -> None:
    """Chat goes to the provider, vectors are made here."""

    class Lengths:
        name, version, dimension = "lengths", "1", 1

        def embed(self, texts: list[str], /) -> Any:
            return np.array([[len(text)] for text in texts], dtype=np.float32)

    made = upstream()
    local = LocalEmbeddings(made, Lengths())
    assert run(lambda: local.chat(call())).text == "Lisbon."
    rows = asyncio.run(local.embed(Call("embeddings", {}, "k", 0, texts=("a", "bb"))))
    assert np.asarray(rows).tolist() == [[1.0], [2.0]]
    assert len(provider.seen) == 1


# ---------------------------------------------------------------- what servers refuse


@pytest.mark.parametrize(
    ("provider_name", "refused", "instead"),
    [("openai", "max_completion_tokens", "max_tokens"),
     ("compatible", "max_tokens", "max_completion_tokens")],
)  # fmt: skip
def test_limit_by_its_other_name(
    provider: Any, provider_name: str, refused: str, instead: str
) -> None:
    """A refused token limit goes by its other name, at once, and from then on."""
    provider.refuses = {refused}
    made = upstream(provider_name, retries=0)
    of = call(ask(max_tokens=70))
    run(lambda: _twice(made, of))
    assert [sorted({refused, instead} & seen.body.keys()) for seen in provider.seen] == [
        [refused], [instead], [instead],
    ]  # fmt: skip
    assert provider.seen[2].body[instead] == 70


def test_everything_refused_at_once(provider: Any) -> None:
    """One refusal after the other is given way to, and the call still answered."""
    provider.refuses = {"max_tokens", "max_completion_tokens", "temperature", "top_logprobs"}
    asked = ask(max_tokens=70, temperature=0.0, logprobs=3)
    assert chat(upstream(retries=0), call(asked)).text == "Lisbon."
    assert sorted(provider.seen[-1].body) == ["logprobs", "messages", "model"]


@pytest.mark.parametrize("status", [400, 422, 500])
def test_a_schema_becomes_plainer(provider: Any, status: int) -> None:
    """A refused JSON schema becomes any JSON object, then words; the schema stands in the prompt."""
    for _ in range(2):
        provider.plan(status, {"detail": "response_format.type must be text"})
    made = upstream(retries=0)
    of = call(ask(form="schema", schema_name="Facts", schema=SCHEMA))
    run(lambda: _twice(made, of))
    first, second, third, fourth = (seen.body for seen in provider.seen)
    assert first["response_format"]["type"] == "json_schema"
    assert second["response_format"] == {"type": "json_object"}
    assert "response_format" not in third
    assert fourth == third
    for sent in (second, third):
        assert msgspec.json.encode(SCHEMA).decode() in sent["messages"][0]["content"]


def test_a_parameter_is_only_dropped_when_it_is_named(provider: Any) -> None:
    """An error about the content is passed on; nothing is taken out of the request for it."""
    provider.plan(400, {"error": {"message": "Your prompt has to stop; the temperature rises."}})
    of = call(dialect="chat", model="m", messages=[], stop=["x"], max_tokens=5)
    failure = fails(upstream(), of)
    assert failure.status == 400
    assert "the temperature rises" in failure.message
    assert len(provider.seen) == 1


def test_the_named_parameter_is_meant(provider: Any) -> None:
    """Where an error has a field for the parameter, that one is left out, whatever the words say."""
    words = "Set 'temperature' or 'top_p', not both."
    provider.plan(400, {"error": {"message": words, "param": "top_p"}})
    chat(upstream(), call(dialect="chat", model="m", messages=[], temperature=0.0, top_p=0.1))
    assert sorted(provider.seen[-1].body) == ["messages", "model", "temperature"]


async def _twice(made: Upstream, of: Call) -> None:
    await made.chat(of)
    await made.chat(of)


# ---------------------------------------------------------------- failures


@pytest.mark.parametrize("status", [429, 500, 503, 529])
def test_passing_failures_are_tried_again(provider: Any, status: int) -> None:
    """429 and 5xx are asked again, and the answer counts."""
    provider.plan(status, {"error": {"message": "busy"}})
    provider.plan(status, b"<html>busy</html>")
    assert chat(upstream()).text == "Lisbon."
    assert len(provider.seen) == 3
    assert len({seen.raw for seen in provider.seen}) == 1


def test_waits_double_and_retries_end(provider: Any) -> None:
    """Waits are twice as long each time; what is left after the last try is the failure."""
    for _ in range(4):
        provider.plan(503, {"error": {"message": "overloaded"}})
    start = time.perf_counter()
    failure = fails(upstream(wait_s=0.05, retries=3))
    took = time.perf_counter() - start
    assert len(provider.seen) == 4
    assert 0.35 <= took < 3
    assert failure.status == 503
    assert failure.kind == "error"
    assert "overloaded" in failure.message


@pytest.mark.parametrize(
    "headers",
    [
        {"retry-after": "0.3"},
        {"retry-after-ms": "300"},
        {"retry-after": "Mon, 02 Nov 2026 10:00:01 GMT", "date": "Mon, 02 Nov 2026 10:00:00 GMT"},
    ],
)
def test_retry_after_is_honoured(provider: Any, headers: dict[str, str]) -> None:
    """The provider's own time is waited for: seconds, milliseconds, or a date by its own clock."""
    provider.plan(429, {"error": {"message": "slow down"}}, headers=headers)
    start = time.perf_counter()
    chat(upstream())
    assert 0.25 < time.perf_counter() - start < 3


def test_a_long_retry_after_is_passed_on(provider: Any) -> None:
    """Nobody waits an hour: the failure says when to come back."""
    provider.plan(429, {"error": {"message": "daily limit"}}, headers={"retry-after": "3600"})
    failure = fails(upstream())
    assert (failure.status, failure.retry_after_s) == (429, 3600.0)
    assert len(provider.seen) == 1


def test_slow_answers_time_out(provider: Any) -> None:
    """An answer that does not come in time is a time-out, and is asked for again."""
    provider.plan(200, {}, after_s=1.0)
    assert chat(upstream(timeout_s=0.2)).text == "Lisbon."
    provider.plan(200, {}, after_s=1.0)
    failure = fails(upstream(timeout_s=0.2, retries=0))
    assert (failure.status, failure.kind) == (504, "timeout")
    assert "within 0.2 s" in failure.message


@pytest.mark.parametrize("body", [b'{"choices": [{"mess', b"", b"[]", b'{"choices": []}'])
def test_cut_and_strange_bodies_are_tried_again(provider: Any, body: bytes) -> None:
    """A body that is cut off, no JSON or no completion never becomes an answer."""
    provider.plan(200, body, cut=body == b"")
    assert chat(upstream()).text == "Lisbon."
    provider.plan(200, body, cut=body == b"")
    assert fails(upstream(retries=0)).status == 502


def test_errors_with_status_200(provider: Any) -> None:
    """Some routers send an error as an answer; it is an error."""
    provider.plan(200, {"error": {"message": "upstream is full", "code": 429}})
    failure = fails(upstream(retries=0))
    assert failure.status == 429
    assert "upstream is full" in failure.message


def test_nobody_listens(provider: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection that cannot be made is tried again, then said with the address; the run stops,
    so that it can go on when somebody listens."""
    monkeypatch.setenv("OPENAI_BASE_URL", "http://user:secret-word@127.0.0.1:9/v1?token=t0k")
    failure = fails(upstream(retries=1))
    assert (failure.status, failure.kind) == (402, "budget")
    assert "http://127.0.0.1:9/v1" in failure.message
    assert "secret-word" not in failure.message
    assert "t0k" not in failure.message


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (401, {"error": {"message": "Incorrect API key provided", "code": "invalid_api_key"}}),
        (404, {"error": {"message": "The model 'big' does not exist"}}),
        (429, {"error": {"message": "You exceeded your quota", "code": "insufficient_quota"}}),
    ],
)
def test_what_will_not_pass_stops_the_run(provider: Any, status: int, body: Any) -> None:
    """A wrong key, an unknown model and an empty account stop everything after one request."""
    provider.plan(status, body)
    made = upstream()
    failure = fails(made)
    assert (failure.kind, failure.status) == ("budget", 402)
    assert body["error"]["message"] in made.spent
    assert fails(made).message == made.spent
    assert len(provider.seen) == 1


def test_no_more_at_a_time_than_allowed(provider: Any) -> None:
    """The limit on concurrency holds, and is used."""
    made = upstream(concurrency=3)

    async def many() -> None:
        await asyncio.gather(*(made.chat(call()) for _ in range(20)))

    run(many)
    assert len(provider.seen) == 20
    assert provider.most_at_once == 3


@pytest.mark.filterwarnings("error::pytest.PytestUnraisableExceptionWarning")
def test_event_loops(provider: Any) -> None:
    """A back end outlives the gateway that it first stood behind, and leaves no connection open."""
    made = upstream()
    for _ in range(2):
        assert chat(made).text == "Lisbon."
        assert made._client.is_closed
    del made
    gc.collect()


# ---------------------------------------------------------------- keys and addresses


@pytest.mark.parametrize(
    ("name", "header", "value"),
    [("openai", "authorization", f"Bearer {KEY}"), ("anthropic", "x-api-key", KEY)],
)
def test_keys_are_in_one_header_only(provider: Any, name: str, header: str, value: str) -> None:
    """The key is sent in its header, and in no other header, path or body."""
    chat(upstream(name))
    [seen] = provider.seen
    assert seen.headers.pop(header) == value
    assert KEY not in str(seen.headers) + seen.path + seen.raw.decode()


def test_keys_of_any_form_are_scrubbed(provider: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A key need not look like one of the great providers'."""
    monkeypatch.setenv("OPENAI_API_KEY", "gateway/of/my/house")
    provider.plan(400, {"error": {"message": "gateway/of/my/house may not do this"}})
    assert "v1: 400: *** may not do this" in fails(upstream()).message


def test_keys_are_scrubbed_from_errors(provider: Any) -> None:
    """A provider that repeats a key, or a part of one, does not get it into a message or a repr."""
    words = f"Incorrect API key provided: {KEY}, or sk-proj-****wxyz; see {'x' * 460} {KEY}"
    provider.plan(400, {"error": {"message": words}})
    made = upstream()
    failure = fails(made)
    assert "Incorrect API key provided: ***, or ***; see" in failure.message
    assert "sk-" not in failure.message
    assert "sk-" not in str(vars(failure)) + repr(made) + str(failure.__cause__)


@pytest.mark.parametrize("name", ["openai", "anthropic"])
def test_a_missing_key_is_named(provider: Any, monkeypatch: pytest.MonkeyPatch, name: Any) -> None:
    """Without a key nothing starts; one sentence names the variable."""
    monkeypatch.delenv(f"{name.upper()}_API_KEY")
    with pytest.raises(UpstreamError, match=f"^{name.upper()}_API_KEY is not set: .*$"):
        Upstream(name, "m")


def test_a_server_of_ones_own_wants_no_key(provider: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A compatible server is asked without a key where none is set; its address has to be."""
    monkeypatch.delenv("OPENAI_API_KEY")
    chat(upstream("compatible"))
    assert "authorization" not in provider.seen[0].headers
    monkeypatch.delenv("OPENAI_BASE_URL")
    with pytest.raises(UpstreamError, match="OPENAI_BASE_URL is not set"):
        Upstream("compatible", "m")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("opnai", "m"), "there are openai, anthropic, compatible"),
        (("openai", ""), "name the model"),
        (("anthropic", "m", "", "e"), "gives no embeddings"),
        (("openai", "m", "127.0.0.1:8000/v1"), "begins with http"),
    ],
)
def test_bad_settings(provider: Any, arguments: tuple[Any, ...], words: str) -> None:
    """What cannot work is refused before a run starts."""
    name, model, *rest = (*arguments, "", "")
    with pytest.raises(UpstreamError, match=words):
        Upstream(name, model, base_url=rest[0], embedding_model=rest[1])


@pytest.mark.parametrize("end", ["", "/", "/v1", "/v1/"])
def test_anthropic_addresses(provider: Any, end: str) -> None:
    """Anthropic's address is meant without /v1, and taken with it."""
    chat(upstream("anthropic", base_url=provider.url + end))
    assert provider.seen[0].path == "/v1/messages"
