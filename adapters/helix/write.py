"""The end of the write path: everything that one turn changes, as one batch.

Every step of the batch looks at the store as it is inside the transaction: a fact whose content is
there already is not written, a memory that is no longer current is not superseded (the batch fails),
and a turn that was written before changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from steeltrap.adapters.helix.asks import Candidate, Relation
from steeltrap.adapters.helix.graph import Row, Store, dsl, entity_key, every, keyed, live, named
from steeltrap.adapters.helix.settings import Settings
from steeltrap.harness.memory import Utterance

__all__ = ["Batch", "Fact", "recall_batch", "turn_batch"]


class Fact(NamedTuple):
    """A candidate with all that is known before it is written."""

    said: Candidate
    relation: Relation
    memories: Sequence[Row]
    """Which it repeats, replaces or extends."""
    number: int
    """Of the new memory, among those of its tenant."""
    vector: Sequence[float] | None
    source: str
    """Id of the turn in which it stands."""


class Batch:
    """A write batch, step by step; a step may depend on whether an earlier one found something."""

    def __init__(self) -> None:
        self.made = dsl().write_batch()
        self.vectors: dict[str, Sequence[float]] = {}

    def add(self, name: str, step: Any, *, where: str = "", unless: str = "") -> None:
        """Add a step.

        Args:
            name: of what it finds or makes.
            step: what it does.
            where: the name of a step that has to have found something.
            unless: of one that must not have.
        """
        condition = dsl().BatchCondition
        if where:
            self.made = self.made.var_as_if(name, condition.var_not_empty(where), step)
        elif unless:
            self.made = self.made.var_as_if(name, condition.var_empty(unless), step)
        else:
            self.made = self.made.var_as(name, step)

    def ensured(self, name: str, label: str, key: str, properties: dict[str, Any]) -> None:
        """Add a node where there is none with its key; `name` is the node, `name`.new the new one."""
        self.add(f"{name}.old", keyed(label, [key]))
        self.add(f"{name}.new", dsl().g().add_n(label, {"key": key, **properties}), unless=f"{name}.old")  # fmt: skip
        self.add(name, keyed(label, [key]))

    def edge(self, start: str, label: str, end: str) -> None:
        """Join what two steps found, where the first found anything."""
        self.add(f"{start}-{label}-{end}", self.at(start).add_e(label, dsl().NodeRef.var(end)), where=start)  # fmt: skip

    def embedding(self, vector: Sequence[float] | None) -> dict[str, Any]:
        """The property of an embedding, whose numbers go beside the query."""
        if vector is None:
            return {}
        name = f"vector{len(self.vectors)}"
        self.vectors[name] = vector
        return {"embedding": dsl().Expr.param(name)}

    def commit(self, store: Store) -> None:
        """Write it, all or nothing; see `Store.commit`."""
        store.commit(self.made.returning([]), **self.vectors)

    @staticmethod
    def at(name: str) -> Any:
        """The nodes that a step found."""
        return dsl().g().n(dsl().NodeRef.var(name))


def turn_batch(
    turn: Utterance, facts: Sequence[Fact], pieces: Sequence[tuple[str, Any]], settings: Settings
) -> Batch:
    """What a turn with facts writes: its source and chunks, and each fact as was decided.

    Args:
        turn: was said.
        facts: in it, at least one.
        pieces: of its text, with their vectors; a turn that only repeats leaves none.
        settings: numbers.
    """
    batch, tenant = Batch(), turn.tenant
    batch.ensured("user", "User", named("user", tenant), {"tenant": tenant, "user": tenant})
    news = any(fact.relation != "duplicate" for fact in facts)
    _source(batch, turn, pieces if news else ())
    for name in dict.fromkeys(
        name for fact in facts for name in fact.said.entities if name.strip()
    ):
        key = entity_key(tenant, name)
        batch.ensured(f"entity.{key}", "Entity", key, {"tenant": tenant, "name": name})
    for kind in dict.fromkeys(fact.said.kind for fact in facts):
        key = named("category", tenant, kind)
        batch.ensured(f"category.{kind}", "Category", key, {"tenant": tenant, "name": kind})
    for fact in facts:
        if fact.relation == "duplicate":
            _reinforced(batch, turn, fact, settings)
        else:
            _written(batch, turn, fact, settings)
    return batch


def recall_batch(recalls: Mapping[str, tuple[float, str]]) -> Batch:
    """What recalls change: how often each memory was served since the last write, and when last."""
    batch, h = Batch(), dsl()
    for number, (key, (times, at)) in enumerate(recalls.items()):
        counted = h.Expr.prop("accessCount") + h.Expr.val(times)
        step = keyed("Memory", [key]).set_property("accessCount", counted)
        batch.add(f"recall{number}", step.set_property("lastAccessedAt", at))
    return batch


def _source(batch: Batch, turn: Utterance, pieces: Sequence[tuple[str, Any]]) -> None:
    """The document (where and when it was said) and its chunks (the text, to be found and cited)."""
    key = named("source", turn.tenant, turn.id)
    about = {"tenant": turn.tenant, "user": turn.tenant}
    batch.ensured("source", "Source", key, {**about, "turn": turn.id, "session": turn.session, "at": turn.at, "role": turn.role})  # fmt: skip
    for number, (text, vector) in enumerate(pieces):
        properties = {**about, "key": f"{key}.{number}", "number": number, "text": text, "turn": turn.id, "at": turn.at}  # fmt: skip
        batch.add(f"chunk{number}", dsl().g().add_n("Chunk", properties | batch.embedding(vector)), where="source.new")  # fmt: skip
        batch.add(f"source-chunk{number}", batch.at("source").add_e("HAS_CHUNK", dsl().NodeRef.var(f"chunk{number}")), where="source.new")  # fmt: skip


def _reinforced(batch: Batch, turn: Utterance, fact: Fact, settings: Settings) -> None:
    """A duplicate: the memory that says the same gains an access, salience and a source."""
    (row,) = fact.memories
    batch.add(f"f{fact.number}", every("Memory", *live(turn.tenant, turn.tenant, turn.at), _is("key", row.key)), where="source.new")  # fmt: skip
    _strengthen(batch, f"f{fact.number}", turn, settings)
    _cite(batch, f"f{fact.number}", turn, fact)


def _strengthen(batch: Batch, name: str, turn: Utterance, settings: Settings) -> None:
    h, more = dsl(), settings.reinforcement
    raised = h.Expr.case(
        [(h.Predicate.gte("salience", 1 - more), h.Expr.val(1.0))],
        h.Expr.prop("salience") + h.Expr.val(more),
    )
    counted = h.Expr.prop("accessCount") + h.Expr.val(1.0)
    step = batch.at(name).set_property("accessCount", counted).set_property("salience", raised)
    batch.add(f"{name}.stronger", step.set_property("lastAccessedAt", turn.at), where=name)


def _written(batch: Batch, turn: Utterance, fact: Fact, settings: Settings) -> None:
    """A new memory with its edges and, where it replaces others, their end."""
    tenant, name = turn.tenant, f"f{fact.number}"
    digest = content_hash(tenant, fact.said)
    current = dsl().Predicate.and_(live(tenant, tenant, turn.at))
    retried = _is("writtenBy", turn.id)
    batch.add(f"{name}.same", every("Memory", _is("contentHash", digest), dsl().Predicate.or_([current, retried])))  # fmt: skip
    batch.add(name, dsl().g().add_n("Memory", _properties(turn, fact, digest, settings) | batch.embedding(fact.vector)), unless=f"{name}.same")  # fmt: skip
    batch.add(f"{name}.repeated", batch.at(f"{name}.same").where(current), where="source.new")
    _strengthen(batch, f"{name}.repeated", turn, settings)
    batch.add(f"{name}.owned", batch.at("user").add_e("OWNS", dsl().NodeRef.var(name)), where=name)
    _cite(batch, name, turn, fact)
    for entity in dict.fromkeys(
        entity_key(tenant, one) for one in fact.said.entities if one.strip()
    ):
        batch.edge(name, "MENTIONS", f"entity.{entity}")
    batch.edge(name, "IN_CATEGORY", f"category.{fact.said.kind}")
    for place, row in enumerate(fact.memories):
        old = f"{name}.old{place}"
        batch.add(old, every("Memory", current, _is("key", row.key)), where=name)
        if fact.relation == "update":
            step = batch.at(old).set_property("isLatest", False).set_property("validTo", turn.at)
            batch.add(f"{old}.ended", step, where=name)
            batch.edge(name, "UPDATES", old)
        else:
            batch.edge(name, "EXTENDS", old)
            if end := _instant(fact.said.expires_at):  # the detail is the end of what it extends
                batch.add(f"{old}.bounded", batch.at(old).set_property("expiresAt", end), where=name)  # fmt: skip


def _cite(batch: Batch, name: str, turn: Utterance, fact: Fact) -> None:
    """Provenance: the turn, and the earlier one in which the fact stands, where that is known."""
    batch.edge(name, "DERIVED_FROM", "source")
    if fact.source != turn.id:
        earlier = keyed("Source", [named("source", turn.tenant, fact.source)])
        batch.add(f"{name}.earlier", earlier, where=name)
        step = batch.at(name).add_e("DERIVED_FROM", dsl().NodeRef.var(f"{name}.earlier"))
        batch.add(f"{name}.cited", step, where=f"{name}.earlier")


def content_hash(tenant: str, said: Candidate) -> str:
    """The idempotency key: the content within its scope; white space does not count."""
    return named("content", tenant, tenant, said.scope, " ".join(said.content.split()))


def _properties(turn: Utterance, fact: Fact, digest: str, settings: Settings) -> dict[str, Any]:
    said = fact.said
    known = {"eventAt": _instant(said.event_at), "expiresAt": _instant(said.expires_at)}
    return {
        "key": f"{named('memory', turn.tenant)}.{fact.number}",
        "number": fact.number,
        "tenant": turn.tenant,
        "user": turn.tenant,
        "scope": said.scope,
        "text": said.content,
        "contentHash": digest,
        "writtenBy": turn.id,
        "kind": said.kind,
        "confidence": float(said.confidence),
        "salience": float(getattr(settings, f"salience_{said.importance}")),
        "accessCount": 0.0,
        "createdAt": turn.at,
        "isLatest": True,
        "validFrom": turn.at,
        **{name: at for name, at in known.items() if at},
    }


def _instant(said: str) -> str:
    """A time that a model gave, to the minute as scripts have them; empty where it is none."""
    try:
        return datetime.fromisoformat(said).strftime("%Y-%m-%dT%H:%M")
    except ValueError:
        return ""


def _is(name: str, value: str) -> Any:
    return dsl().Predicate.eq(name, value)
