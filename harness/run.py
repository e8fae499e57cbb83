"""Runs and scores one cell: a system, a script, a seed."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from steeltrap.harness.checks import Standing, score
from steeltrap.harness.checks.sighting import Comparison
from steeltrap.harness.drive import OnEvent, RunStopped, drive
from steeltrap.harness.evidence import CUTOFFS, evidence_rows
from steeltrap.harness.gateway import Gateway
from steeltrap.harness.gateway.prices import cost_usd
from steeltrap.harness.growth import Growth
from steeltrap.harness.history import Event, HistoryError, Reading, joined, read_events
from steeltrap.harness.memory import Erases, Memory, MemoryFault, Told
from steeltrap.harness.metrics import Times
from steeltrap.harness.models import Usage, UsesModels
from steeltrap.harness.readers import READERS, Reader
from steeltrap.harness.record import Record
from steeltrap.harness.remains import Search, Vectors
from steeltrap.harness.requests import requests
from steeltrap.harness.script import Probe, Script, Step, TwinSpec
from steeltrap.harness.store import Cell
from steeltrap.harness.twins import Seen, Sightings, chosen, compare, sightings, twin_script

__all__ = ["run_cell", "score_cell"]

MakeMemory = Callable[[], Memory]


def run_cell(
    cell: Cell,
    make_memory: MakeMemory,
    script: Script,
    reader: Reader,
    *,
    gateway: Gateway | None = None,
    vectors: Vectors | None = None,
    on_event: OnEvent | None = None,
) -> Record:
    """Drive a memory through a script and through its twins, score, and finish the cell.

    Args:
        cell: opened for this script; what it already holds is continued.
        make_memory: gives a new memory for each run.
        script: with its truth.
        reader: turns what was served into answers.
        gateway: open; answers the memory's model calls, where it makes any.
        vectors: makes the vectors that the memory gets from the gateway.
        on_event: called with every step of the main run and its outcome.

    Raises:
        HistoryError: the cell holds the history of something else.
        RunStopped: model calls cannot be answered any more; the cell can be continued.
    """

    def live(script: Script, history: Path, folder: Path, on_event: OnEvent | None = None) -> None:
        memory = make_memory()
        search = None
        if history == cell.history and isinstance(memory, Erases):
            # of an embedder in a worker nothing but its name is here
            embed = getattr(getattr(memory, "embedder", None), "embed", vectors)
            search = Search(folder, script, embed)
        _drive(memory, script, history, folder, cell.spec.limit, gateway, search, on_event)

    cell.expand()
    live(script, cell.history, cell.folder / "memory", on_event)
    cell.twins.mkdir(exist_ok=True)
    twins = chosen(script, cell.spec.twins)
    for twin in twins:
        other = twin_script(script, twin)
        live(other, cell.twin_history(twin.name), cell.twins / "memory")
    if any(twin.about != "reading" for twin in twins):
        for number in range(cell.spec.repeats):
            live(script, cell.twin_history(f"again-{number}"), cell.twins / "memory")
    return score_cell(cell, script, reader)


def score_cell(cell: Cell, script: Script, reader: Reader | None = None) -> Record:
    """Score what a cell holds, from its files alone, and finish it.

    Args:
        cell: with a whole history.
        script: the cell's script.
        reader: by default the one that the cell's spec names.

    Raises:
        HistoryError: the history is missing, cut short, or not of this script.
    """
    reader = reader or READERS[cell.spec.reader]()
    twins = {
        twin.name: (twin, Reading(history))
        for twin in script.header.twins
        if (history := cell.twin_history(twin.name)).exists()
    }
    main, again = Reading(cell.history), [Reading(history) for history in cell.repeats()]
    times, growing, seen, public = Times(), Growth(), Sightings(), _Public()
    compared = [seen] if any(twin.about != "reading" for twin, _ in twins.values()) else []
    scored = score(
        script, main, capabilities=main.header.capabilities, reader=reader,
        twins=_compared(script, list(twins.values()), cell.history, seen.found, again),
        beside=[times, growing, public, *compared],
    )  # fmt: skip
    outcome = scored.outcome
    outcome.fingerprint = main.fingerprint()
    outcome.twins = {name: there.fingerprint() for name, (_, there) in twins.items()}
    _refuse_half(main, script)
    for twin, there in twins.values():
        _refuse_half(there, twin_script(script, twin))
    for one in again:
        one.fingerprint()  # reads it to the end
        _refuse_half(one, script)
    if public.asks:
        outcome.evidence = evidence_rows(
            joined(script, read_events(cell.history)),
            cutoffs=[k for k in CUTOFFS if k <= cell.spec.limit],
            without=_known_defects(script),
        )
        outcome.requests = requests(joined(script, read_events(cell.history)))
    asked = sum(outcome.usage.values(), Usage())
    outcome.cost_usd = cost_usd(str(cell.spec.model.get("model", "")), asked)
    record = Record(spec=cell.spec, outcome=outcome, timing=times.finish())
    record.timing.growth = growing.finish()
    cell.finish(record, scored.violations)
    return record


class _Public:
    """Notes whether anything was asked as of public data."""

    asks = False

    def observe(self, step: Step, event: Event) -> None:  # noqa: ARG002
        if isinstance(step, Probe) and step.ask == "evidence":
            self.asks = True


def _compared(
    script: Script, pairs: Sequence[tuple[TwinSpec, Reading]], here: Path, seen: Seen,
    again: Sequence[Reading],
) -> Iterator[tuple[TwinSpec, Standing, Standing] | Comparison]:  # fmt: skip
    """What the check of each pair of twins needs, a pair at a time."""
    null: list[Seen] = []
    if any(twin.about != "reading" for twin, _ in pairs):
        null = [sightings(script, one) for one in again]
    for twin, there in pairs:
        yield compare(script, twin, here, there, null, seen=seen)


def _known_defects(script: Script) -> list[str]:
    """What is left out of a second set of rows: the same for all scripts of a data set."""
    public = {"defects": "sha256", "wrong-gold": "audit_sha256"}
    return [name for name, key in public.items() if key in script.header.settings]


def _refuse_half(read: Reading, script: Script) -> None:
    """A history that was cut between two lines reads well and says too little."""
    if read.steps < len(script.steps):
        raise HistoryError(
            f"{read.path}: ends after {read.steps} of {len(script.steps)} steps; run it again to go on"
        )


def _drive(
    memory: Memory,
    script: Script,
    history: Path,
    folder: Path,
    limit: int,
    gateway: Gateway | None,
    search: Search | None,
    on_event: OnEvent | None,
) -> None:
    """Drive a new memory in an empty folder, which is removed when the run is whole."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    try:
        if isinstance(memory, Told):
            memory.told(script)
        if isinstance(memory, UsesModels):
            if gateway is None:
                raise RunStopped("the memory asks models, and there is no gateway to answer")
            gateway.begin()
            memory.connect(gateway.models)
        _open(memory, folder)
        meter = gateway.meter if gateway else None
        drive(memory, script, history, limit=limit, meter=meter, search=search, on_event=on_event)
    finally:
        memory.close()
    shutil.rmtree(folder, ignore_errors=True)


def _open(memory: Memory, folder: Path) -> None:
    try:
        memory.open(folder)
    except Exception as error:  # whatever it is, this memory cannot be run, and others can
        words = str(error) if isinstance(error, MemoryFault) else f"{type(error).__name__}: {error}"
        raise RunStopped(f"it cannot be opened: {words}") from error
