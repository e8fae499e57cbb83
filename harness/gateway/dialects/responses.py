"""OpenAI's responses."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, Literal

import msgspec

from steeltrap.harness.gateway.backend import Call
from steeltrap.harness.gateway.dialects import chat
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

__all__ = ["answer", "ask", "error", "stream"]

_LOGPROBS: Final = "message.output_text.logprobs"


class _Item(msgspec.Struct):
    """Any item of the input; which fields it has depends on its type."""

    type: str = "message"
    role: Literal["system", "developer", "user", "assistant"] = "user"
    content: str | list[Part] | None = None
    name: str = ""
    arguments: str = ""
    output: str | list[Part] = ""


class _Format(msgspec.Struct):
    type: Literal["text", "json_object", "json_schema"] = "text"
    name: str = ""
    schema: dict[str, Any] | None = None


class _Text(msgspec.Struct):
    format: _Format | None = None


class _Tool(msgspec.Struct):
    type: str = "function"
    name: str = ""
    description: str | None = None
    parameters: dict[str, Any] | None = None


class _Request(msgspec.Struct):
    model: str
    input: str | list[_Item]
    instructions: str | None = None
    text: _Text | None = None
    max_output_tokens: int | None = None
    temperature: float | None = None
    tools: list[_Tool] | None = None
    tool_choice: Literal["auto", "none", "required"] | _Tool | None = None
    include: list[str] | None = None
    top_logprobs: int | None = None
    previous_response_id: str | None = None
    stream: bool | None = None


def ask(body: dict[str, Any]) -> Ask:
    """The question that a request asks.

    Raises:
        BadRequestError: it is no request of this dialect, or leans on an earlier one.
    """
    asked = read(body, _Request)
    if asked.previous_response_id:
        raise BadRequestError("previous_response_id: the gateway keeps no responses; send them")
    messages = list(_messages(asked))
    if not messages:
        raise BadRequestError("input: there is nothing to answer")
    form = (asked.text and asked.text.format) or _Format()
    choice = asked.tool_choice or "auto"
    logprobs = asked.top_logprobs or _LOGPROBS in (asked.include or ())
    return Ask(
        model=asked.model,
        messages=tuple(messages),
        form=chat.FORMS[form.type],
        schema_name=form.name,
        schema=form.schema or {},
        tools=tuple(
            Tool(tool.name, tool.description or "", tool.parameters or {})
            for tool in asked.tools or ()
            if tool.type == "function"
        ),
        tool_choice=choice if isinstance(choice, str) else choice.name,
        max_tokens=asked.max_output_tokens,
        temperature=asked.temperature,
        logprobs=max(1, asked.top_logprobs or 0) if logprobs else 0,
    )


def _messages(asked: _Request) -> Iterator[Message]:
    if asked.instructions:
        yield Message("system", asked.instructions)
    if isinstance(asked.input, str):
        yield Message("user", asked.input)
        return
    for item in asked.input:
        match item.type:
            case "message":
                role = "system" if item.role == "developer" else item.role
                yield Message(role, text_of(item.content))
            case "function_call":
                yield Message("assistant", spoken("", [(item.name, item.arguments)]))
            case "function_call_output":
                yield Message("tool", text_of(item.output))


def answer(call: Call, reply: Reply) -> dict[str, Any]:
    """The body of a whole answer."""
    cut = reply.finish == "length"
    return _response(call, "incomplete" if cut else "completed") | {
        "incomplete_details": {"reason": "max_output_tokens"} if cut else None,
        "output": _items(call, reply),
        "usage": _usage(reply.usage),
    }


def stream(call: Call, reply: Reply) -> Iterator[bytes]:
    """The answer as server-sent events."""
    sent = 0

    def made(name: str, /, **fields: Any) -> bytes:
        nonlocal sent
        sent += 1
        return event({"type": f"response.{name}", "sequence_number": sent - 1} | fields, f"response.{name}")  # fmt: skip

    whole = answer(call, reply)
    begun = _response(call, "in_progress")
    yield made("created", response=begun)
    yield made("in_progress", response=begun)
    for index, item in enumerate(whole["output"]):
        empty: dict[str, Any] = {"content": []} if item["type"] == "message" else {"arguments": ""}
        started = item | empty | {"status": "in_progress"}
        yield made("output_item.added", output_index=index, item=started)
        if item["type"] == "message":
            yield from _spoken(made, index, item)
        else:
            yield from _called(made, index, item)
        yield made("output_item.done", output_index=index, item=item)
    yield made(whole["status"], response=whole)


def error(status: int, message: str, code: str) -> dict[str, Any]:
    """The body of an error."""
    return chat.error(status, message, code)


def _spoken(made: Callable[..., bytes], index: int, item: dict[str, Any]) -> Iterator[bytes]:
    """The events of a message's one part."""
    part = item["content"][0]
    field = "refusal" if part["type"] == "refusal" else "text"
    name = "refusal" if field == "refusal" else "output_text"
    at: dict[str, Any] = {"item_id": item["id"], "output_index": index, "content_index": 0}
    logprobs = {} if field == "refusal" else {"logprobs": part["logprobs"]}
    yield made("content_part.added", **at, part=part | {field: ""} | {key: [] for key in logprobs})
    for number, piece in enumerate(pieces(part[field])):
        yield made(f"{name}.delta", **at, delta=piece, **{key: part[key] if not number else [] for key in logprobs})  # fmt: skip
    yield made(f"{name}.done", **at, **{field: part[field]}, **logprobs)
    yield made("content_part.done", **at, part=part)


def _called(made: Callable[..., bytes], index: int, item: dict[str, Any]) -> Iterator[bytes]:
    """The events of a function call."""
    at: dict[str, Any] = {"item_id": item["id"], "output_index": index}
    for piece in pieces(item["arguments"]):
        yield made("function_call_arguments.delta", **at, delta=piece)
    yield made("function_call_arguments.done", **at, name=item["name"], arguments=item["arguments"])


def _response(call: Call, status: str) -> dict[str, Any]:
    asked = asked_by(call)
    body = call.body
    return {
        "id": call_id("resp", call, 0), "object": "response", "created_at": 0, "status": status,
        "background": False, "error": None, "incomplete_details": None,
        "instructions": body.get("instructions"), "max_output_tokens": asked.max_tokens,
        "metadata": body.get("metadata") or {}, "model": asked.model, "output": [],
        "parallel_tool_calls": True, "previous_response_id": None,
        "reasoning": {"effort": None, "summary": None}, "store": False,
        "temperature": asked.temperature, "text": body.get("text") or {"format": {"type": "text"}},
        "tool_choice": body.get("tool_choice") or "auto", "tools": body.get("tools") or [],
        "top_p": None, "truncation": "disabled", "usage": None, "user": None,
    }  # fmt: skip


def _items(call: Call, reply: Reply) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    if reply.text or not reply.calls:
        part = {
            "type": "output_text", "text": reply.text, "annotations": [],
            "logprobs": chat.token_logprobs(asked_by(call), reply),
        }  # fmt: skip
        if reply.finish == "refusal":
            part = {"type": "refusal", "refusal": reply.text}
        items.append({
            "type": "message", "id": call_id("msg", call, 0), "role": "assistant",
            "status": "incomplete" if reply.finish == "length" else "completed", "content": [part],
        })  # fmt: skip
    for index, made in enumerate(reply.calls):
        items.append({
            "type": "function_call", "id": call_id("fc", call, index),
            "call_id": call_id("call", call, index), "name": made.name,
            "arguments": arguments_of(made), "status": "completed",
        })  # fmt: skip
    return items


def _usage(usage: Usage) -> dict[str, Any]:
    return {
        "input_tokens": usage.prompt_tokens,
        "input_tokens_details": {"cached_tokens": usage.cached_tokens},
        "output_tokens": usage.completion_tokens,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": usage.prompt_tokens + usage.completion_tokens,
    }
