"""Runs and scores one cell: a system, a script, a seed."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path

from steeltrap.harness.checks import Standing, score
from steeltrap.harness.checks.sighting import Comparison
from steeltrap.harness.drive import NotOpened, OnEvent, RunStopped, drive
from steeltrap.harness.evidence import CUTOFFS, evidence_rows
from steeltrap.harness.gateway import Gateway
from steeltrap.harness.gateway.prices import cost_usd
from steeltrap.harness.growth import Growth
from steeltrap.harness.history import (
    End,
    Event,
    HistoryError,
    Reading,
    ending,
    joined,
    read_events,
)
from steeltrap.harness.limits import Limits
from steeltrap.harness.memory import Erases, Memory, MemoryFault, Told
from steeltrap.harness.metrics import Times
from steeltrap.harness.models import Usage, UsesModels
from steeltrap.harness.readers import READERS, Reader
from steeltrap.harness.record import Record
from steeltrap.harness.remains import Search, Vectors
from steeltrap.harness.replies import words
from steeltrap.harness.requests import requests
from steeltrap.harness.script import Probe, Script, Step, TwinSpec
from steeltrap.harness.store import Cell
from steeltrap.harness.surroundings import Surroundings, streams
from steeltrap.harness.twins import Seen, Sightings, chosen, compare, sightings, twin_script

__all__ = ["run_cell", "score_cell"]

MakeMemory = Callable[[], Memory]
_NONE = Limits()


def run_cell(
    cell: Cell,
    make_memory: MakeMemory,
    script: Script,
    reader: Reader,
    *,
    gateway: Gateway | None = None,
    vectors: Vectors | None = None,
    on_event: OnEvent | None = None,
    limits: Limits = _NONE,
) -> Record:
    """Drive a memory through a script and through its twins, score, and finish the cell.

    A run that ends early, by a limit of its time, is scored as far as it came, and has no twins.

    Args:
        cell: opened for this script; what it already holds is continued.
        make_memory: gives a new memory for each run.
        script: with its truth.
        reader: turns what was served into answers.
        gateway: open; answers the memory's model calls, where it makes any.
        vectors: makes the vectors that the memory gets from the gateway.
        on_event: called with every step of the main run and its outcome.
        limits: of each run: of the script, and of each twin.

    Raises:
        HistoryError: the cell holds the history of something else.
        StoreError: its spec or script was changed on the way, as by a memory.
        RunStopped: model calls cannot be answered any more; the cell can be continued.
    """

    def live(script: Script, history: Path, folder: Path, on_event: OnEvent | None = None) -> None:
        memory = make_memory()
        search = None
        if history == cell.history and isinstance(memory, Erases):
            # of an embedder in a worker nothing but its name is here
            embed = getattr(getattr(memory, "embedder", None), "embed", vectors)
            search = Search(folder, script, embed)
        life = _Life(memory, script, folder, gateway)
        with streams(), closing(memory):
            life.begin()
            drive(
                memory, script, history, limit=cell.spec.limit,
                meter=gateway.meter if gateway else None, search=search, on_event=on_event,
                begin=life.begin, limits=limits,
            )  # fmt: skip
        life.end()

    cell.expand()
    live(script, cell.history, cell.folder / "memory", on_event)
    if ending(cell.history):
        cell.check()
        return score_cell(cell, script, reader)
    cell.twins.mkdir(exist_ok=True)
    twins = chosen(script, cell.spec.twins)
    for twin in twins:
        other = twin_script(script, twin)
        live(other, cell.twin_history(twin.name), cell.twins / "memory")
    if any(twin.about != "reading" for twin in twins):
        for number in range(cell.spec.repeats):
            live(script, cell.twin_history(f"again-{number}"), cell.twins / "memory")
    cell.check()
    return score_cell(cell, script, reader)


def score_cell(cell: Cell, script: Script, reader: Reader | None = None) -> Record:
    """Score what a cell holds, from its files alone, and finish it.

    Args:
        cell: with a history that is whole, or says that it ended early; so its twins' are.
        script: the cell's script.
        reader: by default the one that the cell's spec names.

    Raises:
        HistoryError: the history is missing, cut short, or not of this script.
    """
    reader = reader or READERS[cell.spec.reader]()
    early = _early(cell, script)
    twins = {
        twin.name: (twin, Reading(history))
        for twin in script.header.twins
        if (history := cell.twin_history(twin.name)).exists() and history not in early
    }
    main = Reading(cell.history)
    again = [Reading(history) for history in cell.repeats() if history not in early]
    times, growing, seen, public = Times(), Growth(), Sightings(), _Public()
    compared = [seen] if any(twin.about != "reading" for twin, _ in twins.values()) else []
    scored = score(
        script, main, capabilities=main.header.capabilities, reader=reader,
        twins=_compared(script, list(twins.values()), main, seen.found, again),
        beside=[times, growing, public, *compared],
    )  # fmt: skip
    outcome = scored.outcome
    outcome.fingerprint = main.fingerprint()
    outcome.twins = {name: there.fingerprint() for name, (_, there) in twins.items()}
    outcome.stopped = early[main.path].end if main.path in early else ""
    if not outcome.stopped:
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
    record.timing.run_s = next((end.run_s for end in early.values()), None)
    cell.finish(record, scored.violations)
    return record


class _Public:
    """Notes whether anything was asked as of public data."""

    asks = False

    def observe(self, step: Step, event: Event) -> None:  # noqa: ARG002
        if isinstance(step, Probe) and step.ask == "evidence":
            self.asks = True


def _early(cell: Cell, script: Script) -> dict[Path, End]:
    """The histories of runs that ended before their scripts did."""
    others = [cell.twin_history(twin.name) for twin in script.header.twins]
    every = [cell.history, *(path for path in others if path.exists()), *cell.repeats()]
    return {path: end for path in every if (end := ending(path))}


def _compared(
    script: Script, pairs: Sequence[tuple[TwinSpec, Reading]], main: Reading, seen: Seen,
    again: Sequence[Reading],
) -> Iterator[tuple[TwinSpec, Standing, Standing] | Comparison]:  # fmt: skip
    """What the check of each pair of twins needs, a pair at a time.

    Where the memory's process died in two runs at different steps, they differ in more than they
    should, and are not compared.
    """
    null: list[Seen] = []
    if any(twin.about != "reading" for twin, _ in pairs):
        found = [(sightings(script, one), one) for one in again]
        null = [what for what, one in found if one.lost == main.lost]
    for twin, there in pairs:
        pair = compare(script, twin, main.path, there, null, seen=seen)
        if not (main.lost or there.lost) or _lost_alike(script, twin, main, there):
            yield pair


def _lost_alike(script: Script, twin: TwinSpec, main: Reading, there: Reading) -> bool:
    """Whether two runs lack the same steps, as far as they are compared, and none of the reads."""
    other = twin_script(script, twin)
    until = next((i for i, s in enumerate(script.steps) if s.id == twin.until), len(script.steps))
    lost = [script.steps[i] for i in main.lost if i <= until]
    reads = [s for s in lost if isinstance(s, Probe) and s.swap and s.swap.twin == twin.name]
    return not reads and {s.id for s in lost} == {other.steps[i].id for i in there.lost}


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


class _Life:
    """A memory in a folder of its own, which is removed when the run is whole."""

    def __init__(
        self, memory: Memory, script: Script, folder: Path, gateway: Gateway | None
    ) -> None:
        self._memory = memory
        self._script = script
        self._folder = folder
        self._gateway = gateway
        self._around = Surroundings()

    def begin(self) -> None:
        """Open it in an empty folder, also after its process has died.

        Raises:
            NotOpened: it does not open.
            RunStopped: it asks models, and nobody is there to answer.
        """
        memory, gateway = self._memory, self._gateway
        shutil.rmtree(self._folder, ignore_errors=True)
        self._folder.mkdir(parents=True)
        if isinstance(memory, Told):
            memory.told(self._script)
        if isinstance(memory, UsesModels):
            if gateway is None:
                raise RunStopped("the memory asks models, and there is no gateway to answer")
            gateway.begin()
            memory.connect(gateway.models)
        try:
            memory.open(self._folder)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # whatever it is, this memory cannot be run, and others can
            said = words(error)
            said = said.partition(": ")[2] if isinstance(error, MemoryFault) else said
            raise NotOpened(f"it cannot be opened: {said}") from error
        finally:
            self._around.restore()

    def end(self) -> None:
        """Leave nothing of it."""
        self._around.restore()
        shutil.rmtree(self._folder, ignore_errors=True)
