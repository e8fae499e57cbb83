"""Twins: two runs whose scripts differ in exactly one thing.

What differs between the runs was caused by that thing, so no inside view is needed. Systems that
differ from run to run by themselves are judged fairly by runs of the very same script: an effect
is what differs beyond what those differ.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from steeltrap.harness.checks import Standing, standings
from steeltrap.harness.checks.sighting import Comparison, Sighting
from steeltrap.harness.history import Event, read_events
from steeltrap.harness.memory import Item
from steeltrap.harness.script import Audit, Gauge, Probe, Script, Step, TwinSpec

__all__ = ["chosen", "compare", "sightings", "twin_script"]

Events = Path | Iterable[Event]


def chosen(script: Script, pairs: int) -> list[TwinSpec]:
    """The twins that are run: so many of each kind."""
    counts: dict[str, int] = {}
    found = []
    for spec in script.header.twins:
        counts[spec.about] = counts.get(spec.about, 0) + 1
        if counts[spec.about] <= pairs:
            found.append(spec)
    return found


def twin_script(script: Script, spec: TwinSpec) -> Script:
    """The other twin: the same steps, up to `spec.until`, but for the one difference.

    The truth of a swapped question stands in the script; of what is left out nothing else that is
    compared depends.
    """
    steps: list[Step] = []
    for step in script.steps:
        left_out = spec.name in step.unless or (spec.about == "observing" and _measures(step))
        if not left_out:
            steps.append(_swapped(step, spec))
        if step.id == spec.until:
            break
    header = msgspec.structs.replace(
        script.header, name=f"{script.header.name}/{spec.name}", twins=[]
    )
    return Script(header, steps)


def _measures(step: Step) -> bool:
    """Whether a step only measures: a user would not have done it."""
    if isinstance(step, Probe):
        return step.observe == "fork"
    return isinstance(step, Gauge | Audit)


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
    script: Script, spec: TwinSpec, here: Events, there: Events, again: Sequence[Events] = ()
) -> tuple[TwinSpec, Standing, Standing] | Comparison:
    """What the check of a pair of twins needs.

    Args:
        script: of this run.
        spec: what is different in the other.
        here: history of this run.
        there: history of the other.
        again: histories of further runs of this very script.
    """
    other = twin_script(script, spec)
    if spec.about == "reading":
        here, there = _read(here), _read(there)
        return spec, standings(script, here, spec), standings(other, there, spec)
    return Comparison(
        spec,
        script,
        sightings(script, here),
        sightings(other, there),
        [sightings(script, events) for events in again],
    )


def _read(events: Events) -> Iterable[Event]:
    return read_events(events) if isinstance(events, Path) else events


def sightings(script: Script, events: Events) -> dict[str, Sighting]:
    """What was seen at each step that was done and shows anything, by its id."""
    items: list[Item] = []
    found: dict[str, Sighting] = {}
    for event in _read(events):
        step = script.steps[event.i]
        items += event.new
        if event.type != "ok" or not isinstance(step, Probe | Gauge | Audit):
            continue
        served = [items[number] for number in event.served]
        given = [items[number] for number in event.versions or ()]
        recovered = [items[number] for number in event.recovered or ()]
        found[step.id] = Sighting(step, event.i, served, event.scores, given, recovered, event.salience)  # fmt: skip
    return found
