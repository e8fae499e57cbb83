"""What was served: each item once, with what it claims, and counts over the questions."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import msgspec

from steeltrap.harness.memory import Item
from steeltrap.harness.readers import Claim

__all__ = ["BUDGETS_TOKENS", "CUT_OFFS", "Reads", "Seen"]

CUT_OFFS = (1, 3, 5, 10)
BUDGETS_TOKENS = (100, 250, 500, 1000)


class Seen(msgspec.Struct, array_like=True, gc=False):
    """An item that was served, listed or had back."""

    item: Item
    claims: dict[str, tuple[Claim, ...]] = {}
    """By the tenant who was served it."""
    tokens: int | None = None
    """Of its text, where somebody has counted them."""


@dataclass(slots=True)
class Reads:
    """Counts over the probes of set current values, and what was put before the reader."""

    verdicts: Counter[str] = field(default_factory=Counter)
    due: int = 0
    right: int = 0
    evident: int = 0
    evident_at: Counter[int] = field(default_factory=Counter)
    right_within: Counter[int] = field(default_factory=Counter)
    """By budget in tokens."""
    exposed: int = 0
    queries: int = 0
    served_tokens: int = 0
    missing: dict[str, list[int]] = field(default_factory=dict)
    """By family: [set values that were not answered, those asked for]."""
    stale_by_lag: dict[str, list[int]] = field(default_factory=dict)
