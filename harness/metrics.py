"""Figures over a run: percentiles of wall time, the footprint's ratio and its growth exponent."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Sequence
from typing import Final

from steeltrap.harness.history import Event
from steeltrap.harness.record import Percentiles, Timing
from steeltrap.harness.script import Audit, Erasure, Gauge, Pause, Probe, Step, Turn

__all__ = [
    "PHASES",
    "Times",
    "footprint_ratio",
    "growth_exponent",
    "own_ms",
    "percentile",
    "timing",
]

Curve = Sequence[tuple[int, int, int, int, float]]
PHASES: Final[dict[type[Step], str]] = {
    Turn: "ingest",
    Probe: "retrieve",
    Pause: "maintain",
    Gauge: "list",
    Audit: "audit",
    Erasure: "erase",
}
"""What is timed in each kind of step."""


def percentile(ordered: Sequence[float], share: float) -> float:
    """A percentile by linear interpolation.

    Args:
        ordered: values in rising order, at least one.
        share: 0 to 1.
    """
    place = share * (len(ordered) - 1)
    low = math.floor(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


class Times:
    """Takes a run's events in order and keeps how long each operation took: 8 bytes of each."""

    def __init__(self) -> None:
        self._phases: dict[str, array[float]] = {}
        self._models: dict[str, array[float]] = {}
        self._size_bytes: int | None = None

    def observe(self, step: Step, event: Event) -> None:
        """Take in what became of one step."""
        if event.size_bytes is not None:
            self._size_bytes = event.size_bytes
        if event.type == "ok":
            phase = PHASES[type(step)]
            _add(self._phases, phase, own_ms(event.ms, event, phase))
        if event.settle_ms:
            _add(self._phases, "settle", own_ms(event.settle_ms, event, "settle"))
        for phase, usage in event.usage.items():
            _add(self._models, phase, usage.ms)

    def finish(self) -> Timing:
        """Wall times by phase, the adapter's own over the steps that were done; size on disk."""
        phases = {phase: _percentiles(ms) for phase, ms in sorted(self._phases.items())}
        models = {phase: _percentiles(ms) for phase, ms in sorted(self._models.items())}
        return Timing(phases=phases, models=models, size_bytes=self._size_bytes)


def _add(times: dict[str, array[float]], phase: str, ms: float) -> None:
    if phase not in times:
        times[phase] = array("d")
    times[phase].append(ms)


def timing(pairs: Iterable[tuple[Step, Event]]) -> Timing:
    """What `Times` makes of the steps of a run and their outcomes."""
    times = Times()
    for step, event in pairs:
        times.observe(step, event)
    return times.finish()


def own_ms(ms: float, event: Event, phase: str) -> float:
    """A wall time without that of models; calls beside each other may add up to more than has passed."""
    usage = event.usage.get(phase)
    return max(0.0, ms - usage.ms) if usage else ms


def _percentiles(ms: array[float]) -> Percentiles:
    import numpy as np  # sorts in place: a list of a long run's times is ten times their size

    ordered = array("d", np.sort(np.frombuffer(ms)).tobytes())
    p50, p95, p99 = (round(percentile(ordered, share), 4) for share in (0.5, 0.95, 0.99))
    return Percentiles(len(ms), p50, p95, p99, round(sum(ordered), 3))


def footprint_ratio(curve: Curve) -> float | None:
    """Active over true tokens, mean over the gauges at which anything was true."""
    ratios = [active / true for _, _, active, true, _ in curve if true]
    return sum(ratios) / len(ratios) if ratios else None


def growth_exponent(curve: Curve) -> float | None:
    """Slope of log(active tokens) over log(turns) by least squares; None below three gauges.

    1 means that the footprint grows with every turn, 0 that it does not grow.
    """
    points = [(math.log(turn), math.log(active)) for turn, _, active, _, _ in curve if active > 0]
    if len(points) < 3:
        return None
    mean_x = sum(x for x, _ in points) / len(points)
    mean_y = sum(y for _, y in points) / len(points)
    spread = sum((x - mean_x) ** 2 for x, _ in points)
    if spread == 0:
        return None
    return sum((x - mean_x) * (y - mean_y) for x, y in points) / spread
