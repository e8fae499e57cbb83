"""What of a model's whole context is served where a query has a limit.

Some memories put everything that they hold before the model: a trajectory, a queue of messages. What
of it bears on a question is for the model to find. Where a query may be served less than all, what
lies nearest to the question stands for that, in the order in which the context has it: the cut is
no ranking of the memory's own, and decides nothing about what is kept.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from steeltrap.adapters.embedders import Embedder
from steeltrap.adapters.vector.ranking import ranked
from steeltrap.harness.memory import Item

__all__ = ["fitting"]


def fitting(items: Sequence[Item], question: str, limit: int, embedder: Embedder) -> list[Item]:
    """At most so many items, those nearest to the question, in their own order."""
    if len(items) <= limit:
        return list(items)
    if limit < 1:
        return []
    rows = embedder.embed([question, *(item.text for item in items)]).astype(np.float64)
    scores = (rows[1:] * rows[0]).sum(axis=1)
    kept = {number for number, _ in ranked(range(len(items)), scores, limit)}
    return [item for number, item in enumerate(items) if number in kept]
