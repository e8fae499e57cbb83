"""The adapter."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar

from steeltrap.adapters.memos import in_turn, present
from steeltrap.adapters.memos.database import Database
from steeltrap.adapters.memos.parts import Parts
from steeltrap.adapters.memos.present import Present
from steeltrap.adapters.memos.scheduler import Scheduler
from steeltrap.harness.memory import Item, MemoryFault, Query, Subject, Utterance
from steeltrap.harness.models import Models

__all__ = ["MemOS"]


class MemOS:
    """MemoryOS 2.x: a tree of text memories with a working and a long-term tier, on Postgres.

    A tenant is a user with a MemCube of its own. See README.md beside this file.

    Args:
        working: at most so many memories in the working tier; the package's default.
        long_term: and in the long-term tier.
        user: and in the tier of what is about the user.
        scheduler: after each question let the package's scheduler page memories into the working
            tier, as it does in a chat where it is switched on; the package's default is off.
    """

    name: ClassVar = "memos"

    def __init__(
        self, *, working: int = 20, long_term: int = 1500, user: int = 480, scheduler: bool = False
    ) -> None:
        sizes = {"WorkingMemory": working, "LongTermMemory": long_term, "UserMemory": user}
        for tier, size in sizes.items():
            if size < 1:
                raise ValueError(f"memos: {tier} of {size}: a tier holds at least one memory")
        self._sizes = sizes
        self._scheduled = scheduler
        self._models: Models | None = None
        self._folder = Path()
        self._database: Database | None = None
        self._parts: Parts | None = None
        self._present = Present()
        self._cubes: dict[str, Any] = {}
        self._scheduler: Scheduler | None = None

    def connect(self, models: Models) -> None:
        """Take the address of the models."""
        self._models = models

    def open(self, folder: Path) -> None:
        """Begin an empty memory in `folder`/memos.

        Raises:
            MemoryFault: it was not connected, or Postgres does not start.
        """
        self.close()
        if self._models is None:
            raise MemoryFault("memos: no models; call connect(models) before open(folder)")
        self._folder = (folder / "memos").absolute()
        shutil.rmtree(self._folder, ignore_errors=True)
        self._folder.mkdir(parents=True)
        # Read while the package is imported.
        os.environ |= {
            "MEMOS_BASE_PATH": str(self._folder),
            "MOS_EMBEDDER_TIMEOUT": str(max(1, int(self._models.timeout_s))),
            "FAST_GRAPH": "false",
        }
        self._present = Present()
        self._present.enter("")
        self._database = Database(self._folder / "postgres")
        present.install()
        in_turn.install()
        self._parts = Parts(self._models, self._database, self._sizes)
        if self._scheduled:
            self._scheduler = Scheduler(self._parts, self._folder)

    def close(self) -> None:
        """Stop the database; its files stay."""
        if self._scheduler is not None:
            self._scheduler.close()
        for cube in self._cubes.values():
            cube.graph_store.close()
        if self._database is not None:
            self._database.close()
        self._scheduler = self._parts = self._database = None
        self._cubes = {}

    # ------------------------------------------------------------ operators

    def ingest(self, turn: Utterance) -> None:
        """Have the package read one message, and put what it finds into its tiers.

        Raises:
            MemoryFault: the model did not answer; the package would store the bare message then.
        """
        with self._at_work(turn.tenant, turn.at) as (cube, parts):
            said = [{"role": turn.role, "content": turn.text, "chat_time": turn.at}]
            about = {"user_id": turn.tenant, "session_id": turn.session, "turn": turn.id}
            found = parts.reader.get_memory([said], type="chat", info=about, mode="fine")
            parts.raise_unanswered()
            cube.add([memory for group in found for memory in group], user_name=turn.tenant)
            cube.memory_manager.remove_and_refresh_memory(user_name=turn.tenant)

    def retrieve(self, query: Query) -> Sequence[Item]:
        """Search as a chat does; then the scheduler sees the question.

        In a chat it sees it at the same time, and its work shows with the next question.
        """
        with self._at_work(query.tenant, query.at, asked=True) as (cube, parts):
            if query.limit < 1 or not query.text.strip():
                return []
            found = self._found(cube, query.tenant, query.text, query.limit)
            parts.raise_unanswered()
            if self._scheduler is not None:
                self._scheduler.asked(query.tenant, cube, query.text)
            return [_item(memory.model_dump()) for memory in found]

    def settle(self) -> None:
        """Nothing to wait for: what the package leaves to threads is done at once."""
        self._opened()

    # ------------------------------------------------------------ optional capabilities

    def active(self, tenant: str) -> Sequence[Item]:
        """Every memory of the tenant in every tier, oldest first.

        Equal texts are listed as often as they are stored, copies in the working tier among them:
        each takes a place in the search before those of one text are drawn together.
        """
        with self._at_work(tenant) as (cube, _):
            return [_item(node) for node in self._nodes(cube, tenant)]

    def erase(self, tenant: str, subject: Subject | None) -> None:
        """Delete all of the tenant's memories, or each that names the subject, in every tier.

        It names it with topic and field; where none does so, with the topic alone.
        """
        with self._at_work(tenant) as (cube, _):
            nodes = self._nodes(cube, tenant)
            if subject is None:
                gone = nodes
                cube.delete_all(user_name=tenant)
            else:
                topic, field = subject.topic.casefold(), subject.field.casefold()
                named = [node for node in nodes if topic in node["memory"].casefold()]
                close = [node for node in named if field in node["memory"].casefold()]
                gone = close or named
                cube.delete([node["id"] for node in gone], user_name=tenant)
            if self._scheduler is not None:
                self._scheduler.forget(tenant, {node["memory"] for node in gone})

    def size_bytes(self) -> int:
        """Bytes of the tables and indices of memories."""
        _, parts = self._opened()
        return parts.size_bytes()

    # ------------------------------------------------------------ helpers

    def _found(self, cube: Any, tenant: str, text: str, limit: int) -> list[Any]:
        about = {"user_id": tenant, "session_id": "", "chat_history": []}
        found: list[Any] = cube.search(text, top_k=limit, info=about, user_name=tenant)
        return found

    def _nodes(self, cube: Any, tenant: str) -> list[dict[str, Any]]:
        """All that is stored, oldest first; of one age, the lower id."""
        nodes: list[dict[str, Any]] = cube.get_all(user_name=tenant)["nodes"]
        return sorted(nodes, key=lambda node: (str(node["metadata"]["created_at"]), node["id"]))

    def _opened(self) -> tuple[Database, Parts]:
        if self._database is None or self._parts is None:
            raise MemoryFault("memos: not open; call open(folder) first, and nothing after close()")
        return self._database, self._parts

    @contextmanager
    def _at_work(
        self, tenant: str, at: str = "", *, asked: bool = False
    ) -> Iterator[tuple[Any, Parts]]:
        """Do something with a tenant's cube, which is made when it is first needed."""
        _, parts = self._opened()
        if not tenant:
            raise MemoryFault("memos: a tenant without a name can have no memory of its own")
        self._present.enter(tenant, at, asked=asked)
        if tenant not in self._cubes:
            self._cubes[tenant] = parts.cube(tenant)
        try:
            yield self._cubes[tenant], parts
        except import_module("openai").OpenAIError as error:
            raise MemoryFault(f"memos: {type(error).__name__}: {error}") from error


def _item(memory: dict[str, Any]) -> Item:
    about = memory["metadata"]
    turn = (about.get("info") or {}).get("turn")
    return Item(
        memory["memory"],
        id=str(memory["id"]),
        sources=(turn,) if turn else None,
        valid_from=str(about["created_at"])[:16].replace(" ", "T"),
        score=about.get("relativity"),
    )
