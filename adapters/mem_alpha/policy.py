"""The decision that the paper learns, and the chat model that takes it here by calling tools."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol

import msgspec

from steeltrap.adapters.chat import Chat, prompts
from steeltrap.harness.memory import Utterance
from steeltrap.harness.models import Tool, ToolCall

__all__ = ["DELETE", "INSERT", "TOOLS", "UPDATE", "ModelPolicy", "Policy", "Shown"]

INSERT: Final = "memory_insert"
UPDATE: Final = "memory_update"
DELETE: Final = "memory_delete"
_PACKAGE: Final = "steeltrap.adapters.mem_alpha"


class Shown(msgspec.Struct, frozen=True):
    """The memory as a policy sees it."""

    core: str
    core_tokens: int
    """At most so many may be written (o200k_base)."""
    semantic: Mapping[str, str]
    """Facts by their ids, oldest first."""
    episodic: Mapping[str, str]
    """Events by their ids, oldest first."""


class Policy(Protocol):
    """Changes the memory; made with the memory's `Chat`."""

    def act(self, chunk: Utterance, memory: Shown) -> Sequence[ToolCall]:
        """Calls of `TOOLS`, to be carried out one after the other; none changes nothing."""


def _tool(name: str, description: str, kinds: Sequence[str], *required: str, **texts: str) -> Tool:
    kind = {"type": "string", "enum": list(kinds)}
    given: dict[str, Any] = {
        name: {"type": "string", "description": words} for name, words in texts.items()
    }
    parameters = {
        "type": "object", "properties": {"memory_type": kind, **given},
        "required": ["memory_type", *required], "additionalProperties": False,
    }  # fmt: skip
    return Tool(name, description, parameters)


_LISTS: Final = ("semantic", "episodic")
TOOLS: Final = (
    _tool(
        INSERT, "Add an entry to the semantic or the episodic memory.", _LISTS, "content",
        content="One sentence; of an event, with its time in square brackets before it.",
    ),
    _tool(
        UPDATE, "Rewrite the whole core memory, or one entry of another memory.",
        ("core", *_LISTS), "new_content",
        new_content="What it reads from now on.", memory_id="Of the entry; not for the core memory.",
    ),
    _tool(
        DELETE, "Remove an entry of the semantic or the episodic memory.", _LISTS, "memory_id",
        memory_id="Of the entry.",
    ),
)  # fmt: skip
"""The paper's operations (section 3.3): the core memory can only be updated."""


class ModelPolicy:
    """The chat model behind the gateway, which is asked once a chunk.

    Args:
        chat: to be asked.
    """

    def __init__(self, chat: Chat) -> None:
        self._chat = chat

    def act(self, chunk: Utterance, memory: Shown) -> Sequence[ToolCall]:
        """See `Policy`."""
        said = {"at": chunk.at, "role": chunk.role, "text": chunk.text}
        prompt = prompts(_PACKAGE)["memorise-1"].messages(
            tokens=str(memory.core_tokens), core=msgspec.json.encode(memory.core).decode(),
            semantic=_listed(memory.semantic), episodic=_listed(memory.episodic),
            chunk=msgspec.json.encode(said).decode(),
        )  # fmt: skip
        calls, _ = self._chat.calls(prompt, TOOLS)
        return calls


def _listed(entries: Mapping[str, str]) -> str:
    rows = ({"id": name, "text": text} for name, text in entries.items())
    return "\n".join(msgspec.json.encode(row).decode() for row in rows) or "(none)"
