"""What is removed for good beside what must stay; judged by the twin in which it never was.

Everything that speaks of what is erased is left out of the twin. What followed from it by a rule
is another matter: a derived value is a fact of its own, which stands when its source is erased
(`World.erase`), and in the twin nothing could have given it. So it is asked for once, since it
must still be there, and is then erased too, before anything is compared.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from steeltrap.harness.script import Rule, TwinSpec, topic_of
from steeltrap.workloads.stage import Slot, Stage
from steeltrap.workloads.world import derive

__all__ = ["erase_tenant", "erase_unit"]

BYSTANDER = "northwind"
"""A tenant that stays."""


@dataclass(frozen=True, slots=True)
class _Chain:
    """Three dates in three topics; each of them follows from the one before."""

    source: Slot
    slot: Slot
    follower: Slot
    rules: tuple[Rule, Rule]

    def below(self, slot: Slot) -> list[tuple[Slot, Rule, int]]:
        """What follows from one of them, as `Stage.fresh` wants it."""
        whole = [(self.slot, self.rules[0], 0), (self.follower, self.rules[1], 1)]
        return whole if slot is self.source else [(self.follower, self.rules[1], 0)]


def erase_unit(stage: Stage) -> Iterator[int]:
    """A unit goes; what it followed from, its neighbours and its namesakes stay.

    Later news of what it followed from must not bring it back.
    """
    twin, tenant = stage.next_twin(), stage.tenant
    chain = _chain(stage, tenant)
    slot, follower = chain.slot, chain.follower
    alike = _named(stage, slot, tenant, stage.mint.look_alike(topic_of(slot.unit)))
    other = _named(stage, slot, tenant, stage.mint.topic(slot.domain))
    namesake = _named(stage, slot, stage.new_tenant(BYSTANDER), topic_of(slot.unit))
    stay = [chain.source, _sibling(stage, slot), alike, other, namesake]
    stage.never(twin, slot.unit, follower.unit)
    yield from _tell(stage, chain, stay)
    stage.associate(slot, other)
    yield from _live(stage, chain, stay)
    stage.erase(tenant, slot)
    stage.check(follower)
    stage.erase(tenant, follower)
    stage.header.twins.append(TwinSpec(twin, about="existing", gone=slot.unit))
    yield from _go_on(stage, stay, (alike, other))


def erase_tenant(stage: Stage) -> Iterator[int]:
    """A tenant goes with all that it said; what others say of topics of the same names stays."""
    twin, tenant = stage.next_twin(), stage.new_tenant(f"lumina-{stage.turns}")
    chain = _chain(stage, tenant)
    slot, topic = chain.slot, topic_of(chain.slot.unit)
    namesake = _named(stage, slot, stage.tenant, topic)
    other = _named(stage, slot, stage.tenant, stage.mint.topic(slot.domain))
    third = _named(stage, slot, stage.new_tenant(BYSTANDER), topic)
    stay = [_named(stage, chain.source, stage.tenant, topic_of(chain.source.unit)), namesake, other, third]  # fmt: skip
    stage.never(twin, tenant)
    yield from _tell(stage, chain, stay)
    stage.associate(slot, chain.source)
    stage.noise(tenant)
    yield from _live(stage, chain, stay)
    stage.erase(tenant)
    stage.header.twins.append(TwinSpec(twin, about="existing", gone=tenant))
    yield from _go_on(stage, stay, (namesake, other))


# ---------------------------------------------------------------- who there is


def _chain(stage: Stage, tenant: str) -> _Chain:
    one, two, three = (stage.slot(kinds=("date",), tenant=tenant) for _ in range(3))
    days = [stage.dice.between(3, 15) for _ in range(2)]
    return _Chain(one, two, three, (Rule("offset", days=days[0]), Rule("offset", days=days[1])))


def _named(stage: Stage, slot: Slot, tenant: str, topic: str) -> Slot:
    """The same field of another topic, or of the topic of that name of another tenant."""
    return stage.slot(field=slot.field, domain=slot.domain, topic=topic, tenant=tenant)


def _sibling(stage: Stage, slot: Slot) -> Slot:
    """Another field of the same topic."""
    fields = [f for f in slot.domain.fields if f.kind not in ("date", "time", "count")]
    return stage.slot(field=stage.dice.pick(fields), domain=slot.domain, topic=topic_of(slot.unit))


# ---------------------------------------------------------------- what happens


def _tell(stage: Stage, chain: _Chain, stay: Sequence[Slot]) -> Iterator[int]:
    """First values and the rules, those of the others in between."""
    value = stage.fresh(chain.source, chain.below(chain.source))
    stage.tell(chain.source, value=value)
    for one in stay:
        if one is not chain.source:
            yield 0
            stage.tell(one)
    ways = ((chain.source, chain.slot), (chain.slot, chain.follower))
    for (slot, to), rule in zip(ways, chain.rules, strict=True):
        yield 0
        value = derive(rule, value)
        stage.tell(to, value=value)
        stage.depend(slot, to, rule)


def _live(stage: Stage, chain: _Chain, stay: Sequence[Slot]) -> Iterator[int]:
    """News, repetition, hearsay, and questions that reinforce what will be gone."""
    slot = chain.slot
    for one in (slot, stay[0], slot, stay[1], slot):
        stage.ask(one)
        yield 0
    for one in (chain.source, slot):
        old = stage.current(slot)
        stage.revise(one, value=stage.fresh(one, chain.below(one)))
        yield 1
        stage.op("echo", slot, old)
    stage.op("rumour", slot, stage.fresh(slot), source="hearsay")
    yield 1
    stage.op("restate", slot)
    stage.ask(slot)
    stage.revise(chain.source, value=stage.fresh(chain.source, chain.below(chain.source)))
    yield 1
    stage.check(chain.follower)
    stage.look()


def _go_on(stage: Stage, stay: Sequence[Slot], pair: tuple[Slot, Slot]) -> Iterator[int]:
    """All that stays is looked at, asked for and revised, before and after maintenance."""
    stage.look(*stay)
    stage.rank(*pair)
    for one in stay:
        stage.ask(one)
        yield 0
    stage.pause()
    stage.look(*stay)
    for one in stay:
        stage.revise(one)
        yield 0
    stage.pause()
    for one in stay:
        stage.ask(one)
    stage.rank(*pair)
    stage.look(*stay)
