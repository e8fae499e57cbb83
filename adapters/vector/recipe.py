"""Both rankings fused, then adjusted: what is recent and what was served before comes first."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Final

from steeltrap.adapters.crowd import alone
from steeltrap.adapters.vector.memory import Entry, Shelf, Splitting, Vector
from steeltrap.adapters.vector.ranking import fused, ranked

if TYPE_CHECKING:
    from steeltrap.adapters.embedders import Embedder
    from steeltrap.adapters.vector.ranking import Ranking
    from steeltrap.harness.memory import Item, Query, Subject

__all__ = ["Recipe"]

_MINUTES_A_DAY: Final = 24 * 60


class Recipe(Vector):
    """`hybrid` by the usual recipe: fuse, "then adjust by salience and recency".

    An entry's score is

        fused * (1 + recency * 0.5 ** (age / half_life_days) + salience * served / (served + 1))

    where `age` is the days from when it was said to when it is asked for (0 for what is said
    later), and `served` how many questions of its tenant it was served to before. So by default
    an entry of today or one that is served every time gains up to a quarter, which at the top of
    two fused rankings is worth about ten places. **Reading changes the state**: what is served is
    counted, and the order in which questions are asked matters.

    Args:
        embedder: makes the vectors; by default `WordLlamaEmbedder`.
        half_life_days: after so many simulated days half of what recency adds is left.
        recency: weight of it; 0 leaves it out.
        salience: weight of having been served; 0 leaves it out, though servings are counted.
        capacity_turns: as of `Vector`.
        entry: as of `Vector`.
        words: as of `Vector`.

    Raises:
        ValueError: the half life is not positive, a weight is negative, or as of `Vector`.
    """

    def __init__(
        self,
        embedder: Embedder | None = None,
        *,
        half_life_days: float = 30.0,
        recency: float = 0.25,
        salience: float = 0.25,
        capacity_turns: int | None = None,
        entry: Entry = "turn",
        words: Splitting = "stems",
    ) -> None:
        if half_life_days <= 0:
            raise ValueError(f"recipe: a half life of {half_life_days} days; set more than 0")
        if min(recency, salience) < 0:
            raise ValueError("recipe: weights of recency and salience are at least 0")
        super().__init__(
            embedder, fusion="hybrid", capacity_turns=capacity_turns, entry=entry, words=words
        )
        self._half_life_days = half_life_days
        self._recency = recency
        self._salience = salience

    @alone
    def retrieve(self, query: Query) -> Sequence[Item]:
        """The `query.limit` best entries with their scores; each is counted as served."""
        served = super().retrieve(query)
        if served:
            self._shelf(query.tenant).served.update(item.id or "" for item in served)
        return served

    @alone
    def salience(self, subject: Subject) -> float | None:
        """How often entries of the subject were served; None if there are none.

        They are those that name its topic and field; where none does, those that name its topic.
        """
        if (shelf := self._opened().get(subject.tenant)) is None:
            return None
        served = shelf.served
        topic, field = subject.topic.casefold(), subject.field.casefold()
        named = [item for item in self.active(subject.tenant) if topic in item.text.casefold()]
        exact = [item for item in named if field in item.text.casefold()]
        return float(sum(served[item.id or ""] for item in exact or named)) if named else None

    def _ranking(self, shelf: Shelf, query: Query) -> Ranking:
        found = fused(self._rankings(shelf, query), len(shelf.items))
        asked = datetime.fromisoformat(query.at)
        scores = [score * self._factor(shelf, number, asked) for number, score in found]
        return ranked([number for number, _ in found], scores, query.limit)

    def _factor(self, shelf: Shelf, number: int, asked: datetime) -> float:
        item = shelf.items[number]
        assert item.valid_from is not None
        age = asked - datetime.fromisoformat(item.valid_from)
        days = max(0.0, age.total_seconds() / 60 / _MINUTES_A_DAY)
        served = shelf.served[item.id or ""]
        recent: float = 0.5 ** (days / self._half_life_days)
        salient = served / (served + 1)
        return 1 + self._recency * recent + self._salience * salient
