"""Goes over a stored run once more, and says what each step showed.

Nothing is decided here: the scorer judges, as it did when the run was scored, and what it looked
at is written down in words (`steeltrap.harness.trajectory`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

import msgspec

from steeltrap.harness import values
from steeltrap.harness.bench import LIMIT
from steeltrap.harness.checks import Scorer
from steeltrap.harness.checks.sheet import View
from steeltrap.harness.history import Event, HistoryError, joined, read_events, read_header
from steeltrap.harness.memory import Item
from steeltrap.harness.models import Usage
from steeltrap.harness.readers import READERS, Claim
from steeltrap.harness.record import Record, RecordError, read_record
from steeltrap.harness.script import Audit, Erasure, Probe, Script, Step, Turn, tenant_of
from steeltrap.harness.store import Cell
from steeltrap.harness.trajectory import (
    LONGEST,
    Changed,
    Claimed,
    Done,
    Line,
    Mark,
    Played,
    Served,
    Shown,
    Story,
    Unit,
    Witness,
)
from steeltrap.harness.verdict import Violation
from steeltrap.harness.wording import due_words, op_words, unit_words

__all__ = ["SHRUNK", "looked_at", "played", "story"]

ITEMS: Final = 12
"""Items of one observation that are kept."""
SHRUNK: Final = "shrunk"
"""Folder below a run where the shortest conversations lie."""


def looked_at(cells: Iterable[Cell]) -> tuple[list[Story], list[Played]]:
    """Stored runs and their scripts, each script once.

    Raises:
        HistoryError, RecordError, ScriptError: a file is missing or cannot be read.
    """
    stories: dict[str, Story] = {}
    runs = []
    for cell in cells:
        script, sha256 = Script.read(cell.script), cell.spec.script_sha256
        if sha256 not in stories:
            stories[sha256] = story(script, sha256)
        runs.append(played(cell, script, stories[sha256]))
    return list(stories.values()), runs


# ---------------------------------------------------------------- the script


def story(script: Script, sha256: str = "") -> Story:
    """What a script tells.

    Args:
        script: with its truth.
        sha256: its identity, where it is known; else it is worked out.
    """
    lanes = _Lanes()
    lines, turn = [], 0
    for i, step in enumerate(script.steps):
        turn += isinstance(step, Turn)
        lines.append(_line(step, i, turn, lanes))
    header = script.header
    return Story(
        sha256=sha256 or script.sha256(), name=header.name, seed=header.seed, turns=turn,
        authority=header.authority, alpha=header.alpha, constant_tokens=header.constant_tokens,
        units=lanes.units, lines=lines,
    )  # fmt: skip


class _Lanes:
    """Numbers units in the order in which they are first spoken of."""

    def __init__(self) -> None:
        self.units: list[Unit] = []
        self._numbers: dict[str, int] = {}

    def number(self, unit: str | None, i: int, family: str) -> int | None:
        """The number of a unit; None for a topic, and for none."""
        if not unit or unit.count("/") < 2:
            return None
        if unit not in self._numbers:
            self._numbers[unit] = len(self.units)
            name, tenant = unit_words(unit), tenant_of(unit)
            self.units.append(Unit(id=unit, name=name, tenant=tenant, family=family, first=i))
        return self._numbers[unit]


def _line(step: Step, i: int, turn: int, lanes: _Lanes) -> Line:
    def lane(unit: str | None) -> int | None:
        return lanes.number(unit, i, step.family)

    text = step.text if isinstance(step, Turn | Probe | Audit) else ""
    kind = type(step).__name__.lower()
    line = msgspec.convert({"id": step.id, "kind": kind, "at": step.at, "turn": turn}, Line)
    line.tenant, line.family = step.tenant, step.family
    line.text, line.chars = _cut(text)
    if isinstance(step, Turn):
        line.role = step.role
        line.ops = [
            Done(op=op.op, words=op_words(op), unit=lane(op.unit), target=lane(op.target),
                 value=values.display(op.value) if op.value else "")
            for op in step.ops
        ]  # fmt: skip
    for change in step.changes:
        number = lane(change.unit)
        if number is not None:
            value = None if change.value is None else values.display(change.value)
            line.changes.append(
                Changed(unit=number, value=value, cause=change.cause, hop=change.hop, via=lane(change.via))
            )  # fmt: skip
    if isinstance(step, Probe | Audit | Erasure):
        line.unit = lane(step.unit)
    if isinstance(step, Probe | Audit):
        line.due = due_words(step)
    if isinstance(step, Probe):
        line.ask, line.lag, line.hop, line.via = step.ask, step.lag, step.hop, lane(step.via)
        line.in_script = step.observe == "in-script"
    return line


def _cut(text: str) -> tuple[str, int]:
    """At most `LONGEST` characters, and the whole length where there are more."""
    return (text, 0) if len(text) <= LONGEST else (text[:LONGEST], len(text))


# ---------------------------------------------------------------- a run


def played(cell: Cell, script: Script, told: Story, *, label: str = "") -> Played:
    """What a stored run made of a script.

    Args:
        cell: finished, or at least with a history, a record and its violations.
        script: the cell's script.
        told: the same script as a story.
        label: what the run is called; by default its system.

    Raises:
        HistoryError, RecordError, ScriptError: a file is missing or cannot be read.
    """
    record = read_record(cell.record)
    if cell.spec.reader not in READERS:
        raise RecordError(
            f"{cell.folder}: read by '{cell.spec.reader}'; this steeltrap has: {', '.join(READERS)}"
        )
    header = read_header(cell.history)
    if not cell.spec.script_sha256 == header.script_sha256 == script.sha256():
        raise HistoryError(
            f"{cell.history}: the history of another script than the one beside it, or than the"
            " one that spec.json names; restore the two, or run with fresh=true to start over"
        )
    scorer = Scorer(script.header, header.capabilities, READERS[cell.spec.reader]())
    pages = _Pages()
    shown = []
    for step, event in joined(script, read_events(cell.history)):
        pages.seen += event.new
        scorer.observe(step, event)
        shown.append(_shown(step, event, scorer.view, pages))
    units = {unit.id: number for number, unit in enumerate(told.units)}
    marks = [_mark(violation, units) for violation in _violations(cell, record, len(shown))]
    return Played(
        label=label or cell.spec.system, folder=cell.folder.name, sha256=told.sha256,
        reader=cell.spec.reader, limit=cell.spec.limit, facts=_facts(record),
        verdicts={name: _verdict(v) for name, v in record.outcome.verdicts.items()},
        numbers=_numbers(record), footprint=record.outcome.footprint,
        items=pages.kept, shown=shown, violations=marks, witnesses=list(_witnesses(cell.folder)),
    )  # fmt: skip


def _violations(cell: Cell, record: Record, steps: int) -> list[Violation]:
    """Those that the record counts, or a page would show fewer than there were."""
    try:
        lines = cell.violations.read_bytes().splitlines()
        found = [msgspec.json.decode(line, type=Violation) for line in lines]
    except (OSError, msgspec.DecodeError, RecursionError) as error:
        raise _unlike(cell, str(getattr(error, "strerror", None) or error)) from None
    verdicts = record.outcome.verdicts.values()
    counted = {n: t.violations for v in verdicts for n, t in v.names.items() if t.violations}
    if Counter(one.name for one in found) != counted:
        raise _unlike(cell, "holds others than the record counts")
    if any(not 0 <= one.step < steps for one in found):
        raise _unlike(cell, "speaks of steps that the script does not have")
    return found


def _unlike(cell: Cell, why: str) -> RecordError:
    return RecordError(
        f"{cell.violations}: {why}; `steeltrap score {cell.folder}` makes it again from the history"
    )


class _Pages:
    """The items seen so far, and those that are shown, each once."""

    def __init__(self) -> None:
        self.seen: list[Item] = []
        self.kept: list[Served] = []
        self._numbers: dict[int, int] = {}

    def number(self, number: int) -> int:
        """The number under which an item is shown."""
        if number not in self._numbers:
            self._numbers[number] = len(self.kept)
            item = self.seen[number]
            text, chars = _cut(item.text)
            self.kept.append(
                Served(text=text, chars=chars, id=item.id or "", review=item.review,
                       sources=None if item.sources is None else list(item.sources),
                       valid_from=item.valid_from or "", valid_to=item.valid_to or "")
            )  # fmt: skip
        return self._numbers[number]


def _shown(step: Step, event: Event, view: View | None, pages: _Pages) -> Shown:
    shown = Shown(i=event.i, type=event.type, error=event.error[:LONGEST], via=event.via)
    shown.ms, shown.tokens = round(event.ms, 2), event.tokens
    shown.models = {phase: _asked(usage) for phase, usage in event.usage.items()}
    served = event.versions if event.versions is not None else event.served
    shown.given = event.items or len(served)
    if not isinstance(step, Probe | Audit):
        return shown
    about = _speaking(step, view) if view else []
    places = list(dict.fromkeys([*about, *range(1, len(served) + 1)]))[:ITEMS]
    shown.places = places
    shown.items = [pages.number(served[place - 1]) for place in places]
    if view is not None and isinstance(step, Probe):
        numbers = dict(zip(places, shown.items, strict=True))
        shown.claims = [
            _claimed(place, numbers[place], claim, step.at)
            for place, claim in view.about
            if place in numbers
        ]
        _judged(shown, view)
    return shown


def _speaking(step: Probe | Audit, view: View) -> list[int]:
    """The places of what speaks of the unit that is asked for or looked up."""
    if isinstance(step, Probe):
        return [place for place, _ in view.about]
    return [
        place
        for place, (_, claims) in enumerate(view.versions, 1)
        if any(claim.unit == step.unit for claim in claims)
    ]


def _claimed(place: int, item: int, claim: Claim, at: str) -> Claimed:
    value = values.display(claim.value) if claim.value else ""
    return Claimed(
        place=place, item=item, meaning=claim.meaning, value=value, open=claim.open_at(at),
        review=claim.review,
    )  # fmt: skip


def _judged(shown: Shown, view: View) -> None:
    """What the reader made of it, where that was judged."""
    finding = view.finding
    if finding is None:
        return
    shown.verdict = finding.verdict
    shown.answer = finding.observed or finding.answer.kind
    unit = finding.probe.unit or ""
    writers = (view.catalogue.written_by(unit, value) for value in finding.answer.values)
    shown.by = list(dict.fromkeys(turn for turn in writers if turn))
    shown.exposed = [values.display(value) for value in view.exposed]


def _asked(usage: Usage) -> list[int]:
    return [
        usage.calls - usage.embeddings, usage.failed, usage.embeddings, usage.prompt_tokens,
        usage.completion_tokens, usage.cached_tokens or usage.prefix_tokens,
    ]  # fmt: skip


def _mark(violation: Violation, units: dict[str, int]) -> Mark:
    return Mark(
        i=violation.step, name=violation.name, condition=violation.condition,
        began=violation.began, unit=units.get(violation.unit), family=violation.family,
        expected=violation.expected, observed=violation.observed,
        witness=list(violation.witness), hop=violation.hop, lag=violation.lag,
    )  # fmt: skip


def _verdict(verdict: object) -> dict[str, object]:
    told: dict[str, object] = msgspec.to_builtins(verdict)
    kept = ("validity", "violations", "opportunities", "first_turn", "note")
    return {key: told[key] for key in kept}


def _numbers(record: Record) -> dict[str, float | None]:
    outcome, retrieve = record.outcome, record.timing.phases.get("retrieve")
    return {
        "recall": outcome.recall,
        "evidence_recall": outcome.evidence_recall,
        "served_tokens_mean": outcome.served_tokens_mean,
        "footprint_ratio": outcome.footprint_ratio,
        "growth_exponent": outcome.growth_exponent,
        "retrieve_ms_p50": retrieve.p50_ms if retrieve else None,
        "retrieve_ms_p95": retrieve.p95_ms if retrieve else None,
        "failed": float(outcome.failed),
    }


def _facts(record: Record) -> dict[str, str]:
    spec = record.spec
    packages = ", ".join(f"{name} {version}" for name, version in spec.packages.items())
    model = ", ".join(f"{k} {v}" for k, v in spec.model.items() if isinstance(v, str | int | float))
    facts = {
        "steeltrap": spec.steeltrap, "revision": spec.revision, "embedder": spec.embedder,
        "model": model, "packages": packages,
    }  # fmt: skip
    return {key: value for key, value in facts.items() if value}


def _witnesses(folder: Path) -> Iterator[Witness]:
    """The shortest conversations that `steeltrap shrink` left below a run."""
    for path in sorted((folder / SHRUNK).glob("*.jsonl")):
        script = Script.read(path)
        notes = script.header.notes
        name, observed = str(notes.get("shows", path.stem)), str(notes.get("observed", ""))
        file = path.relative_to(folder).as_posix()
        limit = notes.get(LIMIT)
        yield Witness(name=name, file=file, observed=observed, story=story(script), limit=limit)
