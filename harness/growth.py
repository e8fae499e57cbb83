"""How much a system takes as its life grows longer.

A cost at n turns is that of the window (0.8 n, n]: the last fifth of the life so far. A window that
grows with n holds as many questions at any n where a script asks ever more rarely, and as no two
windows overlap the points of a curve are measured apart. What is kept (footprint, bytes) is what
was seen last in the window.

| cost | what it is |
|---|---|
| `ingest_ms`, `retrieve_ms`, `maintain_ms`, `settle_ms`, `list_ms`, `erase_ms` | the system's own time of an operation that was done, without its models: median; with `_mean` appended the mean |
| `model_ms`, `calls`, `prompt_tokens`, `completion_tokens`, `embedded_tokens` | what its models took to keep a turn (ingest, settle, maintain, erase), mean a turn |
| `query_prompt_tokens` | what its models were sent to answer a query, mean |
| `served_tokens` | put before the reader for a query, mean |
| `active_items`, `active_tokens` | what it lists as active |
| `true_items`, `true_tokens` | what is worth keeping then |
| `size_bytes` | on disk |
| `life_ms`, `life_model_tokens` | all that keeping the turns took, from the first one on |

Questions and listings are not in the sums of a life: how many there are is the script's choice.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import Final

from steeltrap.harness.history import Event
from steeltrap.harness.metrics import PHASES, own_ms, percentile
from steeltrap.harness.models import Usage
from steeltrap.harness.record import CostAt
from steeltrap.harness.script import Audit, Gauge, Probe, Step, Turn

__all__ = ["LEAST_TURNS", "LENGTHS", "Growth", "growth"]

LENGTHS: Final = (100, 316, 1000, 3162, 10_000, 31_623, 50_000, 100_000, 316_228, 1_000_000)
"""Lengths of life that are looked at, in turns: two a power of ten, and the long life of 50 000."""
LEAST_TURNS: Final = 1000
"""A shorter life has no growth to speak of."""
WINDOW: Final = 0.8
"""The window of a length begins after this part of it."""
_KEEPING: Final = ("ingest", "settle", "maintain", "erase")
"""Phases in which a system keeps what it was told."""
_USAGE: Final = {
    "model_ms": "ms",
    "calls": "calls",
    "prompt_tokens": "prompt_tokens",
    "completion_tokens": "completion_tokens",
    "embedded_tokens": "embedded_tokens",
}
"""Costs of models a turn -> field of `Usage`."""


class _Track:
    """Values of one kind since the last length, each with the turns that had been told."""

    __slots__ = ("turns", "values")

    def __init__(self) -> None:
        self.turns, self.values = array("q"), array("d")

    def add(self, turn: int, value: float) -> None:
        self.turns.append(turn)
        self.values.append(value)

    def after(self, turn: float) -> Sequence[float]:
        """The values since more turns had been told than this."""
        return self.values[bisect_right(self.turns, turn) :]


class Growth:
    """Takes a run's events in order and keeps what each length of life cost."""

    def __init__(self) -> None:
        self._turns = self._kept = 0
        self._lengths = iter(LENGTHS)
        self._next = next(self._lengths)
        self._tracks: dict[str, _Track] = {}
        self._life_ms = self._life_tokens = 0.0
        self._points: list[CostAt] = []

    def observe(self, step: Step, event: Event) -> None:
        """Take in what became of one step."""
        if isinstance(step, Turn):
            if self._turns == self._next:
                self._close(self._next)
                self._next = next(self._lengths, 0)
            self._turns += 1
            if event.type == "ok":
                self._kept = self._turns
        if event.settle_ms:
            self._spend("settle", own_ms(event.settle_ms, event, "settle"))
        if event.type == "ok" and not isinstance(step, Audit):
            self._done(step, event)
        if event.usage:
            self._asked(event)

    def _done(self, step: Step, event: Event) -> None:
        phase = PHASES[type(step)]
        # what takes no time at all was not done: the system has no such operation
        if event.ms or phase in ("ingest", "retrieve"):
            self._spend(phase, own_ms(event.ms, event, phase))
        if isinstance(step, Probe):
            self._add("served_tokens", event.tokens)
        elif isinstance(step, Gauge) and not step.tenant:
            self._add("true_items", step.footprint[0])
            self._add("true_tokens", step.footprint[1])
            if event.via == "listing":
                self._add("active_items", event.items)
                self._add("active_tokens", event.tokens)
            if event.size_bytes is not None:
                self._add("size_bytes", event.size_bytes)

    def _asked(self, event: Event) -> None:
        """What models took, by what it was for."""
        kept = sum((used for phase, used in event.usage.items() if phase in _KEEPING), Usage())
        if kept.calls:
            for cost, field in _USAGE.items():
                self._add(cost, getattr(kept, field))
            self._life_tokens += kept.prompt_tokens + kept.completion_tokens + kept.embedded_tokens
        if "retrieve" in event.usage:
            self._add("query_prompt_tokens", event.usage["retrieve"].prompt_tokens)

    def _spend(self, phase: str, ms: float) -> None:
        self._add(f"{phase}_ms", ms)
        if phase in _KEEPING:
            self._life_ms += ms

    def _add(self, cost: str, value: float) -> None:
        track = self._tracks.get(cost)
        if track is None:
            track = self._tracks[cost] = _Track()
        track.add(self._turns, value)

    def finish(self) -> list[CostAt]:
        """A point for each length that was reached, and for where it ended; none for a short life.

        The end counts where its window lies behind the last length.
        """
        if self._turns < LEAST_TURNS:
            return []
        self._close(self._next if self._turns == self._next else self._kept)
        return self._points

    def _close(self, turns: int) -> None:
        """The costs at a length; or, if no turn of its window was taken in, where the last one was."""
        if self._kept <= WINDOW * turns:
            turns = self._kept
        if self._kept and WINDOW * turns >= (self._points[-1].turns if self._points else 0):
            found = {
                cost: values
                for cost, track in self._tracks.items()
                if (values := track.after(WINDOW * turns))
            }
            self._points.append(self._point(turns, found))
        self._tracks.clear()

    def _point(self, turns: int, found: dict[str, Sequence[float]]) -> CostAt:
        operations, costs = dict[str, int](), dict[str, float]()
        window_turns = turns - int(WINDOW * turns)
        for cost, values in sorted(found.items()):
            phase = cost.removesuffix("_ms")
            if phase in PHASES.values() or phase == "settle":
                operations[phase] = len(values)
                costs[cost] = percentile(sorted(values), 0.5)
                costs[f"{cost}_mean"] = sum(values) / len(values)
            elif cost in _USAGE:
                costs[cost] = sum(values) / window_turns
            elif cost in ("served_tokens", "query_prompt_tokens"):
                costs[cost] = sum(values) / len(values)
            else:
                costs[cost] = values[-1]
        costs["life_ms"] = self._life_ms
        if self._life_tokens:
            costs["life_model_tokens"] = self._life_tokens
        rounded = {cost: round(value, 6) for cost, value in costs.items()}
        return CostAt(turns=turns, operations=operations, costs=rounded)


def growth(pairs: Iterable[tuple[Step, Event]]) -> list[CostAt]:
    """What a run cost at each length of its life."""
    taken = Growth()
    for step, event in pairs:
        taken.observe(step, event)
    return taken.finish()
