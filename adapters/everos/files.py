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

__all__ = ["Entry", "Origins", "cut", "entries", "sentences"]

_BLOCK: Final = re.compile(
    r"<!-- entry:(?P<id>[\w-]+) -->\n(?P<body>.*?)\n<!-- /entry:(?P=id) -->\n", re.DOTALL
)
_INLINE: Final = re.compile(r"^\*\*(\w+)\*\*: (.*)$", re.MULTILINE)
_SECTION: Final = re.compile(r"^### (\w+)\n", re.MULTILINE)
_SECTIONS: Final = re.compile(
    r"(?P<head>^### \w+\n)(?P<text>.*?)(?=^### |\Z)", re.MULTILINE | re.DOTALL
)
_END: Final = re.compile(r"(?<=[.!?;])\s+(?=\w)|\n+")
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
        inline.get("parent_id", ""),
    )  # fmt: skip


def sentences(text: str) -> list[str]:
    """What a text says, piece by piece: its lines, sentences, and the parts of a title."""
    return [one for one in _END.split(text) if one]


def cut(user: Path, unwanted: Callable[[str], bool]) -> None:
    """Take sentences out of a user's files, and entries that have none left.

    The files stay, and with them the numbers that were given, which are never given again.
    """
    for folder, section in _TEXT.items():
        for path in sorted((user / folder).glob("*.md")):
            text = path.read_text()

            def left(block: re.Match[str], section: str = section) -> str:
                body = _SECTIONS.sub(lambda one: _without(one, unwanted), block["body"])
                entry = _entry(block["id"], body, section)
                return block[0].replace(block["body"], body) if entry.text else ""

            if (kept := _BLOCK.sub(left, text)) != text:
                part = path.with_suffix(".part")
                part.write_text(kept)
                os.replace(part, path)


def _without(section: re.Match[str], unwanted: Callable[[str], bool]) -> str:
    told = sentences(section["text"])
    kept = [one for one in told if not unwanted(one)]
    if kept == told:
        return section[0]
    return f"{section['head']}{chr(10).join(kept)}\n\n" if kept else ""


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
