"""What a comparison needs of a run, read from a run folder or from a baseline.

A `Sample` is small enough to be committed: counts, names, metrics, and where which violation
showed. A baseline is a file of samples, sorted and indented, so that a change of it can be read as
a diff.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from steeltrap.harness.history import find, fingerprint
from steeltrap.harness.models import Usage
from steeltrap.harness.record import Outcome, Record, RecordError, RunSpec, read_record
from steeltrap.harness.verdict import Validity, Violation

__all__ = ["METRICS", "Baseline", "Run", "Sample", "Seen", "baseline", "read_side", "sample"]

FORMAT: Final = "steeltrap-baseline"
VERSION: Final = 1

METRICS: Final[dict[str, int]] = {
    "recall": +1,
    "evidence_recall": +1,
    "served_tokens": -1,
    "prompt_tokens": -1,
    "footprint": -1,
    "growth": -1,
    "failed": -1,
    "cost_usd": -1,
    "p50_ms": -1,
    "p95_ms": -1,
    "ingest_p50_ms": -1,
    "ingest_p95_ms": -1,
}
"""Metric -> whether more is better (+1) or worse (-1). `served_tokens` are per query,
`prompt_tokens` per turn, `failed` is in steps; `p50_ms` and `p95_ms` are of a retrieval."""


_PLACES: Final = ("base_url", "recordings")
"""Of a model: where it was asked, which is nobody else's business and decides nothing."""


class _Plain(msgspec.Struct, kw_only=True, omit_defaults=True):
    pass


class Seen(_Plain, kw_only=True):
    """The verdict on a condition."""

    validity: Validity
    counts: list[int]
    """[violations, opportunities]"""
    unseen: dict[str, str] = {}
    """Names that could not be observed, and why."""
    note: str = ""


class Sample(_Plain, kw_only=True):
    """A run, as small as a comparison allows."""

    spec: RunSpec
    turns: int
    fingerprint: str
    """Of the history, without wall times."""
    steady: bool | None = None
    """Whether further runs of the same script, where the run has them, were like it."""
    conditions: dict[str, Seen]
    names: dict[str, list[int]]
    """Violation name -> [violations, opportunities], of those put to the test."""
    families: dict[str, dict[str, list[int]]] = {}
    """By family and condition: [violations, opportunities]."""
    metrics: dict[str, float] = {}
    points: dict[str, dict[str, dict[str, list[int]]]] = {}
    """By family, unit and violation name: the steps that showed it."""

    def violated(self) -> Iterator[tuple[str, str, str, int]]:
        """Each violation as (name, family, unit, step)."""
        for family, units in self.points.items():
            for unit, names in units.items():
                for name, steps in names.items():
                    for step in steps:
                        yield name, family, unit, step


class Baseline(msgspec.Struct, kw_only=True):
    """Runs to compare with, as a file."""

    format: str
    version: int
    runs: list[Sample]


class Run(msgspec.Struct, frozen=True):
    """A sample, with its violations in full where it came from a run folder."""

    sample: Sample
    violations: Sequence[Violation] = ()


# ---------------------------------------------------------------- reading


def read_side(path: Path) -> list[Run]:
    """The runs of one side, in an order that does not depend on where they lie.

    Args:
        path: a baseline, a run folder, or a folder of them.

    Raises:
        RecordError: nothing is there, or it cannot be read.
    """
    if path.is_file():
        return _sorted(Run(one) for one in _read_baseline(path).runs)
    if not path.is_dir():
        raise RecordError(
            f"{path}: is not there; give a run folder, a folder of them, or a baseline"
        )
    records = sorted(path.rglob("record.json"))
    if not records:
        raise RecordError(f"{path}: holds no record.json, so no run in it is finished")
    return _sorted(_read_folder(record.parent) for record in records)


def _sorted(runs: Iterable[Run]) -> list[Run]:
    return sorted(runs, key=lambda run: msgspec.json.encode(run.sample, order="sorted"))


def _read_baseline(path: Path) -> Baseline:
    try:
        found = msgspec.json.decode(path.read_bytes(), type=Baseline)
    except OSError as error:
        raise RecordError(f"{path}: cannot be read ({error.strerror})") from None
    except (msgspec.DecodeError, RecursionError) as error:
        raise RecordError(
            f"{path}: not a baseline ({error}); `steeltrap baseline RUN --to {path.name}` writes one"
        ) from None
    if (found.format, found.version) != (FORMAT, VERSION):
        raise RecordError(
            f"{path}: format {found.format} version {found.version}; this steeltrap reads {FORMAT}"
            f" version {VERSION}. Write it again with `steeltrap baseline`."
        )
    if not found.runs:
        raise RecordError(f"{path}: holds no runs")
    return found


def _read_folder(folder: Path) -> Run:
    path = folder / "violations.jsonl"
    try:
        lines = path.read_bytes().splitlines()
        violations = [msgspec.json.decode(line, type=Violation) for line in lines if line]
    except OSError as error:
        raise RecordError(
            f"{path}: cannot be read ({error.strerror}); score the run again"
        ) from None
    except (msgspec.DecodeError, RecursionError) as error:
        raise RecordError(f"{path}: not violations ({error}); score the run again") from None
    made = sample(
        read_record(folder / "record.json"), violations, _families(folder / "script.jsonl")
    )
    again = find(folder / "twins", "again-*.history.jsonl")
    if again:
        made.steady = all(fingerprint(one) == made.fingerprint for one in again)
    return Run(made, violations)


class _Op(msgspec.Struct):
    unit: str = ""


class _Turn(msgspec.Struct):
    """As much of a step as tells whose unit it speaks of."""

    family: str = ""
    ops: list[_Op] = []


def _families(script: Path) -> dict[str, str]:
    """The family of each unit: that of the turn that spoke of it first, as verdicts are counted."""
    found: dict[str, str] = {}
    try:
        with script.open("rb") as lines:
            for line in lines:
                turn = msgspec.json.decode(line, type=_Turn)
                for op in turn.ops:
                    if op.unit:
                        found.setdefault(op.unit, turn.family)
    except OSError as error:
        raise RecordError(
            f"{script}: cannot be read ({error.strerror}); it is a part of the run"
        ) from None
    except (msgspec.DecodeError, RecursionError) as error:
        raise RecordError(f"{script}: not a script ({error}); run again") from None
    return found


def sample(
    record: Record, violations: Iterable[Violation], families: Mapping[str, str] | None = None
) -> Sample:
    """What is kept of a run.

    Args:
        record: its result.
        violations: all of them.
        families: the family of each unit, as far as a unit has one.
    """
    family_of = families or {}
    outcome = record.outcome
    conditions = {
        condition: Seen(
            validity=verdict.validity,
            counts=[verdict.violations, verdict.opportunities],
            unseen={name: t.blocked for name, t in verdict.names.items() if t.blocked},
            note=verdict.note,
        )
        for condition, verdict in outcome.verdicts.items()
    }
    points: dict[str, dict[str, dict[str, list[int]]]] = {}
    for one in violations:
        units = points.setdefault(family_of.get(one.unit, one.family), {})
        units.setdefault(one.unit, {}).setdefault(one.name, []).append(one.step)
    for units in points.values():
        for names in units.values():
            for steps in names.values():
                steps.sort()
    tested = {
        family: {what: list(row) for what, row in rows.items() if what in outcome.verdicts}
        for family, rows in outcome.by_family.items()
    }
    model = {key: value for key, value in record.spec.model.items() if key not in _PLACES}
    return Sample(
        spec=msgspec.structs.replace(record.spec, model=model),
        turns=outcome.turns,
        fingerprint=outcome.fingerprint,
        conditions=conditions,
        names=_tested(outcome),
        families={family: rows for family, rows in tested.items() if rows},
        metrics=_metrics(record),
        points=points,
    )


def _tested(outcome: Outcome) -> dict[str, list[int]]:
    return {
        name: [tally.violations, tally.opportunities]
        for verdict in outcome.verdicts.values()
        for name, tally in verdict.names.items()
        if tally.opportunities
    }


def _metrics(record: Record) -> dict[str, float]:
    """The metrics that the run has, rounded so that a baseline stays short."""
    outcome = record.outcome
    found: dict[str, float | None] = {
        "recall": outcome.recall,
        "evidence_recall": outcome.evidence_recall,
        "served_tokens": outcome.served_tokens_mean,
        "footprint": outcome.footprint_ratio,
        "growth": outcome.growth_exponent,
        "failed": outcome.failed,
        "cost_usd": outcome.cost_usd,
    }
    if outcome.usage and outcome.turns:
        asked = sum(outcome.usage.values(), Usage())
        found["prompt_tokens"] = asked.prompt_tokens / outcome.turns
    for phase, prefix in (("retrieve", ""), ("ingest", "ingest_")):
        if took := record.timing.phases.get(phase):
            found[f"{prefix}p50_ms"] = float(f"{took.p50_ms:.3g}")
            found[f"{prefix}p95_ms"] = float(f"{took.p95_ms:.3g}")
    return {
        name: round(float(value), 6) for name in METRICS if (value := found.get(name)) is not None
    }


# ---------------------------------------------------------------- writing

_NUMBERS: Final = re.compile(rb"\[\n\s+((?:-?\d+,\n\s+)*-?\d+)\n\s+\]")
"""A list of whole numbers as it is indented; within a JSON string no line ends."""


def baseline(runs: Iterable[Run]) -> bytes:
    """Runs as a file that can be committed: sorted, indented, a list of numbers on one line."""
    samples = [run.sample for run in _sorted(runs)]
    samples.sort(key=lambda one: (one.spec.system, one.spec.script, one.spec.seed))
    data: Any = msgspec.to_builtins(Baseline(format=FORMAT, version=VERSION, runs=samples))
    text = msgspec.json.format(msgspec.json.encode(data, order="sorted"), indent=1)
    return _NUMBERS.sub(lambda found: b"[" + b" ".join(found[1].split()) + b"]", text) + b"\n"
