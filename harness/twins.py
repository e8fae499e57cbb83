"""Twins: two runs whose scripts differ in exactly one thing.

What differs between the runs was caused by that thing, so no inside view is needed. Here the
thing is which of two exchangeable units was read (C6): the read probes of a script carry the
question that its twin asks in their place.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import msgspec

from steeltrap.harness.checks import Standing, standings
from steeltrap.harness.history import Event, read_events
from steeltrap.harness.script import Probe, Script, Step, TwinSpec

__all__ = ["compare", "twin_script"]


def twin_script(script: Script, spec: TwinSpec) -> Script:
    """The other twin: the same steps up to `spec.until`, with the reads of `a` asked of `b`.

    The truth of a swapped question stands in the script; reading changes no truth.
    """
    steps: list[Step] = []
    for step in script.steps:
        steps.append(_swapped(step, spec))
        if step.id == spec.until:
            break
    header = msgspec.structs.replace(
        script.header, name=f"{script.header.name}/{spec.name}", twins=[]
    )
    return Script(header, steps)


def _swapped(step: Step, spec: TwinSpec) -> Step:
    if not isinstance(step, Probe) or step.swap is None or step.swap.twin != spec.name:
        return step
    swap = step.swap
    control = spec.a if step.control == spec.b else step.control
    return msgspec.structs.replace(
        step, unit=swap.unit, text=swap.text, expect=swap.expect, via=swap.via, hop=0,
        control=control, swap=None,
    )  # fmt: skip


def compare(
    script: Script, spec: TwinSpec, history: Path | Iterable[Event], twin_history: Path | Iterable[Event]
) -> tuple[TwinSpec, Standing, Standing]:  # fmt: skip
    """How the two units stood in each run: what `score` needs of a pair of twins."""
    here, there = (
        read_events(events) if isinstance(events, Path) else events
        for events in (history, twin_history)
    )
    return (
        spec,
        standings(script, here, spec),
        standings(twin_script(script, spec), there, spec),
    )
