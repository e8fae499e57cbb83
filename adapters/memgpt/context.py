"""The tiers of one agent: core memory, queue, recall storage, archival storage (sections 2.1, 2.2)."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

import msgspec

from steeltrap.harness.memory import Subject
from steeltrap.harness.tokens import count

__all__ = ["BLOCKS", "Agent", "Entry", "Role", "as_json"]

Role: TypeAlias = Literal["user", "assistant", "system", "function", "archival"]
BLOCKS: Final = ("persona", "human")


class Entry(msgspec.Struct, frozen=True):
    """A message, a function call with its result, or a passage of archival storage."""

    at: str
    role: Role
    text: str
    """What was said or stored; of a function call, the call and its result as JSON."""
    turn: str = ""
    """The turn that it is; empty for questions and all that the system and the model say."""
    found: tuple[Entry, ...] = ()
    """function: what a search returned."""

    @property
    def line(self) -> str:
        """As it stands in the prompt."""
        return as_json({"at": self.at, "role": self.role, "text": self.text})


class Agent(msgspec.Struct):
    """What an agent keeps, in context and out of it."""

    core: dict[str, str] = msgspec.field(default_factory=lambda: dict.fromkeys(BLOCKS, ""))
    """Working context: blocks of text, a line a fact as far as the model keeps to it."""
    edited: str = ""
    """When core memory was last changed."""
    summary: tuple[str, ...] = ()
    """The recursive summary, which stands first in the queue."""
    covers: str = ""
    """The time of the last message that it covers."""
    queue: list[Entry] = []
    """FIFO, oldest first."""
    recall: list[Entry] = []
    """Every message, oldest first."""
    archival: list[Entry] = []
    """Every passage, oldest first."""
    warned: bool = False
    """Since the queue was last flushed."""

    def copy(self) -> Agent:
        """Another one with the same content; entries never change."""
        return Agent(
            dict(self.core), self.edited, self.summary, self.covers, list(self.queue),
            list(self.recall), list(self.archival), self.warned,
        )  # fmt: skip

    def hear(self, message: Entry) -> None:
        """A message joins the queue and recall storage."""
        self.queue.append(message)
        self.recall.append(message)

    def lines(self, block: str) -> list[str]:
        """The lines of a block of core memory."""
        return [line for line in self.core[block].split("\n") if line]

    @property
    def tokens(self) -> int:
        """Of core memory, summary and queue as the prompt shows them (o200k_base)."""
        held = [*self.core.values(), *self.summary, *(entry.line for entry in self.queue)]
        return sum(map(count, held))

    @property
    def visible(self) -> list[Entry]:
        """What the queue shows of what was said or stored, newest first, each thing once."""
        shown: dict[tuple[str, str], Entry] = {}
        for entry in self.queue[::-1]:
            for one in entry.found if entry.role == "function" else (entry,):
                if one.turn or one.role == "archival":
                    shown.setdefault((one.turn, one.text), one)
        return list(shown.values())

    def forget(self, subject: Subject) -> None:
        """Drop every line and entry that names the subject's topic, wherever it stands."""
        topic = subject.topic.casefold()

        def free(text: str) -> bool:
            return topic not in text.casefold()

        self.core = {block: "\n".join(filter(free, self.lines(block))) for block in BLOCKS}
        self.summary = tuple(filter(free, self.summary))
        self.queue = [entry for entry in self.queue if free(entry.text)]
        self.recall = [entry for entry in self.recall if free(entry.text)]
        self.archival = [entry for entry in self.archival if free(entry.text)]


def as_json(value: object) -> str:
    """One line of JSON."""
    return msgspec.json.encode(value).decode()
