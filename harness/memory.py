"""What a memory system gives: the adapter protocols.

`Memory` is required. Each further capability is a protocol of one method, found by what an
adapter implements; a condition that needs a missing capability is reported as not observable.
Times are simulated, ISO 8601 to the minute, and the only clock an adapter should use.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import msgspec

from steeltrap.harness.models import UsesModels

if TYPE_CHECKING:
    from steeltrap.harness.script import Script

__all__ = [
    "CAPABILITIES",
    "Concurrent",
    "Erases",
    "Forks",
    "Item",
    "Lists",
    "Maintains",
    "Memory",
    "MemoryDied",
    "MemoryFault",
    "Query",
    "Recalls",
    "Recovers",
    "Salient",
    "Sized",
    "Subject",
    "Told",
    "Utterance",
    "capabilities",
    "claims_concurrency",
]


class Utterance(msgspec.Struct, frozen=True):
    """One turn as a system receives it."""

    id: str
    """To be given back in `Item.sources` where the system keeps provenance."""
    at: str
    tenant: str
    session: str
    role: str
    text: str


class Query(msgspec.Struct, frozen=True):
    """One question as a system receives it."""

    id: str
    at: str
    tenant: str
    text: str
    limit: int
    """At most so many items may be served; a system with its own budget may serve fewer."""


class Subject(msgspec.Struct, frozen=True):
    """A unit that is asked for by name, not by search."""

    tenant: str
    topic: str
    field: str
    text: str
    """The same as a question."""


class Item(msgspec.Struct, frozen=True, omit_defaults=True):
    """One thing that was served or listed, with whatever the system knows about it."""

    text: str
    id: str | None = None
    sources: tuple[str, ...] | None = None
    """Ids of the turns it came from; None where the system keeps no provenance."""
    valid_from: str | None = None
    valid_to: str | None = None
    """Set when the system marks the item as no longer current from that time on."""
    review: bool = False
    """The system marks the item as waiting for re-evaluation."""
    score: float | None = None


class MemoryFault(RuntimeError):
    """Raised by an adapter: the operation certainly did not happen (outcome `fail`).

    Any other exception leaves open whether it happened (outcome `info`).
    """


class MemoryDied(RuntimeError):
    """The memory's process has ended, and nothing can be asked of it until it is opened again.

    It is open whether the operation happened (outcome `info`).
    """


@runtime_checkable
class Memory(Protocol):
    """What every adapter gives."""

    def open(self, folder: Path) -> None:
        """Begin an empty memory; whatever is written goes below `folder`."""

    def close(self) -> None:
        """Release everything; called at the end, also after a failure, or where nothing was opened."""

    def ingest(self, turn: Utterance) -> None:
        """Take in one turn."""

    def retrieve(self, query: Query) -> Sequence[Item]:
        """What would be put before a model to answer the query, best first."""

    def settle(self) -> None:
        """Wait until background work is done."""


@runtime_checkable
class Lists(Protocol):
    """The state can be read through an audit, not through retrieval."""

    def active(self, tenant: str) -> Sequence[Item]:
        """All content that competes for a place in an answer."""


@runtime_checkable
class Recalls(Protocol):
    """A unit's recorded history can be looked up."""

    def history(self, subject: Subject) -> Sequence[Item]:
        """All entries, oldest first; superseded ones carry `valid_to`."""


@runtime_checkable
class Salient(Protocol):
    """The signal that decides what is attenuated first can be read."""

    def salience(self, subject: Subject) -> float | None:
        """Higher is safer; None when the subject is not known. Must not change the state."""


@runtime_checkable
class Maintains(Protocol):
    """Maintenance (consolidation, decay, forgetting) runs on request."""

    def maintain(self, at: str) -> None:
        """Run it as of a simulated time."""


@runtime_checkable
class Recovers(Protocol):
    """Archived content can be had back by explicit look-up."""

    def recover(self, subject: Subject) -> Sequence[Item]:
        """What the archive or the active state holds on the subject."""


@runtime_checkable
class Erases(Protocol):
    """Content can be removed for good."""

    def erase(self, tenant: str, subject: Subject | None) -> None:
        """Remove a subject, or with None everything of the tenant."""


@runtime_checkable
class Forks(Protocol):
    """The state can be copied, so that a question does not change what it measures."""

    def fork(self) -> Memory:
        """A copy that answers as the original would and leaves it alone."""


@runtime_checkable
class Sized(Protocol):
    """The size on disk is known."""

    def size_bytes(self) -> int:
        """Bytes on disk now."""


@runtime_checkable
class Concurrent(Protocol):
    """Between `open` and `close` several threads may call it at once, for different tenants and for
    one; `maintain`, `erase`, `fork` and `told` still come alone.

    It promises that nothing which it took in is lost, doubled or shown to another tenant, and that
    what has returned is felt by whatever is called after it, or after the next `settle` where it
    works in the background. A run asks one thing at a time, so this is no capability that a history
    names; `steeltrap load` puts it to the test.
    """

    @property
    def concurrent(self) -> bool:
        """Whether it can be relied on with these settings; a class may simply say `True`."""


@runtime_checkable
class Told(Protocol):
    """Is given the script with its truth: the ideal memory and its mutants, never a real system."""

    def told(self, script: Script) -> None:
        """Called once, before `open`."""


CAPABILITIES = {
    "list": Lists,
    "history": Recalls,
    "salience": Salient,
    "maintain": Maintains,
    "recover": Recovers,
    "erase": Erases,
    "fork": Forks,
    "size": Sized,
    "told": Told,
    "models": UsesModels,
}


def capabilities(memory: Memory) -> list[str]:
    """The optional capabilities that a memory implements, by name."""
    return [name for name, protocol in CAPABILITIES.items() if isinstance(memory, protocol)]


def claims_concurrency(memory: Memory) -> bool:
    """Whether a memory says that several threads may call it at once; see `Concurrent`."""
    return isinstance(memory, Concurrent) and memory.concurrent is True
