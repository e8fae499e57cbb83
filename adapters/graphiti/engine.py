"""graphiti-core put together: kuzu, models, a clock and names that do not differ between runs.

Imports graphiti-core and kuzu, so it is imported only where they are installed, and only after
`memory.ENVIRONMENT` is set.
"""

from __future__ import annotations

import itertools
import json
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final
from uuid import UUID

import kuzu
import tenacity
from graphiti_core import Graphiti
from graphiti_core.cross_encoder.openai_reranker_client import OpenAIRerankerClient
from graphiti_core.driver.kuzu_driver import KuzuDriver
from graphiti_core.embedder import OpenAIEmbedder
from graphiti_core.embedder.openai import OpenAIEmbedderConfig
from graphiti_core.graph_queries import get_fulltext_indices
from graphiti_core.llm_client import LLMConfig
from graphiti_core.llm_client.errors import EmptyResponseError
from graphiti_core.llm_client.openai_generic_client import OpenAIGenericClient
from openai import AsyncOpenAI

from steeltrap.harness.models import Models

__all__ = ["Driver", "connected", "pinned", "set_time"]

_BUFFER_BYTES: Final = 4 << 30
"""At most; kuzu's own limit is most of the machine's memory."""
_LARGEST_BYTES: Final = 1 << 32
"""At most, of the file; kuzu reserves so many addresses, by default 8 TB a database."""
_QUERIES_A_CONNECTION: Final = 100


class Driver(KuzuDriver):
    """The package's driver, with what it lacks.

    * A group can be asked for: `_database` is not set upstream, which ends in an AttributeError.
    * Full-text indices exist: upstream creates none, and search and ingestion fail without.
    * `?` and `*` in a question are no wildcards: in kuzu they are, so that `Paris?` finds nothing;
      the recommended Neo4j takes them for punctuation.
    * Queries run on one thread, so that rows of equal rank come in one order.
    * There are no checkpoints. In kuzu 0.11.3 a checkpoint garbles lists: once lists of older rows
      have been changed, rows written since the last checkpoint get lists of the oldest rows, so
      that a fact names episodes that it never came from. What is written stays in the log and in
      memory, at 1 MB a turn.
    * The connection is made anew now and then: it keeps 135 KB of every query that it has planned
      until it is closed.

    Args:
        path: of the database's file.
    """

    def __init__(self, path: Path) -> None:
        super().__init__()  # cannot be told how to open a database: opens one in memory
        self._release()
        self.db = kuzu.Database(
            path,
            buffer_pool_size=_BUFFER_BYTES,
            max_db_size=_LARGEST_BYTES,
            max_num_threads=1,
            auto_checkpoint=False,
        )
        self.setup_schema()
        self.client = self._connection()
        self._queries = 0
        self._database = ""
        self.writes = 0
        """Queries that may have changed the graph."""

    async def build_indices_and_constraints(self, _: bool = False) -> None:
        """Create the full-text indices of a new database."""
        for query in get_fulltext_indices(self.provider):
            await self.execute_query(query)

    async def execute_query(self, cypher_query_: str, **values: Any) -> Any:
        """As upstream, without wildcards; one after the other, so that none is under way here."""
        self._queries += 1
        if self._queries % _QUERIES_A_CONNECTION == 0:
            self.client.close()
            self.client = self._connection()
        if "QUERY_FTS_INDEX" in cypher_query_:
            values["query"] = values["query"].replace("?", " ").replace("*", " ")
        return await super().execute_query(cypher_query_, **values)

    def session(self, _database: str | None = None) -> Any:
        """A session, in which all that an episode changes is written."""
        self.writes += 1
        return super().session(_database)

    async def close(self) -> None:
        """Close the database; upstream leaves that to chance."""
        self._release()

    def _connection(self) -> Any:
        return kuzu.AsyncConnection(self.db, max_concurrent_queries=1, max_threads_per_query=1)

    def _release(self) -> None:
        self.client.close()
        self.db.close()


def connected(path: Path, models: Models) -> Graphiti:
    """The engine on a new database, asking nobody but the given models.

    All that may happen at once happens one after the other, so that calls come in one order.
    """
    client = AsyncOpenAI(
        api_key=models.key, base_url=models.openai_url, timeout=models.timeout_s,
        max_retries=models.retries,
    )  # fmt: skip
    config = LLMConfig(
        api_key=models.key, model=models.chat, small_model=models.chat,
        base_url=models.openai_url, temperature=0.0,
    )  # fmt: skip
    embedding = OpenAIEmbedderConfig(
        embedding_model=models.embedding, embedding_dim=models.dimension
    )
    _bound_retries(models.retries)
    return Graphiti(
        graph_driver=Driver(path),
        llm_client=OpenAIGenericClient(config=config, client=client),
        embedder=OpenAIEmbedder(config=embedding, client=client),
        cross_encoder=OpenAIRerankerClient(config=config, client=client),
        max_coroutines=1,
    )


def _bound_retries(retries: int) -> None:
    """Have answers that are empty or no JSON asked for again at once, and so many times only.

    Upstream asks four times and waits 5 to 120 s in between, also after a 429, which the client
    below it has already waited for as often as it may.
    """
    again: Any = OpenAIGenericClient._generate_response_with_retry
    again.retry.stop = tenacity.stop_after_attempt(retries + 1)
    again.retry.wait = tenacity.wait_none()
    again.retry.retry = tenacity.retry_if_exception_type((EmptyResponseError, json.JSONDecodeError))


# ---------------------------------------------------------------- nothing of this world

_now = datetime.fromtimestamp(0, UTC)


def set_time(now: datetime) -> None:
    """Set the only clock that the engine sees."""
    global _now
    _now = now


def pinned() -> None:
    """Take clock and chance from the package, for the whole process.

    `created_at` and `expired_at` are stamped with the simulated time, and uuids count up, so that
    they sort by age. Both are read from module globals throughout the package.
    """
    count = itertools.count(1)
    patches = {
        "utc_now": lambda: _now,
        "uuid4": lambda: UUID(int=next(count), version=4),
    }
    for name, module in list(sys.modules.items()):
        if name.startswith("graphiti_core"):
            held = vars(module)
            held.update({patched: patches[patched] for patched in patches.keys() & held.keys()})
