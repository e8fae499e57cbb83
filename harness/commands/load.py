"""`steeltrap load`: open-loop load on a memory, at one rate after another."""

from __future__ import annotations

import hashlib
import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from steeltrap.harness.drive import RunStopped
from steeltrap.harness.load import (
    LoadRecord,
    LoadSettings,
    LoadSpec,
    Plan,
    Step,
    alone,
    at_rate,
    next_rate,
    read_load,
)
from steeltrap.harness.load.histogram import Histogram, HistogramMissing
from steeltrap.harness.load.measuring import plan_alone
from steeltrap.harness.memory import Memory, MemoryFault, Told, claims_concurrency
from steeltrap.harness.models import UsesModels
from steeltrap.harness.settings import Settings, SettingsError, cells
from steeltrap.harness.store import Cell, write
from steeltrap.reports.layout import show_table
from steeltrap.reports.load import facts_of, load_page, load_tables

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["Options", "load"]


class Options(LoadSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of `load` itself."""

    rate: str = ""
    """Rates by commas, in operations a second; empty: doubled until one breaks the bound."""
    threads: int = 0
    """That ask; 0: 16, or 1 where the system claims no concurrency."""
    bound_ms: float = 500.0
    warm_s: float = 0.5
    patience_s: float = 30.0


def load(asked: Sequence[str], out: Console, aside: Console) -> bool:
    """Measure a system at each rate, print the tables and write the record.

    Args:
        asked: `KEY=VALUE`: options, and whatever `run` takes for a system.
        out: gets the tables.
        aside: gets a line for each rate.

    Returns:
        Whether all rates were measured; not so where it was interrupted.

    Raises:
        SettingsError, StoreError, RecordError, RunStopped: each says what to do; measured rates stay measured.
    """
    options, rest = _options(asked)
    if not any(word.startswith("system=") for word in rest):
        raise SettingsError("give system=NAME: what is asked")
    if not any(word.startswith("name=") for word in rest):
        rest = [*rest, "name=load"]
    planned = [(settings, _spec(settings, options)) for settings in cells(rest)]
    whole = True
    for settings, spec in planned:
        cell = _cell(settings, spec)
        cell.hold()
        try:
            record = _begun(cell, spec, fresh=settings.config.fresh)
            whole = _measured(settings, cell, record, aside)
        finally:
            cell.release()
        _show(record, cell, out)
        if not whole:
            break
    return whole


def _show(record: LoadRecord, cell: Cell, out: Console) -> None:
    out.print(f"{record.spec.run.system} under load", highlight=False, markup=False)
    for fact in facts_of(record):
        out.print(f"  {fact}", highlight=False, markup=False, soft_wrap=True)
    for table in load_tables(record):
        show_table(table, out)
    out.print(f"\n{cell.folder / _RECORD}\n", highlight=False, markup=False, soft_wrap=True)


_RECORD = "load.json"
_PAGE = "load.md"


def _options(asked: Sequence[str]) -> tuple[Options, list[str]]:
    known = set(Options.__struct_fields__)
    own = dict(word.split("=", 1) for word in asked if word.split("=", 1)[0] in known)
    rest = [word for word in asked if word.split("=", 1)[0] not in known]
    try:
        options = msgspec.convert(own, Options, strict=False)
    except msgspec.ValidationError as error:
        raise SettingsError(f"load: {error}".replace("`", "'")) from None
    if wrong := options.wrong():
        raise SettingsError(wrong)
    for name in ("bound_ms", "patience_s"):
        if not getattr(options, name) > 0:
            raise SettingsError(f"{name}={getattr(options, name):g}: write more than 0")
    if options.threads < 0 or not 0 <= options.warm_s < options.seconds:
        raise SettingsError("threads is at least 1, and warm_s less than seconds")
    return options, rest


def _rates(words: str) -> list[float]:
    try:
        rates = [float(word) for word in words.split(",") if word]
    except ValueError:
        rates = [0.0]
    if not all(0 < rate < float("inf") for rate in rates):
        raise SettingsError(f"rate={words}: write operations a second, several by commas")
    return sorted(set(rates))


def _spec(settings: Settings, options: Options) -> LoadSpec:
    rates = _rates(options.rate)
    own = {name: getattr(options, name) for name in LoadSettings.__struct_fields__}
    chosen = LoadSettings(**own)
    memory = settings.memory()
    try:
        concurrent = claims_concurrency(memory)
        if options.threads > 1 and not concurrent:
            raise SettingsError(
                f"threads={options.threads}: {settings.system} does not claim that several threads"
                " may ask it at once (`concurrent`, in steeltrap.harness.memory); threads=1 asks one"
                " at a time"
            )
        spec = LoadSpec(
            run=settings.spec(plan_alone(chosen).script, memory), load=chosen, rates=rates,
            threads=options.threads or (16 if concurrent else 1), concurrent=concurrent,
            bound_ms=options.bound_ms, warm_s=options.warm_s, patience_s=options.patience_s,
        )  # fmt: skip
    finally:
        memory.close()
    return spec


def _cell(settings: Settings, spec: LoadSpec) -> Cell:
    """The folder of this load, by a hash of all that decides it."""
    digest = hashlib.sha256(msgspec.json.encode(spec, order="sorted")).hexdigest()[:8]
    name = re.sub(r"[^\w.-]+", "-", spec.run.system)[:80].strip("-")
    folder = settings.folder / f"{name}-load-{spec.load.seed}-{digest}"
    folder.mkdir(parents=True, exist_ok=True)
    return Cell(folder, spec.run)


def _begun(cell: Cell, spec: LoadSpec, *, fresh: bool) -> LoadRecord:
    path = cell.folder / _RECORD
    if fresh or not path.exists():
        return LoadRecord(spec=spec)
    return read_load(path)


def _measured(settings: Settings, cell: Cell, record: LoadRecord, aside: Console) -> bool:
    """Measure what is missing, writing each rate as it is done; False: it was interrupted."""
    try:
        Histogram.of([])
    except HistogramMissing as error:
        raise SettingsError(str(error)) from None

    @contextmanager
    def opened(plan: Plan) -> Iterator[Memory]:
        with _memory(settings, cell.folder / "memory", plan, record.spec.threads) as memory:
            yield memory

    if record.alone is None:
        step = _said(aside, record, lambda: alone(record.spec, opened))
        if step.cut:
            return False
        record.alone = step
        _keep(cell, record)
    copies = record.alone.copies
    while (rate := next_rate(record)) is not None:
        step = _said(aside, record, lambda: at_rate(record.spec, rate, copies, opened))
        record.steps.append(step)
        if step.cut:  # shown, and measured anew by the next command
            return False
        _keep(cell, record)
    return True


def _keep(cell: Cell, record: LoadRecord) -> None:
    write(cell.folder / _RECORD, record.encoded())
    write(cell.folder / _PAGE, load_page(record).encode())


def _said(aside: Console, record: LoadRecord, measure: Callable[[], Step]) -> Step:
    step = measure()
    rate = f"{step.rate:g} a second" if step.rate else "one after the other"
    held = (
        "" if not step.rate else f", {'held' if step.holds(record.spec.bound_ms) else 'not held'}"
    )
    p99 = f", p99 {step.p99_ms:,.1f} ms" if step.rate else ""
    aside.print(
        f"{record.spec.run.system}: {rate}: reached {step.reached:g}{p99}{held}",
        highlight=False, markup=False,
    )  # fmt: skip
    return step


@contextmanager
def _memory(settings: Settings, folder: Path, plan: Plan, threads: int) -> Iterator[Memory]:
    """An empty memory, with a model that understands what it will be told."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    memory = settings.memory(threads)
    with settings.gateway(plan.script) as gateway:
        try:
            if isinstance(memory, Told):
                memory.told(plan.script)
            if isinstance(memory, UsesModels):
                assert gateway is not None
                gateway.begin()
                memory.connect(gateway.models)
            try:
                memory.open(folder)
            except Exception as error:  # whatever it is, this memory cannot be measured
                said = isinstance(error, MemoryFault)
                words = str(error) if said else f"{type(error).__name__}: {error}"
                raise RunStopped(f"{settings.system}: it cannot be opened: {words}") from error
            yield memory
            if gateway is not None and (why := gateway.meter.stopped()):
                raise RunStopped(f"{settings.system}: {why}")
        finally:
            memory.close()
    shutil.rmtree(folder, ignore_errors=True)
