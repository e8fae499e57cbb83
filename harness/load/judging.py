"""Whether what was answered under load can be right, and what was lost, doubled or misdirected.

With many clients at once there is no single truth at an instant: a question that runs beside a write
may be answered before or after it. What can be decided is whether *any* order of the operations
explains the answers (linearizability; Herlihy and Wing 1990), and because no value is written twice
this is cheap (Gibbons and Korach 1997; the same uniqueness is behind Elle).

**The rule of C1.** A unit is a register. A write and all reads that returned its value are a
cluster. A cluster has *surely happened* when the first of its operations has ended (a write counts
here only where it was acknowledged); it is *surely needed* until the last of them has begun. If A
has surely happened before B was needed for the last time, A comes before B in every order. Two
clusters each of which comes before the other allow no order at all, and where there is no such pair
there is one. The accused are the reads of the older of the two writes that began after the newer
one had surely happened. An operation whose outcome is not known (`info`) may take effect at any
later time, or never, so it accuses nobody; one that certainly was not done (`fail`) must never show.

| name | what was seen |
|---|---|
| `stale-read` | an older value, though a newer one had been acknowledged or read before |
| `resurrection` | the same, where an answer that came earlier had been the newer value |
| `ambiguous-read` | several values with nothing to choose by, one of which could be no answer |
| `wrong-read` | a value that this unit was never given |
| `kept-refused` | a value whose write was refused as certainly not done |
| `leak` | anything that another tenant told |
| `lost` | acknowledged, and neither served in time, nor listed, nor served when all was quiet |
| `doubled` | shown at once more often than what is told alone and once |
| `superseded-active` | when all is quiet, the listing holds an older value as current (C2) |

Until a system has settled it may not have worked through what it acknowledged, so C1 is counted
twice: under way and when all is quiet. Silence is recall (`missing`), here as everywhere; how long
it lasted is the lag, from the acknowledgement of a traced write to the end of the first read that
served it.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from statistics import median_low
from typing import Final

from steeltrap.harness.load.plan import Plan
from steeltrap.harness.load.running import Done, Trace
from steeltrap.harness.memory import Item
from steeltrap.harness.readers.answers import Answer, Oracle
from steeltrap.harness.readers.claims import Catalogue, Claim
from steeltrap.harness.replies import BadReplyError, Items
from steeltrap.harness.script import Probe, Turn, tenant_of
from steeltrap.harness.values import display

__all__ = ["NAMES", "Finding", "Findings", "judge"]

NAMES: Final = (
    "stale-read", "resurrection", "ambiguous-read", "wrong-read", "kept-refused", "leak", "lost",
    "doubled", "superseded-active",
)  # fmt: skip
_CODE: Final = re.compile(r"\bLD-\d{6}\b")
_EXAMPLES: Final = 3
"""So many of each name are told in full."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One violation."""

    name: str
    unit: str
    words: str
    """What was seen, and when."""


@dataclass(slots=True)
class Findings:
    """What was found at one rate."""

    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(NAMES, 0))
    """Violations by name."""
    opportunities: dict[str, int] = field(
        default_factory=lambda: {"C1": 0, "C1-quiet": 0, "C2": 0, "writes": 0, "served": 0}
    )
    """C1: answers with a value, under way; C1-quiet: those when all was quiet; C2: units in a
    listing; writes: acknowledged; served: items looked through for what belongs to others."""
    broken: dict[str, int] = field(default_factory=lambda: {"C1": 0, "C1-quiet": 0, "C2": 0})
    """Of these opportunities, how many broke the condition."""
    missing: int = 0
    """Questions under way that were answered by nothing, though something had been acknowledged."""
    lags_ms: list[float] = field(default_factory=list)
    """Of the traced writes that were served in time."""
    unread: int = 0
    """Traced writes that no look under way found."""
    copies: int = 1
    """How often a value stands in the listing as a rule, in the same words."""
    unknown: str = ""
    """Why nothing can be said of what is left when all is quiet; empty: it can."""
    examples: list[Finding] = field(default_factory=list)

    def add(self, name: str, unit: str, words: str) -> None:
        """Count a violation."""
        self.counts[name] += 1
        if self.counts[name] <= _EXAMPLES:
            self.examples.append(Finding(name, unit, words))


@dataclass(slots=True)
class _Write:
    """A write and what is known of its cluster."""

    value: str
    order: int
    """Among the writes of its unit, in the order in which its client issued them."""
    done: Done
    happened_s: float = math.inf
    """It has surely happened by then."""
    needed_s: float = -math.inf
    """Its last operation began then."""
    reads: list[Done] = field(default_factory=list)

    def joined(self, read: Done) -> None:
        """A read returned its value."""
        self.reads.append(read)
        self.happened_s = min(self.happened_s, read.ended_s)
        self.needed_s = max(self.needed_s, read.started_s)


@dataclass(slots=True)
class _Read:
    done: Done
    unit: str
    answer: Answer
    quiet: bool


def judge(plan: Plan, trace: Trace, copies: int | None = None) -> Findings:
    """Hold what happened against what can be right.

    Args:
        plan: what was asked.
        trace: what happened.
        copies: how often a value stands in the listing where all is told alone; None: this trace
            says so itself.
    """
    return _Judge(plan, trace).judged(copies)


class _Judge:
    """One trace, judged."""

    def __init__(self, plan: Plan, trace: Trace) -> None:
        self._steps = plan.script.steps
        self._trace = trace
        self._found = Findings(unknown=trace.quiet.error)
        self._items = Items()
        self._catalogue = Catalogue(plan.script.header)
        self._claims: dict[tuple[Item, str], tuple[Claim, ...]] = {}
        self._writes: dict[str, list[_Write]] = defaultdict(list)
        """By unit, as they were issued."""
        self._owner: dict[str, str] = {}
        """Code -> the unit to which it was told."""
        for done in trace.done:
            step = self._steps[done.operation.step]
            if isinstance(step, Turn):
                self._learn(step, done)

    def _learn(self, turn: Turn, done: Done) -> None:
        unit, value = turn.ops[0].unit or "", turn.ops[0].value or ""
        self._catalogue.hear(turn, {})
        self._owner[display(value)] = unit
        write = _Write(value, len(self._writes[unit]), done)
        if done.type != "unserved":
            write.needed_s = done.started_s
        if done.type == "ok":
            write.happened_s = done.ended_s
            self._found.opportunities["writes"] += 1
        self._writes[unit].append(write)

    def judged(self, copies: int | None) -> Findings:
        """Everything, in the order of the table above."""
        reads = list(self._reads())
        by_unit: dict[str, list[_Read]] = defaultdict(list)
        for read in reads:
            by_unit[read.unit].append(read)
        for unit, asked in by_unit.items():
            self._query_soundness(unit, asked)
        self._leaks(reads)
        self._lags()
        self._listings()
        if not self._found.unknown:
            self._lost()
            self._doubled(copies)
            self._transition_soundness()
        return self._found

    # ------------------------------------------------------------ reading

    def _reads(self) -> Iterator[_Read]:
        answered = [(done, False) for done in self._trace.done]
        answered += [(done, True) for done in self._trace.quiet.answers]
        oracle = Oracle()
        for done, quiet in answered:
            step = self._steps[done.operation.step]
            if isinstance(step, Probe) and self._well_formed(done):
                claims = [c for item in done.served for c in self._claimed(item, step.tenant)]
                probe = Probe(
                    at=done.at, tenant=step.tenant, id=step.id, ask="current", text=step.text,
                    unit=step.unit,
                )  # fmt: skip
                yield _Read(done, step.unit or "", oracle.read(probe, claims), quiet)

    def _well_formed(self, done: Done) -> bool:
        """Whether an operation was answered; a reply that is none leaves open what happened."""
        try:
            self._items.intern(done.served, "retrieve")
        except BadReplyError as error:
            done.type, done.error, done.served = "info", f"BadReplyError: {error}"[:300], ()
        return done.type == "ok"

    def _claimed(self, item: Item, tenant: str) -> tuple[Claim, ...]:
        key = item, tenant
        if key not in self._claims:
            self._claims[key] = self._catalogue.claims(item, tenant)
        return self._claims[key]

    # ------------------------------------------------------------ C1

    def _query_soundness(self, unit: str, reads: list[_Read]) -> None:
        writes = {write.value: write for write in self._writes[unit]}
        for read in reads:
            if len(read.answer.values) == 1 and read.answer.values[0] in writes:
                writes[read.answer.values[0]].joined(read.done)
        surely = _Surely(self._writes[unit])
        for read in reads:
            given = read.answer.values
            if not given:
                self._silent(unit, read)
                continue
            where = "C1-quiet" if read.quiet else "C1"
            self._found.opportunities[where] += 1
            if wrong := self._verdict(read, given, writes, surely):
                self._found.broken[where] += 1
                self._found.add(wrong, unit, _told(read, given))

    def _silent(self, unit: str, read: _Read) -> None:
        """Nothing was answered."""
        if not read.quiet and any(
            w.done.type == "ok" and w.done.ended_s < read.done.started_s for w in self._writes[unit]
        ):
            self._found.missing += 1

    def _verdict(
        self, read: _Read, given: Sequence[str], writes: dict[str, _Write], surely: _Surely
    ) -> str:
        """The name of what is wrong with an answer; empty: some order explains it."""
        for value in given:
            write = writes.get(value)
            if write is None or write.done.type == "unserved":
                return "wrong-read"
            if write.done.started_s > read.done.ended_s:
                return "wrong-read"
            if write.done.type == "fail":
                return "kept-refused"
        named = [writes[value] for value in given]
        if len(named) > 1:
            # several at once belong to no cluster: each is tried as if it were the answer
            return "ambiguous-read" if any(surely.after(w, read.done) for w in named) else ""
        newer = surely.after(named[0], read.done)
        if newer is None:
            return ""
        before = any(other.ended_s < read.done.started_s for other in newer.reads)
        return "resurrection" if before else "stale-read"

    # ------------------------------------------------------------ other tenants

    def _listings(self) -> None:
        """Refuse listings that are none."""
        try:
            for items in self._trace.quiet.listed.values():
                self._items.intern(items, "active")
        except BadReplyError as error:
            self._found.unknown = f"BadReplyError: {error}"[:300]

    def _leaks(self, reads: Sequence[_Read]) -> None:
        served = [(tenant_of(r.unit), r.unit, r.done.served) for r in reads]
        served += [(tenant, "", items) for tenant, items in self._trace.quiet.listed.items()]
        for tenant, unit, items in served:
            self._found.opportunities["served"] += len(items)
            for code in dict.fromkeys(code for item in items for code in _CODE.findall(item.text)):
                owner = self._owner.get(code, "")
                if owner and tenant_of(owner) != tenant:
                    self._found.add("leak", unit or owner, f"{tenant} was shown {code} of {owner}")

    # ------------------------------------------------------------ lag

    def _lags(self) -> None:
        """From the acknowledgement of a traced write to the end of the first read that served it."""
        served: dict[str, float] = {}
        for done in self._trace.done:
            for item in done.served:
                for code in _CODE.findall(item.text):
                    served[code] = min(served.get(code, math.inf), done.ended_s)
        traced = {d.operation.of for d in self._trace.done if d.operation.kind == "poll"}
        for writes in self._writes.values():
            for write in writes:
                if write.done.operation.step not in traced or write.done.type != "ok":
                    continue
                seen = served.get(display(write.value))
                if seen is None:  # one whose place another has taken cannot be found any more
                    self._found.unread += write is writes[-1]
                else:
                    self._found.lags_ms.append(max(0.0, 1000 * (seen - write.done.ended_s)))

    # ------------------------------------------------------------ when all is quiet

    def _lost(self) -> None:
        """The last acknowledged value of a unit has to be somewhere."""
        quiet = self._trace.quiet
        shown = {code for done in self._trace.done for item in done.served for code in _CODE.findall(item.text)}  # fmt: skip
        shown |= {
            c for items in quiet.listed.values() for i in items for c in _CODE.findall(i.text)
        }
        shown |= {c for done in quiet.answers for i in done.served for c in _CODE.findall(i.text)}
        asked = {self._steps[done.operation.step].unit for done in quiet.answers}  # type: ignore[union-attr]
        for unit, writes in self._writes.items():
            told = [write for write in writes if write.done.type == "ok"]
            # what nobody asked for is not lost; a doubtful write after it may have replaced it
            if not told or (unit not in asked and not quiet.listed) or _doubtful_since(told[-1], writes):  # fmt: skip
                continue
            if display(told[-1].value) not in shown:
                self._found.add("lost", unit, f"{display(told[-1].value)} of {unit}")

    def _doubled(self, copies: int | None) -> None:
        """A value may stand in several items; twice in the same words it was taken in twice."""
        most: dict[str, int] = {}
        shown = [*self._trace.quiet.listed.values(), *(d.served for d in self._trace.quiet.answers)]
        for items in shown:
            alike = Counter((code, item.text) for item in items for code in set(_CODE.findall(item.text)))  # fmt: skip
            for (code, _), count in alike.items():
                most[code] = max(most.get(code, 0), count)
        if not most:
            return
        usual = copies if copies is not None else median_low(most.values())
        self._found.copies = usual
        for code, count in most.items():
            if count > usual:
                self._found.add(
                    "doubled", self._owner.get(code, ""), f"{code} stands {count} times"
                )

    def _transition_soundness(self) -> None:
        """C2: what is listed as current, when nothing is under way."""
        at = self._trace.quiet.at
        for tenant, items in self._trace.quiet.listed.items():
            held: dict[str, set[str]] = defaultdict(set)
            for item in items:
                for claim in self._claimed(item, tenant):
                    if claim.open_at(at) and claim.value is not None:
                        held[claim.unit].add(claim.value)
            for unit, values in held.items():
                self._found.opportunities["C2"] += 1
                surely = _Surely(self._writes.get(unit, []))
                known = {write.value: write for write in self._writes.get(unit, [])}
                old = [v for v in values if v in known and surely.replaced(known[v])]
                if old:
                    self._found.broken["C2"] += 1
                    names = ", ".join(sorted(map(display, old)))
                    self._found.add("superseded-active", unit, f"{names} listed as the {unit}")


class _Surely:
    """Which writes of a unit have surely happened by when; made once all reads have joined theirs."""

    def __init__(self, writes: Sequence[_Write]) -> None:
        self._writes = writes
        self._happened = sorted(
            (write for write in writes if write.happened_s < math.inf), key=lambda w: w.happened_s
        )
        self._times = [write.happened_s for write in self._happened]

    def after(self, write: _Write, read: Done) -> _Write | None:
        """A newer write that comes after this one in every order, and before a read; the latest."""
        before = self._happened[: bisect_left(self._times, read.started_s)]
        newer = [
            one for one in before if one.order > write.order and write.happened_s < one.needed_s
        ]
        return max(newer, key=lambda one: one.order, default=None)

    def replaced(self, write: _Write) -> bool:
        """Whether a newer one has taken its place for good."""
        return any(
            one.order > write.order and write.happened_s < one.needed_s for one in self._happened
        )


def _doubtful_since(write: _Write, writes: Sequence[_Write]) -> bool:
    return any(one.done.type == "info" and one.order > write.order for one in writes)


def _told(read: _Read, given: Sequence[str]) -> str:
    when = "when all was quiet" if read.quiet else f"after {read.done.started_s:.3f} s"
    return f"{' and '.join(map(display, given))} {when}"
