"""What agents would send, read from records: sums for tables and figures."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from steeltrap.harness.gateway.prices import Price, price
from steeltrap.harness.models import Usage
from steeltrap.harness.record import Record, Request

__all__ = ["CHARACTERS", "LAYOUTS", "Cached", "cached", "estimated", "priced", "total_tokens", "triggered", "triggers"]  # fmt: skip

CHARACTERS: Final = 4
"""Of a token, where tokens are estimated from the length of a text."""
LAYOUTS: Final = ("instructions first", "memory first")
_PRICED: Final = "gpt-5.6-luna"
"""Whose prices count where the model of a run has none."""
_FEWEST: Final = 3
"""Triggers that make a sweep."""


def estimated(request: Request) -> float:
    """Tokens of a request, by the length of its text."""
    return request.characters / CHARACTERS


def total_tokens(record: Record) -> int | None:
    """All input tokens of a run: of the requests, and of what the memory itself asked models for.

    None where the script does not ask with its turns.
    """
    if not record.outcome.requests:
        return None
    asked = sum(record.outcome.usage.values(), Usage())
    return sum(request.tokens for request in record.outcome.requests) + asked.prompt_tokens


def triggered(records: Iterable[Record]) -> bool:
    """Whether there are requests of a memory that summarises at a trigger."""
    return any(r.spec.settings.get("trigger_tokens") and r.outcome.requests for r in records)


def triggers(records: Iterable[Record]) -> dict[int, list[Record]]:
    """The records by their trigger of summarisation; empty where there are fewer than three."""
    found: dict[int, list[Record]] = {}
    for record in records:
        if triggered([record]):
            found.setdefault(int(record.spec.settings["trigger_tokens"]), []).append(record)
    return dict(sorted(found.items())) if len(found) >= _FEWEST else {}


# ---------------------------------------------------------------- caching


class Cached(NamedTuple):
    """The requests of several runs in one layout."""

    requests: int
    tokens: int
    cached_tokens: int

    @property
    def share(self) -> float:
        """Of the tokens, those that a cache would have."""
        return self.cached_tokens / self.tokens

    def usd(self, by: Price) -> float:
        """What the input costs; what is put into the cache costs as any input."""
        again = by.input if by.cached_input is None else by.cached_input
        fresh = self.tokens - self.cached_tokens
        return (fresh * by.input + self.cached_tokens * again) / 1_000_000


def cached(records: Sequence[Record], layout: str) -> Cached | None:
    """What a cache of exact prefixes would have of the requests; None where there are none."""
    sent = [request for record in records for request in record.outcome.requests]
    if not sent:
        return None
    first = layout == LAYOUTS[0]
    held = sum(r.cached_tokens if first else r.cached_memory_first_tokens for r in sent)
    return Cached(len(sent), sum(request.tokens for request in sent), held)


def priced(records: Iterable[Record]) -> tuple[str, Price]:
    """The model whose prices count: the one that all runs asked, where its prices are known."""
    asked = {str(model) for r in records if (model := r.spec.model.get("model"))}
    name = asked.pop() if len(asked) == 1 else _PRICED
    found = price(name) or price(name := _PRICED)
    assert found is not None
    return name, found
