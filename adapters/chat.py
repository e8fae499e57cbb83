"""A chat model as the memories of this repository ask it, and the texts that they ask it with.

All of them ask through OpenAI's client, at the address that they were connected to. An answer that
cannot be had, or that is no use, is a `MemoryFault`: whoever asks before writing has then stored
nothing.
"""

from __future__ import annotations

import copy
import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from string import Template
from typing import Any, Final, Self, TypeVar

import msgspec

from steeltrap.harness.memory import MemoryFault
from steeltrap.harness.models import Models, Tool, ToolCall

__all__ = ["Chat", "Prompt", "prompts"]

T = TypeVar("T")
_TRIES: Final = 2


class Prompt(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One entry of a `prompts.toml`."""

    system: str
    user: str
    """With `$name` where something is filled in."""

    def messages(self, **filled: str) -> list[dict[str, Any]]:
        """The two messages, with everything filled in that `user` names."""
        user = Template(self.user.strip()).substitute(filled)
        return [
            {"role": "system", "content": self.system.strip()},
            {"role": "user", "content": user},
        ]


@cache
def prompts(package: str) -> Mapping[str, Prompt]:
    """The entries of `prompts.toml` of a package, by name.

    A changed text is a new entry, so that a result names what it was made with.
    """
    text = (files(package) / "prompts.toml").read_text("utf-8")
    return msgspec.convert(tomllib.loads(text), dict[str, Prompt])


class Chat:
    """The chat model of one memory.

    Args:
        name: of the memory, for messages.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._models: Models | None = None
        self._client: Any = None
        self._lent = False

    def connect(self, models: Models) -> None:
        """Ask this model."""
        self._models = models

    def open(self) -> None:
        """Make the client.

        Raises:
            MemoryFault: there is no model.
        """
        if self._models is None:
            raise MemoryFault(f"{self._name}: no model is connected; call connect(models) first")
        from openai import OpenAI

        self.close()
        self._client = OpenAI(
            base_url=self._models.openai_url, api_key=self._models.key,
            timeout=self._models.timeout_s, max_retries=self._models.retries,
        )  # fmt: skip

    def close(self) -> None:
        """Close the connections; does nothing where there are none, or they are another's."""
        if self._client is not None and not self._lent:
            self._client.close()
        self._client = None
        self._lent = False

    def lend(self) -> Self:
        """Another that asks through these connections, and leaves them open when it is closed."""
        other = copy.copy(self)
        other._lent = True
        return other

    def text(self, messages: Sequence[Mapping[str, Any]]) -> str:
        """A free answer, whole and not empty.

        Raises:
            MemoryFault: there is none.
        """
        message = self._message(messages)
        if not (message.content or "").strip():
            raise MemoryFault(f"{self._name}: the model's answer is empty")
        return str(message.content)

    def filled(self, messages: Sequence[Mapping[str, Any]], name: str, form: type[T]) -> T:
        """An answer in a form; where it does not fit, the model is told why and asked once more.

        Args:
            messages: of the prompt.
            name: of the form, as the model and whoever answers for it see it.
            form: a `msgspec.Struct` without optional fields.

        Raises:
            MemoryFault: there is none.
        """
        told, problem = list(messages), ""
        for _ in range(_TRIES):
            schema = {"name": name, "strict": True, "schema": _schema(form)}
            message = self._message(
                told, response_format={"type": "json_schema", "json_schema": schema}
            )
            try:
                return msgspec.json.decode(message.content or "", type=form)
            except msgspec.DecodeError as error:  # ValidationError is one
                problem = str(error)
                told = [*messages, {"role": "user", "content": f"Your last answer could not be used: {problem}. Answer again, in the form that is asked for."}]  # fmt: skip
        raise MemoryFault(f"{self._name}: no usable answer in {_TRIES} tries: {problem}")

    def calls(
        self,
        messages: Sequence[Mapping[str, Any]],
        tools: Sequence[Tool],
        choice: str = "auto",
    ) -> tuple[list[ToolCall], str]:
        """The functions that the model calls, and what it says beside.

        Args:
            messages: of the prompt.
            tools: what it may call.
            choice: auto, none, required, or the name of the tool that must be called.

        Raises:
            MemoryFault: there is no answer, or its arguments are no JSON object.
        """
        named: Any = {"type": "function", "function": {"name": choice}}
        message = self._message(
            messages,
            tools=[{"type": "function", "function": msgspec.to_builtins(tool)} for tool in tools],
            tool_choice=choice if choice in ("auto", "none", "required") else named,
        )
        try:
            called = [
                ToolCall(
                    call.function.name,
                    msgspec.json.decode(call.function.arguments, type=dict[str, Any]),
                )
                for call in message.tool_calls or ()
            ]
        except msgspec.DecodeError as error:
            raise MemoryFault(f"{self._name}: the arguments of a call: {error}") from error
        return called, str(message.content or "")

    def _message(self, messages: Sequence[Mapping[str, Any]], **options: Any) -> Any:
        if self._client is None or self._models is None:
            raise MemoryFault(
                f"{self._name}: not open; call open(folder) first, and nothing after close()"
            )
        from openai import OpenAIError

        try:
            reply = self._client.chat.completions.create(
                model=self._models.chat, temperature=0, messages=list(messages), **options
            )
        except OpenAIError as error:
            raise MemoryFault(f"{self._name}: the model could not be asked: {error}") from error
        choice = reply.choices[0]
        if choice.finish_reason not in ("stop", "tool_calls"):
            # half an answer would lose the rest without a word
            raise MemoryFault(
                f"{self._name}: the model's answer is not whole ({choice.finish_reason})"
            )
        return choice.message


def _schema(form: type[Any]) -> dict[str, Any]:
    """The JSON schema of a form in the subset that OpenAI's strict mode takes: every property is
    required, no other is allowed, and there are no defaults.
    """
    (root,), parts = msgspec.json.schema_components([form], ref_template="#/$defs/{name}")
    strict = {name: _strict(part) for name, part in parts.items()}
    top: dict[str, Any] = strict.pop(root["$ref"].rpartition("/")[2])
    return {**top, "$defs": strict} if strict else top


def _strict(part: Any) -> Any:
    if isinstance(part, list):
        return [_strict(each) for each in part]
    if not isinstance(part, dict):
        return part
    new = {
        name: _strict(each)
        for name, each in part.items()
        if name not in ("title", "default", "discriminator", "description")
    }
    if "enum" in new:
        new["type"] = "string"
    if isinstance(new.get("properties"), dict):
        new |= {"required": list(new["properties"]), "additionalProperties": False}
    return new
