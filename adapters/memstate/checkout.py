"""The prototype's modules from a checkout, with the script's time and stable ids in them."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

from steeltrap.adapters.present import Present
from steeltrap.harness.memory import MemoryFault
from steeltrap.harness.models import Models

__all__ = ["Checkout", "Embedder"]

REPOSITORY: Final = "github.com/CoDS-GCS/MemState"
_CLOCKS: Final = {"memstate.core.executor": "_utc_iso", "memstate.store.graph_store": "_now_iso"}
_NAMED: Final = (
    "memstate.core.executor", "memstate.store.graph_store", "memstate.datamodel.fields",
)  # fmt: skip
"""Modules that give out random ids."""
_DATABASE: Final = {"buffer_pool_size": 64 << 20, "max_db_size": 1 << 32}
"""By default each database of kuzu takes 8 TB of addresses, and a process has room for 15."""


class Checkout:
    """The modules of one checkout.

    Args:
        path: of the checkout, as git makes it.

    Raises:
        MemoryFault: there is no checkout, or it does not fit this adapter.
    """

    def __init__(self, path: str) -> None:
        root = Path(path).expanduser()
        if not path or not (root / "src" / "memstate" / "core" / "executor.py").is_file():
            there = f"there is no MemState in {root}" if path else "no checkout is named"
            raise MemoryFault(
                f"memstate: {there}; it has no licence and is not shipped: clone {REPOSITORY} "
                "yourself, and set system.checkout to its folder"
            )
        source = str((root / "src").resolve())
        if source not in sys.path:
            sys.path.insert(0, source)
        try:
            self.models: Any = import_module("memstate.core.models")
            self._executor: Any = import_module("memstate.core.executor")
            self._reasoner: Any = import_module("memstate.reasoner.engine")
            self._store: Any = import_module("memstate.store.graph_store")
            self._config: Any = import_module("memstate.config")
            self._kuzu: Any = import_module("memstate.store.kuzu_adapter")
            self._steady()
        except (ImportError, AttributeError) as error:
            raise MemoryFault(
                f"memstate: the checkout in {root} does not fit this adapter: {error}"
            ) from error

    def _steady(self) -> None:
        """Let the modules see the script's time, and name things by count."""
        for name, clock in _CLOCKS.items():
            module: Any = import_module(name)
            getattr(module, clock)  # else it stamps in another way
            setattr(module, clock, lambda: Present.at_work.at)
        for name in _NAMED:
            import_module(name).uuid = SimpleNamespace(  # type: ignore[attr-defined]
                uuid4=lambda: Present.at_work.uuid4()
            )
        kuzu = self._kuzu.kuzu
        if not isinstance(kuzu, SimpleNamespace):
            self._kuzu.kuzu = SimpleNamespace(
                Database=lambda path: kuzu.Database(path, **_DATABASE),
                Connection=kuzu.Connection,
                QueryResult=kuzu.QueryResult,
            )

    def begin(self, path: Path, embedder: Embedder) -> tuple[Any, Any]:
        """The executor and the reasoner of a new graph, with the prototype's own policies."""
        # A file of settings in the working directory is the user's, and none of a run's.
        store = self._store.get_store(self._config.Settings(_env_file=None, kuzu_path=str(path)))
        executor = self._executor.Executor(store, embedder=embedder)
        return executor, self._reasoner.Reasoner(executor)

    def end(self) -> None:
        """Let go of all graphs."""
        self._kuzu.clear_kuzu_graph_cache()


class Embedder:
    """The gateway's embeddings, as the prototype asks for them.

    Args:
        models: where they are.
    """

    def __init__(self, models: Models) -> None:
        self.dimension = models.dimension
        self._models = models
        self._client: Any = import_module("openai").OpenAI(
            base_url=models.openai_url, api_key=models.key,
            timeout=models.timeout_s, max_retries=models.retries,
        )  # fmt: skip

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """A vector for each text.

        Raises:
            MemoryFault: the model does not answer.
        """
        openai: Any = import_module("openai")
        try:
            made = self._client.embeddings.create(
                model=self._models.embedding, input=[text or " " for text in texts]
            )
        except openai.OpenAIError as error:
            raise MemoryFault(f"memstate: no embeddings: {error}") from error
        return [list(one.embedding) for one in made.data]

    def close(self) -> None:
        """Close the connections."""
        self._client.close()
