"""On a store of ours."""

from __future__ import annotations

import shutil
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar

from steeltrap.adapters.oracle.memory import AgentMemory, made, models_of
from steeltrap.harness.models import Models

__all__ = ["Oracle"]


class Oracle(AgentMemory):
    """The records lie in a file of SQLite, `folder`/oracle/records.sqlite.

    Args:
        options: as `AgentMemory` takes them.
    """

    name: ClassVar = "oracle"

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._folder = Path()

    def _begin(self, folder: Path, models: Models) -> None:
        self._folder = folder / "oracle"
        shutil.rmtree(self._folder, ignore_errors=True)
        self._folder.mkdir(parents=True)
        llm, embedder = models_of(models)
        self._store = import_module("steeltrap.adapters.oracle.store").LocalStore(
            self._folder / "records.sqlite",
            embedder,
            now=lambda: self._present.at,
            name=lambda: str(self._present.uuid4()),
        )
        self._client = made(store=self._store, llm=llm)

    def _end(self) -> None:
        if self._store is not None:
            self._store.close()

    def size_bytes(self) -> int:
        """Bytes of the file."""
        self._opened()
        return sum(path.stat().st_size for path in self._folder.rglob("*") if path.is_file())
