"""The dialects, spoken with the providers' own clients."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Iterator
from typing import Any

import anthropic
import msgspec
import numpy as np
import openai
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from steeltrap.harness.gateway import Call, Embedder, Gateway
from steeltrap.harness.gateway.dialects import DIALECTS
from steeltrap.harness.gateway.dialects.shared import key
from steeltrap.harness.models import Ask, Message, Reply, Tool, ToolCall, Usage

Opener = Callable[..., Gateway]

HELLO: Any = {"role": "user", "content": "hello"}
LONG = "Line one.\nZeile zwei: „ä€🙂“. " * 9
LOOK_UP = ToolCall("look_up", {"city": "Zürich", "days": [1, 2], "deep": {"a": None}})
WEATHER = ToolCall("weather", {})
COUNTED = Usage(prompt_tokens=2_000, completion_tokens=30, cached_tokens=1_536)


class Fact(BaseModel):
    text: str
    sure: bool


@pytest.fixture
def openai_of() -> Iterator[Callable[[Gateway], openai.OpenAI]]:
    made: list[openai.OpenAI] = []

    def make(gateway: Gateway) -> openai.OpenAI:
        made.append(openai.OpenAI(base_url=gateway.models.openai_url, api_key="k", max_retries=0))
        return made[-1]

    yield make
    for client in made:
        client.close()


@pytest.fixture
def anthropic_of() -> Iterator[Callable[[Gateway], anthropic.Anthropic]]:
    made: list[anthropic.Anthropic] = []

    def make(gateway: Gateway) -> anthropic.Anthropic:
        made.append(anthropic.Anthropic(base_url=gateway.models.url, api_key="k", max_retries=0))
        return made[-1]

    yield make
    for client in made:
        client.close()


OpenAIOf = Callable[[Gateway], openai.OpenAI]
AnthropicOf = Callable[[Gateway], anthropic.Anthropic]


def asked(gateway: Gateway) -> Ask:
    """The last question that reached the back end."""
    call: Call = gateway.backend.calls[-1]  # type: ignore[attr-defined]
    assert call.ask is not None
    return call.ask


# ---------------------------------------------------------------- chat completions


def test_chat_takes_a_request_apart(opened: Opener, openai_of: OpenAIOf) -> None:
    """Every field that a back end knows is read from a chat completion request."""
    gateway = opened()
    openai_of(gateway).chat.completions.create(
        model="m",
        messages=[
            {"role": "developer", "content": "be brief"},
            {"role": "user", "content": [
                {"type": "text", "text": "look"},
                {"type": "image_url", "image_url": {"url": "data:,"}},
                {"type": "text", "text": "here"},
            ]},
            {"role": "assistant", "content": None, "tool_calls": [
                {"id": "c", "type": "function", "function": {"name": "f", "arguments": '{"a":1}'}}
            ]},
            {"role": "tool", "tool_call_id": "c", "content": "42"},
        ],
        max_completion_tokens=77, temperature=0.5, logprobs=True, top_logprobs=3,
        tools=[{"type": "function", "function": {
            "name": "f", "description": "does it", "parameters": {"type": "object"}
        }}],
        tool_choice={"type": "function", "function": {"name": "f"}},
        response_format={"type": "json_object"},
    )  # fmt: skip
    assert asked(gateway) == Ask(
        model="m",
        messages=(
            Message("system", "be brief"),
            Message("user", "look\nhere"),
            Message("assistant", 'f({"a":1})'),
            Message("tool", "42"),
        ),
        form="json",
        tools=(Tool("f", "does it", {"type": "object"}),),
        tool_choice="f",
        max_tokens=77,
        temperature=0.5,
        logprobs=3,
    )
    openai_of(gateway).chat.completions.create(model="m", messages=[HELLO], max_tokens=5)
    assert asked(gateway) == Ask("m", (Message("user", "hello"),), max_tokens=5)


def test_chat_answers(opened: Opener, openai_of: OpenAIOf) -> None:
    """Text, ending and the provider's own counts come back, whole and streamed alike."""
    gateway = opened(Reply(LONG, finish="length", usage=COUNTED))
    create = openai_of(gateway).chat.completions.create
    whole = create(model="m", messages=[HELLO])
    assert (whole.object, whole.model) == ("chat.completion", "m")
    assert whole.choices[0].message.content == LONG
    assert whole.choices[0].finish_reason == "length"
    chunks = list(
        create(model="m", messages=[HELLO], stream=True, stream_options={"include_usage": True})
    )
    assert len(chunks) > 4
    assert chunks[0].choices[0].delta.role == "assistant"
    said = [chunk.choices[0].delta.content or "" for chunk in chunks[:-1]]
    assert "".join(said) == LONG
    ends = [chunk.choices[0].finish_reason for chunk in chunks[:-1]]
    assert ends == [None] * (len(ends) - 1) + ["length"]
    assert chunks[-1].choices == []
    for usage in (whole.usage, chunks[-1].usage):
        assert usage is not None and usage.prompt_tokens_details is not None
        assert (usage.prompt_tokens, usage.completion_tokens, usage.total_tokens) == (
            2_000, 30, 2_030,
        )  # fmt: skip
        assert usage.prompt_tokens_details.cached_tokens == 1_536
    plain = list(create(model="m", messages=[HELLO], stream=True))
    assert all(chunk.choices and chunk.usage is None for chunk in plain)


def test_chat_calls_tools(opened: Opener, openai_of: OpenAIOf) -> None:
    """Function calls come back with their arguments, whole and streamed alike."""
    gateway = opened(Reply("first", calls=(LOOK_UP, WEATHER)))
    client = openai_of(gateway)
    whole = client.chat.completions.create(model="m", messages=[HELLO]).choices[0]
    assert whole.finish_reason == "tool_calls"
    with client.chat.completions.stream(model="m", messages=[HELLO]) as stream:
        streamed = stream.get_final_completion().choices[0]
    assert streamed.finish_reason == "tool_calls"
    found = []
    for message in (whole.message, streamed.message):
        assert message.content == "first"
        calls: Any = message.tool_calls
        assert [call.type for call in calls] == ["function", "function"]
        made = [(call.function.name, call.function.arguments) for call in calls]
        assert [ToolCall(name, msgspec.json.decode(text)) for name, text in made] == [
            LOOK_UP, WEATHER,
        ]  # fmt: skip
        assert len({call.id for call in calls}) == 2
        found.append(made)
    assert found[0] == found[1]


def test_chat_with_a_schema(opened: Opener, openai_of: OpenAIOf) -> None:
    """The client's structured output works, and the back end sees name and schema."""
    gateway = opened(Reply('{"text": "it rains", "sure": true}'))
    client = openai_of(gateway)
    found = client.chat.completions.parse(model="m", messages=[HELLO], response_format=Fact)
    assert found.choices[0].message.parsed == Fact(text="it rains", sure=True)
    with client.chat.completions.stream(
        model="m", messages=[HELLO], response_format=Fact
    ) as stream:
        assert stream.get_final_completion().choices[0].message.parsed == Fact(
            text="it rains", sure=True
        )
    ask = asked(gateway)
    assert (ask.form, ask.schema_name) == ("schema", "Fact")
    assert set(ask.schema["properties"]) == {"text", "sure"}


def test_chat_refuses(opened: Opener, openai_of: OpenAIOf) -> None:
    """A refusal stands in its own field."""
    message = (
        openai_of(opened(Reply("I would rather not", finish="refusal")))
        .chat.completions.create(model="m", messages=[HELLO])
        .choices[0].message
    )  # fmt: skip
    assert (message.refusal, message.content) == ("I would rather not", None)


def test_chat_gives_log_probabilities(opened: Opener, openai_of: OpenAIOf) -> None:
    """For each token its own log probability and as many alternatives as were asked for."""
    reply = Reply("True.", logprobs=({"False": -2.0, "True": -0.2, "Maybe": -3.0}, {".": -0.1}))
    create = openai_of(opened(reply)).chat.completions.create
    found = create(model="m", messages=[HELLO], logprobs=True, top_logprobs=2).choices[0].logprobs
    assert found is not None and found.content is not None
    first, second = found.content
    assert (first.token, first.logprob, first.bytes) == ("True", -0.2, list(b"True"))
    assert [(top.token, top.logprob) for top in first.top_logprobs] == [
        ("True", -0.2), ("False", -2.0),
    ]  # fmt: skip
    assert second.token == "."
    streamed = create(model="m", messages=[HELLO], logprobs=True, top_logprobs=2, stream=True)
    gathered = [
        token.token
        for chunk in streamed
        for token in (chunk.choices[0].logprobs.content if chunk.choices[0].logprobs else None)
        or ()
    ]
    assert gathered == ["True", "."]
    long = opened(Reply("so " * 50, logprobs=({"so ": -0.1},) * 50))
    chunks = openai_of(long).chat.completions.create(
        model="m", messages=[HELLO], logprobs=True, stream=True
    )
    given_once = [chunk.choices[0].logprobs for chunk in chunks if chunk.choices[0].logprobs]
    assert [len(found.content or ()) for found in given_once] == [50]
    assert create(model="m", messages=[HELLO]).choices[0].logprobs is None


def test_chat_gives_one_choice(opened: Opener, openai_of: OpenAIOf) -> None:
    """More than one choice a call cannot be had, and that is said."""
    with pytest.raises(openai.BadRequestError, match="one choice"):
        openai_of(opened()).chat.completions.create(model="m", messages=[HELLO], n=2)


# ---------------------------------------------------------------- responses


def test_responses_take_a_request_apart(opened: Opener, openai_of: OpenAIOf) -> None:
    """Every field that a back end knows is read from a responses request."""
    gateway = opened()
    openai_of(gateway).responses.create(
        model="m",
        instructions="be brief",
        input=[
            {"role": "user", "content": [{"type": "input_text", "text": "look"}]},
            {"type": "reasoning", "id": "r", "summary": []},
            {"type": "function_call", "call_id": "c", "name": "f", "arguments": '{"a":1}'},
            {"type": "function_call_output", "call_id": "c", "output": "42"},
            {"role": "developer", "content": "and quick"},
        ],
        max_output_tokens=77, temperature=0.5, top_logprobs=3,
        tools=[{"type": "function", "name": "f", "parameters": {"type": "object"}, "strict": True}],
        tool_choice={"type": "function", "name": "f"},
        text={"format": {"type": "json_schema", "name": "s", "schema": {"type": "object"}}},
    )  # fmt: skip
    assert asked(gateway) == Ask(
        model="m",
        messages=(
            Message("system", "be brief"),
            Message("user", "look"),
            Message("assistant", 'f({"a":1})'),
            Message("tool", "42"),
            Message("system", "and quick"),
        ),
        form="schema",
        schema_name="s",
        schema={"type": "object"},
        tools=(Tool("f", "", {"type": "object"}),),
        tool_choice="f",
        max_tokens=77,
        temperature=0.5,
        logprobs=3,
    )
    openai_of(gateway).responses.create(model="m", input="hello")
    assert asked(gateway) == Ask("m", (Message("user", "hello"),))


def test_responses_answer(opened: Opener, openai_of: OpenAIOf) -> None:
    """Text and calls come back, streamed in the order of events that the client expects."""
    gateway = opened(Reply(LONG, calls=(LOOK_UP,), usage=COUNTED))
    client = openai_of(gateway)
    whole = client.responses.create(model="m", input="hello")
    events = list(client.responses.create(model="m", input="hello", stream=True))
    names = [event.type.removeprefix("response.") for event in events]
    assert list(dict.fromkeys(names)) == [
        "created", "in_progress", "output_item.added", "content_part.added", "output_text.delta",
        "output_text.done", "content_part.done", "output_item.done",
        "function_call_arguments.delta", "function_call_arguments.done", "completed",
    ]  # fmt: skip
    assert [event.sequence_number for event in events] == list(range(len(events)))
    with client.responses.stream(model="m", input="hello") as stream:
        streamed = stream.get_final_response()
    for response in (whole, events[-1].response, streamed):  # type: ignore[union-attr]
        assert response.status == "completed"
        assert response.output_text == LONG
        call: Any = response.output[1]
        assert (call.type, call.name) == ("function_call", LOOK_UP.name)
        assert msgspec.json.decode(call.arguments) == LOOK_UP.arguments
        usage = response.usage
        assert usage is not None
        assert (usage.input_tokens, usage.output_tokens, usage.total_tokens) == (2_000, 30, 2_030)
        assert usage.input_tokens_details.cached_tokens == 1_536


def test_responses_with_a_schema(opened: Opener, openai_of: OpenAIOf) -> None:
    """The client's structured output works."""
    gateway = opened(Reply('{"text": "it rains", "sure": true}'))
    found = openai_of(gateway).responses.parse(model="m", input="hello", text_format=Fact)
    assert found.output_parsed == Fact(text="it rains", sure=True)
    assert asked(gateway).schema_name == "Fact"


def test_responses_that_end_early_or_refuse(opened: Opener, openai_of: OpenAIOf) -> None:
    """An answer cut by its limit is incomplete; a refusal is a part of its own."""
    client = openai_of(opened(Reply("half a", finish="length")))
    found = client.responses.create(model="m", input="hello")
    assert found.status == "incomplete" and found.incomplete_details is not None
    assert found.incomplete_details.reason == "max_output_tokens"
    events = list(client.responses.create(model="m", input="hello", stream=True))
    assert events[-1].type == "response.incomplete"
    client = openai_of(opened(Reply("no", finish="refusal")))
    part: Any = client.responses.create(model="m", input="hello").output[0].content[0]  # type: ignore[union-attr, index]
    assert (part.type, part.refusal) == ("refusal", "no")
    names = [event.type for event in client.responses.create(model="m", input="x", stream=True)]
    assert "response.refusal.done" in names


def test_responses_lean_on_nothing(opened: Opener, openai_of: OpenAIOf) -> None:
    """A request that continues an earlier response is refused: none are kept."""
    with pytest.raises(openai.BadRequestError, match="previous_response_id"):
        openai_of(opened()).responses.create(model="m", input="x", previous_response_id="resp_1")


# ---------------------------------------------------------------- messages


def test_messages_take_a_request_apart(opened: Opener, anthropic_of: AnthropicOf) -> None:
    """Every field that a back end knows is read from a messages request."""
    gateway = opened()
    anthropic_of(gateway).messages.create(
        model="m", max_tokens=77,
        system=[
            {"type": "text", "text": "be brief", "cache_control": {"type": "ephemeral"}},
            {"type": "text", "text": "and quick"},
        ],
        messages=[
            {"role": "user", "content": [{"type": "text", "text": "look"}]},
            {"role": "assistant", "content": [
                {"type": "text", "text": "I see"},
                {"type": "tool_use", "id": "c", "name": "f", "input": {"a": 1}},
            ]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "c",
                 "content": [{"type": "text", "text": "42"}]},
                {"type": "text", "text": "well?"},
            ]},
        ],
        tools=[{"name": "f", "description": "does it", "input_schema": {"type": "object"}}],
        tool_choice={"type": "tool", "name": "f"},
        extra_body={"temperature": 0.5},
    )  # fmt: skip
    assert asked(gateway) == Ask(
        model="m",
        messages=(
            Message("system", "be brief\nand quick"),
            Message("user", "look"),
            Message("assistant", 'I see\nf({"a":1})'),
            Message("tool", "42"),
            Message("user", "well?"),
        ),
        tools=(Tool("f", "does it", {"type": "object"}),),
        tool_choice="f",
        max_tokens=77,
        temperature=0.5,
    )
    for given_choice, means in [("any", "required"), ("none", "none"), ("auto", "auto")]:
        choice: Any = {"type": given_choice}
        anthropic_of(gateway).messages.create(
            model="m", max_tokens=7, system="s", messages=[HELLO], tool_choice=choice
        )
        assert asked(gateway).tool_choice == means


def test_messages_answer(opened: Opener, anthropic_of: AnthropicOf) -> None:
    """Text and tool uses come back, streamed in the order of events that the client expects."""
    gateway = opened(Reply(LONG, calls=(LOOK_UP, WEATHER), usage=COUNTED))
    client = anthropic_of(gateway)
    whole = client.messages.create(model="m", max_tokens=9, messages=[HELLO])
    events = list(client.messages.create(model="m", max_tokens=9, messages=[HELLO], stream=True))
    names = [event.type for event in events]
    assert names[0] == "message_start" and names[-2:] == ["message_delta", "message_stop"]
    assert names.count("content_block_start") == names.count("content_block_stop") == 3
    assert list(dict.fromkeys(names[1:-2])) == [
        "content_block_start", "content_block_delta", "content_block_stop",
    ]  # fmt: skip
    with client.messages.stream(model="m", max_tokens=9, messages=[HELLO]) as stream:
        streamed = stream.get_final_message()
    for message in (whole, streamed):
        text, first, second = message.content
        assert text.type == "text" and text.text == LONG
        assert first.type == second.type == "tool_use"
        assert ToolCall(first.name, first.input) == LOOK_UP  # type: ignore[union-attr]
        assert ToolCall(second.name, second.input) == WEATHER  # type: ignore[union-attr]
        assert message.stop_reason == "tool_use"
        usage = message.usage
        assert (usage.input_tokens, usage.output_tokens) == (464, 30)
        assert usage.cache_read_input_tokens == 1_536


@pytest.mark.parametrize(
    ("finish", "stop"), [("stop", "end_turn"), ("length", "max_tokens"), ("refusal", "refusal")]
)
def test_messages_say_why_they_end(
    opened: Opener, anthropic_of: AnthropicOf, finish: Any, stop: str
) -> None:
    """Each ending has Anthropic's name."""
    client = anthropic_of(opened(Reply("so", finish=finish)))
    found = client.messages.create(model="m", max_tokens=9, messages=[HELLO])
    assert found.stop_reason == stop


def test_messages_with_a_schema(opened: Opener, anthropic_of: AnthropicOf) -> None:
    """The client's structured output works, and the back end sees the schema."""
    gateway = opened(Reply('{"text": "it rains", "sure": true}'))
    found = anthropic_of(gateway).messages.parse(
        model="m", max_tokens=9, messages=[HELLO], output_format=Fact
    )
    assert found.parsed_output == Fact(text="it rains", sure=True)
    assert asked(gateway).form == "schema"
    assert set(asked(gateway).schema["properties"]) == {"text", "sure"}


# ---------------------------------------------------------------- embeddings


def test_embeddings(opened: Opener, openai_of: OpenAIOf, embedder: Embedder) -> None:
    """Vectors arrive exactly, in base64 (the client's choice) and as numbers, in order."""
    texts = ["the first", "", "the third 🙂"]
    expected = embedder.embed(texts)
    gateway = opened()
    create = openai_of(gateway).embeddings.create
    for extra in ({}, {"encoding_format": "float"}):
        found = create(model="e", input=texts, **extra)  # type: ignore[call-overload]
        assert [entry.index for entry in found.data] == [0, 1, 2]
        given_back = np.array([entry.embedding for entry in found.data], np.float32)
        assert np.array_equal(given_back, expected)
        assert found.usage.prompt_tokens == found.usage.total_tokens > 0
    alone = create(model="e", input="the first", dimensions=embedder.dimension)
    assert np.array_equal(np.array(alone.data[0].embedding, np.float32), expected[0])
    used = gateway.meter.taken()[""]
    assert (used.calls, used.embeddings, used.prompt_tokens) == (3, 3, 0)
    assert used.embedded_tokens == 2 * found.usage.prompt_tokens + alone.usage.prompt_tokens


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"input": []}, "nothing to embed"),
        ({"input": [[1, 2]]}, "token numbers"),
        ({"input": "x", "dimensions": 7}, "the vectors have 256 numbers, not 7"),
    ],
)
def test_embeddings_that_cannot_be_had(
    opened: Opener, openai_of: OpenAIOf, wrong: dict[str, Any], said: str
) -> None:
    """No texts, token numbers and other dimensions are refused with what is wrong."""
    with pytest.raises(openai.BadRequestError, match=said):
        openai_of(opened()).embeddings.create(model="e", **wrong)


# ---------------------------------------------------------------- all


def test_asynchronous_clients(opened: Opener) -> None:
    """The asynchronous clients are answered like the others, in every dialect."""
    gateway = opened(Reply(LONG))
    base = gateway.models

    async def everything() -> list[str | None]:
        async with (
            openai.AsyncOpenAI(base_url=base.openai_url, api_key="k") as one,
            anthropic.AsyncAnthropic(base_url=base.url, api_key="k") as two,
        ):
            chat = await one.chat.completions.create(model="m", messages=[HELLO])
            chunks = await one.chat.completions.create(model="m", messages=[HELLO], stream=True)
            streamed = [chunk.choices[0].delta.content or "" async for chunk in chunks]
            response = await one.responses.create(model="m", input="hello")
            async with one.responses.stream(model="m", input="hello") as responses:
                last = await responses.get_final_response()
            message: Any = await two.messages.create(model="m", max_tokens=9, messages=[HELLO])
            async with two.messages.stream(model="m", max_tokens=9, messages=[HELLO]) as messages:
                text = await messages.get_final_text()
            vectors = await one.embeddings.create(model="e", input="x")
            assert len(vectors.data[0].embedding) == base.dimension
            return [
                chat.choices[0].message.content, "".join(streamed), response.output_text,
                last.output_text, message.content[0].text, text,
            ]  # fmt: skip

    assert asyncio.run(everything()) == [LONG] * 6


TEXTS = st.text(max_size=200)
TOOL_CALLS = st.builds(
    ToolCall,
    st.sampled_from(["f", "look_up"]),
    st.dictionaries(
        st.text(max_size=9), st.one_of(st.none(), st.integers(-9, 9), st.text(max_size=99))
    ),
)


@given(
    st.sampled_from(sorted(DIALECTS)), TEXTS, st.lists(TOOL_CALLS, max_size=3), st.integers(0, 3)
)
def test_a_stream_says_what_the_whole_answer_says(
    dialect: str, text: str, calls: list[ToolCall], nth: int
) -> None:
    """Whatever is answered, the pieces of a stream add up to the text and arguments of the whole."""
    body = {"model": "m", "messages": [HELLO], "input": "hello", "max_tokens": 9}
    call = Call(dialect, body, key(dialect, body), nth, DIALECTS[dialect].ask(body))  # type: ignore[arg-type]
    reply = Reply(text, tuple(calls))
    events = b"".join(DIALECTS[dialect].stream(call, reply)).decode()
    found = ["", ""]
    for event in events.split("\n\n"):
        data = event.split("data: ", 1)[-1]
        if not data or data == "[DONE]":
            continue
        made = msgspec.json.decode(data)
        for index, piece in pieces_of(dialect, made):
            found[index] += piece
    arguments = "".join(msgspec.json.encode(call.arguments).decode() for call in calls)
    assert found == [text, arguments]


def pieces_of(dialect: str, event: dict[str, Any]) -> Iterator[tuple[int, str]]:
    """What an event adds to the text (0) and to the arguments of calls (1)."""
    match dialect:
        case "chat":
            delta = event["choices"][0]["delta"]
            yield 0, delta.get("content") or ""
            for call in delta.get("tool_calls", ()):
                yield 1, call["function"]["arguments"]
        case "responses":
            if event["type"].endswith(".delta"):
                yield int("arguments" in event["type"]), event["delta"]
        case "messages":
            delta = event.get("delta", {})
            yield 0, delta.get("text", "")
            yield 1, delta.get("partial_json", "")


def test_ids_are_the_same_in_every_run(opened: Opener, openai_of: OpenAIOf) -> None:
    """Ids of answers and calls follow from the request alone, so that prompts with them do too."""
    ids = []
    for _ in range(2):
        create = openai_of(opened(Reply(calls=(WEATHER,)))).chat.completions.create
        for _ in range(2):
            found: Any = create(model="m", messages=[HELLO])
            ids.append((found.id, found.created, found.choices[0].message.tool_calls[0].id))
    assert ids[:2] == ids[2:]
    assert len(set(ids)) == 2


def test_unlikely_tokens_have_no_number(opened: Opener, openai_of: OpenAIOf) -> None:
    """A log probability of minus infinity does not break the answer."""
    client = openai_of(opened(Reply("a", logprobs=({"a": 0.0, "b": -math.inf},))))
    found = client.chat.completions.create(
        model="m", messages=[HELLO], logprobs=True, top_logprobs=2
    )
    assert found.choices[0].message.content == "a"
