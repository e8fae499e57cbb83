"""Conversations made of choices: whatever makes sense next, with the world as the model.

Somebody else chooses (dice, or a tool that tests properties): each time the number of one of the
moves that are possible. Over a small pool of units anything may meet anything.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from datetime import date, datetime, timedelta
from functools import partial
from itertools import pairwise, permutations
from typing import Final

from steeltrap.harness import values
from steeltrap.harness.script import Header, Op, OpName, Rule, Script, Step, tenant_of
from steeltrap.workloads.dice import Dice
from steeltrap.workloads.domains import Field, domains, words
from steeltrap.workloads.render import Renderer
from steeltrap.workloads.retell import PLAIN
from steeltrap.workloads.stage import Lags, Slot, Stage
from steeltrap.workloads.world import WorldError

__all__ = ["MOVES", "conversation"]

Choose = Callable[[int], int]
"""Given how many options there are, the number of one of them."""
_Move = Callable[[], object]

TENANTS: Final = ("acme", "globex")
TOPICS: Final = 2
NEVER: Final = 1 << 20
CONSTANT_TOKENS: Final = 16
"""So short a conversation may hold little beyond what is worth keeping."""
GAP_H: Final = 92
"""So much time passes between two turns at most."""
EXPIRES_H: Final = 100
RULES: Final = {
    "date": (Rule("offset", days=3), Rule("same"), Rule("review")),
    "money": (Rule("scaled", times=1, over=3), Rule("review")),
}


def conversation(choose: Choose, moves_max: int) -> Script:
    """A true script of at least one turn, made of the moves that are chosen.

    Args:
        choose: called with how many options there are; gives the number of one.
        moves_max: of so many moves at most.
    """
    wild = _Wild(choose)
    allowed = choose(1 << len(MOVES))
    moves = [name for place, name in enumerate(MOVES) if not allowed >> place & 1]
    wild.tell_first()
    for _ in range(choose(moves_max)):
        wild.move(moves)
    return wild.ended()


class _Wild:
    """A stage on which anything may happen next.

    Args:
        choose: chooses.
    """

    def __init__(self, choose: Choose) -> None:
        self._choose = choose
        dice = Dice("wild")
        header = Header(
            name="wild", tenants=list(TENANTS), constant_tokens=CONSTANT_TOKENS, words=words()
        )
        steps: list[Step] = []
        self.stage = Stage(
            header, Renderer(PLAIN, dice.child("render")), dice, turns_max=NEVER, lags=Lags(()),
            audit_every=NEVER, gauge_every=NEVER, steps=steps,
        )  # fmt: skip
        self.steps = steps
        self.world = self.stage.world
        self.slots = {slot.unit: slot for slot in self._pool()}
        self._former: dict[str, dict[str, None]] = {}

    def _pool(self) -> Iterator[Slot]:
        """A few fields of the same topics for each tenant."""
        domain = domains()[0]
        fields = [*_first(domain.fields, "date", 3), *_first(domain.fields, "money", 2)]
        fields += [*_first(domain.fields, "name", 1), *_first(domain.fields, "text", 1)]
        topics = [self.stage.mint.topic(domain) for _ in range(TOPICS)]
        for tenant in TENANTS:
            for topic in topics:
                for field in fields:
                    yield self.stage.slot(field=field, domain=domain, topic=topic, tenant=tenant)

    # ------------------------------------------------------------ moving

    def tell_first(self) -> None:
        """A conversation begins with somebody telling something."""
        options = list(self.tell())
        options[self._choose(len(options))]()

    def move(self, moves: list[str]) -> None:
        """Make one of the moves that are possible."""
        possible = {name: found for name in moves if (found := list(getattr(self, name)()))}
        if not possible:
            return
        name = list(possible)[self._choose(len(possible))]
        options = possible[name]
        self.stage.family = name.replace("_", "-")
        options[self._choose(len(options))]()

    def ended(self) -> Script:
        """The script, with a last look at everything."""
        stage, told = self.stage, [self.slots[unit] for unit in self.slots if unit in self._former]
        stage.family = "end"
        stage.pause(days=1)
        stage.look()
        # Trivial units first: where a vital one is missing it is known what stayed.
        told.sort(key=lambda slot: slot.field.importance != "trivial")
        stage.check(*told)
        for slot in told:
            if self._was(slot):
                stage.check(slot, ask="previous")
        stage.look(*told)
        return Script(stage.header, self.steps)

    # ------------------------------------------------------------ what can be said of a unit

    def tell(self) -> Iterator[_Move]:
        """Whatever nobody has spoken of yet, or was withdrawn."""
        for slot in self.slots.values():
            if not self._live(slot):
                yield partial(self._tell, slot)

    def _tell(self, slot: Slot) -> None:
        if slot.unit in self.world.units:
            self._say(Op("revise", slot.unit, self._fresh(slot)))
        else:
            value, importance = self._fresh(slot), slot.field.importance
            self._say(Op("tell", slot.unit, value, importance=importance))

    def revise(self) -> Iterator[_Move]:
        """A new value."""
        for slot in self._set():
            yield partial(self._new, "revise", slot)

    def revise_source(self) -> Iterator[_Move]:
        """A new value of what something follows from."""
        for slot in self._set():
            if self.world.edges.get(slot.unit):
                yield partial(self._new, "revise", slot)

    def revise_two(self) -> Iterator[_Move]:
        """New values of two units of one tenant in one turn."""
        tied = {edge.target for edges in self.world.edges.values() for edge in edges}
        free = [slot for slot in self._set() if slot.unit not in tied | set(self.world.edges)]
        for a, b in permutations(free, 2):
            if tenant_of(a.unit) == tenant_of(b.unit):
                yield partial(self._new, "revise", a, b)

    def revert(self) -> Iterator[_Move]:
        """A former value holds again."""
        for slot, value in self._had():
            yield partial(self._say, Op("revert", slot.unit, value))

    def correct(self) -> Iterator[_Move]:
        """The value was never true."""
        for slot in self._set():
            yield partial(self._new, "correct", slot)

    def retract(self) -> Iterator[_Move]:
        """Nothing holds any more."""
        for slot in self._set():
            yield partial(self._say, Op("retract", slot.unit))

    def restate(self) -> Iterator[_Move]:
        """The present value again."""
        for slot in self._set():
            yield partial(self._say, Op("restate", slot.unit, self.stage.current(slot)))

    def echo(self) -> Iterator[_Move]:
        """A former value is mentioned."""
        for slot, value in self._had():
            yield partial(self._say, Op("echo", slot.unit, value))

    def rumour(self) -> Iterator[_Move]:
        """Somebody without standing says otherwise."""
        for slot in self._set():
            for source in ("colleague", "hearsay"):
                yield partial(self._new, "rumour", slot, source=source)

    def instruct(self) -> Iterator[_Move]:
        """Content holds an instruction."""
        for slot in self._set():
            yield partial(self._new, "instruct", slot)

    def expire(self) -> Iterator[_Move]:
        """A value that holds for a few days."""
        until = datetime.fromisoformat(self.stage.at) + timedelta(hours=EXPIRES_H)
        when = until.isoformat(timespec="minutes")
        for slot in self.slots.values():
            if not self._live(slot):
                yield partial(self._new, "expire", slot, until=when)

    def late_news(self) -> Iterator[_Move]:
        """What held on a day between two changes."""
        for slot in self._set():
            entries = self.world.units[slot.unit].entries
            if len(entries) > 1 and (since := _day_between(entries[-2].at, entries[-1].at)):
                yield partial(self._new, "revise", slot, valid_at=since)

    # ------------------------------------------------------------ what ties units together

    def depend(self) -> Iterator[_Move]:
        """A rule between two units of one kind and one tenant; what is not set yet is told first."""
        for source, target in permutations(self.slots.values(), 2):
            same = tenant_of(source.unit) == tenant_of(target.unit)
            if same and source.field.kind == target.field.kind:
                for rule in RULES.get(source.field.kind, ()):
                    op = Op("depend", source.unit, target=target.unit, rule=rule)
                    yield partial(self._depend, source, target, op)

    def _depend(self, source: Slot, target: Slot, op: Op) -> None:
        """Tie two units together, where that leads to no contradiction."""
        for slot in (source, target):
            if not self._live(slot):
                self._tell(slot)
        if self._agrees(op):
            self._say(op)

    def associate(self) -> Iterator[_Move]:
        """Two topics are related, and independent."""
        topics = dict.fromkeys(slot.topic for slot in self._set())
        for one, other in permutations(topics, 2):
            known = self.world.associations.get(one, ())
            if tenant_of(one) == tenant_of(other) and one < other and other not in known:
                yield partial(self._say, Op("associate", one, target=other))

    # ------------------------------------------------------------ what is no statement

    def noise(self) -> Iterator[_Move]:
        """Small talk."""
        for tenant in TENANTS:
            yield partial(self.stage.noise, tenant)

    def pause(self) -> Iterator[_Move]:
        """Some days pass."""
        for days in (0, 2, 6):
            yield partial(self.stage.pause, days)

    def erase_unit(self) -> Iterator[_Move]:
        """A unit must be gone."""
        for unit in self._told():
            yield partial(self.stage.erase, tenant_of(unit), self.slots[unit])

    def erase_tenant(self) -> Iterator[_Move]:
        """All of a tenant must be gone."""
        for tenant in dict.fromkeys(map(tenant_of, self._told())):
            yield partial(self.stage.erase, tenant)

    def read(self) -> Iterator[_Move]:
        """A user asks."""
        for unit in self._told():
            if self.world.origin(unit)[1] is None:
                yield partial(self.stage.ask, self.slots[unit])

    def look_back(self) -> Iterator[_Move]:
        """A question about the past."""
        for slot in self._set():
            entries = self.world.units[slot.unit].entries
            for one, other in pairwise(entries):
                if day := _day_between(one.at, other.at):
                    yield partial(self.stage.check, slot, ask="as-of", of=day)
            if self._was(slot):
                yield partial(self.stage.check, slot, ask="previous")

    def look(self) -> Iterator[_Move]:
        """The state is listed."""
        yield self.stage.look

    def compare_reads(self) -> Iterator[_Move]:
        """Of two units alike one is read here, the other in a twin."""
        for a, b in permutations(self._set(), 2):
            alike = a.field is b.field and tenant_of(a.unit) == tenant_of(b.unit)
            said = not any(self.world.origin(slot.unit)[1] for slot in (a, b))
            if alike and said and a.unit < b.unit:
                yield partial(self._compare_reads, a, b)

    def _compare_reads(self, a: Slot, b: Slot) -> None:
        stage, name = self.stage, self.stage.next_twin()
        stage.rank(a, b)
        for _ in range(2):
            stage.ask(a, swap=(name, b), control=b)
        stage.rank(a, b)
        stage.twin(name, a, b)

    # ------------------------------------------------------------ helpers

    def _live(self, slot: Slot) -> bool:
        unit = self.world.units.get(slot.unit)
        return unit is not None and unit.live

    def _set(self) -> list[Slot]:
        """Units that have a value, and will still have it when the next turn is said."""
        ahead = datetime.fromisoformat(self.stage.at) + timedelta(hours=GAP_H)
        then = ahead.isoformat(timespec="minutes")
        found = []
        for slot in self.slots.values():
            unit = self.world.units.get(slot.unit)
            if unit and unit.state == "set" and unit.now and (unit.now.until or "~") > then:
                found.append(slot)
        return found

    def _was(self, slot: Slot) -> bool:
        """Whether it can be asked what a unit was before.

        Not while its value is in doubt, and not where two values began at one instant: times do
        not tell which of them came first.
        """
        unit = self.world.units.get(slot.unit)
        if unit is None or unit.state == "review":
            return False
        return len({entry.at for entry in unit.entries}) == len(unit.entries)

    def _told(self) -> list[str]:
        return [unit for unit in self.slots if unit in self.world.units]

    def _had(self) -> Iterator[tuple[Slot, str]]:
        """Former values that were true, of units that have another one now."""
        for slot in self._set():
            wrong = {p.value for p in self.world.history(slot.unit) if p.never_true}
            there = {p.value for p in self.world.history(slot.unit)}
            for value in self._former.get(slot.unit, ()):
                if value != self.stage.current(slot) and value in there - wrong:
                    yield slot, value

    def _fresh(self, slot: Slot) -> str:
        """A value that nobody has, as have those that follow from it."""
        follow: list[tuple[Slot, Rule, int]] = []
        chain = [slot.unit]
        for place, unit in enumerate(chain):
            for edge in self.world.edges.get(unit, ()):
                if edge.target not in chain and edge.rule.kind != "review":
                    chain.append(edge.target)
                    follow.append((self.slots[edge.target], edge.rule, place))
        return self.stage.fresh(slot, follow)

    def _agrees(self, op: Op) -> bool:
        """Whether a rule leads to no contradiction, and neither would another value of its source."""
        world = copy.deepcopy(self.world)
        try:
            world.apply_one("t", self.stage.at, op)
            for unit in dict.fromkeys((op.unit, op.target, *world.edges)):
                held = world.expect(unit or "")
                if held.state == "set" and held.value:
                    world.apply_one("t", self.stage.at, Op("revise", unit, _other(held.value)))
        except (WorldError, values.ValueLiteralError):
            return False
        return True

    def _new(
        self, name: OpName, *slots: Slot, source: str = "owner",
        valid_at: str | None = None, until: str | None = None,
    ) -> None:  # fmt: skip
        """Say something of units with values that nobody has."""
        self._say(*(
            Op(name, slot.unit, self._fresh(slot), source=source, valid_at=valid_at, until=until)
            for slot in slots
        ))  # fmt: skip

    def _say(self, *ops: Op) -> None:
        """Say something, if it makes sense once time has gone on."""
        try:
            copy.deepcopy(self.world).apply("t", self.stage.at, ops)
        except WorldError:
            return
        for op in ops:
            if op.value and op.unit and op.op in ("tell", "revise", "revert", "correct", "expire"):
                self._former.setdefault(op.unit, {})[op.value] = None
        self.stage.say(ops)


MOVES: Final = (
    "tell", "revise", "revise_source", "revise_two", "revert", "correct", "retract", "restate", "echo", "rumour",
    "instruct", "expire", "late_news", "depend", "associate", "noise", "pause", "erase_unit",
    "erase_tenant", "read", "look", "look_back", "compare_reads",
)  # fmt: skip
"""What may happen next."""


def _first(fields: tuple[Field, ...], kind: str, n: int) -> list[Field]:
    return [field for field in fields if field.kind == kind][:n]


def _other(value: str) -> str:
    """Another value of a kind that rules can be about."""
    if value.startswith("date:"):
        return values.shifted(value, 1000)
    return values.scaled(value, 7, 1) if value.startswith("money:") else value


def _day_between(earlier: str, later: str) -> str:
    """Noon of the day after the first of two instants, if nothing of the second falls on it."""
    first, last = date.fromisoformat(earlier[:10]), date.fromisoformat(later[:10])
    day = first + timedelta(days=1)
    return f"{day.isoformat()}T12:00" if day < last else ""
