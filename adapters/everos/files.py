"""What EverOS keeps on disk: entries in Markdown, and where they came from in SQLite.

The Markdown is the package's source of truth and made to be read and edited (its
docs/how-memory-works.md); the index follows it. SQLite holds the messages of each cell, and which
entries a reflection put aside.
"""

from __future__ import annotations

import json
import os
import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Final

import msgspec

__all__ = ["Entry", "Origins", "entries", "keep"]

_BLOCK: Final = re.compile(
    r"<!-- entry:(?P<id>[\w-]+) -->\n(?P<body>.*?)\n<!-- /entry:(?P=id) -->\n", re.DOTALL
)
_INLINE: Final = re.compile(r"^\*\*(\w+)\*\*: (.*)$", re.MULTILINE)
_SECTION: Final = re.compile(r"^### (\w+)\n", re.MULTILINE)
_TEXT: Final = {"episodes": "Content", ".atomic_facts": "Fact", ".foresights": "Foresight"}
"""The section that holds the text, by folder."""


class Entry(msgspec.Struct, frozen=True):
    """One entry of a daily file."""

    id: str
    text: str
    at: str
    """ISO 8601, to the minute."""
    parent: str
    """An episode's: its cell, or the cluster that it was merged from; a fact's: its episode."""
    all: str
    """The whole of it."""


def entries(user: Path, folder: str) -> Iterator[Entry]:
    """The entries of a user in one of the folders, by day and number."""
    for path in sorted((user / folder).glob("*.md")):
        for block in _BLOCK.finditer(path.read_text()):
            yield _entry(block["id"], block["body"], _TEXT[folder])


def _entry(name: str, body: str, text: str) -> Entry:
    head, *sections = _SECTION.split(body)
    inline = dict(_INLINE.findall(head))
    named = dict(zip(sections[::2], sections[1::2], strict=True))
    return Entry(
        name, named.get(text, "").strip(), inline.get("timestamp", "")[:16],
        inline.get("parent_id", ""), body,
    )  # fmt: skip


def keep(user: Path, wanted: Callable[[Entry], bool]) -> None:
    """Take all other entries out of a user's files; the files stay, and so do their numbers."""
    for folder in _TEXT:
        for path in sorted((user / folder).glob("*.md")):
            text = path.read_text()

            def left(block: re.Match[str], section: str = _TEXT[folder]) -> str:
                return block[0] if wanted(_entry(block["id"], block["body"], section)) else ""

            if (kept := _BLOCK.sub(left, text)) != text:
                part = path.with_suffix(".part")
                part.write_text(kept)
                os.replace(part, path)


class Origins:
    """Where entries come from, as of now.

    Args:
        root: the memory root.
        user: whose.
    """

    def __init__(self, root: Path, user: str) -> None:
        base = root / ".index" / "sqlite" / "system.db"
        with closing(sqlite3.connect(f"file:{base}?mode=ro", uri=True)) as store:
            cells = store.execute("SELECT memcell_id, message_ids_json FROM memcell")
            self._messages: dict[str, list[str]] = {cell: json.loads(ids) for cell, ids in cells}
            merged = store.execute(
                "SELECT merged_entry_id, source_members FROM reflection_report WHERE owner_id = ?",
                (user,),
            )
            self._members: dict[str, list[str]] = {
                one: [member["member_id"] for member in json.loads(members)]
                for one, members in merged
            }
        self.replaced_by = {
            member: one for one, members in self._members.items() for member in members
        }
        """Entries that a reflection put aside, with the entry that stands in their place."""

    def messages(self, episode: Entry, known: dict[str, Entry]) -> list[str]:
        """The ids of the messages that an episode is made of.

        Args:
            episode: whose.
            known: all episodes of the user by id.
        """
        if episode.id not in self._members:
            return self._messages.get(episode.parent, [])
        members = [known[one] for one in self._members[episode.id] if one in known]
        found = [message for one in members for message in self.messages(one, known)]
        return list(dict.fromkeys(found))
