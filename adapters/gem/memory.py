"""The adapter: every capability of the reference system."""

from __future__ import annotations

import copy
import threading
from collections.abc import Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from steeltrap.adapters.crowd import Turnstiles, alone
from steeltrap.adapters.embedders import Embedder, WordLlamaEmbedder
from steeltrap.harness.memory import Item, MemoryFault, Query, Subject, Utterance
from steeltrap.harness.tokens import count
from steeltrap.reference_system.interpret import (
    InterpretationError,
    Interpreter,
    ModelFault,
    Speech,
    WordsInterpreter,
)
from steeltrap.reference_system.memory import Memory, Served
from steeltrap.reference_system.policy import PolicySet, default_policies
from steeltrap.reference_system.transition import PolicyBreach

if TYPE_CHECKING:
    from steeltrap.reference_system.stores import Kind

__all__ = ["Gem"]

FILE = "gem.db"
EPOCH = "1970-01-01T00:00"
ALL = 1_000_000
"""A look-up of notes leaves none out."""


class Gem:
    """Governed Evolving Memory; what is said and asked is read by embedding and rules.

    Whatever is revised in the background is revised by `settle`; duplicates are searched for
    and forgetting runs in `maintain`.

    Args:
        store: `native` (SQLite), `ladybug` or `kuzu` (property graphs; one of them in a process),
            or `plain` (in memory).
        embedder: makes the vectors of topics and notes; by default `WordLlamaEmbedder`.
        policies: a file that replaces the default policies, or the name of one of those that stand
            beside this module, in `policies/`.
        bound_tokens: active tokens that a tenant may have, in place of what the policies say.
        salience: `tenant`: reading moves the reader's own ranking alone. `shared`: also that of
            other tenants with a topic of the same name, which leaks what was read.
    """

    def __init__(
        self,
        *,
        store: Kind = "native",
        embedder: Embedder | None = None,
        policies: str | None = None,
        bound_tokens: int | None = None,
        salience: Literal["tenant", "shared"] = "tenant",
    ) -> None:
        self._kind: Kind = store
        self.embedder = embedder or WordLlamaEmbedder()
        self._interpreter: Interpreter = WordsInterpreter(self.embedder.embed)
        self._policies = default_policies()
        if policies is not None:
            beside = Path(__file__).with_name("policies") / f"{policies}.policy"
            file = beside if beside.is_file() else Path(policies)
            self._policies = PolicySet.parse(file.read_text("utf-8"), policies)
        if bound_tokens is not None:
            self._policies = self._policies.with_(f"SET bound = {bound_tokens}")
        self.identity = {"policies_sha256": sha256(self._policies.describe().encode()).hexdigest()}
        self._shared = salience == "shared"
        self._lock, self._turnstiles = threading.RLock(), Turnstiles()
        self._memory: Memory | None = None
        self._tenants: dict[str, None] = {}
        self._now = EPOCH

    @property
    def concurrent(self) -> bool:
        """The engine lets one transition in at a time; its graph stores are not known to be used by
        several threads.
        """
        return self._kind in ("native", "plain")

    def open(self, folder: Path) -> None:
        """Begin an empty memory in `folder`."""
        folder.mkdir(parents=True, exist_ok=True)
        for left in folder.glob(f"{FILE}*"):
            left.unlink()
        self._memory = Memory.open(
            folder / FILE, self._kind, policies=self._policies, embed=self.embedder.embed,
            count=count, interpreter=self._interpreter, shared_salience=self._shared,
        )  # fmt: skip
        self._tenants, self._now = {}, EPOCH

    def close(self) -> None:
        """Close the store."""
        if self._memory is not None:
            self._memory.close()
        self._memory = None

    # ------------------------------------------------------------ operators

    def ingest(self, turn: Utterance) -> None:
        """Interpret and ingest one turn."""
        _refuse_nobody(turn.tenant)
        self._passed(turn.at, turn.tenant)
        try:
            with self._turnstiles.of(turn.tenant):
                self.take_in(turn)
        except (InterpretationError, ModelFault, PolicyBreach) as fault:
            raise MemoryFault(str(fault)) from fault

    def take_in(self, turn: Utterance) -> None:
        """What one turn does to the memory."""
        self.memory.hear(Speech(turn.id, turn.at, turn.tenant, turn.role, "", turn.text))

    def settle(self) -> None:
        """Revise what the latest turns have changed."""
        for tenant in list(self._tenants):
            self.memory.revise(tenant, at=self._now)

    def maintain(self, at: str) -> None:
        """Look for what could be revised, and forget what has faded."""
        self._passed(at)
        for tenant in self._tenants:
            self.memory.revise(tenant, at=at, search=True)
            self.memory.forget(tenant, at=at)

    def retrieve(self, query: Query) -> Sequence[Item]:
        """What answers a question; it is reinforced."""
        _refuse_nobody(query.tenant)
        self._passed(query.at)
        try:
            return self.answer(query)
        except (InterpretationError, ModelFault, PolicyBreach) as fault:
            raise MemoryFault(str(fault)) from fault

    def answer(self, query: Query) -> list[Item]:
        """The items that answer a question."""
        answer = self.memory.ask(query.tenant, query.text, at=query.at, limit=query.limit)
        return [item(served) for served in answer.served]

    # ------------------------------------------------------------ looking

    def active(self, tenant: str) -> Sequence[Item]:
        """The active content of a tenant."""
        return [item(served) for served in self.memory.active(tenant, at=self._now)]

    def history(self, subject: Subject) -> Sequence[Item]:
        """Every value that a field had; where there is no such field, the notes on it."""
        _refuse_nobody(subject.tenant)
        found = self.memory.history(subject.tenant, subject.topic, subject.field)
        return [item(s) for s in found or self.memory.notes(subject.tenant, subject.text)]

    def salience(self, subject: Subject) -> float | None:
        """The stored salience: a day, the later the more."""
        return self.memory.salience(subject.tenant, subject.topic, subject.field)

    def recover(self, subject: Subject) -> Sequence[Item]:
        """The present value, also where it is hidden or archived."""
        _refuse_nobody(subject.tenant)
        found = self.memory.lookup(subject.tenant, subject.topic, subject.field)
        return (
            [item(found)]
            if found
            else [item(s) for s in self.memory.notes(subject.tenant, subject.text)]
        )

    def size_bytes(self) -> int:
        """Bytes of the store."""
        return self.memory.size_bytes()

    # ------------------------------------------------------------ the whole

    def erase(self, tenant: str, subject: Subject | None) -> None:
        """Remove a field or a tenant for good; what is not there needs no removal.

        With a field go the notes that name it: by field and topic, or by field in its topic.
        """
        if subject is None:
            self._erase(tenant)
            return
        self._erase(tenant, subject.topic, subject.field)
        topic, field = subject.topic.casefold(), subject.field.casefold()
        for note in self.memory.notes(tenant, f"{subject.field} {subject.topic}", limit=ALL):
            text = note.value.casefold()
            if field in text and (topic in text or topic == note.topic.casefold()):
                self._erase(tenant, note.topic, note.field)

    def _erase(self, *what: str) -> None:
        with suppress(KeyError):
            self.memory.erase(*what)

    def fork(self) -> Gem:
        """A copy in memory."""
        twin = copy.copy(self)
        twin._memory = self.memory.fork()
        twin._tenants = dict(self._tenants)
        return twin

    @property
    def memory(self) -> Memory:
        """The open memory."""
        if self._memory is None:
            raise MemoryFault("gem: not open; call open(folder) first, and nothing after close()")
        return self._memory

    @alone
    def _passed(self, at: str, tenant: str | None = None) -> None:
        self._now = max(self._now, at)
        if tenant is not None:
            self._tenants.setdefault(tenant)


def _refuse_nobody(tenant: str) -> None:
    """Nothing is kept or sought without a tenant."""
    if not tenant:
        raise MemoryFault("gem: whose memory is meant? Nothing is kept without a tenant's name")


def item(served: Served) -> Item:
    """A served value in the harness's terms."""
    return Item(
        text=served.text,
        id=served.id,
        sources=served.turns,
        valid_from=served.valid_from,
        valid_to=served.valid_to,
        review=served.review,
        score=served.salience,
    )
