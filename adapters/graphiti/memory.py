"""The adapter."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from steeltrap.harness.memory import Item, MemoryFault, Query, Subject, Utterance
from steeltrap.harness.models import Models

if TYPE_CHECKING:
    from steeltrap.adapters.graphiti.engine import Engine

__all__ = ["ENVIRONMENT", "Graphiti"]

ENVIRONMENT: Final = {
    "GRAPHITI_TELEMETRY_ENABLED": "false",
    "PYTHON_DOTENV_DISABLED": "1",  # it would load a .env file found above the package's folder
    "SEMAPHORE_LIMIT": "1",
}
"""What graphiti-core reads once, when it is imported."""

_EDGES: Final = """
    MATCH (n:Entity)-[:RELATES_TO]->(e:RelatesToNode_)-[:RELATES_TO]->(m:Entity)
    WHERE e.group_id = $tenant
    RETURN e.uuid AS uuid, e.fact AS fact, e.episodes AS episodes, e.valid_at AS valid_at,
        e.invalid_at AS invalid_at, e.expired_at AS expired_at, n.name AS source, m.name AS target
    ORDER BY e.uuid
"""
_EPISODES: Final = (
    "MATCH (e:Episodic) WHERE e.group_id = $tenant RETURN e.uuid AS uuid, e.content AS text"
)
_NODES: Final = """
    MATCH (n:Entity) WHERE n.group_id = $tenant
    RETURN n.uuid AS uuid, n.name AS text, n.summary AS summary
"""
_DELETE: Final = "MATCH (n:{}) WHERE n.uuid IN $uuids DETACH DELETE n"
_SUMMARISE: Final = "MATCH (n:Entity {uuid: $uuid}) SET n.summary = $summary"


class Graphiti:
    """Makes a temporal graph of what is said, and serves facts by hybrid search.

    One graph holds all tenants, each as a group. A turn is an episode; its facts are edges, each
    with the times from which and to which it held. Reading changes nothing.

    Raises:
        MemoryFault: (any method) it is not open; (`open`) `connect` was not called; (`ingest`)
            the models gave no usable answer, before anything was written.
    """

    def __init__(self) -> None:
        self._models: Models | None = None
        self._engine: Engine | None = None
        self._folder = Path()
        self._turns: dict[str, str] = {}

    def connect(self, models: Models) -> None:
        """Take the address of the models."""
        self._models = models

    def open(self, folder: Path) -> None:
        """Begin an empty graph in `folder`/graphiti."""
        self.close()
        if self._models is None:
            raise MemoryFault("graphiti: it needs models; call connect(models) before open(folder)")
        os.environ.update(ENVIRONMENT, EMBEDDING_DIM=str(self._models.dimension))
        from steeltrap.adapters.graphiti.engine import Engine

        self._folder = folder / "graphiti"
        shutil.rmtree(self._folder, ignore_errors=True)
        self._folder.mkdir(parents=True)
        self._turns = {}
        self._engine = Engine(self._folder / "graph.kuzu", self._models)

    def close(self) -> None:
        """Close the database; its files stay."""
        if self._engine is not None:
            self._engine.close()
        self._engine = None

    # ------------------------------------------------------------ operators

    def ingest(self, turn: Utterance) -> None:
        """Add a turn as an episode of one message."""
        engine = self._opened()
        at = datetime.fromisoformat(turn.at).replace(tzinfo=UTC)
        written = engine.writes
        try:
            episode = engine.add(turn.id, f"{turn.role}: {turn.text}", at, _group(turn.tenant))
        except Exception as fault:
            if engine.writes == written:
                raise MemoryFault(f"{type(fault).__name__}: {fault}") from fault
            raise
        self._turns[episode] = turn.id

    def retrieve(self, query: Query) -> Sequence[Item]:
        """The facts found by words and by vectors, fused by reciprocal rank, expired ones too."""
        engine = self._opened()
        if query.limit < 1:
            return []
        found = engine.search(query.text, _group(query.tenant), query.limit)
        return [self._item(edge, score) for edge, score in found]

    def settle(self) -> None:
        """Nothing runs in the background."""
        self._opened()

    def active(self, tenant: str) -> list[Item]:
        """Every fact of the tenant, oldest first: search serves expired ones beside the others."""
        return [self._item(edge) for edge in self._edges(tenant)]

    def history(self, subject: Subject) -> list[Item]:
        """The facts about the subject, oldest first by the times from which they held."""
        edges, _ = self._about(subject)
        edges.sort(key=lambda edge: (edge["valid_at"] or datetime.min, edge["uuid"]))
        return [self._item(edge) for edge in edges]

    def erase(self, tenant: str, subject: Subject | None) -> None:
        """Delete the tenant's group, or the subject's facts and whatever else names it.

        The turns that its facts came from go too, whatever they say.
        """
        engine = self._opened()
        if subject is None:
            engine.clear(_group(tenant))
            return
        edges, words = self._about(subject)
        told = {episode for edge in edges for episode in edge["episodes"]}
        episodes = engine.query(_EPISODES, tenant=_group(tenant))
        nodes = engine.query(_NODES, tenant=_group(tenant))
        gone = {
            "RelatesToNode_": edges,
            "Episodic": [
                one for one in episodes if one["uuid"] in told or _has(one["text"], words)
            ],
            "Entity": [node for node in nodes if _has(node["text"], words)],
        }
        for table, rows in gone.items():
            engine.query(_DELETE.format(table), uuids=[row["uuid"] for row in rows])
        for node in nodes:
            lines = node["summary"].split("\n")
            left = [line for line in lines if not _has(line, words)]
            if left != lines:
                engine.query(_SUMMARISE, uuid=node["uuid"], summary="\n".join(left))

    def size_bytes(self) -> int:
        """Bytes of the database's files, which are mostly its log: see `engine.Driver`."""
        self._opened()
        return sum(path.stat().st_size for path in self._folder.rglob("*") if path.is_file())

    # ------------------------------------------------------------ helpers

    def _about(self, subject: Subject) -> tuple[list[dict[str, Any]], tuple[str, ...]]:
        """The facts that name a subject, themselves or by an entity, and the words that name it.

        A subject is named by its topic and field; where no fact names both, by its topic.
        """
        edges = self._edges(subject.tenant)
        both, topic = (subject.topic, subject.field), (subject.topic,)
        named = [edge for edge in edges if _has(_read(edge), topic)]
        close = [edge for edge in named if _has(_read(edge), both)]
        return (named, topic) if named and not close else (close, both)

    def _edges(self, tenant: str) -> list[dict[str, Any]]:
        return self._opened().query(_EDGES, tenant=_group(tenant))

    def _item(self, edge: dict[str, Any], score: float | None = None) -> Item:
        turns = (self._turns.get(episode) for episode in edge["episodes"])
        ended = edge["invalid_at"] or edge["expired_at"]
        return Item(
            edge["fact"], edge["uuid"], tuple(turn for turn in turns if turn),
            _iso(edge["valid_at"]), _iso(ended), score=score,
        )  # fmt: skip

    def _opened(self) -> Engine:
        if self._engine is None:
            raise MemoryFault(
                "graphiti: not open; call open(folder) first, and nothing after close()"
            )
        return self._engine


def _group(tenant: str) -> str:
    """The tenant's name in letters, digits and dashes; what is none of these as its number."""
    plain = (c if (c.isascii() and c.isalnum()) or c == "-" else f"_{ord(c):x}_" for c in tenant)
    return "".join(plain) or "_"


def _read(edge: dict[str, Any]) -> str:
    """A fact with the names of the entities that it joins."""
    return "\n".join((edge["fact"], edge["source"], edge["target"]))


def _has(text: str, words: tuple[str, ...]) -> bool:
    return all(word.casefold() in text.casefold() for word in words)


def _iso(time: datetime | None) -> str | None:
    return None if time is None else time.replace(tzinfo=None).isoformat(timespec="minutes")
