"""The state M = (D, S, P) of "Is Agent Memory a Database?" (section 3.1), and proposed changes to it.

D is topics with fields and their histories, S is edges, P is the policies (in `policy`). All
records are immutable: a transition makes new ones and leaves the old ones alone until it is
committed. The present of every field is held in memory; its history is in the store.

Entries of a history are only ever added. What is later learned of an entry (that it was said
again, ends, or was never true) is an entry of its own that points at it.

Salience is kept by forward decay (Cormode, Shkapenyuk, Srivastava, Xu: "Forward decay", ICDE
2009): every access at day t adds 2^(t / half-life), and the day is stored at which a single access
would have come to the same sum. All fields fade at the same pace, so nothing has to be written
while time passes, the order of two fields changes only when one of them is accessed, and an access
always raises the stored number. A day means the same whatever the half-life, so another one can
be set at any time.
"""

from __future__ import annotations

import math
import unicodedata
from datetime import UTC, datetime
from functools import lru_cache
from typing import Final, Literal

import msgspec

from steeltrap.reference_system.rules import Rule

__all__ = [
    "ASSOCIATION",
    "COMPRESSED",
    "EXTENSION",
    "FULL",
    "HIDDEN",
    "NEVER",
    "Alias",
    "Delta",
    "Edge",
    "Entry",
    "Evidence",
    "Field",
    "PolicyText",
    "Record",
    "Topic",
    "accessed",
    "day",
    "key",
    "moment",
    "number",
    "strength",
    "titles",
]

FULL, COMPRESSED, HIDDEN = 0, 1, 2
"""The rungs of the ladder at field grain; the last one, archive, is a topic's."""
EXTENSION: Final = "extension"
ASSOCIATION: Final = "association"
NEVER: Final = -math.inf
"""The salience of what was never accessed."""

Written = Literal["told", "corrected", "withdrawn", "derived", "contested", "restated", "ends", "void", "doubted", "merged", "planned"]  # fmt: skip


class _Record(msgspec.Struct, frozen=True, gc=False):
    pass


class Entry(_Record, frozen=True, gc=False):
    """One line of a field's history, never changed: ⟨value, time, provenance⟩.

    `told`, `corrected`, `withdrawn` and `derived` entries were current when they were written,
    unless they are news about an earlier time. `contested` ones were kept beside the current
    value. `restated`, `ends` and `void` say something of the entry `about`, and `doubted` that the
    present value waits for review. `planned` holds a value that begins to hold later. `merged` says which entry (`about` of the field `via`) holds
    since two fields were merged.
    """

    field: str
    """Id of the field."""
    seq: int
    """1, 2, 3, … within the field."""
    op: Written
    value: str | None
    """None: withdrawn."""
    valid_from: str
    """Valid time: from when it held in the world."""
    until: str | None
    """Valid time: it holds until then."""
    recorded: str
    """Transaction time: when the memory took it in."""
    order: int
    """Its number among everything that was ever written for the tenant."""
    turn: str
    """Provenance: the turn it was said in; of a derived value, the turn that changed its source."""
    said_by: str
    """Provenance: whose words."""
    sources: tuple[str, ...]
    """Provenance: further turns, such as that of the rule by which a value was derived."""
    about: int
    """`restated`, `ends`, `void`, `merged`: the `seq` that this is about; 0 elsewhere."""
    via: str
    """`derived`, `doubted`: the field from which this came; `merged`: that of the entry `about`."""
    policy: str
    """The policy that let it in."""


class Field(_Record, frozen=True, gc=False):
    """The present of a field. What holds now follows from its entries (`check` verifies it)."""

    id: str
    tenant: str
    topic: str
    """Id of the topic."""
    name: str
    about: str
    tags: tuple[str, ...]
    state: Literal["unset", "set", "review"]
    """review: the value held last, and somebody has to look."""
    value: str | None
    seq: int
    """`seq` of the entry that holds or held last; 0: none yet."""
    valid_from: str
    until: str | None
    turn: str
    said_by: str
    sources: tuple[str, ...]
    via: str
    """The field that the value was derived from."""
    cause: int
    """`order` of the entry that the value goes back to: its own, or of a derived one its source's."""
    entries: int
    """Length of the history."""
    mentions: int
    """How often a value was told or restated."""
    order: int
    """`order` of what was written to it last."""
    salience: float
    """Days since 1970: a single access then would count as much as all there were; see the module."""
    level: int
    """FULL, COMPRESSED or HIDDEN."""
    tokens: int
    """Of its sentence while it is active."""
    into: str = ""
    """Id of the field of the same name that it was merged into."""

    def holds(self, at: str) -> bool:
        """Whether there is a value (also one that waits for review) at an instant from now on."""
        return self.state != "unset" and (self.until is None or self.until > at)


class Topic(_Record, frozen=True, gc=False):
    """A self-contained unit: what the fields of one concept have in common."""

    id: str
    tenant: str
    title: str
    summary: str
    vector: bytes
    """Its embedding, float32, of unit length; empty where no embedder is used."""
    tags: tuple[str, ...]
    order: int
    """`order` of what was written to it last."""
    archived: bool = False
    into: str = ""
    """Id of the topic that it was merged into."""


class Edge(_Record, frozen=True, gc=False):
    """A typed edge of S: between fields if it is an extension, between topics if an association."""

    id: str
    tenant: str
    kind: Literal["extension", "association"]
    source: str
    target: str
    rule: Rule | None
    turn: str
    order: int


class Evidence(_Record, frozen=True, gc=False):
    """A finding that revision has yet to deal with."""

    id: str
    tenant: str
    kind: Literal["dependency", "duplicate", "drift", "group", "due"]
    subject: str
    """dependency, drift, due: a field; duplicate, group: a topic."""
    other: str
    """duplicate: a topic; drift: a field; group: the name of the group; due: whose words."""
    seq: int
    """dependency: the entry that changed; due: the one that is planned."""
    order: int
    at: str
    """due: from when the planned value holds; elsewhere when it was found."""
    policy: str
    """The policy that flagged it."""


class Alias(_Record, frozen=True, gc=False):
    """Another name for a topic (within a tenant) or for a field (within a topic)."""

    id: str
    """`scope` and name key, separated by a line feed."""
    tenant: str
    scope: str
    """That of the tenant's titles, or the id of the topic."""
    name: str
    target: str


class PolicyText(_Record, frozen=True, gc=False):
    """One statement of P, kept in the state."""

    id: str
    """Its name, or `SET name`, or `RANK`."""
    place: int
    text: str


Record = Topic | Field | Entry | Edge | Evidence | Alias | PolicyText


# ---------------------------------------------------------------- names, times, salience


def key(name: str) -> str:
    """A title or field name as it is looked up: case and runs of blanks do not matter, nor whether
    an accent is a sign of its own.
    """
    return unicodedata.normalize("NFC", " ".join(name.split()).casefold())


def titles(tenant: str) -> str:
    """The scope of a tenant's other names for topics; no id of a topic is like it."""
    return f"{tenant}:"


def number(name: str) -> int:
    """The number in an id: what was made earlier has a lower one."""
    return int(name.rpartition(":")[2][1:])


@lru_cache(maxsize=8192)
def moment(text: str) -> str:
    """An instant in the form in which it is kept and compared: UTC, to the second.

    Args:
        text: ISO 8601, taken for UTC where it names no zone.

    Raises:
        ValueError: it is no instant.
    """
    try:
        at = datetime.fromisoformat(text)
        if at.tzinfo is not None:
            at = at.astimezone(UTC).replace(tzinfo=None)
    except (ValueError, TypeError, OverflowError):
        raise ValueError(f"{text!r} is not an instant; write it as 2026-04-20T14:00") from None
    return at.isoformat(timespec="seconds")


@lru_cache(maxsize=8192)
def day(at: str) -> float:
    """Days between the beginning of 1970 and an instant."""
    return (datetime.fromisoformat(at) - datetime(1970, 1, 1)).total_seconds() / 86_400


def accessed(salience: float, at: str, half_life_days: float, weight: float = 1.0) -> float:
    """The salience after an access; always more than before."""
    gain = day(at) + half_life_days * math.log2(weight)
    high, low = max(salience, gain), min(salience, gain)
    more = math.log2(1.0 + 2.0 ** ((low - high) / half_life_days)) if low > NEVER else 0.0
    raised = high + half_life_days * more
    return raised if raised > salience else math.nextafter(salience, math.inf)


def strength(salience: float, at: str, half_life_days: float) -> float:
    """The decayed number of accesses, as of an instant: one access is 1, after a half-life 0.5."""
    return float(2.0 ** min((salience - day(at)) / half_life_days, 1000.0))


# ---------------------------------------------------------------- a proposed change


class Delta:
    """What one transition would change: M_{t+1} as a difference to M_t. Made for one tenant."""

    def __init__(self, tenant: str, at: str, order: int, number: int) -> None:
        self.tenant = tenant
        self.at = at
        self.order = order
        """The highest `order` so far."""
        self.number = number
        """The highest number given to an id so far."""
        self.topics: dict[str, Topic] = {}
        self.fields: dict[str, Field] = {}
        """New, or changed in more than their salience."""
        self.touched: dict[str, float] = {}
        """Salience alone: the new value of fields that were accessed."""
        self.entries: list[Entry] = []
        self.edges: dict[str, Edge] = {}
        self.evidence: dict[str, Evidence | None] = {}
        """None: dealt with."""
        self.aliases: dict[str, Alias] = {}

    def __bool__(self) -> bool:
        return bool(
            self.topics or self.fields or self.touched or self.entries
            or self.edges or self.evidence or self.aliases
        )  # fmt: skip
