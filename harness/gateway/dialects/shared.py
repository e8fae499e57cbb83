"""What the dialects have in common."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any, Final, Protocol, TypeVar

import msgspec

from steeltrap.harness.gateway.backend import Call
from steeltrap.harness.models import Ask, Reply, ToolCall

__all__ = [
    "BadRequestError",
    "Dialect",
    "Part",
    "arguments_of",
    "asked_by",
    "call_id",
    "encode",
    "event",
    "key",
    "pieces",
    "read",
    "spoken",
    "text_of",
]

Request = TypeVar("Request")

_BESIDE: Final = {
    "encoding_format", "prompt_cache_key", "request_id", "safety_identifier", "stream",
    "stream_options", "user",
}  # fmt: skip
"""Fields that change how an answer is sent or booked, and nothing in it."""
_PIECE: Final = 48
"""Characters in one event of a stream."""

encode = msgspec.json.Encoder().encode
_encode_sorted = msgspec.json.Encoder(order="deterministic").encode


class BadRequestError(ValueError):
    """A request that cannot be understood; the message says what is wrong with it."""


class Dialect(Protocol):
    """What a dialect's module gives."""

    def ask(self, body: dict[str, Any], /) -> Ask:
        """The question that a request asks; `BadRequestError` where it is none."""

    def answer(self, call: Call, reply: Reply, /) -> dict[str, Any]:
        """The body of a whole answer."""

    def stream(self, call: Call, reply: Reply, /) -> Iterator[bytes]:
        """The answer as server-sent events."""

    def error(self, status: int, message: str, code: str, /) -> dict[str, Any]:
        """The body of an error."""


class Part(msgspec.Struct, frozen=True):
    """One part of a message's content."""

    type: str = "text"
    text: str = ""


def read(body: dict[str, Any], kind: type[Request]) -> Request:
    """The body as a request of a dialect; unknown fields are left alone.

    Raises:
        BadRequestError: a field is missing or of the wrong kind.
    """
    try:
        return msgspec.convert(body, kind)
    except msgspec.ValidationError as error:
        raise BadRequestError(str(error)) from None


def text_of(content: str | list[Part] | None) -> str:
    """The text of a message's content; parts that hold none are left out."""
    if isinstance(content, str):
        return content
    return "\n".join(part.text for part in content or () if part.text)


def spoken(text: str, calls: list[tuple[str, str]]) -> str:
    """What an assistant said, with the functions it called as `name(arguments)`."""
    lines = [text] if text else []
    return "\n".join(lines + [f"{name}({arguments})" for name, arguments in calls])


def key(dialect: str, body: dict[str, Any]) -> str:
    """What a recording of a call is found by."""
    kept = {name: value for name, value in body.items() if name not in _BESIDE}
    return hashlib.sha256(_encode_sorted([dialect, kept])).hexdigest()


def asked_by(call: Call) -> Ask:
    """The question of a chat call."""
    assert call.ask is not None
    return call.ask


def call_id(prefix: str, call: Call, index: int) -> str:
    """Id of the index-th function call of an answer: the same whenever the call is the same."""
    return f"{prefix}_{call.key[:20]}{call.nth:04d}{index:02d}"


def pieces(text: str) -> Iterator[str]:
    """A text in the pieces in which it is streamed; nothing for an empty one."""
    return (text[at : at + _PIECE] for at in range(0, len(text), _PIECE))


def arguments_of(call: ToolCall) -> str:
    """A function call's arguments as JSON."""
    return encode(call.arguments).decode()


def event(data: dict[str, Any], name: str = "") -> bytes:
    """One server-sent event."""
    head = f"event: {name}\n".encode() if name else b""
    return head + b"data: " + encode(data) + b"\n\n"
