"""From rate to rate: put each to a memory of its own, judge what happened, and find the knee."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from math import sqrt
from typing import Final

import msgspec

from steeltrap.harness.load.histogram import Histogram
from steeltrap.harness.load.judging import Findings, judge
from steeltrap.harness.load.plan import LoadSettings, Plan, planned
from steeltrap.harness.load.record import LoadRecord, LoadSpec, Step
from steeltrap.harness.load.running import Done, Trace, apply
from steeltrap.harness.memory import Memory

__all__ = ["alone", "at_rate", "next_rate", "plan_alone"]

Opened = Callable[[Plan], AbstractContextManager[Memory]]
"""Opens an empty memory that is to be asked what stands in a plan."""

_ALONE_RATE: Final = 100.0
_ALONE_S: Final = 2.0
"""Alone, about so many seconds' worth of operations at such a rate are done one after the other."""
_FIRST: Final = 10.0
_MOST: Final = 10_000.0
_LEAST: Final = 0.5
_NEAR: Final = 1.3
"""The knee is near enough when the next rate that broke is so many times higher."""
_ERRORS: Final = 5


def alone(spec: LoadSpec, opened: Opened) -> Step:
    """Things told and asked one after the other: what goes wrong here is no fault of concurrency.

    It warms up whatever a process does but once, and says how often a value is listed as a rule.
    """
    plan = plan_alone(spec.load)
    with opened(plan) as memory:
        trace = apply(memory, plan, limit=spec.run.limit, threads=1, in_turn=True)
    return _step(plan, trace, judge(plan, trace), rate=0.0, warm_s=0.0)


def plan_alone(load: LoadSettings) -> Plan:
    """What `alone` puts to a memory."""
    return planned(msgspec.structs.replace(load, seconds=_ALONE_S, traced=0.0), _ALONE_RATE)


def at_rate(spec: LoadSpec, rate: float, copies: int | None, opened: Opened) -> Step:
    """One rate on a memory of its own.

    Args:
        spec: of the whole load.
        rate: operations a second.
        copies: how often a value is listed as a rule, as `alone` found.
        opened: opens the memory.
    """
    plan = planned(spec.load, rate)
    with opened(plan) as memory:
        trace = apply(
            memory, plan, limit=spec.run.limit, threads=spec.threads, patience_s=spec.patience_s
        )
    return _step(plan, trace, judge(plan, trace, copies), rate=rate, warm_s=spec.warm_s)


def next_rate(record: LoadRecord) -> float | None:
    """The rate that is to be measured next; None: the knee is known as well as was asked.

    Where no rates were asked for they are doubled until one breaks the bound, or halved until one
    holds, and then the middle between the two is tried until they are near.
    """
    spec, done = record.spec, {step.rate: step for step in record.steps}
    if spec.rates:
        return next((rate for rate in spec.rates if rate not in done), None)
    if not done:
        return _FIRST
    broken = min((r for r, step in done.items() if not step.holds(spec.bound_ms)), default=None)
    held = max((r for r in done if broken is None or r < broken), default=None)
    if broken is None:
        assert held is not None
        return 2 * held if held < _MOST else None
    if held is None:
        return broken / 2 if broken > _LEAST else None
    return _rounded(sqrt(held * broken)) if broken / held > _NEAR else None


def _rounded(rate: float) -> float:
    return float(f"{rate:.3g}")


# ---------------------------------------------------------------- from what happened to numbers


def _step(plan: Plan, trace: Trace, found: Findings, *, rate: float, warm_s: float) -> Step:
    operations: dict[str, Counter[str]] = defaultdict(Counter)
    for done in trace.done:
        operations[done.operation.kind][done.type] += 1
    answered = [d for d in trace.done if _answered(d) and d.operation.kind != "poll"]
    lasted_s = max((done.ended_s for done in answered), default=0.0)
    warm = [d for d in trace.done if d.operation.at_s >= warm_s and d.type != "skipped"]
    began = [done for done in warm if done.type != "unserved"]
    intended = {} if not rate else _by_kind(warm, lambda done: done.ended_s - done.operation.at_s)
    return Step(
        rate=rate,
        script_sha256=plan.script.sha256(),
        reached=round(len(answered) / lasted_s, 3) if lasted_s else 0.0,
        operations={kind: dict(ended) for kind, ended in sorted(operations.items())},
        violations={name: n for name, n in found.counts.items() if n},
        broken=found.broken,
        opportunities=found.opportunities,
        missing=found.missing,
        unread=found.unread,
        copies=found.copies,
        unknown=found.unknown,
        examples=[f"{one.name}: {one.unit}: {one.words}" for one in found.examples],
        errors=_errors(trace.done),
        intended=intended,
        service=_by_kind(began, lambda done: done.ended_s - done.started_s),
        lag=Histogram.of(found.lags_ms),
        late=Histogram.of(1000 * late for late in trace.late_s),
        settle_ms=round(trace.quiet.settle_ms, 3),
        cut=trace.cut,
    )


def _answered(done: Done) -> bool:
    return done.type in ("ok", "fail", "info")


def _by_kind(done: Iterable[Done], latency_s: Callable[[Done], float]) -> dict[str, Histogram]:
    latencies: dict[str, list[float]] = defaultdict(list)
    for one in done:
        latencies[one.operation.kind].append(1000 * latency_s(one))
    return {kind: Histogram.of(ms) for kind, ms in sorted(latencies.items())}


def _errors(done: Iterable[Done]) -> list[str]:
    counted = Counter(one.error for one in done if one.error)
    return [f"{n} x {error}" for error, n in counted.most_common(_ERRORS)]
