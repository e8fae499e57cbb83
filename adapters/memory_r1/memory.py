"""The adapter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Self

import msgspec

from steeltrap.adapters.kept import Forked, names
from steeltrap.adapters.likeness import ByMeaning
from steeltrap.adapters.memory_r1.policy import Entry, ModelPolicy, Operation, Policy, extracted
from steeltrap.adapters.policies import MODEL, policy_class
from steeltrap.harness.memory import Item, Query, Subject, Utterance

if TYPE_CHECKING:
    from steeltrap.adapters.embedders import Embedder

__all__ = ["MemoryR1"]


class _Bank(msgspec.Struct):
    """The memories of one tenant, in the order in which they were added."""

    entries: dict[str, Entry] = {}
    made: int = 0

    def copy(self) -> Self:
        return type(self)(dict(self.entries), self.made)

    def forget(self, subject: Subject) -> None:
        named = names(subject, *(entry.text for entry in self.entries.values()))
        self.entries = {name: e for name, e in self.entries.items() if not named(e.text)}

    def apply(self, done: Operation, at: str) -> None:
        """Carry an operation out; one on a memory that is not there changes nothing."""
        match done.event:
            case "ADD" if done.text.strip():
                self.entries[f"m{self.made}"] = Entry(done.text, at)
                self.made += 1
            case "UPDATE" if done.id in self.entries and done.text.strip():
                self.entries[done.id] = Entry(done.text, at)
            case "DELETE":
                self.entries.pop(done.id, None)


class MemoryR1(Forked[_Bank]):
    """Memory-R1: each new fact is one operation on the store; what is served is distilled.

    A turn (section 3): a model extracts what is worth remembering; for each piece the `related`
    nearest memories are fetched, and the policy chooses one of ADD, UPDATE, DELETE and NOOP. A
    question (section 3.2): the `candidates` nearest memories are fetched, the policy keeps those
    that are of use, and of these the nearest are served, with the time at which each was written
    last. An updated memory keeps its id and nothing of what it said before. Reading changes
    nothing.

    Args:
        embedder: makes the vectors; by default `WordLlamaEmbedder`.
        policy: `model`, or `package.module.Class` of a `Policy`.
        related: memories that the manager is shown beside a new fact.
        candidates: memories that are distilled for a question.

    Raises:
        ValueError: a number is not positive, or there is no such policy.
    """

    def __init__(
        self,
        embedder: Embedder | None = None,
        *,
        policy: str = MODEL,
        related: int = 10,
        candidates: int = 60,
    ) -> None:
        if min(related, candidates) < 1:
            raise ValueError(
                f"memory-r1: related={related}, candidates={candidates}: set both to 1 or more"
            )
        super().__init__("memory-r1", _Bank)
        self._meaning = ByMeaning(embedder)
        self._policy_class = policy_class(policy, ModelPolicy)
        self._related, self._candidates = related, candidates

    @property
    def _policy(self) -> Policy:
        made: Policy = self._policy_class(self._chat)
        return made

    def ingest(self, turn: Utterance) -> None:
        """Extract what is worth remembering, then one operation for each piece of it."""
        bank = self._of(turn.tenant).copy()
        for fact in extracted(self._chat, turn.role, turn.at, turn.text):
            near = dict(self._nearest(bank, fact, self._related))
            related = {name: bank.entries[name] for name in near}
            bank.apply(self._policy.manage(fact, turn.at, related), turn.at)
        self._opened()[turn.tenant] = bank

    def retrieve(self, query: Query) -> Sequence[Item]:
        """The distilled memories, nearest first, with their scores."""
        bank = self._of(query.tenant)
        near = dict(self._nearest(bank, query.text, self._candidates))
        if not near or not query.text.strip() or query.limit < 1:
            return []
        useful = set(self._policy.distil(query.text, {name: bank.entries[name] for name in near}))
        chosen = [name for name in near if name in useful][: query.limit]
        return [_item(name, bank.entries[name], near[name]) for name in chosen]

    def active(self, tenant: str) -> Sequence[Item]:
        """Every memory, in the order in which they were added."""
        return [_item(name, entry) for name, entry in self._of(tenant).entries.items()]

    def erase(self, tenant: str, subject: Subject | None) -> None:
        """See `Kept`."""
        super().erase(tenant, subject)
        self._meaning.forget()

    def _nearest(self, bank: _Bank, text: str, limit: int) -> list[tuple[str, float]]:
        ids = list(bank.entries)
        ranking = self._meaning.best(text, [e.text for e in bank.entries.values()], limit)
        return [(ids[place], score) for place, score in ranking]


def _item(name: str, entry: Entry, score: float | None = None) -> Item:
    return Item(text=entry.text, id=name, valid_from=entry.at, score=score)
