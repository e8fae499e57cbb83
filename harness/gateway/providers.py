"""What real providers are asked, and how their answers are read.

Two dialects: OpenAI's chat completions, which every compatible server speaks, and Anthropic's
messages. A call that came in the provider's own dialect goes through as the system wrote it, but
for the model's name and the streaming, so that nothing is lost that an `Ask` does not hold; any
other call is put into the dialect from its `Ask`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, Literal, Protocol

import msgspec

from steeltrap.harness.gateway.backend import BackendError, Call
from steeltrap.harness.models import Ask, Message, Reply, Tool, ToolCall, Usage

__all__ = ["ChatCompletions", "Forms", "MessagesAPI", "Provider", "request", "vectors"]

Finish = Literal["stop", "length", "tools", "refusal"]


class Provider(Protocol):
    """One dialect, as a client speaks it."""

    @property
    def dialect(self) -> str:
        """The calls that go through as they are."""

    @property
    def path(self) -> str:
        """Below the base address."""

    @property
    def kept(self) -> frozenset[str]:
        """Parameters that cannot be left out."""

    def headers(self, key: str) -> dict[str, str]:
        """What shows the key; nothing else may hold it."""

    def body(self, ask: Ask, model: str) -> dict[str, Any]:
        """The request that asks this.

        Raises:
            BackendError: the dialect cannot ask it.
        """

    def reply(self, answer: bytes) -> Reply:
        """A whole answer, read.

        Raises:
            BackendError: it is none.
        """


def request(provider: Provider, call: Call, model: str) -> dict[str, Any]:
    """The body of a chat call to a provider's model.

    Raises:
        BackendError: the dialect cannot ask it.
    """
    if call.dialect == provider.dialect:
        sent = {k: v for k, v in call.body.items() if k not in ("stream", "stream_options")}
        return sent | {"model": model}
    assert call.ask is not None
    return provider.body(call.ask, model)


# ---------------------------------------------------------------- chat completions


class _Function(msgspec.Struct, frozen=True):
    name: str = ""
    arguments: str | dict[str, Any] | None = ""


class _Calls(msgspec.Struct, frozen=True):
    function: _Function = _Function()


class _Part(msgspec.Struct, frozen=True):
    text: str = ""


class _Said(msgspec.Struct, frozen=True):
    content: str | list[_Part] | None = None
    refusal: str | None = None
    tool_calls: list[_Calls] | None = None


class _Token(msgspec.Struct, frozen=True):
    token: str
    logprob: float
    top_logprobs: list[_Token] | None = None


class _Logprobs(msgspec.Struct, frozen=True):
    content: list[_Token] | None = None


class _Choice(msgspec.Struct, frozen=True):
    message: _Said
    finish_reason: str | None = None
    logprobs: _Logprobs | None = None


class _Details(msgspec.Struct, frozen=True):
    cached_tokens: int | None = None


class _ChatUsage(msgspec.Struct, frozen=True):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_tokens_details: _Details | None = None
    prompt_cache_hit_tokens: int | None = None
    """The same as `cached_tokens`, in DeepSeek's words."""


class _Completion(msgspec.Struct, frozen=True):
    choices: list[_Choice] = []
    usage: _ChatUsage | None = None
    error: Any = None


_FINISHED: Final[Mapping[str, Finish]] = {
    "length": "length", "tool_calls": "tools", "function_call": "tools",
    "content_filter": "refusal",
}  # fmt: skip


class ChatCompletions:
    """OpenAI's chat completions, as a client speaks them.

    Args:
        limit: what the greatest number of tokens is called: OpenAI's newer models refuse
            `max_tokens`, many compatible servers do not know `max_completion_tokens`.
    """

    dialect = "chat"
    path = "/chat/completions"
    kept = frozenset({"model", "messages", "tools"})

    def __init__(self, limit: Literal["max_tokens", "max_completion_tokens"]) -> None:
        self._limit = limit

    def headers(self, key: str) -> dict[str, str]:
        """What shows the key."""
        return {"Authorization": f"Bearer {key}"} if key else {}

    def body(self, ask: Ask, model: str) -> dict[str, Any]:
        """The request that asks this."""
        body: dict[str, Any] = {
            "model": model,
            "messages": [_chat_message(m) for m in ask.messages],
        }
        if ask.form == "schema":
            schema = {"name": _identifier(ask.schema_name) or "answer", "schema": ask.schema}
            body["response_format"] = {"type": "json_schema", "json_schema": schema}
        elif ask.form == "json":
            body["response_format"] = {"type": "json_object"}
            if "json" not in ask.text.lower():  # OpenAI refuses the format without the word
                body["messages"] = _told(body["messages"], "Answer with one JSON object.")
        if ask.tools:
            body["tools"] = [
                {"type": "function", "function": _function(tool)} for tool in ask.tools
            ]
            if ask.tool_choice in ("none", "required"):
                body["tool_choice"] = ask.tool_choice
            elif ask.tool_choice != "auto":
                chosen = {"name": ask.tool_choice}
                body["tool_choice"] = {"type": "function", "function": chosen}
        if ask.max_tokens is not None:
            body[self._limit] = ask.max_tokens
        if ask.temperature is not None:
            body["temperature"] = ask.temperature
        if ask.logprobs:
            body |= {"logprobs": True, "top_logprobs": ask.logprobs}
        return body

    def reply(self, answer: bytes) -> Reply:
        """A whole answer, read."""
        given = _read(answer, _Completion)
        if not given.choices:
            raise _refused(given.error) if given.error else _no_answer(answer, "has no choices")
        choice = given.choices[0]
        said = choice.message
        text = said.content if isinstance(said.content, str) else _joined(said.content)
        finish: Finish = _FINISHED.get(choice.finish_reason or "", "stop")
        if said.refusal:
            text, finish = said.refusal, "refusal"
        asked = [(c.function.name, c.function.arguments or "{}") for c in said.tool_calls or ()]
        tokens = (choice.logprobs.content if choice.logprobs else None) or ()
        logprobs = tuple(
            {top.token: top.logprob for top in (token, *(token.top_logprobs or ()))}
            for token in tokens
        )
        return _reply(text, asked, finish, _chat_usage(given.usage), logprobs)


def _chat_message(message: Message) -> dict[str, Any]:
    # What a tool gave belongs to the id of a call, which an `Ask` does not keep.
    role = "user" if message.role == "tool" else message.role
    return {"role": role, "content": message.text}


def _function(tool: Tool) -> dict[str, Any]:
    parameters = tool.parameters or {"type": "object", "properties": {}}
    return {"name": tool.name, "description": tool.description, "parameters": parameters}


def _chat_usage(given: _ChatUsage | None) -> Usage:
    if given is None:
        return Usage()
    details = given.prompt_tokens_details or _Details()
    return Usage(
        prompt_tokens=given.prompt_tokens or 0,
        completion_tokens=given.completion_tokens or 0,
        cached_tokens=details.cached_tokens or given.prompt_cache_hit_tokens or 0,
    )


# ---------------------------------------------------------------- messages


class _Block(msgspec.Struct, frozen=True):
    type: str
    text: str = ""
    name: str = ""
    input: dict[str, Any] = {}


class _MessagesUsage(msgspec.Struct, frozen=True):
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    cache_creation_input_tokens: int | None = None


class _Answer(msgspec.Struct, frozen=True):
    content: list[_Block] | None = None
    stop_reason: str | None = None
    usage: _MessagesUsage = _MessagesUsage()
    error: Any = None


_STOPPED: Final[Mapping[str, Finish]] = {
    "max_tokens": "length", "model_context_window_exceeded": "length", "tool_use": "tools",
    "refusal": "refusal",
}  # fmt: skip
_ANSWER: Final = "answer_as_json"
"""Tool by which JSON is had: the dialect has no format for any JSON object."""
_MAX_TOKENS: Final = 4096
"""The dialect insists on a limit; this one where the system sets none."""
_CACHED_CHARS: Final = 4096
"""From about 1 024 tokens on, a prompt is kept by the provider where it is marked."""


class MessagesAPI:
    """Anthropic's messages, as a client speaks them."""

    dialect = "messages"
    path = "/v1/messages"
    kept = frozenset({"model", "messages", "max_tokens", "system", "tools", "tool_choice"})

    def headers(self, key: str) -> dict[str, str]:
        """What shows the key."""
        return {"x-api-key": key, "anthropic-version": "2023-06-01"}

    def body(self, ask: Ask, model: str) -> dict[str, Any]:
        """The request that asks this; JSON is had by a tool that must be called."""
        if ask.logprobs:
            raise BackendError(
                "log probabilities are asked for, and Anthropic's models give none: use an"
                " OpenAI-compatible model, or set the system up without them (in Graphiti: a search"
                " without cross-encoder)",
                status=400,
            )
        system, messages = _conversation(ask.messages)
        body: dict[str, Any] = {"model": model, "max_tokens": ask.max_tokens or _MAX_TOKENS}
        if system:
            body["system"] = system
        body["messages"] = messages
        tools = [_tool(tool) for tool in ask.tools]
        choice = {"type": {"required": "any"}.get(ask.tool_choice, ask.tool_choice)}
        if choice["type"] not in ("auto", "none", "any"):
            choice = {"type": "tool", "name": ask.tool_choice}
        if ask.form != "text" and choice["type"] in ("auto", "none"):
            choice = (
                {"type": "any"}
                if tools and choice["type"] == "auto"
                else {"type": "tool", "name": _ANSWER}
            )
            tools.append(_answer_tool(ask))
        if tools:
            body |= {"tools": tools, "tool_choice": choice}
        if ask.temperature is not None:
            body["temperature"] = min(ask.temperature, 1.0)
        return body

    def reply(self, answer: bytes) -> Reply:
        """A whole answer, read; the JSON that was asked for is its text."""
        given = _read(answer, _Answer)
        if given.content is None:
            raise _refused(given.error) if given.error else _no_answer(answer, "has no content")
        text = "".join(block.text for block in given.content if block.type == "text")
        asked: list[tuple[str, str | dict[str, Any]]] = []
        finish: Finish = _STOPPED.get(given.stop_reason or "", "stop")
        for block in given.content:
            if block.type == "tool_use" and block.name == _ANSWER:
                text = msgspec.json.encode(block.input).decode()
            elif block.type == "tool_use":
                asked.append((block.name, block.input))
        if finish == "tools" and not asked:
            finish = "stop"
        return _reply(text, asked, finish, _messages_usage(given.usage))


def _conversation(given: tuple[Message, ...]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """System blocks and messages; there is at least one message, and the user begins."""
    system: list[dict[str, Any]] = []
    messages: list[dict[str, Any]] = []
    for message in given:
        if not message.text.strip():  # refused by the provider
            continue
        if message.role == "system":
            system.append({"type": "text", "text": message.text})
        else:
            role = "assistant" if message.role == "assistant" else "user"
            messages.append({"role": role, "content": message.text})
    if not messages:
        return [], [{"role": "user", "content": system or "(nothing)"}]
    if messages[0]["role"] == "assistant":
        messages.insert(0, {"role": "user", "content": "(begin)"})
    if sum(len(block["text"]) for block in system) >= _CACHED_CHARS:
        system[-1]["cache_control"] = {"type": "ephemeral"}
    return system, messages


def _tool(tool: Tool) -> dict[str, Any]:
    schema = tool.parameters or {"type": "object", "properties": {}}
    return {"name": tool.name, "description": tool.description, "input_schema": schema}


def _answer_tool(ask: Ask) -> dict[str, Any]:
    what = f"Give the answer: {ask.schema_name}." if ask.schema_name else "Give the answer."
    schema = ask.schema or {"type": "object", "additionalProperties": True}
    return {"name": _ANSWER, "description": what, "input_schema": schema}


def _messages_usage(given: _MessagesUsage) -> Usage:
    cached = given.cache_read_input_tokens or 0
    return Usage(
        prompt_tokens=(given.input_tokens or 0) + cached + (given.cache_creation_input_tokens or 0),
        completion_tokens=given.output_tokens or 0,
        cached_tokens=cached,
    )


# ---------------------------------------------------------------- embeddings


class _Vector(msgspec.Struct, frozen=True):
    embedding: list[float]
    index: int | None = None


class _Vectors(msgspec.Struct, frozen=True):
    data: list[_Vector] | None = None
    error: Any = None


def vectors(answer: bytes, texts: int) -> list[list[float]]:
    """The vectors in an answer of OpenAI's embeddings, in the order of the texts.

    Raises:
        BackendError: there is not one for each text.
    """
    given = _read(answer, _Vectors)
    if given.data is None or len(given.data) != texts:
        if given.error:
            raise _refused(given.error)
        raise _no_answer(answer, f"has {len(given.data or ())} vectors for {texts} texts")
    places = [i if row.index is None else row.index for i, row in enumerate(given.data)]
    return [given.data[i].embedding for i in sorted(range(texts), key=places.__getitem__)]


# ---------------------------------------------------------------- older forms


_BARE: Final = {"temperature", "logprobs"}
"""Parameters that an error may name without quotes, beside those with an underscore in them."""
_LIMITS: Final = ("max_completion_tokens", "max_tokens")


class Forms:
    """What a server does not know of a dialect, and what it gets instead.

    Compatible servers are compatible in part. What one refuses is remembered: a token limit goes
    by its other name, a JSON schema becomes any JSON object, then plain words in the prompt; other
    parameters are left out.
    """

    def __init__(self, kept: frozenset[str]) -> None:
        self._kept = kept
        self.refused: set[str] = set()

    def fit(self, body: dict[str, Any]) -> dict[str, Any]:
        """The body without what was refused."""
        fitting = dict(body)
        for name, other in (_LIMITS, _LIMITS[::-1]):
            if name in fitting and name in self.refused:
                fitting[other] = fitting.pop(name)
        if self.refused & {"json_schema", "json_object"}:
            fitting = self._plainer(fitting)
        return {name: value for name, value in fitting.items() if name not in self.refused}

    def learn(self, body: dict[str, Any], sent: dict[str, Any], error: bytes) -> bool:
        """Take note of what an error refuses; whether `body` can now be sent otherwise."""
        name = self._named(sent, error)
        if name == "response_format":
            self.refused.add(_form(sent) if _form(sent) == "json_schema" else "json_object")
        elif name:
            self.refused.add(name)
        return bool(name) and self.fit(body) != sent

    def _plainer(self, body: dict[str, Any]) -> dict[str, Any]:
        form = _form(body)
        if form not in self.refused:
            return body
        schema = body["response_format"].get("json_schema", {}).get("schema")
        words = "Answer with one JSON object and nothing else."
        if schema:
            words += f" It must fit this JSON schema: {msgspec.json.encode(schema).decode()}"
        plainer = body | {"messages": _told(body["messages"], words)}
        if "json_object" in self.refused:
            del plainer["response_format"]
        else:
            plainer["response_format"] = {"type": "json_object"}
        return plainer

    def _named(self, sent: dict[str, Any], error: bytes) -> str:
        """The parameter that an error names first, of those that can be done without."""
        words = error.decode(errors="replace")
        free = [name for name in sent if name not in self._kept]
        found = {name: at for name in free if (at := _position(name, words)) is not None}
        param = _param(error)
        return param if param in free else min(found, key=found.__getitem__, default="")


def _form(body: dict[str, Any]) -> str:
    form = body.get("response_format")
    return str(form.get("type", "")) if isinstance(form, dict) else ""


def _param(error: bytes) -> str:
    try:
        given = msgspec.json.decode(error)
        return str(given["error"]["param"]).split(".")[0]
    except (msgspec.DecodeError, RecursionError, KeyError, TypeError):
        return ""


def _position(name: str, words: str) -> int | None:
    pattern = rf"(?<=['\"`]){name}(?=['\"`.])"
    if "_" in name or name in _BARE:
        pattern = rf"\b{name}\b"
    if name == "response_format":
        pattern = r"\b(response_format|json_schema|json_object)\b"
    match = re.search(pattern, words)
    return match.start() if match else None


def _told(messages: list[dict[str, Any]], words: str) -> list[dict[str, Any]]:
    """Messages whose first system message says something more; made where there is none."""
    first = messages[0] if messages else {}
    if first.get("role") in ("system", "developer") and isinstance(first.get("content"), str):
        return [first | {"content": f"{first['content']}\n\n{words}"}, *messages[1:]]
    return [{"role": "system", "content": words}, *messages]


# ---------------------------------------------------------------- helpers

Kind = Any


def _read(answer: bytes, kind: type[Kind]) -> Kind:
    try:
        return msgspec.json.decode(answer, type=kind)
    except (msgspec.DecodeError, RecursionError) as error:
        raise _no_answer(answer, f"cannot be read ({error})") from None


def _no_answer(answer: bytes, why: str) -> BackendError:
    shown = answer[:200].decode(errors="replace")
    return BackendError(f"an answer {why}: {shown!r}", status=502)


def _refused(error: Any) -> BackendError:
    """An error that came with status 200, as some routers send it."""
    given = error if isinstance(error, dict) else {"message": error}
    code = given.get("code")
    status = code if isinstance(code, int) and 400 <= code < 600 else 502
    return BackendError(f"answered with an error: {given.get('message')}", status=status)


def _reply(
    text: str,
    asked: list[tuple[str, str | dict[str, Any]]],
    finish: Finish,
    usage: Usage,
    logprobs: tuple[dict[str, float], ...] = (),
) -> Reply:
    """A reply; a function call whose arguments are no JSON object is text that the model wrote."""
    calls = []
    for name, arguments in asked:
        given = _arguments(arguments)
        if given is None:
            return Reply(f"{text}{arguments}", (), finish, (), usage)
        calls.append(ToolCall(name, given))
    return Reply(text, tuple(calls), finish, logprobs, usage)


def _arguments(given: str | dict[str, Any]) -> dict[str, Any] | None:
    if isinstance(given, dict):
        return given
    try:
        return msgspec.json.decode(given, type=dict[str, Any])
    except (msgspec.DecodeError, RecursionError):
        return None


def _joined(parts: list[_Part] | None) -> str:
    return "".join(part.text for part in parts or ())


def _identifier(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]", "_", name)[:64]
