"""What a load run states: what was asked, what went wrong, and how long it took."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import msgspec

from steeltrap.harness.load.histogram import Histogram
from steeltrap.harness.load.plan import LoadSettings
from steeltrap.harness.record import RecordError, RunSpec

__all__ = ["LoadRecord", "LoadSpec", "Step", "knee", "read_load"]

FORMAT: Final = "steeltrap-load"
VERSION: Final = 1


class LoadSpec(msgspec.Struct, kw_only=True):
    """What decides a load, written before it starts."""

    run: RunSpec
    """The system and its circumstances; the script is that of what is told alone."""
    load: LoadSettings
    rates: list[float]
    """Operations a second, each a step; empty: doubled until the bound breaks, and
    then what lies between."""
    threads: int
    """That ask; 1 where the system claims no concurrency."""
    concurrent: bool
    """Whether the system claims that several may ask it at once."""
    bound_ms: float
    """The 99th percentile of latency, from the intended start, that a rate has to keep."""
    warm_s: float
    """What is meant to start earlier in a step is in no histogram."""
    patience_s: float


class Step(msgspec.Struct, kw_only=True):
    """One rate."""

    rate: float
    """As asked, in operations a second; 0: one after the other, on one thread."""
    script_sha256: str
    reached: float
    """Operations that were answered a second, polls left out."""
    operations: dict[str, dict[str, int]]
    """By kind, how many ended how: ok, fail, info, unserved, skipped."""
    violations: dict[str, int]
    """By name; see `steeltrap.harness.load.judging`."""
    broken: dict[str, int]
    """Answers and units that broke C1 under way, C1 when all was quiet, and C2."""
    opportunities: dict[str, int]
    missing: int
    unread: int
    copies: int
    unknown: str
    """Why nothing can be said of what was left at the end; empty: it can."""
    examples: list[str]
    errors: list[str]
    """What operations failed with, the most frequent first, each with its number."""
    intended: dict[str, Histogram]
    """By kind, from the intended start."""
    service: dict[str, Histogram]
    """By kind, from the actual start: what a closed loop would have reported."""
    lag: Histogram
    """Traced writes: from the acknowledgement to the first read that served them."""
    late: Histogram
    """How late the generator handed operations over; nothing that the memory did."""
    settle_ms: float
    cut: bool = False
    """Interrupted: only what had begun is in it."""

    @property
    def p99_ms(self) -> float:
        """The 99th percentile from the intended start, of the slower of writes and reads."""
        return max((h.p99_ms for kind, h in self.intended.items() if kind != "poll"), default=0.0)

    def holds(self, bound_ms: float) -> bool:
        """Whether everything was begun, and in time: what waits long was meant to start long before."""
        left = sum(ended.get("unserved", 0) for ended in self.operations.values())
        return not left and self.p99_ms <= bound_ms


class LoadRecord(msgspec.Struct, kw_only=True):
    """All steps of a load."""

    format: str = FORMAT
    version: int = VERSION
    spec: LoadSpec
    alone: Step | None = None
    """The same kind of things told and asked one after the other: what is no fault of concurrency."""
    steps: list[Step] = []
    """In the order of their rates."""

    @property
    def knee(self) -> float | None:
        """The highest rate that held, with all below it; None: none did."""
        return knee(self.steps, self.spec.bound_ms)

    def encoded(self) -> bytes:
        """As it is written."""
        return msgspec.json.format(msgspec.json.encode(self), indent=1) + b"\n"


def knee(steps: list[Step], bound_ms: float) -> float | None:
    """The highest rate that held the bound, with all below it."""
    found = None
    for step in sorted(steps, key=lambda step: step.rate):
        if not step.holds(bound_ms):
            break
        found = step.rate
    return found


def read_load(path: Path) -> LoadRecord:
    """The record of a load.

    Raises:
        RecordError: there is none, or it is damaged or of another version.
    """
    try:
        record = msgspec.json.decode(path.read_bytes(), type=LoadRecord)
    except OSError as error:
        raise RecordError(f"{path}: {error.strerror}") from None
    except (msgspec.DecodeError, RecursionError) as error:
        raise RecordError(
            f"{path}: no record of a load ({error}); delete it and run again"
        ) from None
    if (record.format, record.version) != (FORMAT, VERSION):
        raise RecordError(
            f"{path}: {record.format} {record.version}, and this is {FORMAT} {VERSION}; run again"
        )
    return record
