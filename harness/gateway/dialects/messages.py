"""Anthropic's messages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Final, Literal

import msgspec

from steeltrap.harness.gateway.backend import Call
from steeltrap.harness.gateway.dialects.shared import (
    Part,
    asked_by,
    call_id,
    encode,
    event,
    pieces,
    read,
    spoken,
    text_of,
)
from steeltrap.harness.models import Ask, Message, Reply, Tool, Usage

__all__ = ["answer", "ask", "error", "stream"]

_STOPS: Final = {
    "stop": "end_turn", "length": "max_tokens", "tools": "tool_use", "refusal": "refusal",
}  # fmt: skip
_CHOICES: Final = {"auto": "auto", "any": "required", "none": "none"}
_ERRORS: Final = {
    400: "invalid_request_error", 401: "authentication_error", 403: "permission_error",
    404: "not_found_error", 413: "request_too_large", 429: "rate_limit_error",
    504: "timeout_error", 529: "overloaded_error",
}  # fmt: skip


class _Block(msgspec.Struct):
    """Any block of a message; which fields it has depends on its type."""

    type: str
    text: str = ""
    name: str = ""
    input: dict[str, Any] = {}
    content: str | list[Part] | None = None


class _Message(msgspec.Struct):
    role: Literal["user", "assistant", "system"]
    content: str | list[_Block]


class _Tool(msgspec.Struct):
    name: str
    description: str | None = None
    input_schema: dict[str, Any] | None = None


class _Choice(msgspec.Struct):
    type: Literal["auto", "any", "none", "tool"]
    name: str = ""


class _Format(msgspec.Struct):
    type: Literal["json_schema"]
    schema: dict[str, Any]


class _Output(msgspec.Struct):
    format: _Format | None = None


class _Request(msgspec.Struct):
    model: str
    max_tokens: int
    messages: Annotated[list[_Message], msgspec.Meta(min_length=1)]
    system: str | list[Part] | None = None
    temperature: float | None = None
    tools: list[_Tool] | None = None
    tool_choice: _Choice | None = None
    output_config: _Output | None = None
    output_format: _Format | None = None
    """As the field was called before `output_config`."""
    stream: bool | None = None


def ask(body: dict[str, Any]) -> Ask:
    """The question that a request asks.

    Raises:
        BadRequestError: it is no request of this dialect.
    """
    asked = read(body, _Request)
    messages = [Message("system", text_of(asked.system))] if asked.system else []
    for message in asked.messages:
        messages += _messages(message)
    form = (asked.output_config and asked.output_config.format) or asked.output_format
    choice = asked.tool_choice or _Choice("auto")
    return Ask(
        model=asked.model,
        messages=tuple(messages),
        form="schema" if form else "text",
        schema_name=str(form.schema.get("title", "")) if form else "",
        schema=form.schema if form else {},
        tools=tuple(
            Tool(tool.name, tool.description or "", tool.input_schema or {})
            for tool in asked.tools or ()
        ),
        tool_choice=_CHOICES.get(choice.type, choice.name),
        max_tokens=asked.max_tokens,
        temperature=asked.temperature,
    )


def _messages(given: _Message) -> Iterator[Message]:
    """A message, after the results of tools that stand in it as messages of their own."""
    if isinstance(given.content, str):
        yield Message(given.role, given.content)
        return
    for block in given.content:
        if block.type == "tool_result":
            yield Message("tool", text_of(block.content))
    said = "\n".join(block.text for block in given.content if block.text)
    calls = [
        (block.name, encode(block.input).decode())
        for block in given.content
        if block.type == "tool_use"
    ]
    if said or calls:
        yield Message(given.role, spoken(said, calls))


def answer(call: Call, reply: Reply) -> dict[str, Any]:
    """The body of a whole answer."""
    return _message(call, reply.usage) | {
        "content": _blocks(call, reply),
        "stop_reason": _STOPS[reply.finish],
    }


def stream(call: Call, reply: Reply) -> Iterator[bytes]:
    """The answer as server-sent events."""

    def made(name: str, /, **fields: Any) -> bytes:
        return event({"type": name} | fields, name)

    begun = _message(call, reply.usage)
    begun["usage"] = begun["usage"] | {"output_tokens": 0}
    yield made("message_start", message=begun)
    for index, block in enumerate(_blocks(call, reply)):
        if block["type"] == "text":
            kind, name, whole = "text_delta", "text", block["text"]
            started = block | {"text": ""}
        else:
            kind, name, whole = "input_json_delta", "partial_json", encode(block["input"]).decode()
            started = block | {"input": {}}
        yield made("content_block_start", index=index, content_block=started)
        for piece in pieces(whole):
            yield made("content_block_delta", index=index, delta={"type": kind, name: piece})
        yield made("content_block_stop", index=index)
    yield made(
        "message_delta",
        delta={"stop_reason": _STOPS[reply.finish], "stop_sequence": None},
        usage=_usage(reply.usage),
    )
    yield made("message_stop")


def error(status: int, message: str, code: str) -> dict[str, Any]:  # noqa: ARG001
    """The body of an error."""
    kind = _ERRORS.get(status, "api_error" if status >= 500 else "invalid_request_error")
    return {"type": "error", "error": {"type": kind, "message": message}, "request_id": None}


def _message(call: Call, usage: Usage) -> dict[str, Any]:
    return {
        "id": call_id("msg", call, 0), "type": "message", "role": "assistant",
        "model": asked_by(call).model, "content": [], "stop_reason": None, "stop_sequence": None,
        "usage": _usage(usage),
    }  # fmt: skip


def _blocks(call: Call, reply: Reply) -> list[dict[str, Any]]:
    blocks: list[dict[str, Any]] = []
    if reply.text:
        blocks.append({"type": "text", "text": reply.text, "citations": None})
    for index, made in enumerate(reply.calls):
        blocks.append({
            "type": "tool_use", "id": call_id("toolu", call, index), "name": made.name,
            "input": made.arguments,
        })  # fmt: skip
    return blocks


def _usage(usage: Usage) -> dict[str, Any]:
    """Anthropic counts what it had in its cache beside the input, not in it."""
    return {
        "input_tokens": usage.prompt_tokens - usage.cached_tokens,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": usage.cached_tokens,
        "output_tokens": usage.completion_tokens,
    }
