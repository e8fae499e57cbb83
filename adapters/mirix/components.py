"""The five components that hold entries: their fields, how an entry reads, the tools on them.

The sixth, the core memory, is two blocks of text (`memory`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import msgspec

from steeltrap.harness.models import Tool

__all__ = ["BLOCKS", "COMPONENTS", "CORE", "CORE_TOOLS", "ROUTES", "Component", "Entry"]

CORE: Final = "core"
BLOCKS: Final = ("persona", "human")


class Entry(msgspec.Struct, frozen=True):
    """One entry of a component."""

    fields: Mapping[str, str]
    at: str
    """When it happened (episodic), or when it was written last; ISO 8601."""

    def text(self, *names: str) -> str:
        """The fields that say something which those before them do not."""
        parts: list[str] = []
        for name in names:
            said = self.fields.get(name, "").strip()
            if said and not any(said.casefold() in part.casefold() for part in parts):
                parts.append(said)
        return "\n".join(parts)


@dataclass(frozen=True)
class Component:
    """One kind of memory.

    Attributes:
        name: of it.
        fields: what an entry holds, each with a description.
        read: the fields that an entry is searched and served by, the most telling first.
    """

    name: str
    fields: Mapping[str, str]
    read: tuple[str, ...]

    @property
    def tools(self) -> tuple[Tool, ...]:
        """What its manager may call. Events are merged and not rewritten."""
        texts = {name: {"type": "string", "description": w} for name, w in self.fields.items()}
        which = {"id": {"type": "string", "description": "Of the entry."}}
        change = "merge" if self.name == "episodic" else "update"
        says = "Add to an event" if change == "merge" else "Rewrite an entry; leave out what stays"
        return (
            _tool(f"{self.name}_insert", "Add an entry.", texts, list(texts)),
            _tool(f"{self.name}_{change}", f"{says}.", which | texts, ["id"]),
            _tool(f"{self.name}_delete", "Remove an entry.", which, ["id"]),
        )


def _tool(
    name: str, description: str, properties: Mapping[str, object], required: list[str]
) -> Tool:
    parameters = {
        "type": "object", "properties": dict(properties), "required": required,
        "additionalProperties": False,
    }  # fmt: skip
    return Tool(name, description, parameters)


_TYPE: Final = "Of what kind it is, in a word or two."
COMPONENTS: Final = {
    component.name: component
    for component in (
        Component(
            "episodic",
            {
                "event_type": _TYPE,
                "actor": "Whose doing it was: user or assistant.",
                "occurred_at": "When it happened, as YYYY-MM-DDTHH:MM.",
                "summary": "One sentence in the past tense that stays true.",
                "details": "Whatever else is known of it; may be empty.",
            },
            ("summary", "details"),
        ),
        Component(
            "semantic",
            {
                "name": "What it is about, in a few words.",
                "summary": "One sentence that holds now.",
                "details": "Whatever else is known of it; may be empty.",
                "source": "Where it is known from.",
            },
            ("summary", "details", "name"),
        ),
        Component(
            "procedural",
            {
                "entry_type": "workflow, guide or script.",
                "description": "What it is for, in one sentence.",
                "steps": "What to do, a step a line.",
            },
            ("description", "steps"),
        ),
        Component(
            "resource",
            {
                "title": "Of the document.",
                "summary": "What it is about, in one sentence.",
                "resource_type": _TYPE,
                "content": "Its text, or the part that matters.",
            },
            ("title", "summary", "content"),
        ),
        Component(
            "knowledge_vault",
            {
                "entry_type": _TYPE,
                "source": "Where it is known from.",
                "sensitivity": "low, medium or high.",
                "caption": "What it is, without the value.",
                "secret_value": "The value, letter by letter.",
            },
            ("caption", "secret_value"),
        ),
    )
}
"""By name, in the order of the paper."""
ROUTES: Final = (CORE, *COMPONENTS)
"""Where the meta memory manager may send an input."""
_BLOCK: Final = {
    "block": {"type": "string", "enum": list(BLOCKS)},
    "text": {"type": "string", "description": "One sentence a line."},
}
CORE_TOOLS: Final = (
    _tool(f"{CORE}_append", "Add lines to a block.", _BLOCK, list(_BLOCK)),
    _tool(f"{CORE}_rewrite", "Write a block anew.", _BLOCK, list(_BLOCK)),
)
