"""The package's parts, as they are configured here."""

from __future__ import annotations

import json
import logging
from importlib import import_module
from typing import Any, Final

from steeltrap.adapters.memos.database import Database
from steeltrap.harness.memory import MemoryFault
from steeltrap.harness.models import Models

__all__ = ["Parts"]

_VECTOR: Final = "SELECT oid FROM pg_type WHERE typname = 'vector'"
_SIZE: Final = (
    "SELECT pg_total_relation_size('memos.memories') + pg_total_relation_size('memos.edges')"
)


class Parts:
    """A reader for all, and a memory cube for each tenant, which ask the same models.

    Args:
        models: their address.
        database: where the cubes lie.
        sizes: how many memories each tier may hold.

    Attributes:
        reader: finds memories in messages.
        llm: the chat model that everything asks.
    """

    def __init__(self, models: Models, database: Database, sizes: dict[str, int]) -> None:
        self._models, self._database, self._sizes = models, database, sizes
        self._unanswered: list[Exception] = []
        self._cubes: list[Any] = []
        configs: Any = import_module("memos.configs.mem_reader")
        readers: Any = import_module("memos.mem_reader.simple_struct")
        logging.getLogger("memos").setLevel(logging.CRITICAL)
        self.reader: Any = readers.SimpleStructMemReader(
            configs.SimpleStructMemReaderConfig(
                llm=self._llm(), embedder=self._embedder(),
                chunker={"backend": "markdown", "config": {}},
            )
        )  # fmt: skip
        self.llm: Any = self.reader.llm
        self._watch(self.reader)

    def cube(self, tenant: str) -> Any:
        """The text memory of a tenant's new cube."""
        configs: Any = import_module("memos.configs.memory")
        tree: Any = import_module("memos.memories.textual.tree")
        cube = tree.TreeTextMemory(
            configs.TreeTextMemoryConfig(
                extractor_llm=self._llm(), dispatcher_llm=self._llm(), embedder=self._embedder(),
                graph_db={
                    "backend": "postgres",
                    "config": self._database.config(tenant, self._models.dimension),
                },
                memory_size=dict(self._sizes), cube_id=tenant, include_embedding=True,
            )
        )  # fmt: skip
        cube.extractor_llm = cube.dispatcher_llm = self.llm
        cube.embedder.client = self.reader.embedder.client
        if not self._cubes:
            self._read_vectors(cube.graph_store)
        self._cubes.append(cube)
        return cube

    def raise_unanswered(self, fault: type[Exception] = MemoryFault) -> None:
        """Raise a fault if a model failed since the last call and the package went on."""
        failed, self._unanswered = self._unanswered, []
        if failed:
            raise fault(f"memos: {type(failed[0]).__name__}: {failed[0]}") from failed[0]

    def size_bytes(self) -> int:
        """Bytes of the tables and indices; none before the first memory."""
        if not self._cubes:
            return 0
        return _number(self._cubes[0].graph_store, _SIZE)

    def _read_vectors(self, store: Any) -> None:
        """Have vectors come back as numbers: as the text that they are sent in, they break the package.

        It compares them with the question's to rank what search found; without them, all that it
        found is ranked the same.
        """
        types: Any = import_module("psycopg2.extensions")
        kind = _number(store, _VECTOR)
        types.register_type(
            types.new_type((kind,), "VECTOR", lambda text, _: text and json.loads(text))
        )

    def _llm(self) -> dict[str, Any]:
        return {
            "backend": "openai",
            "config": {
                "model_name_or_path": self._models.chat, "temperature": 0.0, "top_p": 1.0,
                "max_tokens": 8192, "api_key": self._models.key,
                "api_base": self._models.openai_url, "remove_think_prefix": True,
            },
        }  # fmt: skip

    def _embedder(self) -> dict[str, Any]:
        return {
            "backend": "universal_api",
            "config": {
                "provider": "openai", "model_name_or_path": self._models.embedding,
                "api_key": self._models.key, "base_url": self._models.openai_url,
            },
        }  # fmt: skip

    def _watch(self, reader: Any) -> None:
        """Set how long and how often is asked, and remember failures that the package passes over."""
        patience = {"timeout": self._models.timeout_s, "max_retries": self._models.retries}
        for part in (reader.llm, reader.embedder):
            part.client = part.client.with_options(**patience)
        generate = reader.llm.generate

        def watched(*given: Any, **named: Any) -> Any:
            try:
                return generate(*given, **named)
            except Exception as error:
                self._unanswered.append(error)
                raise

        reader.llm.generate = watched


def _number(store: Any, query: str) -> int:
    """The one number that a query gives."""
    connection = store.pool.getconn()
    try:
        with connection.cursor() as cursor:
            cursor.execute(query)
            return int(cursor.fetchone()[0])
    finally:
        store.pool.putconn(connection)
