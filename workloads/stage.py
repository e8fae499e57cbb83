"""The stage: where families act, and where turns, probes and audits come to stand in a script.

A family is a coroutine. It calls the stage to say and ask things and yields the number of turns
that should pass before it goes on, so that several families can be interleaved. Every change
of a unit is followed by probes: at once, so that a memory that was ever right is known to have
been, and at some of the later lags.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from itertools import count, pairwise
from typing import Literal, Protocol

from steeltrap.harness import tokens
from steeltrap.harness.script import (
    REQUEST,
    Ask,
    Audit,
    Change,
    Erasure,
    Gauge,
    Header,
    Op,
    OpName,
    Pause,
    Probe,
    Rule,
    Step,
    Swap,
    Turn,
    TwinSpec,
    field_of,
    tenant_of,
    topic_of,
    unit_id,
)
from steeltrap.workloads.dice import Dice
from steeltrap.workloads.domains import Domain, Field, domains
from steeltrap.workloads.life import Life, Sample, checkpoints
from steeltrap.workloads.mint import Mint
from steeltrap.workloads.render import Renderer
from steeltrap.workloads.truth import Annotator
from steeltrap.workloads.world import derive

__all__ = ["Curtain", "Lags", "Slot", "Stage", "Steps", "days_between"]

START = datetime(2026, 1, 5, 9, 0)
GROUP_UNITS_MAX = 8
"""Probes that follow one update: a wide cascade is sampled, not probed whole, at each lag."""
GAP_SHARE = 0.12
"""Share of turns before which hours or days pass."""
THINNING = 500
"""Turns from which on gauges and audits come ever more rarely."""
PAST_UNITS = 8
"""Units of a sample whose past is asked for."""
FORGET_EVERY = 50_000
"""Turns at which ended units are let go, where no checkpoint has come before."""
MADE = ("offset", "scaled")
"""Rules that make a value which nobody has said."""


class Curtain(Exception):
    """The script has as many turns as were asked for."""


@dataclass(frozen=True, slots=True)
class Slot:
    """A unit to be told about, with what its field is like."""

    unit: str
    field: Field
    domain: Domain

    @property
    def topic(self) -> str:
        """The topic's id, `tenant/topic`."""
        return f"{tenant_of(self.unit)}/{topic_of(self.unit)}"


@dataclass(frozen=True, slots=True)
class Lags:
    """At which lags an update is probed: lag in turns -> share of updates."""

    shares: tuple[tuple[int, float], ...]


class Steps(Protocol):
    """Takes the steps of a script in order: a list, or a file that is written."""

    def append(self, step: Step, /) -> None:
        """The next step."""

    def __len__(self) -> int: ...

    def __getitem__(self, i: int, /) -> Step: ...


class Stage:
    """Builds one script step by step, truth included.

    Args:
        header: the script's header; twins are added to it.
        renderer: turns ops into sentences.
        dice: the script's stream of choices.
        turns_max: how many turns the script shall have.
        lags: at which lags updates are probed.
        audit_every: turns between audits of every unit; wider apart in long scripts.
        gauge_every: turns between gauges of the footprint; wider apart in long scripts.
        requests: ask with every turn before it is told, as an agent does that answers it.
        life: of a long life, how its things end and how rarely it is looked at.
        steps: takes the script's steps in order; by default a list.

    Attributes:
        told: takes the slots that are chosen, for whoever wants to know them.
        watched: whether what happens is asked for.
    """

    def __init__(
        self,
        header: Header,
        renderer: Renderer,
        dice: Dice,
        *,
        turns_max: int,
        lags: Lags,
        audit_every: int,
        gauge_every: int,
        requests: bool = False,
        life: Life | None = None,
        steps: Steps | None = None,
    ) -> None:
        self.header = header
        self.renderer = renderer
        self.dice = dice.child("stage")
        self.mint = Mint(dice.child("mint"))
        self.annotator = Annotator(header)
        self.world = self.annotator.world
        self.steps: Steps = [] if steps is None else steps
        self.told: list[Slot] = []
        self.watched = True
        self.turns = 0
        self.turns_max = turns_max
        self.family = ""
        self._lags = lags
        self._requests = requests
        self._audit_every, self._gauge_every = audit_every, gauge_every
        self._next_audit, self._next_gauge = audit_every, gauge_every
        self._now = START
        self._counts: dict[str, int] = {}
        self._sessions: dict[str, tuple[int, datetime]] = {}
        self._last_unit: dict[str, str | None] = {}
        self._slots: dict[str, Slot] = {}
        self._topics: dict[tuple[str, str], list[str]] = {}
        self._by_topic: dict[str, list[str]] = {}
        self._changed: dict[str, int] = {}
        self._due: list[tuple[int, int, list[str], int, int, str]] = []
        self._erased: list[str] = []
        self._decks: dict[str, list[str]] = {}
        self._quiet = False
        self._life = life
        self._gap_share = GAP_SHARE if life is None else life.gap_share
        self._sample = Sample(life.sample if life else 0, dice.child("sample"))
        self._ended: dict[str, None] = {}
        """Units of a long life that are withdrawn for good."""
        round_turns, years = checkpoints(life.years if life else 0, START)
        self._round_turns, self._years = round_turns, years
        self._next_round, self._next_year = next(round_turns), next(years, "")
        self._never: dict[str, tuple[str, ...]] = {}
        """Units and tenants of which no step speaks in some twins, until they are erased: from
        then on both runs ask for them, since a question is a read, and may leave a mark."""

    # ------------------------------------------------------------ choosing what to talk about

    @property
    def at(self) -> str:
        """The simulated time, to the minute."""
        return self._now.isoformat(timespec="minutes")

    @property
    def tenant(self) -> str:
        """The tenant that most families speak for."""
        return self.header.tenants[0]

    def deal(self, deck: str, options: Sequence[str]) -> str:
        """One of the options, each as often as every other: a deck is shuffled anew when empty."""
        left = self._decks.setdefault(deck, [])
        if not left:
            left += self.dice.shuffled(options)
        return left.pop()

    def new_tenant(self, name: str) -> str:
        """Make a tenant known to the script."""
        if name not in self.header.tenants:
            self.header.tenants.append(name)
        return name

    def slot(
        self,
        *,
        kinds: Sequence[str] = (),
        importance: str = "normal",
        field: Field | None = None,
        domain: Domain | None = None,
        topic: str | None = None,
        tenant: str | None = None,
    ) -> Slot:
        """A unit nobody has spoken of yet; chosen at random where nothing is asked for."""
        tenant = self.tenant if tenant is None else tenant
        while True:
            where = domain or self.dice.pick(domains())
            fits = [
                f
                for f in where.fields
                if f.importance == importance and (not kinds or f.kind in kinds)
            ]
            if field is None and not fits:
                continue
            what = field or self.dice.pick(fits)
            slot = Slot(unit_id(tenant, topic or self._topic(tenant, where, what), what.name), what, where)  # fmt: skip
            if slot.unit in self._slots:
                topic = topic if field is None else None
                continue
            self._slots[slot.unit] = slot
            self.told.append(slot)
            if self._life:
                self._sample.add(slot.unit)
            self._by_topic.setdefault(slot.topic, []).append(slot.unit)
            return slot

    def _topic(self, tenant: str, domain: Domain, field: Field) -> str:
        """A new topic, or now and then one of the latest that has no such field yet."""
        known = self._topics.setdefault((tenant, domain.name), [])
        if known and self.dice.chance(0.4):
            topic = self.dice.pick(known[-4:])
            if unit_id(tenant, topic, field.name) not in self._slots:
                return topic
        topic = self.mint.topic(domain)
        known.append(topic)
        return topic

    def fresh(self, slot: Slot, follow: Sequence[tuple[Slot, Rule, int]] = ()) -> str:
        """A value that the script has not used, and neither have the values derived from it.

        Args:
            slot: the unit that shall have the value.
            follow: dependents in order, each with its rule and the place of its source in the
                list of values so far (0 is `slot` itself).
        """
        for tries in count():
            # Days get crowded; looking further ahead each time finds room for a whole chain.
            ahead = self._now + timedelta(days=20 * tries)
            chain = [self.mint.value(slot.field, ahead.isoformat(timespec="minutes"))]
            for _, rule, source in follow:
                # Nothing follows by itself from a value that somebody has to look at.
                chain.append(derive(rule, chain[source]) if rule.kind != "review" else "")
            made = [
                v for v, (_, rule, _) in zip(chain[1:], follow, strict=True) if rule.kind in MADE
            ]
            if all(self.mint.claim(value) for value in made):
                break
        return chain[0]

    def current(self, slot: Slot) -> str | None:
        """The value that holds now, or None."""
        expect = self.world.expect(slot.unit)
        return expect.value if expect.state == "set" else None

    # ------------------------------------------------------------ saying things

    def tell(self, *slots: Slot, value: str | None = None) -> None:
        """First values, in one utterance."""
        self.say([
            Op("tell", s.unit, value or self.fresh(s), importance=s.field.importance)
            for s in slots
        ])  # fmt: skip

    def revise(self, *slots: Slot, value: str | None = None, valid_at: str | None = None) -> None:
        """New values, in one utterance."""
        self.say([Op("revise", s.unit, value or self.fresh(s), valid_at=valid_at) for s in slots])

    def op(
        self, name: OpName, slot: Slot, value: str | None = None, *,
        source: str = "owner", until: str | None = None,
    ) -> None:  # fmt: skip
        """Any other op on one unit; without a value, its current one."""
        value = value if value is not None or name == "retract" else self.current(slot)
        self.say([Op(name, slot.unit, value, source=source, until=until)])

    def depend(self, source: Slot, target: Slot, rule: Rule) -> None:
        """Tie `target` to `source`."""
        self.say([Op("depend", source.unit, target=target.unit, rule=rule)])

    def associate(self, one: Slot, other: Slot) -> None:
        """Say that two topics are related and independent."""
        self.say([Op("associate", one.topic, target=other.topic)])

    def noise(self, tenant: str | None = None) -> None:
        """A turn that matters to no unit."""
        self.say([Op("noise")], tenant=tenant)

    def say(
        self, ops: Sequence[Op], tenant: str | None = None, *,
        text: str = "", role: Literal["user", "assistant"] = "user", session: str = "",
    ) -> None:  # fmt: skip
        """One turn; then the probes that are due.

        Args:
            ops: what is said.
            tenant: who says it; by default whose unit it is.
            text: in these words; by default in the renderer's.
            role: who speaks.
            session: said there, and now; by default the clock moves on.

        Raises:
            Curtain: the script is long enough.
        """
        if self.turns >= self.turns_max:
            raise Curtain
        tenant = tenant or (tenant_of(ops[0].unit) if ops[0].unit else self.tenant)
        session = session or self.moment(tenant)
        previous = {op.unit: self.world.expect(op.unit).value for op in ops if op.unit}
        last = self._last_unit.get(tenant)
        text = text or self.renderer.turn(ops, at=self.at, previous=previous, last_unit=last)
        turn = Turn(
            id=self._id("t"), at=self.at, tenant=tenant, session=session, role=role, text=text,
            ops=list(ops), family=self.family,
        )  # fmt: skip
        # A rule or a relation speaks of two things: "it" would be either. In a twin in which this
        # was not said it would be nothing.
        self._last_unit[tenant] = None if ops[-1].target or turn.unless else ops[-1].unit
        if self._life:
            turn.tokens = tokens.count(text)
        self.turns += 1
        before = self._add(self._request(turn)) if self._requests else []
        changes = before + self._add(turn)
        self._follow_up(changes)
        self._probe_due()
        self._watch()

    def _request(self, turn: Turn) -> Probe:
        """What an agent looks up when a turn reaches it."""
        named = (unit for op in turn.ops for unit in (op.unit, op.target) if unit)
        units = (unit for unit in dict.fromkeys(named) if unit.count("/") > 1)  # no topics
        return Probe(
            id=self._id("r"), at=turn.at, tenant=turn.tenant, ask="evidence", text=turn.text,
            units=tuple(units), observe="in-script", category=REQUEST,
        )  # fmt: skip

    def erase(self, tenant: str, slot: Slot | None = None) -> None:
        """Remove a unit or a tenant for good, and ask for it."""
        step = Erasure(
            id=self._id("e"), at=self.at, tenant=tenant,
            unit=slot.unit if slot else None, family=self.family,
        )  # fmt: skip
        changes = self._add(step)
        gone = [change.unit for change in changes if change.cause == "erased"]
        erased = (slot.unit if slot else tenant,)
        for twin, units in self._never.items():
            self._never[twin] = tuple(unit for unit in units if unit not in erased)
        self._erased += gone
        self._last_unit[tenant] = None
        self._follow_up(changes)

    # ------------------------------------------------------------ asking things

    def ask(
        self, slot: Slot, ask: Ask = "current", *,
        of: str | None = None, swap: tuple[str, Slot] | None = None, control: Slot | None = None,
    ) -> None:  # fmt: skip
        """A question as a user asks it: part of the trajectory."""
        if not self.watched:
            return
        other = None
        if swap is not None:
            twin, b = swap
            other = Swap(twin, b.unit, self.renderer.question("current", b.unit, at=self.at))
        control_unit = control.unit if control else self._bystander(slot)
        self._probe(slot.unit, ask, of=of, observe="in-script", swap=other, control=control_unit)

    def check(self, *slots: Slot, ask: Ask = "current", of: str | None = None) -> None:
        """A measuring question, asked of a copy where the system can be copied."""
        if not self.watched:
            return
        if ask == "current":
            self._group([slot.unit for slot in slots], lag=None)
        else:
            for slot in slots:
                self._probe(slot.unit, ask, of=of)

    def check_later(self, slot: Slot, lag: int) -> None:
        """A measuring question after `lag` more turns, unless the unit changes before."""
        if self.watched:
            self._schedule([slot.unit], lag)

    def ask_as(self, tenant: str, slot: Slot) -> None:
        """The question for a unit, asked in a scope in which nothing of that name need be told."""
        self._probe(unit_id(tenant, topic_of(slot.unit), field_of(slot.unit)), "current")

    def rank(self, *slots: Slot) -> str:
        """A neutral question that touches units of one tenant alike; returns the probe's id."""
        units = tuple(sorted(slot.unit for slot in slots))
        text = self.renderer.question("rank", None, at=self.at, units=units)
        probe = Probe(
            id=self._id("p"), at=self.at, tenant=tenant_of(units[0]), ask="rank", text=text,
            units=units, family=self.family, group=self._id("q"),
        )  # fmt: skip
        self._add(probe)
        return probe.id

    @contextmanager
    def unprobed(self) -> Iterator[None]:
        """What changes here is not asked for by itself, so that nothing counts as a read of it."""
        self._quiet = True
        try:
            yield
        finally:
            self._quiet = False

    def never(self, twin: str, *gone: str) -> None:
        """Units or tenants that never are in a twin: until they are erased here, no step speaks of
        them there."""
        self._never[twin] = self._never.get(twin, ()) + gone

    def pause(self, days: int = 0) -> None:
        """Nothing is said for so long, and then maintenance may run."""
        self._now += timedelta(days=days)
        self._add(Pause(id=self._id("m"), at=self.at, family=self.family))

    def look(self, *slots: Slot) -> None:
        """List all that is active, and look up the history of some units."""
        self._add(Gauge(id=self._id("g"), at=self.at, full=True, family=self.family))
        group = self._id("q")
        for slot in slots:
            self._look_up(slot.unit, group)

    def twin(self, name: str, a: Slot, b: Slot) -> None:
        """The reads marked with `name` can be compared from here on."""
        self.header.twins.append(TwinSpec(name, a.unit, b.unit, self.steps[-1].id))

    def next_twin(self) -> str:
        """A name for a pair of exchangeable units."""
        return self._id("twin")

    # ------------------------------------------------------------ inner workings

    def _id(self, prefix: str) -> str:
        self._counts[prefix] = number = self._counts.get(prefix, 0) + 1
        return f"{prefix}{number:04d}"

    def _add(self, step: Step) -> list[Change]:
        step.unless = tuple(twin for twin, gone in self._never.items() if _speaks_of(step, gone))
        changes = self.annotator.add(step)
        self.steps.append(step)
        for change in changes:
            self._changed[change.unit] = self.turns
        return changes

    def moment(self, tenant: str) -> str:
        """Move the clock, and give the session of that time.

        A new session begins after a long gap, and maintenance before it.
        """
        self._now += timedelta(minutes=self.dice.between(4, 55))
        if self.dice.chance(self._gap_share):
            self._now += timedelta(minutes=self.dice.between(600, 5400))
            if len(self.steps):
                self._add(Pause(id=self._id("m"), at=self.at, tenant=tenant))
                self._now += timedelta(minutes=1)
        number, since = self._sessions.get(tenant, (0, self._now - timedelta(days=1)))
        if self._now - since > timedelta(hours=8):
            number += 1
            self._last_unit[tenant] = None
        self._sessions[tenant] = (number, self._now)
        return f"{tenant}-s{number}"

    def _bystander(self, slot: Slot) -> str | None:
        """The latest live unit of the same tenant that shares neither topic nor rules."""
        for unit in reversed(self._changed):
            if (
                tenant_of(unit) == tenant_of(slot.unit)
                and topic_of(unit) != topic_of(slot.unit)
                and self.world.expect(unit).state == "set"
                and unit not in self.world.edges
                and self.world.origin(unit)[1] is None
            ):
                return unit
        return None

    def _follow_up(self, changes: Sequence[Change]) -> None:
        """Probe what changed, now and later, with decoys that must not have."""
        if not changes or self._quiet or not self.watched:
            return
        units = list(dict.fromkeys(change.unit for change in changes))[:GROUP_UNITS_MAX]
        units += [d for d in self._decoys(units[0]) if d not in units]
        self._group(units, lag=0)
        for lag, share in self._lags.shares:
            if lag and self.dice.chance(share):
                self._schedule(units, lag)

    def _decoys(self, unit: str) -> list[str]:
        """Up to two units of topics associated with that of `unit`."""
        topics = self.world.associations.get(f"{tenant_of(unit)}/{topic_of(unit)}", [])
        found = [unit for topic in topics for unit in self._by_topic.get(topic, ())]
        return [unit for unit in found if unit in self.world.units][:2]

    def _schedule(self, units: list[str], lag: int) -> None:
        order = len(self._due) + self.turns * 1000
        heapq.heappush(self._due, (self.turns + lag, order, units, self.turns, lag, self.family))

    def _probe_due(self) -> None:
        family = self.family
        while self._due and self._due[0][0] <= self.turns:
            _, _, units, since, lag, self.family = heapq.heappop(self._due)
            same = [u for u in units if self._changed.get(u, -1) <= since]
            if same:
                self._group(same, lag=lag)
        self.family = family

    def _group(self, units: Sequence[str], *, lag: int | None) -> None:
        """Ask for each unit and for whatever it follows from, sources first."""
        group = self._id("q")
        for unit in self._with_sources(units):
            self._probe(unit, "current", lag=lag, group=group)

    def _with_sources(self, units: Sequence[str]) -> list[str]:
        ordered: dict[str, None] = {}
        for unit in units:
            chain = [unit]
            while (via := self.world.origin(chain[-1])[1]) is not None and via not in chain:
                chain.append(via)
            for member in reversed(chain):
                ordered.setdefault(member)
        return list(ordered)

    def _probe(
        self, unit: str, ask: Ask, *, lag: int | None = None, group: str = "",
        of: str | None = None, observe: Literal["fork", "in-script"] = "fork", swap: Swap | None = None,
        control: str | None = None,
    ) -> None:  # fmt: skip
        text = self.renderer.question(ask, unit, at=self.at, of=of)
        self._add(Probe(
            id=self._id("p"), at=self.at, tenant=tenant_of(unit), ask=ask, text=text, unit=unit,
            of=of, lag=lag, group=group or self._id("q"), observe=observe, swap=swap,
            control=control, family=self.family,
        ))  # fmt: skip

    def _checkpoint(self) -> bool:
        """Whether a long life has come to a checkpoint."""
        here = self.turns >= self._next_round or bool(
            self._next_year and self.at >= self._next_year
        )
        while self.turns >= self._next_round:
            self._next_round = next(self._round_turns)
        while self._next_year and self.at >= self._next_year:
            self._next_year = next(self._years, "")
        return here

    def _watch(self) -> None:
        """Gauge and audit where they are due, and at the very end."""
        last = self.turns == self.turns_max
        due = self._checkpoint() if self._life else self.turns >= self._next_audit
        audit = last or due
        if audit or self.turns >= self._next_gauge:
            family, self.family = self.family, "audit"
            self._add(Gauge(id=self._id("g"), at=self.at, full=audit))
            self._next_gauge = self._later(self._gauge_every, 50)
            if audit:
                if self._life:
                    self._audit_sample()
                else:
                    self._audit()
                self._next_audit = self._later(self._audit_every, 5)
            self.family = family
        if self._life and self.turns % FORGET_EVERY == 0:
            self._forget()

    def _later(self, every: int, part: int) -> int:
        """The turn of the next look: `every` turns on, and past THINNING a fixed part of the way.

        The number of units grows with the script, so that looking at all of them at fixed
        distances would cost the square of its length.
        """
        return self.turns + (every if self.turns < THINNING else max(every, self.turns // part))

    def _audit(self) -> None:
        """Ask for every unit that was ever told of, and look its history up."""
        # Trivial units first: where a vital one is missing it is known what stayed.
        known = sorted(self.world.units, key=lambda u: self.world.units[u].importance != "trivial")
        units = self._with_sources([*known, *self._erased])
        group = self._id("q")
        for unit in units:
            self._probe(unit, "current", group=group)
        for unit in units:
            self._look_up(unit, group)

    def _audit_sample(self) -> None:
        """Ask for a sample of a long life, look its histories up, and ask for some of its past."""
        self._forget()
        known = [unit for unit in self._sample.units() if unit in self.world.units]
        # trivial units first, as in every audit
        known.sort(key=lambda unit: self.world.units[unit].importance != "trivial")
        units = self._with_sources(known)
        group = self._id("q")
        for unit in units:
            self._probe(unit, "current", group=group)
        for unit in units:
            self._look_up(unit, group)
        for unit in self.dice.sample(known, PAST_UNITS):
            self._ask_past(unit)

    def _ask_past(self, unit: str) -> None:
        """What a unit was before, and on a day between two of its values."""
        held = [past for past in self.world.history(unit) if past.value and not past.never_true]
        if len(held) < 2:
            return
        self._probe(unit, "previous")
        days = [day for one, after in pairwise(held) for day in days_between(one.at, after.at)]
        if days:
            self._probe(unit, "as-of", of=self.dice.pick(days))

    # ------------------------------------------------------------ the end of things

    def withdraw(self, slots: Sequence[Slot]) -> None:
        """Withdraw what still holds of some units, in one utterance."""
        self.say([Op("retract", slot.unit) for slot in slots])

    def holds(self, slot: Slot) -> bool:
        """Whether a unit has a value, if only one that waits for review."""
        unit = self.world.units.get(slot.unit)
        return unit is not None and unit.live

    def end(self, slots: Sequence[Slot]) -> None:
        """Nobody will speak of these units again: what cannot be asked for either is forgotten."""
        self._ended.update(dict.fromkeys(slot.unit for slot in slots))

    def _forget(self) -> None:
        """Let go of ended units that no sample holds and no probe is due for."""
        due = {unit for _, _, units, *_ in self._due for unit in units}
        for unit in self._sample.without(self._ended):
            if unit in due:
                continue
            del self._ended[unit]
            self.world.forget(unit)
            self._changed.pop(unit, None)
            slot = self._slots.pop(unit)
            units = self._by_topic.get(slot.topic, [])
            if unit in units:
                units.remove(unit)
            if not units:
                self._by_topic.pop(slot.topic, None)
                self.world.associations.pop(slot.topic, None)
            # a topic of which something is forgotten takes up nothing new
            topics = self._topics.get((tenant_of(unit), slot.domain.name), [])
            if topic_of(unit) in topics:
                topics.remove(topic_of(unit))

    def _look_up(self, unit: str, group: str) -> None:
        self._add(Audit(
            id=self._id("a"), at=self.at, tenant=tenant_of(unit), unit=unit,
            text=self.renderer.history_question(unit), group=group, family=self.family,
        ))  # fmt: skip


def days_between(earlier: str, later: str) -> list[str]:
    """Noon of every day between two instants, the days of both left out.

    Questions about the past name a day, so nothing may have changed on it.
    """
    first, last = date.fromisoformat(earlier[:10]), date.fromisoformat(later[:10])
    days = ((first + timedelta(days=n)) for n in range(1, (last - first).days))
    return [f"{day.isoformat()}T12:00" for day in days]


def _speaks_of(step: Step, gone: Collection[str]) -> bool:
    """Whether a step says or asks something of some units, or is of some tenants."""
    units: Sequence[str | None]
    match step:
        case Turn():
            units = [unit for op in step.ops for unit in (op.unit, op.target)]
        case Probe():
            units = [step.unit, *step.units]
        case Audit() | Erasure():
            units = [step.unit]
        case _:
            return False
    return step.tenant in gone or any(unit in gone for unit in units)
