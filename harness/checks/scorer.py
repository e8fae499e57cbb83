"""Scores a history against its script, one event at a time.

A stream: what is kept is one account a unit, one entry a sentence, and the items served. What was
not needed lately lies in a file (`steeltrap.harness.shelf`), so a history of any length is scored in
one pass and in bounded memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from msgspec.structs import replace

from steeltrap.harness import metrics, tokens
from steeltrap.harness.checks import leakage, observing, traces
from steeltrap.harness.checks.adaptation import Adaptation, Standing
from steeltrap.harness.checks.dose import Doses
from steeltrap.harness.checks.judge import Finding, Source, judge_current, judge_past
from steeltrap.harness.checks.ledger import Ledger
from steeltrap.harness.checks.reads import Beyond, Dependency, QuerySoundness, Resurrection
from steeltrap.harness.checks.retention import Retention
from steeltrap.harness.checks.served import BUDGETS_TOKENS, CUT_OFFS, Reads, Seen
from steeltrap.harness.checks.sheet import Listing, View
from steeltrap.harness.checks.sighting import Compared, Comparison
from steeltrap.harness.checks.state import BoundedState, Provenance, TransitionSoundness
from steeltrap.harness.history import Event, Observer, joined
from steeltrap.harness.models import Usage
from steeltrap.harness.readers import Catalogue, Claim, Reader
from steeltrap.harness.record import Effect, Outcome
from steeltrap.harness.script import (
    About,
    Audit,
    Erasure,
    Gauge,
    Header,
    Pause,
    Probe,
    Script,
    Step,
    Turn,
    TwinSpec,
)
from steeltrap.harness.shelf import Attic, Pile, Shelf
from steeltrap.harness.verdict import Violation

__all__ = ["Scored", "Scorer", "score"]

_COMPARE: dict[About, Callable[[Comparison], Compared]] = {
    "asking": leakage.compare,
    "telling": leakage.compare,
    "existing": traces.compare,
    "observing": observing.compare,
}


@dataclass(slots=True)
class Scored:
    """What a history showed."""

    violations: Sequence[Violation]
    """By step, name and unit; those of a long bad run lie in a file."""
    outcome: Outcome


class Scorer:
    """Takes a run's events in order and keeps the tallies of all conditions.

    Args:
        header: of the script.
        capabilities: of the memory, as the history names them.
        reader: turns what was served into answers.
    """

    def __init__(self, header: Header, capabilities: list[str], reader: Reader) -> None:
        self._reader = reader
        self._erases = "erase" in capabilities
        attic = Attic()
        self.ledger = Ledger(header, attic)
        self._catalogue = Catalogue(header, attic)
        self._items: Shelf[int, Seen] = Shelf(attic, Seen)
        """By number."""
        self._numbers = 0
        self._turn = ""
        self._group = ""
        self._asked: dict[str, Source] = {}
        self._trivial: dict[str, str] = {}
        self._listing = Listing(attic)
        self._violations: Pile[Violation] = Pile(attic, Violation)
        self.view: View | None = None
        """What the checks looked at, at the last step; None after a turn."""
        self._c1, self._c3, self._beyond = QuerySoundness(), Dependency(), Beyond(capabilities)
        self._c2 = TransitionSoundness(capabilities)
        self._resurrection = Resurrection(self._c2.sheet)
        self._c4, self._c5 = Provenance(capabilities), BoundedState(capabilities)
        self.c6, self._doses, self._retention = Adaptation(), Doses(), Retention()
        self._files = traces.Files(self._beyond.sheet)
        self._left_standing: set[str] = set()
        """Twins without something that here could not be erased."""
        self._reads = Reads()
        self._steps = self._failed = self._ingested = 0
        self._lost: dict[str, str] = {}
        self._usage: dict[str, Usage] = {}
        self._effects: list[Effect] = []
        self._curve: list[tuple[int, int, int, int, float]] = []
        self._served_curve: list[tuple[int, int, int]] = []
        self._family = ""
        self._sheets = [c.sheet for c in (self._c1, self._c2, self._c3, self._c4, self._c5, self.c6, self._beyond)]  # fmt: skip

    @property
    def violations_so_far(self) -> int:
        """How many violations have been found."""
        return len(self._violations)

    def observe(self, step: Step, event: Event) -> None:
        """Take in what became of one step."""
        self.view = None
        self._steps += 1
        self._failed += event.type != "ok"
        unit = None if isinstance(step, Turn) else getattr(step, "unit", None)
        spoken = self.ledger.accounts.get(unit) if unit else None
        self._of((spoken.family if spoken else "") or step.family)
        for phase, usage in event.usage.items():
            self._usage[phase] = self._usage.get(phase, Usage()) + replace(usage, ms=0.0)
        for item in event.new:
            self._items[self._numbers] = Seen(item)
            self._numbers += 1
        self._take(step, event)
        if not isinstance(step, Turn):
            self._gather()

    def _take(self, step: Step, event: Event) -> None:
        done = event.type == "ok"
        if isinstance(step, Turn | Pause | Erasure):
            self._group, self._asked, self._trivial = "", {}, {}
        if isinstance(step, Erasure) and self._erases and not done:
            self._beyond.sheet.block("trace", "an erasure failed")
            self._left_standing.update(step.unless)
        must_be_gone = isinstance(step, Erasure) and step.gone
        if self._erases and done and (must_be_gone or event.remains):
            self._files.look(event.i, step, event.remains, self.ledger.turns)
        if isinstance(step, Turn):
            if event.type != "fail" and not event.worker:
                self.ledger.tenants.setdefault(step.tenant)
            if not done:
                self._lost[step.id] = f"{event.type}: {event.error}"
            self._hear(step, done=done)
            return
        for change in step.changes:
            erased = change.cause != "erased" or self._erases
            self.ledger.change(change, self._turn, unsure=not (done and erased))
        self.view = view = View(
            event.i, step, event, self.ledger, self._catalogue,
            listing=self._listing if self._listing.turns else None, turn=self._turn,
        )  # fmt: skip
        if not done:
            return
        match step:
            case Probe():
                self._probe(step, event, view)
            case Gauge():
                self._gauge(step, event, view)
            case Audit():
                self._audit(step, event, view)

    def _of(self, family: str) -> None:
        """What is found from here on belongs to a family."""
        if family != self._family:
            self._family = family
            for sheet in self._sheets:
                sheet.family = family

    def _gather(self) -> None:
        """Take the violations that were found from the sheets."""
        for sheet in self._sheets:
            for found in sheet.violations:
                self._violations.add(f"{found.step:012d}\0{found.name}\0{found.unit}", found)
            sheet.violations.clear()

    def _hear(self, turn: Turn, *, done: bool) -> None:
        self._turn = turn.id
        self._ingested += tokens.count(turn.text) if turn.tokens is None else turn.tokens
        self._catalogue.hear(turn, self.ledger.before(turn))
        self.ledger.hear(turn, done=done)
        self._retention.hear(turn, self.ledger.turns)
        for change in turn.changes:
            self.ledger.change(change, turn.id, unsure=not done)
            if change.value is not None and change.cause == "derived":
                self._catalogue.know(change.unit, change.value, turn.id)

    def _served(self, numbers: Iterable[int], tenant: str) -> Iterator[tuple[Claim, ...]]:
        """The claims of numbered items, worked out once an item and tenant."""
        for number in numbers:
            seen = self._items[number]
            claims = seen.claims.get(tenant)
            if claims is None:
                claims = seen.claims[tenant] = self._catalogue.claims(seen.item, tenant)
            yield claims

    def _probe(self, probe: Probe, event: Event, view: View) -> None:
        if probe.group != self._group:
            self._group, self._asked, self._trivial = probe.group, {}, {}
        view.trivial = self._trivial
        self._reads.queries += 1
        self._reads.served_tokens += event.tokens
        self._look(probe, event, view)
        if probe.unit is not None and probe.expect is not None:
            view.finding = self._judge(probe, [claim for _, claim in view.about])
            if probe.ask == "current":
                view.exposed = self._exposed(probe, view)
                self._count(probe, view)
        for check in (self._c1, self._resurrection, self._c2, self._c3, self._c5, self.c6, self._doses, self._retention, self._beyond):  # fmt: skip
            check.probe(view)
        if view.finding is not None and probe.ask == "current":
            self._remember(probe, view.finding)

    def _look(self, probe: Probe, event: Event, view: View) -> None:
        """Sort what was served: on the unit asked for, and of other tenants.

        What was told without a tenant is nobody's own.
        """
        served = list(self._served(event.served, probe.tenant))
        own, unit, erased = probe.tenant + "/", probe.unit, self.ledger.erased
        for place, claims in enumerate(served, 1):
            for claim in claims:
                if claim.unit == unit:
                    view.about.append((place, claim))
                elif view.foreign is None and not claim.unit.startswith((own, "/")):
                    view.foreign = claim
                if claim.unit in erased and view.ghost is None and self._certain(claim):
                    view.ghost = claim
        view.claims_of = lambda unit: [c for claims in served for c in claims if c.unit == unit]
        view.place_of = lambda unit: next(
            (n for n, claims in enumerate(served, 1) if any(c.unit == unit for c in claims)), None
        )

    def _certain(self, claim: Claim) -> bool:
        """Whether a claim of an erased unit shows what should be gone."""
        return claim.meaning != "rule" and not self.ledger.account(claim.unit).unsure

    def _judge(self, probe: Probe, claims: Sequence[Claim]) -> Finding:
        answer = self._reader.read(probe, claims)
        if probe.ask != "current":
            return judge_past(probe, answer, self.ledger)
        source: Source = "right" if probe.via is None else self._asked.get(probe.via, "missing")
        return judge_current(probe, answer, self.ledger, self._catalogue, source=source)

    def _remember(self, probe: Probe, finding: Finding) -> None:
        assert probe.unit is not None
        account = self.ledger.account(probe.unit)
        right = finding.verdict == "correct"
        account.last_verdict = finding.verdict
        silent = finding.verdict in ("missing", "unknown")
        self._asked[probe.unit] = "right" if right else "missing" if silent else "wrong"
        if right:
            account.right = True
        if right and account.importance == "trivial" and account.state == "set":
            self._trivial[probe.tenant] = probe.unit.split("/", 1)[1]
        if right and account.value is not None:
            account.shown[account.began] = None
            account.shown_values[account.value] = None
        self.ledger.settle(account)

    def _exposed(self, probe: Probe, view: View) -> list[str]:
        """Values of the unit that no longer hold, served with nothing that says so."""
        assert probe.unit is not None
        account = self.ledger.account(probe.unit)
        shown = [
            claim.value
            for _, claim in view.about
            if claim.value
            and not claim.review
            and claim.open_at(probe.at)
            and account.role(claim.value) in ("superseded", "retracted")
        ]
        return list(dict.fromkeys(shown))

    def _count(self, probe: Probe, view: View) -> None:
        finding, reads = view.finding, self._reads
        assert finding is not None and probe.expect is not None
        reads.verdicts[finding.verdict] += 1
        reads.exposed += len(view.exposed)
        if probe.lag is not None and finding.verdict not in ("unknown", "inherited"):
            row = reads.stale_by_lag.setdefault(str(probe.lag), [0, 0])
            row[0] += finding.verdict == "stale"
            row[1] += 1
        if probe.expect.state != "set" or finding.verdict == "unknown":
            return
        row = reads.missing.setdefault(self._family, [0, 0])
        row[0] += finding.verdict == "missing"
        row[1] += 1
        reads.due += 1
        reads.right += finding.verdict == "correct"
        for budget, right in self._right_within(probe, view):
            reads.right_within[budget] += right
        for place, claim in view.about:
            if claim.value == probe.expect.value and claim.meaning == "states":
                reads.evident += 1
                for k in CUT_OFFS:
                    reads.evident_at[k] += place <= k
                break

    def _right_within(self, probe: Probe, view: View) -> Iterator[tuple[int, bool]]:
        """For each budget, whether the answer is right that the first items give which fit into it.

        What is said of the unit decides, so that budgets into which the same of it fits are one.
        """
        assert view.finding is not None
        right = {len(view.about): view.finding.verdict == "correct"}
        for budget_tokens in BUDGETS_TOKENS:
            said = len(view.about)
            if view.event.tokens > budget_tokens:
                fits = self._fits(budget_tokens, view.event)
                said = sum(place <= fits for place, _ in view.about)
            if said not in right:
                claims = [claim for _, claim in view.about[:said]]
                right[said] = self._judge(probe, claims).verdict == "correct"
            yield budget_tokens, right[said]

    def _fits(self, budget_tokens: int, event: Event) -> int:
        """How many of the first items fit into a budget."""
        for place, number in enumerate(event.served):
            seen = self._items[number]
            if seen.tokens is None:
                seen.tokens = tokens.count(seen.item.text)
            budget_tokens -= seen.tokens
            if budget_tokens < 0:
                return place
        return len(event.served)

    def _gauge(self, gauge: Gauge, event: Event, view: View) -> None:
        self._c5.gauge(view)
        if not gauge.tenant:
            reads = self._reads
            self._served_curve.append((self.ledger.turns, reads.queries, reads.served_tokens))
        if event.via != "listing":
            return
        if not gauge.tenant:  # the curve is of the whole
            true_tokens = gauge.footprint[1]
            beta = self.ledger.header.beta(true_tokens)
            self._curve.append((self.ledger.turns, event.items, event.tokens, true_tokens, beta))
        if gauge.full:
            self._list(gauge, event)
            view.listing = self._listing
            self._c2.listing(view)
            self._beyond.listing(view)
            self._doses.listing(view)
            self._retention.listing(view)

    def _list(self, gauge: Gauge, event: Event) -> None:
        """Enter what is listed now beside what was listed last of tenants that are not."""
        listed = (gauge.tenant,) if gauge.tenant else tuple(self.ledger.tenants)
        self._listing.begin(listed, self.ledger.turns)
        numbers = iter(event.served)
        for tenant, count in zip(listed, event.by_tenant, strict=False):
            for claims in self._served(islice(numbers, count), tenant):
                for claim in claims:
                    if claim.open_at(gauge.at):
                        account = self.ledger.account(claim.unit)
                        self._listing.add(claim, trivial=account.importance == "trivial")
        self._listing.end(self.ledger)

    def _audit(self, audit: Audit, event: Event, view: View) -> None:
        numbers = event.served if event.versions is None else event.versions
        items = [self._items[number].item for number in numbers]
        view.versions = list(zip(items, self._served(numbers, audit.tenant), strict=True))
        view.recovered = list(self._served(event.recovered or (), audit.tenant))
        if event.versions is None:
            self._reads.queries += 1
            self._reads.served_tokens += event.tokens
        for check in (self._c4, self._c5, self._doses, self._retention, self._beyond):
            check.audit(view)

    # ------------------------------------------------------------ the end

    def twin(self, script: Script, spec: TwinSpec, a_read: Standing, b_read: Standing) -> None:
        """Take in one pair of twins: how its units stood in this run, and in the other."""
        turns = 0
        for until, step in enumerate(script.steps):
            if step.id == spec.until:
                self._of(step.family)
                self.c6.twin(spec, a_read, b_read, turns, until)
                return
            turns += isinstance(step, Turn)

    def compare(self, comparison: Comparison) -> None:
        """Take in what differs from a twin that differs in something else than reads."""
        spec, sheet = comparison.spec, self._beyond.sheet
        if spec.about == "existing" and (not self._erases or spec.name in self._left_standing):
            return
        compared = _COMPARE[comparison.spec.about](comparison)
        shown_at = (s.family for s in comparison.script.steps if s.id in (spec.until, *spec.trials))
        self._of(next(shown_at, ""))
        self._effects += compared.effects
        if compared.name == "trace":
            compared.leave_out({v.step for _, v in self._violations.pairs() if v.name == "trace"})
        for number in range(compared.opportunities):
            found = compared.violations[number : number + 1]
            sheet.test((compared.name,), self.ledger.turns, *found)
        self._gather()

    def finish(self) -> Scored:
        """The verdicts; call once, after the last event and twin."""
        self._c4.finish()
        self._effects += self._files.effects()
        self._doses.finish(self.c6.sheet, self.ledger.turns)
        self._gather()
        return Scored(self._violations.sorted(), self._outcome())

    def _outcome(self) -> Outcome:
        reads = self._reads
        return Outcome(
            turns=self.ledger.turns,
            steps=self._steps,
            failed=self._failed,
            lost=self._lost,
            usage=dict(sorted(self._usage.items())),
            answers=dict(sorted(reads.verdicts.items())),
            verdicts={sheet.condition: sheet.verdict() for sheet in self._sheets},
            by_family=self._by_family(),
            recall=_share(reads.right, reads.due),
            evidence_recall=_share(reads.evident, reads.due),
            recall_at={str(k): reads.evident_at[k] / reads.due for k in CUT_OFFS if reads.due},
            recall_within={
                str(budget): reads.right_within[budget] / reads.due
                for budget in BUDGETS_TOKENS
                if reads.due
            },
            exposed=reads.exposed,
            inferable=self._c3.inferable,
            staleness_by_lag=dict(sorted(reads.stale_by_lag.items(), key=lambda row: int(row[0]))),
            missed_by_hop={str(hop): row for hop, row in sorted(self._c3.missed_by_hop.items())},
            by_rule=dict(sorted(self._c3.by_rule.items())),
            served_tokens_mean=_share(reads.served_tokens, reads.queries),
            served_tokens_total=reads.served_tokens,
            served_curve=self._served_curve,
            ingested_tokens=self._ingested,
            footprint=self._curve,
            footprint_ratio=metrics.footprint_ratio(self._curve),
            growth_exponent=metrics.growth_exponent(self._curve),
            effects=self._effects,
            dose=self._doses.response(),
            retention=self._retention.kept(),
        )

    def _by_family(self) -> dict[str, dict[str, list[int]]]:
        """See `Outcome.by_family`."""
        due: dict[str, list[str]] = self.ledger.header.settings.get("conditions", {})
        found: dict[str, dict[str, list[int]]] = {family: {} for family in due}
        for sheet in self._sheets:
            for family, rows in sheet.by_family.items():
                found.setdefault(family, {}).update(rows)
        every = [sheet.condition for sheet in self._sheets]
        tested = {
            family: {key: rows.get(key, [0, 0]) for key in due.get(family, every) if family in due or key in rows}
            for family, rows in found.items()
        }  # fmt: skip
        for family, row in self._reads.missing.items():
            tested.setdefault(family, {})["missing"] = row
        return tested


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def score(
    script: Script,
    events: Iterable[Event],
    *,
    capabilities: list[str],
    reader: Reader,
    twins: Iterable[tuple[TwinSpec, Standing, Standing] | Comparison] = (),
    beside: Sequence[Observer] = (),
) -> Scored:
    """Score a whole history.

    Args:
        script: with its truth.
        events: the outcomes, in order.
        capabilities: of the memory, as the history names them.
        reader: turns what was served into answers.
        twins: for each pair, how it stood, or what was seen, in this run and in its twin; taken when
            the events are through.
        beside: others who need the same events, shown each of them in the same pass.
    """
    scorer = Scorer(script.header, capabilities, reader)
    observers = (scorer, *beside)
    for step, event in joined(script, events):
        for one in observers:
            one.observe(step, event)
    for pair in twins:
        if isinstance(pair, Comparison):
            scorer.compare(pair)
        else:
            scorer.twin(script, *pair)
    return scorer.finish()
