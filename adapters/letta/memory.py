"""The adapter."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from steeltrap.adapters.kept import names
from steeltrap.adapters.letta.agent import Agent, AgentError, connect
from steeltrap.adapters.letta.files import Files, Line, slug
from steeltrap.harness.memory import Item, MemoryFault, Query, Subject, Utterance
from steeltrap.harness.models import Models

__all__ = ["Letta"]


class Letta:
    """Letta Code 0.34: each turn is said to an agent, which writes its memory files itself.

    A tenant has an agent of its own, in a folder of its own; a session is a conversation. See
    README.md beside this file.

    Args:
        trusted: run whatever the agent wants to run, as the user who runs this; without it, only
            commands that read, write and commit its memory.
    """

    name: ClassVar = "letta"

    def __init__(self, *, trusted: bool = False) -> None:
        self._trusted = trusted
        self._models: Models | None = None
        self._folder: Path | None = None
        self._homes: dict[str, _Home] = {}
        self._at = ""

    def connect(self, models: Models) -> None:
        """Take the address of the models."""
        self._models = models

    def open(self, folder: Path) -> None:
        """Begin an empty memory in `folder`/letta.

        Raises:
            MemoryFault: it was not connected, or the package cannot be.
        """
        self.close()
        if self._models is None:
            raise MemoryFault("letta: no models; call connect(models) before open(folder)")
        fresh = (folder / "letta").absolute()
        shutil.rmtree(fresh, ignore_errors=True)
        connect(self._models, fresh / "provider")
        self._folder, self._at = fresh, ""

    def close(self) -> None:
        """End all conversations; the files stay."""
        for home in self._homes.values():
            home.rest()
        self._homes, self._folder = {}, None

    # ------------------------------------------------------------ operators

    def ingest(self, turn: Utterance) -> None:
        """Say one turn to the tenant's agent, and wait until it has done with it.

        Raises:
            MemoryFault: it failed before it committed anything.
            AgentError: it failed after it had.
        """
        folder = self._opened()
        assert self._models is not None
        self._at = turn.at
        if not turn.text.strip():
            return  # an empty message is none to the package
        if turn.tenant not in self._homes:
            self._homes[turn.tenant] = _Home(self._models, folder, len(self._homes))
        said = f"At {turn.at} the {turn.role} said:\n\n{turn.text}"
        self._homes[turn.tenant].hear(turn, said, trusted=self._trusted)

    def retrieve(self, query: Query) -> Sequence[Item]:
        """What the agent's context would hold for a question, newest first.

        That are its core files, which are in every prompt, and the deferred files which their
        index leads to: those whose names have most of their words in the question.
        """
        standing = self._standing(query.tenant)
        words = set(slug(query.text).split("-")) - {""}
        shares = {line.path: _share(line.path, words) for line in standing}
        best = max(shares.values(), default=0.0)
        found = [line for line in standing if 0 < shares[line.path] >= best or _core(line)]
        return [_item(line) for line in found[::-1][: max(0, query.limit)]] if words else []

    def settle(self) -> None:
        """Nothing runs in the background: reflection is off."""
        self._opened()

    # ------------------------------------------------------------ optional capabilities

    def active(self, tenant: str) -> Sequence[Item]:
        """Every line that stands in the committed files, oldest first."""
        return [_item(line) for line in self._standing(tenant)]

    def history(self, subject: Subject) -> Sequence[Item]:
        """The lines that ever named the subject, by git's log, oldest first."""
        self._opened()
        home = self._homes.get(subject.tenant)
        lines = home.files.lines if home else []
        about = names(subject, *(line.text for line in lines))
        return [_item(line) for line in lines if about(line.text)]

    def erase(self, tenant: str, subject: Subject | None) -> None:
        """Remove the tenant's agent with all its files, or the lines that name a subject.

        The conversation ends too, because its context still shows what was said.
        """
        self._opened()
        home = self._homes.get(tenant)
        if home is None:
            return
        home.rest()
        if subject is None:
            home.vanish()
            return
        lines = home.files.standing
        about = names(subject, *(line.text for line in lines))
        home.files.remove([line for line in lines if about(line.text)], self._at)

    def size_bytes(self) -> int:
        """Bytes of the memories' repositories, their history included."""
        self._opened()
        return sum(home.size_bytes() for home in self._homes.values())

    # ------------------------------------------------------------ helpers

    def _standing(self, tenant: str) -> list[Line]:
        self._opened()
        home = self._homes.get(tenant)
        return home.files.standing if home else []

    def _opened(self) -> Path:
        if self._folder is None:
            raise MemoryFault("letta: not open; call open(folder) first, and nothing after close()")
        return self._folder


class _Home:
    """Where a tenant's agent lives, and its conversation of the moment."""

    def __init__(self, models: Models, folder: Path, number: int) -> None:
        self._models = models
        self._provider = folder / "provider" / "backend"
        self._folder = folder / f"tenant-{number}"
        self._session = ""
        self._agent: Agent | None = None
        self._name = ""
        self.files = Files(self._folder)

    def hear(self, turn: Utterance, said: str, *, trusted: bool) -> None:
        """Say it in the conversation of its session."""
        if self._agent is not None and self._session != turn.session:
            self.rest()
        if self._agent is None:
            if not self._name:
                shutil.copytree(self._provider, self._folder / "backend")
            self._agent = Agent(self._models, self._folder, self._name, trusted=trusted)
            self._session = turn.session
        try:
            self._agent.say(said)
        except AgentError as error:
            self.rest()
            if self._name and not self.files.follow(turn.id, turn.at):
                raise MemoryFault(str(error)) from error
            raise
        if not self._name:
            self._name = self._agent.name
            self.files = Files(self._folder / "backend" / "memfs" / self._name / "memory")
            self.files.begin()
        self.files.follow(turn.id, turn.at)

    def rest(self) -> None:
        """End the conversation, if there is one."""
        if self._agent is not None:
            self._agent.close()
        self._agent = None

    def vanish(self) -> None:
        """Remove everything; the next turn begins anew."""
        shutil.rmtree(self._folder, ignore_errors=True)
        self._name, self.files = "", Files(self._folder)

    def size_bytes(self) -> int:
        """Bytes of the repository."""
        memory = self._folder / "backend" / "memfs"
        return sum(path.stat().st_size for path in memory.rglob("*") if path.is_file())


def _share(path: str, words: set[str]) -> float:
    """How much of a file's name a question has in it."""
    named = slug(Path(path).stem).split("-")
    return len(words & set(named)) / len(set(named))


def _core(line: Line) -> bool:
    """Whether it stands in a file at the root, which is in every prompt."""
    return "/" not in line.path


def _item(line: Line) -> Item:
    return Item(
        line.text,
        sources=(line.turn,) if line.turn else None,
        valid_from=line.since,
        valid_to=line.until or None,
    )
