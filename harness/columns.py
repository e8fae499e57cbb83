"""Stored runs as columns: a row a step, for pandas, DuckDB or a spreadsheet.

A row joins a step of the script, what became of it, and the violations that it showed. Rows come as
a stream of record batches, so a run of any length takes the memory of one batch; a file is written
as they come, and only `frame` holds all rows. What the columns are, `COLUMNS` says; a unit stands
last in a name, and what a kind of step does not have is null. Where models were asked there are
further columns for each phase in which they were, such as `ingest_calls` (`USAGE`).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from steeltrap.harness.history import Event, HistoryError, joined, read_events
from steeltrap.harness.metrics import PHASES
from steeltrap.harness.models import Usage
from steeltrap.harness.record import RecordError, read_record
from steeltrap.harness.script import Audit, Erasure, Gauge, Probe, Script, Step, Turn
from steeltrap.harness.store import Cell, StoreError, find_cells

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["COLUMNS", "FORMS", "USAGE", "Column", "batches", "finished", "frame", "schema", "write"]

FORMS: Final = (".parquet", ".csv")
ROWS: Final = 8192
"""Of one batch."""
_OTHER: Final = "other"
"""Stands for calls that came in no phase."""


class _Named(msgspec.Struct):
    """As much of a violation as a row shows."""

    name: str
    step: int


class _Row(NamedTuple):
    """What a row is made of."""

    cell: Cell
    step: Step
    event: Event
    turn: int
    violations: list[str]


class Column(NamedTuple):
    """A column: its name, what its values are (`text`, `time`, `int64`, `double`), what they mean."""

    name: str
    values: str
    about: str
    of: Callable[[_Row], object]


def _served(row: _Row) -> int | None:
    if isinstance(row.step, Audit) and row.event.versions is not None:
        return len(row.event.versions)
    return len(row.event.served) if isinstance(row.step, Probe | Audit) else None


def _listed(row: _Row, value: int) -> int | None:
    return value if isinstance(row.step, Gauge) and row.event.via == "listing" else None


def _of(name: str, *kinds: type[Step]) -> Callable[[_Row], object]:
    """A field of the step, where it is of such a kind; empty text is none."""

    def found(row: _Row) -> object:
        value = getattr(row.step, name) if isinstance(row.step, kinds) else None
        return None if value == "" else value

    return found


COLUMNS: Final = (
    Column("run", "text", "name of the run's folder", lambda row: row.cell.folder.name),
    Column("system", "text", "the memory, with what was set differently", lambda row: row.cell.spec.system),
    Column("script", "text", "name of the script", lambda row: row.cell.spec.script),
    Column("seed", "int64", "of the script", lambda row: row.cell.spec.seed),
    Column("i", "int64", "position of the step in the script, from 0", lambda row: row.event.i),
    Column("turn", "int64", "turns told so far, this one included", lambda row: row.turn),
    Column("kind", "text", "turn, probe, gauge, audit, pause or erasure", lambda row: type(row.step).__name__.lower()),
    Column("id", "text", "the step's id in the script", lambda row: row.step.id),
    Column("at", "time", "simulated time", lambda row: row.step.at),
    Column("tenant", "text", "whose step it is", lambda row: row.step.tenant or None),
    Column("family", "text", "family of the script that made it", lambda row: row.step.family or None),
    Column("category", "text", "probe: category, of public data", _of("category", Probe)),
    Column("ask", "text", "probe: current, previous, as-of, rank or evidence", _of("ask", Probe)),
    Column("unit", "text", "probe, audit, erasure: the unit, tenant/topic/field", _of("unit", Probe, Audit, Erasure)),
    Column("lag_turns", "int64", "probe: turns since the update that it follows", _of("lag", Probe)),
    Column("hop", "int64", "probe: edges over which the present value came", _of("hop", Probe)),
    Column("type", "text", "ok (done), fail (certainly not done) or info (nobody knows)", lambda row: row.event.type),
    Column("worker", "text", "died: the memory's process ended here; gone: it had ended for good", lambda row: row.event.worker or None),
    Column("via", "text", "how it was observed: fork, in-script or listing", lambda row: row.event.via or None),
    Column("phase", "text", "what `ms` is the time of", lambda row: PHASES[type(row.step)]),
    Column("ms", "double", "wall time of the memory's work, models included", lambda row: row.event.ms),
    Column("settle_ms", "double", "wall time of waiting for background work before it", lambda row: row.event.settle_ms),
    Column("served_items", "int64", "probe, audit: items served", _served),
    Column("served_tokens", "int64", "probe, audit: tokens served (o200k_base)", lambda row: row.event.tokens if isinstance(row.step, Probe | Audit) else None),
    Column("active_items", "int64", "gauge: items listed as active", lambda row: _listed(row, row.event.items)),
    Column("active_tokens", "int64", "gauge: their tokens", lambda row: _listed(row, row.event.tokens)),
    Column("true_items", "int64", "gauge: live units", lambda row: row.step.footprint[0] if isinstance(row.step, Gauge) else None),
    Column("true_tokens", "int64", "gauge: tokens of their plainest sentences", lambda row: row.step.footprint[1] if isinstance(row.step, Gauge) else None),
    Column("size_bytes", "int64", "full gauge: on disk, where the memory tells", lambda row: row.event.size_bytes),
    Column("error", "text", "fail, info: the memory's words", lambda row: row.event.error or None),
    Column("violations", "text", "names of the violations shown, with spaces between", lambda row: " ".join(row.violations) or None),
)  # fmt: skip
"""What every run has."""

USAGE: Final = {
    "calls": "calls",
    "failed_calls": "failed",
    "embedding_calls": "embeddings",
    "prompt_tokens": "prompt_tokens",
    "completion_tokens": "completion_tokens",
    "cached_tokens": "cached_tokens",
    "prefix_tokens": "prefix_tokens",
    "embedded_tokens": "embedded_tokens",
    "model_ms": "ms",
}
"""What is told of models by phase: the end of a column's name -> the field of `Usage`."""


def finished(folders: Iterable[Path]) -> list[Cell]:
    """The finished cells in and below folders, each once.

    Raises:
        StoreError: a folder does not exist, or there is none.
    """
    cells: dict[Path, Cell] = {}
    asked = list(folders)
    for folder in asked:
        if not folder.exists():
            raise StoreError(f"{folder}: does not exist; give run folders, or folders of them")
        for cell in find_cells(folder):
            if cell.record.exists():
                cells.setdefault(cell.folder.resolve(), cell)
    if not cells:
        where = ", ".join(map(str, asked))
        raise StoreError(f"{where}: holds no finished run (record.json), so there are no rows")
    return list(cells.values())


# ---------------------------------------------------------------- rows


def schema(cells: Iterable[Cell]) -> Any:
    """The pyarrow schema of the rows of these runs.

    Raises:
        RecordError: a record cannot be read.
    """
    return _schema(_asked(cells))


def _asked(cells: Iterable[Cell]) -> list[str]:
    """The phases in which any of the runs asked models."""
    found = {phase for cell in cells for phase in read_record(cell.record).outcome.usage}
    order = [*dict.fromkeys(PHASES.values()), "settle"]
    return sorted(found, key=lambda phase: (order.index(phase) if phase in order else 99, phase))


def _schema(phases: Sequence[str]) -> Any:
    import pyarrow as pa

    types = {"text": pa.string(), "time": pa.timestamp("ms"), "int64": pa.int64(), "double": pa.float64()}  # fmt: skip
    fields = [pa.field(c.name, types[c.values], metadata={"about": c.about}) for c in COLUMNS]
    for phase in phases:
        for end, field in USAGE.items():
            kind = pa.float64() if field == "ms" else pa.int64()
            fields.append(pa.field(f"{phase or _OTHER}_{end}", kind))
    return pa.schema(fields)


def batches(
    cells: Sequence[Cell], *, on_rows: Callable[[int], None] | None = None
) -> Iterator[Any]:
    """The rows of some finished runs, as pyarrow record batches of one schema.

    Args:
        cells: finished; their rows follow each other.
        on_rows: told after each batch how many rows it has.

    Raises:
        HistoryError, RecordError, ScriptError, StoreError: a file of a run cannot be read.
    """
    import pyarrow as pa

    phases = _asked(cells)
    form = _schema(phases)
    for cell in cells:
        rows: list[_Row] = []
        for row in _rows(cell):
            rows.append(row)
            if len(rows) == ROWS:
                yield _batch(pa, form, rows, phases)
                if on_rows:
                    on_rows(len(rows))
                rows.clear()
        if rows:
            yield _batch(pa, form, rows, phases)
            if on_rows:
                on_rows(len(rows))


def _rows(cell: Cell) -> Iterator[_Row]:
    named = _violations(cell)
    following, turn = next(named, None), 0
    for step, event in joined(Script.read(cell.script), read_events(cell.history)):
        turn += isinstance(step, Turn)
        names = []
        while following is not None and following.step <= event.i:
            if following.step < event.i:
                raise _unlike(cell, "is not in the order of the steps")
            names.append(following.name)
            following = next(named, None)
        yield _Row(cell, step, event, turn, names)
    if following is not None:
        raise _unlike(cell, "speaks of steps that the history does not have")


def _violations(cell: Cell) -> Iterator[_Named]:
    try:
        with cell.violations.open("rb") as lines:
            for line in lines:
                yield msgspec.json.decode(line, type=_Named)
    except (OSError, msgspec.DecodeError, RecursionError) as error:
        raise _unlike(cell, str(getattr(error, "strerror", None) or error)) from None


def _unlike(cell: Cell, why: str) -> RecordError:
    return RecordError(
        f"{cell.violations}: {why}; `steeltrap score {cell.folder}` makes it again from the history"
    )


def _batch(pa: Any, form: Any, rows: Sequence[_Row], phases: Sequence[str]) -> Any:
    columns: list[Iterable[object]] = [[column.of(row) for row in rows] for column in COLUMNS]
    for phase in phases:
        used = [row.event.usage.get(phase) for row in rows]
        columns += ([_used(one, field) for one in used] for field in USAGE.values())
    try:
        arrays = [
            pa.array(values, pa.string()).cast(field.type) if field.name == "at"
            else pa.array(values, field.type)
            for values, field in zip(columns, form, strict=True)
        ]  # fmt: skip
    except pa.ArrowInvalid as error:
        raise HistoryError(f"{rows[0].cell.folder}: holds what does not fit a column: {error}") from None  # fmt: skip
    return pa.record_batch(arrays, schema=form)


def _used(usage: Usage | None, field: str) -> float | None:
    return None if usage is None else getattr(usage, field)


# ---------------------------------------------------------------- taken away


def write(
    cells: Sequence[Cell], path: Path, *, on_rows: Callable[[int], None] | None = None
) -> int:
    """Write the rows of some finished runs to a file, all of it or nothing; returns their number.

    Args:
        cells: finished.
        path: ends in one of `FORMS`.
        on_rows: told after each batch how many rows it has.

    Raises:
        ValueError: it ends in something else.
        HistoryError, RecordError, ScriptError: a file of a run cannot be read.
        StoreError: it cannot be written.
    """
    if path.suffix not in FORMS:
        raise ValueError(f"{path}: columns are written to a file that ends in {' or '.join(FORMS)}")
    part, count = path.with_name(path.name + ".part"), 0
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with closing(_writer(part, path.suffix, schema(cells))) as out:
            for batch in batches(cells, on_rows=on_rows):
                out.write_batch(batch)
                count += batch.num_rows
        os.replace(part, path)
    except OSError as error:
        raise StoreError(
            f"{path}: cannot be written ({error.strerror or error}); make room, or choose another place"
        ) from None
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)  # half of it
    return count


def _writer(part: Path, suffix: str, form: Any) -> Any:
    if suffix == ".csv":
        import pyarrow.csv

        return pyarrow.csv.CSVWriter(str(part), form)
    import pyarrow.parquet

    return pyarrow.parquet.ParquetWriter(str(part), form, compression="zstd")


def frame(*folders: Path | str) -> pd.DataFrame:
    """The rows of the finished runs in and below folders, as a pandas frame.

    Text that repeats comes as categories, and a null among whole numbers makes them floats, as
    everywhere in pandas.

    Raises:
        StoreError: there is no finished run.
        HistoryError, RecordError, ScriptError: a file of a run cannot be read.
    """
    import pyarrow as pa

    cells = finished(map(Path, folders))
    table = pa.Table.from_batches(batches(cells), schema(cells))
    own = ("id", "error")
    repeating = [c.name for c in COLUMNS if c.values == "text" and c.name not in own]
    made: pd.DataFrame = table.to_pandas(categories=repeating)
    return made
