"""A plain model of M, to hold the reference system against: lists, loops, and no cleverness.

Written from the paper (sections 3 and 4.2) and from what the system's docstrings promise, not
from its code. Nothing is indexed, cached or reckoned ahead: what holds, what is active and how
salient a field is are found out anew whenever they are asked for. Policies are the default set,
with the thresholds and the ranking as they are given.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeVar

from steeltrap.reference_system.rules import Rule, RuleError, derive, same_value
from steeltrap.reference_system.statements import (
    Association,
    Dependency,
    Fact,
    Place,
    Question,
    Same,
    Statement,
    Withdrawal,
)

__all__ = ["Model", "Past", "Shown"]


def key(name: str) -> str:
    """A name as it is looked up."""
    return " ".join(name.split()).casefold()


def spelled(title: str) -> str:
    """A title by which duplicates are known: case and separators apart."""
    return " ".join(re.sub(r"[-_/.,:;]", " ", key(title)).split())


def loose(name: str) -> str:
    """A field name by which drift is known: also without the s of a plural."""
    return " ".join(
        w[:-1] if len(w) > 4 and w[-1] == "s" and w[-2] != "s" else w for w in spelled(name).split()
    )


def day(at: str) -> float:
    """Days since some day."""
    return (datetime.fromisoformat(at) - datetime(2026, 1, 1)).total_seconds() / 86_400


# ---------------------------------------------------------------- what M consists of


@dataclass(eq=False)
class Line:
    """One value that a field was given, and what was learned of it later."""

    value: str | None
    start: str
    until: str | None
    recorded: str
    number: int
    turn: str
    who: str
    sources: tuple[str, ...] = ()
    again: list[tuple[str, str, str | None]] = field(default_factory=list)
    """Said again: when, in which turn, and the end that was named."""
    void: str | None = None
    """When it was learned that it was never true."""


@dataclass(eq=False)
class Unit:
    """A field."""

    name: str
    about: str
    tags: list[str] = field(default_factory=list)
    lines: list[Line] = field(default_factory=list)
    verdicts: list[tuple[str, int, Line]] = field(default_factory=list)
    """Merges: when, the number of the verdict, and the line that it made current."""
    parts: list[Unit] = field(default_factory=list)
    """Fields that were merged into it."""
    contested: list[str | None] = field(default_factory=list)
    now: Line | None = None
    """The line that holds or held last."""
    review: bool = False
    via: Unit | None = None
    """The field from which the present value was derived."""
    spoken: int = 0
    """Number of the utterance that the present value goes back to."""
    cause: Cause | None = None
    """What changed it last."""
    mentions: int = 0
    accesses: list[tuple[str, float]] = field(default_factory=list)
    level: str = "full"
    into: Unit | None = None
    """The field that it was merged into."""

    def all_lines(self) -> list[Line]:
        """Its own and those of its parts, as they held."""
        lines = self.lines + [line for part in self.parts for line in part.all_lines()]
        return sorted(lines, key=lambda line: (line.start, line.number))

    def all_verdicts(self) -> list[tuple[str, int, Line]]:
        """Its own and those of its parts, in order."""
        found = self.verdicts + [v for part in self.parts for v in part.all_verdicts()]
        return sorted(found, key=lambda verdict: verdict[1])

    def end(self) -> str | None:
        """When the present value ends, as far as is known."""
        ends = [end for _, _, end in self.now.again if end] if self.now else []
        return ends[-1] if ends else self.now.until if self.now else None

    def holds(self, at: str) -> bool:
        """Whether it has a value at an instant from now on."""
        end = self.end()
        return self.now is not None and self.now.value is not None and (end is None or end > at)


@dataclass(eq=False)
class Host:
    """A topic."""

    title: str
    units: list[Unit] = field(default_factory=list)
    """Fields that were not merged away, in the order in which they were made."""
    names: dict[str, Unit] = field(default_factory=dict)
    """Former names of fields."""
    archived: bool = False
    into: Host | None = None
    """The topic that it was merged into."""


@dataclass(eq=False)
class Link:
    """An extension edge."""

    source: Unit
    target: Unit
    rule: Rule | None
    turn: str
    number: int
    """When it was told: it obliges from then on."""


@dataclass(eq=False)
class Plan:
    """A value that begins to hold later."""

    due: str
    number: int
    unit: Unit
    said: Fact
    turn: str


@dataclass(eq=False)
class Cause:
    """A change that goes out from a field."""

    value: str | None
    start: str
    turn: str
    who: str
    number: int
    corrects: bool = False


@dataclass(eq=False)
class Home:
    """What one tenant has."""

    hosts: list[Host] = field(default_factory=list)
    """Topics that were not merged away, in the order in which they were made."""
    titles: dict[str, Host] = field(default_factory=dict)
    """Former titles, and other names."""
    links: list[Link] = field(default_factory=list)
    plans: list[Plan] = field(default_factory=list)
    ties: list[tuple[Host, Host]] = field(default_factory=list)
    findings: list[tuple[Unit, Cause | None] | tuple[Host, Host]] = field(default_factory=list)
    """Changes (None: whatever changed the field last) and topics that are said to be one."""
    born: dict[Unit, int] = field(default_factory=dict)
    """When fields were made."""


@dataclass(frozen=True)
class Shown:
    """A value as it is served."""

    topic: str
    field: str
    value: str
    start: str
    end: str | None
    turns: tuple[str, ...]
    who: str
    review: bool


@dataclass(frozen=True)
class Past:
    """A value of a history."""

    value: str
    start: str
    end: str | None
    turns: tuple[str, ...]
    who: str
    never_true: bool


Merged = TypeVar("Merged", Host, Unit)


def last(merged: Merged) -> Merged:
    """What a topic or field has been merged into, in the end."""
    while merged.into is not None:
        merged = merged.into
    return merged


# ---------------------------------------------------------------- the model


class Model:
    """M and its operators under the default policies.

    Args:
        half_life: days.
        bound: active tokens of a tenant.
        summary_at: below this salience a history is compressed.
        remove_at: below this a field may be hidden.
        archive_at: below this a topic is archived.
        roomy: the share of the bound below which nothing that has faded is hidden.
        ranks: who counts most, the highest first.
        tie: decides between fields of one salience: tenant, place of the topic among those that
            there are, place of the field in it -> what comes first.
    """

    def __init__(
        self, *, half_life: float, bound: float, summary_at: float, remove_at: float,
        archive_at: float, roomy: float, ranks: list[str], tie: Callable[[str, int, int], str],
    ) -> None:  # fmt: skip
        self.half_life, self.bound, self.roomy = half_life, bound, roomy
        self.summary_at, self.remove_at, self.archive_at = summary_at, remove_at, archive_at
        self.ranks = ranks
        self.tie = tie
        self.homes: dict[str, Home] = {}
        self.count = 0

    def number(self) -> int:
        """What is written next."""
        self.count += 1
        return self.count

    def rank(self, who: str) -> int:
        """The higher, the more it counts."""
        return len(self.ranks) - self.ranks.index(who) if who in self.ranks else 0

    # ------------------------------------------------------------ finding

    def host(self, tenant: str, title: str) -> Host | None:
        """The oldest topic of a title, or the one that is called so otherwise."""
        home = self.homes.get(tenant, Home())
        for host in home.hosts:
            if key(host.title) == key(title):
                return host
        return home.titles.get(key(title))

    def unit_in(self, host: Host, name: str) -> Unit | None:
        """The field of a name, or the one that was called so."""
        for unit in host.units:
            if key(unit.name) == key(name):
                return unit
        return host.names.get(key(name))

    def unit(self, tenant: str, title: str, name: str) -> Unit | None:
        """A field by names."""
        host = self.host(tenant, title)
        return self.unit_in(host, name) if host else None

    def host_of(self, tenant: str, unit: Unit) -> Host:
        """The topic that a field is in."""
        return next(host for host in self.homes[tenant].hosts if unit in host.units)

    def places(self, tenant: str) -> list[tuple[Host, Unit]]:
        """Every field."""
        return [
            (host, unit) for host in self.homes.get(tenant, Home()).hosts for unit in host.units
        ]

    # ------------------------------------------------------------ salience

    def salience(self, unit: Unit, at: str) -> float:
        """Every access counts, and is halved with every half-life since."""
        return sum(w * 2 ** ((day(then) - day(at)) / self.half_life) for then, w in unit.accesses)

    def stored(self, unit: Unit) -> float:
        """The same as the day of a single access that would count as much; no time changes it."""
        whole = sum(w * 2 ** (day(then) / self.half_life) for then, w in unit.accesses)
        return self.half_life * math.log2(whole) if whole else -math.inf

    # ------------------------------------------------------------ what is active

    def active(self, host: Host, unit: Unit, at: str) -> bool:
        """Whether a field competes for a place in an answer."""
        return unit.level != "hidden" and not host.archived and unit.holds(at)

    def tokens(self, host: Host, unit: Unit) -> int:
        """Of its sentence, four characters each."""
        value = unit.now.value if unit.now else None
        text = value if "note" in unit.tags else f"The {unit.name} of {host.title} is {value}."
        return math.ceil(len(text or "") / 4)

    def footprint(self, tenant: str, at: str) -> int:
        """Tokens of what is active."""
        return sum(self.tokens(h, u) for h, u in self.places(tenant) if self.active(h, u, at))

    def waits(self, tenant: str, unit: Unit) -> bool:
        """Whether something that it follows from has changed and was not yet dealt with."""
        home = self.homes[tenant]
        changed = [finding[0] for finding in home.findings if isinstance(finding[0], Unit)]
        return any(link.target is unit and link.source in changed for link in home.links)

    def shown(self, tenant: str, host: Host, unit: Unit) -> Shown:
        """The present value."""
        line = unit.now
        assert line is not None
        return Shown(
            host.title, unit.name, line.value or "", line.start, unit.end(),
            (line.turn, *line.sources), line.who, unit.review or self.waits(tenant, unit),
        )  # fmt: skip

    def contents(self, tenant: str, at: str) -> list[Shown]:
        """All that is active."""
        found = [(h, u) for h, u in self.places(tenant) if self.active(h, u, at)]
        return [self.shown(tenant, host, unit) for host, unit in found]

    # ------------------------------------------------------------ histories

    def past(self, unit: Unit, by: str | None = None) -> list[tuple[Line, Past, bool]]:
        """Every value and withdrawal, as far as it was known at `by`; and whether it held last.

        What was said of a line later than `by` is left out too.
        """
        lines = [line for line in unit.all_lines() if by is None or line.recorded <= by]
        void = [line for line in lines if line.void and (by is None or line.void <= by)]
        below: list[Line] = []
        for when, number, won in unit.all_verdicts():
            if by is None or when <= by:
                place = (won.start, won.number)
                below += [x for x in lines if x.number < number and (x.start, x.number) > place]
                below = [x for x in below if x is not won]
        standing = [line for line in lines if line not in void and line not in below]
        found = []
        for line in lines:
            later = [x for x in standing if (x.start, x.number) > (line.start, line.number)]
            again = [a for a in line.again if by is None or a[0] <= by]
            ends: list[str | None] = [line.until, *(end for _, _, end in again if end)][-1:]
            ends += [later[0].start] if later else []
            ends = [line.start] if line in below else ends
            turns = (line.turn, *line.sources, *(turn for _, turn, _ in again))
            found.append((line, Past(
                line.value or "", line.start, min((e for e in ends if e), default=None),
                tuple(dict.fromkeys(turns)), line.who, line in void,
            ), bool(standing) and line is standing[-1]))  # fmt: skip
        return found

    def history(self, tenant: str, title: str, name: str) -> list[Past]:
        """Every value that a field had, oldest first."""
        unit = self.unit(tenant, title, name)
        return [past for line, past, _ in self.past(unit) if line.value is not None] if unit else []

    def as_of(self, unit: Unit, at: str, by: str | None) -> Past | None:
        """What held at an instant, as far as was known at `by`."""
        held = None
        for line, past, _ in self.past(unit, by):
            if not past.never_true and past.start <= at and past.end != past.start:
                held = past if line.value is not None and (not past.end or past.end > at) else None
        return held

    def told(
        self, tenant: str, host: Host, unit: Unit, at: str, by: str | None
    ) -> list[Past | Shown]:
        """What it was, the latest first, and then what it is."""
        known = self.past(unit, by)
        values = [
            (p, last) for line, p, last in known if line.value is not None and not p.never_true
        ]
        open_now = [p for p, last in values if last and (not p.end or p.end > (by or at))]
        before: list[Past | Shown] = [p for p, last in reversed(values) if not (last and open_now)]
        if unit.level != "full":
            before = before[:2]
        if not open_now:
            return before
        return [*before, open_now[0] if by else self.shown(tenant, host, unit)]

    # ------------------------------------------------------------ ingest

    def arrive(self, tenant: str, at: str) -> None:
        """What was planned becomes the present at its time, in the order of times."""
        home, plan = self.homes.get(tenant), None
        while home and (due := [plan for plan in home.plans if plan.due <= at]):
            plan = min(due, key=lambda p: (p.due, p.number))
            home.plans.remove(plan)
            unit = plan.unit
            while unit.into:
                unit = unit.into
            if not unit.now or self.rank(plan.said.said_by) >= self.rank(unit.now.who):
                self.take_in(tenant, plan.due, plan.turn, unit, plan.said)
        if plan is not None:
            self.make_room(tenant, plan.due)

    def ingest(self, tenant: str, at: str, turn: str, statements: list[Statement]) -> None:
        """Take in what one turn says, and keep within the bound.

        Raises:
            ValueError: a name is empty, or a field would follow from itself; nothing of this
                model is to be relied on then.
        """
        self.arrive(tenant, at)
        self.homes.setdefault(tenant, Home())
        for said in statements:
            match said:
                case Fact():
                    self.fact(tenant, at, turn, said)
                case Withdrawal():
                    self.withdraw(tenant, at, turn, said)
                case Dependency():
                    self.depend(tenant, turn, said)
                case Association():
                    one, other = self.awake(tenant, said.topic), self.awake(tenant, said.other)
                    if one is not other:
                        self.homes[tenant].ties.append((one, other))
                case Same():
                    self.same(tenant, said)
        self.make_room(tenant, at)

    def new_host(self, tenant: str, title: str) -> Host:
        """A topic without fields."""
        if not key(title):
            raise ValueError("no topic")
        host = Host(" ".join(title.split()))
        self.homes[tenant].hosts.append(host)
        return host

    def awake(self, tenant: str, title: str) -> Host:
        """The topic of a title, made where there is none, brought back where it is archived."""
        host = self.host(tenant, title) or self.new_host(tenant, title)
        host.archived = False
        return host

    def unit_for(
        self, tenant: str, host: Host, name: str, about: str = "", tags: tuple[str, ...] = ()
    ) -> Unit:
        """The field of a name, made where there is none."""
        if not key(name):
            raise ValueError("no field")
        unit = self.unit_in(host, name)
        if unit is None:
            unit = Unit(" ".join(name.split()), about, list(tags))
            host.units.append(unit)
            self.homes[tenant].born[unit] = self.number()
        return unit

    def fact(self, tenant: str, at: str, turn: str, said: Fact) -> None:
        """A field has a value."""
        host = None if said.new_topic else self.host(tenant, said.topic)
        host = host or self.new_host(tenant, said.topic)
        unit = self.unit_for(tenant, host, said.field, said.about, said.tags)
        if unit.now and self.rank(said.said_by) < self.rank(unit.now.who):
            return
        if said.valid_from and said.valid_from > at:
            plain = Fact(
                said.topic, said.field, said.value, said.said_by, said.valid_from, said.until
            )
            plan = Plan(said.valid_from, self.number(), unit, plain, turn)
            self.homes[tenant].plans.append(plan)
            unit.tags += [tag for tag in said.tags if tag not in unit.tags]
            return
        self.take_in(tenant, at, turn, unit, said)

    def take_in(self, tenant: str, at: str, turn: str, unit: Unit, said: Fact) -> None:
        """A value that nobody higher contradicts."""
        self.host_of(tenant, unit).archived = False
        start = said.valid_from or at
        line = Line(said.value, start, said.until, at, self.number(), turn, said.said_by)
        same = unit.holds(at) and not unit.review and same_value(unit.now.value or "", said.value)  # type: ignore[union-attr]
        higher = unit.now is not None and self.rank(said.said_by) > self.rank(unit.now.who)
        if same and not higher:
            unit.now.again.append((at, turn, said.until))  # type: ignore[union-attr]
            unit.mentions += 1
            unit.tags += [tag for tag in said.tags if tag not in unit.tags]
            unit.level = "full" if unit.level == "hidden" else unit.level
            return
        if same and unit.now is not None:
            line.start, line.until = max(start, unit.now.start), said.until or unit.end()
            start = line.start
        corrects = said.corrects and unit.holds(at) and not same
        if unit.now and start < unit.now.start and not corrects:
            unit.lines.append(line)
            return
        if corrects:
            assert unit.now is not None
            unit.now.void = at
            line.start = unit.now.start
        unit.lines.append(line)
        unit.tags += [tag for tag in said.tags if tag not in unit.tags]
        self.becomes(tenant, unit, line, at, corrects=corrects)

    def becomes(
        self, tenant: str, unit: Unit, line: Line, at: str, *, corrects: bool = False
    ) -> None:
        """What was said is the present value: an access, and a change to those who depend on it."""
        unit.now, unit.review, unit.via, unit.spoken = line, False, None, line.number
        unit.mentions += line.value is not None
        unit.accesses.append((at, 1.0))
        unit.level = "full"
        cause = Cause(line.value, line.start, line.turn, line.who, line.number, corrects)
        self.announce(tenant, unit, cause)

    def announce(self, tenant: str, unit: Unit, cause: Cause) -> None:
        """What depends on a field is flagged for revision."""
        unit.cause = cause
        if any(link.source is unit for link in self.homes[tenant].links):
            self.homes[tenant].findings.append((unit, cause))

    def withdraw(self, tenant: str, at: str, turn: str, said: Withdrawal) -> None:
        """A field has no value any more."""
        unit = self.unit(tenant, said.topic, said.field)
        if unit is None:
            return
        if unit.now and self.rank(said.said_by) < self.rank(unit.now.who):
            return
        self.homes[tenant].plans = [
            p for p in self.homes[tenant].plans
            if p.unit is not unit or self.rank(p.said.said_by) > self.rank(said.said_by)
        ]  # fmt: skip
        if not unit.holds(at) or unit.now is None:
            return
        line = Line(None, max(at, unit.now.start), None, at, self.number(), turn, said.said_by)
        unit.lines.append(line)
        self.becomes(tenant, unit, line, at)

    def depend(self, tenant: str, turn: str, said: Dependency) -> None:
        """One field follows from another."""
        ends = []
        for place in (said.source, said.target):
            ends.append(self.unit_for(tenant, self.awake(tenant, place.topic), place.field))
        if ends[0] is ends[1]:
            raise ValueError("cannot follow from itself")
        home = self.homes[tenant]
        known = [x for x in home.links if x.source is ends[0] and x.target is ends[1]]
        changed = [x for x in known if x.rule != said.rule]
        home.links = [x for x in home.links if x not in changed]
        for _ in changed if known else (None,):
            home.links.append(Link(ends[0], ends[1], said.rule, turn, self.number()))

    def same(self, tenant: str, said: Same) -> None:
        """Two titles are one: a finding if both are known, else another name."""
        if not key(said.topic) or not key(said.other):
            raise ValueError("no topic")
        one, other = self.host(tenant, said.topic), self.host(tenant, said.other)
        home = self.homes[tenant]
        if one and other:
            if one is not other:
                home.findings.append((one, other))
        elif one or other:
            home.titles[key(said.other if one else said.topic)] = one or other  # type: ignore[assignment]
        else:
            host = self.new_host(tenant, said.topic)
            if key(said.other) != key(said.topic):
                home.titles[key(said.other)] = host

    # ------------------------------------------------------------ revise

    def revise(self, tenant: str, at: str, *, search: bool = False) -> None:
        """Deal with the findings; look for more; keep within the bound."""
        if tenant not in self.homes:
            return
        self.arrive(tenant, at)
        self.settle(tenant, at)
        if search:
            self.search(tenant, at)
            self.settle(tenant, at)
        self.make_room(tenant, at)

    def settle(self, tenant: str, at: str) -> None:
        """Deal with what was flagged, until nothing is."""
        home = self.homes[tenant]
        while home.findings:
            one, other = home.findings.pop(0)
            if isinstance(one, Host) and isinstance(other, Host):
                self.merge(tenant, at, one, other)
            elif isinstance(one, Unit) and not isinstance(other, Host) and (other or one.cause):
                self.propagate(tenant, at, one, other or one.cause)  # type: ignore[arg-type]

    def propagate(self, tenant: str, at: str, origin: Unit, cause: Cause) -> None:
        """Breadth first along extension edges, each field once, no further than values change."""
        reached = [origin]
        walk: list[tuple[Unit, str | None, tuple[str, ...]]] = [(origin, cause.value, ())]
        while walk:
            source, value, trail = walk.pop(0)
            for link in [link for link in self.homes[tenant].links if link.source is source]:
                if link.number > cause.number:
                    continue
                target = link.target
                if target in reached:
                    continue
                reached.append(target)
                if target.spoken > cause.number:
                    continue
                derived = None
                if value is not None and link.rule is not None and link.rule.kind != "review":
                    try:
                        derived = derive(link.rule, value)
                    except RuleError:
                        derived = None
                if derived is None:
                    target.review = target.review or target.holds(at)
                elif not (
                    target.holds(at) and not target.review
                    and same_value(target.now.value or "", derived)  # type: ignore[union-attr]
                ):  # fmt: skip
                    self.follow(target, source, derived, cause, (*trail, link.turn), at)
                    walk.append((target, derived, (*trail, link.turn)))

    def follow(
        self, unit: Unit, source: Unit, value: str, cause: Cause, trail: tuple[str, ...], at: str
    ) -> None:
        """A value that follows becomes the present one; that is no access."""
        if cause.corrects and unit.via is source and unit.now:
            unit.now.void = at
        start = max(cause.start, unit.now.start if unit.now else "")
        line = Line(value, start, None, at, self.number(), cause.turn, cause.who, trail)
        unit.lines.append(line)
        unit.now, unit.review, unit.via, unit.level = line, False, source, "full"
        unit.spoken = cause.number
        unit.cause = Cause(value, start, cause.turn, cause.who, line.number)

    def search(self, tenant: str, at: str) -> None:
        """Topics of one title, fields of one name, groups that have grown: all, found at once."""
        found: list[tuple[str, Any, Any]] = []
        home = self.homes[tenant]
        for host in home.hosts:
            for other in home.hosts:
                if other is not host and spelled(other.title) == spelled(host.title):
                    pair = sorted((host, other), key=home.hosts.index)
                    found.append(("duplicate", pair[0], pair[1]))
            units = [unit for unit in host.units if "note" not in unit.tags]
            for place, unit in enumerate(units):
                found += [
                    ("drift", unit, other) for other in units[place + 1 :]
                    if loose(unit.name) == loose(other.name)
                ]  # fmt: skip
            abouts = dict.fromkeys(unit.about for unit in units)
            found += [("group", host, a) for a in abouts if a and key(a) != key(host.title)]
        for kind, one, other in found:
            if kind == "duplicate":
                self.merge(tenant, at, one, other)
            elif kind == "drift":
                self.drift(tenant, at, one, other)
            else:
                self.promote(tenant, at, one, other)

    def drift(self, tenant: str, at: str, one: Unit, other: Unit) -> None:
        """Two fields of one topic that are called the same."""
        one, other = last(one), last(other)
        host = self.host_of(tenant, one)
        if one is not other and other in host.units and loose(one.name) == loose(other.name):
            self.absorb(tenant, at, one, host, other)

    def merge(self, tenant: str, at: str, host: Host, other: Host) -> None:
        """Two topics become one; nothing of either is lost."""
        host, other = last(host), last(other)
        if host is other:
            return
        home = self.homes[tenant]
        other.into = host
        host.archived = host.archived and other.archived
        for unit in list(other.units):
            if unit in other.units:
                self.bring(tenant, at, other, unit, host, unit.name)
        for name, unit in other.names.items():
            if self.unit_in(host, name) is None:
                host.names[name] = unit
        kept = [tie for tie in home.ties if other not in tie]
        moved = [
            tuple(host if end is other else end for end in tie) for tie in home.ties if other in tie
        ]
        home.ties = kept + [tie for tie in moved if tie[0] is not tie[1]]  # type: ignore[misc]
        home.titles = {n: host if h is other else h for n, h in home.titles.items()}
        home.titles[key(other.title)] = host
        home.hosts.remove(other)

    def bring(self, tenant: str, at: str, giver: Host, unit: Unit, host: Host, name: str) -> None:
        """A field goes to another topic, or becomes one with the field that is called so there."""
        here = self.unit_in(host, name)
        if here is not None and here is not unit:
            self.absorb(tenant, at, here, giver, unit)
            return
        giver.names[key(unit.name)] = unit
        giver.units.remove(unit)
        unit.name = name
        host.units.append(unit)
        host.units.sort(key=lambda u: self.homes[tenant].born[u])

    def absorb(self, tenant: str, at: str, unit: Unit, giver: Host, other: Unit) -> None:
        """Two fields become one: both histories stay, the higher source's value holds."""
        home = self.homes[tenant]
        won = unit
        if other.now and not unit.now:
            won = other
        elif unit.now and other.now:

            def place(u: Unit) -> tuple[int, str, int]:
                return self.rank(u.now.who), u.now.start, u.spoken  # type: ignore[union-attr]

            won = max((unit, other), key=place)
        giver.names[key(other.name)] = unit
        for h in home.hosts:
            h.names = {n: unit if u is other else u for n, u in h.names.items()}
        giver.units.remove(other)
        copied = [
            Link(unit, link.target, link.rule, link.turn, link.number)
            for link in home.links
            if link.source is other
        ]
        home.links = [link for link in home.links if link.source is not other] + copied
        for link in home.links:
            link.target = unit if link.target is other else link.target
        home.links = [link for link in home.links if link.source is not link.target]
        for _, u in self.places(tenant):
            u.via = unit if u.via is other else u.via
        other.into = unit
        unit.parts.append(other)
        unit.mentions += other.mentions
        unit.tags += [tag for tag in other.tags if tag not in unit.tags]
        unit.accesses = max(
            unit.accesses, other.accesses, key=lambda a: self.salience(Unit("", "", accesses=a), at)
        )
        ladder = ("full", "compressed", "hidden")
        unit.level = min(unit.level, other.level, key=ladder.index)
        home.findings = [(unit, None) if f[0] is other else f for f in home.findings]
        if won.now is None:
            return
        unit.now, unit.review, unit.spoken = won.now, won.review, won.spoken
        unit.via = won.via
        number = self.number()
        unit.verdicts.append((at, number, won.now))
        self.announce(
            tenant, unit, Cause(won.now.value, won.now.start, won.now.turn, won.now.who, number)
        )

    def promote(self, tenant: str, at: str, host: Host, name: str) -> None:
        """A group that is spoken of often enough becomes a topic of its own."""
        host = last(host)
        group = [unit for unit in host.units if key(unit.about) == key(name)]
        if len(group) < 3 or sum(unit.mentions for unit in group) < 5:
            return
        own = self.host(tenant, name) or self.new_host(tenant, name)
        if own is host:
            return
        own.archived = own.archived and host.archived
        for unit in group:
            short = re.sub(rf"^{re.escape(name)}('s)?\s+", "", unit.name, flags=re.IGNORECASE)
            if unit in host.units:
                self.bring(tenant, at, host, unit, own, short.strip() or unit.name)
        self.homes[tenant].ties.append((host, own))

    # ------------------------------------------------------------ forget

    def make_room(self, tenant: str, at: str) -> None:
        """Forgetting follows whatever passes the bound."""
        if self.footprint(tenant, at) > self.bound:
            self.forget(tenant, at)

    def position(self, tenant: str, place: tuple[Host, Unit]) -> tuple[int, int]:
        """Where a field stands: place of its topic, place in its topic."""
        host, unit = place
        return self.homes[tenant].hosts.index(host), host.units.index(unit)

    def forget(self, tenant: str, at: str) -> None:
        """Attenuate what has faded, the least salient first, until the rest is within the bound."""
        self.arrive(tenant, at)
        places = [(h, u) for h, u in self.places(tenant) if self.active(h, u, at)]
        places.sort(key=lambda p: (self.stored(p[1]), self.tie(tenant, *self.position(tenant, p))))
        looked_at: list[Host] = []
        for host, unit in places:
            salience = self.salience(unit, at)
            full = self.footprint(tenant, at) > self.bound
            if salience >= max(self.summary_at, self.remove_at) and not full:
                break
            looked_at.append(host)
            if "vital" in unit.tags:
                continue
            crowded = self.footprint(tenant, at) > self.roomy * self.bound
            if full or (salience < self.remove_at and crowded):
                unit.level = "hidden"
            elif salience < self.summary_at and unit.level == "full":
                unit.level = "compressed"
        for host, unit in self.places(tenant):
            if unit.level == "hidden" and unit.now and self.salience(unit, at) < self.archive_at:
                looked_at.append(host)
        for host in looked_at:
            if any(self.active(host, unit, at) for unit in host.units):
                continue
            if max(self.salience(unit, at) for unit in host.units) < self.archive_at:
                host.archived = True

    # ------------------------------------------------------------ retrieve

    def asked(self, tenant: str, places: tuple[Place, ...]) -> list[tuple[Host, Unit]]:
        """The fields that places name, each once, the most salient first."""
        found: list[tuple[Host, Unit]] = []
        for place in places:
            host = self.host(tenant, place.topic)
            if host is None:
                continue
            units = list(host.units) if not place.field else [self.unit_in(host, place.field)]
            for unit in units:
                if unit is not None and all(unit is not u for _, u in found):
                    found.append((self.host_of(tenant, unit), unit))
        return sorted(found, key=lambda p: -self.stored(p[1]))

    def retrieve(self, tenant: str, at: str, question: Question) -> list[Shown | Past]:
        """What is served, and the access that this is."""
        self.arrive(tenant, at)
        asked = self.asked(tenant, question.places)
        named = [
            unit for place in question.places if (host := self.host(tenant, place.topic))
            for _, unit in self.asked(tenant, (place,)) if place.field or host.archived
        ]  # fmt: skip
        served: list[tuple[Unit, list[Shown | Past]]] = []
        for host, unit in self.related(tenant, asked) if question.mode == "structural" else asked:
            if question.mode != "temporal":
                called = question.mode == "topic" and unit in named and unit.holds(at)
                shown = called or self.active(host, unit, at)
                items: list[Shown | Past] = [self.shown(tenant, host, unit)] if shown else []
            elif question.as_of:
                then = self.as_of(unit, question.as_of, question.recorded_by)
                items = [then] if then else []
            else:
                items = self.told(tenant, host, unit, at, question.recorded_by)
            served.append((unit, items))
        for unit, items in served:
            if items:
                unit.accesses.append((at, 1.0))
            if (
                items
                and question.mode == "topic"
                and not self.active(self.host_of(tenant, unit), unit, at)
            ):
                unit.level, self.host_of(tenant, unit).archived = "full", False
        self.make_room(tenant, at)
        return [item for _, items in served for item in items]

    def related(self, tenant: str, asked: list[tuple[Host, Unit]]) -> list[tuple[Host, Unit]]:
        """What follows from the fields and what they follow from; then the topics tied to theirs."""
        home = self.homes.get(tenant, Home())
        found: list[Unit] = []
        for _, unit in asked:
            found += [x.target for x in home.links if x.source is unit]
            found += [x.source for x in home.links if x.target is unit]
        for host, _ in asked:
            for one, other in home.ties:
                if host in (one, other):
                    found += (other if host is one else one).units
        return [(self.host_of(tenant, unit), unit) for unit in dict.fromkeys(found)]

    def restore(self, tenant: str, title: str, name: str, at: str) -> None:
        """Bring back a field: an access.

        Raises:
            KeyError: there is none.
        """
        self.arrive(tenant, at)
        unit = self.unit(tenant, title, name)
        if unit is None:
            raise KeyError(name)
        self.host_of(tenant, unit).archived = False
        unit.level = "full"
        unit.accesses.append((at, 1.0))
        self.make_room(tenant, at)

    # ------------------------------------------------------------ erase

    def erase(self, tenant: str, title: str | None = None, name: str | None = None) -> None:
        """Remove a field, a topic or a tenant; a topic goes with its last field.

        Raises:
            KeyError: there is none.
        """
        if title is None:
            self.homes.pop(tenant, None)
            return
        host = self.host(tenant, title)
        if host is None:
            raise KeyError(title)
        gone = list(host.units)
        if name is not None:
            unit = self.unit_in(host, name)
            if unit is None:
                raise KeyError(name)
            host, gone = self.host_of(tenant, unit), [unit]
        home = self.homes[tenant]
        host.units = [unit for unit in host.units if unit not in gone]
        home.links = [x for x in home.links if x.source not in gone and x.target not in gone]
        home.plans = [plan for plan in home.plans if last(plan.unit) not in gone]
        home.findings = [
            f for f in home.findings if isinstance(f[0], Host) or last(f[0]) not in gone
        ]
        for h in home.hosts:
            h.names = {n: u for n, u in h.names.items() if u not in gone}
        if not host.units:
            home.hosts.remove(host)
            home.ties = [tie for tie in home.ties if host not in tie]
            home.titles = {n: h for n, h in home.titles.items() if h is not host}
            home.findings = [
                f for f in home.findings
                if isinstance(f[0], Unit) or host not in (last(f[0]), last(f[1]))
            ]  # fmt: skip
