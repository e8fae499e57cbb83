"""graphiti-core put together: kuzu, models, a clock and names that do not differ between runs.

Imports graphiti-core and kuzu, so it is imported only where they are installed, and only after
`memory.ENVIRONMENT` is set.
"""

from __future__ import annotations

import asyncio
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
from graphiti_core.nodes import EpisodeType
from graphiti_core.search.search_config_recipes import EDGE_HYBRID_SEARCH_RRF
from graphiti_core.utils.maintenance.graph_data_operations import clear_data
from openai import AsyncOpenAI

from steeltrap.harness.models import Models

__all__ = ["Driver", "Engine"]

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
    * The best by words are chosen among a group's own: upstream takes the best of all groups, and
      of these what is the group's, so that other tenants can take all places. In Neo4j the group
      is part of the full-text query.
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
        """As upstream; one after the other, so that none is under way here."""
        self._queries += 1
        if self._queries % _QUERIES_A_CONNECTION == 0:
            self.client.close()
            self.client = self._connection()
        if "QUERY_FTS_INDEX" in cypher_query_:
            values["query"] = values["query"].replace("?", " ").replace("*", " ")
            cypher_query_ = cypher_query_.replace(", TOP := $limit", "")
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


class Engine:
    """Graphiti on a new database, asking nobody but the given models; its coroutines waited for.

    All that may happen at once happens one after the other, so that calls come in one order.

    Args:
        path: of the database's file, which does not exist yet.
        models: where chat model and embedder are.
    """

    def __init__(self, path: Path, models: Models) -> None:
        _pin()
        _bound_retries(models.retries)
        self._client = AsyncOpenAI(
            api_key=models.key, base_url=models.openai_url, timeout=models.timeout_s,
            max_retries=models.retries,
        )  # fmt: skip
        config = LLMConfig(models.key, models.chat, temperature=0.0, small_model=models.chat)
        vectors = OpenAIEmbedderConfig(
            embedding_model=models.embedding, embedding_dim=models.dimension
        )
        self._driver = Driver(path)
        self._graphiti = Graphiti(
            graph_driver=self._driver,
            llm_client=OpenAIGenericClient(config, client=self._client),
            embedder=OpenAIEmbedder(vectors, client=self._client),
            cross_encoder=OpenAIRerankerClient(config, client=self._client),
            max_coroutines=1,
        )
        self._runner = asyncio.Runner()
        self._runner.run(self._graphiti.build_indices_and_constraints())

    @property
    def writes(self) -> int:
        """How often the graph may have been changed."""
        return self._driver.writes

    def add(self, name: str, body: str, at: datetime, group: str) -> str:
        """Add an episode of one message that is said now.

        Args:
            name: of the episode; no model sees it.
            body: the message, `speaker: text`.
            at: now.
            group: of the tenant.

        Returns:
            The episode's uuid.
        """
        _set_time(at)
        added = self._runner.run(
            self._graphiti.add_episode(
                name=name,
                episode_body=body,
                source=EpisodeType.message,
                source_description="conversation",
                reference_time=at,
                group_id=group,
            )
        )
        return str(added.episode.uuid)

    def search(self, text: str, group: str, limit: int) -> list[tuple[dict[str, Any], float]]:
        """The edges that hybrid search finds, with their ranks fused, best first.

        The package's own `search` does the same, but sets the limit in a recipe that ingestion
        shares, so that questions would decide how many old facts a new one is compared with.
        """
        recipe = EDGE_HYBRID_SEARCH_RRF.model_copy(update={"limit": limit})
        found = self._runner.run(self._graphiti.search_(text, config=recipe, group_ids=[group]))
        edges = map(dict, found.edges)
        return list(zip(edges, found.edge_reranker_scores, strict=True))

    def query(self, cypher: str, **values: Any) -> list[dict[str, Any]]:
        """The rows that a query of the database gives."""
        rows, _, _ = self._runner.run(self._driver.execute_query(cypher, **values))
        return list(rows)

    def clear(self, group: str) -> None:
        """Delete all of a group."""
        self._runner.run(clear_data(self._driver, [group]))

    def close(self) -> None:
        """Close connections and database."""
        self._runner.run(self._client.close())
        self._runner.run(self._driver.close())
        self._runner.close()


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


def _set_time(now: datetime) -> None:
    """Set the only clock that the engine sees."""
    global _now
    _now = now


def _pin() -> None:
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
