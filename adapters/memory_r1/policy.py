"""The two decisions that the paper learns, and the chat model that takes them here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Literal, Protocol

import msgspec

from steeltrap.adapters.chat import Chat, prompts

__all__ = [
    "CHOICE",
    "FACTS",
    "OPERATION",
    "Entry",
    "ModelPolicy",
    "Operation",
    "Policy",
    "extracted",
]

FACTS: Final = "facts"
OPERATION: Final = "operation"
CHOICE: Final = "choice"
"""Names of the forms that a model fills in."""
_PACKAGE: Final = "steeltrap.adapters.memory_r1"


class Entry(msgspec.Struct, frozen=True):
    """One memory."""

    text: str
    at: str
    """When it was written last, ISO 8601."""


class Operation(msgspec.Struct, frozen=True):
    """What becomes of the store when something new is said."""

    event: Literal["ADD", "UPDATE", "DELETE", "NOOP"]
    id: str
    """Of the memory that is updated or deleted."""
    text: str
    """What is added, or what the updated memory reads from now on."""


class Policy(Protocol):
    """Manages the store and reads from it; made with the memory's `Chat`."""

    def manage(self, new: str, at: str, related: Mapping[str, Entry]) -> Operation:
        """The one operation for a new piece of information.

        Args:
            new: the information.
            at: when it was said.
            related: the nearest memories by their ids, nearest first.
        """

    def distil(self, question: str, candidates: Mapping[str, Entry]) -> Sequence[str]:
        """The ids of those candidates that are of use for a question."""


class _Facts(msgspec.Struct):
    facts: list[str]


class _Choice(msgspec.Struct):
    useful: list[str]


def extracted(chat: Chat, role: str, at: str, text: str) -> list[str]:
    """What is worth remembering of a turn, a sentence each; an empty one is none.

    Raises:
        MemoryFault: the model could not be asked.
    """
    message = msgspec.json.encode({"at": at, "role": role, "text": text}).decode()
    prompt = prompts(_PACKAGE)["extract-1"].messages(message=message)
    found = chat.filled(prompt, FACTS, _Facts).facts
    return [fact.strip() for fact in found if fact.strip()]


class ModelPolicy:
    """The chat model behind the gateway takes both decisions.

    Args:
        chat: to be asked.
    """

    def __init__(self, chat: Chat) -> None:
        self._chat = chat

    def manage(self, new: str, at: str, related: Mapping[str, Entry]) -> Operation:
        """See `Policy`."""
        prompt = prompts(_PACKAGE)["manage-1"].messages(
            memories=_listed(related), new=msgspec.json.encode({"at": at, "text": new}).decode()
        )
        return self._chat.filled(prompt, OPERATION, Operation)

    def distil(self, question: str, candidates: Mapping[str, Entry]) -> Sequence[str]:
        """See `Policy`."""
        prompt = prompts(_PACKAGE)["distil-1"].messages(
            memories=_listed(candidates), question=msgspec.json.encode(question).decode()
        )
        return self._chat.filled(prompt, CHOICE, _Choice).useful


def _listed(memories: Mapping[str, Entry]) -> str:
    rows = ({"id": name, "at": entry.at, "text": entry.text} for name, entry in memories.items())
    return "\n".join(msgspec.json.encode(row).decode() for row in rows) or "(none)"
