"""An interpreter that asks a language model, through the client of OpenAI or of Anthropic.

Any server that speaks one of the two dialects will do. The form of an answer is derived from the
statement types, so the two cannot drift apart. What the model is told stands in `prompts/`: the
part before `<!-- message -->` is the same in every call and can be cached by the server, the
part after it is a `string.Template`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from string import Template
from typing import Any, Final, Literal, NamedTuple, TypeVar

import msgspec

from steeltrap.reference_system.interpret.base import InterpretationError, Known, Sketch, Speech
from steeltrap.reference_system.state import moment
from steeltrap.reference_system.statements import (
    Association,
    Dependency,
    Fact,
    Mode,
    Place,
    Question,
    Same,
    Statement,
    Withdrawal,
)

__all__ = ["PROMPTS", "ModelFault", "ModelInterpreter", "Usage"]

PROMPTS: Final = Path(__file__).with_name("prompts")
_DIVIDER: Final = "<!-- message -->\n"
_TRIES: Final = 2
_KEPT: Final = "Nothing was stored."
_HINTS: Final[Mapping[int | None, tuple[str, ...]]] = {
    None: ("Is the address right, and is the server up?",),
    401: ("Is the API key right?",),
    404: ("Are the address and the model's name right?",),
    429: ("Wait, or raise `retries`.",),
}


class ModelFault(RuntimeError):
    """The model could not be asked: network, limits, key or settings. Nothing was stored."""

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status
        """Of the HTTP reply; None where there was none."""


class Usage(msgspec.Struct, frozen=True):
    """Tokens as the server counted them."""

    calls: int = 0
    prompt_tokens: int = 0
    """All that was sent, cached or not."""
    completion_tokens: int = 0
    cached_tokens: int = 0
    """The part of the prompt that the server had read before."""

    def __add__(self, other: Usage) -> Usage:
        return Usage(*(a + b for a, b in zip(msgspec.structs.astuple(self), msgspec.structs.astuple(other), strict=True)))  # fmt: skip


class _Statements(msgspec.Struct, frozen=True):
    statements: list[Statement]


class _Asked(msgspec.Struct, frozen=True):
    """`Question` without its text, which the model need not repeat."""

    places: tuple[Place, ...]
    mode: Mode
    as_of: str | None = None
    recorded_by: str | None = None


_Answer = TypeVar("_Answer", _Statements, _Asked)


class _Prompt(NamedTuple):
    rules: str
    message: str
    name: str
    """Of the form that the answer has."""
    kind: type[Any]


class _Reply(NamedTuple):
    content: bytes
    """JSON."""
    fault: str
    """Why there is no whole answer; empty if there is one."""
    usage: Usage


class ModelInterpreter:
    """Asks a model, and once more where its answer is of no use.

    Args:
        client: `openai.OpenAI` or `anthropic.Anthropic`, or what behaves like it.
        model: its name, as the server knows it.
        dialect: which of the two the client speaks.
        topics_shown: how many stored topics are put before the model.
        max_tokens: bound on an answer.
        prompts: the folder of `facts.md` and `question.md`.
        options: further arguments of each request, such as `temperature` or `seed`, as far as
            the model takes them.

    Attributes:
        last: usage of the last call.
        usage: usage of all calls.
    """

    def __init__(
        self,
        client: Any,
        model: str,
        *,
        dialect: Literal["openai", "anthropic"],
        topics_shown: int = 12,
        max_tokens: int = 2000,
        prompts: Path = PROMPTS,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        if dialect not in ("openai", "anthropic"):
            raise ValueError(f"dialect '{dialect}': it is openai or anthropic")
        self._client = client
        self._model = model
        self._dialect = dialect
        self._topics_shown = topics_shown
        self._max_tokens = max_tokens
        self._options = dict(options or {})
        self._facts = _read(prompts / "facts.md")
        self._question = _read(prompts / "question.md")
        self.last = Usage()
        self.usage = Usage()

    @classmethod
    def openai(
        cls,
        model: str,
        base_url: str | None = None,
        api_key: str | None = None,
        *,
        timeout_s: float = 120.0,
        retries: int = 2,
        **settings: Any,
    ) -> ModelInterpreter:
        """Through OpenAI's client.

        Args:
            model: its name.
            base_url: address of the server, with `/v1`; None: `OPENAI_BASE_URL`, or OpenAI.
            api_key: None: `OPENAI_API_KEY`.
            timeout_s: of one request.
            retries: how often the client asks again after a network error, 429 or 5xx.
            settings: as for the class.
        """
        from openai import OpenAI

        client = OpenAI(base_url=base_url, api_key=api_key, timeout=timeout_s, max_retries=retries)
        return cls(client, model, dialect="openai", **settings)

    @classmethod
    def anthropic(
        cls,
        model: str,
        base_url: str | None = None,
        api_key: str | None = None,
        *,
        timeout_s: float = 120.0,
        retries: int = 2,
        **settings: Any,
    ) -> ModelInterpreter:
        """Through Anthropic's client; see `openai`. Its addresses are without `/v1`."""
        from anthropic import Anthropic

        client = Anthropic(
            base_url=base_url, api_key=api_key, timeout=timeout_s, max_retries=retries
        )
        return cls(client, model, dialect="anthropic", **settings)

    def __repr__(self) -> str:
        return f"ModelInterpreter.{self._dialect}({self._model!r})"

    def close(self) -> None:
        """Close the client's connections."""
        self._client.close()

    # ------------------------------------------------------------ the two questions

    def statements(self, speech: Speech, known: Known) -> Sequence[Statement]:
        """What an utterance says.

        Raises:
            InterpretationError: two answers were of no use.
            ModelFault: the model could not be asked.
        """
        said = {"speaker": speech.speaker, "role": speech.role, "text": speech.text}
        rules, message = self._facts
        text = message.substitute(
            topics=_shown(known(speech.text, self._topics_shown)),
            utterance=msgspec.json.encode(said).decode(),
            **_time(speech.at),
        )
        answer: _Statements = self._answer(
            _Prompt(rules, text, "statements", _Statements), _check_statements
        )
        return tuple(answer.statements)

    def question(self, text: str, at: str, tenant: str, known: Known) -> Question:  # noqa: ARG002
        """What a question asks for; places that are not among the topics shown are left out.

        Raises:
            InterpretationError: two answers were of no use.
            ModelFault: the model could not be asked.
        """
        shown = known(text, self._topics_shown)
        rules, message = self._question
        asked = message.substitute(
            topics=_shown(shown), question=msgspec.json.encode(text).decode(), **_time(at)
        )
        answer: _Asked = self._answer(_Prompt(rules, asked, "question", _Asked), _check_asked)
        there = {Place(sketch.title, name) for sketch in shown for name in ("", *sketch.fields)}
        places = tuple(place for place in answer.places if place in there)
        return Question(text, places, answer.mode, answer.as_of, answer.recorded_by)

    def _answer(self, prompt: _Prompt, check: Callable[[_Answer], None]) -> _Answer:
        """The model's answer; where it is of no use the model is told why and asked once more."""
        problem, message = "", prompt.message
        for _ in range(_TRIES):
            reply = self._ask(prompt._replace(message=message))
            self.last = reply.usage
            self.usage += reply.usage
            try:
                if reply.fault:
                    raise ValueError(reply.fault)
                answer: _Answer = msgspec.json.decode(reply.content, type=prompt.kind)
                check(answer)
            except ValueError as error:  # msgspec's errors are of this class
                problem = str(error)
                message = f"{prompt.message}\nYour last answer could not be used: {problem}.\nAnswer again, in the form that is asked for.\n"  # fmt: skip
            else:
                return answer
        raise InterpretationError(
            f"{self._model} gave no usable answer in {_TRIES} tries: {problem}. {_KEPT}"
        )

    # ------------------------------------------------------------ the two dialects

    def _ask(self, prompt: _Prompt) -> _Reply:
        if self._dialect == "openai":
            from openai import APIError as Error
        else:
            from anthropic import APIError as Error  # type: ignore[assignment]
        ask = self._ask_openai if self._dialect == "openai" else self._ask_anthropic
        try:
            return ask(prompt)
        except (Error, json.JSONDecodeError) as error:
            raise self._fault(error) from None  # the client's own error may repeat the key

    def _fault(self, error: Exception) -> ModelFault:
        status = getattr(error, "status_code", None)
        why = f"HTTP {status}: {error}" if status else f"{error} ({type(error).__name__})"
        for name in ("api_key", "auth_token"):
            secret = getattr(self._client, name, None)
            if isinstance(secret, str) and secret:
                why = why.replace(secret, "…")
        where = getattr(self._client, "base_url", "")
        asked = f"{self._model} at {where} could not be asked: {why}"
        return ModelFault(" ".join([f"{asked}.", *_HINTS.get(status, ()), _KEPT]), status)

    def _ask_openai(self, prompt: _Prompt) -> _Reply:
        reply = self._client.chat.completions.create(
            model=self._model,
            messages=[
                {"role": "system", "content": prompt.rules},
                {"role": "user", "content": prompt.message},
            ],
            response_format={
                "type": "json_schema",
                "json_schema": {"name": prompt.name, "strict": True, "schema": _form(prompt.kind)},
            },
            max_completion_tokens=self._max_tokens,
            **self._options,
        )
        if not getattr(reply, "choices", None):
            return _Reply(b"", "the reply holds no choice", Usage(calls=1))
        choice, usage = reply.choices[0], getattr(reply, "usage", None)
        content = choice.message.content or ""
        if choice.finish_reason == "length":
            fault = _cut(self._max_tokens)
        elif choice.message.refusal or choice.finish_reason == "content_filter":
            fault = f"the model refused ({choice.message.refusal or 'content filter'})"
        else:
            fault = "" if content else "it is empty"
        return _Reply(content.encode(), fault, _counted(usage))

    def _ask_anthropic(self, prompt: _Prompt) -> _Reply:
        reply = self._client.messages.create(
            model=self._model,
            system=[{"type": "text", "text": prompt.rules, "cache_control": {"type": "ephemeral"}}],
            messages=[{"role": "user", "content": prompt.message}],
            tools=[
                {
                    "name": prompt.name,
                    "description": f"Gives the {prompt.name}.",
                    "input_schema": _form(prompt.kind),
                }
            ],
            tool_choice={"type": "tool", "name": prompt.name},
            max_tokens=self._max_tokens,
            **self._options,
        )
        blocks = getattr(reply, "content", None) or []
        called = [block for block in blocks if block.type == "tool_use"]
        if getattr(reply, "stop_reason", None) == "max_tokens":
            fault = _cut(self._max_tokens)
        elif getattr(reply, "stop_reason", None) == "refusal":
            fault = "the model refused"
        else:
            fault = "" if called else f"it does not call the tool `{prompt.name}`"
        content = msgspec.json.encode(called[0].input) if called else b""
        return _Reply(content, fault, _counted(getattr(reply, "usage", None)))


def _counted(usage: Any) -> Usage:
    """What a reply of either dialect says of its tokens; a server may leave any of it out."""

    def number(holder: Any, name: str) -> int:
        return int(getattr(holder, name, 0) or 0)

    if hasattr(usage, "prompt_tokens"):
        cached = number(getattr(usage, "prompt_tokens_details", None), "cached_tokens")
        sent, said = number(usage, "prompt_tokens"), number(usage, "completion_tokens")
    else:
        cached = number(usage, "cache_read_input_tokens")
        sent = number(usage, "input_tokens") + number(usage, "cache_creation_input_tokens") + cached
        said = number(usage, "output_tokens")
    return Usage(1, sent, said, cached)


def _cut(max_tokens: int) -> str:
    return f"it was cut off after {max_tokens} tokens; it must be shorter"


# ---------------------------------------------------------------- prompts


def _read(path: Path) -> tuple[str, Template]:
    """The rules and the message of a prompt file."""
    rules, divider, message = path.read_text(encoding="utf-8").partition(_DIVIDER)
    if not divider:
        raise ValueError(f"{path}: no line `{_DIVIDER.strip()}` between the rules and the message")
    return rules, Template(message)


def _shown(sketches: Sequence[Sketch]) -> str:
    """Stored topics as JSON, so that no title can pass for a line of the prompt."""
    return "\n".join(msgspec.json.encode(s).decode() for s in sketches) or "(none)"


def _time(at: str) -> dict[str, str]:
    return {"at": at, "weekday": datetime.fromisoformat(at).strftime("%A")}


# ---------------------------------------------------------------- the form of an answer


def _form(kind: type[Any]) -> dict[str, Any]:
    """The JSON schema of an answer in the subset that OpenAI's strict mode takes.

    There every property is required, no other is allowed, and there are no defaults.
    """
    (root,), parts = msgspec.json.schema_components([kind], ref_template="#/$defs/{name}")
    parts = {name: _strict(part) for name, part in parts.items()}
    top: dict[str, Any] = parts.pop(root["$ref"].rpartition("/")[2])
    return {**top, "$defs": parts}


def _strict(part: Any) -> Any:
    if isinstance(part, list):
        return [_strict(each) for each in part]
    if not isinstance(part, dict):
        return part
    left_out = ("title", "default", "discriminator")
    new = {name: _strict(each) for name, each in part.items() if name not in left_out}
    if "enum" in new:
        new["type"] = "string"
    if isinstance(new.get("properties"), dict):
        new |= {"required": list(new["properties"]), "additionalProperties": False}
    return new


def _check_statements(answer: _Statements) -> None:
    """What a schema cannot say: names are not empty, times are times.

    Raises:
        ValueError: with the place in the answer, as msgspec writes it.
    """
    for number, statement in enumerate(answer.statements):
        path = f"$.statements[{number}]"
        match statement:
            case Fact(topic=topic, field=field, value=value, said_by=said_by):
                _filled(path, topic=topic, field=field, value=value, said_by=said_by)
                _instants(path, valid_from=statement.valid_from, until=statement.until)
            case Withdrawal(topic=topic, field=field, said_by=said_by):
                _filled(path, topic=topic, field=field, said_by=said_by)
            case Dependency(source=source, target=target, rule=rule):
                _filled(f"{path}.source", topic=source.topic, field=source.field)
                _filled(f"{path}.target", topic=target.topic, field=target.field)
                if rule is not None and rule.over < 1:
                    raise ValueError(f"over must be at least 1 - at `{path}.rule.over`")
            case Association(topic=topic, other=other) | Same(topic=topic, other=other):
                _filled(path, topic=topic, other=other)


def _check_asked(answer: _Asked) -> None:
    _instants("$", as_of=answer.as_of, recorded_by=answer.recorded_by)


def _filled(path: str, **names: str) -> None:
    for name, text in names.items():
        if not text.strip():
            raise ValueError(f"{name} must not be empty - at `{path}.{name}`")


def _instants(path: str, **times: str | None) -> None:
    for name, text in times.items():
        if text is not None:
            try:
                moment(text)
            except ValueError as error:
                raise ValueError(f"{error}, or give null - at `{path}.{name}`") from None
