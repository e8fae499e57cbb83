"""Twins: two runs whose scripts differ in exactly one thing.

What differs between the runs was caused by that thing, so no inside view is needed. Systems that
differ from run to run by themselves are judged fairly by runs of the very same script: an effect
is what differs beyond what those differ.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import overload

import msgspec

from steeltrap.harness.checks import Standing, standings
from steeltrap.harness.checks.sighting import Comparison, Sighting
from steeltrap.harness.history import Event, joined, read_events
from steeltrap.harness.memory import Item
from steeltrap.harness.script import (
    UNOBSERVED,
    Audit,
    Gauge,
    Probe,
    Script,
    Step,
    StoredSteps,
    Turn,
    TwinSpec,
    measures,
)

__all__ = ["Sightings", "chosen", "compare", "sightings", "twin_script", "with_unobserved"]

Events = Path | Iterable[Event]
Seen = dict[str, Sighting]
"""What was seen at each step that was done and shows anything, by its id."""


def chosen(script: Script, pairs: int) -> list[TwinSpec]:
    """The twins that are run: so many of each kind."""
    counts: dict[str, int] = {}
    found = []
    for spec in script.header.twins:
        counts[spec.about] = counts.get(spec.about, 0) + 1
        if counts[spec.about] <= pairs:
            found.append(spec)
    return found


def with_unobserved(script: Script) -> Script:
    """The same steps under a header that also names the twin in which nothing is measured."""
    twins = script.header.twins
    if UNOBSERVED in twins:
        return script
    return Script(msgspec.structs.replace(script.header, twins=[*twins, UNOBSERVED]), script.steps)


def twin_script(script: Script, spec: TwinSpec) -> Script:
    """The other twin: the same steps, up to `spec.until`, but for the one difference.

    The truth of a swapped question stands in the script; of what is left out nothing else that is
    compared depends. The twin of a script in a file is read from that file.
    """
    steps: Sequence[Step] = _TwinSteps(script.steps, spec)
    if not isinstance(script.steps, StoredSteps):
        steps = list(steps)
    header = msgspec.structs.replace(
        script.header, name=f"{script.header.name}/{spec.name}", twins=[]
    )
    return Script(header, steps)


class _TwinSteps(Sequence[Step]):
    """The steps of a twin, each made from one of the script when it is asked for.

    What is kept of each is its place there (8 bytes).

    Args:
        steps: of the script.
        spec: what is different.
    """

    def __init__(self, steps: Sequence[Step], spec: TwinSpec) -> None:
        self._steps = steps
        self._spec = spec
        self._places = array("q", _places(steps, spec))

    def __len__(self) -> int:
        return len(self._places)

    @overload
    def __getitem__(self, at: int) -> Step: ...
    @overload
    def __getitem__(self, at: slice) -> list[Step]: ...
    def __getitem__(self, at: int | slice) -> Step | list[Step]:
        if isinstance(at, slice):
            return [self[i] for i in range(*at.indices(len(self)))]
        place = self._places[at]
        if place < 0:
            unseen = self._steps[~place]
            return Gauge(id=f"{unseen.id}-unseen", at=unseen.at, blind=True)
        return _swapped(self._steps[place], self._spec)


def _places(steps: Sequence[Step], spec: TwinSpec) -> Iterator[int]:
    """Which steps are in the twin; `~i` is a look that measures nothing, in place of step i."""
    seen = _unobserved(steps) if spec.about == "observing" else enumerate(steps)
    for place, step in seen:
        if spec.name not in step.unless:
            yield place
        if step.id == spec.until:
            break


def _unobserved(steps: Sequence[Step]) -> Iterator[tuple[int, Step]]:
    """Nothing is measured before the last turn.

    Where something was, the memory is still waited for: when its background work is done may
    matter, and is no matter of measuring. What measures after the last turn stays, and shows the
    state that was come to.
    """
    last = max((i for i, step in enumerate(steps) if isinstance(step, Turn)), default=-1)
    waited = False
    for i, step in enumerate(steps):
        if i > last or not measures(step):
            waited = False
            yield i, step
        elif not waited:
            waited = True
            yield ~i, step


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
    script: Script,
    spec: TwinSpec,
    here: Events,
    there: Events,
    again: Sequence[Events | Seen] = (),
    *,
    seen: Seen | None = None,
) -> tuple[TwinSpec, Standing, Standing] | Comparison:
    """What the check of a pair of twins needs.

    Args:
        script: of this run.
        spec: what is different in the other.
        here: history of this run.
        there: history of the other.
        again: histories of further runs of this very script, or what was seen in them.
        seen: what was seen in `here`, where somebody knows already.
    """
    other = twin_script(script, spec)
    if spec.about == "reading":
        here, there = _read(here), _read(there)
        return spec, standings(script, here, spec), standings(other, there, spec)
    return Comparison(
        spec,
        script,
        sightings(script, here) if seen is None else seen,
        sightings(other, there),
        [one if isinstance(one, dict) else sightings(script, one) for one in again],
    )


def _read(events: Events) -> Iterable[Event]:
    return read_events(events) if isinstance(events, Path) else events


def _blind(step: Step) -> bool:
    return isinstance(step, Gauge) and step.blind


class Sightings:
    """Takes a run's events in order and keeps what was seen."""

    def __init__(self) -> None:
        self.found: Seen = {}
        self._items: list[Item] = []

    def observe(self, step: Step, event: Event) -> None:
        """Take in what became of one step."""
        items = self._items
        items += event.new
        if event.type != "ok" or not isinstance(step, Probe | Gauge | Audit) or _blind(step):
            return
        served = [items[number] for number in event.served]
        given = [items[number] for number in event.versions or ()]
        recovered = [items[number] for number in event.recovered or ()]
        self.found[step.id] = Sighting(
            step, event.i, served, event.scores, given, recovered, event.salience, event.via,
            (event.items, event.tokens),
        )  # fmt: skip


def sightings(script: Script, events: Events) -> Seen:
    """What was seen in a run."""
    seen = Sightings()
    for step, event in joined(script, _read(events)):
        seen.observe(step, event)
    return seen.found
