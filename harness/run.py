"""Runs and scores one cell: a system, a script, a seed."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

from steeltrap.harness.checks import score
from steeltrap.harness.drive import OnEvent, RunStopped, drive
from steeltrap.harness.evidence import CUTOFFS, evidence_rows
from steeltrap.harness.gateway import Gateway
from steeltrap.harness.gateway.prices import cost_usd
from steeltrap.harness.growth import growth
from steeltrap.harness.history import HistoryError, fingerprint, joined, read_events, read_header
from steeltrap.harness.memory import Erases, Memory, MemoryFault, Told
from steeltrap.harness.metrics import timing
from steeltrap.harness.models import Usage, UsesModels
from steeltrap.harness.readers import READERS, Reader
from steeltrap.harness.record import Record
from steeltrap.harness.remains import Search, Vectors
from steeltrap.harness.requests import requests
from steeltrap.harness.script import Script
from steeltrap.harness.store import Cell
from steeltrap.harness.twins import chosen, compare, twin_script

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

    live(script, cell.history, cell.folder / "memory", on_event)
    cell.twins.mkdir(exist_ok=True)
    twins = chosen(script, cell.spec.twins)
    for twin in twins:
        other = twin_script(script, twin)
        live(other, _twin_history(cell, twin.name), cell.twins / "memory")
    if any(twin.about != "reading" for twin in twins):
        for number in range(cell.spec.repeats):
            live(script, _twin_history(cell, f"again-{number}"), cell.twins / "memory")
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
    pairs = [
        (twin, _twin_history(cell, twin.name))
        for twin in script.header.twins
        if _twin_history(cell, twin.name).exists()
    ]
    again = sorted(cell.twins.glob("again-*.history.jsonl"))
    scored = score(
        script,
        read_events(cell.history),
        capabilities=read_header(cell.history).capabilities,
        reader=reader,
        twins=[compare(script, twin, cell.history, history, again) for twin, history in pairs],
    )
    outcome = scored.outcome
    _refuse_half(cell.history, outcome.steps, script)
    for twin, history in pairs:
        _refuse_half(history, sum(1 for _ in read_events(history)), twin_script(script, twin))
    for history in again:
        _refuse_half(history, sum(1 for _ in read_events(history)), script)
    outcome.evidence = evidence_rows(
        joined(script, read_events(cell.history)),
        cutoffs=[k for k in CUTOFFS if k <= cell.spec.limit],
        without=_known_defects(script),
    )
    outcome.requests = requests(joined(script, read_events(cell.history)))
    asked = sum(outcome.usage.values(), Usage())
    outcome.cost_usd = cost_usd(str(cell.spec.model.get("model", "")), asked)
    outcome.fingerprint = fingerprint(cell.history)
    outcome.twins = {twin.name: fingerprint(history) for twin, history in pairs}
    record = Record(
        spec=cell.spec, outcome=outcome, timing=timing(joined(script, read_events(cell.history)))
    )
    record.timing.growth = growth(joined(script, read_events(cell.history)))
    cell.finish(record, scored.violations)
    return record


def _known_defects(script: Script) -> list[str]:
    """What is left out of a second set of rows: the same for all scripts of a data set."""
    public = {"defects": "sha256", "wrong-gold": "audit_sha256"}
    return [name for name, key in public.items() if key in script.header.settings]


def _refuse_half(history: Path, steps: int, script: Script) -> None:
    """A history that was cut between two lines reads well and says too little."""
    if steps < len(script.steps):
        raise HistoryError(
            f"{history}: ends after {steps} of {len(script.steps)} steps; run it again to go on"
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


def _twin_history(cell: Cell, name: str) -> Path:
    return cell.twins / f"{name}.history.jsonl"
