"""Figures over a run: percentiles of wall time, the footprint's ratio and its growth exponent."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Final

from steeltrap.harness.history import Event
from steeltrap.harness.record import Percentiles, Timing
from steeltrap.harness.script import Audit, Erasure, Gauge, Pause, Probe, Step, Turn

__all__ = ["PHASES", "footprint_ratio", "growth_exponent", "own_ms", "percentile", "timing"]

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


def timing(pairs: Iterable[tuple[Step, Event]]) -> Timing:
    """Wall times by phase, the adapter's own over the steps that were done; size on disk."""
    by_phase: dict[str, list[float]] = {}
    asked: dict[str, list[float]] = {}
    size_bytes = None
    for step, event in pairs:
        size_bytes = size_bytes if event.size_bytes is None else event.size_bytes
        if event.type == "ok":
            phase = PHASES[type(step)]
            by_phase.setdefault(phase, []).append(own_ms(event.ms, event, phase))
        if event.settle_ms:
            own = own_ms(event.settle_ms, event, "settle")
            by_phase.setdefault("settle", []).append(own)
        for phase, usage in event.usage.items():
            asked.setdefault(phase, []).append(usage.ms)
    phases = {phase: _percentiles(ms) for phase, ms in sorted(by_phase.items())}
    models = {phase: _percentiles(ms) for phase, ms in sorted(asked.items())}
    return Timing(phases=phases, models=models, size_bytes=size_bytes)


def own_ms(ms: float, event: Event, phase: str) -> float:
    """A wall time without that of models; calls beside each other may add up to more than has passed."""
    usage = event.usage.get(phase)
    return max(0.0, ms - usage.ms) if usage else ms


def _percentiles(ms: list[float]) -> Percentiles:
    ms.sort()
    p50, p95, p99 = (round(percentile(ms, share), 4) for share in (0.5, 0.95, 0.99))
    return Percentiles(len(ms), p50, p95, p99, round(sum(ms), 3))


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
