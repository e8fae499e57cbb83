"""OpenAI's chat completions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Final, Literal

import msgspec

from steeltrap.harness.gateway.backend import Call
from steeltrap.harness.gateway.dialects.shared import (
    BadRequestError,
    Part,
    arguments_of,
    asked_by,
    call_id,
    event,
    pieces,
    read,
    spoken,
    text_of,
)
from steeltrap.harness.models import Ask, Message, Reply, Tool, Usage

__all__ = ["FORMS", "answer", "ask", "error", "stream", "token_logprobs"]

Form = Literal["text", "json", "schema"]
_FINISH: Final = {
    "stop": "stop", "length": "length", "tools": "tool_calls", "refusal": "content_filter",
}  # fmt: skip
FORMS: Final[dict[str, Form]] = {"text": "text", "json_object": "json", "json_schema": "schema"}
"""What OpenAI's dialects call the forms of an answer."""


class _Function(msgspec.Struct):
    name: str
    arguments: str = ""
    description: str | None = None
    parameters: dict[str, Any] | None = None


class _Calls(msgspec.Struct):
    function: _Function


class _Message(msgspec.Struct):
    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: str | list[Part] | None = None
    tool_calls: list[_Calls] | None = None


class _Schema(msgspec.Struct):
    name: str = ""
    schema: dict[str, Any] | None = None


class _Format(msgspec.Struct):
    type: Literal["text", "json_object", "json_schema"]
    json_schema: _Schema | None = None


class _Named(msgspec.Struct):
    function: _Function


class _Request(msgspec.Struct):
    model: str
    messages: Annotated[list[_Message], msgspec.Meta(min_length=1)]
    max_tokens: int | None = None
    max_completion_tokens: int | None = None
    temperature: float | None = None
    response_format: _Format | None = None
    tools: list[_Named] | None = None
    tool_choice: Literal["auto", "none", "required"] | _Named | None = None
    logprobs: bool | None = None
    top_logprobs: int | None = None
    n: int | None = None
    stream: bool | None = None


def ask(body: dict[str, Any]) -> Ask:
    """The question that a request asks.

    Raises:
        BadRequestError: it is no request of this dialect.
    """
    asked = read(body, _Request)
    if asked.n not in (None, 1):
        raise BadRequestError("n: the gateway gives one choice a call")
    form = asked.response_format or _Format("text")
    schema = form.json_schema or _Schema()
    choice = asked.tool_choice or "auto"
    return Ask(
        model=asked.model,
        messages=tuple(_message(message) for message in asked.messages),
        form=FORMS[form.type],
        schema_name=schema.name,
        schema=schema.schema or {},
        tools=tuple(
            Tool(f.name, f.description or "", f.parameters or {})
            for f in (tool.function for tool in asked.tools or ())
        ),
        tool_choice=choice if isinstance(choice, str) else choice.function.name,
        max_tokens=asked.max_completion_tokens or asked.max_tokens,
        temperature=asked.temperature,
        logprobs=max(1, asked.top_logprobs or 0) if asked.logprobs else 0,
    )


def _message(given: _Message) -> Message:
    role = {"developer": "system", "function": "tool"}.get(given.role, given.role)
    calls = [(call.function.name, call.function.arguments) for call in given.tool_calls or ()]
    return Message(role, spoken(text_of(given.content), calls))


def answer(call: Call, reply: Reply) -> dict[str, Any]:
    """The body of a whole answer."""
    message: dict[str, Any] = {"role": "assistant", "content": reply.text, "refusal": None}
    if reply.finish == "refusal":
        message |= {"content": None, "refusal": reply.text}
    if reply.calls:
        message |= {"content": reply.text or None, "tool_calls": _calls(call, reply)}
    choice = {
        "index": 0, "message": message, "finish_reason": _FINISH[reply.finish],
        "logprobs": _logprobs(call, reply),
    }  # fmt: skip
    return _head(call, "chat.completion") | {"choices": [choice], "usage": _usage(reply.usage)}


def stream(call: Call, reply: Reply) -> Iterator[bytes]:
    """The answer as server-sent events."""
    with_usage = bool((call.body.get("stream_options") or {}).get("include_usage"))
    head = _head(call, "chat.completion.chunk") | ({"usage": None} if with_usage else {})

    def chunk(delta: dict[str, Any], **more: Any) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": None, "logprobs": None} | more
        return event(head | {"choices": [choice]})

    said = "refusal" if reply.finish == "refusal" else "content"
    yield chunk({"role": "assistant", "content": None if reply.calls else ""})
    logprobs = _logprobs(call, reply)
    for piece in pieces(reply.text):
        yield chunk({said: piece}, logprobs=logprobs)
        logprobs = None
    for index, made in enumerate(_calls(call, reply)):
        arguments = made["function"]["arguments"]
        made["function"] = made["function"] | {"arguments": ""}
        yield chunk({"tool_calls": [{"index": index} | made]})
        for piece in pieces(arguments):
            yield chunk({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
    yield chunk({}, finish_reason=_FINISH[reply.finish])
    if with_usage:
        yield event(head | {"choices": [], "usage": _usage(reply.usage)})
    yield b"data: [DONE]\n\n"


def error(status: int, message: str, code: str) -> dict[str, Any]:
    """The body of an error, as OpenAI's dialects give it."""
    kind = {400: "invalid_request_error", 401: "authentication_error", 404: "not_found_error",
            429: "rate_limit_error"}.get(status, "server_error")  # fmt: skip
    return {"error": {"message": message, "type": kind, "param": None, "code": code or None}}


def _head(call: Call, kind: str) -> dict[str, Any]:
    return {
        "id": call_id("chatcmpl", call, 0), "object": kind, "created": 0,
        "model": asked_by(call).model, "system_fingerprint": None,
    }  # fmt: skip


def _calls(call: Call, reply: Reply) -> list[dict[str, Any]]:
    return [
        {
            "id": call_id("call", call, index), "type": "function",
            "function": {"name": made.name, "arguments": arguments_of(made)},
        }
        for index, made in enumerate(reply.calls)
    ]  # fmt: skip


def _logprobs(call: Call, reply: Reply) -> dict[str, Any] | None:
    if not asked_by(call).logprobs:
        return None
    return {"content": token_logprobs(asked_by(call), reply), "refusal": None}


def token_logprobs(ask: Ask, reply: Reply) -> list[dict[str, Any]]:
    """Each token of the answer with its alternatives, likeliest first; nothing if not asked for."""
    given = []
    rest = reply.text
    for alternatives in reply.logprobs if ask.logprobs else ():
        token = _chosen(alternatives, rest)
        rest = rest[len(token) :]
        best = sorted(alternatives.items(), key=lambda pair: (-pair[1], pair[0]))
        top = [_token(text, log) for text, log in best[: ask.logprobs]]
        given.append(_token(token, alternatives[token]) | {"top_logprobs": top})
    return given


def _chosen(alternatives: dict[str, float], rest: str) -> str:
    """The alternative that the text goes on with; the likeliest one where none fits."""
    fitting = [token for token in alternatives if rest.startswith(token)]
    return max(fitting or alternatives, key=lambda token: (alternatives[token], token))


def _token(text: str, log: float) -> dict[str, Any]:
    return {"token": text, "logprob": log, "bytes": list(text.encode())}


def _usage(usage: Usage) -> dict[str, Any]:
    return {
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "total_tokens": usage.prompt_tokens + usage.completion_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cached_tokens, "audio_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": 0, "audio_tokens": 0},
    }
