"""Models as systems ask them and as somebody answers for them.

Every model call of a system goes over HTTP to one gateway on loopback. The gateway takes it out
of its dialect into an `Ask`, has it answered, and puts the `Reply` back into the dialect. How a
system's own prompts are answered when the ideal model stands behind the gateway is written beside
its adapter, as an `Answerer`: a function from an `Ask` and a `Mind` to a `Reply`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, Protocol, runtime_checkable

import msgspec

from steeltrap.harness.statements import Statement

__all__ = [
    "Answerer",
    "Ask",
    "Asked",
    "Message",
    "Mind",
    "Models",
    "NotUnderstood",
    "Reply",
    "Tool",
    "ToolCall",
    "Usage",
    "UsesModels",
]


class Models(msgspec.Struct, frozen=True):
    """Where a system finds its models: all that it is told of them."""

    url: str
    """Address of the gateway without `/v1`, as Anthropic's client takes it."""
    chat: str
    """Name of the chat model."""
    embedding: str
    """Name of the embedding model."""
    dimension: int
    """Of its vectors."""
    key: str = "none"
    """Clients insist on one; the gateway takes any."""
    timeout_s: float = 120.0
    """After which a client shall give a call up."""
    retries: int = 2
    """How often a client shall ask again after 429, 5xx or a broken connection."""

    @property
    def openai_url(self) -> str:
        """The address as OpenAI's client takes it."""
        return f"{self.url}/v1"


@runtime_checkable
class UsesModels(Protocol):
    """A system that asks models: a memory's optional capability, called once, before `open`."""

    def connect(self, models: Models) -> None:
        """Take the address of the models; nothing else may be asked."""


# ---------------------------------------------------------------- one call


class Message(msgspec.Struct, frozen=True):
    """One message of a prompt; parts that are not text are left out."""

    role: str
    """system (developer counts as such), user, assistant or tool."""
    text: str


class Tool(msgspec.Struct, frozen=True):
    """A function that the model may call."""

    name: str
    description: str = ""
    parameters: dict[str, Any] = {}
    """JSON schema."""


class Ask(msgspec.Struct, frozen=True):
    """A chat call, free of the dialect in which it came."""

    model: str
    messages: tuple[Message, ...]
    form: Literal["text", "json", "schema"] = "text"
    """What the answer has to be: free text, any JSON object, or JSON of a schema."""
    schema_name: str = ""
    schema: dict[str, Any] = {}
    tools: tuple[Tool, ...] = ()
    tool_choice: str = "auto"
    """auto, none, required, or the name of the tool that must be called."""
    max_tokens: int | None = None
    temperature: float | None = None
    logprobs: int = 0
    """How many alternatives of each token shall be given with their log probabilities."""

    def said(self, role: str) -> str:
        """All text of one role, joined by blank lines."""
        return "\n\n".join(message.text for message in self.messages if message.role == role)

    @property
    def text(self) -> str:
        """All that the prompt shows."""
        return "\n\n".join(message.text for message in self.messages)


class ToolCall(msgspec.Struct, frozen=True):
    """The model calls a function."""

    name: str
    arguments: dict[str, Any]


class Usage(msgspec.Struct, frozen=True, omit_defaults=True):
    """What calls cost. Sums add up field by field."""

    calls: int = 0
    """Requests that reached the gateway, retries and embeddings included."""
    failed: int = 0
    """Of these, how many were answered by an error or broken off."""
    embeddings: int = 0
    """Of these, how many asked for vectors."""
    prompt_tokens: int = 0
    """All that was sent to chat models, cached or not."""
    completion_tokens: int = 0
    cached_tokens: int = 0
    """The part of the prompts that the provider says it had read before."""
    prefix_tokens: int = 0
    """The part that an exact-prefix cache would have had: our estimate, for every back end alike."""
    embedded_tokens: int = 0
    ms: float = 0.0
    """Wall time that the back end took; not compared."""

    def __add__(self, other: Usage) -> Usage:
        pairs = zip(msgspec.structs.astuple(self), msgspec.structs.astuple(other), strict=True)
        return Usage(*(a + b for a, b in pairs))


class Reply(msgspec.Struct, frozen=True, omit_defaults=True):
    """An answer to an `Ask`."""

    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    finish: Literal["stop", "length", "tools", "refusal"] = "stop"
    logprobs: tuple[dict[str, float], ...] = ()
    """For each token of `text`, where they were asked for: alternatives with their logarithms."""
    usage: Usage = Usage()
    """As the provider counted; the gateway counts where it says nothing."""


# ---------------------------------------------------------------- the ideal model


class NotUnderstood(ValueError):
    """A prompt, or a sentence in it, that the ideal model does not know: a fault of the harness.

    Never answered silently. The gateway adds the system, its version and the first lines.
    """


class Asked(msgspec.Struct, frozen=True):
    """What a question of the script asks for."""

    places: tuple[tuple[str, str], ...]
    """(topic, field) of what it is about."""
    mode: Literal["current", "previous", "as-of", "history"]
    of: str = ""
    """as-of: the instant asked about, ISO 8601."""


class Mind(Protocol):
    """What the ideal model understands: every sentence of the script, from what a prompt shows.

    Its failings (facts missed, wrong hosts, contradictions overlooked, invented facts) are dials;
    they are already in what these methods give, so an answerer never makes mistakes of its own.
    """

    def facts(self, utterance: str, shown: str = "") -> Sequence[Statement]:
        """What one utterance of the script states; nothing for small talk.

        Args:
            utterance: a turn's text alone, without speaker or stamp; white space may differ.
            shown: whatever else the prompt shows. A topic that an utterance leaves out is only
                known where it stands there.

        Raises:
            NotUnderstood: no turn of the script reads so.
        """

    def read(self, text: str) -> Statement | None:
        """What a stored text says that was made from a statement of this mind.

        The text is a `Statement.text`, or a turn of the script that states one thing. None:
        neither (a stored turn of small talk, another system's words).
        """

    def contradicts(self, new: Statement, old: Statement) -> bool:
        """Whether a new statement puts an old one out of force; sometimes overlooked by a dial."""

    def repeats(self, new: Statement, old: Statement) -> bool:
        """Whether a new statement says nothing that an old one does not say."""

    def asked(self, question: str) -> Asked:
        """What a question of the script is about.

        Raises:
            NotUnderstood: no question of the script reads so.
        """


Answerer = Callable[[Ask, Mind], Reply | None]
"""Answers the prompts of one system; None: not a prompt of it that is known."""
