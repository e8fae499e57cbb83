"""RDF: a triple for every fact, asked and changed in SPARQL; the store is Oxigraph.

A tenant is a named graph, so a query is given one graph as its whole world, and dropping a tenant
is dropping a graph. A fact is a triple (entity, field, "value"). Who said it in which turn is said
of the triple by a reifier (`rdf:reifies`, RDF 1.2, formerly RDF-star): each saying of a fact is a
resource of its own, so a fact that is told twice is one triple with two reifiers. A named graph an
assertion, the older way, would leave no graph for the tenant, and every pattern would have to range
over all graphs; classical reification takes four triples a saying and ties none to the fact.

Names become IRIs by percent-encoding, values become literals, and both are written by the engine's
own serialiser: nothing that was said is ever part of a statement's text.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from steeltrap.adapters.paradigms.base import Held, Schema, Write, key
from steeltrap.adapters.paradigms.entities import EntityGraph
from steeltrap.reference_system.rules import Rule
from steeltrap.reference_system.statements import Place

if TYPE_CHECKING:
    from pyoxigraph import Literal, NamedNode, Quad, QuerySolution, Store

__all__ = ["Rdf"]

_PREFIXES: Final = {
    "m": "urn:steeltrap:",
    "prov": "http://www.w3.org/ns/prov#",
    "rdf": "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
    "rdfs": "http://www.w3.org/2000/01/rdf-schema#",
    "skos": "http://www.w3.org/2004/02/skos/core#",
}
_NAMED: Final = """
INSERT { ?e a m:Entity ; m:number ?number ; rdfs:label ?title }
WHERE { BIND($entity AS ?e) BIND($number AS ?number) BIND($title AS ?title)
        FILTER NOT EXISTS { ?e a m:Entity } }
"""
_SAYING: Final = """
$saying rdf:reifies <<( ?e ?f ?v )>> ; m:number $number ; prov:wasDerivedFrom $turn ;
        prov:generatedAtTime $at ; prov:wasAttributedTo $said_by ; m:validFrom $from .
"""
_REPLACE: Final = f"""
DELETE {{ ?e ?f ?old . ?saying ?p ?o }}
INSERT {{ ?f a m:Field ; rdfs:label $name . ?e ?f ?v . {_SAYING} $more }}
WHERE {{
  VALUES (?e ?f ?v) {{ ($entity $field $value) }}
  OPTIONAL {{ ?e ?f ?old . ?saying rdf:reifies <<( ?e ?f ?old )>> ; ?p ?o }}
  FILTER NOT EXISTS {{ ?e ?f ?held . [] rdf:reifies <<( ?e ?f ?held )>> ; m:validFrom ?since
                       FILTER(?since > $from) }}
}}
"""
"""A value that began to hold later stands: there is no room for one beside it."""
_CONFIRM: Final = f"""
INSERT {{ {_SAYING} $more }} WHERE {{ VALUES (?e ?f) {{ ($entity $field) }} ?e ?f ?v }}
"""
_REMOVE: Final = """
DELETE { ?e ?f ?old . ?saying ?p ?o }
WHERE { VALUES (?e ?f) { ($entity $field) }
        ?e ?f ?old . ?saying rdf:reifies <<( ?e ?f ?old )>> ; ?p ?o }
"""
_LEFT_BARE: Final = """
DELETE { ?s ?p ?o . ?saying ?q ?x }
WHERE { VALUES ?e { $entity }
        FILTER NOT EXISTS { ?e ?f ?v . ?f a m:Field }
        ?s ?p ?o FILTER(?s = ?e || ?o = ?e)
        OPTIONAL { ?saying rdf:reifies <<( ?s ?p ?o )>> ; ?q ?x } }
"""
"""An entity goes with its last value, and so do the edges from and to it."""
_UNUSED: Final = "DELETE { ?f ?p ?o } WHERE { ?f a m:Field ; ?p ?o FILTER NOT EXISTS { ?e ?f ?v } }"
_EDGE: Final = """
INSERT { ?a ?type ?b . $saying rdf:reifies <<( ?a ?type ?b )>> ; prov:wasDerivedFrom $turn }
WHERE { VALUES (?a ?type ?b) { ($one $type $other) } }
"""
_MARK: Final = """
DELETE { ?e m:reviewSince ?old } INSERT { ?e m:reviewSince $number }
WHERE { ?e m:dependsOn+ $entity OPTIONAL { ?e m:reviewSince ?old } }
"""
_ANOTHER: Final = """
ASK { VALUES (?e ?f ?v) { ($entity $field $value) }
      ?e ?f ?old FILTER(?old != ?v)
      FILTER NOT EXISTS { [] rdf:reifies <<( ?e ?f ?old )>> ; m:validFrom ?since FILTER(?since > $from) } }
"""
_HELD: Final = """
SELECT ?e ?f ?v ?title ?name ?number ?turn ?said_by ?from ?until ?review WHERE {
  VALUES (?e ?f) { ($entity $field) }
  ?e a m:Entity ; rdfs:label ?title ; m:number ?made ; ?f ?v .
  ?f a m:Field ; rdfs:label ?name .
  ?saying rdf:reifies <<( ?e ?f ?v )>> ; m:number ?number ; prov:wasDerivedFrom ?turn ;
          prov:wasAttributedTo ?said_by ; m:validFrom ?from .
  OPTIONAL { ?saying m:validUntil ?until }
  OPTIONAL { ?e m:reviewSince ?review }
} ORDER BY ?made ?f ?number
"""
_ANY: Final = "UNDEF"
_NEAR: Final = """
SELECT DISTINCT ?other ?made WHERE {
  $entity $path ?other . ?other m:number ?made FILTER(?other != $entity)
} ORDER BY ?made
"""
_STEP: Final = "(m:dependsOn|^m:dependsOn|m:relatedTo|^m:relatedTo)"
_SCHEMA: Final = """
SELECT ?e ?title ?made ?name ?other WHERE {
  ?e a m:Entity ; rdfs:label ?title ; m:number ?made .
  OPTIONAL { { ?e ?f ?v . ?f a m:Field ; rdfs:label ?name } UNION { ?e skos:altLabel ?other } }
} ORDER BY ?made ?name ?other
"""


class Rdf(EntityGraph):
    """Facts as triples, updated in place by SPARQL; see the module and `EntityGraph`."""

    name = "rdf"

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self._folder: Path | None = None
        """None: in memory."""
        self._opened_store: Store | None = None
        self._undo: dict[NamedNode, list[Quad]] | None = None
        """Graphs as they were before the transaction that runs."""

    # ------------------------------------------------------------ life

    def create(self, folder: Path) -> None:
        """Begin an empty store in `folder`/oxigraph."""
        self._folder = folder / "oxigraph"
        self._said = 0
        self._rewrite([])

    def release(self) -> None:
        """Close the store: the engine does so when nobody refers to it."""
        self._opened_store = None

    def fork(self) -> Rdf:
        """A copy in memory."""
        from pyoxigraph import Store

        twin = self.twin()
        twin._folder, twin._opened_store = None, Store()
        twin._opened_store.extend(self._store)
        return twin

    def size_bytes(self) -> int:
        """Bytes of the store's files, the engine's log among them."""
        self._opened()
        files = self._folder.rglob("*") if self._folder else ()
        return sum(path.stat().st_size for path in files if path.is_file())

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """The engine has no transaction over several updates, so graphs are kept to go back to."""
        self._undo = {}
        try:
            yield
        except BaseException:
            for graph, quads in self._undo.items():
                said = " . ".join(str(quad.triple) for quad in quads)
                self._store.update(
                    f"DROP SILENT GRAPH {graph} ; INSERT DATA {{ GRAPH {graph} {{ {said} }} }}"
                )
            raise
        finally:
            self._undo = None

    @property
    def _store(self) -> Store:
        assert self._opened_store is not None
        return self._opened_store

    def _rewrite(self, quads: list[Quad]) -> None:
        """Begin a new store with these: the engine leaves the words of what is removed in its files."""
        from pyoxigraph import Store

        self._opened_store = None
        if self._folder is None:
            self._opened_store = Store()
        else:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._opened_store = Store(str(self._folder))
        self._opened_store.extend(quads)

    # ------------------------------------------------------------ writing

    def replace(self, write: Write) -> bool:
        """See `EntityGraph`."""
        fact = {
            "entity": _entity(write.topic), "field": _field(write.field),
            "value": _text(write.value), "from": _text(write.valid_from),
        }  # fmt: skip
        another = bool(self._ask(write.tenant, _ANOTHER, **fact))
        self._name(write.tenant, write.topic)
        named = {**fact, "name": _text(write.field), **self._saying(write)}
        self._update(write.tenant, _REPLACE, **named)
        return another

    def confirm(self, write: Write) -> None:
        """See `EntityGraph`."""
        self._update(
            write.tenant, _CONFIRM, entity=_entity(write.topic), field=_field(write.field),
            **self._saying(write),
        )  # fmt: skip

    def remove(self, tenant: str, place: Place) -> None:
        """See `EntityGraph`."""
        self._update(tenant, _REMOVE, entity=_entity(place.topic), field=_field(place.field))

    def mark(self, tenant: str, topic: str) -> None:
        """See `EntityGraph`."""
        self._update(tenant, _MARK, entity=_entity(topic), number=str(self._said))

    def depend(
        self, tenant: str, source: Place, target: Place, rule: Rule | None, turn: str, at: str  # noqa: ARG002
    ) -> None:  # fmt: skip
        """An edge between the two entities: what the rule says of their fields has no place in it."""
        self._edge(tenant, target.topic, "dependsOn", source.topic, turn)

    def relate(self, tenant: str, topic: str, other: str, turn: str) -> None:
        """An edge that no mark crosses."""
        self._edge(tenant, topic, "relatedTo", other, turn)

    def alias(self, tenant: str, topic: str, name: str) -> None:
        """A label beside the first one."""
        self._update(
            tenant, "INSERT DATA { GRAPH $graph { $entity skos:altLabel $name } }",
            entity=_entity(topic), name=_text(name),
        )  # fmt: skip

    def drop(self, tenant: str, place: Place | None) -> None:
        """Remove a value or a graph, and write what remains into a new store."""
        if place is None:
            self._update(tenant, "DROP SILENT GRAPH $graph")
        else:
            self.remove(tenant, place)
            self._update(tenant, _LEFT_BARE, entity=_entity(place.topic))
            self._update(tenant, _UNUSED)

    def erase(self, tenant: str, subject: Any) -> None:
        """Remove a field or a tenant for good; what is not there needs no removal."""
        super().erase(tenant, subject)
        self._rewrite(list(self._store))

    def _edge(self, tenant: str, one: str, kind: str, other: str, turn: str) -> None:
        for topic in (one, other):
            self._name(tenant, topic)
        self._update(
            tenant, _EDGE, one=_entity(one), type=_node(kind), other=_entity(other),
            saying=_node("saying", str(self.number())), turn=_text(turn),
        )  # fmt: skip

    def _name(self, tenant: str, topic: str) -> None:
        self._update(
            tenant, _NAMED, entity=_entity(topic), number=str(self.number()), title=_text(topic)
        )

    def _saying(self, write: Write) -> dict[str, Any]:
        number = self.number()
        saying = _node("saying", str(number))
        until = f"{saying} m:validUntil {_text(write.until)}" if write.until else ""
        return {
            "saying": saying, "number": str(number), "turn": _text(write.turn),
            "at": _text(write.at), "said_by": _text(write.said_by),
            "from": _text(write.valid_from), "more": until,
        }  # fmt: skip

    def _update(self, tenant: str, statement: str, **terms: Any) -> None:
        """Change a tenant's graph."""
        graph = _node("tenant", tenant)
        if self._undo is not None and graph not in self._undo:
            self._undo[graph] = list(self._store.quads_for_pattern(None, None, None, graph))
        written = _written(statement, graph=graph, **terms)
        scoped = written if "$graph" in statement else f"WITH {graph} {written}"
        self._store.update(scoped, prefixes=_PREFIXES)

    # ------------------------------------------------------------ reading

    def schema(self, tenant: str) -> Sequence[Schema]:
        """Entities in the order in which they came, with their labels."""
        found = []
        for _, rows in groupby(self._ask(tenant, _SCHEMA), lambda row: row["e"]):
            entity = list(rows)
            found.append(
                Schema(
                    entity[0]["title"].value,
                    tuple(dict.fromkeys(row["name"].value for row in entity if row["name"])),
                    tuple(dict.fromkeys(row["other"].value for row in entity if row["other"])),
                )
            )
        return found

    def current(self, tenant: str, place: Place, at: str) -> Held | None:
        """The value of the field's triple."""
        found = self._held(tenant, at, _entity(place.topic), _field(place.field))
        return found[0] if found else None

    def listing(self, tenant: str, at: str) -> Sequence[Held]:
        """Every triple of a field, by entities."""
        return self._held(tenant, at)

    def linked(self, tenant: str, place: Place, at: str) -> Sequence[Held]:
        """The values of the entities that lie within `hops` edges."""
        if not self._hops:
            return ()
        path = "|".join("/".join([_STEP] * hops) for hops in range(1, self._hops + 1))
        near = self._ask(tenant, _NEAR, path=path, entity=_entity(place.topic))
        return [held for row in near for held in self._held(tenant, at, row["other"])]

    def _held(
        self, tenant: str, at: str, entity: NamedNode | str = _ANY, field: NamedNode | str = _ANY
    ) -> list[Held]:
        rows = self._ask(tenant, _HELD, entity=entity, field=field)
        found = [
            _value(list(group)) for _, group in groupby(rows, lambda row: (row["e"], row["f"]))
        ]
        return [held for held in found if held.valid_to is None or held.valid_to > at]

    def _ask(self, tenant: str, query: str, **terms: Any) -> Any:
        """Ask a tenant's graph, which is all that the query can see."""
        graph = _node("tenant", tenant)
        return self._store.query(
            _written(query, **terms), prefixes=_PREFIXES, default_graph=[graph], named_graphs=[]
        )


def _written(statement: str, **terms: Any) -> str:
    """A statement with its terms, each in the engine's own spelling, in the places of their names.

    The engine takes no parameters in updates, and in queries for the variables alone that are asked.
    """
    return re.sub(r"\$(\w+)", lambda found: str(terms[found[1]]), statement)


def _value(sayings: list[QuerySolution]) -> Held:
    """A triple with all that was said of it, the first saying first."""
    first, last = sayings[0], sayings[-1]
    ends = [row["until"].value for row in sayings if row["until"]]
    return Held(
        first["title"].value, first["name"].value, first["v"].value, last["said_by"].value,
        turns=tuple(dict.fromkeys(row["turn"].value for row in sayings)),
        valid_from=first["from"].value,
        valid_to=ends[-1] if ends else None,
        review=bool(first["review"]) and int(last["number"].value) < int(first["review"].value),
    )  # fmt: skip


def _entity(topic: str) -> NamedNode:
    return _node("entity", key(topic))


def _field(name: str) -> NamedNode:
    return _node("field", key(name))


def _node(*path: str) -> NamedNode:
    from pyoxigraph import NamedNode

    return NamedNode(_PREFIXES["m"] + ":".join(quote(part, safe="") for part in path))


def _text(words: str) -> Literal:
    from pyoxigraph import Literal

    return Literal(words)
