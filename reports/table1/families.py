"""The rows of the paper's Table 1 in its own words, and which systems here belong to each."""

from __future__ import annotations

from typing import Final, NamedTuple

__all__ = [
    "FAMILIES",
    "IN_PART",
    "NOT",
    "OTHERS",
    "SUPPLIED",
    "UNKNOWN",
    "Family",
    "base",
    "family_of",
]

SUPPLIED: Final = "supplied"
IN_PART: Final = "in part"
NOT: Final = "not supplied"
UNKNOWN: Final = "unknown"


class Family(NamedTuple):
    """A row of the paper's table."""

    group: str
    name: str
    words: tuple[str, str, str, str]
    """What the paper says of each capability."""
    strength: str
    """What it says the family contributes."""
    systems: tuple[str, ...] = ()
    """Systems here that belong to it."""
    agree: tuple[tuple[str, ...], ...] = ((NOT,), (NOT,), (NOT,), (NOT,))
    """Marks that agree with the words."""


_NONE: Final = "None"
_DATABASES: Final = "Database paradigms"
_AGENTS: Final = "Agent memory systems"
_SAYS_NOTHING: Final = ("",) * 4
_EITHER: Final = (NOT, IN_PART)
FAMILIES: Final = (
    # What follows over a foreign key, and no further: one kind of rule at most.
    Family(
        _DATABASES, "Relational", (_NONE, "Foreign key only", _NONE, _NONE), "Schema, ACID",
        ("relational", "relational-active"), ((NOT,), _EITHER, (NOT,), (NOT,)),
    ),
    Family(
        _DATABASES, "Key-value / Document", (_NONE,) * 4, "Flexible or no schema", ("document",),
    ),
    # Typed relations between entities, which "desynchronize at entity grain" (section 2.2).
    Family(
        _DATABASES, "RDF / Property Graph", (_NONE, "Typed, entity-grain", _NONE, _NONE),
        "Typed structural relations", ("rdf", "property-graph"), ((NOT,), _EITHER, (NOT,), (NOT,)),
    ),
    Family(_DATABASES, "Temporal DB", (_NONE,) * 4, "Versioned histories", ("temporal",)),
    # Nearness is no dependency: "No DBMS re-evaluates dependent facts" (section 2.2).
    Family(
        _DATABASES, "Vector DB", (_NONE, "Geometric proximity", _NONE, _NONE),
        "Semantic similarity", ("vector-db", "vector", "vector-window", "hybrid"),
    ),
    # "Tiering moves whole entries by capacity" (section 2.3): what is paged out can be had back.
    Family(
        _AGENTS, "Tiered (MemGPT, MemOS)", (_NONE,) * 4, "Two-level paging",
        ("memgpt", "letta", "memos", "memos-capped"), ((NOT,), (NOT,), _EITHER, (NOT,)),
    ),
    Family(
        _AGENTS, "Fact-extraction (Mem0)", (_NONE,) * 4, "Atomic fact maintenance",
        ("mem0", "mem0-classic", "mem0-classic-graph", "mem0-platform"),
    ),
    # It invalidates the edge that was spoken of and "does not re-evaluate edges" beside it
    # (section 2.2), so one edge at most.
    Family(
        _AGENTS, "Graph-structured (Zep)", (_NONE, "Single-edge invalidation", _NONE, _NONE),
        "Bi-temporal edges", ("graphiti", "zep"), ((NOT,), _EITHER, (NOT,), (NOT,)),
    ),
    # "EverMemOS is the partial exception. It expires time-bounded foresight at retrieval while
    # keeping the rest" (section 2.3).
    Family(
        _AGENTS, "Consolidation-based (MIRIX, EverMemOS)",
        (_NONE, _NONE, "Foresight expiry", _NONE), "Typed components, scene consolidation",
        ("mirix", "mirix-client", "everos"), ((NOT,), (NOT,), _EITHER, (NOT,)),
    ),
    Family(
        _AGENTS, "RL-driven (Mem-α, Memory-R1)", (_NONE,) * 4, "Learned update policies",
        ("mem-alpha", "memory-r1"),
    ),
    # "Local heuristics applied at retrieval time, not policies that bound the active footprint"
    # (section 2.1); recency on access is a write of every read (section 2.4).
    Family(
        _AGENTS, "Generative Agents", ("Importance ranking", _NONE, _NONE, "Recency on access"),
        "Importance + reflection", ("generative-agents", "generative-agents-code"),
        (_EITHER, (NOT,), (NOT,), (IN_PART, SUPPLIED)),
    ),
    # Not a row of the table: what sections 3 and 4 say of the paper's own proposal.
    Family(
        "The paper's proposal", "Governed Evolving Memory", ("By design",) * 4, "All four",
        ("gem", "gem-graph", "gem-told", "gem-words", "memstate"), ((SUPPLIED,),) * 4,
    ),
    Family(
        "Beside the paper's table", "The recipe on HelixDB", _SAYS_NOTHING,
        "Versioned, scoped facts with provenance", ("helix-recipe", "hybrid-recipe"), ((),) * 4,
    ),
    Family(
        "Beside the paper's table", "Oracle Agent Memory", _SAYS_NOTHING,
        "Extracted memories in one database", ("oracle", "oracle-memories", "oracle-database"), ((),) * 4,
    ),
    Family(
        "Beside the paper's table", "Further memories", _SAYS_NOTHING, "",
        ("langmem", "a-mem", "reflexion"), ((),) * 4,
    ),
)  # fmt: skip
"""In the paper's order; below them what its table has no row for."""
OTHERS: Final = Family("Baselines", "", _SAYS_NOTHING, "", (), ((),) * 4)


def base(system: str) -> str:
    """The name of a system without what was set differently, which stands after a space."""
    return system.split()[0]


def family_of(system: str) -> Family:
    """The family of a system, whatever was set."""
    return next((family for family in FAMILIES if base(system) in family.systems), OTHERS)
