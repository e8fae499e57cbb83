"""Latencies as HDR histograms: every value to three digits, whatever the tail."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from typing import Any, Final

import msgspec

__all__ = ["Histogram", "HistogramMissing", "percentile_ms"]

_LONGEST_US: Final = 3600 * 10**6
_DIGITS: Final = 3
_PERCENTS: Final = (50, 90, 99, 99.9)


class HistogramMissing(RuntimeError):
    """The package that makes histograms is not installed."""


class Histogram(msgspec.Struct, kw_only=True):
    """How long operations took; times are never compared between results."""

    n: int
    p50_ms: float
    p90_ms: float
    p99_ms: float
    p999_ms: float
    max_ms: float
    hdr: str
    """All of it: HdrHistogram's compressed form (V2) in base64, in microseconds, as every
    implementation reads it."""

    @classmethod
    def of(cls, latencies_ms: Iterable[float]) -> Histogram:
        """The histogram of latencies.

        Raises:
            HistogramMissing: the package hdrhistogram is not there.
        """
        made = _made()
        for ms in latencies_ms:
            made.record_value(min(_LONGEST_US, max(1, round(1000 * ms))))
        n = made.get_total_count()
        found = made.get_percentile_to_value_dict(_PERCENTS) if n else dict.fromkeys(_PERCENTS, 0)
        p50, p90, p99, p999 = (found[percent] / 1000 for percent in _PERCENTS)
        return cls(
            n=n, p50_ms=p50, p90_ms=p90, p99_ms=p99, p999_ms=p999,
            max_ms=made.get_max_value() / 1000 if n else 0.0, hdr=made.encode().decode(),
        )  # fmt: skip


def percentile_ms(histogram: Histogram, percent: float) -> float:
    """Any percentile of a stored histogram.

    Raises:
        HistogramMissing: the package hdrhistogram is not there.
    """
    decoded = _package().HdrHistogram.decode(histogram.hdr)
    return float(decoded.get_value_at_percentile(percent)) / 1000


def _made() -> Any:
    return _package().HdrHistogram(1, _LONGEST_US, _DIGITS)


def _package() -> Any:
    try:
        return import_module("hdrh.histogram")
    except ModuleNotFoundError:
        raise HistogramMissing(
            "load: latencies need the package hdrhistogram; pip install 'steeltrap[load]'"
        ) from None
